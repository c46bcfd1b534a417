"""What schemathesis leaves out of valid requests: rules over what was sent before, which no schema can say.

An id names one message only, and a cursor is one that this very listing gave out. So a valid message gets an
id of its own, in one place, and a valid listing starts at its beginning. Invalid requests go as they are.
"""

from itertools import count
from typing import Any

import schemathesis

KEY = "Idempotency-Key"
IDS = {"/api/chat": "client_message_id", "/conversations/{conversation_id}/messages": "clientMessageId"}
numbers = count(1)


@schemathesis.hook
def before_call(_context: Any, case: Any, _options: Any) -> None:
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    name, headers, body = IDS.get(case.operation.path), case.headers, case.body
    if case.operation.method.upper() == "GET":
        (case.query or {}).pop("cursor", None)
    elif name and isinstance(body, dict) and body.get(name):
        (headers or {}).pop(KEY, None)
        body[name] = f"{next(numbers)}-{body[name]}"[:200]
    elif name and headers and headers.get(KEY):
        headers[KEY] = f'"{next(numbers)}"'
