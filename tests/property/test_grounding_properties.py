"""What holds for every amount, date and text: form never decides, value always does, no character is lost."""

from calendar import month_name
from datetime import date
from decimal import Decimal
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from nodes.answer.figures import figures
from nodes.answer.grounding import SentenceBuffer, check_sentence, split_sentences
from nodes.answer.numerals import han_value

_DIGITS = "零一二三四五六七八九"


def _in_chinese(number: int) -> str:
    """An independent writer of Chinese numerals below 100,000,000."""
    if number >= 10_000:
        high, low = divmod(number, 10_000)
        gap = "零" if 0 < low < 1000 else ""
        return f"{_in_chinese(high)}万{gap}{_in_chinese(low) if low else ''}"
    text, is_gap = "", False
    for size, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, size)
        if digit:
            text += ("零" if is_gap and text else "") + _DIGITS[digit] + name
            is_gap = False
        else:
            is_gap = bool(text)
    return text or "零"


@st.composite
def _amount(draw: st.DrawFn) -> int:
    """An amount in yuan that is a whole number of 万元."""
    return draw(st.integers(2, 9_999)) * 10_000


def _forms(yuan: int) -> list[str]:
    wan = yuan // 10_000
    million = (Decimal(yuan) / 1_000_000).normalize()
    return [
        f"{wan}万元",
        f"{wan:,} 万元",
        f"{yuan}元",
        f"{yuan:,}元",
        f"{Decimal(yuan) / 100_000_000:f}亿元",
        f"{million:f} million yuan",
        f"RMB {million:f} million",
        f"{_in_chinese(wan)}万元",
        "".join(chr(ord(digit) + 0xFEE0) for digit in str(wan)) + "万元",
    ]


def _passes(said: str, evidence: str) -> bool:
    sentence = f"补贴为{said}[C1]。"
    return check_sentence(sentence, evidence_texts=[evidence], question="补贴？", citations_available=1).ok


@given(_amount(), st.integers(0, 8), st.integers(0, 8))
def test_every_form_of_an_amount_supports_every_other(yuan: int, said: int, known: int) -> None:
    forms = _forms(yuan)
    assert _passes(forms[said], f"补贴标准为{forms[known]}。")


@given(_amount(), _amount(), st.integers(0, 8), st.integers(0, 8))
def test_no_form_of_another_amount_does(yuan: int, other: int, said: int, known: int) -> None:
    if yuan != other:
        assert not _passes(_forms(yuan)[said], f"补贴标准为{_forms(other)[known]}。")


@given(st.integers(1, 99_999_999))
def test_chinese_numerals_read_back(number: int) -> None:
    assert han_value(_in_chinese(number)) == number


_DATES = st.dates(date(1990, 1, 1), date(2089, 12, 31))


@given(_DATES, _DATES, st.integers(0, 4), st.integers(0, 4))
def test_dates_are_told_apart(said: date, known: date, form: int, other: int) -> None:
    forms = ("{0}年{1}月{2}日", "{0}-{1:02}-{2:02}", "{0}/{1}/{2}", "{3} {2}, {0}", "{2} {3} {0}")

    def written(day: date, at: int) -> str:
        return forms[at].format(day.year, day.month, day.day, month_name[day.month])

    assert _passes(written(said, form), f"自{written(said, other)}起。")
    assert _passes(written(said, form), f"自{written(known, other)}起。") == (said == known)


_TEXT = st.text(alphabet='甲乙0123456789.,，。！？!? \n[]C12"“”万元%NoA-;；', max_size=80)


@given(_TEXT)
@example("20\n万元。")
@example("a. [C1]b")
@example("\n\n。\n")
def test_sentences_joined_are_the_text(text: str) -> None:
    assert "".join(split_sentences(text)) == text


@given(_TEXT, st.lists(st.integers(0, 80), max_size=6))
def test_the_pieces_of_a_stream_do_not_matter(text: str, cuts: list[int]) -> None:
    buffer, places = SentenceBuffer(), sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    streamed = [sentence for a, b in pairwise(places) for sentence in buffer.feed(text[a:b])]
    assert [*streamed, *buffer.flush()] == split_sentences(text)


@given(st.text(max_size=200))
def test_no_text_makes_the_guard_fail(text: str) -> None:
    figures(text)
    check_sentence(text, evidence_texts=[text], question=text, citations_available=1)


@given(st.text(alphabet="0123456789年月日万元%个工作日第条号至-.,，。 一二三十百千", max_size=60))
def test_a_text_supports_itself(text: str) -> None:
    verdict = check_sentence(text, evidence_texts=[text], question="", citations_available=1)
    assert not [item for item in verdict.unsupported if item.what == "figure"]
