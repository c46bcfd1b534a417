"""Exact facts and the names they are asked by: what a row must say, and looking one up.

A fact is company x period x metric -> a decimal kept as the source writes it. It is seen by whoever may see
the document that states it. A miss is None; there is no near match.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal

from nodes.contracts import Caller, Company, FactHit, Metric
from nodes.retrieve.access import may_see
from nodes.retrieve.documents import Fact, KnowledgeStore, Record

PERIOD = re.compile(r"\d{4}(H[12]|Q[1-4])?")
_DECIMAL = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?")
Row = Mapping[str, str]  # column -> cell, cells trimmed


class RowError(ValueError):
    """A row that cannot be used: what is wrong, and what to do."""


def read_decimal(text: str) -> str:
    """The number as written, without thousands separators and a leading plus; its decimals are kept.

    Raises RowError for anything that is not one plain decimal number.
    """
    folded = unicodedata.normalize("NFKC", text).strip().replace("−", "-")
    if not _DECIMAL.fullmatch(folded):
        raise RowError(f"value {text!r} is not a plain decimal number; write it like 1320.50, its unit apart")
    return folded.replace(",", "").removeprefix("+")


def read_company(row: Row) -> Company:
    names = (_list(row, "aliases"), _list(row, "english_names"))
    return Company(required(row, "company_id"), required(row, "name"), *names)


def read_metric(row: Row) -> Metric:
    metric_id = required(row, "metric_id")
    return Metric(metric_id, required(row, "name"), row.get("english_name", ""), _list(row, "synonyms"))


def read_fact(row: Row, *, stated_by: str, origin: str) -> Fact:
    """A fact from a row; `stated_by` is the document for rows that name none."""
    period = unicodedata.normalize("NFKC", required(row, "period")).upper()
    if not PERIOD.fullmatch(period):
        raise RowError(f"period {row['period']!r} is not known; write it like 2023, 2023H1 or 2023Q3")
    return Fact(
        company=required(row, "company"),
        period=period,
        metric=required(row, "metric"),
        value=read_decimal(required(row, "value")),
        unit=row.get("unit", ""),
        document_id=row.get("document") or stated_by,
        origin=origin,
    )


def required(row: Row, column: str) -> str:
    value = row.get(column, "")
    if not value:
        raise RowError(f"column {column!r} is empty; fill it in")
    return value


def _list(row: Row, column: str) -> tuple[str, ...]:
    names = (name.strip() for name in row.get(column, "").split("|"))
    return tuple(dict.fromkeys(name for name in names if name))


def say_the_same(facts: Sequence[Fact]) -> bool:
    """Whether these statements of one fact agree in number and unit. 12.5 and 12.50 agree."""
    return len({(Decimal(fact.value), fact.unit) for fact in facts}) <= 1


class SqliteFactStore:
    """contracts.FactStore over the knowledge file; permissions are read anew on every call."""

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store

    def look_up(self, *, company: str, period: str, metric: str, caller: Caller) -> FactHit | None:
        """The value that all documents this caller may see agree on.

        None where they state none, and also where they contradict each other: to pick one would be a guess.
        """
        visible = self._visible(self._store.facts(company=company, metric=metric, period=period), caller)
        if not visible or not say_the_same([fact for fact, _ in visible]):
            return None
        fact, record = visible[0]
        return FactHit(
            company=fact.company,
            period=fact.period,
            metric=fact.metric,
            value=fact.value,
            unit=fact.unit,
            document_id=record.document_id,
            version=record.version,
            title=record.title,
            source=record.source,
        )

    def periods(self, *, company: str, metric: str, caller: Caller) -> list[str]:
        """Periods for which `look_up` gives a value, oldest first, a year before its parts."""
        by_period: dict[str, list[Fact]] = {}
        for fact, _ in self._visible(self._store.facts(company=company, metric=metric), caller):
            by_period.setdefault(fact.period, []).append(fact)
        return sorted(period for period, facts in by_period.items() if say_the_same(facts))

    def _visible(self, facts: Sequence[Fact], caller: Caller) -> list[tuple[Fact, Record]]:
        """Facts with the newest version of the document that states them, where that version may be seen."""
        newest: dict[str, Record] = {}
        for record in self._store.records({fact.document_id for fact in facts}) if facts else []:
            known = newest.get(record.document_id)
            if known is None or known.age < record.age:
                newest[record.document_id] = record
        stated = [(fact, newest[fact.document_id]) for fact in facts if fact.document_id in newest]
        return [(fact, record) for fact, record in stated if may_see(caller, record.access)]


class Directory:
    """contracts.CompanyDirectory over the knowledge file, and the metrics beside it.

    Read once per knowledge version, so a request pays one small query.
    """

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store
        self._read: tuple[str, tuple[Company, ...], tuple[Metric, ...]] | None = None

    def companies(self) -> Sequence[Company]:
        return self._current()[1]

    def company(self, company_id: str) -> Company | None:
        return next((one for one in self.companies() if one.company_id == company_id), None)

    def metrics(self) -> Sequence[Metric]:
        return self._current()[2]

    def _current(self) -> tuple[str, tuple[Company, ...], tuple[Metric, ...]]:
        read, version = self._read, self._store.knowledge_version()
        if read is None or read[0] != version:
            # The version is read first: at worst newer names stand under an older version and are read again.
            read = (version, tuple(self._store.companies()), tuple(self._store.metrics()))
            self._read = read
        return read
