"""Does a text lean on something unsaid? Decided from its own words alone: pronouns, ellipsis, "that one".

A pronoun whose noun stands earlier in the same text leans on nothing; nor do words that only look alike
(其他, 应该, 这个月, "it is possible", "that" joining clauses).
"""

import re
from dataclasses import dataclass

from nodes.reading.folding import squeeze, words_as_written
from nodes.reading.known import Known
from nodes.reading.references_en import FINDERS_EN, asks_for_more_en
from nodes.reading.references_zh import FINDERS_ZH, asks_for_more_zh


@dataclass(frozen=True)
class Reference:
    """The words that are unclear, as the user wrote them."""

    mention: str


def needs_reference(
    text: str, *, companies_found: bool, periods_found: bool = False, metrics_found: bool = False
) -> Reference | None:
    """The mention that needs a referent, or None where the text stands alone."""
    squeezed = squeeze(text)
    known = Known(companies_found, periods_found, metrics_found)
    for find in (*FINDERS_ZH, *FINDERS_EN):
        span = find(squeezed, known)
        if span is not None:
            return Reference(words_as_written(text, squeezed, *span))
    return Reference(text.strip()) if asks_again(text) else None


def asks_for_more(text: str) -> bool:
    """Whether a text only asks to be told more, or more plainly: beside another question it adds none."""
    squeezed = squeeze(text)
    return asks_for_more_zh(squeezed) or asks_for_more_en(squeezed)


def asks_again(text: str) -> bool:
    """Whether a text asks for the same once more ("刚才那个再说一遍", "say that again"), and nothing else."""
    return _AGAIN.fullmatch(squeeze(strip_reference(text))) is not None


def strip_reference(text: str) -> str:
    """The text without opening words that only point backwards ("那", "what about", "and") and without 呢.

    The text unchanged where nothing else would be left.
    """
    squeezed = squeeze(text)
    opening = _OPENING.match(squeezed)
    start = opening.end() if opening else 0
    end = len(_CLOSING.sub("", squeezed))
    if not any(character.isalnum() for character in squeezed[start:end]):
        return text.strip()
    return words_as_written(text, squeezed, start, end)


_OPENING = re.compile(
    r"(?:(?:那一?(?:个(?![体人税股])|些|种|项|条(?![件款例目])|家(?!庭)|件)|那么?|然后|还有|另外"
    r"|(?:刚才|刚刚|上面|前面|之前)(?:你|您|我)?(?:所?(?:说|提|讲)[到过]?的)?)[,、]?)+"
    r"|(?:(?:and|but|so|then|also),? )?(?:what|how) about |(?:and|but|so|then|also),? "
)
_CLOSING = re.compile(r"[呢?!。.]+$")
_AGAIN = re.compile(
    r"(?=.*(?:再|重新).*[遍次]|.*重复)"
    r"(?:[请您你我能再]|麻烦|可以|可不可以|帮我|给我|重新|重复|说|讲|读|念|回?答|一|[遍次下]|刚才|上面|的"
    r"|[话吗吧呢]|那个|答案|内容|好吗|行吗|[,.?!。])+"
    r"|(?=.*(?:\bagain\b|\brepeat\b|once more))"
    r"(?:(?:please|can|could|would|you|say|tell me|repeat|give me|that|it|this|the|last|previous|answer|one"
    r"|again|once more|for me|come)[ ,.?!]*)+"
)
