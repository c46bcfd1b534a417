"""Who writes narrative answers: the extractive provider, any LangChain chat model, or a script.

All keep one promise: text comes in pieces, nothing blank counts as an answer, every failure is a
ProviderError without user text, and the length of an answer is bounded.
"""

import importlib
import json
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from nodes.answer.extraction import Quote, choose_quotes
from nodes.answer.prompts import estimate_tokens
from nodes.answer.rendering import TEXTS, fixed_text
from nodes.contracts import Generated, Message, Prompt, Provider, ProviderError, Usage

# A model that does not stop is stopped at this many characters a token of the output limit.
CHARACTERS_A_TOKEN = 6
PROMPTS_KEPT = 1000  # by a scripted model, which may be served for long
ATTEMPTS = 3
FIRST_WAIT_SECONDS = 0.5


CountTokens = Callable[[str], int]
ToldLimit = Callable[[int], Mapping[str, Any]]  # tokens of the answer -> arguments of the model's call


def token_count_of(provider: Provider) -> CountTokens:
    """The provider's own `count_tokens` where it has one, else the stated estimate."""
    own: CountTokens | None = getattr(provider, "count_tokens", None)
    return own or estimate_tokens


# Extractive


class ExtractiveProvider:
    """Answers with whole sentences of the passages, each with its label. Deterministic, needs no model.

    Passages that do not answer the question give the fixed text `nothing_checked`.
    """

    name = "extractive"
    only_quotes = True  # a quotation keeps its own language

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        quotes = choose_quotes(prompt.question, prompt.passages, prompt.language)
        if not quotes:
            yield Generated(fixed_text("nothing_checked", prompt.language), self._usage())
            return
        for before, quote in zip([None, *quotes], quotes, strict=False):
            yield Generated(_gap(before, quote) + _shown(quote))
        yield Generated("", self._usage())

    def _usage(self) -> Usage:
        return {"model": self.name, "prompt_tokens": 0, "completion_tokens": 0}


def _gap(before: Quote | None, quote: Quote) -> str:
    """As the sentence before is written: after a Chinese full stop no blank."""
    if before is None:
        return ""
    if quote.is_item or before.is_item:
        return "\n"
    return "" if _is_chinese(before.text) else " "


def _shown(quote: Quote) -> str:
    """Every sentence and every item has its label; a line that only opens a list leaves it to the items."""
    if quote.opens:
        return quote.text
    return f"{'- ' if quote.is_item else ''}{_with_label(quote.text, quote.passage)}"


def _with_label(text: str, number: int) -> str:
    """The label stands before the end mark."""
    mark = re.search(r"[。！？!?.：:；;]+$", text)
    body, end = (text[: mark.start()], mark.group()) if mark else (text, "。" if _is_chinese(text) else ".")
    gap = "" if _is_chinese(text) else " "
    return f"{body}{gap}[C{number}]{end}"


def _is_chinese(text: str) -> bool:
    return re.search(r"[\u3400-\u9fff]", text) is not None


def is_unanswered(text: str) -> bool:
    """Whether `text` is the fixed text that says the passages hold no answer."""
    return text.strip() in TEXTS["nothing_checked"].values()


# Chat models


class ChatModelProvider:
    """Any LangChain chat model. Its raw tokens stay out of every stream of the graph (tag nostream).

    Before the first piece, a 429, a 5xx, a time-out or a lost connection is retried, `attempts` times in
    all with doubling waits; after it nothing is. Thinking in <think>…</think> before the answer is left
    out. `told_limit` words the output limit for the model, so that it stops by itself.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        name: str | None = None,
        attempts: int = ATTEMPTS,
        wait: Callable[[float], None] = time.sleep,
        told_limit: ToldLimit = lambda _: {},
    ) -> None:
        self._model = model
        self._told_limit = told_limit
        self._attempts = attempts
        self._wait = wait
        self.name = name or _model_name(model)

    @property
    def count_tokens(self) -> CountTokens | None:
        """The tokenizer that the model was given (`custom_get_token_ids`), or None.

        `get_num_tokens` is never asked: LangChain's own fetches GPT-2's tokenizer from a hub, OpenAI's
        fetches its tables, others call their service for every count.
        """
        return None if self._model.custom_get_token_ids is None else self._counted

    def _counted(self, text: str) -> int:
        assert self._model.custom_get_token_ids is not None  # noqa: S101 - asked for only where it is there
        try:
            return len(self._model.custom_get_token_ids(text))
        except Exception as error:  # noqa: BLE001 - whoever configured the model chose the tokenizer
            what = type(error).__name__
        raise ProviderError(f"the tokenizer of model {self.name} failed ({what}); mend it or leave it out")

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        limit = prompt.max_output_tokens * CHARACTERS_A_TOKEN
        usage, text = _Counted(self.name, prompt, token_count_of(self)), ""
        for piece in _after_thinking(self._pieces(prompt, usage)):
            kept = (piece if text else piece.lstrip())[: limit - len(text)]
            text += kept
            if kept:
                yield Generated(kept)
            if len(text) >= limit:
                break
        if not text:
            raise ProviderError(f"model {self.name} returned no text; try again with /retry")
        yield Generated("", usage.final(text))

    def _pieces(self, prompt: Prompt, usage: "_Counted") -> Iterator[str]:
        messages = [_langchain_message(message) for message in prompt.messages]
        for attempt in range(1, self._attempts + 1):
            failure, started = None, False
            limit = self._told_limit(prompt.max_output_tokens)
            stream = self._model.stream(messages, config={"tags": ["nostream"]}, **limit)
            try:
                for chunk in stream:
                    usage.add(chunk)
                    text = str(chunk.text)
                    started = started or bool(text)
                    if text:
                        yield text
            except Exception as error:  # noqa: BLE001 - each model library has errors of its own
                failure = _Failure.of(error)
            if failure is None:
                return
            if started or not failure.is_passing or attempt == self._attempts:
                # Outside of the handler: the library's error, which may quote the prompt, is not chained.
                raise ProviderError(f"model {self.name} failed ({failure.what}); try again with /retry")
            self._wait(FIRST_WAIT_SECONDS * 2 ** (attempt - 1))


def _model_name(model: BaseChatModel) -> str:
    names = (getattr(model, name, None) for name in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name), type(model).__name__)


def _langchain_message(message: Message) -> BaseMessage:
    kinds: dict[str, type[BaseMessage]] = {
        "system": SystemMessage,
        "user": HumanMessage,
        "assistant": AIMessage,
    }
    return kinds[message.role](content=message.content)


def _after_thinking(pieces: Iterator[str]) -> Iterator[str]:
    """The pieces without a <think> block that opens the text."""
    held, is_open = "", True
    for piece in pieces:
        if not is_open:
            yield piece
            continue
        held += piece
        start = held.lstrip()
        if start.startswith("<think>"):
            _, found, rest = start.partition("</think>")
            if found:
                held, is_open = "", False
                yield rest
        elif not "<think>".startswith(start[:7]):
            is_open = False
            yield held
            held = ""
    if held and not held.lstrip().startswith("<think>"):
        yield held


class _Counted:
    """The usage that a model reports; where it reports none, its own count, else the stated estimate."""

    def __init__(self, name: str, prompt: Prompt, count: CountTokens) -> None:
        self._count = count
        self._name = name
        self._prompt = prompt
        self._reported: tuple[int, int] | None = None

    def add(self, chunk: Any) -> None:
        if metadata := getattr(chunk, "usage_metadata", None):
            before = self._reported or (0, 0)
            self._reported = (
                max(before[0], int(metadata.get("input_tokens") or 0)),
                max(before[1], int(metadata.get("output_tokens") or 0)),
            )

    def final(self, text: str) -> Usage:
        prompt, completion = self._reported or (
            sum(self._count(message.content) for message in self._prompt.messages),
            self._count(text),
        )
        return {"model": self._name, "prompt_tokens": prompt, "completion_tokens": completion}


@dataclass(frozen=True)
class _Failure:
    """What is kept of a model's error: its class and status, and whether it may pass by itself."""

    what: str
    is_passing: bool

    @classmethod
    def of(cls, error: Exception) -> "_Failure":
        status = getattr(error, "status_code", None) or getattr(
            getattr(error, "response", None), "status_code", None
        )
        names = {kind.__name__ for kind in type(error).__mro__}
        is_network = isinstance(error, (TimeoutError, ConnectionError)) or bool(names & _NETWORK_ERRORS)
        is_passing = is_network or (isinstance(status, int) and (status in (408, 429) or status >= 500))
        what = type(error).__name__ + (f", status {status}" if isinstance(status, int) else "")
        return cls(what, is_passing)


# Roots of time-outs and lost connections in the HTTP libraries that model packages use.
_NETWORK_ERRORS = frozenset(
    {"TimeoutException", "TransportError", "APIConnectionError", "APITimeoutError", "Timeout"}
)


# Scripted


@dataclass(frozen=True)
class Reply:
    """One scripted reply of `piece` characters at a time, each after `wait` seconds.

    `error` fails it after `fail_after` pieces; `when` binds it to questions that hold those words.
    """

    text: str = ""
    when: str | None = None
    error: str | None = None
    fail_after: int = 0
    wait: float = 0.0
    piece: int = 8  # characters a piece


@dataclass
class ScriptedProvider:
    """Replies from a list, in order; keeps the newest `PROMPTS_KEPT` prompts that it was given. For tests,
    demonstrations and replay.

    A reply with `when` answers every question that holds those words; the others are used one after the
    other, and the last of them again and again, unless `once` is set, which makes an exhausted script an
    error. A blank reply fails like a blank model. Safe for several threads.
    """

    replies: Sequence[Reply | str]
    name: str = "scripted"
    once: bool = False
    sleep: Callable[[float], None] = time.sleep
    prompts: list[Prompt] = field(default_factory=list)
    _used: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def from_file(cls, path: Path) -> "ScriptedProvider":
        """A JSONL file, one reply a line: {"text": …} with the other fields of `Reply` as needed.

        ValueError names the line that is no reply.
        """
        lines = path.read_text(encoding="utf-8").splitlines()
        return cls([_reply(line, at, path) for at, line in enumerate(lines, start=1) if line.strip()])

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        reply = self._next(prompt)
        pieces = [reply.text[at : at + reply.piece] for at in range(0, len(reply.text), reply.piece)]
        if not reply.text.strip() and reply.error is None:
            raise ProviderError(f"model {self.name} returned no text; try again with /retry")
        limit = prompt.max_output_tokens * CHARACTERS_A_TOKEN
        for at, piece in enumerate(pieces[: -(-limit // reply.piece)]):
            if reply.error is not None and at == reply.fail_after:
                break
            if reply.wait:
                self.sleep(reply.wait)
            yield Generated(piece)
        if reply.error is not None:
            raise ProviderError(f"model {self.name} failed ({reply.error}); try again with /retry")
        yield Generated("", self._usage(prompt, reply))

    def _next(self, prompt: Prompt) -> Reply:
        with self._lock:
            self.prompts.append(prompt)
            del self.prompts[:-PROMPTS_KEPT]
            replies = [reply if isinstance(reply, Reply) else Reply(reply) for reply in self.replies]
            for reply in replies:
                if reply.when is not None and reply.when in prompt.question:
                    return reply
            ordered = [reply for reply in replies if reply.when is None]
            at, self._used = self._used, self._used + 1
        if not ordered or (self.once and at >= len(ordered)):
            raise ProviderError(f"model {self.name} has no reply left; add one to its script")
        return ordered[min(at, len(ordered) - 1)]

    def _usage(self, prompt: Prompt, reply: Reply) -> Usage:
        prompt_tokens = sum(estimate_tokens(message.content) for message in prompt.messages)
        return {
            "model": self.name,
            "prompt_tokens": prompt_tokens,
            "completion_tokens": estimate_tokens(reply.text),
        }


def _reply(line: str, number: int, path: Path) -> Reply:
    try:
        fields = json.loads(line)
        return Reply(fields) if isinstance(fields, str) else Reply(**fields)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path.name} line {number} is no scripted reply: {error}") from None


# Settings


def load_provider(spec: str | None, *, base_url: str | None = None, api_key: str | None = None) -> Provider:
    """The provider that MODEL names: extractive (or nothing), openai:NAME, scripted:PATH, module:factory.

    The factory returns a provider or a LangChain chat model. ValueError in one line, with the remedy.
    """
    if spec is None or spec.strip() in ("", "extractive"):
        return ExtractiveProvider()
    kind, separator, rest = spec.strip().partition(":")
    if not separator or not kind or not rest:
        raise ValueError(f"MODEL={spec!r} is not understood: use {_FORMS}")
    if kind == "openai":
        return _openai(rest, base_url, api_key)
    if kind == "scripted":
        return _scripted(Path(rest))
    return _made_by(kind, rest, spec)


_FORMS = "extractive, openai:NAME, scripted:PATH or module:factory"


def _openai(name: str, base_url: str | None, api_key: str | None) -> Provider:
    if not api_key and not base_url:
        raise ValueError(
            f"MODEL=openai:{name} needs OPENAI_API_KEY, or OPENAI_BASE_URL for a server without keys"
        )
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    model = ChatOpenAI(
        model=name,
        base_url=base_url,
        api_key=SecretStr(api_key or "none"),
        max_retries=0,  # retried here, where it is known whether text has left
        timeout=60,
        temperature=0,
        stream_usage=True,
    )
    return ChatModelProvider(model, name=name, told_limit=_limit_of_server if base_url else _limit_of_openai)


def _limit_of_openai(tokens: int) -> Mapping[str, Any]:
    return {"max_completion_tokens": tokens}


def _limit_of_server(tokens: int) -> Mapping[str, Any]:
    """By the older name, the only one that every compatible server reads."""
    return {"extra_body": {"max_tokens": tokens}}


def _scripted(path: Path) -> Provider:
    if not path.is_file():
        raise ValueError(f"MODEL=scripted:{path}: there is no such file")
    return ScriptedProvider.from_file(path)


def _made_by(module: str, factory: str, spec: str) -> Provider:
    made, why = _call_factory(module, factory)
    if why:
        raise ValueError(f"MODEL={spec!r} cannot be loaded ({why}): use {_FORMS}")
    if isinstance(made, BaseChatModel):
        return ChatModelProvider(made)
    is_provider = callable(getattr(made, "stream", None)) and isinstance(getattr(made, "name", None), str)
    if isinstance(made, Runnable) or not is_provider:  # a chain streams too, but other pieces
        raise ValueError(f"MODEL={spec!r} makes neither a provider nor a LangChain chat model")
    return cast(Provider, made)


def _call_factory(module: str, factory: str) -> tuple[object, str | None]:
    """What a module of the operator's own makes, and why it made nothing.

    Of an error of its own only class and line are told: its text may quote a key.
    """
    try:
        found = getattr(importlib.import_module(module), factory, None)
        made = found() if callable(found) else found
    except ModuleNotFoundError as error:
        return None, f"there is no module {error.name}; is its folder in PYTHONPATH?"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever that module does, it is one line here
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename).stem == module.rpartition(".")[2]]
        return None, type(error).__name__ + (f" at line {lines[-1]} of {module}" if lines else "")
    return made, None if found is not None else f"{module} has no {factory}"
