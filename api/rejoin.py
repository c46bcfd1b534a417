"""Following a request again after a lost connection: `GET /api/chat/{request_id}/events`.

Where the request ran in this process, its events go on after the last one that arrived. Anywhere else, and
when they are no longer kept, a `reset` with the reason `gap` says that some are missing, and the stored
outcome follows. Requests of other callers are the same 404 as unknown ones.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from api.bodies import StrictRoute, ThreadId
from api.edge import Origin
from api.events import EVENT_SCHEMA, EventStream, Feed
from api.identity import caller_of, thread_of
from api.ledger import Entry, Ledger, data_of, ids_of, owner_of, result_in
from api.problems import Refusal, responses
from api.turnlog import log_fault
from api.turns import Ask, Desk, Run, faded, outcome_of, tell_outcome
from checkpoint.conversations.errors import ConversationStoreError
from checkpoint.conversations.forking import find_request
from checkpoint.errors import CheckpointUnavailable
from checkpoint.requests import RequestRecord
from graph.compose import Assistant
from graph.run import config_for, stored_values
from nodes.contracts import Caller

POLL_SECONDS = 0.5
MOST_EVENTS = 2**31

_RESPONSES: dict[int | str, dict[str, Any]] = {
    **responses("bad_request", "forbidden", "not_found", "invalid_body", "internal_error"),
    **responses("store_unavailable", "database_unavailable", "body_timeout", "body_too_large"),
    200: {
        "description": "The request's further events, as /api/chat sends them.",
        "content": {"text/event-stream": {"schema": EVENT_SCHEMA}},
    },
    204: {"description": "The last event has arrived already; there is nothing more to follow."},
}


@dataclass(frozen=True)
class Found:
    """A request of the caller's that is not, or no longer, told by this process."""

    thread_id: str
    name: str
    record: RequestRecord | None
    entry: Entry | None


@dataclass(frozen=True)
class Rejoining:
    """Finds requests and tells what became of them. `ledger` finds them by their id alone."""

    assistant: Assistant
    desk: Desk
    ledger: Ledger | None

    def here(self, caller: Caller, request_id: str) -> Run | None:
        """The caller's own run, while its events are kept and may still be shown as they were told."""
        run = self.desk.run_of(request_id)
        if run is None or owner_of(run.ask.caller) != owner_of(caller):
            return None
        return run if self._may_tell(run, caller) else None

    def _may_tell(self, run: Run, caller: Caller) -> bool:
        if run.ended is None or not run.feed.ended:
            return True
        if self.record_of(run.ask.thread_id, run.request_id) is None:
            return False  # deleted meanwhile, here or elsewhere
        if self.ledger is None:
            return True
        last = run.feed.after(0)[-1]
        stored = data_of(last.wire)
        return last.name != "done" or self.ledger.shown(stored, caller) == stored

    def look_up(self, caller: Caller, request_id: str, name: str | None) -> Found:
        """Raises Refusal "not_found". With a name the thread's records are asked, else the database."""
        entry: Entry | None = None
        if self.ledger:
            held = find_request(self.ledger.store, owner_of(caller), request_id)
            if held:
                conversation, rows = held
                answer = next((row for row in rows if row.role == "ASSISTANT"), None)
                entry, name = Entry(conversation, rows[0], answer), conversation.external_id
        if name is None:
            raise Refusal("not_found")
        thread_id = thread_of(caller, name)
        record = self.record_of(thread_id, request_id)
        if record is None and entry is None:
            raise Refusal("not_found")
        return Found(thread_id, name, record, entry)

    def note(self, caller: Caller, name: str) -> None:
        """Record in the audit trail that a request is told again."""
        if self.ledger:
            self.ledger.note_thread_read(caller, name, {"requests": 1})

    def record_of(self, thread_id: str, request_id: str) -> RequestRecord | None:
        records = self.assistant.saver.list_requests(thread_id)
        return next((record for record in records if record["request_id"] == request_id), None)

    def is_running(self, found: Found, request_id: str) -> bool:
        """The lease is looked at first: the final record is written before it is released."""
        is_held = self.desk.is_held(found.thread_id)
        record = self.record_of(found.thread_id, request_id)
        return is_held and record is not None and record["status"] == "running"

    def stored(self, run: Run, caller: Caller, name: str) -> dict[str, Any] | None:
        """The `done` event of an ended request, from the thread, the database or the record; else None."""
        found = self.look_up(caller, run.request_id, name)
        ids = ids_of(found.entry, found.entry.answer) if found.entry else {}
        state = stored_values(self.assistant.graph, config_for(found.thread_id))
        result = result_in(state, run.request_id)
        record = found.record
        if result and record and record["status"] != "running":
            told = {**outcome_of(run, result, dict(record)), **ids}
            return self.ledger.shown(told, caller) if self.ledger else told
        if self.ledger and found.entry and found.entry.answer:
            return self.ledger.told_before(found.entry, caller, found.name)
        return (
            faded({**record, "thread_id": found.name}) if record and record["status"] != "running" else None
        )


def rejoin_router(parts: Rejoining) -> APIRouter:
    router = APIRouter(route_class=StrictRoute)
    here = Annotated[Caller, Depends(caller_of)]
    followers: set[asyncio.Task[None]] = set()

    @router.get(
        "/api/chat/{request_id}/events",
        response_class=EventStream,
        responses=_RESPONSES,
        summary="Follow a request again after a lost connection",
    )
    async def events(
        request: Request,
        request_id: Annotated[str, Path(min_length=1, max_length=64)],
        caller: here,
        last_event_id: Annotated[int, Header(ge=0, le=MOST_EVENTS)] = 0,
        thread_id: Annotated[
            ThreadId | None,
            Query(description="The conversation's name; only needed where no database keeps the requests."),
        ] = None,
    ) -> Response:
        run = await run_in_threadpool(parts.here, caller, request_id)
        if run is not None:
            last = len(run.feed.after(0))
            if last_event_id < last or (last_event_id == last and not run.feed.ended):
                await run_in_threadpool(parts.note, caller, run.ask.shown_name)
                return _follow_here(parts, run, last_event_id)
            if last_event_id == last:
                return Response(status_code=204)
        found = await run_in_threadpool(parts.look_up, caller, request_id, thread_id)
        await run_in_threadpool(parts.note, caller, found.name)
        origin: Origin = request.scope["state"]["origin"]
        again = Run(
            Ask(found.thread_id, "", caller, origin, name=found.name),
            request_id,
            feed=Feed(first=last_event_id),
        )
        again.feed.say("reset", {"reason": "gap"})
        task = asyncio.create_task(_tell_outcome(parts, found, again))
        followers.add(task)
        task.add_done_callback(followers.discard)
        return EventStream(
            again.feed, request_id=request_id, after=last_event_id, on_abandoned=partial(_cancel, task)
        )

    return router


def _follow_here(parts: Rejoining, run: Run, after: int) -> EventStream:
    run.abandoned = None
    return EventStream(
        run.feed, request_id=run.request_id, after=after, on_abandoned=partial(parts.desk.abandon, run)
    )


async def _tell_outcome(parts: Rejoining, found: Found, run: Run) -> None:
    """Wait for the end, which the lease bounds, and tell it."""
    try:
        with parts.desk.following(run):
            while await run_in_threadpool(parts.is_running, found, run.request_id):
                await asyncio.sleep(POLL_SECONDS)
        stored = await run_in_threadpool(parts.stored, run, run.ask.caller, found.name)
    except CheckpointUnavailable:
        run.feed.say(*run.error("store_unavailable"))
    except (ConversationStoreError, Refusal):  # it was deleted meanwhile, or the database is down
        run.feed.say(*run.error("run_vanished"))
    except Exception as error:  # noqa: BLE001 - a stream must end; logged by type and place
        log_fault("follower_fault", run.request_id, error)
        run.feed.say(*run.error("internal_error"))
    else:
        _say_end(run, stored)


def _say_end(run: Run, stored: dict[str, Any] | None) -> None:
    if stored is None:
        run.feed.say(*run.error("run_vanished"))
        return
    tell_outcome(run.feed, stored)
    run.feed.say("done", stored)


def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
