"""What a new user reads without a model: questions about the sample, and what the quoted answer says.

Every question goes through retrieval, the extractive provider, the grounding guard and the output screen, as
it does in the assistant.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from nodes.answer.prompts import PromptBudget, build_prompt
from nodes.answer.providers import ExtractiveProvider
from nodes.answer.release import Released, release
from nodes.contracts import Caller, Language
from nodes.reading.safety import screen
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.exits import PermittedRetriever, open_retriever
from nodes.retrieve.sample import ensure_sample

DAY = "2026-12-01"


@dataclass(frozen=True)
class Asked:
    """A question, words that its answer holds, words that it must not, and words of its first line."""

    question: str
    holds: tuple[str, ...]
    never: tuple[str, ...] = ()
    leads: str = ""


def zh(question: str, *holds: str, never: tuple[str, ...] = (), leads: str = "") -> Asked:
    return Asked(question, holds, never, leads)


en = zh

CHINESE = [
    # What there is
    zh("小微企业有什么税收优惠？", "减按50%", "12万元", never=("70%", "8万元")),
    zh("我想了解创业方面的支持", "创业担保贷款：个人最高30万元", "一次性创业补贴", "孵化基地租金减免"),
    zh("创业有哪些补贴？", "每户8000元", "每人2000元"),
    zh("创业担保贷款是怎么回事？", "30万元", never=("额度为20万元",)),
    zh("科技创新券能用来干什么？", "检验检测、仪器共享、技术查新和合作研发", leads="检验检测"),
    zh("食品经营许可证", "从事食品销售和餐饮服务的，应当取得食品经营许可"),
    zh("茶企业有什么补助？", "3万元", "2万元"),
    zh("外资企业在哪里可以办双语服务？", "双语专窗"),
    # How
    zh("怎么注销公司？", "简易注销登记申请书", "公告", never=("上市公司、分支机构和被列入",)),
    zh("研发费用补助怎么申请", "研发费用补助申请表", "4月1日至5月31日", never=("6月1日", "追回")),
    zh("怎么申请一次性创业补贴？", "云湖政务服务门户", "一次性创业补贴申请表", never=("5000元",)),
    zh("营业执照变更怎么办理？", "变更登记申请书", never=("罚款",)),
    zh("高企认定奖励怎么申请？", "奖励申请表", "9月1日至10月15日", never=("10月8日",)),
    zh("创业场租补贴怎么申请？", "租赁合同", "1日至20日", never=("追回",)),
    zh("怎样办理食品经营许可证？", "食品经营许可申请书", never=("迁移",)),
    zh("如何申请创业担保贷款？", "身份证明、营业执照、贷款申请表"),
    zh("青年人才租房补贴怎么领？", "申请人通过门户提交", "租房补贴申请表", never=("停发",)),
    zh("稳岗返还怎么领？", "免申即享", "6月1日至9月30日", never=("僵尸",)),
    zh("一次性扩岗补助需要自己申请吗？", "免申即享"),
    zh("信用修复怎么办？", "信用修复申请书", never=("撤销修复",)),
    zh("对不予资助的决定不服怎么申诉？", "复核", "15个工作日"),
    zh("收到诈骗短信怎么办？", "不要转账", never=("88000", "99万")),
    zh("使用科技创新券的流程是什么？", "在门户领取科技创新券", "在线签订合同"),
    zh("小微企业怎么享受税费减免？", "自行申报即可享受"),
    # When
    zh("企业年报什么时候报", "1月1日至6月30日", never=("诈骗", "143万"), leads="6月30日"),
    zh("研发费用补助什么时候申报？", "4月1日至5月31日", never=("2031年",), leads="4月1日至5月31日"),
    zh("高新技术企业认定奖励申请时间", "9月1日至10月15日", leads="9月1日至10月15日"),
    zh("绿色化改造补助几月份申请？", "7月1日至8月15日", leads="7月1日至8月15日"),
    zh("专利资助什么时候可以申请？", "11月1日至11月30日", leads="11月1日"),
    zh("返乡创业支持什么时候截止？", "4月30日和10月31日", leads="10月31日"),
    zh("出口信用保险保费补助申报时间是什么时候？", "2月15日至3月31日", leads="2月15日"),
    zh("吸纳就业补贴政策什么时候到期？", "2028年12月31日", leads="2028年12月31日"),
    zh("技术改造贷款贴息每年什么时候申请？", "5月6日至6月20日", leads="5月6日"),
    zh("现行最低工资标准从什么时候开始执行？", "2025年10月1日", leads="2025年10月1日"),
    zh("人才子女入学申请什么时候开始？", "4月10日至4月30日", leads="4月10日"),
    # How long it takes, how long it is valid
    zh("食品经营许可证办理要多久？", "8个工作日", never=("有效期为5年",), leads="8个工作日"),
    zh("食品经营许可证有效期多久？", "5年", leads="有效期为5年"),
    zh("食品经营许可证多久到期？", "5年", leads="有效期为5年"),
    zh("道路货物运输许可多久能批下来？", "5个工作日", leads="5个工作日"),
    zh("户外广告许可证有效期是几年？", "3年", leads="有效期为3年"),
    zh("简易注销要多长时间？", "1个工作日", leads="工作日"),
    zh("创业担保贷款审核需要几天？", "5个工作日", leads="5个工作日"),
    zh("个人创业担保贷款最长能贷几年？", "3年", leads="最长3年"),
    zh("信用修复多久能办好？", "10个工作日", leads="10个工作日"),
    zh("人才认定要多少个工作日？", "30个工作日", leads="30个工作日"),
    zh("租房补贴能领多长时间？", "36个月", never=("24个月",), leads="36个月"),
    zh("申报草稿能保存多久？", "30日", leads="30日"),
    # How much
    zh("一次性创业补贴多少钱？", "8000元", never=("5000元",), leads="8000元"),
    zh("残疾人创业补贴有多少？", "12000元"),
    zh("个人创业担保贷款最高能贷多少？", "30万元", never=("额度为20万元",), leads="30万元"),
    zh("硕士租房补贴每个月多少？", "1200元", leads="1200元"),
    zh("现在最低工资是多少？", "2310元", never=("2080元", "1860元"), leads="2310元"),
    zh("小时工最低工资多少钱？", "22.5元", leads="22.5元"),
    zh("招一个应届生补贴多少钱？", "毕业"),
    zh("高级工证书补贴多少？", "2000元", leads="2000元"),
    zh("博士人才租房补贴标准", "2000元", leads="2000元"),
    zh("政府采购履约保证金比例是多少？", "5%", leads="不超过合同金额的5%"),
    zh("残疾人就业比例是多少？", "1.5%", leads="1.5%"),
    zh("门户附件最大多大？", "20MB", leads="20MB"),
    zh("超比例安排残疾人就业奖励多少？", "18000元", leads="18000元"),
    zh("逾期不变更营业执照会罚多少钱？", "1万元以上5万元以下", leads="罚款"),
    zh("办理食品经营许可收费吗？", "不收取费用"),
    zh("甲级民宿奖励多少钱？", "12万元", leads="12万元"),
    zh("创业补贴能领多少", "8000元"),
    zh("租房补贴一个月多少钱", "每月租房补贴2000元", never=("每季度",), leads="2000元"),
    zh("创业担保贷款最高能贷多少，期限多久", "30万元", "最长3年"),
    # Who and on what conditions
    zh("谁可以申请一次性吸纳就业补贴？", "各类用人单位", leads="用人单位"),
    zh("申请创业场租补贴要什么条件？", "3年内", "不少于6个月", leads="登记注册之日起3年内"),
    zh("什么样的企业算小型微利企业？", "300万元", "300人", "5000万元", leads="300万元"),
    zh("开餐馆需要办什么证？", "食品经营许可"),
    zh("哪些公司不能简易注销？", "上市公司", leads="上市公司"),
    zh("青年人才租房补贴有年龄限制吗？", "40周岁", never=("35周岁",)),
    zh("哪些货车不用办道路运输许可？", "4.5吨及以下", leads="4.5吨及以下"),
    zh("多大面积的餐馆要做消防检查？", "300平方米", leads="300平方米"),
    zh("深绿企业绿色贷款贴息多少", "1%", leads="1%"),
    # What to file
    zh("办营业执照变更需要什么材料？", "变更登记申请书、股东会决议", leads="变更登记申请书"),
    zh("消防安全检查需要哪些材料？", "消防安全检查申报表", leads="消防安全检查申报表"),
    zh("吸纳就业补贴要提交什么材料？", "招用人员花名册", never=("工资发放", "创业带动")),
    zh("申请购房补贴带什么材料？", "人才认定证书", leads="购房补贴申请表"),
    # What follows
    zh("没按时报年报会怎么样？", "经营异常名录", leads="经营异常名录"),
    zh("上传文件太大会提示什么？", "ERR_FILE_TOO_LARGE"),
    zh("账户密码输错几次会锁定？", "6次", leads="6次"),
    # In other words
    zh("电梯多久检验一次？", "电梯每年检验或者检测一次"),
    zh("子女入学有什么政策？", "公办学校", never=("体检",)),
    zh("孵化基地入驻条件", "不满24个月", leads="不满24个月"),
    zh("企业碳账户分几个等级？", "四个等级"),
    zh("行政检查一年最多几次？", "不超过2次", never=("2人",)),
    zh("货运许可要什么材料，多久办好？", "许可申请表", "5个工作日"),
    zh("创新券可以转让吗？", "不得转让"),
    zh("门户支持哪些文件格式？", "PDF、OFD", leads="PDF"),
    zh("双语专窗几点开门？", "9:00至17:00", leads="9:00"),
    zh("我想开一家餐馆，需要办哪些手续？", "食品经营许可"),
    zh("营业执照换地址要什么材料", "新住所使用证明"),
    zh("民宿申请时间", "3月和9月", leads="3月和9月"),
    zh("我能申请一次性创业补贴吗？", "正常经营满6个月"),
    zh("社保补贴申请时间", "15日前"),
    zh("特种设备没登记会罚多少", "3万元以上30万元以下"),
    zh("返乡创业能补助多少钱？", "25%", "50万元"),
]
ENGLISH = [
    en("How do I apply for the R&D grant?", "application form", "1 April to 31 May", leads="1 April"),
    en("How much is the R&D grant?", "6 percent", "3.5 million yuan", leads="6 percent"),
    en("When can I apply for the R&D grant?", "1 April to 31 May", leads="1 April"),
    en(
        "How long does a work permit application take?",
        "5 working days",
        "10 working days",
        leads="working days",
    ),
    en("How long is a category B work permit valid?", "up to 2 years", leads="2 years"),
    en("What documents are needed for a work permit?", "labour contract", leads="labour contract"),
    en("How do I set up a company?", "application form", never=("reward",)),
    en("Is company registration free of charge?", "free of charge"),
    en(
        "How long does it take to register a company?",
        "3 working days",
        never=("12 months",),
        leads="3 working",
    ),
    en("Who can apply for the start-up loan?", "aged 18 to 64", leads="aged 18"),
    en("How much can I borrow with the start-up loan?", "300,000 yuan", leads="300,000"),
    en("What support is there for regional headquarters?", "45 percent"),
    en("How do I claim the trade fair subsidy?", "within 90 days", "at least 10 days before"),
    en("When do I have to renew my work permit?", "30 days before", leads="30 days before"),
    en("What happens if my file is too large?", "ERR_FILE_TOO_LARGE"),
    en("How long are drafts kept?", "30 days", leads="30 days"),
    en("When is an outbound data filing needed?", "10,000 persons", leads="10,000 persons"),
    en("How long is a data filing valid?", "2 years", leads="2 years"),
    en("How do I renew a work permit?", "30 days before", never=("health check",)),
    en("How do I report a change of employer?", "within 10 working days", never=("passport",)),
    en("What are the conditions for the start-up loan?", "aged 18 to 64", never=("4 million",)),
    en("opening hours of the bilingual desk", "9:00 to 17:00"),
    en("What is the deadline for cross-border e-commerce support?", "28 February", leads="28 February"),
]
ROWS: list[tuple[Asked, Language]] = [
    *((row, "zh") for row in CHINESE),
    *((row, "en") for row in ENGLISH),
]


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PermittedRetriever]:
    with KnowledgeStore(tmp_path_factory.mktemp("home") / "knowledge.db") as store:
        ensure_sample(store)
        yield open_retriever(store)


def answered(question: str, language: Language, retriever: PermittedRetriever) -> Released:
    found = retriever.retrieve(question, caller=Caller(), on_date=DAY)
    prompt = build_prompt(
        question, language=language, passages=found["passages"], window=None, budget=PromptBudget()
    )
    return release(
        ExtractiveProvider(),
        prompt,
        emit=lambda _: None,
        reset=lambda: None,
        stopped=lambda: False,
        screen=screen,
    )


@pytest.mark.parametrize(("row", "language"), ROWS, ids=[row.question for row, _ in ROWS])
def test_the_answer_says_what_was_asked(
    row: Asked, language: Language, retriever: PermittedRetriever
) -> None:
    told = answered(row.question, language, retriever)

    assert not told.refusals
    assert told.is_answer
    assert [words for words in row.holds if words not in told.text] == [], told.text
    assert [words for words in row.never if words in told.text] == [], told.text
    assert row.leads in told.text.splitlines()[0].split("[C")[0], told.text


@pytest.mark.parametrize("question", ["外国人工作许可怎么办理", "宠物饲养许可怎么办理"])
def test_papers_about_another_licence_are_not_quoted(question: str, retriever: PermittedRetriever) -> None:
    told = answered(question, "zh", retriever)
    assert [words for words in ("食品", "广告", "货物") if words in told.text] == [], told.text
