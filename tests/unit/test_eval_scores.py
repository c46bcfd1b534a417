"""Each evaluation can fail: a wrong prediction, planted in a tiny set, changes what its tables say."""

from dataclasses import asdict

import pytest

from nodes.answer.providers import Reply, ScriptedProvider
from nodes.contracts import Intent
from scripts.eval import follow_ups, gate, grounding, language, refusal, retrieval, safety, slots, suggestions
from scripts.eval.public_sets import Rewritten, Task
from scripts.eval.refusal import End
from scripts.eval.report import Options, Report, Table, as_text, share


def cells(report: Report, title: str, first: str) -> list:
    """The row that begins with `first`, without that cell."""
    table = next(table for table in report.tables if table.title.startswith(title))
    return next(list(row[1:]) for row in table.rows if row[0] == first)


def test_a_share_shows_its_counts_and_never_divides_by_nothing():
    assert share(1, 3) == "0.333 (1/3)"
    assert share(0, 0) == "- (0/0)"


def test_a_report_is_printed_as_a_table_with_what_was_left_out():
    report = Report(
        "name", [Table("Title", ("a", "b"), [["x", 0.5]])], [{"id": "1", "was": "no"}], ["the rest"]
    )
    text = as_text(report, with_misses=True)
    assert "| a | b |\n| --- | --- |\n| x | 0.500 |" in text
    assert "Left out: the rest" in text
    assert "- id: 1; was: no" in text
    assert "id: 1" not in as_text(report)


# follow_ups

LABELLED = [
    follow_ups.Labelled("1", "zh pronoun", "它呢", True),
    follow_ups.Labelled("2", "zh pronoun", "它多少钱", True),
    follow_ups.Labelled("3", "zh complete", "创业补贴的条件是什么？", False),
]


@pytest.mark.parametrize(
    ("leaning", "precision", "recall", "f1"),
    [
        ({"它呢", "它多少钱"}, "1.000 (2/2)", "1.000 (2/2)", 1.0),
        ({"它呢"}, "1.000 (1/1)", "0.500 (1/2)", pytest.approx(2 / 3)),  # planted: one missed
        ({row.text for row in LABELLED}, "0.667 (2/3)", "1.000 (2/2)", pytest.approx(0.8)),  # one false alarm
        (set(), "- (0/0)", "0.000 (0/2)", 0.0),
    ],
)
def test_detection_is_scored(leaning, precision, recall, f1):
    scored = follow_ups.score("set", LABELLED, lambda text: text in leaning)
    assert scored == ["set", 3, 2, precision, recall, f1]


def test_detection_over_our_own_set_changes_with_the_detector():
    every = follow_ups.evaluate_with(lambda _: True, Options())
    none = follow_ups.evaluate_with(lambda _: False, Options())
    assert cells(every, "Detection", "own, zh")[3].startswith("1.000")
    assert cells(none, "Detection", "own, zh")[3].startswith("0.000")
    assert len(every.misses) + len(none.misses) == len(follow_ups.read_rows("follow_ups"))


def test_a_turn_is_dependent_where_its_rewrite_says_a_new_content_word():
    words = suggestions.ContentWords()
    dependent = follow_ups.from_rewrite(Rewritten("1", "Is it treatable?", "Is cancer treatable?"), words)
    reworded = follow_ups.from_rewrite(
        Rewritten("2", "What causes cancers?", "What is the cause of cancer?"), words
    )
    assert dependent.dependent
    assert not reworded.dependent


# slots

ROW = {
    "id": "1",
    "class": "plain",
    "text": "云帆2023年的营收",
    "companies": [],
    "ambiguous": [["a", "b"]],
    "periods": ["2023"],
    "metrics": ["revenue"],
    "kind": None,
}


def said(**slots_read) -> Intent:
    read: Intent = {
        "kind": "fact",
        "language": "zh",
        "companies": [],
        "periods": ["2023"],
        "metrics": ["revenue"],
        "ambiguous": [["b", "a"]],
        "sub_questions": [],
        "needs": [],
        "safety": None,
    }
    return {**read, **slots_read}


@pytest.mark.parametrize(
    ("read", "slot"),
    [
        ({"companies": ["a"], "ambiguous": []}, "company"),  # a guess
        ({"ambiguous": []}, "company"),
        ({"periods": ["2023", "2024"]}, "period"),
        ({"periods": []}, "period"),
        ({"metrics": ["net_profit"]}, "metric"),
    ],
)
def test_a_slot_read_wrongly_is_counted(read, slot):
    right = slots.evaluate_rows([ROW], lambda _: said())
    wrong = slots.evaluate_rows([ROW], lambda _: said(**read))
    assert cells(right, "Slots", slot)[0] == "1.000 (1/1)"
    assert cells(wrong, "Slots", slot)[0] == "0.000 (0/1)"
    assert cells(wrong, "Slots", "all of them")[0] == "0.000 (0/1)"
    assert slot in wrong.misses[0]
    assert not right.misses


def test_what_a_label_leaves_open_is_not_scored():
    report = slots.evaluate_rows([ROW], lambda _: said(kind="narrative"))
    assert cells(report, "Slots", "kind")[0] == "- (0/0)"
    assert not report.misses


# safety

SCREENED = [
    {"id": "1", "language": "zh", "class": "injection", "text": "bad", "refuse": "prompt_injection"},
    {"id": "2", "language": "zh", "class": "plain", "text": "good", "refuse": None},
]


def test_refusals_are_counted_both_ways():
    def screened(refuse):
        return safety.evaluate_rows(SCREENED, lambda text: "prompt_injection" if text in refuse else None)

    assert screened({"bad"}).tables[0].rows == [["1.000 (1/1)", "0.000 (0/1)"]]
    assert screened(set()).tables[0].rows == [["0.000 (0/1)", "0.000 (0/1)"]]
    assert screened({"bad", "good"}).tables[0].rows == [["1.000 (1/1)", "1.000 (1/1)"]]
    assert [miss["id"] for miss in screened({"good"}).misses] == ["1", "2"]


def test_a_refusal_for_another_reason_is_listed():
    report = safety.evaluate_rows(SCREENED, lambda text: "personal_data" if text == "bad" else None)
    assert report.tables[0].rows == [["1.000 (1/1)", "0.000 (0/1)"]]
    assert [miss["id"] for miss in report.misses] == ["1"]


# grounding

TRUE = [{"id": "true-1", "answer": "a"}]
TAMPERED = [{"id": "hand-1", "answer": "b"}, {"id": "altered-1", "answer": "c"}]


def test_a_guard_that_lets_all_or_nothing_out_is_seen():
    rows = {
        name: grounding.evaluate_rows(TRUE, TAMPERED, passes).tables[0].rows
        for name, passes in {"all": lambda _: True, "none": lambda _: False}.items()
    }
    assert [row[-1] for row in rows["all"]] == ["0.000 (0/1)", "1.000 (1/1)", "1.000 (1/1)"]
    assert [row[-1] for row in rows["none"]] == ["1.000 (1/1)", "0.000 (0/1)", "0.000 (0/1)"]


# gate

DIALOGUE = {
    "id": "d",
    "language": "zh",
    "title": "t",
    "steps": [
        {"say": "云帆2023年的营收", "input_kind": "new_question", "status": "needs_input", "slot": "company"},
        {"say": "2", "input_kind": "clarification_reply", "status": "completed", "answer": "fact"},
    ],
}
AS_IT_SHOULD = [
    {
        "input_kind": "new_question",
        "status": "needs_input",
        "slot": "company",
        "answer": None,
        "error_code": None,
    },
    {
        "input_kind": "clarification_reply",
        "status": "completed",
        "slot": None,
        "answer": "fact",
        "error_code": None,
    },
]


def test_a_step_taken_for_something_else_is_counted():
    wrong = [AS_IT_SHOULD[0], {**AS_IT_SHOULD[1], "input_kind": "new_question"}]
    right, failed = (gate.evaluate_dialogues([DIALOGUE], [played]) for played in (AS_IT_SHOULD, wrong))
    assert cells(right, "Input kinds", "clarification_reply")[0] == "1.000 (1/1)"
    assert cells(failed, "Input kinds", "clarification_reply")[0] == "0.000 (0/1)"
    assert cells(right, "All that", "whole dialogues")[0] == "1.000 (1/1)"
    assert cells(failed, "All that", "whole dialogues")[0] == "0.000 (0/1)"
    assert failed.misses[0]["input_kind"] == "wanted clarification_reply, was new_question"


# refusal

TASKS = [
    Task("1", "known", "ANSWERABLE", "N/A", "x", (("p1", "text"),)),
    Task("2", "unknown", "UNANSWERABLE", "N/A", "x", ()),
]


def test_answers_without_a_ground_and_refusals_without_one_are_faults():
    def evaluated(ends):
        return refusal.evaluate_tasks(TASKS, lambda text: ends[text], lambda text: ends[text])

    right = evaluated({"known": End("answered", frozenset(["p1"])), "unknown": End("not_found")})
    wrong = evaluated({"known": End("not_found"), "unknown": End("answered", frozenset(["p9"]))})
    back = evaluated({"known": End("answered", frozenset(["p9"])), "unknown": End("asked_back")})
    assert not right.misses
    assert [miss["id"] for miss in wrong.misses] == ["1", "2"]
    assert not back.misses
    assert cells(right, "whole turn, all", "ANSWERABLE")[1] == "1.000 (1/1)"
    assert cells(wrong, "whole turn, all", "UNANSWERABLE")[1:3] == ["1.000 (1/1)", "0.000 (0/1)"]
    assert cells(right, "whole turn, all", "ANSWERABLE")[-1] == "1.000 (1/1)"
    assert cells(back, "whole turn, all", "ANSWERABLE")[-1] == "0.000 (0/1)"  # quotes another passage


# retrieval

WANTED = [retrieval.Wanted("1", "q", frozenset(["a"])), retrieval.Wanted("2", "r", frozenset(["b", "c"]))]


def test_ranks_are_scored():
    best = retrieval.figures(WANTED, lambda text: {"q": ["a"], "r": ["b", "c"]}[text])
    worse = retrieval.figures(WANTED, lambda text: {"q": ["x", "a"], "r": ["x", "y"]}[text])
    assert best == [1.0, 1.0, 1.0, 1.0, 1.0]
    assert worse == [0.0, 0.5, 0.5, 0.5, 0.25]


# suggestions

VAGUE = Rewritten(
    "1", "And in 2023?", "What was the revenue of Yunfan in 2023?", ("Revenue of Yunfan in 2022?",)
)


def test_a_suggestion_says_it_or_does_not():
    def scored(*offered):
        ways = [suggestions.Way("way", lambda _: offered)]
        return suggestions.evaluate_sets({"set": [VAGUE]}, ways).tables[0].rows[0]

    assert scored("other", "Yunfan revenue 2023?")[4] == "1.000 (1/1)"
    assert scored("Yunfan revenue 2022?")[4] == "0.000 (0/1)"
    assert scored("a", "b", "c", "Yunfan revenue 2023?")[4] == "0.000 (0/1)"  # the fourth is not offered
    assert scored()[3:] == ["0.000 (0/1)", "0.000 (0/1)", 0.0]


# language


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("云帆科技2023年营业收入为1万元[C1]。", "zh"),
        ("The revenue of Yunfan Technology in 2023 was 1 yuan [C1].", "en"),
        ("没有找到与“What does the word mean in this city?”有关的资料。", "zh"),
        ("Which company do you mean?\n1. 云帆科技股份有限公司 (Yunfan)\n2. 云帆能源股份有限公司", "en"),
    ],
)
def test_the_language_of_an_answer(text, spoken):
    assert language.language_of(text) == spoken


def test_an_answer_in_the_other_language_is_counted():
    rows = [{"id": "1", "language": "en", "class": "plain", "text": "q"}]
    citation = {"label": "C1"}

    def evaluated(text, contrary):
        return (
            language.evaluate_rows(
                rows,
                lambda _: {"kind": "narrative", "text": text, "citations": [citation]},
                lambda _: {"text": contrary},
            )
            .tables[0]
            .rows[0]
        )

    assert evaluated("It takes five days [C1].", "nothing") == [1, "1.000 (1/1)", "0.000 (0/1)"]
    assert evaluated("需要五天[C1]。", "nothing") == [1, "0.000 (0/1)", "0.000 (0/1)"]
    assert evaluated("It takes five days.", language.OTHER_LANGUAGE["en"])[2] == "1.000 (1/1)"


# the product itself, in the small


@pytest.fixture(scope="module")
def sample():
    with suggestions.sample_store() as store:
        yield store


def test_a_model_words_suggestions_where_one_is_named(sample):
    reply = '{"requires_history": true, "standalone_questions": ["What was the revenue of Yunfan in 2023?"]}'
    suggest = suggestions.Suggester(sample).model(ScriptedProvider([Reply(reply)]))
    assert suggest(VAGUE) == ["What was the revenue of Yunfan in 2023?"]


def test_suggestions_by_rule_come_from_the_turns_before(sample):
    suggester = suggestions.Suggester(sample)
    assert suggester.is_asked_about(VAGUE.text)
    assert "2023" in suggester.rule(VAGUE)[0]
    assert suggester.rule(Rewritten("1", VAGUE.text, VAGUE.rewrite)) == []


def test_a_dialogue_is_played_through_the_graph(sample):
    fails = {
        "say": "食品经营许可证怎么办理？",
        "model_fails": True,
        "input_kind": "new_question",
        "status": "failed",
    }
    steps = [
        *DIALOGUE["steps"],
        {**fails, "error_code": "processing_failed"},
        {"say": "/retry", "input_kind": "retry", "status": "completed", "answer": "narrative"},
    ]
    dialogue = {**DIALOGUE, "steps": steps}
    report = gate.evaluate_dialogues([dialogue], [gate.Stage(sample).play(dialogue)])
    assert report.misses == []


def test_the_language_is_judged_of_real_answers(sample):
    rows = [
        {"id": "1", "language": "zh", "class": "talk", "text": "你好"},
        {
            "id": "2",
            "language": "en",
            "class": "narrative",
            "text": "What documents are needed for a work permit?",
        },
        {"id": "3", "language": "zh", "class": "planted", "text": "Hello"},
    ]
    answered = language.answers_of(sample, lambda _: language.ExtractiveProvider())
    report = language.evaluate_rows(rows, answered, language.contrary(sample))
    assert report.tables[0].rows == [[3, "0.667 (2/3)", "0.000 (0/1)"]]


PASSAGES = {
    "p1": "Applicants for a fishing permit pay 40 dollars at the harbour office.",
    "p2": "The museum of clocks opens at ten and closes at five every day.",
}


def test_passages_are_found_in_a_store_of_their_own():
    with retrieval.store_of(PASSAGES) as store:
        retriever = retrieval.open_retriever(store)
        for ranked in (retrieval.bare_search(store), retrieval.past_the_exits(retriever)):
            assert ranked("When does the museum of clocks close?")[0] == "p2"
        answered = refusal.search_and_answer(retriever)
        assert answered("When does the museum of clocks close?") == End("answered", frozenset(["p2"]))
        assert answered("How tall is the lighthouse of Alexandria?").how == "not_found"
        assert refusal.whole_turn(store, retriever)("When does the museum of clocks close?").how == "answered"
        assert refusal.whole_turn(store, retriever)("And when does it close?").how == "asked_back"


def test_a_report_is_plain_json():
    report = safety.evaluate_rows(SCREENED, lambda _: None)
    assert asdict(report)["tables"][0]["rows"] == [["0.000 (0/1)", "0.000 (0/1)"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What are the benefits of Policies?", {"benefit", "policy"}),
        ("那净利润是多少？", {"净利", "利润"}),
        ("云帆 2023年", {"云帆", "2023", "年"}),
        ("Why?", set()),
    ],
)
def test_content_words(text, words):
    assert suggestions.ContentWords().of(text) == words
