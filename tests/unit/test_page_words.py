"""The page's words: the same in both languages, and one for everything the server can say."""

import re
from typing import get_args

import pytest

from api.problems import PROBLEMS
from api.webpage import PAGE
from nodes.contracts import AnswerKind, InputKind

SOURCE = (PAGE / "words.js").read_text(encoding="utf-8")
NEVER_SENT_BY_THE_PAGE = {
    "bad_request", "malformed_json", "method_not_allowed", "unsupported_media_type", "invalid_body",
    "invalid_thread_id", "head_timeout", "head_too_large", "invalid_contract",
    "unsupported_context_version", "invalid_cursor",
}  # fmt: skip


def block(language: str) -> str:
    start = SOURCE.index(f"\n  {language}: {{") + len(language) + 6
    return SOURCE[start : SOURCE.index("\n  },", start)]


def names(text: str) -> list[str]:
    """Names of entries, of inner tables too; what stands in quotes holds none."""
    bare = re.sub(r'"[^"]*"|`[^`]*`', '""', text)
    return re.findall(r"(?<![\w?] )\b([A-Za-z_]+): ", bare)


def table(language: str, name: str) -> set[str]:
    text = block(language)
    start = text.index(f"{name}: {{")
    return set(names(text[start + len(name) + 3 : text.index("}", start)]))


def test_both_languages_have_the_same_words() -> None:
    assert sorted(set(names(block("zh")))) == sorted(set(names(block("en"))))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_everything_the_server_can_say_has_words(language: str) -> None:
    assert set(PROBLEMS) - NEVER_SENT_BY_THE_PAGE <= table(language, "problems")
    assert set(get_args(InputKind)) <= table(language, "inputKinds")
    assert set(get_args(AnswerKind)) - {"clarification"} <= table(language, "answerKinds")


def test_what_the_markup_names_is_there() -> None:
    markup = (PAGE / "index.html").read_text(encoding="utf-8")
    used = set(re.findall(r'data-(?:word|label|hint)="(\w+)"', markup))
    assert used <= set(names(block("zh")))
