"""Whether a noun stands before a pronoun in the same text, so that the pronoun leans on nothing unsaid."""

import re

from nodes.reading.folding import MASK

_SAID_BEFORE = re.compile(r"^(?:上|前|刚|方才|先前|之前|以上|你|您)")
_COURTESY = re.compile(
    r"(?:请问一下|请问|麻烦问下|我?想问一下|我?想请?问|我想(?:知道|了解)(?:一下)?|问一下|好的?|嗯+|哦+|谢谢"
    r"|明白了?"
    r"|知道了|懂了|对了|你好|您好|另外|不过|但是?|可是|所以|然后|而且)+"
)
_CLAUSE_END = re.compile(r"[,。;?!、:]")
_SUBSTANCE = re.compile(r"[\u4e00-\u9fff]{4}")


def has_antecedent_zh(before: str, words: str) -> bool:
    """A name before the words, or a whole clause. What was "said before" is never in this text."""
    if _SAID_BEFORE.match(words):
        return False
    *earlier, _ = _CLAUSE_END.split(before)
    return MASK in before or any(
        _SUBSTANCE.search(clause) and not _COURTESY.fullmatch(clause) for clause in earlier
    )


_WORD = re.compile(rf"[a-z][a-z'-]*|{MASK}+|[,;:.?!]|[\u4e00-\u9fff]+")


def _set_of(words: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", words))


_SMALL_WORDS = _set_of(
    """of to in on at by for from with about as into than is are was were be been being am doing done have
    has had i you we me us tell know think want need like get got give show explain describe find say see
    let make made use not yes so too also just still ever even only very more less here there ok okay
    thanks hello well now up out off over under really exactly actually again first second third last next
    same other another one kind sort type way thing things lot bit time it its it's they them their this
    that these those he she his her him until work works mean means happen happens happened differ compare
    start started come came from go went became become take takes cost costs such main best worst good bad
    new old big biggest important different common popular famous apply who's what's where's how's long
    often far much many come else please sure great seems"""
)
_ASKING = _set_of("what who whom whose which when where why how")
_HELPING = _set_of(
    """is are was were has have had can could will would shall should may might must do does did isn't
    aren't wasn't don't doesn't didn't can't won't"""
)
_JOINTS = _set_of(
    """, ; : . ? ! and or but if when while because since after before so then that which who whether although
    unless"""
)
_OWNERS = _set_of("the a an my our your every each all any no some many most both two three")
_SUBJECTS_BEFORE_VERB = _set_of("i you we to they he she please not don't doesn't didn't can't won't")
_BINDING = ("of", "for", "to", "in", "about", "with", "from", "on")


def has_antecedent_en(before: str) -> bool:
    """Whether a noun stands before that a pronoun here can mean.

    Across a comma or a joining word any content word will do. Within one clause it must be marked as a
    subject: an article or an auxiliary beside it, or a plural; and not be what the pronoun belongs to
    ("benefits of it").
    """
    words: list[str] = _WORD.findall(before)
    content = [place for place in range(len(words)) if _is_content(words, place)]
    if any(words[place].startswith(MASK) for place in content):
        return True
    joint = max((place for place, word in enumerate(words) if word in _JOINTS), default=-1)
    return any(place < joint or _is_subject(words, place) for place in content)


def _is_content(words: list[str], place: int) -> bool:
    word = words[place]
    if word.startswith(MASK):
        return True
    if word in _SMALL_WORDS | _ASKING | _HELPING | _JOINTS | _OWNERS:
        return False
    return (place > 0 and words[place - 1] not in _SUBJECTS_BEFORE_VERB) or words[place + 1 : place + 2] != []


def _is_subject(words: list[str], place: int) -> bool:
    before, after = words[place - 1] if place else "", words[place + 1 :]
    if not after or after[0] in _BINDING or before in _SUBJECTS_BEFORE_VERB:
        return False
    if after[0] in _HELPING and before not in _ASKING:
        return True
    plural = _is_plural(words[place]) and before not in _ASKING and place > 0
    return before in _OWNERS | _HELPING or plural


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us", "is"))
