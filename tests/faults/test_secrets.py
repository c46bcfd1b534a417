"""A secret that comes in anywhere stays there: no store, stream, state or log ever has it."""

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
import redis
import structlog
from faults.parts import FACT, NARRATIVE, NOBODY, VAGUE, Home, Model
from faults.test_odd_text import contract
from integration.door import Door, endings, events_of

from api.logs import log_as_json
from graph.run import config_for
from graph.steps import RequestContext
from nodes.contracts import ToldSummary

MARK = "SECRET-X-7f3a9c"
KEY = f"{MARK}-a-secret-of-more-than-32-letters"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    written = io.StringIO()
    log_as_json(lambda: "now", written)
    yield written
    structlog.reset_defaults()


def kept(client: redis.Redis, folder: Path) -> bytes:
    """Every byte in Redis and in the data folder, values of hashes as they are and as they are restored."""
    found = [client.dump(key) or b"" for key in client.keys("*")]
    for key in client.keys("*:context:*"):
        found += [part for pair in client.hgetall(key).items() for part in pair]
    found += [file.read_bytes() for file in folder.rglob("*") if file.is_file() and not file.is_socket()]
    return b"\n".join(found)


def states(door: Door, thread: str) -> str:
    saver = door.app.state.assistant.saver
    return repr(list(saver.list(config_for(thread))))


def token(**more: Any) -> str:
    claims = {"tenant": "acme", "sub": "alice", "exp": time.time() + 10**6, **more}
    return jwt.encode(claims, KEY, "HS256")


def test_no_secret_of_a_request_is_kept_told_or_logged(
    place: Home, model: Model, redis_client: redis.Redis, log: io.StringIO, capfd: Any
) -> None:
    signed = Home(place.folder, place.redis_url, {"JWT_SECRET": KEY, "OPENAI_API_KEY": KEY})
    bearer = token(api_key=MARK, note=MARK, groups=[f"{MARK}-group"])
    headers = {
        "Authorization": f"Bearer {bearer}",
        "X-Api-Key": MARK,
        "Cookie": f"session={MARK}",
        "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
        "tracestate": f"vendor={MARK}",
    }
    model.faults = ["error"]
    told: list[str] = []
    with signed.door(model) as door:
        for text in (NARRATIVE, FACT, "/retry", VAGUE, "2"):
            body = {"thread_id": "t", "message": text, "client_message_id": f"m-{text}"}
            response = door.http.post("/api/chat", json=body, headers=headers)
            assert endings(events_of(response.text)) == ["done"]
            told += [response.text, repr(response.headers)]
        listed = door.http.get("/conversations", headers=headers)
        (held,) = listed.json()["items"]
        for path in ("", "/messages", "/export"):
            told.append(door.http.get(f"/conversations/{held['id']}{path}", headers=headers).text)
        told.append(door.http.get("/api/threads/t/requests", headers=headers).text)
        # Refused ones too: a bad token, a body that names a field after the secret, and a large one.
        broken = {**headers, "Authorization": f"Bearer {bearer[:-2]}"}
        told.append(door.http.post("/api/chat", json={"thread_id": "t"}, headers=broken).text)
        told.append(door.http.post("/api/chat", json={"api_key": MARK}, headers=headers).text)
        told.append(door.http.post("/api/nothing", json={}, headers=headers).text)
        for thread in {record["thread_id"] for record in door.app.state.assistant.saver.scan_requests()}:
            told.append(states(door, thread))
        told.append(model.shown())
    everything = "\n".join([*told, log.getvalue(), *capfd.readouterr()]).encode()
    everything += kept(redis_client, place.folder)
    assert b"request_ended" in everything
    for secret in (MARK, bearer, bearer.rsplit(".", 1)[1], KEY):
        assert secret.encode() not in everything, secret


def test_nothing_of_a_contract_is_kept_or_logged(
    place: Home, redis_client: redis.Redis, log: io.StringIO
) -> None:
    before = kept(redis_client, place.folder)
    with place.door() as door:
        for where in ("message", "session", "history", "state", "profile"):
            response = door.http.post("/v1/context/turns", json=contract(where, f"{MARK} 疼"))
            assert response.status_code in (200, 422)
        response = door.http.post("/v1/context/turns", json={**contract("message", "你好"), "token": MARK})
        assert response.status_code == 422
        # A field's name is told back so that its sender can find it; its value never is.
        assert MARK not in json.dumps(response.json())
    assert MARK.encode() not in kept(redis_client, place.folder)
    assert MARK not in log.getvalue()
    assert len(before) > 0


@pytest.mark.parametrize("encrypts", [False, True], ids=["plain", "encrypted"])
def test_what_a_python_caller_passes_beside_the_input(
    place: Home, redis_client: redis.Redis, encrypts: bool
) -> None:
    """Context and names that begin with __ are never stored. Other scalars of `configurable` become metadata.

    That is LangGraph's contract with every saver; with CONTEXT_AES_KEY they are stored encrypted at least.
    No door puts anything there but the thread and the lease.
    """
    more = {"CONTEXT_AES_KEY": "k" * 32} if encrypts else {}
    with Home(place.folder, place.redis_url, more).assistant() as assistant:
        config = config_for("t", None)
        config["configurable"]["__token"] = MARK
        if encrypts:
            config["configurable"]["api_key"] = MARK
        summary = ToldSummary(f"{MARK} 摘要", ((MARK, "1"),))
        assistant.graph.invoke(
            {"request": {"text": FACT}},
            config,
            context=RequestContext(NOBODY, summary),
            durability="sync",
        )
        found = kept(redis_client, place.folder)
        assert MARK.encode() not in found.replace(b"\x00", b"")
        states = repr(list(assistant.saver.list(config_for("t"))))
        assert (MARK in states) is encrypts  # as metadata, for whoever has the key


def test_doors_configure_nothing_but_thread_and_lease() -> None:
    assert config_for("t") == {"configurable": {"thread_id": "t"}}
    assert config_for("t", "token") == {"configurable": {"thread_id": "t", "__lease": "token"}}
