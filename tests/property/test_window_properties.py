"""What holds for every history: the limit, whole graphemes and turns, honest counts, escapes to undo."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkpoint.window import (
    History,
    PastTurn,
    Window,
    WindowLimits,
    escape,
    remember,
    restore,
    window_from_pairs,
)

CLUSTERS = (
    *("a", "中", "が", "각", "क्षि", " ", "\n", "\r\n", "\\", "\u0600"),
    *("😀", "👨\u200d👩\u200d👧\u200d👦", "🏳️\u200d🌈", "🇨🇳", "🇨🇳🇫🇷", "👍🏽", "1️⃣"),
    *("e\u0301", "a\u0308\u0323", "ש\u05bc\u05b8", "العربية", "\u202eabc\u202c"),
    *("⟦", "⟧", "⟦更早的 3 轮已省略⟧", "⟦此处截断⟧", "earlier turns omitted: 3", "[C1]", "<|im_end|>"),
)
_GRAPHEMES = regex.compile(r"\X")
_ESCAPED = regex.compile(
    r"(\\*)\\([⟦⟧])|((?i:earlier turns omitted))(\\*)\\(?=\s*[:：])|(更早的)(\\*)\\(?=\s*\d+\s*轮已省略)"
    r"|([\[［【])(\\*)\\(?=\s*[CcＣｃ]\s*\d)|(<)(\\*)\\(?=\|)|(\|)(\\*)\\(?=>)|(\[)(\\*)\\(?=/?INST\])"
    r"|(<)(\\*)\\(?=</?SYS>>)|(<)(\\*)\\(?=/?s>|(?:start|end)_of_turn>)"
)

texts = st.lists(st.sampled_from(CLUSTERS) | st.characters(exclude_categories=["Cs"]), max_size=60).map(
    "".join
)
sized = st.tuples(texts, st.integers(1, 40)).map(lambda pair: pair[0] * pair[1])
turns = st.builds(
    lambda question, answer, kind, at: cast(
        PastTurn,
        {
            "turn_id": str(at),
            "question": question,
            "answer": answer,
            "kind": kind,
            "sources": [[kind, "1"]],
            "at": "",
        },
    ),
    sized,
    sized,
    st.sampled_from(["fact", "comparison", "narrative", "not_found", "refused", "small_talk"]),
    st.integers(0, 99),
)
limits = st.builds(WindowLimits, st.integers(0, 10), st.integers(0, 900) | st.just(6000))


def seen_by_all(_: Sequence[tuple[str, str]]) -> bool:
    return True


def unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: "".join(group for group in match.groups() if group), text)


def shown_text(text: str) -> str:
    """The past text that a message shows: without our marks, unescaped."""
    lines = text.split("\n")
    while lines and regex.fullmatch(r"⟦(?:更早的 \d+ 轮已省略|其中 \d+ 轮的来源现已不可查看)⟧", lines[0]):
        lines = lines[1:]
    if lines and lines[-1] == "⟦此处截断⟧":
        lines = lines[:-1]
    return unescaped("\n".join(lines))


def a_turn(question: str, answer: str) -> PastTurn:
    return {"turn_id": "1", "question": question, "answer": answer, "kind": "fact", "sources": [], "at": ""}


def stored(items: list[PastTurn], limit: WindowLimits) -> object:
    history: object = None
    for item in items:
        history = remember(history, item, limit)
    return history


def is_whole_prefix(part: str, text: str) -> bool:
    ends = {0, *(match.end() for match in _GRAPHEMES.finditer(text))}
    return text.startswith(part) and len(part) in ends


@given(texts)
@example("\\⟦\\\\⟧")
def test_escapes_can_be_undone(text: str) -> None:
    assert unescaped(escape(text)) == text


PIECES = (
    *(
        "[",
        "［",
        "<",
        "|",
        ">",
        "/",
        "INST]",
        "/INST]",
        "SYS>>",
        "<<SYS>>",
        "C",
        "ｃ",
        "1",
        "s>",
        "end_of_turn>",
    ),
    *("\\", "⟦", "⟧", "earlier turns omitted", "更早的", "轮已省略", " 3 ", ":", " ", "a"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_the_escaped_form_grows_with_the_text(text: str) -> None:
    sizes = [len(escape(text[:end]).encode()) for end in range(len(text) + 1)]
    assert sizes == sorted(set(sizes))


@given(texts)
def test_no_mark_of_ours_survives_in_past_text(text: str) -> None:
    shown = escape(text)
    assert not regex.search(r"(?<!\\)[⟦⟧]|(?i:earlier turns omitted)\s*[:：]|更早的\s*\d+\s*轮已省略", shown)
    assert not regex.search(r"\[\s*[Cc]\s*\d|<\||\|>", shown)


@settings(max_examples=150)
@given(st.lists(turns, max_size=11), limits)
def test_the_limit_holds_and_no_grapheme_is_split(items: list[PastTurn], limit: WindowLimits) -> None:
    window = restore(stored(items, limit), limits=limit, may_see=seen_by_all, language="zh")
    sizes = [len(text.encode()) for _, text in window.messages]
    assert sum(sizes) == window.bytes <= limit.max_bytes
    assert window.turns <= limit.max_turns
    by_role = [role for role, _ in window.messages]
    assert by_role in (["user", "assistant"] * window.turns, ["user"])
    originals = [item for item in items if item["kind"] not in ("refused", "small_talk")]
    for at, (_, text) in enumerate(window.messages[: 2 * window.turns]):
        past = window.past_turns[at // 2]
        if past["kind"] == "not_found" and at % 2:
            assert text == "⟦当时没有找到相关依据⟧"
            continue
        field = "answer" if at % 2 else "question"
        candidates = [
            item[field].replace("\0", "") for item in originals if item["turn_id"] == past["turn_id"]
        ]
        assert any(is_whole_prefix(shown_text(text), original) for original in candidates)


@given(st.lists(turns, max_size=11), limits)
def test_counts_are_honest(items: list[PastTurn], limit: WindowLimits) -> None:
    window = restore(stored(items, limit), limits=limit, may_see=seen_by_all, language="en")
    eligible = restore(
        stored(items, WindowLimits(99, 10**9)),
        limits=WindowLimits(99, 10**9),
        may_see=seen_by_all,
        language="en",
    )
    assert window.turns + window.omitted_turns == eligible.turns + eligible.omitted_turns
    if window.omitted_turns and window.messages:
        assert window.messages[0][1].startswith(f"⟦earlier turns omitted: {window.omitted_turns}⟧")
    assert bool(window.omitted_turns or window.cut_bytes) == bool(window.reasons)
    assert json.loads(json.dumps(window.report())) == window.report()


@given(st.lists(turns, min_size=1, max_size=9), st.integers(0, 2000))
def test_as_many_whole_turns_as_fit(items: list[PastTurn], size: int) -> None:
    """Against every suffix tried in turn, written out by hand."""
    limit = WindowLimits(8, size)
    history = cast(History, stored(items, WindowLimits(8, 10**9)))
    window = restore(history, limits=limit, may_see=seen_by_all, language="zh")
    total = len(history["turns"]) + history["omitted_turns"]

    def fits(count: int) -> bool:
        kept = history["turns"][len(history["turns"]) - count :]
        mark = f"⟦更早的 {total - count} 轮已省略⟧\n" if total > count else ""
        answers = [
            "⟦当时没有找到相关依据⟧" if t["kind"] == "not_found" else escape(t["answer"]) for t in kept
        ]
        return len((mark + "".join(escape(t["question"]) for t in kept) + "".join(answers)).encode()) <= size

    best = max((count for count in range(1, len(history["turns"]) + 1) if fits(count)), default=0)
    if best:
        assert window.turns == best
        assert window.cut_bytes == 0
    else:
        assert window.turns <= 1


@pytest.mark.parametrize("cluster", [c for c in CLUSTERS if c not in (" ", "\n")])
def test_every_byte_position_around_the_limit(cluster: str) -> None:
    """The cluster is moved over the limit byte by byte; it is there whole or not at all."""
    width = len(cluster.encode())
    for filler in range(5950, 6004):
        past = a_turn("q", "x" * filler + cluster * 4)
        history = remember(None, past, WindowLimits())
        window = restore(history, limits=WindowLimits(), may_see=seen_by_all, language="zh")
        assert window.bytes <= 6000
        answer = window.messages[1][1]
        assert "\ufffd" not in answer
        rest = shown_text(answer).removeprefix("x" * min(filler, answer.count("x")))
        assert is_whole_prefix("x" * filler + rest if rest else "x", past["answer"])
        if window.cut_bytes:
            assert answer.endswith("\n⟦此处截断⟧")
            assert window.bytes > 6000 - max(4 * width, 40)


@given(st.lists(turns, max_size=20))
def test_what_is_stored_is_bounded_plain_json(items: list[PastTurn]) -> None:
    history = cast(History, stored(items, WindowLimits()))
    assert json.loads(json.dumps(history)) == history
    if history is not None:
        assert len(history["turns"]) <= 8
        assert all(len((t["question"] + t["answer"]).encode()) <= 6000 for t in history["turns"])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["version", "turns", "omitted_turns", "question", "answer", "kind", "sources", "x"]
            ),
            inner,
        )
    ),
    max_leaves=25,
)


@given(json_values)
@example({"version": 1, "turns": [{"question": "q", "answer": "a", "sources": [[[], {}]]}]})
@example(
    {"version": 1, "turns": [{"question": "q", "answer": "a", "cut_bytes": "x"}], "omitted_turns": 10**30}
)
def test_rubbish_never_raises(history: object) -> None:
    window = restore(history, limits=WindowLimits(), may_see=seen_by_all, language="zh")
    assert isinstance(window, Window)
    again = remember(history, a_turn("q", "a"), WindowLimits())
    assert again["turns"][-1]["question"] == "q"


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system", "x"]), sized), max_size=12), limits)
def test_the_flat_form_keeps_the_limit_and_starts_with_a_question(
    pairs: list[tuple[str, str]], limit: WindowLimits
) -> None:
    window = window_from_pairs(pairs, limits=limit, language="en")
    assert sum(len(text.encode()) for _, text in window.messages) == window.bytes <= limit.max_bytes
    roles: list[Any] = [role for role, _ in window.messages]
    assert roles[:1] in ([], ["user"])
    assert ("assistant", "assistant") not in set(pairwise(roles))


@given(
    st.lists(turns, max_size=9),
    st.sets(st.sampled_from(["fact", "comparison", "narrative", "not_found"])),
    limits,
)
def test_what_may_not_be_seen_is_not_there(
    items: list[PastTurn], hidden: set[str], limit: WindowLimits
) -> None:
    def may_see(sources: Sequence[tuple[str, str]]) -> bool:
        return not any(document in hidden for document, _ in sources)

    window = restore(stored(items, limit), limits=limit, may_see=may_see, language="zh")
    assert not any(past["kind"] in hidden for past in window.past_turns)
    assert window.turns == len(window.past_turns)
