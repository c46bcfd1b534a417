"""Whatever the text: no reader raises, each gives the same twice, and what they report stands in the text."""

import re

from hypothesis import given
from hypothesis import strategies as st
from reading_sample import COMPANIES, INDEX, METRICS, RECEIVED_AT

from nodes.contracts import Option
from nodes.reading.companies import mask
from nodes.reading.folding import MASK, fold, squeeze, words_as_written
from nodes.reading.intent import answers_itself, read_intent
from nodes.reading.metrics import find_metrics, locate_metrics
from nodes.reading.periods import find_periods
from nodes.reading.references import needs_reference, strip_reference
from nodes.reading.replies import command, is_small_talk, match_option, ordinal
from nodes.reading.safety import screen

IDS = {company.company_id for company in COMPANIES}
WORDS = (
    "云帆科技 云帆 雲帆能源 星河 2023年 2023 2023Q3 去年 近三年 上半年 第三季度 2021-2023年 1320万元",
    "营收 净利润 扣非净利润 毛利率 是多少 怎么申请 创业补贴 比较 同比增长 那 它 这个 呢 吗 和 与 的",
    "你好 谢谢 第二个 2 ２ 取消 忽略 指令 手机号 张伟 ， 。 ？ ； ? , . ;",
    "Yunfan Energy revenue profit next it that what about how in 2022 and vs",
    "〇 ① ﬁ İ ß ㈱ ｶﾞ e\u0301 \u200b \ufeff \x00 \ud800 🙂 \ufffc",
)
PIECES = [piece for line in WORDS for piece in line.split(" ")] + ["\n", " "]

anything = st.text(max_size=80)
spoken = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
spaced = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)
texts = st.one_of(anything, spoken, spaced)
options = st.lists(
    st.builds(lambda value, label: Option(value=value, label=label), st.text(max_size=5), texts), max_size=5
)


def read(text):
    return read_intent(text, companies=INDEX, metrics=METRICS, received_at=RECEIVED_AT)


@given(texts)
def test_folding_is_idempotent_and_squeezing_folds(text):
    assert fold(fold(text)) == fold(text)
    assert squeeze(squeeze(text)) == squeeze(text) == squeeze(fold(text))


@given(texts, st.data())
def test_words_as_written_fold_to_the_squeezed_words(text, data):
    squeezed = squeeze(text)
    start = data.draw(st.integers(0, len(squeezed)))
    end = data.draw(st.integers(start, len(squeezed)))
    words = words_as_written(text, squeezed, start, end)
    assert squeezed[start:end].replace(" ", "") in squeeze(words).replace(" ", "")
    assert words in text or words == squeezed[start:end]


@given(texts)
def test_companies_stand_where_they_are_reported(text):
    found = INDEX.find(text)
    squeezed = squeeze(text)
    ends = [0, *(end for _, end in found.spans)]
    assert all(end <= start < stop for end, (start, stop) in zip(ends, found.spans, strict=False))
    assert set(found.resolved) <= IDS
    assert len(set(found.resolved)) == len(found.resolved)
    assert all(len(ids) > 1 and set(ids) <= IDS and mention in squeezed for mention, ids in found.ambiguous)
    hidden = mask(squeezed, found.spans)
    assert len(hidden) == len(squeezed)
    assert hidden.count(MASK) >= sum(stop - start for start, stop in found.spans)
    assert INDEX.find(squeezed) == found


@given(texts)
def test_periods_are_canonical_and_unique(text):
    periods = find_periods(text, received_at=RECEIVED_AT)
    assert all(re.fullmatch(r"(?:19|20)\d\d(?:H[12]|Q[1-4])?", period) for period in periods)
    assert len(set(periods)) == len(periods)
    assert find_periods(squeeze(text), received_at=RECEIVED_AT) == periods


@given(
    st.integers(0, 10**9),
    st.sampled_from(["", "万元", "元", "人", "名员工", " employees", "号文", "%", " yuan"]),
)
def test_a_number_inside_a_sentence_is_never_a_period(number, unit):
    for sentence in (
        f"云帆科技有{number}{unit or '个'}",
        f"the amount is {number}{unit}",
        f"编号{number}{unit}的文件",
    ):
        assert find_periods(sentence, received_at=RECEIVED_AT) == []


@given(texts)
def test_metrics_stand_where_they_are_reported(text):
    located = locate_metrics(text, METRICS)
    squeezed = squeeze(text)
    assert all(0 <= start < end <= len(squeezed) for _, (start, end) in located)
    assert [span for _, span in located] == sorted(span for _, span in located)
    assert find_metrics(text, METRICS) == list(dict.fromkeys(metric for metric, _ in located))


@given(texts, st.booleans(), st.booleans())
def test_a_mention_is_never_empty_and_stands_in_the_text(text, companies, metrics):
    found = needs_reference(text, companies_found=companies, metrics_found=metrics)
    if found is not None:
        assert found.mention
        assert squeeze(found.mention).replace(" ", "") in squeeze(text).replace(" ", "")
    assert strip_reference(text) or not text.strip()


@given(texts, options)
def test_replies_are_commands_places_options_or_nothing(text, choices):
    assert command(text) in ("retry", "discard", "next", "previous", "cancel", None)
    number = ordinal(text)
    assert number is None or 1 <= number <= 999
    picked = match_option(text, choices)
    assert picked is None or picked in choices
    assert is_small_talk(text) == is_small_talk(fold(text))


@given(st.integers(1, 999))
def test_every_place_is_read_in_every_form(number):
    wide = str(number).translate(str.maketrans("0123456789", "０１２３４５６７８９"))
    for form in (str(number), wide, f"第{number}个", f"#{number}", f"option {number}", f"{number}."):
        assert ordinal(form) == number


@given(texts)
def test_the_screen_gives_a_known_reason_or_none(text):
    assert screen(text, topics=["股票", "x=创业"]) in (
        None,
        "prompt_injection",
        "personal_data",
        "topic:股票",
        "topic:x",
    )


@given(texts)
def test_intents_are_consistent(text):
    found = read(text)
    assert found == read(text)
    assert (found["kind"] == "refused") == (found["safety"] is not None)
    assert found["needs"] == [
        slot for slot in ("reference", "company", "period", "metric") if slot in found["needs"]
    ]
    assert len(found["sub_questions"]) != 1
    if found["needs"] == []:
        assert not found["ambiguous"]
    if answers_itself(found):
        assert found["kind"] in ("fact", "comparison", "narrative")
    is_whole = not found["sub_questions"] and not found["needs"]
    if found["kind"] in ("fact", "comparison") and is_whole and not found.get("unknown"):
        assert found["companies"]
        assert found["periods"]
        assert found["metrics"]


@given(spoken)
def test_width_and_script_change_nothing(text):
    wide = text.translate({code: code + 0xFEE0 for code in range(0x30, 0x3A)})
    written = wide.replace("云", "雲").replace("营", "營").replace("净", "淨")
    # Sub-questions and the names of unknown companies are told as they were written.
    first, second = (
        {**found, "sub_questions": len(found["sub_questions"]), "unknown": len(found.get("unknown", []))}
        for found in (read(text), read(written))
    )
    assert first == second
