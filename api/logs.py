"""How the service logs: one JSON object a line on standard error, times as in the request log.

What is logged is ids, codes and sizes. No text of a user's, no key and no message of an exception is.
"""

import sys
from typing import Any, TextIO

import structlog

from nodes.contracts import Clock

INFO = 20


def log_as_json(clock: Clock, to: TextIO | None = None) -> None:
    def add_time(_logger: Any, _method: str, event: Any) -> Any:
        return {"time": clock(), **event}

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
