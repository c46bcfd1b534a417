"""Chinese words that lean on something unsaid: 它, 该政策, 那…呢, 第二种, 也一样吗, or a question of nothing.

Each finder takes a squeezed text in which names are blotted out, and gives where the unclear words stand.
"""

import re

from nodes.reading.antecedents import has_antecedent_zh
from nodes.reading.known import Finder, Known, Span


def _any_of(words: str) -> str:
    """A pattern for any of these words, the longest first."""
    return "(?:" + "|".join(sorted(re.findall(r"\S+", words), key=lambda word: -len(word))) + ")"


_COURTESY = _any_of(
    """请问 请问一下 麻烦问下 想问 我想问 想问一下 我想问一下 我想知道 我想了解 问一下 好 好的 嗯 哦 谢谢
    明白 明白了 知道了 对了 你好 您好 另外 不过 但 但是 可是 所以 然后 而且 如果 如果是 要是 假如 关于
    对于 至于 是不是 是否"""
)
_OPENING = rf"(?:{_COURTESY}[,。!、\s]*)*+"
# Nouns so general that 这, 该 or 此 before them points at something said.
_GENERAL_NOUN = _any_of(
    """公司 企业 单位 政策 规定 限制 补贴 补助 项目 办法 文件 产品 功能 指标 费用 标准 条款 条例 条件 要求
    材料 情况 情形 问题 方案 方法 方式 流程 程序 步骤 系统 平台 服务 业务 制度 通知 公告 资料 数据 数字 数
    金额 比例 期限 时间 日期 优惠 资格 证书 证件 许可 申请 部门 机构 地方 城市 人 员工 岗位 账号 配置 错误
    结果 答案 内容 说法 意思 规则 协议 合同 计划 活动 奖励 基金 贷款 税 税种 业绩 利润 收入 营收 价格"""
)

# --- 这, 该, 它 ---

# 这个月, 这几年, 这个系统, 在这里: here and now, nothing said before. 这里的第二条 is what was said.
_HERE_AND_NOW = re.compile(
    r"[这那]么(?:多|少|大|高|快|久|说来|一来|做)|这[个一]?(?:月|周|星期|礼拜|季度|季|年度|学期|阶段|时候"
    r"|段时间)"
    r"|这[几两三]?[个]?[年天月周]|这些年|这次|这边|刹那"
    r"|这[里儿](?!面|边|头|提|说|指|写|列|讲|用|的(?:第|意|说|数|金|内|那))"
    r"|这[个套]?(?:系统|助手|网站|机器人|平台|app|软件|工具)"
)
_NOT_POINTING = re.compile(
    r"因此|彼此|从此|如此|此外|此前|此后|此次|此刻|至此|就此|在此|特此|应该|活该|本该|不该|该不该|理该|合该"
    r"|该当"
)
_POINTING = re.compile(
    rf"该(?={_GENERAL_NOUN}|等)|此(?={_GENERAL_NOUN}|项|类|种|处|举|等)|[这那](?=一?{_GENERAL_NOUN})"
    r"|[这那]一?(?:个|些|种|项|类|条|款|家|样|份|笔|点|件|两|几|三|里|边|儿|部分)|上述|前述|前文|上文|文中"
    r"|(?:刚才|刚刚|方才|之前|先前|前面|上面|以上|[你您])(?:你|您|我|我们)?(?:刚才|刚|所)?"
    r"(?:说|提|讲|问|聊|介绍|回答|列|推荐)(?:到|过|及|出|的|了|我)+"
    r"|(?:刚才|刚刚|方才)(?:那个?|的)|上一?个(?:问题|回答|公司|政策|方案|话题)|同样的?(?=问题|情况|条件|公司)"
    r"|(?<![\d岁元万亿年月日人个%次级科士])以上(?=条件|材料|情形|情况|规定|要求|内容|政策|标准)"
)
_PRONOUN = re.compile(
    r"它们?|(?<![其吉])他们?(?![人国项杀用])|她们?"
    r"|(?<![尤极与何莫土及])其(?![他它实次间一二三余中])(?=[\u4e00-\u9fff])"
)


def _pointed_at(text: str, _: Known) -> Span | None:
    """这个…, 该…, 上述…, unless the thing stands in an earlier clause of this very text."""
    hidden = _blank_out(_blank_out(text, _HERE_AND_NOW), _NOT_POINTING)
    for found in _POINTING.finditer(hidden):
        if not has_antecedent_zh(hidden[: found.start()], found[0]):
            return _with_noun(text, found)
    return None


def _pronoun(text: str, _: Known) -> Span | None:
    """它, 他们, 其, unless a noun stands before it."""
    for found in _PRONOUN.finditer(text):
        before = text[: found.start()]
        if not has_antecedent_zh(before, found[0]) and len(_EMPTY_WORD.sub("", before)) < 3:
            return _with_noun(text, found)
    return None


def _blank_out(text: str, words: re.Pattern[str]) -> str:
    return words.sub(lambda found: "·" * len(found[0]), text)


_NOUN_AFTER = re.compile(rf"(?:的|一)?{_GENERAL_NOUN}")


def _with_noun(text: str, found: re.Match[str]) -> Span:
    noun = _NOUN_AFTER.match(text, found.end())
    return found.start(), noun.end() if noun else found.end()


# --- one of some things ---

_ONE_OF = re.compile(
    rf"^{_OPENING}(?:那|它)?(?P<words>其中|其余|其他的|另外?一?(?:个|家|种|项)|剩下的?"
    r"|最后一?(?:个(?!季|月|工作日|交易日)|种|项|条)"
    r"|第[一二三四五六七八九十\d]+(?:个|种|项|条|款|点|类|家|步)"
    r"(?=[的呢是有怎在可能需要和跟与?。!,]|$|方案|选项|问题|方法|方式|条件|政策|项目|情况|公司|办法|材料"
    r"|补贴)"
    r"|前者|后者|前两[者个种家]|两者|二者|三者|两家(?:公司)?(?=[的谁哪都有差之]|$)|上面(?=[?的这那两几都哪]|$)|以上(?=[?的几都哪])"
    r"|前面的?)"
)
_WHICH_OF = re.compile(
    r"^(?P<words>(?:那么?)?(?:哪一?[个家种项]|谁)的?(?:更|比较|最)?(?:高|好|大|多|低|少|快|强|便宜|划算"
    r"|合适)一?[些点]?)"
    r"[吗呢?。!]*$"
)


def _one_of(text: str, known: Known) -> Span | None:
    """其中…, 前者…, 第二种…: at the start there is nothing that they could be of."""
    found = _ONE_OF.match(text)
    return found.span("words") if found and not known.names_all else None


def _which_of(text: str, known: Known) -> Span | None:
    found = _WHICH_OF.match(text)
    return found.span("words") if found and not known.companies else None


# --- half a question ---

_GOING_ON = re.compile(
    rf"^(?:{_any_of('好 好的 嗯 哦 谢谢 明白 明白了 知道了 不过 但是 可是')}[,。!、\s]*)*+"
    r"(?P<words>那(?!么[多少大高快久]|[样些个种家里边儿年天时月次位条项])么?|然后|继续(?!教育|医学)"
    r"|再(?=说|讲|详细|具体|解释|来|举|给|介绍|问))"
)
_ALSO = re.compile(
    r"(?P<words>也(?:都|会|能)?是?(?:一样|是|这样|如此|可以|行|适用|需要|要|有|能|算|包括|受影响"
    r"|受限)[的吗么吧呢]*)[?。!]*$"
)
_CORRECTION = re.compile(
    r"^(?P<words>我(?:是说|的意思是|指的是|问的是|说的是)|不是[^,。?]{0,12},我?(?:是|说的是|问的是))"
)
_CLAUSE_END = re.compile(r"[,。;?!]")
_ASKING = re.compile(
    r"什么|怎|如何|哪|谁|多少|多久|多长|多大|多高|几|为何|是否|能否|可否|有没有|是不是|能不能|可不可以|要不要"
    r"|会不会|吗"
    r"|何时|还是"
)


def _going_on(text: str, known: Known) -> Span | None:
    """那…, 然后…: goes on from another text, unless it names all that it asks for."""
    found = _GOING_ON.match(text)
    asks_anew = known.names_all or (known.names_a_figure and not text.rstrip("?").endswith("呢"))
    return found.span("words") if found and not asks_anew else None


def _also(text: str, known: Known) -> Span | None:
    """也一样吗 without saying as what."""
    found = _ALSO.search(text)
    if found is None or known.names_all or len(text) > 20 or _CLAUSE_END.search(text[: found.start()]):
        return None
    return found.span("words")


def _correction(text: str, known: Known) -> Span | None:
    """我是说…, which corrects an unseen question."""
    found = _CORRECTION.match(text)
    return found.span("words") if found and not known.names_a_figure else None


def _bare_ne(text: str, known: Known) -> Span | None:
    """X呢 with no question in it, nor in what comes before it in this very text."""
    asked = text.rstrip("?。!")
    *earlier, words = _CLAUSE_END.split(asked)
    if not words.endswith("呢") or len(words) < 2 or known.names_a_figure or _ASKING.search(words):
        return None
    if any(_ASKING.search(clause) and not _is_empty(clause) for clause in earlier):
        return None
    return len(asked) - len(words), len(asked)


# --- a question of nothing: 需要什么材料, 为什么, 举个例子 ---

_EMPTY_WORDS = frozenset(
    re.findall(
        r"\S+",
        """为什么 为何 什么时候 什么时间 什么 什么人 怎么样 怎么办 怎么 怎样 如何 哪里 哪儿 哪些 哪个 哪家
    哪种 哪项 哪 谁 多少钱 多少 多少人 多久 多长时间 多长 多大 多高 几个 几天 几年 几次 几种 几项 几个人
    何时 何处 是不是 能不能 可不可以 要不要 有没有 会不会 需不需要 是否 能否 可否 请问 请 麻烦 帮我 我们
    我 你 您 想 知道 了解 一下 具体 详细 详细点 简单点 大概 一般 通常 目前 现在 最多 最少 最大 最高 最低
    最长 最晚 最早 上限 下限 应该 应 需要 需 要 得 还有 还 都 也 又 再 就 才 会 能 可以 可 有 是 在 到 去
    从 向 给 由 被 把 用 对 里 和 与 或 的 地 了 着 过 吗 呢 吧 啊 不 没有 没 其他 别的 更多 更 比较 非常
    很 好 高 低 大 小 长 快 贵 难 严 行 算 做 办 找 看 查 问 说 讲 弄 搞 交 收 发 领 填 写 走 享受 满足
    然后 申请 办理 申报 提交 领取 查询 操作 计算 报名 缴纳 收费 审批 审核 准备 联系 到账 生效 截止 开始
    结束 处理 解决 适用 使用 设置 修改 更新 材料 条件 要求 流程 手续 步骤 限制 标准 资料 文件 好处 坏处
    优点 缺点 优势 劣势 区别 差别 不同 影响 原因 后果 结果 费用 价格 金额 比例 时间 期限 日期 周期 方式
    方法 渠道 入口 地点 地址 对象 范围 依据 例子 例外 例 举 个 种 些 项 条 点 次 天 钱 部分 方面 情况 问题
    内容 信息 细节 解释 说明 介绍 展开 总结 概括 列出 举例 继续 接着 重新 再说一遍 换 分别 一共 总共 之间
    之后 以后 之前 超过 超出 逾期 到期 一点 一些 点儿 多 清楚 明白 懂 仔细 深入 简单 通俗 全面 完整 太
    类似 相似 相近 同类 差不多 比如 例如 譬如 说法 来源 出处 负责 批 批下来 下来 拿 拿到 到手 办下来
    网上 线上 线下 现场 当面 自己 本人 代办""",
    )
)
_EMPTY_WORD = re.compile(_any_of(" ".join(_EMPTY_WORDS)) + r"|[,。;?!、\s]")
_EMPTY_MARK = frozenset(",。;?!、 ")
_LONGEST_WORD = max(map(len, _EMPTY_WORDS))
_MOST_CHARACTERS = 40  # a longer text of such words alone does not occur
_REQUEST = re.compile(
    r"解释|说明|介绍|展开|总结|概括|列出|详细|举例|举个例|继续|接着|再说|更多|换|具体|多[说讲]|清楚|仔细|深入"
    r"|简单|通俗|类似|相似|同类|比如|例如|譬如|[不没](?:太|大|看|听|搞|弄|很|怎么)*(?:明白|懂|清楚)"
)


def _is_empty(text: str) -> bool:
    """Whether such words alone make up the text, however they are cut: 怎么办理 is 怎么 and 办理."""
    if len(text) > _MOST_CHARACTERS:
        return False
    reached = {0}
    for start in range(len(text)):
        if start in reached:
            ends = range(start + 1, min(start + _LONGEST_WORD, len(text)) + 1)
            reached |= {end for end in ends if text[start:end] in _EMPTY_WORDS}
            reached |= {start + 1} if text[start] in _EMPTY_MARK else set()
    return len(text) in reached


def asks_for_more_zh(text: str) -> bool:
    """Whether a text only asks to be told more or more plainly, and nothing of its own."""
    return _is_empty(text) and not _ASKING.search(text) and _REQUEST.search(text) is not None


def _nothing_named(text: str, known: Known) -> Span | None:
    if known.anything or not _is_empty(text):
        return None
    return (0, len(text.rstrip("?。! "))) if _ASKING.search(text) or _REQUEST.search(text) else None


_ALIKE = re.compile(
    rf"^{_OPENING}(?P<words>(?:那|还|也)*(?:有没有|有无|有|没有|能|推荐|介绍|看看)*(?:什么|哪些|一些|些|几个|更多)?"
    rf"(?:其他|其它|别的|另外的?|(?:类似|相似|相近|同类|差不多)(?:这样|那样)?)的?{_GENERAL_NOUN}?)"
    r"(?:[吗呢么吧没]|没有|可以(?:推荐|介绍)?)*[?。!]*$"
)


def _alike(text: str, known: Known) -> Span | None:
    """类似的, 其他的 without saying than what."""
    found = _ALIKE.match(text)
    return found.span("words") if found and not known.anything else None


# The first that finds something gives the mention, so what names the thing most plainly comes first.
FINDERS_ZH: tuple[Finder, ...] = (
    _pointed_at,
    _pronoun,
    _one_of,
    _correction,
    _going_on,
    _also,
    _bare_ne,
    _which_of,
    _alike,
    _nothing_named,
)
