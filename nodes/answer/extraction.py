"""Which sentences of the passages answer a question. Pure, deterministic, no model.

First the document is chosen that is most about the question, then, for each kind of thing that is asked for,
the sentences of it that are of that kind. Only whole sentences are quoted. A sentence that leans on the one
before it, or is limited by the one after it, brings that one along; a line that opens a list brings the list.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log

from nodes.answer.asking import (
    Asked,
    Aspect,
    Step,
    asked_parts,
    common_run,
    is_general,
    names_heading,
    share_held,
    tokens_of,
    weight_of,
)
from nodes.answer.figures import Amount, Date, figures
from nodes.answer.ranges import range_holds
from nodes.answer.units import HAN, Unit, units_of
from nodes.contracts import Language, Passage
from nodes.reading.bilingual import with_phrases

MAX_SENTENCES = 4
MAX_LISTED = 8  # items of a list that has no line to open it, or rows of a table


@dataclass(frozen=True)
class Quote:
    """One sentence to quote, without its citation. `passage` counts from 1, as the labels do.

    `is_item`: it stands on a line of its own. `opens`: it only opens the items that come next.
    """

    text: str
    passage: int
    is_item: bool = False
    opens: bool = False


def choose_quotes(question: str, passages: Sequence[Passage], language: Language) -> list[Quote]:
    """At most four sentences, or a list, that answer `question`; empty when none is about it.

    A question of several lines is answered line by line. Sentences in the question's language are preferred;
    others are quoted where there are none, or where a document found first comes nearer to what is asked.
    """
    units = units_of(passages)
    same = [unit for unit in units if unit.language == language]
    is_first = any(unit.document == units[0].document for unit in same) if units else True
    others = [] if is_first else [unit for unit in units if unit.language != language]
    chosen: list[Unit] = []
    for asked in asked_parts(question):
        own, across = _documents(asked, same), _documents(_in_phrases(asked), others)
        is_own = _closest(own) >= _closest(across)
        found = _answer(own, units) if is_own else _answer_across(asked, across, units)
        chosen += [unit for unit in found if unit not in chosen]
    return _quotes(chosen)


def _in_phrases(asked: Asked) -> Asked:
    """With words together that have one name in the other language."""
    return replace(asked, words=tuple(with_phrases(asked.words)))


def _quotes(units: Sequence[Unit]) -> list[Quote]:
    are_many = sum(unit.is_item or unit.is_row for unit in units) > 1
    quotes: list[Quote] = []
    for unit in units:
        is_item = are_many and (unit.is_item or unit.is_row)
        quotes.append(Quote(unit.text, unit.passage, is_item, opens=bool(unit.items)))
        quotes += [Quote(item.text, item.passage, is_item=True) for item in unit.items]
    return quotes


def _answer_across(asked: Asked, documents: Sequence["_Document"], units: Sequence[Unit]) -> list[Unit]:
    """From evidence in another language. Where words do not tell, retrieval's order does, and the kind."""
    if found := _answer(documents, units):
        return found
    aspects = [step.aspect for step in asked.steps if step.aspect]
    holds = [aspect.needs for aspect in aspects if aspect.is_strict and aspect.needs]
    first = [unit for unit in units if unit.document == units[0].document and not unit.opens]
    first = [unit for unit in first if all(holding(unit) for holding in holds)]
    ranked = sorted(first, key=lambda unit: -sum(aspect.fit(unit) for aspect in aspects))
    return sorted(ranked[:2], key=lambda unit: unit.at)


# Which document

# The share of the subject that a document must hold to be about it, and that another may hold less of it.
MIN_COVERED = 0.3
# The same for a sentence that is quoted for its words alone.
MIN_COVERED_ALONE = 0.4
# And for all that would be quoted: of the right kind, and about something else, it is no answer.
MIN_SAID, MIN_SAID_BY_TITLE = 0.2, 0.65
# A word is the subject's main one from this share of its weight, and then a document must hold so much of it.
MOSTLY, MIN_NAMED = 0.6, 0.4
LONG_QUESTION = 8  # words of the subject, from which half of that is enough
NEARLY_AS_CLOSE = 0.9
_RUN_COUNTS, LONGEST_RUN = 0.05, 8
# How well a sentence must fit a kind that is asked for, and beside sentences of another kind.
MIN_FIT, MIN_FIT_BESIDE = 0.35, 0.6
# A word of the subject counts less where only the text has it, and a document less for each place below.
_BODY_COUNTS, _PLACE_COSTS = 0.8, 0.03


def _answer(documents: Sequence["_Document"], all_units: Sequence[Unit]) -> list[Unit]:
    is_about = any(document.covered >= _least(MIN_COVERED, document.asked) for document in documents)
    naming = [document for document in documents if is_about and document.names_it]
    if not naming:
        return []
    least = NEARLY_AS_CLOSE * _closest(naming)
    near = [document for document in naming if document.closeness >= least]
    best = max(near, key=lambda document: document.promise)
    chosen = best.answer()
    if not chosen:
        return []
    answer = best.in_order(chosen, _with_neighbours(chosen, all_units))
    return answer if best.is_about_subject(answer) else []


def _closest(documents: Sequence["_Document"]) -> float:
    """How close the nearest comes to what is asked; below 0 where there is none."""
    return max((document.closeness for document in documents), default=-1.0)


def _least(share: float, asked: Asked) -> float:
    """A long question, or an account of how things are, tells much beside its point."""
    return share / 2 if len(asked.words) >= LONG_QUESTION else share


def _documents(asked: Asked, units: Sequence[Unit]) -> list["_Document"]:
    grouped: dict[int, list[Unit]] = {}
    for unit in units:
        if not unit.opens:
            grouped.setdefault(unit.document, []).append(unit)
    held = _Held(asked.words, units)
    in_range = [_in_range(asked.question, of_document) for of_document in grouped.values()]
    return [_Document(asked, of_document, held) for of_document in in_range]


def _in_range(question: str, units: list[Unit]) -> list[Unit]:
    """Where a question tells an amount and rules differ by it, without the rules for other amounts.

    All stay where no rule holds for it: then what sets the limit is the answer.
    """
    asked = [figure for figure in figures(question) if isinstance(figure, Amount) and figure.unit]
    if len(asked) != 1:
        return units
    fitting = [range_holds(asked[0], unit.text) for unit in units]
    if True not in fitting:
        return units
    return [unit for unit, fits in zip(units, fitting, strict=True) if fits is not False]


class _Held:
    """What sentences hold of the words of a subject. Rare and long words weigh more."""

    def __init__(self, words: Sequence[str], units: Sequence[Unit]) -> None:
        self._words = words
        self._shares: dict[str, tuple[float, ...]] = {}
        counts = [sum(shares) for shares in zip(*(self.shares(unit.whole) for unit in units), strict=True)]
        rarities = (log(2 + len(units) / (1 + count)) for count in counts)
        self.weights = [weight_of(word) * rarity for word, rarity in zip(words, rarities, strict=False)]

    def shares(self, text: str) -> tuple[float, ...]:
        if text not in self._shares:
            folded = text.casefold()
            tokens = tokens_of(folded)
            self._shares[text] = tuple(share_held(word, folded, tokens) for word in self._words)
        return self._shares[text]

    def weighed(self, shares: Sequence[float]) -> float:
        """The share of the subject that is held, from 0 to 1."""
        total = sum(self.weights)
        return sum(map(lambda weight, share: weight * share, self.weights, shares)) / total if total else 0.0


@dataclass
class _Document:
    """The sentences of one document in the face of a question, in reading order."""

    asked: Asked
    units: list[Unit]
    held: _Held

    @cached_property
    def covered(self) -> float:
        """How much of the subject the document is about; its title tells best."""
        title = self.held.shares(self.units[0].title)
        bodies = [self.held.shares(f"{unit.heading} {unit.whole}") for unit in self.units]
        best = [max(shares) for shares in zip(*bodies, strict=True)]
        return self.held.weighed([max(a, _BODY_COUNTS * b) for a, b in zip(title, best, strict=True)])

    @cached_property
    def names_it(self) -> bool:
        """Whether it has the one word that makes up most of the subject, where there is such a word.

        Of two words the heavier may be a wrong cut (想开 in 我想开一家餐馆), so it takes three.
        """
        weights = self.held.weights
        main = max(range(len(weights)), key=weights.__getitem__)
        if len(weights) < 3 or weights[main] < MOSTLY * sum(weights):
            return True
        texts = [self.units[0].title, *(f"{unit.heading} {unit.whole}" for unit in self.units)]
        return max(self.held.shares(text)[main] for text in texts) >= MIN_NAMED

    @cached_property
    def closeness(self) -> float:
        """As `covered`, more where the title has a run of words just as the question has it."""
        run = common_run(self.asked.subject, self.units[0].title)
        return self.covered + _RUN_COUNTS * min(run, LONGEST_RUN)

    @cached_property
    def promise(self) -> float:
        """How well the document may answer, its place among the found ones included."""
        aspect = self.asked.steps[0].aspect
        fitting = [unit for unit in self.units if self._is_enough(unit, aspect)] or self.units
        best = max(self.score(unit, aspect) for unit in fitting)
        is_list = self.asked.is_wide and len(self._listed(aspect)) >= MIN_LISTED
        listed = _LIST_COUNTS if is_list else 0.0
        return best + 2 * self.closeness + listed - _PLACE_COSTS * self.units[0].document

    def score(self, unit: Unit, aspect: Aspect | None) -> float:
        """How well a sentence fits what is asked, by its kind and by the subject."""
        fit = aspect.fit(unit) if aspect else 0.0
        about_itself = 0.5 if _ABOUT_ITSELF.search(unit.text) else 0.0
        named = _NAMED_COUNTS if self._is_in_named_section(unit) else 0.0
        about = self._covered_by(unit) + _SPECIFIC_COUNTS * self._specific_to(unit) + named
        return fit + about - about_itself - _other_period(self.asked.question, unit)

    def _covered_by(self, unit: Unit) -> float:
        """Words of the sentence count fully, words of its heading and of the title less."""
        title = self.held.shares(unit.title)
        shares = [max(a, _TITLE_COUNTS * b) for a, b in zip(self._shares_of(unit), title, strict=True)]
        return self.held.weighed(shares)

    @cached_property
    def _specific(self) -> list[bool]:
        """Which words of the subject the title lacks and some sentence holds: they tell sentences apart."""
        title = self.held.shares(self.units[0].title)
        best = [max(shares) for shares in zip(*map(self._shares_of, self.units), strict=True)]
        return [
            in_title < 0.5 <= in_text and not is_general(word)
            for word, in_title, in_text in zip(self.asked.words, title, best, strict=True)
        ]

    def _specific_to(self, unit: Unit) -> float:
        return self._specific_share(self._shares_of(unit))

    def _specific_in(self, text: str) -> float:
        return self._specific_share(self.held.shares(text))

    def _specific_share(self, shares: Sequence[float]) -> float:
        pairs = zip(self.held.weights, self._specific, shares, strict=True)
        counted = [(weight, weight * share) for weight, counts, share in pairs if counts]
        return sum(held for _, held in counted) / sum(weight for weight, _ in counted) if counted else 0.0

    def _shares_of(self, unit: Unit) -> list[float]:
        text, heading = self.held.shares(unit.whole), self.held.shares(unit.heading)
        return [max(a, _HEADING_COUNTS * b) for a, b in zip(text, heading, strict=True)]

    def is_about_subject(self, answer: Sequence[Unit]) -> bool:
        """Whether what would be quoted, with its title and headings, says what was asked about at all.

        What says no word of it leaves all to the title, which must then say most of it.
        """
        title, own = answer[0].title, " ".join(f"{unit.heading} {unit.whole}" for unit in answer)
        by_own, said = (self.held.weighed(self.held.shares(text)) for text in (own, f"{title} {own}"))
        return said >= (MIN_SAID if by_own else MIN_SAID_BY_TITLE)

    def answer(self) -> list[Unit]:
        """The sentences of each kind that is asked for, the best of a kind first, without what they need."""
        steps = self.asked.steps
        listed = self._listed(steps[0].aspect) if self.asked.is_wide else []
        if listed:
            return listed
        chosen: list[Unit] = []
        for step in steps:
            chosen += self._with_list(step, self._of_kind(step, chosen), chosen)
        is_strict = any(step.aspect and step.aspect.is_strict for step in steps)
        if not chosen and not is_strict and not all(map(is_general, self.asked.words)):
            return self._of_kind(Step(None, 2), [])
        return self._to_the_point(chosen)

    def _to_the_point(self, chosen: Sequence[Unit]) -> list[Unit]:
        """Where a section tells the way to just what is asked, what is told of other ways is left out."""
        is_way = len(self.asked.steps) > 1 and not self.asked.is_wide
        headings = {unit.heading for unit in chosen if self._specific_in(unit.heading) >= NAMED_BY_HEADING}
        return [unit for unit in chosen if not (is_way and headings) or unit.heading in headings]

    def in_order(self, chosen: Sequence[Unit], answer: Sequence[Unit]) -> list[Unit]:
        """`answer` as it is read: in the document's order, but to one question its best section first."""
        best = chosen[0].heading if len(self.asked.steps) == 1 and not self.asked.is_wide else None
        return sorted(answer, key=lambda unit: (best is not None and unit.heading != best, unit.at))

    def _listed(self, aspect: Aspect | None) -> list[Unit]:
        """The document's list, where an item of it fits about best."""
        ranked = self._ranked(aspect, [])
        items = [unit for unit in ranked if unit.is_item or unit.is_row]
        if not items or self.score(items[0], aspect) < NEARLY_ELSEWHERE * self.score(ranked[0], aspect):
            return []
        enough = LISTED_NEARLY * self.score(items[0], aspect)
        items = [unit for unit in items if self._is_named_row(unit)] or items
        kept = [unit for unit in items if self.score(unit, aspect) >= enough][:MAX_LISTED]
        is_list = len(kept) > 1 or (len(kept) == 1 and self._is_named_row(kept[0]))
        return sorted(kept, key=lambda unit: unit.at) if is_list else []

    def _with_list(self, step: Step, chosen: Sequence[Unit], taken: Sequence[Unit]) -> list[Unit]:
        """`chosen`; where the best of it is an item of a list under a heading of the kind, the whole list."""
        first, aspect = chosen[0] if chosen else None, step.aspect
        if first is None or aspect is None or not first.in_list or aspect.needs is not None:
            return list(chosen)
        if not (aspect.heading.search(first.heading) or self._is_in_named_section(first)):
            return list(chosen)
        items = [unit for unit in self.units if unit.in_list == first.in_list and unit not in taken]
        return items[:MAX_LISTED]

    def _ranked(self, aspect: Aspect | None, taken: Sequence[Unit]) -> list[Unit]:
        left = [unit for unit in self.units if unit not in taken]
        return sorted(left, key=lambda unit: (-self.score(unit, aspect), unit.at))

    def _of_kind(self, step: Step, taken: Sequence[Unit]) -> list[Unit]:
        """The best sentence, and others nearly as good that add something.

        Where the best one holds the kind of figure that is asked for, the others must too.
        """
        aspect = step.aspect
        least = MIN_FIT_BESIDE if taken else MIN_FIT
        ranked = [unit for unit in self._ranked(aspect, taken) if self._is_enough(unit, aspect, least)]
        chosen = ranked[:1]
        for unit in ranked[1:]:
            if len(chosen) == step.most:
                break
            repeats = any(_repeats(unit, other) for other in (*taken, *chosen))
            if not repeats and self._is_nearly_as_good(unit, ranked[0], aspect):
                chosen.append(unit)
        return chosen

    def _is_enough(self, unit: Unit, aspect: Aspect | None, least: float = MIN_FIT) -> bool:
        if _ABOUT_ITSELF.search(unit.text):
            return False
        if aspect is None or aspect.is_soft:
            return self._covered_by(unit) >= _least(MIN_COVERED_ALONE, self.asked)
        return aspect.fit(unit) >= (0.0 if self._is_named(unit, aspect) else least)

    def _is_named(self, unit: Unit, aspect: Aspect) -> bool:
        """Whether a sentence or its heading is about just what is asked, whatever kind it is of."""
        if aspect.needs is None and not aspect.is_refusal and self._specific_to(unit) >= NAMED:
            return True
        return self._is_in_named_section(unit)

    def _is_named_row(self, unit: Unit) -> bool:
        return bool(unit.name) and _names_row(self.asked.question, unit.name)

    def _is_in_named_section(self, unit: Unit) -> bool:
        return names_heading(self.asked.question, unit.heading, unit.title)

    def _is_nearly_as_good(self, unit: Unit, best: Unit, aspect: Aspect | None) -> bool:
        if unit.heading != best.heading and self._is_in_named_section(best):
            return False
        if self._is_named_row(best) and not self._is_named_row(unit):
            return False
        is_beside = self.asked.is_wide or _is_beside(unit, best)
        nearly = NEARLY if is_beside else NEARLY_ELSEWHERE
        return (
            self.score(unit, aspect) >= nearly * self.score(best, aspect)
            and self._covered_by(unit) >= NEARLY_COVERED * self._covered_by(best)
            and (aspect is None or aspect.held_by(unit) >= aspect.held_by(best))
            and (aspect is None or aspect.is_soft or aspect.fit(unit) >= NEARLY * aspect.fit(best))
        )


def _is_beside(unit: Unit, other: Unit) -> bool:
    """Under one heading; where a document has no headings, in one paragraph or in the same list or table."""
    if unit.heading or unit.heading != other.heading:
        return unit.heading == other.heading
    return (
        unit.paragraph == other.paragraph
        or (unit.is_row and other.is_row)
        or unit.in_list == other.in_list > 0
    )


def _names_row(question: str, name: str) -> bool:
    """Whether a question has a row's first cell: a Chinese one as it stands, all words of an English one."""
    folded = question.casefold()
    if HAN.search(name):
        return name.casefold() in folded
    return tokens_of(name.casefold()) <= tokens_of(folded)


_HEADING_COUNTS, _TITLE_COUNTS, _LIST_COUNTS = 0.9, 0.85, 0.3
_SPECIFIC_COUNTS, _NAMED_COUNTS = 0.6, 0.8
MIN_LISTED = 3
# The share of the words that tell sentences apart, from which a sentence, or a section, is about just them.
NAMED, NAMED_BY_HEADING = 0.75, 0.6
# The share of the best score that a further sentence must reach, under the same heading and elsewhere.
NEARLY, NEARLY_ELSEWHERE = 0.75, 0.9
NEARLY_COVERED, LISTED_NEARLY = 0.7, 0.5

# A sentence about the document, not about its subject.
_ABOUT_ITSELF = re.compile(
    r"本(?:一览|指南|汇总|日历|手册|摘要|文件|说明)|可以?先看|详见|参见|请见|以各自的?办法为准|^内部资料"
    r"|^this (?:guide|summary|page|document)\b|chinese text prevails|see below|^internal\b",
    re.IGNORECASE,
)


def _other_period(question: str, unit: Unit) -> float:
    """A sentence about years that the question does not name is worse than one about no year."""
    asked = {figure.year for figure in figures(question) if isinstance(figure, Date) and figure.year}
    said = {figure.year for figure in unit.figures if isinstance(figure, Date) and figure.year}
    return 0.3 if asked and said and not asked & said else 0.0


def _repeats(unit: Unit, other: Unit) -> bool:
    ours, theirs = _pieces(unit.whole), _pieces(other.whole)
    return len(ours & theirs) >= 0.7 * max(1, min(len(ours), len(theirs)))


def _pieces(text: str) -> set[str]:
    """English words, and pairs of Chinese characters."""
    folded = text.casefold()
    pairs = {folded[at : at + 2] for at in range(len(folded) - 1)}
    return set(tokens_of(folded)) | {pair for pair in pairs if len(HAN.findall(pair)) == 2}


# What a sentence needs beside it

# A sentence that begins so says nothing without the one before it.
_LEANS_BACK = re.compile(
    r"^(?:但|但是|不过|然而|其|该|此|上述|前款|前述|以上|它|他们|并且|同时|否则|因此|所以|对此|其中|超过部分"
    r"|除此之外|另外|此外|符合条件的)|这个|这项|这些|这类|上述|前款"
    r"|^(?:however|but|it|this|these|those|they|such|otherwise|therefore|the former"
    r"|the latter|in that case|also)\b",
    re.IGNORECASE,
)
# A sentence that begins so limits the one before it.
_LIMITS = re.compile(
    r"^(?:但|但是|不过|然而|除外|前款|上述.{0,8}(?:不|除)|有下列情形.{0,6}除外|不包括|其中)"
    r"|^(?:however|but|except|unless|this does not|these do not|it does not|the .{0,20} does not apply"
    r"|otherwise)\b",
    re.IGNORECASE,
)


def _with_neighbours(chosen: Sequence[Unit], units: Sequence[Unit]) -> list[Unit]:
    """The chosen sentences, each with what it needs, as far as there is room: the first ones first."""
    places = {(unit.document, unit.at): unit for unit in units}
    kept: list[Unit] = []
    for unit in chosen:
        group = [*_before(unit, places), unit, *_after(unit, places)]
        new = [one for one in group if one not in kept]
        room = (MAX_LISTED if unit.is_item or unit.is_row else MAX_SENTENCES) - len(kept)
        if len(new) > room:  # what only announces a sentence can be spared
            new = [one for one in new if not one.opens]
        kept += new if len(new) <= room else []
    return kept


def _before(unit: Unit, places: Mapping[tuple[int, int], Unit]) -> list[Unit]:
    before = places.get((unit.document, unit.at - 1))
    if before is None or not _go_together(before, unit):
        return []
    if before.opens:
        return [before]
    return [*_before(before, places)[-1:], before] if _LEANS_BACK.search(unit.text) else []


def _after(unit: Unit, places: Mapping[tuple[int, int], Unit]) -> list[Unit]:
    after = places.get((unit.document, unit.at + 1))
    is_limit = after is not None and _go_together(unit, after) and _LIMITS.search(after.text)
    return [after] if after and is_limit else []


def _go_together(unit: Unit, other: Unit) -> bool:
    return unit.heading == other.heading and unit.language == other.language and not other.is_row
