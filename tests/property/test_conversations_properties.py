"""Titles, cursors and mended text, for any input."""

from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from checkpoint.conversations.cursors import decode_cursor, encode_cursor
from checkpoint.conversations.errors import BadCursorError
from checkpoint.conversations.models import storable, storable_json
from checkpoint.conversations.sources import show
from checkpoint.conversations.titles import title_of

words = st.text(alphabet=st.characters(codec=None), max_size=200) | st.lists(
    st.sampled_from(["中", "e\u0301", "👨‍👩‍👧", "🇨🇳", " ", "\n", "\u2028", "a"]), max_size=120
).map("".join)


@given(words, st.integers(0, 90))
def test_a_title_is_whole_graphemes_of_the_questions_beginning(question: str, most: int) -> None:
    title = title_of(question, most)
    line = " ".join(question.split())
    assert len(title) <= most
    assert line.startswith(title)
    rest = regex.findall(r"\X", line)[: len(regex.findall(r"\X", title))]
    assert "".join(rest) == title or title == ""
    assert "\n" not in title


@given(words)
def test_a_title_stops_only_where_the_next_grapheme_has_no_room(question: str) -> None:
    title, line = title_of(question, 20), " ".join(question.split())
    following = regex.findall(r"\X", line[len(title) :].lstrip())
    if following:
        assert len(title) + len(following[0]) + 1 > 20


keys = st.lists(st.integers(0, 2**63 - 1) | st.text(max_size=40), min_size=1, max_size=3)
listings = st.lists(st.text(max_size=10), min_size=1, max_size=3)


@given(listings, keys)
def test_a_cursor_comes_back(listing: list[str], key: list[Any]) -> None:
    cursor = encode_cursor(listing, key)
    if len(cursor) <= 512:
        assert decode_cursor(cursor, listing, [type(part) for part in key]) == key


@given(listings, listings, keys)
def test_a_cursor_belongs_to_one_listing(one: list[str], other: list[str], key: list[Any]) -> None:
    cursor, kinds = encode_cursor(one, key), [type(part) for part in key]
    if one != other:
        with pytest.raises(BadCursorError):
            decode_cursor(cursor, other, kinds)


@given(st.text(max_size=100) | st.binary(max_size=60).map(lambda raw: raw.hex()))
def test_rubbish_is_no_cursor(cursor: str) -> None:
    with pytest.raises(BadCursorError):
        decode_cursor(cursor, ["x"], (int,))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters(codec=None)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(alphabet=st.characters(codec=None)), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_mended_values_can_be_stored_and_mended_again_stay(value: Any) -> None:
    mended = storable_json(value)
    assert storable_json(mended) == mended
    text = repr(mended)
    assert "\\x00" not in text
    str(mended).encode()


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00")))
def test_ordinary_text_is_not_touched(text: str) -> None:
    assert storable(text) == text


sources = st.lists(
    st.fixed_dictionaries(
        {
            "label": st.sampled_from(["C1", "C2"]),
            "document_id": st.sampled_from("abc"),
            "version": st.sampled_from("12"),
            "title": st.just("标题"),
            "passage": st.just("原文"),
        }
    ),
    max_size=5,
)


@given(st.text(max_size=20), sources, st.sets(st.sampled_from("abc")))
def test_nothing_of_a_withdrawn_source_is_shown(content: str, stored: list[Any], seen: set[str]) -> None:
    shown = show(content, stored, lambda wanted: all(key[0] in seen for key in wanted), "zh")
    withdrawn = [source for source in stored if source["document_id"] not in seen]
    assert shown.is_withdrawn == bool(withdrawn)
    assert len(shown.sources) == len(stored)
    for source, before in zip(shown.sources, stored, strict=True):
        if before["document_id"] in seen:
            assert source == {**before, "available": True}
        else:
            assert source == {"label": before["label"], "available": False}
    if not withdrawn:
        assert shown.content == content
