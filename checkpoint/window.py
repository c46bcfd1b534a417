"""Which earlier turns a model may see, and in what form. Pure: no I/O, no clock.

The `history` channel stores candidates (`remember`); limits, language and permissions are applied when the
candidates are used (`restore`). What is visible is whole turns, newest first while they fit, rendered oldest
first. Sizes are UTF-8 bytes of the message contents and include every mark and escape.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NotRequired, TypedDict, cast

import regex  # type: ignore[import-untyped]  # it ships no type information

Language = Literal["zh", "en"]
Role = Literal["user", "assistant"]
MaySee = Callable[[Sequence[tuple[str, str]]], bool]

ELIGIBLE_KINDS = frozenset({"fact", "comparison", "narrative", "not_found"})
VERSION = 1
_UNANSWERED = "unanswered"  # a question of a flat history that has no answer; never stored

# Everything between these brackets is written by us; in past text they are escaped.
OPEN, CLOSE = "⟦", "⟧"
MARKS: Mapping[str, Mapping[Language, str]] = {
    "omitted": {"zh": "更早的 {} 轮已省略", "en": "earlier turns omitted: {}"},
    "source": {"zh": "其中 {} 轮的来源现已不可查看", "en": "of these, no longer viewable: {}"},
    "cut": {"zh": "此处截断", "en": "cut here"},
    "not_found": {"zh": "当时没有找到相关依据", "en": "nothing was found for this question"},
}

# What may pass as a mark of ours, as a citation of the current turn, or as a role header of a chat template.
# An escape puts one more backslash between the two halves, so that it can be undone.
_FORGEABLE = regex.compile(
    r"(?P<head>)(?<!\\)(?P<gap>\\*)(?P<tail>[⟦⟧])"
    r"|(?P<head>(?i:earlier turns omitted))(?P<gap>\\*)(?P<tail>\s*[:：])"
    r"|(?P<head>更早的)(?P<gap>\\*)(?P<tail>\s*\d+\s*轮已省略)"
    r"|(?P<head>[\[［【])(?P<gap>\\*)(?P<tail>\s*[CcＣｃ]\s*\d)"
    r"|(?P<head><)(?P<gap>\\*)(?P<tail>\|)"
    r"|(?P<head>\|)(?P<gap>\\*)(?P<tail>>)"
    r"|(?P<head>\[)(?P<gap>\\*)(?P<tail>/?INST\])"
    r"|(?P<head><)(?P<gap>\\*)(?P<tail></?SYS>>)"
    r"|(?P<head><)(?P<gap>\\*)(?P<tail>/?s>|(?:start|end)_of_turn>)"
)
_GRAPHEME = regex.compile(r"\X")


class PastTurn(TypedDict):
    """One finished turn as stored. `cut_bytes` is what was cut away when it was bounded at writing."""

    turn_id: str
    question: str
    answer: str
    kind: str
    sources: list[list[str]]  # [document id, version]
    at: str
    cut_bytes: NotRequired[int]


class History(TypedDict):
    """The `history` channel. `omitted_turns` counts eligible turns that are no longer among `turns`."""

    version: int
    turns: list[PastTurn]
    omitted_turns: int


class WindowReport(TypedDict):
    """What the model saw of the history, in numbers."""

    turns: int
    omitted_turns: int
    cut_bytes: int
    bytes: int
    reasons: list[str]


@dataclass(frozen=True)
class WindowLimits:
    """At most `max_turns` eligible turns within `max_bytes` UTF-8 bytes, marks and escapes included."""

    max_turns: int = 8
    max_bytes: int = 6000

    def __post_init__(self) -> None:
        if self.max_turns < 0 or self.max_bytes < 0:
            raise ValueError(
                "window limits below 0: set HISTORY_MAX_TURNS and HISTORY_MAX_BYTES to 0 or more"
            )


@dataclass(frozen=True)
class Window:
    """What the model sees of the history: `messages` oldest first, an omission mark leading the first one.

    `reasons` says why something is missing: over_turn_limit, over_byte_limit, over_token_budget,
    over_source_limit, newest_cut, source_not_visible, unreadable, answer_without_question.
    """

    messages: tuple[tuple[Role, str], ...] = ()
    turns: int = 0
    omitted_turns: int = 0
    cut_bytes: int = 0
    bytes: int = 0
    reasons: tuple[str, ...] = ()
    # The visible turns as stored (unescaped, cut where the newest was cut), oldest first.
    past_turns: tuple[PastTurn, ...] = ()
    _view: "_View | None" = field(default=None, repr=False, compare=False)

    def report(self) -> WindowReport:
        return {
            "turns": self.turns,
            "omitted_turns": self.omitted_turns,
            "cut_bytes": self.cut_bytes,
            "bytes": self.bytes,
            "reasons": list(self.reasons),
        }

    def newest(self, turns: int, reason: str = "over_token_budget") -> "Window":
        """The same window with at most its `turns` newest turns; the omission mark and the counts follow."""
        if self._view is None or turns >= self.turns:
            return self
        # A window with a cut shows one turn, so here the cut one goes.
        kept = max(turns, 0)
        shown = self._view.shown[len(self._view.shown) - kept :]
        still = tuple(earlier for earlier in self._view.reasons if earlier != "newest_cut")
        return _window(replace(self._view, shown=shown, reasons=_with(still, reason)))


@dataclass(frozen=True)
class _Shown:
    """One turn as rendered. `cut` is the raw bytes left out of it."""

    turn: PastTurn
    messages: tuple[tuple[Role, str], ...]
    cut: int = 0

    @property
    def size(self) -> int:
        return sum(_size(text) for _, text in self.messages)


@dataclass(frozen=True)
class _View:
    """All that a window is rendered from; `total` counts eligible turns, shown or not."""

    shown: tuple[_Shown, ...]
    total: int
    unseen: int  # of these, dropped because a source is not visible to the caller
    language: Language
    max_bytes: int
    reasons: tuple[str, ...]

    @property
    def omitted(self) -> int:
        return self.total - len(self.shown)


@dataclass(frozen=True)
class _Parsed:
    turns: tuple[PastTurn, ...]
    omitted: int
    is_unreadable: bool


def escape(text: str) -> str:
    """`text` with everything that could pass as our mark, a citation or a role header made harmless."""
    return str(_FORGEABLE.sub(r"\g<head>\\\g<gap>\g<tail>", text))


def remember(history: object, turn: PastTurn, limits: WindowLimits) -> History:
    """`history` with `turn` added as its newest candidate, bounded to `limits`.

    A turn that is not eligible (kind, or nothing in it) leaves the history as it is. Question and answer
    together are bounded to `limits.max_bytes`: more of one turn can never be shown.
    """
    parsed = _parse(history)
    added = _parse_turns([turn], 0).turns
    bounded = [_bound(turn, limits.max_bytes) for turn in (*parsed.turns, *added)]
    turns = [turn for turn in bounded if is_eligible(turn)]
    kept = turns[max(0, len(turns) - limits.max_turns) :]
    return {"version": VERSION, "turns": kept, "omitted_turns": parsed.omitted + len(bounded) - len(kept)}


def restore(history: object, *, limits: WindowLimits, may_see: MaySee, language: Language) -> Window:
    """What the model may see of `history` now. Rubbish gives an empty window with the reason `unreadable`.

    `may_see` is asked for each candidate's sources (an empty sequence too); what it refuses is dropped and
    marked, and no older turn takes the place. Errors of `may_see` itself propagate.
    """
    parsed = _parse(history)
    newest = parsed.turns[max(0, len(parsed.turns) - limits.max_turns) :]
    total = parsed.omitted + len(parsed.turns)
    visible = [turn for turn in newest if may_see([(source[0], source[1]) for source in turn["sources"]])]
    reasons: tuple[str, ...] = ()
    reasons = _with(reasons, "unreadable", parsed.is_unreadable)
    reasons = _with(reasons, "over_turn_limit", total > len(newest))
    reasons = _with(reasons, "source_not_visible", len(visible) < len(newest))
    view = _View((), total, len(newest) - len(visible), language, limits.max_bytes, reasons)
    return _select(visible, view)


def window_from_pairs(
    history: Sequence[tuple[str, str]] | None, *, limits: WindowLimits, language: Language
) -> Window:
    """The window for a flat history of (role, text), under the same limits and by the same rendering.

    Roles other than `assistant` count as `user`. An answer belongs to the question before it, several in a
    row are joined by a blank line; answers before the first question are dropped, blank texts are ignored,
    and a question without an answer is kept. None and an empty history give an empty window. TypeError for
    a history or a text of the wrong type, ValueError for an item that is not a pair.
    """
    turns, stray = _turns_from_pairs(_checked_pairs(history))
    newest = turns[max(0, len(turns) - limits.max_turns) :]
    reasons = _with((), "answer_without_question", stray)
    reasons = _with(reasons, "over_turn_limit", len(turns) > len(newest))
    return _select(newest, _View((), len(turns), 0, language, limits.max_bytes, reasons))


def is_eligible(turn: PastTurn) -> bool:
    """Whether a turn may ever be context: it ended in an answer, and has a question and an answer to show."""
    had_answer = turn["kind"] == "not_found" or _has_content(turn["answer"]) or turn.get("cut_bytes", 0) > 0
    return turn["kind"] in ELIGIBLE_KINDS and _has_content(turn["question"]) and had_answer


# Selection


def _select(visible: Sequence[PastTurn], view: _View) -> Window:
    """The longest run of newest turns that fits with its mark; else the newest alone, cut."""
    whole = _newest_whole(visible, view.language)
    for count in range(len(whole), 0, -1):
        candidate = replace(view, shown=whole[len(whole) - count :])
        if _fits(candidate):
            dropped = len(visible) > count
            return _window(replace(candidate, reasons=_with(view.reasons, "over_byte_limit", dropped)))
    if not visible:
        return _window(view)
    others = _with(view.reasons, "over_byte_limit", len(visible) > 1)
    cut = _cut_to_fit(visible[-1], view)
    if cut is None:
        return _window(replace(view, reasons=_with(others, "over_byte_limit")))
    return _window(replace(view, shown=(cut,), reasons=_with(others, "newest_cut")))


def _newest_whole(visible: Sequence[PastTurn], language: Language) -> tuple[_Shown, ...]:
    """The newest turns up to the first that was already cut at writing, which is no longer a whole turn."""
    whole: list[_Shown] = []
    for turn in reversed(visible):
        if turn.get("cut_bytes", 0):
            break
        whole.append(_Shown(turn, _pair(turn, escape(turn["question"]), _answer_text(turn, language))))
    return tuple(reversed(whole))


def _answer_text(turn: PastTurn, language: Language) -> str:
    return _mark("not_found", language) if turn["kind"] == "not_found" else escape(turn["answer"])


def _pair(turn: PastTurn, question: str, answer: str) -> tuple[tuple[Role, str], ...]:
    """A question without an answer occurs only in a flat history; nothing is invented for it."""
    if turn["kind"] == _UNANSWERED:
        return (("user", question),)
    return (("user", question), ("assistant", answer))


def _fits(view: _View) -> bool:
    return _size(_lead(view)) + sum(shown.size for shown in view.shown) <= view.max_bytes


def _cut_to_fit(turn: PastTurn, view: _View) -> _Shown | None:
    """The turn with its answer, then its question cut at a grapheme boundary, or None when nothing fits."""
    mark = _mark("cut", view.language)
    can_cut_answer = turn["kind"] not in ("not_found", _UNANSWERED)
    last = mark if can_cut_answer else _answer_text(turn, view.language)
    lead = _lead(replace(view, shown=(_Shown(turn, ()),)))
    room = view.max_bytes - _size(lead) - _size(last)
    question = escape(turn["question"])
    if can_cut_answer and _size(question) <= room:
        answer = _prefix(turn["answer"], room - _size(question) - 1)
        return _shown_cut(turn, answer=answer, texts=(question, _ended(answer, mark)))
    kept = _prefix(turn["question"], room - 1 - _size(mark))
    return _shown_cut(turn, question=kept, answer="", texts=(_ended(kept, mark), last)) if kept else None


def _ended(text: str, mark: str) -> str:
    # A line break is a grapheme boundary after any character; nothing joins with the mark.
    return f"{escape(text)}\n{mark}" if text else mark


def _shown_cut(turn: PastTurn, *, question: str | None = None, answer: str, texts: tuple[str, str]) -> _Shown:
    seen = _with_texts(turn, turn["question"] if question is None else question, answer)
    return _Shown(seen, _pair(turn, *texts), seen.get("cut_bytes", 0))


def _with_texts(turn: PastTurn, question: str, answer: str) -> PastTurn:
    """The turn with shorter texts, and in `cut_bytes` all that was ever cut from it."""
    left_out = _size(turn["question"]) - _size(question) + _size(turn["answer"]) - _size(answer)
    cut = left_out + turn.get("cut_bytes", 0)
    shorter = cast(PastTurn, {**turn, "question": question, "answer": answer})
    return cast(PastTurn, {**shorter, "cut_bytes": cut}) if cut else shorter


def _window(view: _View) -> Window:
    lead = _lead(view)
    messages = [message for shown in view.shown for message in shown.messages]
    if lead and messages:
        messages[0] = (messages[0][0], lead + messages[0][1])
    elif lead and _size(lead) <= view.max_bytes:
        messages = [("user", lead)]
    return Window(
        messages=tuple(messages),
        turns=len(view.shown),
        omitted_turns=view.omitted,
        cut_bytes=sum(shown.cut for shown in view.shown),
        bytes=sum(_size(text) for _, text in messages),
        reasons=view.reasons,
        past_turns=tuple(shown.turn for shown in view.shown),
        _view=view,
    )


def _lead(view: _View) -> str:
    """The marks that come before the first question: what is missing, each on its own line."""
    marks = []
    if view.omitted:
        marks.append(_mark("omitted", view.language, view.omitted))
    if view.unseen:
        marks.append(_mark("source", view.language, view.unseen))
    lines = "\n".join(marks)
    return f"{lines}\n" if marks and view.shown else lines


def _mark(name: str, language: Language, count: int = 0) -> str:
    return f"{OPEN}{MARKS[name][language].format(count)}{CLOSE}"


def _with(reasons: tuple[str, ...], reason: str, holds: object = True) -> tuple[str, ...]:
    return (*reasons, reason) if holds and reason not in reasons else reasons


# Text


def _size(text: str) -> int:
    return len(text.encode("utf-8"))


def _prefix(text: str, room: int) -> str:
    """The longest run of whole graphemes of `text` whose escaped form takes at most `room` bytes."""
    if room <= 0:
        return ""
    ends = [end for end, _ in _boundaries(text, room)]
    # An escape adds a byte and takes the place of no other, so that the escaped form grows with the text.
    at = bisect_right(ends, room, key=lambda end: _size(escape(text[:end])))
    return text[: ends[at - 1]] if at else ""


def _boundaries(text: str, room: int) -> Iterator[tuple[int, int]]:
    """(end in characters, size in bytes) of each grapheme-bounded prefix that takes at most `room` bytes."""
    size = 0
    for grapheme in _GRAPHEME.finditer(text):
        size += _size(grapheme.group())
        if size > room:
            return
        yield grapheme.end(), size


def _bound(turn: PastTurn, max_bytes: int) -> PastTurn:
    question = _raw_prefix(turn["question"], max_bytes)
    return _with_texts(turn, question, _raw_prefix(turn["answer"], max_bytes - _size(question)))


def _raw_prefix(text: str, room: int) -> str:
    if _size(text) <= room:
        return text
    ends = [end for end, _ in _boundaries(text, room)]
    return text[: ends[-1]] if ends else ""


def _has_content(text: str) -> bool:
    """Whether anything in `text` can be seen: separators, controls and format characters alone cannot."""
    return any(unicodedata.category(character)[0] not in "ZC" for character in text)


def _clean(text: str) -> str:
    """`text` without what no message can carry: lone surrogates and NUL."""
    return text.encode("utf-8", "ignore").decode("utf-8").replace("\0", "")


# Stored forms


def _parse(history: object) -> _Parsed:
    """The eligible candidates in any stored form.

    Current: {version: 1, turns, omitted_turns}. Older: the same without a version, a bare list of turns, and
    turns that are only {question, answer} or [question, answer] (they count as narrative, without sources).
    """
    if history is None:
        return _Parsed((), 0, False)
    if isinstance(history, Mapping):
        turns = history.get("turns")
        is_known = history.get("version", VERSION) == VERSION and isinstance(turns, (list, tuple))
        if not is_known:
            return _Parsed((), 0, bool(history))
        return _parse_turns(cast("Sequence[object]", turns), history.get("omitted_turns", 0))
    if isinstance(history, (list, tuple)):
        return _parse_turns(history, 0)
    return _Parsed((), 0, True)


def _parse_turns(items: Sequence[object], omitted: object) -> _Parsed:
    turns = [_parse_turn(item) for item in items]
    is_count = isinstance(omitted, int) and not isinstance(omitted, bool) and omitted >= 0
    readable = tuple(turn for turn in turns if turn is not None and is_eligible(turn))
    return _Parsed(readable, cast(int, omitted) if is_count else 0, None in turns or not is_count)


def _parse_turn(item: object) -> PastTurn | None:
    if isinstance(item, (list, tuple)) and len(item) == 2:
        item = {"question": item[0], "answer": item[1]}
    if not isinstance(item, Mapping):
        return None
    texts = {name: item.get(name, default) for name, default in _TEXT_FIELDS.items()}
    sources, cut = _parse_sources(item.get("sources", ())), item.get("cut_bytes", 0)
    if sources is None or not all(isinstance(text, str) for text in texts.values()):
        return None
    clean = {name: _clean(cast(str, text)) for name, text in texts.items()}
    if clean["kind"] == "not_found":
        clean["answer"] = ""  # the canned text says nothing; a fixed mark stands for it
    turn = cast(PastTurn, {**clean, "sources": sources})
    return cast(PastTurn, {**turn, "cut_bytes": cut}) if type(cut) is int and cut > 0 else turn


# A turn without a question or an answer is not readable; what else is missing has a plain default.
_TEXT_FIELDS: Mapping[str, str | None] = {
    "turn_id": "",
    "question": None,
    "answer": None,
    "kind": "narrative",
    "at": "",
}


def _parse_sources(sources: object) -> list[list[str]] | None:
    """None when they cannot be read: a turn whose sources are unknown cannot be re-authorised."""
    if not isinstance(sources, (list, tuple)):
        return None
    pairs = [list(source) for source in sources if isinstance(source, (list, tuple)) and len(source) == 2]
    is_whole = len(pairs) == len(sources) and all(isinstance(part, str) for pair in pairs for part in pair)
    return pairs if is_whole else None


def _checked_pairs(history: Sequence[tuple[str, str]] | None) -> list[tuple[Role, str]]:
    if history is None:
        return []
    if isinstance(history, (str, bytes, Mapping)) or not isinstance(history, Sequence):
        raise TypeError("history must be a sequence of (role, text) pairs")
    pairs: list[tuple[Role, str]] = []
    for item in history:
        if isinstance(item, (str, bytes)) or not isinstance(item, Sequence) or len(item) != 2:
            raise ValueError("each history item must be a (role, text) pair")
        role, text = item
        if not isinstance(role, str) or not isinstance(text, str):
            raise TypeError("role and text of a history item must be strings")
        pairs.append(("assistant" if role == "assistant" else "user", _clean(text)))
    return [pair for pair in pairs if _has_content(pair[1])]


_BLANK: Mapping[str, str] = {"turn_id": "", "question": "", "answer": "", "kind": _UNANSWERED, "at": ""}


def _turns_from_pairs(pairs: Sequence[tuple[Role, str]]) -> tuple[list[PastTurn], bool]:
    turns: list[PastTurn] = []
    stray = False
    for role, text in pairs:
        if role == "user":
            turns.append(cast(PastTurn, {**_BLANK, "question": text, "sources": []}))
        elif turns:
            earlier = turns[-1]["answer"]
            turns[-1]["answer"] = f"{earlier}\n\n{text}" if earlier else text
            turns[-1]["kind"] = "narrative"
        else:
            stray = True
    return turns, stray
