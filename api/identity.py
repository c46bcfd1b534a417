"""Who asks. Without sign-in there is one local caller, and only on connections from this very machine.

Sign-in by bearer token is decided here too once it exists: `caller_of` is the only place that turns a
request into a caller, and `thread_of` the only one that turns a caller's name for a thread into ours.
"""

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request

from api.problems import Refusal
from graph.settings import SettingsError
from nodes.contracts import Caller

LOCAL = Caller()


class BindRefusedError(SettingsError):
    """The server would be reachable by callers it cannot tell apart."""


def check_bind(host: str, *, sign_in: bool) -> None:
    """Raise BindRefusedError unless who can reach this address can also be told apart."""
    if sign_in:
        raise BindRefusedError(
            "JWT_SECRET is set, but this version cannot check sign-in yet: unset it and serve on 127.0.0.1"
        )
    if not is_loopback(host):
        raise BindRefusedError(
            f"Refusing to listen on {host}: without JWT_SECRET every caller would be the same local one. "
            "Use --host 127.0.0.1, or put a proxy with its own sign-in on this machine."
        )


def caller_of(request: Request) -> Caller:
    """The caller with the permissions of this very request. Raises Refusal "forbidden".

    Both ends are looked at: the connection must have arrived on a loopback address, and the Host header
    must name one, so that a web page elsewhere cannot reach us by a name it made point here.
    """
    server = request.scope.get("server")
    if server and not _is_local_socket(str(server[0])):
        raise Refusal("forbidden")
    if server and _is_address(str(server[0])) and not is_loopback(_host_of(request)):
        raise Refusal("forbidden", "The Host header must name this machine, such as 127.0.0.1.")
    return LOCAL


def thread_of(_caller: Caller, name: str) -> str:
    """The thread that this caller's name stands for: for the local caller, the name itself."""
    return name


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


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
