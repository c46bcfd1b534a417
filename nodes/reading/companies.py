"""Which companies a text names. The longest name wins; a name that several answer to is never guessed."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nodes.contracts import Company, CompanyDirectory
from nodes.reading.folding import MASK, fold, has_chinese, is_edge, squeeze
from nodes.reading.unknown_names import close_names

__all__ = ["Ambiguity", "CompanyIndex", "CompanyMentions", "find_companies", "fold", "mask"]

Ambiguity = tuple[str, tuple[str, ...]]  # the mention, and the ids that answer to it in directory order

_LEGAL_FORM = re.compile(
    r"(?:\((?:集团|控股|中国)\))?(?:(?:集团|控股)?(?:股份)?有限(?:责任)?公司|股份公司|集团公司)$"
    r"|[\s,]+(?:incorporated|inc|limited|ltd|llc|plc|corporation|corp|company|co)\.?(?:[\s,]+(?:ltd|limited"
    r"|inc)\.?)*$"
)
# A short name before one of these names a place ("云湖市"), not the company of that name.
_PLACE = re.compile(r"市(?![值场盈净销占面])|县|镇|乡(?!村)|省(?![钱心])|区(?![域块间别分])")
_SHORT = 3


@dataclass(frozen=True)
class CompanyMentions:
    """Resolved ids in order of mention, each once; what stayed ambiguous; where names stand when squeezed."""

    resolved: tuple[str, ...]
    ambiguous: tuple[Ambiguity, ...]
    spans: tuple[tuple[int, int], ...]


class CompanyIndex:
    """All names of a directory, ready for look-up: built once, it costs by the text, not the directory."""

    def __init__(self, directory: CompanyDirectory | Iterable[Company]) -> None:
        companies = directory if isinstance(directory, Iterable) else directory.companies()
        self._ids: dict[str, tuple[str, ...]] = {}
        for company in companies:
            for name in _names(company):
                owners = self._ids.get(name, ())
                if company.company_id not in owners:
                    self._ids[name] = (*owners, company.company_id)
        self.ids = tuple(dict.fromkeys(company for owners in self._ids.values() for company in owners))
        self._lengths: dict[str, list[int]] = {}
        for name in self._ids:
            self._lengths.setdefault(name[:2], []).append(len(name))
        self._lengths = {head: sorted(set(lengths), reverse=True) for head, lengths in self._lengths.items()}

    def like(self, name: str) -> tuple[str, ...]:
        """Companies with a name much like this one, the likest first, with and without its legal form."""
        folded = squeeze(name)
        names = [(known, owner) for known, owners in self._ids.items() for owner in owners]
        forms = dict.fromkeys((folded, _LEGAL_FORM.sub("", folded)))
        return tuple(dict.fromkeys(company for form in forms for company in close_names(form, names)))

    def find(self, text: str) -> CompanyMentions:
        """Names of a single character are never found: they are too common as words."""
        squeezed = squeeze(text)
        spans = _without_overlap(self._spans(squeezed))
        named = [(squeezed[start:end], self._ids[squeezed[start:end]]) for start, end in spans]
        resolved = [ids[0] for _, ids in named if len(ids) == 1]
        ambiguous = [(name, ids) for name, ids in named if len(ids) > 1]
        return CompanyMentions(tuple(dict.fromkeys(resolved)), tuple(dict.fromkeys(ambiguous)), tuple(spans))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        for start in range(len(text) - 1):
            if not is_edge(text, start):
                continue
            for length in self._lengths.get(text[start : start + 2], ()):
                end = start + length
                if (
                    end <= len(text)
                    and text[start:end] in self._ids
                    and is_edge(text, end)
                    and not _is_place(text, start, end)
                ):
                    yield start, end


def find_companies(text: str, directory: CompanyIndex | CompanyDirectory) -> CompanyMentions:
    """Companies that the text names. Pass an index when asking more than once."""
    index = directory if isinstance(directory, CompanyIndex) else CompanyIndex(directory)
    return index.find(text)


def mask(squeezed: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with these spans blotted out, so that no word inside a name is read as the question's."""
    for start, end in spans:
        squeezed = squeezed[:start] + MASK * (end - start) + squeezed[end:]
    return squeezed


def _names(company: Company) -> Iterator[str]:
    """Every name, with and without its legal form."""
    for name in (company.name, *company.aliases, *company.english_names):
        folded = squeeze(name)
        yield from (folded, _LEGAL_FORM.sub("", folded))


def _without_overlap(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest spans first, then the earliest; what overlaps one already taken is dropped."""
    taken: list[tuple[int, int]] = []
    covered: set[int] = set()
    for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if covered.isdisjoint(range(start, end)):
            taken.append((start, end))
            covered.update(range(start, end))
    return sorted(taken)


def _is_place(text: str, start: int, end: int) -> bool:
    return end - start <= _SHORT and has_chinese(text[start:end]) and _PLACE.match(text, end) is not None
