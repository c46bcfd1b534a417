"""What is a short reply? A command, a number in a list, the name of an option, or small talk."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal

from nodes.contracts import Option
from nodes.reading.folding import fold, has_chinese, squeeze

Command = Literal["retry", "discard", "next", "previous", "cancel"]

_COMMAND_WORDS: Mapping[Command, str] = {
    "retry": "/retry retry /重试 重试",
    "discard": "/discard discard /放弃 放弃",
    "next": "/next next /下一页 下一页",
    "previous": "/previous previous /prev prev /上一页 上一页",
    "cancel": "/cancel cancel /取消 取消",
}
_COMMANDS: Mapping[str, Command] = {
    word: name for name, words in _COMMAND_WORDS.items() for word in words.split()
}


def command(text: str) -> Command | None:
    """The command that the whole text is, after trimming and folding; a command inside a sentence is none."""
    return _COMMANDS.get(fold(text.strip()).strip())


# --- a place in a list ---

_UNITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0}
_TENS = {"十": 10, "百": 100}
_WORD_NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            ("one", "first"), ("two", "second"), ("three", "third"), ("four", "fourth"), ("five", "fifth"),
            ("six", "sixth"), ("seven", "seventh"), ("eight", "eighth"), ("nine", "ninth"), ("ten", "tenth"),
            ("eleven", "eleventh"), ("twelve", "twelfth"),
        ),
        1,
    )
    for word in words
}  # fmt: skip
_ZH = r"[零〇一二三四五六七八九十百]"
_PICK_ZH = r"请?(?:我?(?:想|要)?(?:选择?|要|看|问的?)?(?:是|就是|就)?)"
_THING_ZH = r"(?:个|家|项|条|种|款|号|间|位|行|选项|公司|问题)"
_ORDINAL_ZH = re.compile(
    rf"{_PICK_ZH}(?:选项|序号|编号|号码)?"
    rf"(?:第(?P<n>\d{{1,3}}|{_ZH}{{1,5}}){_THING_ZH}{{0,2}}|(?P<m>\d{{1,3}}|{_ZH}{{1,5}})(?:号|项)?)(?:吧"
    rf"|的)?"
)
_ORDINAL_EN = re.compile(
    r"(?:(?:i (?:choose|pick|want|mean)|choose|pick|select|it is|it's) )?(?:the )?"
    r"(?:(?:option|number|no\.?|choice|item|nr\.?) ?#? ?|#)?"
    rf"(?P<n>\d{{1,3}}(?:st|nd|rd|th)?|{'|'.join(_WORD_NUMBERS)})(?: (?:one|option|choice|item"
    rf"|company))?(?:,? please)?"
)
_EDGES = " \t\n\"'()[]{}【】「」『』《》〈〉“”‘’.,。，、;:!?~…-"


def ordinal(text: str) -> int | None:
    """The place in a list that the whole text names, from 1 to 999, else None."""
    squeezed = squeeze(text)
    if re.match(r"[-+]|0[.]", squeezed) or re.search(r"\d[.,]\d", squeezed):
        return None
    reply = squeezed.strip(_EDGES)
    found = _ORDINAL_ZH.fullmatch(reply) or _ORDINAL_EN.fullmatch(reply)
    if found is None:
        return None
    groups = found.groupdict()
    number = _number(groups["n"] or groups["m"])
    return number if 1 <= number <= 999 else None


def _number(word: str) -> int:
    """A number from digits ("12", "2nd"), a word or Chinese numerals; 0 where the numerals make none."""
    digits = re.match(r"\d+", word)
    if digits:
        return int(digits[0])
    return _WORD_NUMBERS.get(word) or _chinese_number(word)


def _chinese_number(word: str) -> int:
    """Up to three digits ("二", "十二", "一百零二"); 0 for what is no number."""
    if len(word) == 1 and word in _UNITS:
        return _UNITS[word]
    if not _WELL_FORMED.fullmatch(word):
        return 0
    total, digit = 0, 0
    for character in word:
        if character in _TENS:
            total += (digit or 1) * _TENS[character]
            digit = 0
        else:
            digit = _UNITS[character]
    return total + digit


_DIGIT_ZH = "[一二三四五六七八九]"
_WELL_FORMED = re.compile(rf"(?:{_DIGIT_ZH}百)?(?:[零〇]{_DIGIT_ZH}|{_DIGIT_ZH}?十{_DIGIT_ZH}?)?")

# --- an option by its name ---

_AROUND_NAME = re.compile(
    r"(?:[请我就说想要问选择看查是的吧呢啊那个这家指\s,.。!?:、'“”「」()]|公司|一下|谢谢"
    r"|\b(?:it's|i'm|it|is|i|mean|meant|the|please|choose|pick|select|want|company|thanks|one|of|for|about"
    r"|asking)\b)*+"
)
_FUNCTION_WORDS = frozenset(
    ["the", "of", "and", "or", "a", "an", "in", "on", "to", "for", "is", "it", "at", "by", "co", "no"]
)


def match_option(text: str, options: Sequence[Option]) -> Option | None:
    """The one option that the text names: by its label or value, by part of it, or within a few filler words.

    A part that fits several options names none. A whole question that mentions an option is no reply.
    """
    reply = squeeze(text).strip(_EDGES)
    if not reply:
        return None
    ways = (_is_same, _is_part_of_label, _holds_label)
    for way in ways:
        fitting = [option for option in options if way(reply, option)]
        if fitting:
            return _only(fitting)
    return None


def _only(options: Sequence[Option]) -> Option | None:
    return options[0] if len({option["value"] for option in options}) == 1 else None


def _is_same(reply: str, option: Option) -> bool:
    return reply in (squeeze(option["label"]).strip(_EDGES), squeeze(option["value"]))


def _is_part_of_label(reply: str, option: Option) -> bool:
    if len(reply) < 2 or reply in _FUNCTION_WORDS or not any(c.isalnum() for c in reply):
        return False
    label = squeeze(option["label"])
    if has_chinese(reply[:1]):
        return reply in label
    return re.search(rf"(?<![^\W_]){re.escape(reply)}", label) is not None


def _holds_label(reply: str, option: Option) -> bool:
    label = squeeze(option["label"])
    names = [*re.split(r"[()]", label), label]
    return any(_is_name_within(reply, name.strip(_EDGES)) for name in names)


def _is_name_within(reply: str, name: str) -> bool:
    before, found, after = reply.partition(name) if len(name) > 1 else ("", "", "")
    return bool(found) and all(_AROUND_NAME.fullmatch(words) for words in (before, after))


# --- small talk ---

_TALK = (
    # Chinese
    r"(?:你|您|大家|你们)好(?:呀|啊|吗|哇)?",
    r"哈[喽啰罗]|嗨|喂|在吗|在不在|有人吗|(?:早上|上午|中午|下午|晚上|早)(?:好|安)|晚安|早",
    r"(?:非常|十分|太|真的?|多|好)?(?:感谢|谢谢|谢)(?:啦|了|您的帮助|你的帮助|你|您|帮助|助手)*",
    r"辛苦(?:啦|你了|您了|了)?|不客气|不用谢|没关系|没问题|没事了?|再见|拜拜|拜|回头见|回见",
    r"好[嘞哒]|好的?(?:呀|吧|啊|了|呢)?|行吧?|可以了?|嗯+好?的?|[哦噢啊]+|[哈呵嘿嘻]+",
    r"明白了?|知道了|懂了|收到|了解了?|太好了|太棒了|厉害|真棒|不错|赞|对不起|抱歉|不好意思",
    r"(?:你|您)是(?:谁|什么|机器人|ai|人工智能|真人)(?:啊|呀|吗)?|(?:你|您)叫什么(?:名字)?",
    r"(?:你|您)(?:能|会|可以)(?:帮我)?(?:做|干)?(?:些|点)?什么|(?:你|您)(?:最近|今天)?(?:怎么样|还好吗)",
    r"介绍一下你自己|自我介绍(?:一下)?|小助手|助手",
    # English
    r"hello|hey|hiya|hi+|howdy|greetings|good (?:morning|afternoon|evening|night|day|job)|yo\b|there"
    r"|everyone",
    r"thanks?(?: (?:you|a lot|so much|very much|again|for (?:your|the) help))*|thx|ty\b|cheers"
    r"|much appreciated",
    r"great|nice to meet you|nice|cool|perfect|awesome|wonderful|excellent|well done|good|fine|sure"
    r"|al(?:l ?)?right",
    r"ok(?:ay)?|got it|i see|understood|bye ?bye|goodbye|bye|see you(?: later)?|later|you're welcome"
    r"|no problem",
    r"never ?mind|that's all|sorry|how are you(?: (?:doing|today))*|what's up|sup\b|who are you|what are you",
    r"what(?:'s| is) your name|what can you do(?: for me)?|are you (?:an? )?(?:bot|robot|human|ai|real)",
    r"have a (?:nice|good) day|help|lol|ha(?:ha)+|wow|assistant|yes|yeah|yep|nope|no",
)
# Atomic, so that no text makes the repetition try its pieces in every way.
_SMALL_TALK = re.compile(rf"(?>(?:{'|'.join(_TALK)})\b ?|(?:{'|'.join(_TALK[:9])}))++")
_BETWEEN_TALK = re.compile(r"[^\w' ]+")


def is_small_talk(text: str) -> bool:
    """Whether the whole text is greetings, thanks and the like; also true of a text without a word."""
    squeezed = squeeze(text).replace("’", "'")
    if not any(unicodedata.category(character)[0] in "LN" for character in squeezed):
        return True
    return all(_is_talk(piece.strip()) for piece in _BETWEEN_TALK.split(squeezed) if piece.strip())


def _is_talk(piece: str) -> bool:
    """One piece of small talk, or several run together ("好的谢谢")."""
    return _SMALL_TALK.fullmatch(piece) is not None
