"""What a message states, clause by clause: what it affirms, what it denies, what it names.

Pure and deterministic. A clause that asks or supposes something states nothing. Texts are folded first
(width, case, traditional characters), so what is read from them is too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodes.contracts import Language
from nodes.reading.folding import has_chinese, squeeze


@dataclass(frozen=True)
class Clause:
    text: str
    is_question: bool = False
    is_supposed: bool = False

    @property
    def states(self) -> bool:
        return not (self.is_question or self.is_supposed)

    @property
    def unsupposed(self) -> str:
        """What of it is not supposed: "goes numb" of "goes numb if I sit"."""
        return _unsupposed(self.text) if self.is_supposed else self.text


@dataclass(frozen=True)
class Heard:
    """A text as read: `whole` is folded, `raw` as it came."""

    raw: str
    whole: str
    clauses: tuple[Clause, ...]
    language: Language

    @property
    def stated(self) -> tuple[str, ...]:
        return tuple(clause.text for clause in self.clauses if clause.states)

    @property
    def asks(self) -> bool:
        return any(clause.is_question for clause in self.clauses)


_BREAKS = re.compile(
    r"(?<!\d)[,，、](?!\d)|(?<=\d)[,，、](?!\d)|(?<!\d)[,，、](?=\d)|[;；。!！\n]|(?<=[?？])"
    r"|(?<!\d)\.(?!\d)|\.(?=\s|$)|但是?|(?<![喘透])不过|然而|而且|另外|\bhowever\b"
    r"|\bbut\b(?!\s+(?:not any ?more|no longer|not now|now not))"
)
_QUESTION = re.compile(
    r"[?？]|吗|呢$|(?<![不没])怎么(?!也)|怎样|如何|为什么|为何|是不是|会不会|要不要|能不能|可不可以|需不需要|有没有|是否|(?<!没)(?<!没有)什么|哪"
    r"|多久能|多少钱|几天能"
    r"|^(?:is|are|do|does|did|can|could|should|will|would|may|what|how|why|which|who)\b"
    r"|^(?:when|where) (?:is|are|was|were|do|does|did|can|could|should|will|would|may)\b"
)
_SUPPOSED = re.compile(
    r"会不会|是否会|会[^,]{0,8}吗|如果|假如|假设|要是|万一|的话$|\b(?:if|suppose|in case)\b"
    r"|^(?:can|could|may|might|will|would) (?:i|it|this|that|there)"
    r" (?:get|be|become|cause|lead|develop|turn)\b"
)


_WHETHER = re.compile(r"会不会|是否会|会[^,]{0,8}吗")
_CONDITION = re.compile(r"如果|假如|假设|要是|万一|\b(?:if|suppose|in case)\b")
_THEN = re.compile(r"[就便](?!会|要|该|得|可能|去|是|能|可以)")
_COULD_BE = re.compile(
    r"\b(?:would|will|could|might|may|should|can|what|how|worried|afraid)\b|['’]ll\b|的话$"
)


def _unsupposed(text: str) -> str:
    """What stands before a condition, or before what is asked of it ("卡住会不会要手术"), and what follows
    from a condition as a rule ("要是走久了就麻木").
    """
    condition = _CONDITION.search(text)
    if condition is None:
        whether = _WHETHER.search(text)
        return text[: whether.start()] if whether else ""
    before = text[: condition.start()]
    then = _THEN.search(text, condition.end())
    after = text[then.end() :] if then and not _QUESTION.search(text) else ""
    return after or ("" if _COULD_BE.search(before) else before)


def hear(text: str, language: Language) -> Heard:
    """`language` is that of the conversation; it decides the words of values."""
    whole = squeeze(text)
    clauses = [piece.strip() for piece in _BREAKS.split(whole) if piece and piece.strip()]
    return Heard(text, whole, tuple(_clause(piece) for piece in clauses), language)


def _clause(text: str) -> Clause:
    return Clause(text, bool(_QUESTION.search(text)), bool(_SUPPOSED.search(text)))


# Affirmed or denied

_DENIES = re.compile(
    r"没有?(?!多久)|无(?!缘|意|论)|未|别|并非|否认|排除|不(?!久|小心|但|仅|光|只|过|停|断|知)"
    r"|\b(?:no|not|never|without|none|neither|nor|denies|deny|negative for|\w+n['’]t)\b"
)
_AFFIRMS = re.compile(
    r"(?<!没)有|很|挺|非常|特别|比较|更|开始|出现|伴随?|感觉|\b(?:some|bit|little|very|still|and then)\b"
)
_DENIED_AFTER = re.compile(
    r"(?:现象|情况|症状)?(?:倒|也|都|是|:|：|-|\s)*(?:没有过?|没|无|否|不明显|none|no|negative)$"
    r"|(?:现在|目前|还|都|也|一直|从来)*(?:没有?|未|不)再?(?:[交缴买上办领拿]|缴纳|办理|参加|领取)(?:了|过)?$"
    r"|\s*(?:(?:is|was|are|were|has|have)(?:n['’]t|\s+not)|not|never)\s+(?:\w+\s+)?(?:paid|covered|received)\b"
)
_GONE_AFTER = re.compile(
    r"胀?(?:现在|已经|都)*(?:消了|退了|好了|消失了)$"
    r"|[^,]{0,16}\b(?:gone|went (?:down|away)|subsided|disappeared|not any ?more|no longer|not now)\b"
)
NOT_GONE = re.compile(
    r"(?:没有?|未|不)(?:见|怎么|完全|全|太|再)?(?:消(?!息)|退|好(?!意|像))"
    r"|(?:\b(?:not|never)|n['’]t)\s+(?:\w+\s+){0,3}?(?:gone|go|down|away|subsid\w*|disappear\w*|resolv\w*)\b"
)
_DOUBLY_DENIED = re.compile(
    r"(?:不是|并非|没有|不会)(?:不|没有?|未)$|不(?:能说没有?|能?否认|能?排除)"
    r"|\b(?:not|never) (?:not|without|un)$"
    r"|(?:\b(?:cannot|not)|n['’]t) (?:say|deny|rule out)\b"
)


def polarity(clause: str, words: "re.Pattern[str]", *, ever: bool = False) -> bool | None:
    """Whether the clause affirms the words (True), denies them (False), or does not speak of them.

    `ever`: what is said to be gone was there, and that counts.
    """
    verdict = None
    for found in words.finditer(clause):
        rest, before = clause[found.end() :], clause[: found.start()]
        is_gone = not ever and _GONE_AFTER.match(rest) and not NOT_GONE.search(rest)
        verdict = not (is_gone or _DENIED_AFTER.match(rest) or _is_denied(before))
    return verdict


def is_doubly_denied(clause: str, words: "re.Pattern[str]") -> bool:
    """Whether it denies what denies the words: which of both was meant is open."""
    return any(_DOUBLY_DENIED.search(clause[: found.start()].rstrip()) for found in words.finditer(clause))


def _is_denied(before: str) -> bool:
    """The nearest mark before the words decides."""
    if _DOUBLY_DENIED.search(before.rstrip()):
        return False
    denials = [found.end() for found in _DENIES.finditer(before)]
    affirmations = [found.start() for found in _AFFIRMS.finditer(before)]
    return bool(denials) and (not affirmations or affirmations[-1] < denials[-1])


_FILL = r"(?:啊|呀|哦|呢|的|了|吧|过|嗯|呃|就|,|，|。|\.|!|\s)*"
_BE_NOT = r"(?:is|are|was|were|do|does|did|have|has|had)(?:n['’]t| not)"
_NO_EN = (
    rf"no(?:[ ,]+(?:not(?: at all| really)?|nothing|none|(?:there|it|i|they|we) {_BE_NOT}|never))?"
    r"|not (?:at all|really)|nothing(?: (?:at all|in particular|special|really|happened|like that))?"
    r"|i don['’]t (?:think|believe) so|(?:not|none|nothing|no) that i (?:can )?(?:see|know(?: of)?|recall"
    r"|remember|noticed|am aware of|think of)"
)
_YES_EN = (
    r"(?:yes|yeah|yep|y)(?:[ ,]+(?:(?:it|there|i|they|we) (?:is|are|was|were|do|does|did|have|has|had)"
    r"|(?:just )?a (?:bit|little)(?: bit)?|slightly|somewhat|some|definitely|i think(?: so)?))?"
    r"|i (?:do|did|have)|(?:just )?a (?:bit|little)(?: bit)?|slightly|somewhat|definitely|i think so"
    r"|of course"
)
_UNKNOWN_EN = (
    r"(?:i )?(?:don['’]t|do not|can['’]t|cannot) (?:know|remember|recall|say|tell)"
    r"|(?:i['’]?m |i am )?not sure|no idea|no clue|unknown|(?:it['’]s )?hard to (?:say|tell)|dunno"
)
_BARE_NO = re.compile(
    rf"{_FILL}(?:都|也|完全|暂时|目前|应该)*{_FILL}"
    rf"(?:没有|没|无|不|否|不是|不会|不用|nope|nah|none|neither|never|{_NO_EN}){_FILL}"
)
_BARE_YES = re.compile(
    rf"{_FILL}(?:都)?{_FILL}(?:有|是|是的|对|对的|会|嗯+|有一?点|有一?些"
    rf"|{_YES_EN}){_FILL}"
)
_BARE_UNKNOWN = re.compile(
    rf"{_FILL}(?:我)?(?:也)?(?:不知道|不清楚|不确定|不太清楚|说不清|说不上来|不记得|忘了"
    rf"|{_UNKNOWN_EN}){_FILL}"
)

Label = Mapping[Language, str]
UNKNOWN: Label = {"zh": "不清楚", "en": "unknown"}
YES: Label = {"zh": "有", "en": "yes"}
NO: Label = {"zh": "无", "en": "no"}


def is_bare_no(text: str) -> bool:
    return _BARE_NO.fullmatch(text) is not None


def is_bare_yes(text: str) -> bool:
    return _BARE_YES.fullmatch(text) is not None


def is_bare_unknown(text: str) -> bool:
    return _BARE_UNKNOWN.fullmatch(text) is not None


# Lists that only grow


@dataclass(frozen=True)
class Lexicon:
    """Things that may be named, each with its label; `denied` ones are not collected."""

    entries: Sequence[tuple["re.Pattern[str]", Label]]

    def named_in(self, clauses: Sequence[str], language: Language, *, ever: bool = False) -> list[str]:
        """`ever`: also what is said to be gone."""
        return [
            label[language]
            for pattern, label in self.entries
            if any(polarity(clause, pattern, ever=ever) for clause in clauses)
        ]

    def same(self, name: str) -> frozenset[str]:
        """All labels of the thing that `name` labels, in every language."""
        for _, label in self.entries:
            if name in label.values():
                return frozenset(label.values())
        return frozenset({name})


def lexicon(**entries: tuple[str, str]) -> Lexicon:
    """English label (underscores read as blanks) -> (Chinese label, pattern)."""
    return Lexicon(
        [
            (re.compile(pattern), {"zh": zh, "en": en.replace("_", " ")})
            for en, (zh, pattern) in entries.items()
        ]
    )


def with_added(known: Sequence[str], found: Sequence[str], words: Lexicon) -> list[str]:
    """`known` as it is, then what is new; nothing is dropped, and no thing is listed in two languages."""
    names = list(known)
    for name in found:
        if not words.same(name) & set(names):
            names.append(name)
    return names


def language_of(text: str, *earlier: str | None) -> Language:
    """The language of the text; where it has no letters ("6"), that of what was said before it."""
    for candidate in (text, *earlier):
        if candidate and any(character.isalpha() for character in candidate):
            return "zh" if has_chinese(candidate) else "en"
    return "zh"
