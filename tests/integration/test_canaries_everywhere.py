"""RESTRICTED documents through every command and every route, into every byte that leaves or stays.

One walk is taken twice: by the local caller, for whom no place may hold a canary, and by a caller with the
groups, for whom the same places do. So a walk that looks in the wrong place fails.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any

import jwt
import pytest
import structlog
import telling_provider
from contract_sender import COMPLETE, contract
from door import Door, open_door
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from promise import AUDITOR, NOW, RESTRICTED_QUESTIONS, SECRETS, restricted_documents
from span_keeper import keep_spans, told_by
from sqlalchemy import text as sql
from typer.main import get_command
from typer.testing import CliRunner

import api.cli
from api.identity import thread_of
from api.logs import log_as_json
from checkpoint.conversations.store import open_store
from graph.compose import open_assistant
from graph.settings import Settings, load_settings
from nodes.contracts import Caller
from nodes.retrieve.sample import sample_folder

PLAIN = Caller()
GRANTED = Caller(tenant="yunhu", user="auditor", groups=AUDITOR.groups)
MARKS = tuple(
    f"{text.split('# ', 1)[1].splitlines()[0]}的识别标记？" for text in restricted_documents().values()
)
QUESTIONS = ("创业补贴有多少？", *RESTRICTED_QUESTIONS, *MARKS)
SECRET = "a secret of the test that is long enough"
SPANS_OF_A_TURN = (b"POST /api/chat", b"step retrieve", b"step answer", b"chat telling")
CANARY = re.compile(rb"CANARY-[0-9A-F]{4}")

# Where a caller with the grant finds canaries. The other places never hold any.
TOLD_TO_THE_GRANTED = {
    "POST /api/chat",
    "GET /api/chat/{request_id}/events",
    "GET /api/threads/{thread_id}/window",
    "POST /v1/ask",
    "POST /v1/ask/stream",
    "POST /v1/context/turns",
    "POST /v1/context/turns/stream",
    "POST /conversations/{conversation_id}/messages",
    "GET /conversations/{conversation_id}/messages",
    "GET /conversations/{conversation_id}/export",
    "PUT /conversations/{conversation_id}/messages/{message_id}/feedback",
    "ask",
    "chat",
    "window",
    "kept: redis",
    "kept: states",
    "kept: conversations.db",
    "kept: summaries",
    "prompts",
}

# Larger values lie compressed in Redis; "kept: states" reads the same through the codec.
FEW = {
    "kept: redis",
    "ask",
    "window",
    "GET /api/threads/{thread_id}/window",
    "POST /v1/ask",
    "POST /v1/ask/stream",
}


@dataclass
class Walk:
    """What one caller was told and what was kept of it: place -> bytes."""

    caller: Caller
    settings: Settings
    env: Mapping[str, str]
    folder: Path
    log: io.StringIO
    spans: InMemorySpanExporter
    found: dict[str, bytes] = field(default_factory=dict)
    routes: set[str] = field(default_factory=set)

    def note(self, place: str, what: bytes | str) -> None:
        held = what.encode("utf-8", "backslashreplace") if isinstance(what, str) else what
        self.found[place] = self.found.get(place, b"") + b"\n" + held

    def places(self) -> set[str]:
        """The places that hold a canary."""
        return {place for place, what in self.found.items() if CANARY.search(what)}

    # --- over HTTP

    def over_http(self) -> None:
        with open_assistant(self.settings) as assistant, open_store(self.settings.conversations) as store:
            with open_door(assistant, store=store) as door:
                if self.caller is not PLAIN:
                    door.http.headers["Authorization"] = f"Bearer {token_of(self.caller)}"
                routes = routes_of(door)
                self.routes = set(routes)
                door.http.event_hooks["response"].append(lambda response: self._note_route(routes, response))
                self._ask(door)
                self._look(door)
                self._err(door)
            self.note("kept: summaries", repr(summaries_in(store)))

    def _note_route(self, routes: Mapping[str, re.Pattern[str]], response: Any) -> None:
        response.read()
        asked = f"{response.request.method} {response.request.url.path}"
        for place, pattern in routes.items():
            if pattern.fullmatch(asked):
                self.note(place, response.content + repr(response.headers).encode())
                return
        self.note("elsewhere", response.content)

    def _ask(self, door: Door) -> None:
        begun = door.http.post("/conversations", json={"externalId": "c"})
        self.conversation = f"/conversations/{begun.json()['id']}"
        for number, text in enumerate(QUESTIONS):
            door.http.post(("/v1/ask", "/v1/ask/stream")[number % 2], json={"question": text})
            if door.ask(text)[-1][1]["status"] == "needs_input":
                door.post("取消")
        for text in MARKS:
            sent = door.http.post(f"{self.conversation}/messages", json={"question": text}).json()
            if sent["status"] == "needs_input":
                door.http.post(f"{self.conversation}/messages", json={"question": "取消"})
        for text, (source, content) in zip(MARKS, restricted_documents().items(), strict=True):
            mark = next(line for line in content.splitlines() if "CANARY-" in line)
            item = {"title": "t", "content": mark, "source": source, "relevance_score": 0.9}
            for route in ("/v1/context/turns", "/v1/context/turns/stream"):
                door.http.post(route, json=contract(text, COMPLETE, knowledge=[item]))
        door.http.post("/v1/context/turns", json=contract(MARKS[0], COMPLETE))

    def _look(self, door: Door) -> None:
        for route in (
            "/api/threads/t/requests",
            "/api/threads/t/window",
            "/conversations",
            self.conversation,
            f"{self.conversation}/export",
            f"{self.conversation}/export?format=markdown",
            "/health/live",
            "/health/ready",
            "/version",
            "/metrics",
            "/openapi.json",
        ):
            assert door.http.get(route).status_code == 200, route
        for record in door.records():
            door.http.get(f"/api/chat/{record['request_id']}/events")
        door.http.get("/api/threads/t/checkpoints")
        door.http.post("/api/threads/t/fork", json={"new_thread_id": "forked"})
        door.http.get("/api/threads/forked/window")
        rows = door.http.get(f"{self.conversation}/messages").json()["items"]
        for row in rows:
            if row["role"] == "ASSISTANT":
                said = door.http.put(
                    f"{self.conversation}/messages/{row['id']}/feedback", json={"rating": "up"}
                )
                assert said.status_code == 200
        door.http.patch(f"{self.conversation}/title", json={"title": "标题"})
        door.http.post(f"{self.conversation}/archive")
        door.http.post(f"{self.conversation}/restore")
        door.http.post("/api/chat/stop", json={"thread_id": "t"})
        for name in ("gone", "gone too"):
            door.post(QUESTIONS[0], name)
        gone = next(
            one for one in door.http.get("/conversations").json()["items"] if one["externalId"] == "gone"
        )
        assert door.http.delete(f"/conversations/{gone['id']}").status_code == 200
        assert door.http.delete("/api/threads/gone too").status_code == 204

    def _err(self, door: Door) -> None:
        """Each body has a canary among its values, and no problem says a value again."""
        bad = "CANARY-7F3A-云湖"
        for route, body in (
            ("/api/chat", {"thread_id": "t", "message": bad * 500}),
            ("/api/chat", {"thread_id": "t", "message": f"{bad}\x00"}),
            ("/api/chat", {"thread_id": "t", "message": {bad: bad}, "more": bad}),
            ("/v1/ask", {"question": "x", "history": [[bad, bad, bad]]}),
            ("/v1/ask/stream", {"question": [bad]}),
            ("/v1/context/turns", {"session_id": bad}),
            ("/v1/context/turns/stream", contract(bad, {"stage": bad})),
            (f"{self.conversation}/messages", {"question": f"{bad}\x00"}),
            ("/conversations", {"title": [bad]}),
        ):
            told = door.http.build_request("POST", route, json=body)
            hooks, door.http.event_hooks = door.http.event_hooks, {}
            response = door.http.send(told)
            door.http.event_hooks = hooks
            assert response.is_client_error, route
            self.note("problems", response.content)

    # --- on the command line

    def on_the_command_line(self) -> None:
        self._run("ask", MARKS[0])
        self._run("ask", "--json", MARKS[-1])
        self._run("chat", "-t", "cli", text="\n取消\n".join(QUESTIONS[:9]))
        self._run("chat", "-t", "cli", "--json", "--echo", text="\n取消\n".join(QUESTIONS[9:]))
        thread = thread_of(self.caller, "t")
        self._run("history", thread)
        self._run("history", thread, "--json")
        self._run("window", "cli")
        self._run("window", thread, "--json")
        self._run("replay", "cli")
        self._run("replay", "cli", "--live", "--json")
        self._run("archive")
        self._run("stats", "--json")
        self._run("doctor")
        self._run("window", "\udc80")
        self._run("replay", "nobody")
        self._run("export-contract", str(self.folder / "contract"))
        for file in (self.folder / "contract").iterdir():
            self.note("export-contract", file.read_bytes())

    def with_loss(self) -> None:
        """The commands that change what is kept, after all that is kept was read."""
        self._run("prune", "--keep-turns", "2", "--messages", "--json")
        self._run("ingest", str(sample_folder() / "restricted"), "--keep-sample")

    def _run(self, *arguments: str, text: str | None = None) -> None:
        done = CliRunner().invoke(api.cli.app, list(arguments), input=text, env=dict(self.env))
        self.note(arguments[0], done.stdout + done.stderr + repr(done.exception))

    # --- what stays

    def read_what_stays(self, client: Any) -> None:
        for key in client.keys("*"):
            self.note("kept: redis", key + (client.dump(key) or b""))
            if client.type(key) == b"hash":
                for name, value in client.hgetall(key).items():
                    self.note("kept: redis", name + b"=" + value)
        with open_assistant(self.settings) as assistant:
            for item in assistant.saver.list(None):
                self.note("kept: states", repr((item.checkpoint, item.metadata, item.pending_writes)))
        for file in self.settings.home.rglob("*"):
            if file.is_file() and "knowledge" not in file.name:
                self.note(f"kept: {file.name.removesuffix('-wal').removesuffix('-shm')}", file.read_bytes())
        self.note("log", self.log.getvalue())
        self.note("spans", told_by(self.spans.get_finished_spans()))
        self.note("prompts", repr(telling_provider.PROMPTS))


def routes_of(door: Door) -> dict[str, re.Pattern[str]]:
    """Every route of the door by its name in the OpenAPI document; the longest first."""
    named = [
        f"{method.upper()} {path}"
        for path, methods in door.http.get("/openapi.json", headers={}).json()["paths"].items()
        for method in methods
    ]
    named.append("GET /openapi.json")
    return {name: re.compile(re.sub(r"\{\w+\}", "[^/]+", name)) for name in sorted(named, reverse=True)}


def summaries_in(store: Any) -> list[Any]:
    with store.database.read("test") as connection:
        rows = [tuple(row) for row in connection.execute(sql("SELECT * FROM summary_version"))]
    assert rows, "no summary was made"
    return rows


def token_of(caller: Caller) -> str:
    claims = {"tenant": caller.tenant, "sub": caller.user, "groups": sorted(caller.groups)}
    return jwt.encode({**claims, "exp": int(time()) + 600}, SECRET, algorithm="HS256")


@pytest.fixture
def walk_as(
    home: Path, redis_url: str, redis_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Caller], Walk]]:
    log = io.StringIO()
    log_as_json(lambda: NOW, log)
    telling_provider.PROMPTS.clear()
    stack = ExitStack()
    spans = stack.enter_context(keep_spans())

    def walk(caller: Caller) -> Walk:
        env = {"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url, "HISTORY_MAX_TURNS": "2"}
        env["MODEL"] = "telling_provider:make"
        if caller is not PLAIN:
            env["JWT_SECRET"] = SECRET
            monkeypatch.setattr(api.cli, "_caller", lambda: caller)
        taken = Walk(caller, load_settings(env), env, tmp_path, log, spans)
        taken.over_http()
        taken.on_the_command_line()
        taken.read_what_stays(redis_client)
        taken.with_loss()
        return taken

    with stack:
        yield walk
    structlog.reset_defaults()


def require_whole(walk: Walk) -> None:
    """Nothing was left out: each command, each route, each place where something stays."""
    commands = set(get_command(api.cli.app).commands) - {"serve", "work", "import-threads"}  # type: ignore[attr-defined]
    assert commands <= walk.found.keys()
    assert walk.routes <= walk.found.keys()
    assert b"request_ended" in walk.found["log"]
    assert all(b'"name": "%b"' % name in walk.found["spans"] for name in SPANS_OF_A_TURN)


def test_no_canary_is_in_any_byte_for_a_caller_without_the_grant(walk_as: Callable[[Caller], Walk]) -> None:
    walk = walk_as(PLAIN)
    require_whole(walk)
    assert walk.places() == set()
    everything = b"".join(walk.found.values()).decode(errors="replace")
    everything += re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), everything)
    asked = "".join(QUESTIONS)
    assert [secret for secret in SECRETS if secret in everything and secret not in asked] == []


def test_the_same_walk_finds_canaries_for_the_granted(
    walk_as: Callable[[Caller], Walk], monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = walk_as(GRANTED)
    require_whole(walk)
    assert walk.places() - {"elsewhere"} == TOLD_TO_THE_GRANTED & walk.found.keys()
    for place in TOLD_TO_THE_GRANTED & walk.found.keys():
        assert len(set(CANARY.findall(walk.found[place]))) >= (1 if place in FEW else 4), place

    # Another caller of the command line on the very thread where the granted one was told all of it.
    monkeypatch.setattr(api.cli, "_caller", lambda: PLAIN)
    later = Walk(PLAIN, walk.settings, walk.env, walk.folder, walk.log, walk.spans)
    for command in ("window cli", "replay cli", "replay cli --live", "ask -t cli 那去年呢？"):
        later._run(*command.split())
    assert later.places() == set()
    assert b"source_not_visible" in later.found["window"]
    assert b"not_comparable" in later.found["replay"]
