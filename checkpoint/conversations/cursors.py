"""Where a listing goes on: the sort key of the last row shown, and which listing it belongs to.

A page begins after a key, not after a number of rows, so rows written meanwhile shift nothing. Keys never
change: a row can be neither lost nor shown twice. A cursor grants nothing: every page checks the owner again.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from checkpoint.conversations.errors import BadCursorError

LONGEST = 512


def encode_cursor(listing: Sequence[object], key: Sequence[str | int]) -> str:
    body = json.dumps([_mark(listing), *key], separators=(",", ":"))
    return base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, listing: Sequence[object], kinds: Sequence[type]) -> list[Any]:
    """The key, of exactly these types. Raises BadCursorError for anything else, also another listing's."""
    try:
        body = base64.b64decode(cursor[:LONGEST] + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        mark, *key = json.loads(body)
    except (ValueError, TypeError, RecursionError):
        raise BadCursorError from None
    if mark != _mark(listing) or [type(part) for part in key] != list(kinds):
        raise BadCursorError
    return list(key)


def _mark(listing: Sequence[object]) -> str:
    """Which listing: owner, filter and direction. A short hash, so that a cursor names nobody."""
    canonical = json.dumps([str(part) for part in listing], ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
