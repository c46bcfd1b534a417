"""Which words of two texts say the same: content words, folded, without those that only shape a question.

English: words in the singular. Chinese: pairs of neighbouring characters. Kept apart from the product's own
search words on purpose: labels must not move when the product does.
"""

import re
import unicodedata

_ENGLISH = re.compile(r"[^\W_\u3400-\u9fff]+")
_CHINESE = re.compile(r"[\u3400-\u9fff]+")
_ASKING_ZH = re.compile(
    r"多少|什么|怎么样?|如何|哪[些个家里种项]?|是否|能否|可以|是不是|有没有|请问?|几[个年天家]?|为何|多久"
    r"|[的了吗呢吧啊是在有和与及也都还就要能会请把被对从到这那其它他她我你您们该此]"
)
_STOP = frozenset(
    """a an the and or but of in on at to for from by with about as into than that this these those it its
    they them their he she him his her i you we us my your our me is are was were be been being am do does
    did done doing can could may might must shall should will would have has had having what which who whom
    whose when where why how if then so not no yes too also just there here some any each every more most
    other please tell explain describe give show know like s t re ve d ll m many much""".split()  # noqa: SIM905
)


class ContentWords:
    def of(self, text: str) -> frozenset[str]:
        folded = unicodedata.normalize("NFKC", text).casefold()
        english = (_singular(word) for word in _ENGLISH.findall(folded))
        chinese = _CHINESE.findall(_ASKING_ZH.sub(" ", folded))
        pairs = (run[at : at + 2] for run in chinese for at in range(max(1, len(run) - 1)))
        return frozenset(word for word in (*english, *pairs) if word not in _STOP)

    def added(self, text: str, rewrite: str) -> frozenset[str]:
        """What the rewrite says beyond the text."""
        return self.of(rewrite) - self.of(text)

    def share_said(self, wanted: frozenset[str], text: str) -> float:
        """How much of `wanted` stands in the text; 1 where nothing is wanted."""
        return len(wanted & self.of(text)) / len(wanted) if wanted else 1.0


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
