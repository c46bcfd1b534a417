"""Which words of a text count, and which spellings and words stand for the same. Pure; knows no documents."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from nodes.reading.bilingual import singular, with_phrases

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_HAN_RUN = re.compile(f"[{_HAN}]+")
# Phrases that ask and name nothing. They are taken out before words are told apart, as they would fuse with
# their neighbours: 多少天年假 would be read as 多少, 天年, 假. The first is 要不要, 有没有 and their like.
_ASKING = re.compile(
    r"(.{1,2})[不没]\1|多少[天钱个次年月人元家种]?|几[天年个次月人元家种岁号点]|[什甚]么(?:时候|样)?|啥(?:时候)?"
    r"|会?(?:怎么[办样]?|怎样|如何)|为[什何]么?|哪[些个里儿种位]|是否|能否|可否|多[久长大高]|请问"
    r"|(?:没有?|不|未)?(?:按时|准时)|能?用来|干[什甚]么|我?想(?=[开办申领买租])|我(?:们|公司)?(?=刚|已|正)"
)

# Words that shape a question and say nothing of its subject.
_STOP_WORDS = frozenset(
    """
    以内 以上 以下 以外 之内 以后 以前 之后 之前 除了 已经 一直 大概 整个 比较 打算 听 听说 想要 希望 帮
    帮我 马上 刚 刚刚 最近 今年 去年 明年 今天 昨天 明天 一般 通常 总共 一共 一起 只是 当时 正在 准备 东西
    这里 这儿 这边 那边 本地 当地
    手续 你好 您好 谢谢 朋友 家里 一家 一间 一辆 一件 一台 合适 按 的 了 吗 呢 吧 啊 呀 嘛 么 是 在 有 和
    与 及 或 或者 以及 而 但 但是 也 都 还 又 就 才 再 很 太 更 最 把 被 让 给 对 对于 关于 从 到 向 往 由
    于 以 为 为了 因为 所以 如果 那么 那 这 哪 它 他 她 我 你 您 咱 我们 你们 他们 咱们 自己 大家 请 请问
    问 想 想问 知道 告诉 一下 说 说明 介绍 解释 什么 什么样 啥 哪些 哪个 哪里 哪儿 哪种 谁 怎么 怎么办
    怎样 怎么样 如何 多少 多少钱 几 几个 几天 几年 几次 几点 几号 多 多久 多长 多大 何时 何 为什么 为何
    是否 可以 能 能够 能否 可否 可 会 要 需要 应该 应 该 得 必须 时候 时 之 其 其中 此 这个 那个 这些 那些
    个 些 一 一个 一些 上 下 里 中 内 前 后 没有 没 不 不能 别 还是 进行 具体 相关 有关 情况 目前 现在 现行
    开始 包含 包括 我要
    意思 原因 理由 另外 此外 顺便 请教
    规定 要求 内容 属于 即 等 所 者 地 着 过 去 来 做 用 拿 叫 算 呗 钱 发 领 交 办 能领 能拿 能补 能发
    能办 可领 每 每个 某
    a an the and or but of in on at to for from by with about as into is are was were be been being am do
    does did done can could may might must shall should will would have has had i you he she it we they me
    him her us them my your his its our their this that these those there here what which who whom whose
    when where why how much many long often if then than so not no any some all each every more most other
    please tell explain describe say know get take need per s t ll re ve doe don doesn now currently
    today still also just happen happened before after while during want like go make us there yes
    """.split()  # noqa: SIM905 - a list of words reads better in lines than in quotes
)

# Everyday and official words for one thing. Each line is one thing.
_SAME = tuple(
    frozenset(line.split())
    for line in """
    最大 最高 最多 上限 封顶 不超过 不得超过 限额 额度 maximum limit
    最小 最低 最少 下限 不少于 不低于 minimum
    补贴 补助 资助 津贴 subsidy grant
    公司 企业 单位 company firm
    员工 职工 雇员 人员 employee staff
    招人 招聘 招 招用 聘用 录用 吸纳
    应届生 大学生 毕业生
    年轻人 青年
    孩子 小孩 子女
    上学 读书 入学 就读
    买房 购房
    租 租房 租赁 租金 场租
    办公室 场地 场所
    饭店 餐馆 餐饮
    酒店 旅馆 住宿
    出差 差旅
    货车 货运 道路货物运输
    茶叶 茶产业
    文件 附件 file attachment
    报错 错误 error
    太大 过大 超过
    审批 许可 批准
    流程 程序
    驳回 退回 不予
    申诉 复核 复议
    电话 手机
    网上 线上 在线
    工资 薪资 薪酬 薪水 salary wage
    离职 辞职
    放假 休假 请假
    年假 年休假
    社保 社会保险
    医保 医疗保险
    个税 个人所得税
    高企 高新技术企业
    期限 时限 有效期
    年报 年度报告
    换 更换 变更
    注册 登记 设立 开办
    单据 票据 凭证
    处罚 罚款
    坏 故障 损坏
    lose lost
    buy purchase
    park parking
    地址 住所
    register registered registration
    startup start-up
    """.strip().splitlines()
)


class Wording:
    """Reads the words of a text. Spellings of one text fold together: width, case, traditional characters."""

    @cached_property
    def _simplified(self) -> Any:
        from opencc import OpenCC

        return OpenCC("t2s")

    def fold(self, text: str) -> str:
        folded = unicodedata.normalize("NFKC", text).casefold()
        return str(self._simplified.convert(folded)) if is_chinese(folded) else folded

    def words(self, folded: str) -> list[str]:
        """Words in order, without punctuation; English ones in the singular."""
        return [word for word in self._cut(folded) if _is_word(word)]

    def _cut(self, folded: str) -> list[str]:
        import rjieba

        return [singular(word.strip()) for word in rjieba.cut(folded)]

    def terms(self, folded: str) -> list[str]:
        """What is indexed: words, and every pair of neighbouring Chinese characters."""
        return self.words(folded) + [two for run in _HAN_RUN.findall(folded) for two in pairs(run)]

    def asked(self, folded: str) -> list[str]:
        """The words of a question that say what it is about, each once, in order.

        Single characters side by side are one word: the dictionary did not know it (年 + 假). So are words
        that have a name together in the other language (minimum wage).
        """
        words = with_phrases(self._cut(_ASKING.sub(" ", folded)))
        joined: list[str] = []
        was_single = False
        for word in words:
            is_single = len(word) == 1 and is_chinese(word) and word not in _STOP_WORDS
            if is_single and was_single:
                joined[-1] += word
            else:
                joined.append(word)
            was_single = is_single
        return list(dict.fromkeys(word for word in joined if _is_word(word) and word not in _STOP_WORDS))


def _is_word(word: str) -> bool:
    return any(character.isalnum() for character in word)


def is_chinese(text: str) -> bool:
    return _HAN_RUN.search(text) is not None


def pairs(word: str) -> list[str]:
    """Neighbouring characters of a Chinese word, two by two."""
    return [word[at : at + 2] for at in range(len(word) - 1)] if is_chinese(word) else []


def parts_of(word: str) -> list[str]:
    """What may be held of a word that is not held whole: its character pairs, or the words of a phrase."""
    if " " not in word:
        return pairs(word)
    return [part for part in word.split() if _is_word(part) and part not in _STOP_WORDS]


def same_as(word: str) -> Sequence[str]:
    """Other words for the same thing, sorted."""
    return sorted({other for group in _SAME if word in group for other in group} - {word})
