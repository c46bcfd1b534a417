"""How the service logs: one JSON object a line on standard error, times as in the request log.

What is logged is ids, codes and sizes. No text of a user's, no key and no message of an exception is. What
libraries log is cut down to that as well: who logs, from where, and the type of the error.
"""

import logging
import sys
from typing import Any, TextIO

import structlog

from nodes.contracts import Clock

INFO = 20


def log_as_json(clock: Clock, to: TextIO | None = None, *, worker: int | None = None) -> None:
    """`worker` is the number of this process, where there are several."""
    whose = {} if worker is None else {"worker": worker}

    def add_time(_logger: Any, _method: str, event: Any) -> Any:
        return {"time": clock(), **whose, **event}

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            add_time,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(INFO),
        logger_factory=structlog.PrintLoggerFactory(to or sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [each for each in root.handlers if not isinstance(each, LibraryLog)]
    root.addHandler(LibraryLog(logging.WARNING))


class LibraryLog(logging.Handler):
    """Takes what libraries log. Their messages may quote anything, so none is passed on."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[0] if record.exc_info else None
        structlog.get_logger("api").log(
            record.levelno,
            "library_log",
            logger=record.name,
            at=f"{record.module}:{record.lineno}",
            error=error.__name__ if error else None,
        )
