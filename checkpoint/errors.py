"""Errors of this room: one root, ids and a remedy in every message, never a value or a password."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class CheckpointError(Exception):
    """Root of everything this room raises on purpose."""


class ConfigError(CheckpointError, ValueError):
    """A setting cannot be used. The message names the setting and what to do."""

    def __init__(self, setting: str, problem: str, remedy: str) -> None:
        super().__init__(f"{setting}: {problem}. {remedy}")
        self.setting = setting
        self.remedy = remedy


class BadRequestError(CheckpointError, ValueError):
    """The caller handed over something that no saver can store or look up."""


class CheckpointUnavailable(CheckpointError):  # noqa: N818 - the name is part of the agreed interface
    """The server did not answer, or refused for a reason of its own. Nothing is known to be lost.

    A write that raised this may still have been committed: repeating it is safe.
    """

    def __init__(self, doing: str, problem: str, remedy: str) -> None:
        super().__init__(f"{doing}: {problem.removesuffix('.')}. {remedy}")
        self.doing = doing
        self.remedy = remedy


class LeaseLostError(CheckpointError):
    """The write carried a lease token that no longer holds the thread; nothing was written.

    Another run took the thread over, the lease lapsed, or the thread was deleted. Stop this run.
    """

    def __init__(self, thread_id: object, doing: str) -> None:
        super().__init__(
            f"{doing} for thread {thread_id!r} was refused: its lease is gone. "
            "Stop this run; start a new one if the answer is still wanted."
        )
        self.thread_id = thread_id


class NewerFormatError(CheckpointError):
    """The thread was written by a newer version of this package; it is left untouched."""

    def __init__(self, key: str, form: str) -> None:
        super().__init__(
            f"{key} is in form {form!r}, which this version cannot read or extend. "
            "Upgrade business-assistant on this host, or delete the thread."
        )


class WrongTypeError(CheckpointError):
    """Something that is no thread of ours sits under one of our keys."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{key} holds another type than a hash. "
            "Remove it, or give the saver its own database or key_prefix (CONTEXT_KEY_PREFIX)."
        )


class CannotRestoreError(CheckpointError):
    """A stored value is missing, damaged, of an unknown form or of a type that may not be loaded.

    `where` names thread, namespace, checkpoint and channel as far as they are known.
    """

    def __init__(self, problem: str, where: Mapping[str, object]) -> None:
        place = ", ".join(f"{name} {value!r}" for name, value in where.items())
        super().__init__(f"cannot restore {place}: {problem}")
        self.where = dict(where)


class Walk:
    """Goes over many threads past those that cannot be read; the first fault is raised when all are done."""

    def __init__(self) -> None:
        self._first: CheckpointError | None = None

    @contextmanager
    def step(self) -> Iterator[None]:
        try:
            yield
        except (CannotRestoreError, NewerFormatError) as fault:
            self._first = self._first or fault

    def end(self) -> None:
        if self._first is not None:
            raise self._first


class EmbeddedServerError(CheckpointUnavailable):
    """The embedded server could not be started or stopped."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__("embedded server", problem, remedy)
