"""The only composition root: opens every part once, in order, and closes them in reverse."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from checkpoint import RedisContextSaver
from checkpoint.errors import CheckpointError
from checkpoint.stack import open_stack_saver
from checkpoint.window import Window, WindowLimits, restore
from graph.build import Services, TurnGraph, build_graph
from graph.routes import FollowUp
from graph.settings import Settings, SettingsError
from graph.steps import CallerOf, RequestContext
from graph.traces import watch_redis
from nodes.answer.prompts import PromptBudget
from nodes.answer.providers import ChatModelProvider, load_provider
from nodes.contracts import (
    Caller,
    Clock,
    CompanyDirectory,
    Intent,
    Language,
    NewId,
    NodeError,
    Provider,
    Retriever,
)
from nodes.reading.companies import CompanyIndex
from nodes.reading.intent import read_intent
from nodes.reading.safety import screen
from nodes.retrieve.access import StoredSourceGuard, audience
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.exits import open_retriever
from nodes.retrieve.facts import Directory, SqliteFactStore
from nodes.retrieve.sample import SAMPLE_SET, ensure_sample
from nodes.retrieve.standing import StoredStanding

SHANGHAI = timezone(timedelta(hours=8))
Progress = Callable[[int, int, str], None]
Part = TypeVar("Part")


@dataclass(frozen=True)
class Assistant:
    """Everything a door needs. Made by `open_assistant`; one serves all threads of a process."""

    graph: TurnGraph
    saver: RedisContextSaver
    services: Services
    store: KnowledgeStore
    settings: Settings
    clock: Clock
    new_id: NewId


@contextmanager
def open_assistant(settings: Settings, *, clock: Clock | None = None) -> Iterator[Assistant]:
    """The assistant as the settings describe it. Raises CheckpointError, KnowledgeError or SettingsError."""
    clock = clock or shanghai_now
    with ExitStack() as stack:
        store = stack.enter_context(open_store(settings))
        saver = stack.enter_context(open_saver(settings))
        watch_redis(saver.wire.client)
        services = make_services(settings, store, clock=clock)
        graph = build_graph(services, saver, caller_of_context)
        yield Assistant(graph, saver, services, store, settings, clock, random_id)


def open_saver(settings: Settings) -> AbstractContextManager[RedisContextSaver]:
    """The saver that CHECKPOINTER names. Raises CheckpointError here or on entering."""
    if settings.checkpointer == "redis-stack":
        return open_stack_saver(settings.context)
    return RedisContextSaver(settings.context)


def make_services(settings: Settings, store: KnowledgeStore, *, clock: Clock) -> Services:
    return services_over(
        store,
        retriever=_or_settings_error(
            "RETRIEVER", lambda: open_retriever(store, settings.retriever, embeddings=settings.embeddings)
        ),
        provider=make_provider(settings),
        topics=settings.blocked_topics,
        limits=WindowLimits(settings.history_max_turns, settings.history_max_bytes),
        follow_up=settings.follow_up,
        clock=clock,
        budget=prompt_budget(settings.model_context_tokens),
    )


def prompt_budget(context_tokens: int) -> PromptBudget:
    """A quarter of what the model can hold, and at most 1024 tokens, is kept for the answer."""
    return PromptBudget(context_tokens, min(1024, context_tokens // 4))


def services_over(
    store: KnowledgeStore,
    *,
    retriever: Retriever,
    provider: Provider,
    topics: tuple[str, ...],
    limits: WindowLimits,
    follow_up: FollowUp,
    clock: Clock,
    budget: PromptBudget = PromptBudget(),  # noqa: B008 - frozen
) -> Services:
    """All that the nodes use, around one open store."""
    directory = Directory(store)
    return Services(
        read_intent=IntentReader(store.knowledge_version, directory, topics),
        directory=directory,
        facts=SqliteFactStore(store),
        retriever=retriever,
        provider=provider,
        may_see=StoredSourceGuard(store),
        audience=audience,
        screen=lambda sentence: screen(sentence, topics=topics),
        clock=clock,
        new_id=random_id,
        limits=limits,
        follow_up=follow_up,
        budget=budget,
        resolver=provider if isinstance(provider, ChatModelProvider) else None,
        standing=StoredStanding(store, clock),
    )


def make_provider(settings: Settings) -> Provider:
    key = settings.openai_api_key
    return _or_settings_error(
        "MODEL",
        lambda: load_provider(
            settings.model,
            base_url=settings.openai_base_url,
            api_key=key.get_secret_value() if key else None,
        ),
    )


class IntentReader:
    """What a text says, by the companies and metrics of the knowledge as it is now."""

    def __init__(
        self, version: Callable[[], str], directory: CompanyDirectory, topics: tuple[str, ...] = ()
    ) -> None:
        self._version = version
        self._directory = directory
        self._topics = topics
        self._index: tuple[str, CompanyIndex] | None = None
        self._building = threading.Lock()

    def __call__(self, text: str, received_at: str) -> Intent:
        return read_intent(
            text,
            companies=self._companies(),
            metrics=self._directory.metrics(),
            received_at=received_at,
            topics=self._topics,
        )

    def _companies(self) -> CompanyIndex:
        version = self._version()
        with self._building:
            if self._index is None or self._index[0] != version:
                self._index = (version, CompanyIndex(self._directory))
            return self._index[1]


def caller_of_context(context: RequestContext | None) -> Caller:
    """The caller that a door passed. Without one the run is refused: permissions are never guessed."""
    if context is None:
        raise PermissionError(
            "A run needs context=RequestContext(caller=…): pass the caller of this request."
        )
    return context.caller


def fixed_caller(caller: Caller) -> CallerOf:
    """The same caller whatever a client sends: for the studio."""
    return lambda _context: caller


@contextmanager
def open_store(settings: Settings) -> Iterator[KnowledgeStore]:
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SettingsError(
            f"BUSINESS_ASSISTANT_HOME: {settings.home} cannot be made ({error.strerror}); "
            "name another folder."
        ) from None
    with KnowledgeStore(knowledge_file(settings)) as store:
        yield store


def knowledge_file(settings: Settings) -> Path:
    return settings.home / "knowledge.db"


def prepare_knowledge(settings: Settings, progress: Progress | None = None) -> None:
    """Load the sample where there is no knowledge yet, or where a newer release brings another sample."""
    with open_store(settings) as store:
        loaded = store.source_sets()
        if not loaded or SAMPLE_SET in loaded:
            ensure_sample(store, progress)


def embed_knowledge(settings: Settings, progress: Progress | None = None) -> None:
    """Make the vectors that EMBEDDINGS needs and that are not kept yet; minutes for a few hundred passages.

    A service does without: it makes them while it answers by words. Nothing is done where EMBEDDINGS is
    unset. Raises KnowledgeError.
    """
    if settings.embeddings is None:
        return
    from nodes.retrieve.embedders import load_embedder
    from nodes.retrieve.vectors import embed_all

    embedder = load_embedder(settings.embeddings)
    with open_store(settings) as store:
        embed_all(store, embedder, progress)


def window_of(
    assistant: Assistant,
    thread_id: str,
    caller: Caller,
    language: Language,
    checkpoint_id: str | None = None,
) -> Window:
    """What a model would see of the thread now, for this caller. One read."""
    history = assistant.saver.restore_window(thread_id, checkpoint_id)
    return restore(
        history,
        limits=assistant.services.limits,
        may_see=lambda sources: assistant.services.may_see(caller, sources),
        language=language,
    )


@dataclass(frozen=True)
class Check:
    """What `doctor` found out about one part."""

    part: str
    is_well: bool
    finding: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def check_parts(settings: Settings) -> list[Check]:
    """Redis, knowledge and model, each with its finding or its remedy. No secret is in a finding."""
    return [
        look_at("redis", lambda: _check_redis(settings)),
        look_at("knowledge", lambda: _check_knowledge(settings)),
        look_at("model", lambda: make_provider(settings).name),
        *([look_at("embeddings", lambda: _check_embeddings(settings))] if settings.embeddings else []),
    ]


def look_at(part: str, look: Callable[[], str]) -> Check:
    """One part of `doctor`: what `look` finds, or the fault it raises with its remedy."""
    try:
        return Check(part, True, look())
    except (CheckpointError, NodeError, SettingsError, OSError) as error:
        return Check(part, False, str(error))


def _check_redis(settings: Settings) -> str:
    with open_saver(settings) as saver:
        saver.wire.client.ping()
    where = "the server of REDIS_URL" if settings.context.url else "the embedded server"
    kept = (
        "request records are plain JSON"
        if settings.context.aes_key
        else "nothing is encrypted (CONTEXT_AES_KEY)"
    )
    return f"{where} answers; threads live {settings.context.ttl_seconds} s; {kept}"


def _check_knowledge(settings: Settings) -> str:
    prepare_knowledge(settings)
    with open_store(settings) as store:
        sets = ", ".join(sorted(store.source_sets()))
        return f"{len(store.records())} documents of {sets}, version {store.knowledge_version()[:12]}"


def _check_embeddings(settings: Settings) -> str:
    from nodes.retrieve.embedders import load_embedder
    from nodes.retrieve.vectors import count_missing

    embedder = load_embedder(settings.embeddings or "")
    with open_store(settings) as store:
        missing = count_missing(store, embedder)
    return f"{embedder.name} answers; {missing} passages have no vector yet"


def _or_settings_error(setting: str, load: Callable[[], Part]) -> Part:
    try:
        return load()
    except ValueError as error:
        raise SettingsError(f"{setting}: {error}") from None


def shanghai_now() -> str:
    """Now, ISO 8601 with milliseconds and +08:00, whatever the server's zone."""
    return datetime.now(SHANGHAI).isoformat(timespec="milliseconds")


def random_id() -> str:
    return str(uuid4())
