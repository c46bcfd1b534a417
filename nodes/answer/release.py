"""How generated text leaves: sentence by sentence, each only after the grounding guard and the output screen.

A sentence that does not pass takes everything back (`reset`), the answer is written anew once, and then the
extractive answer stands in, marked degraded. No unchecked character ever reaches `emit`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

from nodes.answer.grounding import Grounding, SentenceBuffer
from nodes.answer.labels import Numbering
from nodes.answer.prompts import evidence_text
from nodes.answer.providers import ExtractiveProvider, is_unanswered
from nodes.answer.rendering import fixed_text
from nodes.contracts import Emit, Generated, Language, Message, Prompt, Provider, ProviderError, Usage
from nodes.patience import Awaited

# Why a text may not leave, or None. The same shape as the safety screen of questions.
OutputScreen = Callable[[str], str | None]

CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class Released:
    """What has left. `text` is exactly what `emit` was given, joined, since the last `reset`.

    `partial`: it was stopped from outside. `degraded`: the extractive answer stands in for the model's.
    `is_answer`: False when the passages hold no answer. `cited` is the passages' numbers in the order of
    their labels in the text. `replies` are the model's raw replies in order,
    each as far as it was read, from which a `ScriptedProvider` repeats the whole course. `refusals` are the
    kinds of what was not let through.
    """

    text: str
    partial: bool = False
    degraded: bool = False
    is_answer: bool = True
    usage: Usage | None = None
    replies: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    cited: Sequence[int] = ()


class AnswerInterruptedError(ProviderError):
    """The model failed after some text had left; `partial` is that text."""

    def __init__(self, message: str, *, partial: str, replies: tuple[str, ...], usage: Usage | None) -> None:
        super().__init__(message)
        self.partial = partial
        self.replies = replies
        self.usage = usage


def release(
    provider: Provider,
    prompt: Prompt,
    *,
    emit: Emit,
    reset: Callable[[], None],
    stopped: Callable[[], bool],
    screen: OutputScreen | None = None,
    fallback: Provider | None = None,
    first_label: int = 1,
) -> Released:
    """The answer to `prompt`, let out through `emit` sentence by sentence.

    Raises ProviderError when the model gives nothing, AnswerInterruptedError when it fails after text has
    left; a model that fails while writing anew is replaced by `fallback` (the extractive provider). At most
    4 characters a token of the output limit leave; a longer answer ends with its last whole sentence, and
    has one at least. A reply in another language than the question's is refused too, and one that cites no
    passage unless it says that nothing was found; not of a provider that only quotes. What leaves is
    labelled from `first_label` on, in the order of use.
    """
    course = _Course(prompt, emit, reset, stopped, screen or (lambda _: None), first_label)
    first = course.attempt(provider, prompt)
    if first is not _REFUSED:
        return course.released()
    course.take_back()
    try:
        second = course.attempt(provider, _corrected(prompt))
    except ProviderError:
        second = _REFUSED
    if second is not _REFUSED:
        return course.released()
    course.take_back()
    course.stand_in(fallback or ExtractiveProvider())
    return replace(course.released(), degraded=True)


class _Outcome:
    """How an attempt ended, compared by identity."""


_REFUSED, _DONE = _Outcome(), _Outcome()


@dataclass
class _Course:
    """One answer on its way out: what has left, what the model said, what was refused."""

    prompt: Prompt
    emit: Emit
    reset: Callable[[], None]
    stopped: Callable[[], bool]
    screen: OutputScreen
    first_label: int
    sent: str = ""
    gap: str = ""  # white space that leaves with the next sentence, so that no answer ends in it
    was_stopped: bool = False
    usage: Usage | None = None
    replies: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        evidence = [evidence_text(passage) for passage in self.prompt.passages]
        self.guard = Grounding(evidence, self.prompt.question)
        self.labels = Numbering(self.first_label)

    def attempt(self, provider: Provider, prompt: Prompt) -> _Outcome:
        """Let out what `provider` writes until it ends, is stopped, or says something that must not leave."""
        only_quotes = getattr(provider, "only_quotes", False)
        pieces = (
            provider.stream(prompt) if only_quotes else Awaited(lambda: provider.stream(prompt), self.stopped)
        )
        reply = _Reply(pieces, self.stopped)
        language = None if only_quotes else prompt.language
        try:
            return self._let_out(reply, language)
        except ProviderError as error:
            if not self.sent:
                raise
            raise AnswerInterruptedError(
                str(error), partial=self.sent, replies=(*self.replies, reply.raw), usage=self.usage
            ) from None
        finally:
            self.replies.append(reply.raw)
            self.usage = _added(self.usage, reply.usage)
            reply.close()

    def _let_out(self, reply: "_Reply", language: Language | None) -> _Outcome:
        limit = self.prompt.max_output_tokens * CHARACTERS_A_TOKEN
        for sentence in reply.sentences():
            if reason := self._objection(sentence, language):
                self.refusals.append(reason)
                return _REFUSED
            if len(self.sent) + len(sentence) > limit and self.sent:
                return self._unless_uncited(language)
            self._send(sentence)
        self.was_stopped = reply.was_stopped
        if not self.sent and not self.was_stopped:
            raise ProviderError("the model returned no text; try again with /retry")
        return self._unless_uncited(language)

    def _unless_uncited(self, language: Language | None) -> _Outcome:
        """An answer that names no passage at all is no answer from them, whatever it says."""
        is_sourced = bool(self.labels.order) or not self.prompt.passages or self.was_stopped
        if language is None or is_sourced or _says_nothing_found(self.sent):
            return _DONE
        self.refusals.append("uncited")
        return _REFUSED

    def _objection(self, sentence: str, language: Language | None) -> str | None:
        verdict = self.guard.check(sentence)
        if not verdict.ok:
            return verdict.unsupported[0].what
        if language and is_other_language(sentence, language):
            return "language"
        reason = self.screen(self.sent + self.gap + sentence)
        return f"screen:{reason}" if reason else None

    def _send(self, checked: str) -> None:
        sentence = self.labels.renumbered(checked)
        body = sentence.rstrip()
        text = self.gap + body if self.sent else body.lstrip()
        if not text:
            return
        self.emit(text)
        self.sent += text
        self.gap = sentence[len(body) :]

    def stand_in(self, fallback: Provider) -> None:
        """Quotes that pass leave; where none does, the text that says so."""
        reply = _Reply(fallback.stream(self.prompt), self.stopped)
        for sentence in reply.sentences():
            if self._objection(sentence, None) is None:
                self._send(sentence)
        self.was_stopped = reply.was_stopped
        if not self.sent and not self.was_stopped:
            self._send(fixed_text("nothing_checked", self.prompt.language))

    def take_back(self) -> None:
        if self.sent:
            self.reset()
        self.sent, self.gap, self.labels = "", "", Numbering(self.first_label)

    def released(self) -> Released:
        return Released(
            text=self.sent,
            partial=self.was_stopped,
            is_answer=not is_unanswered(self.sent),
            usage=self.usage,
            replies=tuple(self.replies),
            refusals=tuple(self.refusals),
            cited=self.labels.order,
        )


class _Closable(Protocol):
    def close(self) -> None: ...


class _Reply:
    """One reply as it comes in: its sentences, its raw text so far, its usage."""

    def __init__(self, pieces: Iterable[Generated], stopped: Callable[[], bool]) -> None:
        self._pieces = pieces
        self._stopped = stopped
        self.raw = ""
        self.usage: Usage | None = None
        self.was_stopped = False

    def sentences(self) -> Iterator[str]:
        """Whole sentences; after a stop no more, and what was not yet a sentence is left out."""
        buffer = SentenceBuffer()
        for piece in self._pieces:
            self.usage = piece.usage or self.usage
            self.raw += piece.text
            for sentence in buffer.feed(piece.text):
                if self._is_stopped():
                    return
                yield sentence
            if self._is_stopped():
                return
        if self._is_stopped():  # while it was waited for
            return
        for sentence in buffer.flush():
            if self._is_stopped():
                return
            yield sentence

    def _is_stopped(self) -> bool:
        self.was_stopped = self.was_stopped or self._stopped()
        return self.was_stopped

    def close(self) -> None:
        """End the stream, so that the model stops writing what nobody reads."""
        if hasattr(self._pieces, "close"):
            with closing(cast(_Closable, self._pieces)):
                pass


def _added(before: Usage | None, more: Usage | None) -> Usage | None:
    if before is None or more is None:
        return more or before
    return {
        "model": more["model"],
        "prompt_tokens": before["prompt_tokens"] + more["prompt_tokens"],
        "completion_tokens": before["completion_tokens"] + more["completion_tokens"],
    }


_CORRECTION: dict[Language, str] = {
    "zh": "上一次回答中有资料里没有的数字、日期、名称或出处，已作废。请重新回答，只写资料中原样出现的内容。",
    "en": "The last answer held a number, date, name or source that the sources do not hold, and was "
    "discarded. Answer again with nothing but what stands in the sources.",
}


def _corrected(prompt: Prompt) -> Prompt:
    """The prompt with one more rule. What was wrong is not repeated: it must not be read as a source."""
    rules, *rest = prompt.messages
    corrected = Message(rules.role, f"{rules.content}\n\n{_CORRECTION[prompt.language]}")
    return replace(prompt, messages=[corrected, *rest])


def _says_nothing_found(text: str) -> bool:
    """Whether a short text says no more than that the sources do not answer."""
    return is_unanswered(text) or (len(text) <= 200 and _NOTHING_FOUND.search(text) is not None)


_NOTHING_FOUND = re.compile(
    r"(?:没有?|未)(?:能)?(?:找到|提供|提到|提及|说明|写明|包含|相关|记载)|(?:无法|不能)(?:回答|确定|找到|提供)"
    r"|\bnot (?:contain|say|mention|hold|provide|state|include|found|mentioned|stated|given|cover)"
    r"|\b(?:no|nothing) (?:information|source|mention|answer|in|about)|\bcannot (?:answer|find|say|tell)",
    re.IGNORECASE,
)


def is_other_language(sentence: str, language: Language) -> bool:
    """Whether a sentence is plainly not in `language`; names, figures and short phrases do not count."""
    han = len(re.findall(r"[\u3400-\u9fff]", sentence))
    latin = len(re.findall(r"[A-Za-zÀ-ÿ]", sentence))
    other = len(re.findall(r"[\u0400-\u06ff\u0900-\u0dff\u3040-\u30ff\uac00-\ud7af]", sentence))
    if other > max(8, han + latin):
        return True
    if language == "zh":
        return (latin >= 40 and han * 10 < latin) or (not han and _is_worded(sentence))
    return han >= 12 and han * 2 > latin


def _is_worded(sentence: str) -> bool:
    """Whether words of a Latin script make a sentence; names begin with capitals."""
    words = re.findall(r"[A-Za-zÀ-ÿ]{2,}", sentence)
    return len(words) >= 4 and sum(word.islower() for word in words) >= 3
