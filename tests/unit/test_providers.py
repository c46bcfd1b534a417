"""Which provider a setting names, what a script file means, and what the extractive provider quotes."""

import json
import sys
from pathlib import Path

import pytest

from nodes.answer.extraction import choose_quotes
from nodes.answer.prompts import PromptBudget, build_prompt
from nodes.answer.providers import (
    ChatModelProvider,
    ExtractiveProvider,
    Reply,
    ScriptedProvider,
    is_unanswered,
    load_provider,
)
from nodes.contracts import Language, Passage, Prompt

HIRING = """---
id: hiring
title: 吸纳就业补贴办法
---
# 吸纳就业补贴办法

文号：云湖规〔2025〕30号

## 补贴对象
招用登记失业3个月以上人员的用人单位可以申请，劳务派遣单位除外。

## 补贴标准
每招用1人补贴1800元，单个单位每年最高36万元。招用残疾人的，补贴标准为每人2600元。但已享受其他补贴的除外。

## 申请条件
用人单位应当符合下列条件：
- 签订1年以上劳动合同；
- 连续缴纳社会保险满3个月。

## 办理流程
用人单位登录政务服务门户提交申请。窗口在7个工作日内完成审核。

## 有效期
本办法自2026年1月1日起施行，有效期至2028年12月31日。
"""
GRANT = """# R&D grant

## Grant rates
Companies receive 6 percent of last year's R&D expense, up to 3.5 million yuan. This does not apply to banks.

## Application
Applications are open from 1 April to 31 May each year. The company files a form and a list of projects.
"""
FIGURES = """## 主要数据
| 指标 | 单位 | 2022年 | 2023年 |
|---|---|---|---|
| 营业收入 | 万元 | 1100 | 1320 |
| 毛利率 | % | 30 | 31.5 |
"""


def passage(text: str, title: str = "", start: int = 0) -> Passage:
    return {
        "document_id": title,
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


HIRING_PASSAGE, GRANT_PASSAGE = passage(HIRING, "吸纳就业补贴办法"), passage(GRANT, "R&D grant")


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("吸纳就业补贴每人多少钱？", "1800元"),
        ("招用残疾人补贴多少？", "2600元"),
        ("吸纳就业补贴什么时候到期？", "2028年12月31日"),
        ("审核要几天？", "7个工作日"),
        ("怎么申请吸纳就业补贴？", "政务服务门户"),
        ("谁可以申请吸纳就业补贴？", "劳务派遣单位除外"),
    ],
)
def test_the_sentence_that_answers_is_quoted_with_its_label(question: str, wanted: str) -> None:
    said = answer(question, HIRING_PASSAGE)
    assert wanted in said
    assert "[C1]" in said
    assert "文号" not in said
    assert "#" not in said
    assert "title:" not in said


def test_a_list_comes_with_the_line_that_opens_it() -> None:
    said = answer("吸纳就业补贴有什么条件？", HIRING_PASSAGE)
    assert "用人单位应当符合下列条件：\n- 签订1年以上劳动合同[C1]；\n- 连续缴纳社会保险满3个月[C1]。" in said


def test_a_limiting_sentence_comes_along() -> None:
    assert "但已享受其他补贴的除外" in answer("招用残疾人补贴多少？", HIRING_PASSAGE)
    assert "This does not apply to banks" in answer(
        "How much is the R&D grant?", GRANT_PASSAGE, language="en"
    )


def test_a_sentence_that_leans_on_the_one_before_brings_it() -> None:
    text = "甲类项目补贴10万元。该金额每年核定一次。"
    assert answer("金额多久核定一次？", passage(text)) == "甲类项目补贴10万元[C1]。该金额每年核定一次[C1]。"


def test_english_is_quoted_for_an_english_question() -> None:
    said = answer("How much is the R&D grant?", HIRING_PASSAGE, GRANT_PASSAGE, language="en")
    assert said.startswith(
        "Companies receive 6 percent of last year's R&D expense, up to 3.5 million yuan [C2]."
    )


def test_another_language_is_quoted_where_there_is_no_other() -> None:
    assert "1800元" in answer("How much is the hiring subsidy?", HIRING_PASSAGE, language="en")


def test_a_table_row_is_read_out_with_columns_and_unit() -> None:
    said = answer("2023年毛利率是多少？", passage(FIGURES, "年度报告"))
    assert said == "毛利率：2022年 30%；2023年 31.5%[C1]。"


def test_the_passage_that_is_about_the_question_wins_over_a_sentence_that_sounds_like_it() -> None:
    solar = passage("# 光伏补贴办法\n\n本办法有效期至2025年12月31日，到期后不再受理。", "光伏补贴办法")
    assert "2028年" in answer("吸纳就业补贴什么时候到期？", solar, HIRING_PASSAGE)
    forms = passage(
        "# 光伏补贴办法\n\n## 申请材料\n项目单位提交补贴申请表、并网验收意见等材料。", "光伏补贴办法"
    )
    hiring = passage(f"{HIRING}\n## 申请材料\n用人单位上传招用人员花名册。", "吸纳就业补贴办法")
    said = answer("吸纳就业补贴要提交什么材料？", forms, hiring)
    assert "花名册" in said
    assert "并网" not in said


@pytest.mark.parametrize("question", ["明天天气怎么样？", "谁是市长？", "？？"])
def test_what_the_passages_do_not_answer_is_said_to_be_so(question: str) -> None:
    assert is_unanswered(answer(question, HIRING_PASSAGE))


def test_no_passages_no_answer() -> None:
    assert is_unanswered(answer("补贴多少？"))
    assert is_unanswered(answer("How much?", language="en"))


def test_a_passage_torn_out_of_a_sentence_does_not_quote_the_torn_one() -> None:
    torn = passage("，补贴标准为9999元。补贴标准另行公布。", start=40)
    assert "9999" not in answer("补贴标准是多少？", torn)


def test_at_most_four_sentences() -> None:
    many = passage("".join(f"补贴项目{at}的补贴金额为{at}00元。" for at in range(1, 30)))
    assert len(choose_quotes("补贴金额多少元？", [many], "zh")) <= 4


def test_no_passage_breaks_it() -> None:
    for text in (
        "",
        "\n\n",
        "---\n---\n",
        "|",
        "||\n|-|\n",
        "# ",
        "- ",
        "：",
        "|a|b|\n|c|",
        "1.",
        "```",
        "\ufeff",
    ):
        answer("补贴多少？", passage(text))


# Settings


def test_without_a_model_the_extractive_provider_answers() -> None:
    for spec in (None, "", "extractive", " extractive "):
        assert isinstance(load_provider(spec), ExtractiveProvider)


def test_a_model_name_may_hold_a_colon() -> None:
    provider = load_provider("openai:qwen2.5:7b", base_url="http://127.0.0.1:1/v1")
    assert isinstance(provider, ChatModelProvider)
    assert provider.name == "qwen2.5:7b"


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    lines = ['"一。"', json.dumps({"text": "二。", "when": "条件"}), "", json.dumps({"error": "429"})]
    path.write_text("\n".join(lines), encoding="utf-8")
    provider = load_provider(f"scripted:{path}")
    assert isinstance(provider, ScriptedProvider)
    assert list(provider.replies) == [Reply("一。"), Reply("二。", when="条件"), Reply(error="429")]


def test_a_script_that_is_served_for_long_keeps_a_bounded_number_of_prompts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nodes.answer.providers.PROMPTS_KEPT", 3)
    provider = ScriptedProvider(["一。"])
    for number in range(5):
        list(provider.stream(Prompt(f"问题{number}", "zh", [], [])))
    assert [prompt.question for prompt in provider.prompts] == ["问题2", "问题3", "问题4"]


@pytest.mark.parametrize("line", ["{", "3", '{"txt": "x"}', "[1]"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_text(f'"一"\n{line}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"replies\.jsonl line 2"):
        load_provider(f"scripted:{path}")


@pytest.mark.parametrize(
    ("spec", "remedy"),
    [
        ("gpt", "openai:NAME"),
        ("openai:", "openai:NAME"),
        (":x", "openai:NAME"),
        ("openai:tiny", "OPENAI_API_KEY"),
        ("scripted:/no/such/file", "no such file"),
        ("no.such.module:make", "no module no; is its folder in PYTHONPATH"),
        ("json:no_such", "json has no no_such"),
        ("json:dumps", "cannot be loaded"),
        ("collections:OrderedDict", "neither a provider nor"),
    ],
)
def test_a_bad_setting_is_one_line_with_its_remedy(spec: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy) as caught:
        load_provider(spec)
    assert "\n" not in str(caught.value)


def test_a_factory_may_make_a_provider() -> None:
    provider = load_provider("nodes.answer.providers:ExtractiveProvider")
    assert isinstance(provider, ExtractiveProvider)


BROKEN = """
import os
from langchain_core.runnables import RunnableLambda

def raises():
    raise RuntimeError("sk-secret")

def lacks():
    return os.environ["NO_SUCH_KEY_SK"]

def leaves():
    raise SystemExit("sk-secret")

def chain():
    return RunnableLambda(lambda messages: messages).with_config(run_name="chain")

class Unnamed:
    name = None

    def stream(self, prompt):
        return iter(())
"""


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("broken_model:raises", r"\(RuntimeError at line 6 of broken_model\)"),
        ("broken_model:lacks", r"\(KeyError at line 9 of broken_model\)"),
        ("broken_model:leaves", r"\(SystemExit at line 12 of broken_model\)"),
        ("broken_model:chain", "neither a provider nor"),
        ("broken_model:Unnamed", "neither a provider nor"),
        ("broken_import:make", r"\(RuntimeError at line 1 of broken_import\)"),
    ],
)
def test_a_module_of_ones_own_that_fails_is_one_line_without_its_text(
    spec: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_model.py").write_text(BROKEN)
    (tmp_path / "broken_import.py").write_text('raise RuntimeError("sk-secret")')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "broken_model", None)  # taken out again at the end
    del sys.modules["broken_model"]
    with pytest.raises(ValueError, match=told) as caught:
        load_provider(spec)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
