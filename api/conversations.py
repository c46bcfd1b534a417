"""`/conversations`: the durable record of what was asked and answered, for its owner alone.

Unknown, foreign and deleted conversations are the same 404 on every route. Sources are authorised again
whenever they are shown. Sending is the pipeline of `/api/chat`.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.concurrency import run_in_threadpool

from api.bodies import BLANKS, TEXT, Body, StrictRoute, ThreadId, Words
from api.edge import Origin
from api.events import EVENT_SCHEMA, EventStream
from api.identity import caller_of
from api.leases import ThreadBusyError
from api.ledger import Ledger, data_of, owner_of
from api.message_ids import idempotency_key, message_id_of
from api.problems import MEDIA_TYPE, PROBLEMS, Refusal, headers_of, responses
from api.turns import Ask, Desk, Run
from api.waiting import while_read
from checkpoint.conversations.errors import ConversationNotFoundError
from checkpoint.conversations.rows import Conversation, Receipt, StoredMessage
from checkpoint.conversations.sources import MaySee, language_of, show
from checkpoint.conversations.store import MOST_ROWS, ConversationStore
from checkpoint.requests import shanghai_time
from graph.run import BadTextError, check_text, clarification_shown, config_for, stored_values
from nodes.contracts import Caller
from nodes.gate import GateReads, is_open

ERASE_TRIES = 5
_PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
_ON_ONE_LINE = rf"^[^\x00-\x1f\x7f]*[^\x00-\x1f\x7f{BLANKS}][^\x00-\x1f\x7f]*$"  # and not blank
_Title = Annotated[str, Field(min_length=1, max_length=255, pattern=_ON_ONE_LINE)]

_REFUSALS = responses(
    *("bad_request", "forbidden", "not_found", "invalid_body", "invalid_cursor", "internal_error"),
    *("store_unavailable", "database_unavailable", "database_read_only", "database_full"),
)
_ON_BODY = responses(
    *("body_timeout", "body_too_large", "malformed_json", "unsupported_media_type", "invalid_body")
)
_ON_SENDING = responses(
    *("thread_busy", "unfinished_turn", "invalid_text", "message_id_reused", "pool_full", "caller_limit"),
    *("shutting_down", "processing_failed", "lease_lost", "run_vanished"),
)


@dataclass(frozen=True)
class ConversationParts:
    """What the routes need. `caller_of` gives the caller with the permissions of this very request."""

    ledger: Ledger
    desk: Desk
    caller_of: Callable[..., Any] = caller_of

    @property
    def store(self) -> ConversationStore:
        return self.ledger.store

    def thread_of(self, caller: Caller, held: Conversation) -> str:
        return self.ledger.thread_of(caller, held.external_id)


# --- what clients send and get ---


class Camel(BaseModel):
    """What is sent back. Names are camelCase outside and ours inside."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, serialize_by_alias=True)


class CamelBody(Body):
    """What is received, as strict as every body."""

    model_config = ConfigDict(alias_generator=to_camel)


class CreateBody(CamelBody):
    title: _Title | None = None
    external_id: ThreadId | None = Field(
        default=None, description="The name to use with /api/chat; the id when left out."
    )


class SendBody(CamelBody):
    question: str = Field(
        min_length=1,
        max_length=4000,
        description="A question, a reply, or a command such as /retry. Not blank, no NUL.",
        json_schema_extra=TEXT,
        examples=["那超过以后返回什么错误码？"],
    )
    client_message_id: Annotated[str, Field(min_length=1, max_length=200, pattern=_PRINTABLE)] | None = Field(
        default=None,
        description="The client's own id: sent again with the same question it gets the same result.",
    )
    stream: bool = False


class TitleBody(Body):
    title: _Title


class FeedbackBody(Body):
    rating: Literal["up", "down"] | None = Field(description="null takes the feedback back.")
    comment: Words | None = Field(default=None, max_length=2000)


class ConversationView(Camel):
    id: str
    external_id: str
    knowledge_base_id: str
    title: str | None
    status: str
    created_at: str
    updated_at: str


class OpenTurn(Camel):
    """What a reload must not lose."""

    state: Literal["running", "clarification", "unfinished"]
    request_id: str | None = Field(default=None, description="Of the running request.")
    original_question: str | None = None
    clarification: dict[str, Any] | None = Field(
        default=None, description="slot, prompt, options, page, pages."
    )
    commands: list[str] = Field(default_factory=list, description="What can be sent to go on.")


class ConversationDetail(ConversationView):
    open_turn: OpenTurn | None = Field(alias="open_turn")
    has_context: bool = Field(
        description="Whether the model still has context of this conversation; it expires before the record."
    )


class ConversationPage(Camel):
    items: list[ConversationView] = Field(description="Newest first.")
    next_cursor: str | None


class MessageView(Camel):
    id: str
    sequence_no: int
    role: str
    content: str
    standalone_question: str | None
    sources: list[dict[str, Any]] = Field(
        description="As cited. `available`: whether it may be seen now; `standing`: current, superseded by "
        "another version, or changed."
    )
    is_withdrawn: bool = Field(description="A source is no longer available, so the text is withheld.")
    model: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    trace_id: str | None
    request_id: str | None
    client_message_id: str | None
    status: str
    feedback: dict[str, Any] | None
    created_at: str


class MessagePage(Camel):
    items: list[MessageView]
    next_cursor: str | None


class Sent(Camel):
    """How a message was answered. `answer` is all that the reader is told, as one text."""

    conversation_id: str
    user_message_id: str
    assistant_message_id: str | None
    original_question: str
    standalone_question: str | None
    answer: str
    sources: list[dict[str, Any]]
    trace_id: str
    request_id: str
    status: str
    clarification: dict[str, Any] | None
    degraded: bool


class DeletionReceipt(Camel):
    receipt_id: str
    conversation_id: str
    deleted_at: str
    purge_after: str = Field(description="From then on the purge removes the hidden rows.")
    hidden_messages: int
    thread_erased: bool = Field(description="Context, request records and running turn are gone.")


class Exported(Camel):
    conversation: ConversationView
    messages: list[MessageView]
    exported_at: str


# --- routes ---


def conversations_router(parts: ConversationParts) -> APIRouter:
    """All routes of the durable record."""
    router = APIRouter(prefix="/conversations", route_class=StrictRoute)
    _add_listing(router, parts)
    _add_one(router, parts)
    _add_messages(router, parts)
    _add_sending(router, parts)
    return router


def _add_listing(router: APIRouter, parts: ConversationParts) -> None:
    here = Annotated[Caller, Depends(parts.caller_of)]

    @router.post(
        "",
        status_code=201,
        responses={**_REFUSALS, **_ON_BODY, **responses("name_taken")},
        summary="Begin a conversation",
    )
    def create(body: CreateBody, caller: here) -> ConversationView:
        with_kb = partial(parts.store.create, knowledge_base=caller.knowledge_base)
        return view_of(with_kb(owner_of(caller), name=body.external_id, title=body.title))

    @router.get("", responses=_REFUSALS, summary="The caller's conversations, newest first")
    def list_all(
        caller: here,
        status: Literal["ACTIVE", "ARCHIVED"] = "ACTIVE",
        limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 50,
        cursor: Annotated[str | None, Query(max_length=512)] = None,
        external_id: Annotated[
            ThreadId | None,
            Query(alias="externalId", description="Only the one of this name, put aside or not."),
        ] = None,
    ) -> ConversationPage:
        owner = owner_of(caller)
        if external_id is not None:
            found = parts.store.find(owner, external_id)
            items, next_cursor = [found] if found else [], None
        else:
            page = parts.store.list_conversations(owner, status=status, limit=limit, cursor=cursor)
            items, next_cursor = list(page.items), page.next_cursor
        parts.ledger.note_read(owner, "list", None, {"conversations": len(items)})
        return ConversationPage(items=[view_of(held) for held in items], next_cursor=next_cursor)


def _add_one(router: APIRouter, parts: ConversationParts) -> None:
    here = Annotated[Caller, Depends(parts.caller_of)]

    @router.get("/{conversation_id}", responses=_REFUSALS, summary="One conversation, with its open turn")
    def read(conversation_id: str, caller: here) -> ConversationDetail:
        held = parts.store.get(owner_of(caller), id_of(conversation_id))
        parts.ledger.mend(held, caller)
        parts.ledger.note_read(held.owner, "read", held.id)
        thread_id = parts.thread_of(caller, held)
        return ConversationDetail(
            **view_of(held).model_dump(),
            open_turn=open_turn(parts, held, thread_id),
            has_context=parts.ledger.keeper.knows_thread(thread_id),
        )

    @router.patch("/{conversation_id}/title", responses={**_REFUSALS, **_ON_BODY}, summary="Name it")
    def name(conversation_id: str, body: TitleBody, caller: here) -> ConversationView:
        return view_of(parts.store.set_title(owner_of(caller), id_of(conversation_id), body.title))

    @router.post("/{conversation_id}/archive", responses=_REFUSALS, summary="Put it aside")
    def archive(conversation_id: str, caller: here) -> ConversationView:
        return view_of(parts.store.archive(owner_of(caller), id_of(conversation_id)))

    @router.post("/{conversation_id}/restore", responses=_REFUSALS, summary="Take it back from the archive")
    def restore(conversation_id: str, caller: here) -> ConversationView:
        return view_of(parts.store.restore(owner_of(caller), id_of(conversation_id)))

    @router.delete("/{conversation_id}", responses=_REFUSALS, summary="Delete it")
    def delete(conversation_id: str, caller: here) -> DeletionReceipt:
        return delete_conversation(parts, caller, id_of(conversation_id))

    @router.get(
        "/{conversation_id}/export",
        responses={
            **_REFUSALS,
            200: {"content": {"text/markdown": {"schema": {"type": "string"}}}, "description": "The export"},
        },
        response_model=Exported,
        summary="All of it, as JSON or Markdown",
    )
    def export(
        conversation_id: str,
        caller: here,
        format: Literal["json", "markdown"] = "json",
    ) -> Response:
        return export_conversation(parts, caller, id_of(conversation_id), format)


def _add_messages(router: APIRouter, parts: ConversationParts) -> None:
    here = Annotated[Caller, Depends(parts.caller_of)]

    @router.get("/{conversation_id}/messages", responses=_REFUSALS, summary="Its messages")
    def messages(
        conversation_id: str,
        caller: here,
        limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 50,
        cursor: Annotated[str | None, Query(max_length=512)] = None,
        order: Literal["oldest_first", "newest_first"] = "oldest_first",
    ) -> MessagePage:
        held = parts.store.get(owner_of(caller), id_of(conversation_id))
        parts.ledger.mend(held, caller)
        page = parts.store.list_messages(
            held.owner, held.id, limit=limit, cursor=cursor, newest_first=order == "newest_first"
        )
        parts.ledger.note_read(held.owner, "read", held.id, {"messages": len(page.items)})
        shown = shown_messages(page.items, parts.ledger, caller)
        return MessagePage(items=shown, next_cursor=page.next_cursor)

    @router.put(
        "/{conversation_id}/messages/{message_id}/feedback",
        responses={**_REFUSALS, **_ON_BODY},
        summary="Say whether an answer helped",
    )
    def feedback(
        conversation_id: str,
        message_id: str,
        body: FeedbackBody,
        caller: here,
    ) -> MessageView:
        given = body.model_dump(exclude_none=True) if body.rating else None
        row = parts.store.set_feedback(owner_of(caller), id_of(conversation_id), id_of(message_id), given)
        return shown_messages([row], parts.ledger, caller)[0]


def _add_sending(router: APIRouter, parts: ConversationParts) -> None:
    here = Annotated[Caller, Depends(parts.caller_of)]

    @router.post(
        "/{conversation_id}/messages",
        response_model=Sent,
        responses={
            **_REFUSALS,
            **_ON_BODY,
            **_ON_SENDING,
            200: {
                "description": "The answer, or with `stream` the events of /api/chat",
                "content": {"text/event-stream": {"schema": EVENT_SCHEMA}},
            },
        },
        summary="Ask, reply or command",
    )
    async def send(
        conversation_id: str,
        body: SendBody,
        request: Request,
        caller: here,
        key: Annotated[str | None, Depends(idempotency_key)],
    ) -> Response:
        check_question(body.question)
        held = await run_in_threadpool(parts.store.get, owner_of(caller), id_of(conversation_id))
        origin: Origin = request.scope["state"]["origin"]
        run = await parts.desk.take(
            Ask(
                parts.thread_of(caller, held),
                body.question,
                caller,
                origin,
                message_id_of(key, body.client_message_id),
                name=held.external_id,
                conversation_id=held.id,
            )
        )
        abandon = partial(parts.desk.abandon, run)
        if body.stream:
            return EventStream(run.feed, request_id=run.request_id, on_abandoned=abandon)
        return reply_to(run, *await while_read(ending_of(run, abandon), request.receive))


# --- how it is shown ---


def id_of(text: str) -> UUID:
    """An id of ours as we write it; anything else names nothing here, not even another spelling of one."""
    try:
        found = UUID(text)
    except ValueError:
        raise Refusal("not_found") from None
    if str(found) != text.lower():
        raise Refusal("not_found")
    return found


def view_of(held: Conversation) -> ConversationView:
    return ConversationView(
        id=str(held.id),
        external_id=held.external_id,
        knowledge_base_id=held.knowledge_base_id,
        title=held.title,
        status=held.status,
        created_at=shanghai_time(held.created_at),
        updated_at=shanghai_time(held.updated_at),
    )


def shown_messages(rows: Iterable[StoredMessage], ledger: Ledger, caller: Caller) -> list[MessageView]:
    may_see = ledger.may_see(caller)
    return [shown_message(row, may_see, ledger) for row in rows]


def shown_message(row: StoredMessage, may_see: MaySee, ledger: Ledger) -> MessageView:
    shown = show(row.content, row.sources, may_see, language_of(row.content))
    return MessageView(
        id=str(row.id),
        sequence_no=row.sequence_no,
        role=row.role,
        content=shown.content,
        standalone_question=row.standalone_question,
        sources=ledger.with_standing(shown.sources),
        is_withdrawn=shown.is_withdrawn,
        model=row.model,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        trace_id=row.trace_id,
        request_id=row.request_id,
        client_message_id=row.client_message_id,
        status=row.status,
        feedback=row.feedback,
        created_at=shanghai_time(row.created_at),
    )


def open_turn(parts: ConversationParts, held: Conversation, thread_id: str) -> OpenTurn | None:
    """Running, waiting for a reply, or broken off; None when the last turn is finished."""
    if parts.ledger.keeper.is_held(thread_id):
        waiting = parts.store.unanswered(held.id)
        request_id = waiting[-1].request_id if waiting else None
        question = waiting[-1].content if waiting else None
        return OpenTurn(state="running", request_id=request_id, original_question=question)
    state = stored_values(parts.ledger.assistant.graph, config_for(thread_id))
    if not is_open(cast(GateReads, state)):
        return None
    question, pending = state["turn"]["original_question"], state.get("clarification")
    if pending and pending["reply"] is None:
        asked = clarification_shown(pending, state.get("suggestions"), state["intent"]["language"])
        return OpenTurn(state="clarification", original_question=question, clarification=asked)
    return OpenTurn(state="unfinished", original_question=question, commands=["/retry", "/discard"])


# --- sending ---


def check_question(question: str) -> None:
    try:
        check_text(question)
    except BadTextError as error:
        faults = [{"field": "question", "code": error.code}]
        raise Refusal("invalid_text", str(error), errors=faults) from None


async def ending_of(run: Run, on_abandoned: Callable[[], None]) -> tuple[str, dict[str, Any]]:
    """The run's terminal event, once it is there."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(news.set)

    run.feed.listen(wake)
    try:
        while not run.feed.ended:
            news.clear()
            if not run.feed.ended:
                await news.wait()
    finally:
        if run.feed.leave(wake):
            on_abandoned()
    last = run.feed.after(0)[-1]
    return last.name, data_of(last.wire)


def reply_to(run: Run, name: str, data: dict[str, Any]) -> Response:
    problem = data if name == "error" else data.get("error")
    headers = {"X-Request-ID": run.request_id}
    if problem:
        headers |= headers_of(Refusal(problem["code"]))
        return JSONResponse(problem, PROBLEMS[problem["code"]].status, headers, media_type=MEDIA_TYPE)
    return JSONResponse(sent_of(run, data).model_dump(), headers=headers)


def sent_of(run: Run, done: dict[str, Any]) -> Sent:
    answer = done.get("answer") or {}
    return Sent(
        conversation_id=done["conversation_id"],
        user_message_id=done["user_message_id"],
        assistant_message_id=done["assistant_message_id"],
        original_question=done.get("original_question") or run.ask.message,
        standalone_question=done.get("standalone_question"),
        answer=done.get("text") or done.get("partial_text") or "",
        sources=answer.get("citations") or [],
        trace_id=run.ask.origin.trace or run.request_id,
        request_id=run.request_id,
        status=done["status"],
        clarification=done.get("clarification"),
        degraded=done["degraded"],
    )


# --- deleting and exporting ---


def delete_conversation(parts: ConversationParts, caller: Caller, conversation_id: UUID) -> DeletionReceipt:
    """End its running turn, erase its thread, hide it at once. Repeated, the same receipt.

    The thread goes first and stays held until the row is hidden: cut off anywhere, nothing is left in Redis
    that a newer conversation of the same name would find. Where the row cannot be hidden, as in a read-only
    database, the thread stays too.
    """
    owner = owner_of(caller)
    hide = partial(parts.store.delete, owner, conversation_id)
    try:
        held = parts.store.get(owner, conversation_id)
        parts.store.rehearse_delete(owner, conversation_id)
    except ConversationNotFoundError:
        receipt = hide()  # deleted before, be it a moment ago, or never there
    else:
        receipt = _erase_and(parts, parts.thread_of(caller, held), hide)
    return DeletionReceipt(
        receipt_id=str(receipt.receipt_id),
        conversation_id=str(receipt.conversation_id),
        deleted_at=shanghai_time(receipt.deleted_at),
        purge_after=shanghai_time(receipt.purge_after),
        hidden_messages=receipt.messages,
        thread_erased=True,
    )


def _erase_and(parts: ConversationParts, thread_id: str, hide: Callable[[], Receipt]) -> Receipt:
    """Hide while nothing can begin in the erased thread. What begins in between is erased as well."""
    keeper = parts.ledger.keeper
    for _ in range(ERASE_TRIES):
        parts.desk.erase(thread_id)
        with suppress(ThreadBusyError), keeper.hold(thread_id, "delete"):
            if not keeper.knows_thread(thread_id):
                return hide()
    raise Refusal("thread_busy", retry_after=1)


def delete_named(parts: ConversationParts, caller: Caller, name: str) -> bool:
    """Delete the caller's conversation of this name, if there is one."""
    held = parts.store.find(owner_of(caller), name)
    if held is None:
        return False
    delete_conversation(parts, caller, held.id)
    return True


def export_conversation(
    parts: ConversationParts, caller: Caller, conversation_id: UUID, form: Literal["json", "markdown"]
) -> Response:
    """Everything of the conversation that its owner may see now. Recorded in the audit trail first."""
    held = parts.store.get(owner_of(caller), conversation_id)
    parts.ledger.mend(held, caller)
    parts.ledger.note_read(held.owner, "export", held.id, {"format": form})
    rows = parts.store.walk_messages(held.owner, held.id)
    exported = Exported(
        conversation=view_of(held),
        messages=shown_messages(rows, parts.ledger, caller),
        exported_at=shanghai_time(parts.store.now()),
    )
    name = f"conversation-{held.id}.{'json' if form == 'json' else 'md'}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    if form == "json":
        return JSONResponse(exported.model_dump(), headers=headers)
    return PlainTextResponse(as_markdown(exported), headers=headers, media_type="text/markdown")


_MARKUP = re.compile(r"[\\`*_\[\]<>&!#]")
_WHO = {"USER": "用户 User", "ASSISTANT": "助手 Assistant", "SYSTEM": "System"}


def as_markdown(exported: Exported) -> str:
    """A text to read. What people and models wrote is quoted, so that none of it is taken for a heading."""
    held = exported.conversation
    head = [f"# {_one_line(held.title or held.external_id)}", "", f"{held.id} · {exported.exported_at}"]
    return "\n".join([*head, *(line for row in exported.messages for line in _message_lines(row)), ""])


def _message_lines(row: MessageView) -> list[str]:
    mark = "" if row.status == "COMPLETE" else f" · {row.status}"
    lines = ["", f"## {row.sequence_no} · {_WHO[row.role]} · {row.created_at}{mark}", ""]
    lines += [f"> {line}" for line in row.content.splitlines() or [""]]
    if row.sources:
        lines.append("")
    for source in row.sources:
        if source["available"]:
            named = f"{source.get('title')} ({source.get('document_id')}@{source.get('version')})"
            lines.append(f"- [{source.get('label')}] {_one_line(named)}")
        else:
            lines.append(f"- [{source.get('label')}] 资料现已不可查看 · no longer available")
    return lines


def _one_line(text: str) -> str:
    """On one line, with nothing in it that Markdown or HTML would read as theirs."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))
