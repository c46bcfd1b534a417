"""Writes the examples of the OpenAPI document, by playing a session over the sample.

`python -m scripts.document_examples`, again after a change of a body. Passages are cut short.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from api.app import create_app
from api.document import EXAMPLES, STREAM
from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store
from graph.compose import open_assistant, prepare_knowledge
from graph.settings import load_settings

NARRATIVE, FACT, VAGUE = "创业补贴有多少？", "云帆科技2023年的营业收入是多少？", "云帆2023年营业收入是多少？"
CUT = "一次性创业补贴的标准为每户8000元。"
EMPTY = ("body_parts", "symptoms", "aggravating_factors", "red_flags", "missing_slots", "pending_answer_for")
COMPLAINT = {
    "stage": "collecting_details",
    **{name: [] for name in EMPTY},
    "chief_complaint": "膝盖下坠感",
    "missing_slots": ["pain_level", "swelling", "trauma"],
    "pending_answer_for": ["pain", "swelling"],
}
SUBSIDY = {
    "domain": "startup_subsidy",
    "stage": "start",
    "red_flags": [],
    "missing_slots": [],
    "pending_answer_for": [],
}


def contract(message: str, state: dict[str, Any], earlier: str | None = None) -> dict[str, Any]:
    said = {"role": "user", "turn_id": "turn_8", "timestamp": "2026-11-30T10:00:00+08:00"}
    messages = [said | {"content": earlier}] if earlier else []
    meta = {"context_version": "1.0.0", "token_budget": 8000, "summary_version": 0}
    return {
        "session_id": "conv_1",
        "turn_id": "turn_9",
        "user_message": message,
        "context": {"recent_messages": messages, "consultation_state": state},
        "meta": meta | {"included_message_count": len(messages)},
    }


class Session:
    """Plays calls and keeps each with its answer, by operation and a name for it."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.told: dict[str, Any] = {}

    def call(self, told: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
        operation, _, name = told.partition(": ")
        response = self.client.request(method, path, json=body, headers=headers)
        assert response.status_code < 300, (told, response.text)
        entry = self.told.setdefault(operation, {})
        if body is not None:
            entry.setdefault("request", {})[name or "usual"] = body
        kind = response.headers.get("content-type", "").split(";")[0]
        if kind:
            entry.setdefault("answers", {}).setdefault(kind, {})[name or "usual"] = shown(kind, response)
        return response.json() if kind == "application/json" else response.text


def shown(kind: str, response: Any) -> Any:
    if kind == "application/json":
        return cut(response.json())
    if kind == STREAM:
        return "".join(cut_event(block) for block in response.text.split("\n\n") if block)
    return response.text if kind == "text/markdown" else "".join(response.text.splitlines(True)[:3])


def cut_event(block: str) -> str:
    number, name, data = block.split("\n")
    short = json.dumps(
        cut(json.loads(data.removeprefix("data: "))), ensure_ascii=False, separators=(",", ":")
    )
    return f"{number}\n{name}\ndata: {short}\n\n"


def cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: CUT if key == "passage" and len(item) > 60 else cut(item) for key, item in value.items()}
    return [cut(item) for item in value] if isinstance(value, list) else value


def play(client: TestClient) -> dict[str, Any]:
    session = Session(client)
    call = session.call
    held = call(
        "create_conversation", "POST", "/conversations", {"title": "创业补贴", "externalId": "start-up"}
    )
    base = f"/conversations/{held['id']}"
    messages = f"{base}/messages"
    call("send_message: a question", "POST", messages, {"question": NARRATIVE, "clientMessageId": "m-1"})
    call("send_message: a question that lacks something", "POST", messages, {"question": VAGUE})
    call("get_conversation", "GET", base)
    call("send_message: a reply", "POST", messages, {"question": "1"})
    call("send_message: as a stream", "POST", messages, {"question": FACT, "stream": True})
    call("list_conversations", "GET", "/conversations?limit=1")
    rows = call("list_messages", "GET", f"{messages}?limit=2")["items"]
    rating = {"rating": "down", "comment": "没有说申请条件"}
    call("rate_message", "PUT", f"{messages}/{rows[1]['id']}/feedback", rating)
    call("export_conversation: all of it", "GET", f"{base}/export")
    call("export_conversation: as a text", "GET", f"{base}/export?format=markdown")
    call("rename_conversation", "PATCH", f"{base}/title", {"title": "创业补贴申请"})
    play_threads(session)
    call("archive_conversation", "POST", f"{base}/archive")
    call("restore_conversation", "POST", f"{base}/restore")
    call("delete_conversation", "DELETE", base)
    play_stateless(session)
    for name, path in (("get_liveness", "/health/live"), ("get_readiness", "/health/ready")):
        call(name, "GET", path)
    call("get_version", "GET", "/version")
    call("get_metrics", "GET", "/metrics")
    ready = session.told["get_readiness"]
    down = json.loads(json.dumps(ready["answers"]["application/json"]["usual"]))
    down["status"] = "down"
    down["parts"]["redis"]["up"] = False
    ready["answers_when_down"] = {"application/json": {"redis is down": down}}
    return session.told


def play_threads(session: Session) -> None:
    call = session.call
    asked = {"thread_id": "start-up", "message": NARRATIVE, "client_message_id": "m-2"}
    call("chat: a question", "POST", "/api/chat", asked)
    vague = {"thread_id": "revenue", "message": VAGUE}
    call("chat: a question that lacks something", "POST", "/api/chat", vague)
    call("chat: a command", "POST", "/api/chat", {"thread_id": "revenue", "message": "/discard"})
    records = call("list_requests", "GET", "/api/threads/start-up/requests")["items"]
    last = f"/api/chat/{records[-1]['request_id']}/events"
    call("follow_request", "GET", last, **{"Last-Event-ID": "5"})
    call("stop_chat", "POST", "/api/chat/stop", {"thread_id": "start-up"})
    call("get_window", "GET", "/api/threads/start-up/window")
    call("list_checkpoints", "GET", "/api/threads/start-up/checkpoints?limit=2")
    call("fork_thread", "POST", "/api/threads/start-up/fork", {"new_thread_id": "start-up-2"})
    call("delete_thread", "DELETE", "/api/threads/revenue")


def play_stateless(session: Session) -> None:
    call = session.call
    pairs = [["user", "你好"], ["assistant", "您好。"]]
    call("ask: with earlier turns", "POST", "/v1/ask", {"question": NARRATIVE, "history": pairs})
    call("ask: a question that lacks something", "POST", "/v1/ask", {"question": VAGUE})
    call("ask_stream", "POST", "/v1/ask/stream", {"question": FACT})
    turn = contract("疼痛6分，没有肿", COMPLAINT, "我膝盖有下坠感")
    call("answer_contract", "POST", "/v1/context/turns", turn)
    turn = contract("我想申请一次性创业补贴", SUBSIDY)
    call("answer_contract_stream", "POST", "/v1/context/turns/stream", turn)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ba-") as folder:
        settings = load_settings({"BUSINESS_ASSISTANT_HOME": folder})
        prepare_knowledge(settings)
        with (
            open_store(StoreConfig(home=Path(folder))) as store,
            open_assistant(settings) as assistant,
            TestClient(create_app(assistant, store=store)) as client,
        ):
            told = play(client)
    EXAMPLES.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
