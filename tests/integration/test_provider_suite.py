"""One suite for all providers; the chat model provider against a real server with the OpenAI protocol."""

import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypedDict

import pytest
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import SecretStr

from nodes.answer.prompts import PromptBudget, build_prompt
from nodes.answer.providers import (
    ChatModelProvider,
    ExtractiveProvider,
    Reply,
    ScriptedProvider,
    _limit_of_openai,
    load_provider,
)
from nodes.contracts import Passage, Prompt, Provider, ProviderError

CANARY = "秘密问题QX7731"
WAIT_SECONDS = 120.0  # how long anything may take before a test gives up; nothing is asserted about speed


def passage(text: str, title: str = "补贴办法") -> Passage:
    return {
        "document_id": "d",
        "version": "1",
        "title": title,
        "source": "s",
        "text": text,
        "start": 0,
        "end": len(text),
        "passage_hash": "h",
        "score": 1.0,
        "valid_from": None,
        "valid_until": None,
    }


def prompt(question: str = "补贴多少钱？", output: int = 256) -> Prompt:
    return build_prompt(
        question,
        language="zh",
        passages=[passage("补贴标准为每人1500元。")],
        window=None,
        budget=PromptBudget(total=8000, output=output),
    )


@dataclass
class ModelServer:
    """A server of chat completions. Each request takes the next behaviour; the last one stays."""

    behaviours: list[dict[str, Any]] = field(default_factory=lambda: [{"text": "补贴为每人1500元[C1]。"}])
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    release: threading.Event = field(default_factory=threading.Event)

    def next(self, request: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            self.requests.append(request)
            return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            behaviour = server.next(body)
            if behaviour.get("hang"):
                server.release.wait(WAIT_SECONDS)
                self.close_connection = True
                return
            if status := behaviour.get("status"):
                content = json.dumps({"error": {"message": str(body["messages"]), "type": "x"}}).encode()
                self._head(status, "application/json", len(content))
                self.wfile.write(content)
                return
            self._stream(behaviour)

        def _head(self, status: int, kind: str, length: int | None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if length is None:
                self.send_header("Connection", "close")
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(length))
            self.end_headers()

        def _stream(self, behaviour: dict[str, Any]) -> None:
            # A length that is not kept: leaving early is then a lost connection, not an end.
            self._head(200, "text/event-stream", 10**9 if "drop_after" in behaviour else None)
            text, size = behaviour["text"], behaviour.get("piece", 7)
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            try:
                for at, piece in enumerate(pieces):
                    if at == behaviour.get("drop_after"):
                        self.close_connection = True
                        return
                    self._event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}}]})
                self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
                if behaviour.get("usage", True):
                    usage = {"prompt_tokens": 321, "completion_tokens": 45, "total_tokens": 366}
                    self._event({"choices": [], "usage": usage})
                self.wfile.write(b"data: [DONE]\n\n")
            except (BrokenPipeError, ConnectionResetError):
                server.release.set()  # the client has left

        def _event(self, fields: dict[str, Any]) -> None:
            event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", **fields}
            self.wfile.write(f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())
            self.wfile.flush()

    return Handler


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = ModelServer()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(made)) as http:
        http.daemon_threads = True
        made.url = f"http://127.0.0.1:{http.server_port}/v1"
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield made
        made.release.set()
        http.shutdown()
        thread.join()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def no_wait(_: float) -> None: ...


def chat(server: ModelServer, **settings: Any) -> ChatModelProvider:
    options: dict[str, Any] = {"timeout": WAIT_SECONDS, **settings}
    model = ChatOpenAI(
        model="tiny", base_url=server.url, api_key=SecretStr("k"), max_retries=0, stream_usage=True, **options
    )
    return ChatModelProvider(model, wait=no_wait)


def text_of(provider: Provider, asked: Prompt) -> str:
    return "".join(piece.text for piece in provider.stream(asked))


Make = Callable[[ModelServer, str], Provider]


def _scripted(_: ModelServer, text: str) -> Provider:
    return ScriptedProvider([text])


def _openai(server: ModelServer, text: str) -> Provider:
    server.behaviours = [{"text": text}]
    return load_provider("openai:tiny", base_url=server.url)


def _extractive(_: ModelServer, __: str) -> Provider:
    return ExtractiveProvider()


ALL = pytest.mark.parametrize("make", [_extractive, _scripted, _openai])
MODELS = pytest.mark.parametrize("make", [_scripted, _openai])


# The suite


@ALL
def test_text_comes_and_the_last_piece_carries_the_usage(make: Make, server: ModelServer) -> None:
    provider = make(server, "补贴为每人1500元[C1]。")
    pieces = list(provider.stream(prompt()))
    assert "1500元" in "".join(piece.text for piece in pieces)
    usage = pieces[-1].usage
    assert usage is not None
    assert usage["model"] == provider.name
    assert min(usage["prompt_tokens"], usage["completion_tokens"]) >= 0
    assert all(piece.usage is None for piece in pieces[:-1])


@ALL
def test_the_same_prompt_gives_the_same_text(make: Make, server: ModelServer) -> None:
    provider = make(server, "补贴为每人1500元[C1]。")
    assert text_of(provider, prompt()) == text_of(provider, prompt())


@ALL
def test_threads_do_not_mix_answers(make: Make, server: ModelServer) -> None:
    provider = make(server, "补贴为每人1500元[C1]。" * 20)
    expected = text_of(provider, prompt())
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: text_of(provider, prompt()), range(24))) == {expected}


@MODELS
def test_a_200_kb_answer_is_bounded(make: Make, server: ModelServer) -> None:
    provider = make(server, "字" * 70_000)
    assert 0 < len(text_of(provider, prompt(output=100))) <= 100 * 6


@MODELS
@pytest.mark.parametrize("blank", ["", "   ", "\n\n\t\u3000"])
def test_a_blank_answer_is_an_error(make: Make, blank: str, server: ModelServer) -> None:
    with pytest.raises(ProviderError, match="no text"):
        text_of(make(server, blank), prompt())


@MODELS
def test_a_stream_may_be_left_early(make: Make, server: ModelServer) -> None:
    provider = make(server, "补贴为每人1500元[C1]。" * 50)
    stream = provider.stream(prompt())
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert "1500" in text_of(provider, prompt())


# Chat models


def test_messages_arrive_in_order_and_role(server: ModelServer) -> None:
    asked = prompt()
    text_of(chat(server), asked)
    sent = server.requests[0]["messages"]
    assert [message["role"] for message in sent] == ["system", "user"]
    assert sent[-1]["content"] == asked.question
    assert sent[0]["content"] == asked.messages[0].content


def test_reported_usage_is_kept_and_an_unreported_one_estimated(server: ModelServer) -> None:
    last = list(chat(server).stream(prompt()))[-1]
    assert last.usage == {"model": "tiny", "prompt_tokens": 321, "completion_tokens": 45}
    server.behaviours = [{"text": "好的", "usage": False}]
    estimated = list(chat(server).stream(prompt()))[-1].usage
    assert estimated is not None
    assert estimated["completion_tokens"] == 2


@pytest.mark.parametrize("status", [429, 500, 503, 408])
def test_what_may_pass_is_retried_before_the_first_piece(status: int, server: ModelServer) -> None:
    server.behaviours = [{"status": status}, {"status": status}, {"text": "好的。"}]
    assert text_of(chat(server), prompt()) == "好的。"
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [429, 500])
def test_retries_end(status: int, server: ModelServer) -> None:
    server.behaviours = [{"status": status}]
    with pytest.raises(ProviderError, match=f"status {status}"):
        text_of(chat(server), prompt())
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_cannot_pass_is_not_retried(status: int, server: ModelServer) -> None:
    server.behaviours = [{"status": status}]
    with pytest.raises(ProviderError, match=f"status {status}"):
        text_of(chat(server), prompt())
    assert len(server.requests) == 1


def test_a_time_out_is_retried_and_then_an_error(server: ModelServer) -> None:
    server.behaviours = [{"hang": True}]
    with pytest.raises(ProviderError, match="Timeout"):
        text_of(chat(server, timeout=0.2), prompt())
    until(lambda: len(server.requests) >= 3)  # one that was given up may be read only now
    assert len(server.requests) == 3


def test_nothing_is_retried_after_the_first_piece(server: ModelServer) -> None:
    server.behaviours = [{"text": "补贴为每人1500元", "drop_after": 1}]
    got: list[str] = []
    with pytest.raises(ProviderError):
        got.extend(piece.text for piece in chat(server).stream(prompt()))
    assert len(server.requests) == 1
    assert "".join(got) == "补贴为每人15"
    # The same loss before the first piece is retried.
    server.behaviours = [{"text": "补", "drop_after": 0}, {"text": "好的。"}]
    assert text_of(chat(server), prompt()) == "好的。"


def test_an_error_carries_no_user_text_not_even_in_its_chain(server: ModelServer) -> None:
    server.behaviours = [{"status": 400}]
    with pytest.raises(ProviderError) as caught:
        text_of(chat(server), prompt(CANARY))
    assert CANARY in str(server.requests[0])  # the server does repeat it in its error
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_no_server_is_an_error_without_its_address(server: ModelServer) -> None:
    provider = load_provider("openai:tiny", base_url="http://127.0.0.1:9/v1", api_key="sk-secret")
    assert isinstance(provider, ChatModelProvider)
    provider._wait = no_wait
    with pytest.raises(ProviderError) as caught:
        text_of(provider, prompt())
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("piece", [1, 3, 50])
def test_thinking_is_left_out(piece: int, server: ModelServer) -> None:
    server.behaviours = [{"text": "<think>用户问 9999 元</think>\n补贴为1500元。", "piece": piece}]
    assert text_of(chat(server), prompt()) == "补贴为1500元。"
    server.behaviours = [{"text": "<think>只想不说", "piece": piece}]
    with pytest.raises(ProviderError, match="no text"):
        text_of(chat(server), prompt())
    server.behaviours = [{"text": "<thin>不是思考", "piece": piece}]
    assert text_of(chat(server), prompt()) == "<thin>不是思考"


class _State(TypedDict, total=False):
    text: str


def _token_texts(run: Callable[[], str]) -> str:
    """All that a graph's message stream shows of a model that is called in a node."""

    def node(_: _State) -> _State:
        return {"text": run()}

    builder = StateGraph(_State)
    builder.add_node("answer", node)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    shown = builder.compile().stream({}, stream_mode="messages")
    return "".join(str(chunk.text) for chunk, _ in shown)  # type: ignore[union-attr, misc]


def test_raw_tokens_stay_out_of_every_message_stream(server: ModelServer) -> None:
    server.behaviours = [{"text": "原始词元1500"}]
    provider = chat(server)
    assert _token_texts(lambda: text_of(provider, prompt())) == ""
    # Without the tag they do show, so the test is not blind.
    assert "原始词元" in _token_texts(lambda: "".join(str(c.text) for c in provider._model.stream("x")))


# Scripted


def test_replies_come_in_order_and_the_last_stays() -> None:
    provider = ScriptedProvider(["一。", "二。"])
    assert [text_of(provider, prompt()) for _ in range(3)] == ["一。", "二。", "二。"]
    assert len(provider.prompts) == 3


def test_a_script_used_once_ends_in_an_error() -> None:
    provider = ScriptedProvider(["一。"], once=True)
    text_of(provider, prompt())
    with pytest.raises(ProviderError, match="no reply left"):
        text_of(provider, prompt())
    with pytest.raises(ProviderError, match="no reply left"):
        text_of(ScriptedProvider([]), prompt())


def test_a_scripted_reply_may_fail_after_some_pieces() -> None:
    got: list[str] = []
    provider = ScriptedProvider([Reply("一二三四五六", error="429", fail_after=2, piece=2)])
    stream = provider.stream(prompt())
    with pytest.raises(ProviderError, match="429"):
        got.extend(piece.text for piece in stream)
    assert got == ["一二", "三四"]


def test_a_scripted_reply_may_be_bound_to_a_question_and_slow() -> None:
    waits: list[float] = []
    provider = ScriptedProvider(
        [Reply("默认。"), Reply("条件。", when="条件", wait=0.5, piece=1)], sleep=waits.append
    )
    assert text_of(provider, prompt("有什么条件？")) == "条件。"
    assert text_of(provider, prompt("多少钱？")) == "默认。"
    assert waits == [0.5, 0.5, 0.5]


def test_a_server_is_told_where_the_answer_must_end(server: ModelServer) -> None:
    text_of(load_provider("openai:tiny", base_url=server.url), prompt(output=77))
    assert server.requests[-1]["max_tokens"] == 77


def test_openai_is_told_by_its_own_name_of_it() -> None:
    assert _limit_of_openai(77) == {"max_completion_tokens": 77}
    payload = ChatOpenAI(model="tiny", api_key=SecretStr("k"))._get_request_payload(
        [], **_limit_of_openai(77)
    )
    assert payload["max_completion_tokens"] == 77
    assert "max_tokens" not in payload
