"""The HTTP door: routes, and what starts and ends with the server. A route calls one other module."""

import asyncio
import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from api import health
from api.arenas import keep_few_arenas
from api.ask import AskParts, ask_router
from api.bodies import (
    ChatBody,
    CheckpointId,
    Live,
    Ready,
    RequestList,
    StopBody,
    Stopping,
    StrictRoute,
    ThreadId,
    Version,
    WindowMessage,
    WindowView,
)
from api.connections import (
    MAX_HEAD_BYTES,
    MOST_WAITING,
    RESERVED_FILES,
    House,
    allow_files,
    places_for,
    protocol_in,
)
from api.contract.router import ContractParts, contract_router
from api.conversations import ConversationParts, conversations_router, delete_named
from api.document import describe
from api.edge import Arrivals, Edge, Origin, log_refusal
from api.events import EVENT_SCHEMA, EventStream
from api.identity import caller_of, thread_of
from api.leases import LeaseKeeper
from api.ledger import refusal_of
from api.logs import log_as_json
from api.message_ids import idempotency_key, message_id_of
from api.metrics import CONTENT_TYPE as METRICS_TYPE
from api.metrics import Metrics
from api.problems import Refusal, problem_response, refusal_of_status, responses
from api.rejoin import Rejoining, rejoin_router
from api.summaries import make_ledger
from api.sweeper import Sweeper
from api.threads import ThreadParts, threads_router
from api.tokens import sign_in_of
from api.tracing import exporting_spans
from api.turnlog import turn_log
from api.turns import Ask, Desk, StreamTurn
from api.watch import Watch
from api.webpage import add_page
from api.workers import WorkerPool
from checkpoint.conversations.errors import ConversationStoreError
from checkpoint.conversations.store import ConversationStore, open_store
from checkpoint.errors import CheckpointUnavailable
from checkpoint.requests import sweep
from graph.compose import Assistant, open_assistant, window_of
from graph.run import BadTextError, check_text, stream_turn
from graph.settings import Settings
from nodes.contracts import Caller, Language

MOMENT_SECONDS = 2.0  # for what was interrupted to be recorded, and again for its readers to be told
LAST_CALL_SECONDS = 2.0  # for requests on their way to arrive at a server that leaves, within its grace
ACCEPTING_TURNS = 3  # of the loop, in which who waits is accepted, or who was becomes a connection

CallerHere = Annotated[Caller, Depends(caller_of)]
KeyHere = Annotated[str | None, Depends(idempotency_key)]
ThreadHere = Annotated[ThreadId, Path()]

_STREAM_EXAMPLE = (
    'id: 1\nevent: created\ndata: {"request_id":"…","thread_id":"…","turn_id":null}\n\n'
    'id: 2\nevent: stage\ndata: {"node":"gate","input_kind":null}\n\n'
    'id: 3\nevent: token\ndata: {"text":"…"}\n\n'
    'id: 4\nevent: done\ndata: {"status":"completed","degraded":false,"error_code":null,"answer":{},'
    '"usage":null}\n\n'
)
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The request's events: created, stage, token, reset, citations, clarification, and "
        "one terminal event, done or error.",
        "content": {"text/event-stream": {"schema": EVENT_SCHEMA, "example": _STREAM_EXAMPLE}},
    }
}
_ALWAYS = responses("bad_request", "forbidden", "body_timeout", "body_too_large", "internal_error")
_ON_BODY = responses("malformed_json", "unsupported_media_type", "invalid_body")
_ON_STORE = responses("store_unavailable")


def create_app(
    assistant: Assistant,
    *,
    store: ConversationStore | None = None,
    client: Any = None,
    run_turn: StreamTurn = stream_turn,
    lease_ms: int | None = None,
    grace_seconds: float | None = None,
) -> FastAPI:
    """The door around one open assistant, which the caller opens and closes. Times not given are as set.

    `store` keeps the conversations; without one nothing is stored but the threads. `client` is the Redis
    client for the leases; by default the saver's own.
    """
    config, settings, metrics = assistant.saver.config, assistant.settings, Metrics()
    grace = settings.drain_seconds if grace_seconds is None else grace_seconds
    metrics.set("workers", 1)
    metrics.set("turns_limit", assistant.settings.max_workers)
    keeper = LeaseKeeper(
        assistant.saver.wire.client if client is None else client,
        prefix=config.key_prefix,
        lease_ms=round(settings.lease_seconds * 1000) if lease_ms is None else lease_ms,
    )
    ledger = make_ledger(store, assistant, keeper) if store else None
    log_of_turns = turn_log(settings, metrics)
    desk = Desk(
        assistant,
        keeper,
        WorkerPool(settings.max_workers, per_caller=settings.caller_max_running),
        run_turn=run_turn,
        stop_on_disconnect=settings.on_disconnect == "stop",
        ledger=ledger,
        turn_log=log_of_turns,
    )

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        sweeper = Sweeper(lambda now: sweep(assistant.saver, now=now))
        sweeper.start()
        yield
        sweeper.close()
        await run_in_threadpool(desk.close, grace)
        if ledger:
            await run_in_threadpool(ledger.end)

    app = FastAPI(
        title="Business Assistant",
        version=health.version_of_package(),
        description="Answers business and policy questions over many turns.",
        lifespan=lifespan,
        docs_url=None,  # these pages load scripts from elsewhere; /openapi.json has it all
        redoc_url=None,
        # The framework's own spans carry paths and queries, which can name conversations; ours do not.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.router.route_class = StrictRoute
    app.state.desk, app.state.keeper, app.state.assistant = desk, keeper, assistant
    app.state.sign_in, app.state.metrics = sign_in_of(settings), metrics
    app.state.heartbeat_seconds, app.state.grace_seconds = settings.heartbeat_seconds, grace
    _add_chat(app, desk)
    app.include_router(ask_router(AskParts(assistant, desk.pool, log_of_turns, desk.errands)))
    app.include_router(contract_router(ContractParts(assistant, desk.pool, desk.errands)))
    parts = ConversationParts(ledger, desk) if ledger else None
    app.include_router(rejoin_router(Rejoining(assistant, desk, ledger)))
    app.include_router(threads_router(ThreadParts(assistant, keeper, ledger)))
    _add_threads(app, assistant, keeper, desk, parts)
    if parts:
        app.include_router(conversations_router(parts))
    _add_health(app, partial(health.parts, assistant, keeper, store), metrics)
    add_page(app)
    _add_problems(app)
    app.state.arrivals = arrivals = Arrivals()
    app.add_middleware(Edge, clock=assistant.clock, new_id=assistant.new_id, arrivals=arrivals)
    app.add_middleware(Watch, metrics=metrics)
    return app


def _add_chat(app: FastAPI, desk: Desk) -> None:
    @app.post(
        "/api/chat",
        response_class=EventStream,
        responses={
            **_STREAM,
            **_ALWAYS,
            **_ON_BODY,
            **_ON_STORE,
            **responses("thread_busy", "invalid_body", "invalid_text", "message_id_reused", "pool_full"),
            **responses("caller_limit"),
            **responses("store_unavailable", "shutting_down"),
        },
        summary="Ask, reply or command; answers as a stream of events",
    )
    async def chat(request: Request, body: ChatBody, caller: CallerHere, key: KeyHere) -> EventStream:
        _check_message(body.message)
        run = await desk.take(
            Ask(
                thread_of(caller, body.thread_id),
                body.message,
                caller,
                origin_of(request),
                message_id_of(key, body.client_message_id),
                name=body.thread_id,
            )
        )
        return EventStream(run.feed, request_id=run.request_id, on_abandoned=partial(desk.abandon, run))

    @app.post(
        "/api/chat/stop",
        responses={**_ALWAYS, **_ON_BODY, **_ON_STORE, **responses("not_found")},
        summary="Stop the running request of a thread",
    )
    async def stop(body: StopBody, caller: CallerHere) -> Stopping:
        stopping = await run_in_threadpool(desk.stop, caller, body.thread_id)
        return Stopping(thread_id=body.thread_id, stopping=stopping)


def _add_threads(
    app: FastAPI,
    assistant: Assistant,
    keeper: LeaseKeeper,
    desk: Desk,
    parts: ConversationParts | None,
) -> None:
    known = {**_ALWAYS, **_ON_STORE, **responses("not_found", "invalid_body")}

    def note(caller: Caller, name: str, detail: dict[str, int | str]) -> None:
        if parts:
            parts.ledger.note_thread_read(caller, name, detail)

    def requests_of(caller: Caller, name: str) -> list[dict[str, Any]]:
        thread_id = thread_of(caller, name)
        _require_thread(keeper, thread_id)
        records = assistant.saver.list_requests(thread_id)
        note(caller, name, {"requests": len(records)})
        return [{**record, "thread_id": name} for record in records]

    def view_of(name: str, caller: Caller, language: Language, checkpoint_id: str | None) -> WindowView:
        thread_id = thread_of(caller, name)
        _require_thread(keeper, thread_id)
        window = window_of(assistant, thread_id, caller, language, checkpoint_id)
        note(caller, name, {"turns": window.turns})
        messages = [WindowMessage(role=role, content=content) for role, content in window.messages]
        return WindowView(**window.report(), messages=messages)

    @app.get("/api/threads/{thread_id:path}/requests", responses=known, summary="What was asked")
    async def requests(thread_id: ThreadHere, caller: CallerHere) -> RequestList:
        return RequestList.model_validate({"items": await run_in_threadpool(requests_of, caller, thread_id)})

    @app.get("/api/threads/{thread_id:path}/window", responses=known, summary="What a model would see")
    async def window(
        thread_id: ThreadHere,
        caller: CallerHere,
        language: Language = "zh",
        checkpoint_id: Annotated[
            CheckpointId | None, Query(description="At this step; the newest when left out.")
        ] = None,
    ) -> WindowView:
        return await run_in_threadpool(view_of, thread_id, caller, language, checkpoint_id)

    # A name may hold slashes, so without this a wrong method would be taken for a longer name.
    for part in ("requests", "window", "checkpoints", "fork"):
        app.add_api_route(
            f"/api/threads/{{thread_id:path}}/{part}",
            _refuse_method("POST" if part == "fork" else "GET"),
            methods=["DELETE"],
            include_in_schema=False,
        )

    @app.delete("/api/threads/{thread_id:path}", status_code=204, responses=known, summary="Erase a thread")
    async def erase(thread_id: ThreadHere, caller: CallerHere) -> Response:
        if parts:
            kept: bool = await run_in_threadpool(delete_named, parts, caller, thread_id)
            if kept:
                return Response(status_code=204)
        if not await run_in_threadpool(desk.erase, thread_of(caller, thread_id)):
            raise Refusal("not_found")
        return Response(status_code=204)


def _add_health(app: FastAPI, parts_of: Callable[[], dict[str, Any]], metrics: Metrics) -> None:
    @app.get("/health/live", summary="The process lives; touches no service")
    async def live() -> Live:
        return Live()

    @app.get("/health/ready", responses={503: {"model": Ready, "description": "A part is down"}})
    async def ready(response: Response) -> Ready:
        parts = await run_in_threadpool(parts_of)
        is_up = all(part["up"] for part in parts.values())
        response.status_code = 200 if is_up else 503
        return Ready(status="ok" if is_up else "down", parts=parts)

    @app.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        summary="Counts and times for Prometheus",
    )
    async def exposed() -> Response:
        return Response(await run_in_threadpool(metrics.exposition), media_type=METRICS_TYPE)

    @app.get("/version")
    async def version() -> Version:
        return Version(name=health.PACKAGE, version=health.version_of_package())


def _add_problems(app: FastAPI) -> None:
    def reply(request: Request, refusal: Refusal) -> Response:
        origin = origin_of(request)
        request.scope["state"]["refusal"] = refusal.code
        log_refusal(refusal, origin)
        return problem_response(refusal, request_id=origin.request_id, instance=origin.path)

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> Response:
        return reply(request, error)

    @app.exception_handler(CheckpointUnavailable)
    async def unavailable(request: Request, _error: CheckpointUnavailable) -> Response:
        return reply(request, Refusal("store_unavailable"))

    @app.exception_handler(ConversationStoreError)
    async def unstored(request: Request, error: ConversationStoreError) -> Response:
        return reply(request, refusal_of(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return reply(request, refusal_of_body(error))

    @app.exception_handler(HTTPException)
    async def failed(request: Request, error: HTTPException) -> Response:
        return reply(request, refusal_of_status(error.status_code, error.headers))

    describe(app)


def refusal_of_body(error: RequestValidationError) -> Refusal:
    """Which field and which rule; never the value, which may be the user's text."""
    faults = error.errors()
    if any(fault["type"] == "json_invalid" for fault in faults):
        return Refusal("malformed_json")
    return Refusal(
        "invalid_body",
        errors=[
            {"field": ".".join(map(str, fault["loc"][1:]))[:64] or "body", "code": str(fault["type"])}
            for fault in faults
        ],
    )


def origin_of(request: Request) -> Origin:
    origin: Origin = request.scope["state"]["origin"]
    return origin


def _check_message(message: str) -> None:
    try:
        check_text(message)
    except BadTextError as error:
        raise Refusal("invalid_text", str(error), errors=[{"field": "message", "code": error.code}]) from None


def _refuse_method(allowed: str) -> Callable[[], Awaitable[None]]:
    async def refuse() -> None:
        raise Refusal("method_not_allowed", headers={"Allow": allowed})

    return refuse


def _require_thread(keeper: LeaseKeeper, thread_id: str) -> None:
    if not keeper.knows_thread(thread_id):
        raise Refusal("not_found")


@dataclass(frozen=True)
class Leaving:
    """What a server has to tell when it leaves."""

    desk: Desk
    house: House
    arrivals: Arrivals

    def begin(self, last_call: float) -> None:
        """What is on its way may still arrive for so many seconds; after them nothing is taken."""
        self.house.last_call = last_call
        self.arrivals.end_in(last_call)
        asyncio.get_running_loop().call_later(last_call, self.desk.drain)


class DrainingServer(uvicorn.Server):
    """On a signal: accept nothing more, answer what has come, then interrupt and record what does not end."""

    def __init__(
        self, config: uvicorn.Config, leaving: Leaving, grace_seconds: float, announce: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._leaving = leaving
        self._desk = leaving.desk
        self._grace_seconds = grace_seconds
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            port = self.servers[0].sockets[0].getsockname()[1]
            self._announce(address_of(self.config.host, port))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """A signal ends the server, not the process: what was opened around it is still closed in order.

        The second one waits for nothing.
        """
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._accept_no_more()
        self._leaving.begin(min(LAST_CALL_SECONDS, self._grace_seconds))
        later = asyncio.get_running_loop().call_later
        patience = later(self._grace_seconds, self._desk.interrupt_all)
        last = later(2 * self._grace_seconds + MOMENT_SECONDS, self._desk.give_up)
        try:
            await super().shutdown(sockets)
        finally:
            patience.cancel()
            last.cancel()

    async def _accept_no_more(self) -> None:
        """Closing at once would drop who waits to be accepted, and who was and is not yet a connection."""
        loop = asyncio.get_running_loop()
        await _let_turn()
        for server in self.servers:
            for door in server.sockets:
                loop.remove_reader(door.fileno())
        await _let_turn()


async def _let_turn() -> None:
    for _ in range(ACCEPTING_TURNS):
        await asyncio.sleep(0)


def address_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(
    app: FastAPI,
    host: str,
    port: int,
    *,
    grace_seconds: float | None = None,
    announce: Callable[[str], None] = print,
) -> DrainingServer:
    """A server for an app of `create_app`; port 0 takes a free one and `announce` tells which.

    The grace not given is the app's. Raises this process's limit of open files to what it may need.
    """
    keep_few_arenas()
    grace = app.state.grace_seconds if grace_seconds is None else grace_seconds
    house, waiting = house_of(app)
    config = uvicorn.Config(
        app,
        host,
        port,
        http=protocol_in(house),
        ws="none",
        backlog=waiting,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_keep_alive=math.ceil(house.idle_seconds),
        log_level="warning",
        access_log=False,  # paths can name threads; requests are logged by their ids
        server_header=False,
        proxy_headers=False,  # who is local is decided by the connection itself
        # Streams get the grace to finish, the interrupted ones a moment to be recorded.
        timeout_graceful_shutdown=math.ceil(2 * grace + 2 * MOMENT_SECONDS),
        log_config=None,  # its loggers are this process's, like those of every other library
    )
    return DrainingServer(config, Leaving(app.state.desk, house, app.state.arrivals), grace, announce)


def house_of(app: FastAPI) -> tuple[House, int]:
    """The connections that a server of this app keeps, and how many may wait to be accepted."""
    settings: Settings = app.state.assistant.settings
    wanted = settings.max_connections
    places = places_for(wanted, allow_files(wanted + MOST_WAITING + RESERVED_FILES))
    house = House(
        places.kept,
        settings.idle_seconds,
        app.state.assistant.new_id,
        on_ended=lambda reason: app.state.metrics.count("connections_ended", reason),
    )
    return house, places.waiting


@contextmanager
def open_app(settings: Settings, *, worker: int | None = None) -> Iterator[FastAPI]:
    """The app with all it needs, as the settings say; `worker` is its number among several processes."""
    with (
        exporting_spans(settings),
        open_store(settings.conversations) as store,
        open_assistant(settings) as assistant,
    ):
        log_as_json(assistant.clock, worker=worker)
        yield create_app(assistant, store=store)
