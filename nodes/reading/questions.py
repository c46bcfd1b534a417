"""Which questions a text asks at once, each with its own slots, completed from the ones before it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from nodes.reading.folding import squeeze
from nodes.reading.kinds import Reader, Said, is_question, kind_of
from nodes.reading.references import asks_for_more
from nodes.reading.replies import is_small_talk

MAX_QUESTIONS = 10  # more sentences than these are read as one question


def questions(reader: Reader, text: str) -> list[Said]:
    """The questions asked apart; a single one where asking all slots together says the same."""
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if _WORD.search(sentence)]
    if len(sentences) > MAX_QUESTIONS:
        return [reader.read(text)]
    asked = [question for sentence in sentences for question in _asked_in(reader, sentence)]
    apart = _attached(_completed(asked))
    return apart if len(apart) > 1 and _differ(apart) else [reader.read(text)]


def _asked_in(reader: Reader, sentence: str) -> list[Said]:
    """The questions of a sentence; none where it only greets or states something."""
    said = reader.read(sentence)
    if is_small_talk(sentence):
        return []
    if not is_question(said) and (kind_of(said) == "narrative" or _STATES.search(said.plain)):
        return []
    return _clauses(reader, said)


def _clauses(reader: Reader, said: Said) -> list[Said]:
    """A sentence cut at commas or connectives where every piece asks with slots of its own."""
    for joint, asks_apart in ((_COMMA, _asks_alone), (_CONNECTIVE, _asks_for_own_figure)):
        texts = [piece for piece in joint.split(said.text) if squeeze(piece)]
        if not 1 < len(texts) <= MAX_QUESTIONS:
            continue
        pieces = [reader.read(piece) for piece in texts]
        if all(map(asks_apart, pieces)) and _differ(_completed(pieces)):
            return pieces
    return [said]


def _asks_for_own_figure(said: Said) -> bool:
    return bool(said.metrics and (said.names or said.periods)) and kind_of(said) != "narrative"


def _asks_alone(said: Said) -> bool:
    if said.metrics:
        return _asks_for_own_figure(said)
    return is_question(said) and not said.leans and len(_WORD.findall(said.plain)) > 4


def _completed(pieces: Sequence[Said]) -> list[Said]:
    """Each figure with the company, period or metric that the figure before it named."""
    completed: list[Said] = []
    previous: Said | None = None
    for piece in pieces:
        if kind_of(piece) == "narrative":
            completed.append(piece)
            continue
        previous = piece if previous is None else _filled(piece, previous)
        completed.append(previous)
    return completed


def _filled(piece: Said, previous: Said) -> Said:
    named = piece if piece.names or piece.unknown else previous
    return replace(
        piece,
        companies=named.companies,
        ambiguous=named.ambiguous,
        unknown=named.unknown,
        like=named.like,
        everyone=named.everyone,
        periods=piece.periods or previous.periods,
        metrics=piece.metrics or previous.metrics,
    )


def _attached(pieces: Sequence[Said]) -> list[Said]:
    """A narrative question that leans on the one before it is put together with it.

    "Tell me more" beside another question leans on that one, and is no part of what is looked for.
    """
    attached: list[Said] = []
    for piece in pieces:
        leans = bool(attached) and kind_of(piece) == "narrative" and piece.leans
        if leans and asks_for_more(piece.plain):
            attached.append(replace(piece, stands=True))
        elif not leans:
            attached.append(piece)
        elif kind_of(attached[-1]) == "narrative":
            attached[-1] = _joined(attached[-1], piece)
        else:
            attached.append(replace(_joined(attached[-1], piece), metrics=()))
    return attached


def _joined(first: Said, second: Said) -> Said:
    """Both texts as one, for retrieval; the plain text is the second's, which says what is asked."""
    return replace(
        _filled(second, first), text=f"{first.text} {second.text}", plain=f"{first.plain} {second.plain}"
    )


def _differ(pieces: Sequence[Said]) -> bool:
    """Whether asking each on its own says something else than asking all slots of all at once."""
    kinds = {kind_of(piece) for piece in pieces}
    if "narrative" in kinds:
        return True
    return _slots_apart(pieces) != _slots_together(pieces)


def _slots_apart(pieces: Sequence[Said]) -> set[tuple[str, ...]]:
    return {
        slots
        for piece in pieces
        for slots in product(piece.names or ("",), piece.periods or ("",), piece.metrics or ("",))
    }


def _slots_together(pieces: Sequence[Said]) -> set[tuple[str, ...]]:
    names = {name for piece in pieces for name in piece.names or ("",)}
    periods = {period for piece in pieces for period in piece.periods or ("",)}
    metrics = {metric for piece in pieces for metric in piece.metrics or ("",)}
    return set(product(names, periods, metrics))


_WORD = re.compile(r"\w")
_STATES = re.compile(r"[。.!]$")
_SENTENCE_END = re.compile(
    r"(?<=[?？;；。!！\n])|(?<=[a-z0-9)][.])(?<!Co[.])(?<!Inc[.])(?<!Ltd[.])(?<!Mr[.])(?<!Ms[.])(?<!Dr[.])(?<!No[.])\s+(?=[A-Z])"
)
_COMMA = re.compile(
    r"[,，、;]\s*(?:另外|还有|以及|同时|顺便(?:问一?下)?|并且|and )?|另外|顺便问一?下|以及|还有|\b(?:and also"
    r"|also)\b"
)
_CONNECTIVE = re.compile(r"[,，、]|和|与|及|以及|还有|跟|\band\b|\bas well as\b")
