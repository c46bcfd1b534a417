"""Without sign-in: callers on this machine only, on every side one can look at."""

from typing import Any

import pytest
from starlette.requests import Request

from api.identity import LOCAL, BindRefusedError, caller_of, check_bind, is_loopback, thread_of
from api.problems import Refusal


def request(server: Any, host: str = "127.0.0.1:8000") -> Request:
    return Request({"type": "http", "server": server, "headers": [(b"host", host.encode())]})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_may_be_bound_without_sign_in(host: str) -> None:
    check_bind(host, sign_in=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.com", ""])  # noqa: S104 - refused
def test_anything_else_may_not(host: str) -> None:
    with pytest.raises(BindRefusedError, match=r"127\.0\.0\.1"):
        check_bind(host, sign_in=False)


def test_a_secret_is_not_taken_for_sign_in_that_does_not_exist_yet() -> None:
    with pytest.raises(BindRefusedError, match="JWT_SECRET"):
        check_bind("127.0.0.1", sign_in=True)


@pytest.mark.parametrize(
    ("server", "host"),
    [
        (("127.0.0.1", 8000), "127.0.0.1:8000"),
        (("127.0.0.1", 8000), "localhost:8000"),
        (("::1", 8000), "[::1]:8000"),
        (("/run/assistant.sock", None), "whatever"),
        (None, "whatever"),
    ],
)
def test_a_connection_of_this_machine_is_the_local_caller(server: Any, host: str) -> None:
    assert caller_of(request(server, host)) is LOCAL


@pytest.mark.parametrize("server", [("192.168.1.4", 8000), ("10.0.0.1", 80), ("2001:db8::1", 80)])
def test_a_connection_that_arrived_elsewhere_is_refused(server: Any) -> None:
    with pytest.raises(Refusal, match="on this machine"):
        caller_of(request(server))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "localhost.evil.example"]
)
def test_a_name_made_to_point_here_is_refused(host: str) -> None:
    with pytest.raises(Refusal, match="Host"):
        caller_of(request(("127.0.0.1", 8000), host))


def test_the_local_callers_thread_is_the_name_itself() -> None:
    assert thread_of(LOCAL, "任意 {名字}:*") == "任意 {名字}:*"


def test_loopback_is_decided_by_address_not_by_looks() -> None:
    assert not is_loopback("127.0.0.1.example.com")
