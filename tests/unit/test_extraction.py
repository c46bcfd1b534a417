"""What may be quoted of a passage, what a question asks for, and which sentences go together."""

import pytest

from nodes.answer.asking import asked_of, common_run, names_document, names_heading, share_held, tokens_of
from nodes.answer.extraction import choose_quotes
from nodes.answer.prompts import PromptBudget, build_prompt
from nodes.answer.providers import ExtractiveProvider, is_unanswered
from nodes.answer.units import units_of
from nodes.contracts import Language, Passage


def passage(text: str, title: str = "补贴办法", start: int = 0, document: str = "d") -> Passage:
    return {
        "document_id": document,
        "version": "1",
        "title": title,
        "source": "s",
        "text": text,
        "start": start,
        "end": start + len(text),
        "passage_hash": "h",
        "score": 1.0,
        "valid_from": None,
        "valid_until": None,
    }


def answer(question: str, *passages: Passage, language: Language = "zh") -> str:
    made = build_prompt(question, language=language, passages=passages, window=None, budget=PromptBudget())
    return "".join(piece.text for piece in ExtractiveProvider().stream(made))


def texts(*passages: Passage) -> list[str]:
    return [unit.text for unit in units_of(passages)]


# What may be quoted


def test_a_heading_and_a_list_go_on_over_the_cut_between_two_passages() -> None:
    first = passage("# 办法\n\n## 条件\n应当符合下列条件：\n- 甲；")
    second = passage("- 乙。\n\n另有一句。", start=len(first["text"]) + 1)
    listed, sentence = units_of([second, first])
    assert [(item.text, item.passage) for item in listed.items] == [("甲；", 2), ("乙。", 1)]
    assert sentence.heading == "条件"


def test_passages_that_do_not_follow_each_other_share_no_heading() -> None:
    assert units_of([passage("## 条件\n甲。"), passage("乙。", start=400)])[1].heading == ""


def test_what_a_cut_inside_a_sentence_leaves_is_not_quoted() -> None:
    assert texts(passage("甲为1万元，"), passage("，乙。丙。", start=900)) == ["丙。"]


def test_a_quotation_that_a_line_opens_is_not_the_documents_own_word() -> None:
    text = "以下是诈骗短信原文：\n\n> 您的补贴88000元已核准。\n\n> 请缴纳保证金。\n\n收到后不要转账。"
    assert texts(passage(text)) == ["以下是诈骗短信原文：", "收到后不要转账。"]
    assert "88000" not in answer("补贴多少钱？", passage(text))
    assert texts(passage("> 您的补贴88000元已核准。", start=500)) == []


def test_a_block_quotation_as_a_note_is_quoted() -> None:
    assert texts(passage("## 说明\n> 本表不含税。")) == ["本表不含税。"]


def test_rows_of_a_table_whose_head_was_cut_off_are_not_read_out() -> None:
    rows = "| 净利润 | 万元 | 90 |\n| 毛利率 | % | 31 |"
    assert texts(passage(rows, start=700)) == []
    assert texts(passage(f"| 指标 | 单位 | 2023年 |\n|---|---|---|\n{rows}", start=700)) == [
        "净利润：2023年 90万元。",
        "毛利率：2023年 31%。",
    ]


@pytest.mark.parametrize("line", ["文号：云湖规〔2025〕1号", "Document number: Yunhu Talent (2025) No. 9"])
def test_labels_are_not_quoted(line: str) -> None:
    assert texts(passage(f"{line}\n\n正文。")) == ["正文。"]


# What is asked for


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("许可证办理要多久？", ["process"]),
        ("许可证多久能批下来", ["process"]),
        ("许可证有效期多久？", ["valid"]),
        ("许可证什么时候到期？", ["valid"]),
        ("贷款最长能贷几年？", ["term"]),
        ("补贴什么时候申报？", ["when"]),
        ("补贴几月份申请？", ["when"]),
        ("补贴多少钱？", ["money"]),
        ("怎么申请补贴？", ["how", "material", "when"]),
        ("要什么材料，多久办好？", ["material", "process"]),
        ("哪些公司不能申请？", ["exempt"]),
        ("有哪些补贴？", ["benefit"]),
        ("创业担保贷款", ["scope", "benefit", "how"]),
        ("办理收费吗？", ["fee"]),
        ("逾期会怎么样？", ["penalty"]),
        ("How long does a permit application take?", ["process"]),
        ("How long is a permit valid?", ["valid"]),
        ("How do I apply for the grant?", ["how", "material", "when"]),
        ("Who can apply?", ["condition"]),
    ],
)
def test_the_kinds_of_things_asked_for(question: str, kinds: list[str]) -> None:
    assert [step.aspect.name for step in asked_of(question).steps if step.aspect] == kinds


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("研发费用补助怎么申请？", ("研发", "费用", "补助")),
        ("How much is the R&D grant?", ("r&d",)),
        ("多少？", ()),
    ],
)
def test_the_subject_is_what_is_left(question: str, words: tuple[str, ...]) -> None:
    assert asked_of(question).words == words


@pytest.mark.parametrize(
    ("word", "text", "share"),
    [
        ("年报", "报送年度报告", 0.9),
        ("货运", "道路货物运输", 0.8),
        ("register", "a company is registered", 0.8),
        ("企业", "个人", 0.0),
        ("loan", "the loans", 1.0),
        ("expense", "it expires", 0.0),
    ],
)
def test_a_word_is_held_in_other_forms(word: str, text: str, share: float) -> None:
    assert share_held(word, text, tokens_of(text)) == share


def test_a_run_of_words_and_the_name_of_a_section() -> None:
    assert common_run("吸纳就业补贴多少", "一次性吸纳就业补贴办法") == 6
    assert common_run("", "办法") == 0
    assert names_heading("孵化基地入驻条件", "入驻条件", "孵化基地规定")
    assert not names_heading("简易注销多久", "不予简易注销的处理", "简易注销指南")
    assert names_heading("What are the conditions?", "Conditions", "Loan")
    assert not names_heading("What if I do not file?", "What to file", "Data")
    assert not names_heading("rent support", "Support", "Rent support")
    assert not names_heading("How long is category B valid?", "Categories", "Permits")


# What is chosen

GUIDE = """# 许可证办理指南

## 适用范围
小店可以申请许可证。酒吧不适用本许可。

## 办理流程
申请人登录门户提交申请。

## 申请材料
申请人提交申请书和营业执照。

## 办理时限
窗口自受理之日起8个工作日内作出决定。

## 有效期
许可证有效期为5年。

## 法律责任
未经许可营业的，处1万元罚款。
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("许可证办理要多久？", "窗口自受理之日起8个工作日内作出决定[C1]。"),
        ("许可证有效期多久？", "许可证有效期为5年[C1]。"),
        ("怎么办许可证？", "申请人登录门户提交申请[C1]。申请人提交申请书和营业执照[C1]。"),
        ("没有许可证会怎么样？", "未经许可营业的，处1万元罚款[C1]。"),
        ("哪些店不能办许可证？", "酒吧不适用本许可[C1]。"),
    ],
)
def test_each_kind_has_its_sentences(question: str, said: str) -> None:
    assert answer(question, passage(GUIDE, "许可证办理指南")) == said


def test_a_line_that_announces_brings_what_it_announces_or_is_left_out() -> None:
    text = "## 优惠\n主要税收优惠如下。小企业减按50%缴纳房产税。"
    assert answer("有什么税收优惠？", passage(text, "税收优惠")).endswith("小企业减按50%缴纳房产税[C1]。")
    assert is_unanswered(answer("有什么税收优惠？", passage("主要税收优惠如下：", "税收优惠")))


def test_a_list_without_an_opening_line_stays_a_list() -> None:
    text = "想了解创业，可以先看本一览。\n\n## 资金\n- 创业贷款：最高30万元。\n- 创业补贴：每户8000元。"
    assert answer("有哪些创业支持？", passage(text, "创业支持一览")) == (
        "- 创业贷款：最高30万元[C1]。\n- 创业补贴：每户8000元[C1]。"
    )
    assert answer("创业贷款多少钱？", passage(text, "创业支持一览")) == "创业贷款：最高30万元[C1]。"


def test_the_document_whose_title_is_asked_for_wins_over_one_that_mentions_it() -> None:
    other = passage(
        "## 材料\n提交带动就业补贴申请表。\n\n## 关系\n已领吸纳就业补贴的除外。", "带动就业补贴办法", 0, "a"
    )
    right = passage("## 材料\n上传花名册。", "吸纳就业补贴办法", 0, "b")
    assert answer("吸纳就业补贴要什么材料？", other, right) == "上传花名册[C2]。"


def test_a_figure_of_the_right_kind_about_something_else_is_no_answer() -> None:
    other = passage("## 适用\n出差人员的住宿自理。\n\n## 标准\n评为甲级的，奖励12万元。", "民宿奖励办法")
    assert is_unanswered(answer("出差住宿标准是多少元？", other))
    assert "12万元" in answer("民宿奖励标准是多少元？", other)


def test_a_question_of_several_lines_is_answered_line_by_line() -> None:
    first, second = passage("甲证收费10元。", "甲证", 0, "a"), passage("乙证有效期为5年。", "乙证", 0, "b")
    assert (
        answer("甲证收费多少钱？\n乙证有效期多久？", first, second)
        == "甲证收费10元[C1]。乙证有效期为5年[C2]。"
    )


@pytest.mark.parametrize("question", ["", "？", "的", "how", "\n", "有什么"])
def test_no_question_breaks_it(question: str) -> None:
    assert len(choose_quotes(question, [passage(GUIDE), passage("一句：")], "zh")) <= 4
    assert choose_quotes(question, [], "en") == []


# Documents in other forms: questions and answers, lists under a heading, tables, no headings at all


FAQ = "问：退款几天到账？\n答：验收后3天内到账。\n\n问：怎么申请退货？\n答：在订单里点击申请售后，等待审核。"


def test_a_question_that_a_document_asks_itself_is_the_heading_of_its_answer() -> None:
    first, second = units_of([passage(FAQ)])
    assert (first.text, first.heading) == ("验收后3天内到账。", "退款几天到账？")
    assert (second.text, second.heading) == ("在订单里点击申请售后，等待审核。", "怎么申请退货？")
    assert answer("怎么申请退货？", passage(FAQ, title="售后问题")) == "在订单里点击申请售后，等待审核[C1]。"


def test_a_line_in_heavy_brackets_is_a_heading_and_the_title_is_none() -> None:
    text = "# 补贴办法\n\n总述一句。\n\n【准入要求】\n应当完成培训。"
    assert [unit.heading for unit in units_of([passage(text)])] == ["", "【准入要求】"]


PAPERS = (
    "一、条件\n1. 有住所。\n\n二、申请材料\n1. 登记申请书；\n2. 公司章程；\n3. 股东证明。\n\n三、时限\n三日。"
)


def test_a_list_under_a_heading_of_the_kind_is_quoted_whole() -> None:
    told = answer("公司注册需要什么材料？", passage(PAPERS, title="公司设立登记指南"))
    assert told == "- 登记申请书[C1]；\n- 公司章程[C1]；\n- 股东证明[C1]。"


TABLE = "## 保修期限\n| 部件 | 保修期 |\n|---|---|\n| 整机 | 2年 |\n| 压缩机 | 5年 |\n| 滤网 | 3个月 |"


def test_the_row_that_a_question_names_is_quoted_alone() -> None:
    assert (
        answer("烘干机压缩机保修期多久？", passage(TABLE, title="烘干机手册")) == "压缩机：保修期 5年[C1]。"
    )


def test_the_row_of_an_english_name_is_quoted_alone() -> None:
    limits = (
        "## Limits\n| Grade | Monthly limit |\n|---|---|\n| Analyst | 1,500 EUR |\n| Manager | 4,000 EUR |"
    )
    told = answer(
        "What is the monthly limit for a manager?", passage(limits, title="Card policy"), language="en"
    )
    assert told == "Manager: Monthly limit 4,000 EUR [C1]."


def test_a_reason_is_looked_for_where_one_is_asked_for() -> None:
    text = "废液分类收集时，桶内不超过四分之三。\n\n混装会起反应，这是要求废液分类收集的原因。"
    assert "会起反应" in answer("废液为什么要分类收集？", passage(text, title="实验室须知")).split("[C")[0]


def test_a_reason_may_be_told_without_words_that_say_so() -> None:
    text = "该站位于山区，地势狭窄。\n\n天后庙主殿在一场大火中烧毁。"
    assert "大火" in answer("天后庙主殿为什么烧毁？", passage(text, title=""))


def test_a_penalty_is_no_price() -> None:
    text = "A permit costs 84 pounds a year.\n\nParking without a permit costs a penalty of 60 pounds."
    told = answer("How much is a parking permit?", passage(text, title="Parking permits"), language="en")
    assert told == "A permit costs 84 pounds a year [C1]."
    told = answer(
        "逾期不变更会罚多少钱？", passage("逾期不变更的，处1万元罚款。\n\n变更收费100元。", title="变更")
    )
    assert "1万元" in told


def test_what_is_left_out_is_found_in_other_words() -> None:
    text = "## 保修条件\n应当由工程师安装。\n\n## 不在保修范围的情形\n- 自行拆改的；\n- 因水浸损坏的。"
    told = answer("烘干机哪些情况不保修？", passage(text, title="烘干机手册"))
    assert told == "- 自行拆改的[C1]；\n- 因水浸损坏的[C1]。"


def test_a_term_of_a_penalty_is_no_time_that_something_takes() -> None:
    text = "We decide within five days.\n\nYou can appeal against a penalty within 28 days."
    told = answer("How long does a decision on a permit take?", passage(text, title="Permits"), language="en")
    assert told == "We decide within five days [C1]."


def test_what_opens_a_further_question_is_no_subject() -> None:
    text = passage("## 标准\n一次性创业补贴的标准为每户8000元。", title="创业补贴办法")
    assert answer("另外创业补贴有哪些？", text) == "一次性创业补贴的标准为每户8000元[C1]。"


def test_a_document_without_the_main_word_of_the_subject_is_about_something_else() -> None:
    text = "## 怎么办理\n申请人在窗口工作时间提交许可申请书。" + "\n\n许可在工作时间内办理。" * 8
    guide = passage(text, title="食品经营许可办理指南")
    assert "申请书" in answer("食品经营许可怎么办理", guide)
    assert "申请书" not in answer("外国人工作许可怎么办理", guide)


def test_words_of_asking_are_no_subject_and_two_clauses_ask_for_two_kinds() -> None:
    text = "个人贷款的最高额度为30万元。\n\n个人贷款期限最长3年。"
    loan = passage(text, title="创业担保贷款办法")
    assert asked_of("创业补贴能领多少").words == ("创业",)
    assert asked_of("租房补贴一个月多少钱").words == ("租房",)
    told = answer("创业担保贷款最高能贷多少，期限多久", loan)
    assert "30万元" in told
    assert "3年" in told


def test_a_sentence_without_a_word_of_the_subject_needs_a_title_that_says_most_of_it() -> None:
    voucher = passage("# 失业人员培训券\n\n企业应当保存使用凭证不少于5年，以备抽查。\n", "失业人员培训券")
    assert "5年" not in answer("失业保险金能领多久？", voucher)
    insured = passage("# 失业保险金申领\n\n企业应当保存使用凭证不少于5年，以备抽查。\n", "失业保险金申领")
    assert "不少于5年" in answer("失业保险金凭证要保存多久？", insured)


def test_days_are_asked_for_and_years_do_not_tell_them() -> None:
    leave = passage("# 年休假规定\n\n员工入职满1年后享受年休假。\n满10年的，年休假10天。\n", "年休假规定")
    told = answer("入职后有多少天年休假？", leave)
    assert "10天" in told
    assert "享受年休假" not in told


# Across languages


CLOSING = "## 申请材料\n企业提交注销登记申请书。\n\n## 办理时限\n登记局在1个工作日内作出决定。"
FAIR = "The company files its claim within 90 days after the fair closes."


def test_what_was_found_first_is_quoted_though_other_passages_speak_the_questions_language() -> None:
    passages = (passage(CLOSING, "企业注销登记指南"), passage(FAIR, "Trade fairs", document="e"))
    told = answer("What documents do I need to close my company?", *passages, language="en")
    assert "注销登记申请书" in told
    assert "fair" not in told


def test_what_was_found_first_in_the_questions_language_is_quoted_alone() -> None:
    passages = (passage(FAIR, "Trade fairs", document="e"), passage(CLOSING, "企业注销登记指南"))
    told = answer("When is the claim filed after the fair closes?", *passages, language="en")
    assert "90 days" in told
    assert "注销" not in told


def test_the_words_of_the_other_language_tell_the_sentences_apart() -> None:
    told = answer(
        "How long does it take to deregister a company?", passage(CLOSING, "企业注销登记指南"), language="en"
    )
    assert "1个工作日" in told
    assert "申请书" not in told


def test_a_word_is_held_by_its_name_in_the_other_language() -> None:
    text = "企业缴纳社会保险"
    assert share_held("social insurance", text, tokens_of(text)) == 0.85
    assert share_held("社会保险", "pays social insurance", tokens_of("pays social insurance")) == 0.85
    assert share_held("社会保险", "pays insurance", tokens_of("pays insurance")) == 0.0


def test_sentences_are_parted_as_their_own_language_parts_them() -> None:
    documents = passage(
        "## Documents\nThe applicant files a form. A lease is filed as proof.", "Company registration"
    )
    assert " [C1]. A lease" in answer("公司注册要什么材料？", documents)
    materials = passage("## 申请材料\n企业提交注销登记申请书。企业另行提交清算材料。", "企业注销登记指南")
    assert "[C1]。企业另行" in answer("What documents are needed to deregister?", materials, language="en")


# Who holds an office


REPORT = "截至去年底，青禾公司员工人数为310人。青禾公司的监事会由三人组成。"


@pytest.mark.parametrize(
    "question", ["青禾公司的法定代表人是谁", "谁是青禾公司的总经理？", "青禾公司董事长叫什么名字"]
)
def test_who_holds_an_office_is_not_answered_by_what_else_is_known(question: str) -> None:
    assert is_unanswered(answer(question, passage(REPORT, "青禾公司年度报告")))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("青禾公司的法定代表人是谁", "青禾公司法定代表人为李小满。"),
        ("谁是青禾公司的总经理？", "总经理：周一凡。"),
    ],
)
def test_who_holds_an_office_is_answered_by_the_sentence_that_names_them(question: str, said: str) -> None:
    assert said.rstrip("。") in answer(question, passage(f"{REPORT}{said}", "青禾公司年度报告"))


def test_who_may_apply_is_no_question_about_an_office() -> None:
    text = "## 申请条件\n在本市登记满一年的企业可以申请。"
    assert "登记满一年" in answer("谁可以申请补贴", passage(text))


# Where to turn


DESK = "当日办不完的，3个工作日内电话回访。窗口热线每天有人值守。"


@pytest.mark.parametrize("question", ["投诉电话是多少？", "窗口的热线号码是多少", "咨询邮箱是什么"])
def test_a_number_to_call_is_not_answered_by_what_else_is_said_of_calls(question: str) -> None:
    assert is_unanswered(answer(question, passage(DESK, "窗口投诉与咨询规程")))


def test_nor_across_languages() -> None:
    question = "What is the phone number of the complaints desk?"
    assert is_unanswered(answer(question, passage(DESK, "窗口投诉与咨询规程"), language="en"))


@pytest.mark.parametrize(
    "said",
    ["投诉请拨0571-87654321。", "投诉热线12345。", "投诉电话：13800138000。", "投诉写信到help@example.com。"],
)
def test_a_number_to_call_is_answered_by_the_sentence_that_has_it(said: str) -> None:
    assert said.rstrip("。") in answer("投诉电话是多少？", passage(f"{DESK}{said}", "窗口投诉与咨询规程"))


def test_a_call_back_may_still_be_asked_about() -> None:
    assert "3个工作日" in answer("电话回访要几天？", passage(DESK, "窗口投诉与咨询规程"))


# Which document a question is about


def test_a_title_names_what_is_asked_apart_from_words_of_any_document() -> None:
    assert names_document("停泊费减免多少", "渔船停泊费减免办法")
    assert not names_document("游艇补贴多少", "渔船停泊费补贴办法")
    assert not names_document("政策有哪些", "停泊政策")
