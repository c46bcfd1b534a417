"""Stored sources and answers as they may be shown now. Pure: who may see what is asked, never remembered."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Language = Literal["zh", "en"]
MaySee = Callable[[Sequence[tuple[str, str]]], bool]

WITHDRAWN: Mapping[Language, str] = {
    "zh": "⟦这条回答引用的资料现已不可查看⟧",
    "en": "⟦The sources of this answer are no longer available⟧",
}


@dataclass(frozen=True)
class Shown:
    """An answer as this caller may see it now. `is_withdrawn`: at least one of its sources is gone."""

    content: str
    sources: list[dict[str, Any]]
    is_withdrawn: bool


def show(
    content: str, sources: Sequence[Mapping[str, Any]] | None, may_see: MaySee, language: Language
) -> Shown:
    """The answer with every withdrawn source in its fixed form.

    An answer quotes its sources, so with one of them withdrawn its own text is withheld too. A source
    without a label is cited nowhere but informed the words: it is authorised like the others, and not listed.
    """
    shown = [show_source(source, may_see) for source in sources or () if _is_cited(source)]
    informed_by = [key_of(source) for source in sources or () if not _is_cited(source)]
    is_withdrawn = any(not source["available"] for source in shown) or not all(
        may_see([key]) for key in informed_by
    )
    return Shown(WITHDRAWN[language] if is_withdrawn else content, shown, is_withdrawn)


def show_source(source: Mapping[str, Any], may_see: MaySee) -> dict[str, Any]:
    """The source with `available: true`; or only its label, and nothing of title, document or text."""
    if may_see([key_of(source)]):
        return {**source, "available": True}
    return {"label": source.get("label"), "available": False}


def _is_cited(source: Mapping[str, Any]) -> bool:
    return bool(source.get("label"))


def key_of(source: Mapping[str, Any]) -> tuple[str, str]:
    """(document id, version). A snapshot without them names no document, so nobody may see it."""
    return str(source.get("document_id", "")), str(source.get("version", ""))


def keys_of(sources: Iterable[Sequence[Mapping[str, Any]] | None]) -> list[list[str]]:
    """All [document id, version] pairs once, in order."""
    return [list(key) for key in sorted({key_of(each) for listed in sources for each in listed or ()})]


def remembering(may_see: MaySee) -> MaySee:
    """`may_see` that asks once for each source: for one page of one request, never longer."""
    known: dict[tuple[tuple[str, str], ...], bool] = {}

    def ask(keys: Sequence[tuple[str, str]]) -> bool:
        wanted = tuple(keys)
        if wanted not in known:
            known[wanted] = may_see(wanted)
        return known[wanted]

    return ask


def language_of(content: str) -> Language:
    """Of the fixed form: that of the answer it stands for."""
    return "zh" if any("\u4e00" <= character <= "\u9fff" for character in content) else "en"
