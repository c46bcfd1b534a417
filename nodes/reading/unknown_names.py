"""A company that a question about figures names and the directory does not hold.

Only what stands where a company stands is taken for a name: just before the period or the figure in Chinese,
before 's, after "of" or at the head of a bare "Name 2023 revenue" in English. Anything else is no name, and
the company is asked for.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from nodes.reading.folding import MASK, has_chinese, words_as_written

Span = tuple[int, int]
# What two names have in common of their characters, in order: of Chinese ones, of others.
CLOSE_ENOUGH = (0.6, 0.8)
MOST_CLOSE = 5


def unknown_company(text: str, squeezed: str, plain: str, figures: Sequence[Span]) -> str | None:
    """The name as written. `plain` is the squeezed text without known names, `figures` where metrics are.

    Beside known names it is found only where a joining word stands between: 云帆科技和华为.
    """
    blotted = plain
    for start, end in figures:
        blotted = blotted[:start] + _FIGURE * (end - start) + blotted[end:]
    if not figures:
        return None
    if MASK in plain:
        found = _beside(blotted)
    else:
        found = (_chinese(blotted) if has_chinese(plain) else None) or _english(blotted)
    return words_as_written(text, squeezed, *found) if found else None


def close_names(name: str, names: Sequence[tuple[str, str]]) -> list[str]:
    """Ids of companies with a name much like this one, the likest first. `names` are (folded name, id)."""
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(name)
    enough = CLOSE_ENOUGH[0 if has_chinese(name) else 1]
    best: dict[str, float] = {}
    for known, company in names:
        matcher.set_seq1(known)
        if matcher.real_quick_ratio() >= enough and (likeness := matcher.ratio()) >= enough:
            best[company] = max(likeness, best.get(company, 0.0))
    return sorted(best, key=lambda company: -best[company])[:MOST_CLOSE]


_FIGURE = "\ufffd"
_YEAR = r"(?:\d{2,4}|[〇零○一二三四五六七八九]{2,4})"

# --- Chinese ---

_LEAD_IN = (
    r"(?:请问一?下?|请|麻烦|帮我|帮忙|给我|我?想|知道|了解|问|查询|查找|查看|查|看看|看|一下|下|告诉我?|说说|那么?"
    r"|关于|对于|你好|您好|好的?|嗯|能不能|可以|能否|可否|列出|显示|提供|统计|计算|算|[,。:;!?、\s])*+"
)
_TIME = (
    rf"(?:(?:在|于|截至|截止)?(?:{_YEAR}(?:财|会计)?年度?|fy ?{_YEAR}|{_YEAR}(?=\s*{_FIGURE})"
    r"|[去今前上本]年度?|近.{1,2}年|[上下]半年|第?[一二三四1-4]季度?|q[1-4]|年报|期间|同期|[,、到至和\s])+)"
)
_NAME_ZH = re.compile(
    rf"(?:^|[,。;!?]){_LEAD_IN}(?P<name>[\u3400-\u9fffa-z0-9·&.()]{{2,24}}?(?:公司)?)(?:的|在|于)?{_TIME}?的?"
    rf"(?:\s|年度|全年|总|合并)*{_FIGURE}"
)
# What says which company is meant, or that none is, and what stands in no name.
_NO_NAME_ZH = re.compile(
    r"公司|企业|我们?|[你您]们?|他们?|它们?|什么|哪|谁|多少|怎|如何|所有|一共|总共|合计|平均|整体|行业|市场|同行"
    r"|对手|国内|国外|海外|境外|部门|上市|同比|环比|变化|超过|低于|高于|达到|以上|以下|是否|有没有|如果|假如|最[高低大小多少新]"
    r"|更[高低大小多少]|增长|下降|利润|收入|成本|费用|数据|数字|金额|情况|信息|指标|财务|业绩|报告|报表|年报|未来|计划|目标"
    r"|^(?:本|该|此|这|那|某|各|每|全|贵(?![州阳])|咱|几|总|历|近|再|还|就|都|也|和|与|跟|按|从|把|被|让|是|有|没|不|要|会)"
    r"|(?:的|市|省|县|区|年|月|季|期|集团|是|有|没|不|了|过|和|与|比|每|吗|呢)$|^[\d.]+$"
)


_BESIDE = re.compile(
    rf"{MASK}(?:公司)?(?:和|与|及|以及|跟|、)(?P<after>[\u3400-\u9fffa-z0-9·&.()]{{2,24}}?(?:公司)?)(?:的|在|于)?{_TIME}?的?"
    rf"(?:\s|年度|全年|总)*{_FIGURE}"
    rf"|(?:^|[,。;!?]){_LEAD_IN}(?P<before>[\u3400-\u9fffa-z0-9·&.()]{{2,24}}?)(?:和|与|及|以及|跟|、){MASK}"
    rf"|{MASK},? (?:and|or|with|vs\.?|versus) (?P<en>[a-z][\w&.-]*(?: [a-z][\w&.-]*){{0,2}}?)"
    rf"(?:['’]s?)?(?= ?(?:in|for|by|during|fy|{_YEAR}|{_FIGURE}|[?.!,]|$))"
)


def _beside(text: str) -> Span | None:
    found = _BESIDE.search(text)
    if found is None:
        return None
    group = next(name for name in ("after", "before", "en") if found[name])
    name = found[group]
    is_none = _NO_NAME_EN.fullmatch(name) if group == "en" else _NO_NAME_ZH.search(_bare(name))
    return None if is_none or _FIGURE in name else found.span(group)


def _bare(name: str) -> str:
    return name.removesuffix("公司").removesuffix("有限")


def _chinese(text: str) -> Span | None:
    found = _NAME_ZH.search(text)
    if found is None or _NO_NAME_ZH.search(_bare(found["name"])):
        return None
    return found.span("name")


# --- English ---

_NO_PART = r"(?!(?:in|for|of|and|during|since|from|by|over|last|this|fy\w*)\b)"
_WORDS = rf"(?:[\u3400-\u9fff·]{{2,24}}|{_NO_PART}[a-z0-9][\w&.-]*(?: {_NO_PART}[\w&.-]+){{0,4}}?)"
_TIME_EN = rf"(?:(?: |in|for|during|fy|the|year|fiscal|last|full|annual|total|{_YEAR}|q[1-4]|h[12])*)"
_NAME_EN = re.compile(
    rf"\b(?P<owner>{_WORDS})['’]s?{_TIME_EN} ?{_FIGURE}"
    rf"|{_FIGURE}+ (?:of|for|at) ?(?P<of>{_WORDS})"
    rf"(?= ?(?:in|for|during|since|from|over|last|this|fy|q[1-4])\b| {_YEAR}\b|[?.!,]|$)"
    rf"|\b(?:did|does) (?P<did>{_WORDS}) (?:have|make|earn|report|post|pay|get)\b"
    rf"|^(?P<bare>{_WORDS}),? ?(?:fy ?)?{_YEAR} {_FIGURE}+[?.!]?$"
)
# Words that name no company; a phrase of them alone, or with one of the last anywhere in it, is none.
_NO_NAME_EN = re.compile(
    r"(?:(?:the|an?|our|my|your|their|his|her|its|this|that|these|those|who|any|some|it|they|we|you|i|he|she"
    r"|business|group|market|years?|quarter|half|month|last|previous|current|today|let|there|here|how|much|many"
    r"|is|was|and|or|total|fiscal|full|annual|yearly|quarterly|overall|consolidated|everyone|\d+)\b ?)+"
    r"|.*\b(?:company|companies|firms?|industry|which|whose|what|all|each|every)\b.*"
)
# "what was Apple's revenue": the name begins after the words that ask.
_ASKING_EN = re.compile(
    r"(?:(?:what|whats|how|much|many|is|was|are|were|did|do|does|tell|me|show|give|list|please|about|the|and"
    r"|also|can|could|you|i|want|need|know|to|see|find|look|up|hi|hello|then|so|but|compare)\b ?)*"
)


def _english(text: str) -> Span | None:
    found = _NAME_EN.search(text)
    if found is None:
        return None
    group = next(name for name in ("owner", "of", "did", "bare") if found[name])
    start, end = found.span(group)
    asking = _ASKING_EN.match(text, start, end)
    start = asking.end() if asking else start
    return None if end - start < 2 or _NO_NAME_EN.fullmatch(text[start:end]) else (start, end)
