"""Whether a condition that can pass is there now: what is told of earlier, of now, and of its end.

Pure and deterministic. A reply that leaves it open (somebody else's, not certain, said of earlier alone) is
UNSURE, and is asked again: nobody's symptom is taken away by a guess.
"""

import re
from collections.abc import Sequence
from typing import Literal

from api.contract.hearing import NOT_GONE, polarity

Standing = Literal["there", "not there", "unsure"]
_Told = Literal["there", "recurs", "was there", "not there", "was not there", "open"]

_EARLIER = re.compile(
    r"(?<!比)(?:之前|以前|原来|昨天|前天|前几天|前两天|前阵子|上周|上个月)|原先|曾经|当时|那时|起初|一开始|刚开始"
    r"|(?<!than )(?<!as )\b(?:before|yesterday|last \w+)\b"
    r"|\b(?:used to|previously|earlier|once|at first|initially|had been)\b"
)
_HAS_BEEN = re.compile(r"过$|过(?=[已后])")
_NOW = re.compile(r"现在|目前|今天|如今|\b(?:now|today|currently|at the moment)\b")
_OTHERS = re.compile(
    r"[我他她](?:的)?(?:妈|爸|母亲|父亲|爷|奶|妻子|丈夫|老公|老婆|孩子|儿子|女儿|哥|姐|弟|妹|朋友|同事)"
    r"|[他她]|别人|邻居|\b(?:he|she|his|hers?|(?:my|a) (?:mother|father|mum|mom|dad|wife|husband|son"
    r"|daughter|brother|sister|friend|colleague|neighbou?r)(?:['’]s)?)\b"
)
_WAS = re.compile(r"\b(?:was|were|had)\b")
_UNCERTAIN = re.compile(
    r"可能|好像|似乎|应该|大概|也许|估计|算是|不知道|不确定|不清楚|吧$"
    r"|\b(?:maybe|perhaps|probably|possibly|might|may|seems?|not sure|i (?:think|guess|believe|hope))\b"
)
_EITHER = re.compile(r"没有不|\b(?:no longer|never|not) not\b")  # nobody can tell which of two was meant
_PARTLY = re.compile(
    r"[消退]了?(?:一半|一点|一些|大半|不少|很多|多了|些了|差不多)|[消退]得?差不多|快[消退]"
    r"|\b(?:gone|went) (?:down )?(?:a bit|a little|somewhat|partly|half)\b|\b(?:mostly|almost|nearly) gone\b"
)
_RECURS = re.compile(
    r"反复|时好时坏|有时|每次|一[^,]{1,4}就|\b(?:on and off|c[oa]mes? and (?:goes?|went)|sometimes|whenever"
    r"|every time|when i)\b"
)
_STILL = re.compile(r"又(?!没|不)|还[是会]?(?![没不])|仍|依然|\b(?:again|still)\b")
# A clause that says it of what was spoken of last: nothing in it names another thing or another side.
_LEAD_ZH = r"(?:但是?|可是?|后来|然后|现在|目前|今天|如今|已经|早就|慢慢|渐渐|自己|就|都|也|全|完全|它)*"
_LEAD_EN = (
    r"(?:(?:but|and|then|now|today|it['’]?s?|that|there|is|has|have|had"
    r"|all|completely|since|already|just)\s+)*"
)
_GONE = re.compile(
    rf"{_LEAD_ZH}(?:消了?肿?|退|消失|[消退]下去|下去|好|没有?|没事|正常|恢复|停|断|不[肿疼痛])(?:了|啦)"
    rf"|{_LEAD_ZH}(?:没有?|没事|正常)"
    rf"|{_LEAD_EN}(?:(?:not|no)\s+(?:any ?more|longer|now|today)(?:\s+is)?"
    r"|(?:is|does|do|has)(?:n['’]t| not)(?:\s+any ?more)?|none"
    r"|gone(?: (?:down|away))?|went (?:down|away)|subsided|disappeared|resolved|healed"
    r"|fine|ok|okay|normal|back to normal)(?:\s+(?:again|now|today|any ?more))?"
)
_BACK = re.compile(
    rf"{_LEAD_ZH}又?(?:有|是|来|复发|犯)了?|{_LEAD_EN}(?:is|there is|came back)(?:\s+(?:again|now))?"
)
_CORE = re.compile(
    r"[消退好没断停]了|没有了|不[肿疼痛]了|好[多一些]|没事|正常"
    r"|\b(?:gone|went|subsided|disappeared|resolved|fine|normal|better)\b"
)


def standing(clauses: Sequence[str], words: "re.Pattern[str]") -> Standing | None:
    """Of all clauses; a later one weighs more, and what was earlier less than what is. None: not told."""
    now: _Told | None = None
    for clause in clauses:
        told = _told_in(clause, words, now)
        if told is None or (told == "open" and now in ("there", "recurs")):
            continue
        if told.startswith("was ") and now in ("there", "not there", "recurs"):
            continue
        now = told
    if now is None:
        return None
    return "there" if now in ("there", "recurs") else "not there" if now == "not there" else "unsure"


def _told_in(clause: str, words: "re.Pattern[str]", before: _Told | None) -> _Told | None:
    mentions = list(words.finditer(clause))
    if NOT_GONE.search(clause):
        return "there" if mentions or before in ("there", "was there") else None
    if _GONE.fullmatch(clause):
        return "not there" if mentions or before in ("there", "was there") else None
    if mentions:
        return _told_by_name(clause, words, clause[mentions[-1].end() :])
    if before in ("was there", "was not there", "not there") and _BACK.fullmatch(clause):
        return "there"
    return "open" if before and _CORE.search(clause) else None


def _told_by_name(clause: str, words: "re.Pattern[str]", rest: str) -> _Told:
    is_earlier = bool(_EARLIER.search(clause)) and not _NOW.search(clause)
    is_over = is_earlier or bool(_HAS_BEEN.search(clause))
    is_theirs = bool(_OTHERS.search(clause)) and (is_over or bool(_WAS.search(clause)))
    if is_theirs or _EITHER.search(clause) or (_UNCERTAIN.search(clause) and _CORE.search(clause)):
        return "open"
    if _RECURS.search(clause):
        return "recurs"
    if not _PARTLY.search(clause) and _GONE.fullmatch(rest.lstrip("过了胀得,- ")):
        return "not there"
    if not polarity(clause, words) and not _PARTLY.search(clause):
        return "was not there" if is_earlier else "not there"
    return "was there" if is_over and not _STILL.search(clause) else "there"
