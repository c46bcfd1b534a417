"""Folding what left the window into the summary, after the turn and in nobody's way.

One thread a process takes conversations from a short queue; one that finds no room is folded after its next
turn. A model that fails leaves the summary as it was.
"""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from api.identity import thread_of
from api.leases import LeaseKeeper
from api.ledger import Ledger
from checkpoint.conversations.errors import ConversationStoreError
from checkpoint.conversations.rows import Conversation
from checkpoint.conversations.sources import MaySee
from checkpoint.conversations.store import ConversationStore
from checkpoint.conversations.summary import ToFold, fold, summary_for
from graph.compose import Assistant
from nodes.answer.providers import ExtractiveProvider
from nodes.contracts import Caller, Message, Prompt, Provider, ProviderError, SourceGuard, ToldSummary

WAITING = 100
SUMMARY_TOKENS = 600

log = structlog.get_logger("api")


def is_model(provider: Provider) -> bool:
    """Whether the provider writes texts of its own. Without one there is only the omission mark."""
    return not isinstance(provider, ExtractiveProvider)


@dataclass(frozen=True)
class Summaries:
    """What summaries are made with."""

    store: ConversationStore
    provider: Provider
    may_see: SourceGuard
    window_turns: int

    def of(self, held: Conversation, caller: Caller) -> ToldSummary | None:
        """What this caller's next answer may be worded with, and the sources it then also has."""
        found = summary_for(self.store, held, self._may_see(caller))
        if found is None:
            return None
        sources = tuple((key[0], key[1]) for key in found.sources)
        return ToldSummary(found.content, sources, found.version)

    def fold(self, held: Conversation, caller: Caller) -> None:
        """Fold now. Raises what the model and the store raise."""
        fold(
            self.store,
            held,
            window_turns=self.window_turns,
            may_see=self._may_see(caller),
            summarise=self._summarise,
            model=self.provider.name,
        )

    def _may_see(self, caller: Caller) -> MaySee:
        return lambda keys: self.may_see(caller, keys)

    def _summarise(self, work: ToFold) -> str:
        messages = [Message(role, content) for role, content in work.messages()]
        prompt = Prompt(messages[-1].content, work.language, (), messages, SUMMARY_TOKENS)
        return "".join(piece.text for piece in self.provider.stream(prompt))


def make_ledger(store: ConversationStore, assistant: Assistant, keeper: LeaseKeeper) -> Ledger:
    """The ledger of a process, with summaries where a model is set. Its `end` ends the background thread."""
    services = assistant.services
    if not is_model(services.provider):
        return Ledger(store, assistant, keeper, thread_of)
    summaries = Summaries(store, services.provider, services.may_see, services.limits.max_turns)
    writer = SummaryWriter(summaries.fold)
    return Ledger(store, assistant, keeper, thread_of, writer.later, summaries.of, writer.close)


class SummaryWriter:
    """The background thread. `later` never waits; `close` ends it after the fold under way."""

    def __init__(self, fold: Callable[[Conversation, Caller], None]) -> None:
        self._fold = fold
        self._waiting: queue.Queue[tuple[Conversation, Caller] | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._run, name="summaries", daemon=True)
        self._started = threading.Lock()

    def later(self, held: Conversation, caller: Caller) -> None:
        try:
            self._waiting.put_nowait((held, caller))
        except queue.Full:
            return
        with self._started:
            if not self._thread.is_alive() and self._thread.ident is None:
                self._thread.start()

    def close(self, timeout: float = 5.0) -> None:
        with self._started:
            if self._thread.ident is None:
                return
        self._waiting.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None:
            try:
                self._fold(*work)
            except (ProviderError, ConversationStoreError) as error:
                log.warning("summary_postponed", conversation_id=str(work[0].id), error=type(error).__name__)
            except Exception as error:  # noqa: BLE001 - the thread's boundary
                # Without traceback or message, which may quote the user.
                name = type(error).__name__
                log.error("summary_fault", conversation_id=str(work[0].id), error=name)  # noqa: TRY400
