"""Loading folders into a real knowledge file."""

import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

from nodes.contracts import Caller, Company
from nodes.retrieve.documents import MOST_IDLE, KnowledgeError, KnowledgeStore, Record, SourceSet
from nodes.retrieve.documents import Document as StoredDocument
from nodes.retrieve.facts import Directory, SqliteFactStore
from nodes.retrieve.loading import load_folder

COMPANIES = 'company_id,name,aliases,english_names\nyf,云帆科技,云帆|雲帆,"Yunfan, Inc."\nqs,青石材料,,\n'
METRICS = "metric_id,name,english_name,synonyms\nrevenue,营业收入,Revenue,营收|收入\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> KnowledgeStore:
    return KnowledgeStore(tmp_path / "home" / "knowledge.db")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(
        tmp_path / "folder",
        {
            "leave.md": "---\nid: leave\nversion: '2'\nsource: HR\n---\n# 年假规定\n\n每年十天。\n",
            "sub/travel.txt": "差旅标准：每晚不超过600元。",
            "pay.md": "---\naccess: RESTRICTED\ngroups: [hr]\n---\n# 薪酬\n\n保密。\n",
            "more.csv": "id,title,text,access\nfaq-1,食堂,食堂周一供应面条。,INTERNAL\n",
            "lines.jsonl": '{"id": "j1", "title": "停车", "text": "车位先到先得。"}\n',
            "companies.csv": COMPANIES,
            "metrics.csv": METRICS,
            "facts.csv": 'company,period,metric,value,unit,document\nyf,2023,revenue,"1,320.50",万元,leave\n'
            "yf,2024,revenue,1500.00,万元,\nqs,2023,revenue,7,万元,pay\n",
        },
    )


def keys(store: KnowledgeStore) -> set[str]:
    return {record.document_id for record in store.records()}


def test_a_folder_is_loaded_with_its_names_and_defaults(store: KnowledgeStore, folder: Path) -> None:
    report = load_folder(folder, store)
    assert report.problems == ()
    assert (report.added, report.facts, report.companies, report.metrics) == (6, 3, 2, 1)
    assert report.chunks == 5  # the facts file can be cited but is not searched
    records = {record.document_id: record for record in store.records()}
    assert records.keys() == {"leave", "sub/travel", "pay", "faq-1", "j1", "facts.csv"}
    assert (records["leave"].version, records["leave"].title, records["leave"].source) == (
        "2",
        "年假规定",
        "HR",
    )
    assert (records["sub/travel"].title, records["sub/travel"].source) == ("travel", "sub/travel.txt")
    assert len(records["sub/travel"].version) == 12
    assert records["pay"].access.groups == {"hr"}
    assert records["faq-1"].access.access == "INTERNAL"
    assert store.text_of("leave", "2") == "# 年假规定\n\n每年十天。\n"
    assert store.companies()[0] == Company("yf", "云帆科技", ("云帆", "雲帆"), ("Yunfan, Inc.",))


def test_loading_again_changes_nothing(store: KnowledgeStore, folder: Path) -> None:
    first = load_folder(folder, store)
    again = load_folder(folder, store)
    assert (again.added, again.changed, again.removed, again.unchanged) == (0, 0, 0, first.added)
    assert again.knowledge_version == first.knowledge_version == store.knowledge_version()


def test_only_what_changed_is_stored_anew(store: KnowledgeStore, folder: Path, tmp_path: Path) -> None:
    before = load_folder(folder, store)
    database = sqlite3.connect(tmp_path / "home" / "knowledge.db")
    rows = "SELECT document_id, rowid FROM documents"
    old = dict(database.execute(rows).fetchall())
    write(folder, {"sub/travel.txt": "差旅标准：每晚不超过800元。", "new.md": "# 新\n\n新的。"})
    (folder / "lines.jsonl").unlink()
    after = load_folder(folder, store)
    new = dict(database.execute(rows).fetchall())
    database.close()
    assert (after.added, after.changed, after.unchanged, after.removed) == (1, 1, 4, 1)
    assert after.knowledge_version != before.knowledge_version
    assert {name for name in old if old[name] == new.get(name)} >= {"leave", "pay", "faq-1", "facts.csv"}
    assert "j1" not in new
    assert len(store.records(["sub/travel"])) == 1


def test_changing_only_who_may_see_a_document_is_a_change(store: KnowledgeStore, folder: Path) -> None:
    before = load_folder(folder, store)
    write(folder, {"pay.md": "---\naccess: RESTRICTED\ngroups: [audit]\n---\n# 薪酬\n\n保密。\n"})
    after = load_folder(folder, store)
    assert (after.changed, after.unchanged) == (1, 5)
    assert after.knowledge_version != before.knowledge_version
    assert store.records(["pay"])[0].access.groups == {"audit"}


def test_source_sets_do_not_touch_each_other(store: KnowledgeStore, folder: Path, tmp_path: Path) -> None:
    load_folder(folder, store)
    other = write(tmp_path / "other", {"own.md": "# 自己\n\n自己的。", "leave.md": "# 冲突\n\n同名。"})
    report = load_folder(other, store)
    assert report.added == 1
    assert [problem.split(":")[0] for problem in report.problems] == ["leave.md"]
    assert "another id" in report.problems[0]
    (other / "own.md").unlink()
    write(other, {"third.md": "第三。"})
    assert load_folder(other, store).removed == 1
    assert keys(store) == {"leave", "sub/travel", "pay", "faq-1", "j1", "facts.csv", "third"}
    assert store.remove(str(other.resolve()))
    assert not store.remove(str(other.resolve()))
    assert "third" not in keys(store)
    assert len(keys(store)) == 6


def test_one_set_can_take_anothers_place_at_once(store: KnowledgeStore, folder: Path, tmp_path: Path) -> None:
    load_folder(folder, store, name="sample")
    own = write(
        tmp_path / "own",
        {
            "leave.md": "# 年假\n\n十五天。",
            "facts.csv": "company,period,metric,value,unit\nyf,2023,revenue,1,元\n",
        },
    )
    report = load_folder(own, store, in_place_of=("sample",))
    assert store.source_sets().keys() == {str(own.resolve())}
    assert keys(store) == {"leave", "facts.csv"}
    assert len(report.problems) == 1  # the sample's companies went with it
    assert "companies.csv" in report.problems[0]


def test_versions_agree_between_machines_and_follow_content_alone(tmp_path: Path, folder: Path) -> None:
    moved = tmp_path / "elsewhere"
    folder_copy = write(moved, {})
    for file in sorted(folder.rglob("*"), reverse=True):
        if file.is_file():
            write(folder_copy, {file.relative_to(folder).as_posix(): file.read_text().replace("\n", "\r\n")})
    with KnowledgeStore(tmp_path / "a.db") as one, KnowledgeStore(tmp_path / "b.db") as two:
        assert (
            load_folder(folder, one).knowledge_version
            == load_folder(folder_copy, two, name="x").knowledge_version
        )
        empty = KnowledgeStore(tmp_path / "c.db").knowledge_version()
        two.remove("x")
        assert two.knowledge_version() == empty != one.knowledge_version()


def test_broken_parts_are_named_by_file_and_line_and_the_rest_is_kept(
    store: KnowledgeStore, folder: Path
) -> None:
    write(
        folder,
        {
            "typo.md": "---\nid: typo\nacess: RESTRICTED\n---\n漏。",
            "empty.md": "---\nid: empty\n---\n\n",
            "open.md": "---\naccess: RESTRICTED\ngroups: [hr]\n\n漏。",
            "more.csv": "id,title,text,access\nfaq-1,食堂,面条。,INTERNAL\n"
            'faq-2,"坏,行\nfaq-3,好,好行。,\nfaq-4,无,,\n',
            "lines.jsonl": '{"id": "j1", "text": "车位。"}\n{"id": 7}\nnonsense\n',
            "leave-copy.md": "---\nid: leave\n---\n另一个。",
            "companies.csv": COMPANIES + "yf,别名,,\n,无名,,\n",
            "facts.csv": "company,period,metric,value,unit,document\n"
            "yf,2023,revenue,12%,,\nzz,2023,revenue,1,,\n"
            "yf,2023,profit,1,,\nyf,2023,revenue,1,,nowhere\nyf,2023Q5,revenue,1,,\nyf,2023,revenue,5,万元,leave\n"
            "yf,2023,revenue,6,万元,leave\n",
            "facts2.jsonl": '{"company": "qs", "period": "2023h1", "metric": "revenue", "value": 2.50}\n',
            "notes.pdf": "%PDF",
        },
    )
    (folder / "latin.txt").write_bytes("été à la forêt".encode("latin-1"))
    report = load_folder(folder, store)
    places = sorted(problem.split(": ", 1)[0] for problem in report.problems)
    expected = """
        companies.csv:4 companies.csv:5 empty.md:1
        facts.csv:2 facts.csv:3 facts.csv:4 facts.csv:5 facts.csv:6 facts.csv:8
        folder:0 latin.txt:1 leave.md:1 lines.jsonl:2 lines.jsonl:3 more.csv:3 more.csv:5 open.md:1 typo.md:3
    """
    assert places == expected.split()
    assert all(";" in problem for problem in report.problems), "every problem says what to do"
    assert {"typo", "open", "empty", "latin", "faq-2", "faq-4"}.isdisjoint(keys(store))
    assert {"faq-1", "faq-3", "j1", "leave", "pay"} <= keys(store)
    facts = SqliteFactStore(store)
    hit = facts.look_up(company="qs", period="2023H1", metric="revenue", caller=Caller())
    assert hit is not None
    assert (hit["value"], hit["document_id"]) == ("2.50", "facts2.jsonl")


def test_a_document_that_breaks_is_taken_out_rather_than_left_as_it_was(
    store: KnowledgeStore, folder: Path
) -> None:
    load_folder(folder, store)
    write(
        folder,
        {"leave.md": "---\nid: leave\nversion: '2'\naccess: RESTRICTD\n---\n# 年假规定\n\n每年十天。\n"},
    )
    report = load_folder(folder, store)
    assert "leave" not in keys(store)
    assert report.problems[0].startswith("leave.md:4: access 'RESTRICTD'")


@pytest.mark.parametrize("kind", ["missing", "file", "empty", "unreadable kinds", "nothing usable"])
def test_a_folder_without_knowledge_is_an_error_and_changes_nothing(
    store: KnowledgeStore, folder: Path, tmp_path: Path, kind: str
) -> None:
    bad = tmp_path / "bad"
    if kind == "file":
        bad.write_text("x")
    elif kind != "missing":
        bad.mkdir()
    if kind == "unreadable kinds":
        (bad / "a.pdf").write_bytes(b"%PDF")
        (bad / ".hidden.md").write_text("x")
    if kind == "nothing usable":
        (bad / "a.md").write_bytes(b"\xff\x00")
    before = load_folder(folder, store, name="set").knowledge_version
    with pytest.raises(KnowledgeError) as raised:
        load_folder(bad, store, name="set")
    assert str(bad) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert store.knowledge_version() == before


def test_links_out_of_the_folder_are_not_followed(
    store: KnowledgeStore, folder: Path, tmp_path: Path
) -> None:
    secret = write(tmp_path, {"secret.md": "机密。"}) / "secret.md"
    (folder / "link.md").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    report = load_folder(folder, store)
    assert [problem.split(":")[0] for problem in report.problems] == ["link.md"]
    assert "link" not in keys(store)


def test_progress_counts_every_file(store: KnowledgeStore, folder: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    load_folder(folder, store, progress=lambda done, total, name: seen.append((done, total, name)))
    assert [done for done, _, _ in seen] == list(range(1, 9))
    assert {total for _, total, _ in seen} == {8}
    assert "travel.txt" in {name for _, _, name in seen}


def test_a_crowd_of_readers_leaves_few_connections_behind(store: KnowledgeStore) -> None:
    with ExitStack() as crowd:
        lent = [crowd.enter_context(store._reading()) for _ in range(3 * MOST_IDLE)]
    closed = 0
    for connection in lent:
        try:
            connection.execute("SELECT 1")
        except sqlite3.ProgrammingError:
            closed += 1
    assert closed == 2 * MOST_IDLE


def test_documents_take_the_knowledge_base_they_are_loaded_into(store: KnowledgeStore, folder: Path) -> None:
    load_folder(folder, store, knowledge_base="hr")
    assert {record.access.knowledge_base for record in store.records()} == {"hr"}


def test_facts_are_exact_and_follow_their_document(store: KnowledgeStore, folder: Path) -> None:
    load_folder(folder, store)
    facts = SqliteFactStore(store)
    plain, granted = Caller(), Caller(groups=frozenset({"hr"}))

    def value(company: str, period: str, caller: Caller) -> str | None:
        hit = facts.look_up(company=company, period=period, metric="revenue", caller=caller)
        return hit and hit["value"]

    assert value("yf", "2023", plain) == "1320.50"
    assert value("yf", "2024", plain) == "1500.00"
    assert value("qs", "2023", plain) is None
    assert value("qs", "2023", granted) == "7"
    assert value("yf", "2023", Caller(knowledge_base="other")) is None
    assert value("yf", "2023Q1", plain) is None
    assert value("yf", "202", plain) is None
    assert facts.periods(company="yf", metric="revenue", caller=plain) == ["2023", "2024"]
    assert facts.periods(company="qs", metric="revenue", caller=plain) == []
    # The permission is read anew: no service was rebuilt in between.
    write(folder, {"pay.md": "---\naccess: PUBLIC\n---\n# 薪酬\n\n公开。\n"})
    load_folder(folder, store)
    assert value("qs", "2023", plain) == "7"


def test_statements_that_contradict_each_other_give_no_value(store: KnowledgeStore, folder: Path) -> None:
    header = "company,period,metric,value,unit,document\n"
    write(
        folder,
        {
            "facts.csv": header + "yf,2023,revenue,12.5,万元,leave\nyf,2023,revenue,12.50,万元,j1\n"
            "qs,2023,revenue,1,万元,leave\nqs,2023,revenue,2,万元,pay\n"
        },
    )
    report = load_folder(folder, store)
    assert len(report.problems) == 1
    assert report.problems[0].startswith(
        "facts.csv:5: qs 2023 revenue is 2 万元 here and 1 万元 at facts.csv:4"
    )
    facts = SqliteFactStore(store)
    same = facts.look_up(company="yf", period="2023", metric="revenue", caller=Caller())
    assert same is not None
    assert same["value"] == "12.5"
    # Who sees one statement sees a value; who sees both sees that there is no single one.
    seen = facts.look_up(company="qs", period="2023", metric="revenue", caller=Caller())
    assert seen is not None
    assert seen["value"] == "1"
    both = Caller(groups=frozenset({"hr"}))
    assert facts.look_up(company="qs", period="2023", metric="revenue", caller=both) is None
    assert facts.periods(company="qs", metric="revenue", caller=both) == []


def test_a_fact_follows_the_newest_version_of_its_document(store: KnowledgeStore, tmp_path: Path) -> None:
    folder = write(
        tmp_path / "f",
        {
            "a9.md": "---\nid: a\nversion: v9\nvalid_until: 2023-12-31\n---\n旧。",
            "a10.md": "---\nid: a\nversion: v10\naccess: RESTRICTED\ngroups: [hr]\n"
            "valid_from: 2024-01-01\n---\n新。",
            "companies.csv": COMPANIES,
            "metrics.csv": METRICS,
            "facts.csv": "company,period,metric,value,unit,document\nyf,2023,revenue,1,元,a\n",
        },
    )
    assert load_folder(folder, store).problems == ()
    facts = SqliteFactStore(store)
    assert facts.look_up(company="yf", period="2023", metric="revenue", caller=Caller()) is None
    hit = facts.look_up(
        company="yf", period="2023", metric="revenue", caller=Caller(groups=frozenset({"hr"}))
    )
    assert hit is not None
    assert hit["version"] == "v10"


def test_the_directory_follows_the_store(store: KnowledgeStore, folder: Path) -> None:
    directory = Directory(store)
    assert directory.companies() == ()
    load_folder(folder, store)
    assert [one.company_id for one in directory.companies()] == ["yf", "qs"]
    assert directory.companies() is directory.companies()
    assert [one.metric_id for one in directory.metrics()] == ["revenue"]
    yunfan = directory.company("yf")
    assert yunfan is not None
    assert yunfan.name == "云帆科技"
    assert directory.company("y") is None


def test_the_file_is_private_and_survives_closing(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "home" / "knowledge.db"
    with KnowledgeStore(path) as store:
        version = load_folder(folder, store).knowledge_version
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(KnowledgeError, match="closed"):
        store.knowledge_version()
    with KnowledgeStore(path) as store:
        assert store.knowledge_version() == version


def test_a_file_of_another_kind_is_refused_and_kept(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("not a database, but long enough to be looked at " * 50)
    with pytest.raises(KnowledgeError, match="move the file away"):
        KnowledgeStore(text)
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    with pytest.raises(KnowledgeError, match="layout"):
        KnowledgeStore(foreign)
    with pytest.raises(KnowledgeError, match="cannot be used"):
        KnowledgeStore(text / "below" / "knowledge.db")


def test_a_kill_in_the_middle_of_a_load_leaves_the_old_state(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "knowledge.db"
    with KnowledgeStore(path) as store:
        before = load_folder(folder, store, name="set")
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from nodes.retrieve.documents import Document, KnowledgeStore, Record, SourceSet

        class Deadly(list):
            def __iter__(self):
                os.kill(os.getpid(), signal.SIGKILL)

        documents = [Document(Record(f"d{n}", "1", "t", "s"), "text " * 1000) for n in range(200)]
        KnowledgeStore(Path(sys.argv[1])).replace(SourceSet("set", "x", documents, facts=Deadly()))
        """
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, str(path)], cwd=Path(__file__).parents[2], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    with KnowledgeStore(path) as store:
        assert store.knowledge_version() == before.knowledge_version
        assert len(store.records()) == before.added
        assert load_folder(folder, store, name="set").unchanged == before.added


def _load_own_set(path: Path, number: int) -> None:
    documents = [StoredDocument(Record(f"{number}-{n}", "1", "t", "s"), f"text {n}") for n in range(50)]
    with KnowledgeStore(path) as store:
        for round_ in range(4):
            store.replace(SourceSet(f"set-{number}", str(round_), documents[round_:]))
    os._exit(0)


def test_facts_may_call_companies_and_metrics_by_a_name_of_their_own(
    store: KnowledgeStore, tmp_path: Path
) -> None:
    facts = (
        'company,period,metric,value,unit\n云帆科技,2023,营收,1,万元\n"yunfan, inc.",2024,revenue,2,万元\n'
        "云帆,2025,营业收入,3,万元\n青山,2023,营收,4,万元\n"
    )
    files = {"companies.csv": COMPANIES + "yn,云帆能源,云帆,\n", "metrics.csv": METRICS, "facts.csv": facts}
    report = load_folder(write(tmp_path / "named", files), store)
    assert [fact.period for fact in store.facts(company="yf", metric="revenue")] == ["2023", "2024"]
    assert report.problems == (
        "facts.csv:4: company '云帆' is the name of several; write one id: yf, yn",
        "facts.csv:5: company '青山' is unknown; add it to companies.csv",
    )


def test_what_was_not_read_names_the_folder_however_it_is_given(
    store: KnowledgeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "mixed", {"a.md": "# A\n\nText.\n", "b.pdf": "x"})
    monkeypatch.chdir(folder)
    report = load_folder(Path(), store)
    assert report.problems == ("mixed:0: 1 file of other kinds not read (.pdf); convert to .md or .txt",)


def test_a_snapshot_reads_each_text_once_however_long_it_is(store: KnowledgeStore) -> None:
    """To cut one in SQL costs the text again for each chunk: minutes for a file of a few megabytes."""
    documents = [StoredDocument(Record(name, "1", "t", "s"), f"{name}长句。" * 9_000) for name in ("a", "b")]
    store.replace(SourceSet("set", "1", documents))
    called: list[str] = []

    def watch(action: int, _first: str | None, name: str | None, *_rest: str | None) -> int:
        if action == sqlite3.SQLITE_FUNCTION:
            called.append(str(name))
        return sqlite3.SQLITE_OK

    with store._reading() as connection:
        connection.set_authorizer(watch)
    chunks = store.snapshot().chunks
    assert called == []
    assert len(chunks) > 100
    texts = {name: store.text_of(name, "1") or "" for name in ("a", "b")}
    assert {text == texts["ab"[record]][chunk.start : chunk.end] for record, chunk, text in chunks} == {True}


def test_processes_may_open_load_and_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.db"
    context = multiprocessing.get_context("spawn")
    loaders = [context.Process(target=_load_own_set, args=(path, number)) for number in range(3)]
    for loader in loaders:
        loader.start()
    with KnowledgeStore(path) as store:
        while any(loader.is_alive() for loader in loaders):
            snapshot = store.snapshot()
            assert len(snapshot.chunks) == len(snapshot.records)
        for loader in loaders:
            loader.join()
        assert [loader.exitcode for loader in loaders] == [0, 0, 0]
        assert len(store.records()) == 3 * 47
