"""What a client calls its message, so that sending it twice is one request: in the body or in a header.

`Idempotency-Key` is a quoted string, as the IETF's HTTPAPI group has it; without quotes it is taken as it
is. Given twice, it must be the same: two different ids name two messages, and nobody could say which.
"""

import re
from typing import Annotated

from fastapi import Header, Request

from api.problems import Refusal

HEADER = "Idempotency-Key"
MOST_CHARACTERS = 200

_BARE = re.compile(r"[\x21\x23-\x7e][\x20-\x7e]*")
_QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_ESCAPED = re.compile(r"\\(.)")


async def idempotency_key(
    request: Request,
    _document: Annotated[
        str | None,
        Header(
            alias=HEADER,
            description="As client_message_id, which it must equal where both are given: 1 to 200 printable "
            'ASCII characters, in quotes or without, such as "8e03978e-40d5-43dd-bc93-6894a57f9324".',
        ),
    ] = None,
) -> str | None:
    """The message's id by the request's headers. Raises Refusal "invalid_body"."""
    keys = {key_in(value) for value in request.headers.getlist(HEADER)}
    if len(keys) > 1:
        raise _wrong(HEADER, "given_twice")
    return next(iter(keys), None)


def key_in(value: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    key = _ESCAPED.sub(r"\1", quoted[1]) if quoted else value
    if not (1 <= len(key) <= MOST_CHARACTERS and (quoted or _BARE.fullmatch(value))):
        raise _wrong(HEADER, "malformed")
    return key


def message_id_of(in_header: str | None, in_body: str | None) -> str | None:
    """The one id. Raises Refusal "invalid_body" where there are two."""
    if in_header is not None and in_body is not None and in_header != in_body:
        raise _wrong(HEADER, "differs_from_client_message_id")
    return in_header if in_body is None else in_body


def _wrong(field: str, code: str) -> Refusal:
    return Refusal("invalid_body", errors=[{"field": field, "code": code}])
