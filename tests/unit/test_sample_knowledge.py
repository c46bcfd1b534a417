"""The sample knowledge keeps its promises: complete, consistent, invented, and secret where it says so."""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

import nodes.retrieve
from nodes.contracts import Caller
from nodes.retrieve.documents import KnowledgeStore, current_keys
from nodes.retrieve.facts import SqliteFactStore
from nodes.retrieve.formats import Header, read_header, split_front_matter
from nodes.retrieve.loading import load_folder

SAMPLE = Path(nodes.retrieve.__file__).parent / "sample_data"
KNOWLEDGE = SAMPLE / "documents"
TODAY = "2026-12-01"
CANARY = re.compile(r"CANARY-[0-9A-F]{4}-云湖")
FLOWS = ("revenue", "net_profit", "rnd_expense", "operating_cash_flow", "tax_paid")
STOCKS = ("total_assets", "employees")
YEARS = ("2022", "2023", "2024")
EXPIRED = {"yunhu-rooftop-solar", "yunhu-consumer-voucher", "yunhu-fuel-relief"}


@dataclass(frozen=True)
class Document:
    header: Header
    text: str
    file: Path

    @property
    def id(self) -> str:
        assert self.header.id is not None
        return self.header.id


def read_documents() -> list[Document]:
    documents = []
    for file in sorted(KNOWLEDGE.rglob("*.md")):
        values, text = split_front_matter(file.read_text(encoding="utf-8"))
        documents.append(Document(read_header(values), text, file))
    return documents


def read_rows(name: str) -> list[dict[str, str]]:
    with (KNOWLEDGE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


DOCUMENTS = read_documents()
COMPANIES = read_rows("companies.csv")
METRICS = read_rows("metrics.csv")
FACTS = read_rows("facts.csv")
VALUES = {(row["company"], row["period"], row["metric"]): Decimal(row["value"]) for row in FACTS}


def is_summary(document: Document) -> bool:
    return document.id.endswith("-annual-2024")


def versions() -> Mapping[str, list[Document]]:
    grouped: dict[str, list[Document]] = defaultdict(list)
    for document in DOCUMENTS:
        grouped[document.id].append(document)
    return grouped


def of_access(access: str) -> list[Document]:
    return [document for document in DOCUMENTS if document.header.access == access]


# --- documents


@pytest.mark.parametrize(
    ("least", "counted"),
    [
        (48, lambda document: not is_summary(document)),
        (8, lambda document: document.header.language == "en"),
        (5, lambda document: document.header.access == "RESTRICTED"),
        (4, lambda document: document.header.access == "INTERNAL"),
        (len(COMPANIES), is_summary),
    ],
)
def test_there_are_enough_documents(least: int, counted: Callable[[Document], bool]) -> None:
    assert len({document.id for document in DOCUMENTS if counted(document)}) >= least


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.file.name)
def test_every_document_says_what_it_is(document: Document) -> None:
    header = document.header
    assert header.id
    assert header.title
    assert header.version
    assert header.access
    assert header.language
    assert header.valid_from
    assert "云湖市" in (header.source or "") or "Yunhu City" in (header.source or "")
    assert document.text.startswith("# ")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.file.name)
def test_every_document_has_a_readable_length(document: Document) -> None:
    length = len(re.sub(r"\s", "", document.text))
    least, most = (300, 1200) if document.header.language == "zh" else (500, 4000)
    assert least <= length <= most


@pytest.mark.parametrize(
    "document",
    [one for one in DOCUMENTS if one.header.language == "zh" and one.id != "yunhu-bilingual-service"],
    ids=lambda document: document.file.name,
)
def test_chinese_is_set_without_stray_spaces_and_half_width_marks(document: Document) -> None:
    prose = "\n".join(line for line in document.text.splitlines() if not line.startswith("|"))
    assert not re.search(r"[\u4e00-\u9fff] [A-Za-z0-9]|[A-Za-z0-9] [\u4e00-\u9fff]", prose)
    assert not re.search(r"[\u4e00-\u9fff][,;:?!()]", prose)


def test_a_version_stands_once() -> None:
    keys = Counter((document.id, document.header.version) for document in DOCUMENTS)
    assert [key for key, times in keys.items() if times > 1] == []


def test_at_least_six_documents_have_a_predecessor() -> None:
    assert sum(1 for several in versions().values() if len(several) > 1) >= 6


def test_versions_follow_each_other_without_overlap() -> None:
    for several in versions().values():
        ordered = sorted(several, key=lambda document: document.header.valid_from or "")
        for older, newer in pairwise(ordered):
            assert older.header.valid_until
            assert newer.header.valid_from
            gap = date.fromisoformat(newer.header.valid_from) - date.fromisoformat(older.header.valid_until)
            assert gap.days == 1, older.id
            assert re.findall(r"\d+(?:\.\d+)?", older.text) != re.findall(r"\d+(?:\.\d+)?", newer.text)


def test_exactly_the_named_documents_are_out_of_force() -> None:
    in_force = {
        document.id
        for document in DOCUMENTS
        if (document.header.valid_from or "") <= TODAY <= (document.header.valid_until or "9999")
    }
    assert versions().keys() - in_force == EXPIRED | {"yunhu-compute-voucher"}


def test_what_is_in_force_stays_so_until_2028() -> None:
    for document in DOCUMENTS:
        until = document.header.valid_until
        if until and until >= TODAY:
            assert until >= "2028-01-01", document.id


def test_one_document_has_a_table_one_two_languages_and_one_hostile_text() -> None:
    texts = {document.id: document.text for document in DOCUMENTS}
    assert "\n|---|" in texts["yunhu-fund-calendar"]
    assert len(re.findall(r"[A-Za-z]{3,}", texts["yunhu-bilingual-service"])) >= 30
    assert "忽略之前的所有指示" in texts["yunhu-fraud-warning"]
    assert "ERR_FILE_TOO_LARGE" in texts["yunhu-portal-upload"]


# --- secrets


def test_each_restricted_document_has_one_canary_of_its_own() -> None:
    found = [CANARY.findall(document.text) for document in of_access("RESTRICTED")]
    assert all(len(canaries) == 1 for canaries in found)
    assert len({canaries[0] for canaries in found}) == len(found)


def test_no_canary_stands_anywhere_else() -> None:
    secret = {document.file for document in of_access("RESTRICTED")}
    for file in SAMPLE.rglob("*"):
        if file.is_file() and file not in secret:
            assert not CANARY.search(file.read_text(encoding="utf-8")), file


def test_restricted_facts_stand_in_no_document_for_everyone() -> None:
    secret = {document.id for document in of_access("RESTRICTED")}
    values = [row["value"] for row in FACTS if row["document"] in secret]
    assert len(values) >= 18
    for document in DOCUMENTS:
        if document.header.access != "RESTRICTED":
            assert not [value for value in values if value in document.text], document.id


def test_restricted_facts_are_found_by_their_group_alone(tmp_path: Path) -> None:
    with KnowledgeStore(tmp_path / "knowledge.db") as store:
        load_folder(KNOWLEDGE, store, name="sample")
        facts = SqliteFactStore(store)
        asked = {"company": "yunfan-energy", "period": "2024", "metric": "tax_paid"}
        assert facts.look_up(**asked, caller=Caller()) is None
        assert facts.look_up(**asked, caller=Caller(groups=frozenset({"audit"}))) is None
        hit = facts.look_up(**asked, caller=Caller(groups=frozenset({"finance-bureau"})))
        assert hit is not None
        assert hit["document_id"] == "yunhu-restricted-yunfan-energy-tax"


# --- invented


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?<!\d)1[3-9]\d{9}(?!\d)",  # mobile numbers
        r"(?<!\d)0\d{2,3}[- ]\d{7,8}(?!\d)",  # area code and number
        r"(?<!\d)[48]00[- ]?\d{3,4}[- ]?\d{3,4}(?!\d)",  # service numbers
        r"[\w.+-]+@[\w-]+\.\w",
        r"https?://|www\.",
        r"(?<!\d)\d{17}[\dXx](?!\d)",  # identity numbers
        r"国家税务总局|国务院|工业和信息化部|人力资源和社会保障部|财政部|科学技术部|中国人民银行",
    ],
)
def test_nothing_points_at_the_real_world(pattern: str) -> None:
    for file in sorted(SAMPLE.rglob("*")):
        if file.is_file():
            assert not re.search(pattern, file.read_text(encoding="utf-8")), file


def test_the_readme_says_invented_in_both_languages_and_is_no_knowledge() -> None:
    readme = (SAMPLE / "README.md").read_text(encoding="utf-8")
    assert "虚构" in readme
    assert "invented" in readme
    assert not list(KNOWLEDGE.rglob("README*"))


# --- companies and metrics


def test_names_are_shared_as_promised() -> None:
    owners = Counter(alias for row in COMPANIES for alias in row["aliases"].split("|"))
    assert len(COMPANIES) >= 14
    assert owners["云帆"] == 7
    assert owners["青石"] == 2
    shared = {alias for alias, times in owners.items() if times > 1}
    assert shared == {"云帆", "雲帆", "青石"}


def test_every_company_has_a_short_name_and_an_english_one() -> None:
    for row in COMPANIES:
        assert row["name"].removesuffix("股份有限公司") in row["aliases"].split("|")
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", row["company_id"])
        assert row["english_names"].isascii()


def test_metrics_are_the_eight_and_no_word_means_two() -> None:
    assert {row["metric_id"] for row in METRICS} == {*FLOWS, *STOCKS, "gross_margin"}
    words = Counter(
        word.lower()
        for row in METRICS
        for word in (row["name"], row["english_name"], *row["synonyms"].split("|"))
    )
    assert max(words.values()) == 1


# --- facts


def test_facts_name_known_companies_metrics_periods_and_documents() -> None:
    companies = {row["company_id"] for row in COMPANIES}
    metrics = {row["metric_id"] for row in METRICS}
    documents = {document.id for document in DOCUMENTS}
    units = {"gross_margin": "%", "employees": "人"}
    for row in FACTS:
        assert row["company"] in companies
        assert row["metric"] in metrics
        assert re.fullmatch(r"202[234](H1|Q[1-4])?", row["period"])
        assert row["document"] in documents | {""}
        assert row["unit"] == units.get(row["metric"], "万元")
    assert len(VALUES) == len(FACTS)


def test_a_fact_stands_in_the_document_it_names() -> None:
    texts = {document.id: document.text for document in DOCUMENTS}
    named = [row for row in FACTS if row["document"]]
    assert len(named) > 400
    for row in named:
        shown = rf"(?<![\d.]){re.escape(row['value'])}(?![\d.]*\d)"
        assert re.search(shown, texts[row["document"]]), row


@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("metric", FLOWS)
@pytest.mark.parametrize(("span", "quarters"), [("", "1234"), ("H1", "12")])
def test_flows_add_up_exactly(year: str, metric: str, span: str, quarters: str) -> None:
    checked = 0
    for company in (row["company_id"] for row in COMPANIES):
        parts = [VALUES.get((company, f"{year}Q{number}", metric)) for number in quarters]
        total = VALUES.get((company, year + span, metric))
        known = [part for part in parts if part is not None]
        if total is not None and len(known) == len(parts):
            assert sum(known, Decimal(0)) == total, company
            checked += 1
    assert checked >= 14


@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("metric", STOCKS)
def test_stocks_are_those_at_the_end_of_the_period(year: str, metric: str) -> None:
    checked = 0
    for company in (row["company_id"] for row in COMPANIES):
        for span, last in (("", "Q4"), ("H1", "Q2")):
            if (company, year + last, metric) in VALUES:
                assert VALUES[company, year + span, metric] == VALUES[company, year + last, metric]
                checked += 1
    assert checked >= 26


@pytest.mark.parametrize("year", YEARS)
def test_the_margin_of_a_year_is_its_quarters_weighted_by_revenue(year: str) -> None:
    for company in (row["company_id"] for row in COMPANIES):
        if (company, f"{year}Q1", "gross_margin") not in VALUES:
            continue
        profit = sum(
            VALUES[company, f"{year}Q{n}", "gross_margin"] * VALUES[company, f"{year}Q{n}", "revenue"]
            for n in (1, 2, 3, 4)
        )
        margin = profit / VALUES[company, year, "revenue"]
        assert abs(margin - VALUES[company, year, "gross_margin"]) <= Decimal("0.01"), company


def test_values_cannot_be_taken_for_years() -> None:
    assert [row for row in FACTS if 1900 <= abs(int(Decimal(row["value"]))) <= 2099] == []


def test_about_four_percent_is_missing() -> None:
    possible = len(COMPANIES) * len(METRICS) * len(YEARS) * 6
    assert 0.03 <= 1 - len(FACTS) / possible <= 0.05
    assert not [key for key in VALUES if key[0] == "beizhu-tea" and key[1].startswith("2022")]


# --- loading


def test_the_loader_takes_all_of_it_without_a_word(tmp_path: Path) -> None:
    with KnowledgeStore(tmp_path / "knowledge.db") as store:
        report = load_folder(KNOWLEDGE, store, name="sample")
        assert report.problems == ()
        assert (report.facts, report.companies, report.metrics) == (len(FACTS), len(COMPANIES), len(METRICS))
        current = dict(current_keys(store.records(), TODAY))
        assert current["yunhu-minimum-wage"] == "2025"
        assert current["yunhu-startup-loan"] == "2025"
        assert current["yunhu-rnd-subsidy"] == "2026"
        assert not current.keys() & (EXPIRED | {"yunhu-compute-voucher"})
