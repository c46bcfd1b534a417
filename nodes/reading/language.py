"""Which language a question is in: Chinese first, and English where its own words are.

Names decide nothing: an English question about a company or policy that it names in Chinese is English. What
counts is what the question is built with: words that ask, point and join.
"""

import re

from nodes.contracts import Language
from nodes.reading.folding import MASK, has_chinese, squeeze


def detect_language(text: str, *, plain: str | None = None) -> Language:
    """`plain` is the squeezed text with known names blotted out, where names are known.

    Chinese wherever it is built with Chinese words, and wherever nothing but names could tell.
    """
    if not has_chinese(text):
        return "en"
    rest = _QUOTED.sub(MASK, squeeze(text) if plain is None else plain)
    english = len(_ENGLISH.findall(rest))
    if not has_chinese(rest):
        return "en" if english else "zh"
    return "en" if english > 1 and not _CHINESE.search(rest) else "zh"


_QUOTED = re.compile(r"《[^《》]*》|\"[^\"]*\"|“[^“”]*”|「[^「」]*」|『[^『』]*』")
# Words of a Chinese sentence that hardly stand in a name.
_CHINESE = re.compile(
    r"什么|怎[么样]|如何|多[少久长大高]|几[个家年天次月]|哪|谁|[吗呢]|[吧啊]$|(?<!申)请|告诉|介绍|查一?下|查询"
    r"|我|[你您]|一下|是多少|有没有|是不是|能不能|可不可以|是否|能否|需要|为何|分别|比较|对比|列出|显示"
)
_ENGLISH = re.compile(
    r"(?<![a-z])(?:what|what's|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would"
    r"|should|may|must|has|have|had|the|an?|of|in|for|on|to|from|by|with|about|between|and|or|than|much|many"
    r"|tell|show|give|list|explain|compare|describe|please|i|we|you|me|my|our|it|its|that|this|there)(?![a-z])"
)
