"""Names are injective, and those that others rely on are exact."""

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint import BadRequestError, layout

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", ":", "1:", "2:a", "|"]
)
version = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text


def test_keys_are_as_documented() -> None:
    key = layout.context_key("business-assistant:context:v1:", "example-window")
    assert key == "business-assistant:context:v1:" + sha256(b"example-window").hexdigest()
    assert layout.sibling_key("lease", key) == "business-assistant:lease:v1:{" + key + "}"
    assert layout.context_key("p:", 7) == layout.context_key("p:", "7")


def test_request_fields_are_compact_json() -> None:
    assert layout.request_field("example-request") == b'["request","v1","example-request"]'
    for odd in ('a"b', "中文", "a\\b", "\n"):
        assert json.loads(layout.request_field(odd)) == ["request", "v1", odd]


@given(st.lists(text, max_size=5))
def test_parts_come_back(parts: list[str]) -> None:
    assert layout.read_parts(b"".join(map(layout.part, parts))) == parts


@given(st.tuples(text, text, text), st.tuples(text, text, text))
def test_no_two_fields_are_alike(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    def names(ids: tuple[str, str, str]) -> list[bytes]:
        a, b, c = ids
        return [
            layout.latest_field(a),
            layout.record_field(a, b),
            layout.value_field(a, layout.slot_of(b, c)),
            layout.writes_index_field(a, b),
            layout.writes_field(a, b, c),
            layout.request_field(a),
            layout.META,
            layout.NEWEST_NAMESPACE,
        ]

    assert len(set(names(one))) == 8
    for mine, theirs, used in zip(names(one), names(other), (1, 2, 3, 2, 3, 1, 0, 0), strict=True):
        assert (mine == theirs) == (one[:used] == other[:used])
    assert all(name[:1] in b"cw[" for name in names(one))


@given(text, version)
def test_slots_come_back_with_their_type(channel: str, value: object) -> None:
    back = layout.read_slot(layout.slot_of(channel, value))
    assert back == (channel, value)
    assert type(back[1]) is type(value)


def test_versions_of_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="version"):
        layout.slot_of("a", None)


@pytest.mark.parametrize("thread_id", ["t", 7, "7", "中\0", 2.5, "\ud800"])
def test_thread_marks_give_the_id_back(thread_id: object) -> None:
    back = layout.read_thread_mark(layout.thread_mark(thread_id))
    assert back == (thread_id if isinstance(thread_id, int | str) else str(thread_id))


def test_marks_of_another_form_are_refused() -> None:
    with pytest.raises(ValueError, match="2"):
        layout.read_thread_mark(b'2:"t"')


@pytest.mark.parametrize("damaged", [b"5:abc", b"abc", b":abc", b"-1:a", b"1"])
def test_damaged_names_are_refused(damaged: bytes) -> None:
    with pytest.raises(ValueError, match="length-prefixed"):
        layout.read_parts(damaged)


def test_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(BadRequestError):
        layout.part("\ud800")


def test_glob_signs_stand_for_themselves() -> None:
    assert layout.escape_glob("a*[b]?^\\") == "a\\*\\[b\\]\\?\\^\\\\"
