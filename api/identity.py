"""Who asks: a signed-in caller by bearer token, or without sign-in the one local caller of this machine.

`caller_of` is the only place that turns a request into a caller, and `thread_of` the only one that turns a
caller's name for a thread into ours.
"""

import hashlib
import ipaddress
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Security
from fastapi.security import HTTPBearer
from starlette.requests import Request

from api.contract.scope import SCOPE
from api.keys import KeysUnavailableError
from api.problems import Refusal
from api.tokens import BadTokenError, MissingScopeError, SignIn
from graph.settings import SettingsError
from nodes.contracts import Caller

LOCAL = Caller(scopes=frozenset({SCOPE}))  # what it supplies is told to itself alone
REALM = "business-assistant"

# For the OpenAPI document: which routes have a caller. The header itself is read below.
BEARER = HTTPBearer(
    scheme_name="bearer",
    bearerFormat="JWT",
    auto_error=False,
    description="Where sign-in is set up; without it callers on the same machine send nothing.",
)


class BindRefusedError(SettingsError):
    """The server would be reachable by callers it cannot tell apart."""


def check_bind(host: str, *, sign_in: bool) -> None:
    """Raise BindRefusedError unless who can reach this address can also be told apart."""
    if not (sign_in or is_loopback(host)):
        raise BindRefusedError(
            f"Refusing to listen on {host}: without JWT_SECRET or JWT_JWKS_URL every caller would be the "
            "same local one. Set one of them, use --host 127.0.0.1, or put a proxy with its own sign-in on "
            "this machine."
        )


async def caller_of(request: Request, _document: Annotated[Any, Security(BEARER)] = None) -> Caller:
    """The caller with the permissions of this very request. Raises Refusal with 401, 403 or 503."""
    sign_in: SignIn | None = request.app.state.sign_in
    return local_caller(request) if sign_in is None else await signed_in_caller(request, sign_in)


async def signed_in_caller(request: Request, sign_in: SignIn) -> Caller:
    """By the one bearer token of the request. Where the connection comes from plays no part."""
    try:
        return await sign_in.caller_of(_token_in(request.headers.getlist("authorization")))
    except BadTokenError:
        raise _unauthorized('error="invalid_token"') from None
    except MissingScopeError as lacking:
        header = _challenge(f'error="insufficient_scope", scope="{lacking.scope}"')
        raise Refusal("insufficient_scope", headers=header) from None
    except KeysUnavailableError:
        raise Refusal("sign_in_unavailable") from None


def local_caller(request: Request) -> Caller:
    """The local caller. Raises Refusal "forbidden".

    Both ends are looked at: the connection must have arrived on a loopback address, and the Host header
    must name one, so that a web page elsewhere cannot reach us by a name it made point here.
    """
    server = request.scope.get("server")
    if server and not _is_local_socket(str(server[0])):
        raise Refusal("forbidden")
    if server and _is_address(str(server[0])) and not is_loopback(_host_of(request)):
        raise Refusal("forbidden", "The Host header must name this machine, such as 127.0.0.1.")
    return LOCAL


def thread_of(caller: Caller, name: str) -> str:
    """The thread that this caller's name stands for: for the local caller, the name itself.

    For a signed-in one a hash of tenant, user and name, each led by its length, so that no two triples are
    the same text and no name reaches a thread of somebody else's.
    """
    return name if is_local(caller) else _hash_of(caller.tenant, caller.user, name)


def limit_of(caller: Caller) -> str | None:
    """Under which name a caller's running requests are counted; None for the local one, who has no limit.

    One-way, so that no name of a person's becomes a key.
    """
    return None if is_local(caller) else _hash_of(caller.tenant, caller.user)


def is_local(caller: Caller) -> bool:
    return (caller.tenant, caller.user) == (LOCAL.tenant, LOCAL.user)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


def _hash_of(*texts: str) -> str:
    """Each text is led by its length, so that no letter can move from one to the next."""
    parts = (text.encode() for text in texts)
    return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).hexdigest()


def _token_in(headers: list[str]) -> str:
    if not headers:
        raise _unauthorized()
    scheme, _, token = headers[0].partition(" ")
    if len(headers) > 1 or scheme.lower() != "bearer":
        raise _unauthorized('error="invalid_request"')
    return token.strip()


def _unauthorized(*what: str) -> Refusal:
    return Refusal("unauthorized", headers=_challenge(*what))


def _challenge(*what: str) -> dict[str, str]:
    return {"WWW-Authenticate": ", ".join([f'Bearer realm="{REALM}"', *what])}


def _is_local_socket(host: str) -> bool:
    # Anything but an address is a unix socket's path or a client in this process.
    return not _is_address(host) or is_loopback(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _host_of(request: Request) -> str:
    try:
        return urlsplit("//" + request.headers.get("host", "")).hostname or ""
    except ValueError:
        return ""
