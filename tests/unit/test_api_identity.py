"""Without sign-in: callers on this machine only, from every side. With it: whose thread is whose."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from api.identity import LOCAL, BindRefusedError, check_bind, is_loopback, local_caller, thread_of
from api.problems import Refusal
from nodes.contracts import Caller


def request(server: Any, host: str = "127.0.0.1:8000") -> Request:
    return Request({"type": "http", "server": server, "headers": [(b"host", host.encode())]})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_may_be_bound_without_sign_in(host: str) -> None:
    check_bind(host, sign_in=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.com", ""])  # noqa: S104 - refused
def test_anything_else_only_with_it(host: str) -> None:
    with pytest.raises(BindRefusedError, match=r"JWT_SECRET.*127\.0\.0\.1"):
        check_bind(host, sign_in=False)
    check_bind(host, sign_in=True)


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
    assert local_caller(request(server, host)) is LOCAL


@pytest.mark.parametrize("server", [("192.168.1.4", 8000), ("10.0.0.1", 80), ("2001:db8::1", 80)])
def test_a_connection_that_arrived_elsewhere_is_refused(server: Any) -> None:
    with pytest.raises(Refusal, match="on this machine"):
        local_caller(request(server))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "localhost.evil.example"]
)
def test_a_name_made_to_point_here_is_refused(host: str) -> None:
    with pytest.raises(Refusal, match="Host"):
        local_caller(request(("127.0.0.1", 8000), host))


def test_the_local_callers_thread_is_the_name_itself() -> None:
    assert thread_of(LOCAL, "任意 {名字}:*") == "任意 {名字}:*"


NAMES = st.text(st.sampled_from("1:23ab"), min_size=1, max_size=6)
TRIPLES = st.tuples(NAMES, NAMES, NAMES)


def thread(triple: tuple[str, str, str]) -> str:
    tenant, user, name = triple
    return thread_of(Caller(tenant=tenant, user=user), name)


@given(TRIPLES, TRIPLES)
def test_two_callers_or_names_never_share_a_thread(one: Any, other: Any) -> None:
    assert (thread(one) == thread(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"), [(("ab", "c", "t"), ("a", "bc", "t")), (("a", "b1:t", "x"), ("a", "b", "1:tx"))]
)
def test_letters_cannot_move_between_tenant_user_and_name(one: Any, other: Any) -> None:
    assert thread(one) != thread(other)


def test_a_name_that_is_anothers_thread_is_only_a_name() -> None:
    assert thread(("a", "b", thread(("a", "c", "t")))) != thread(("a", "c", "t"))


def test_groups_do_not_move_a_conversation() -> None:
    with_groups = Caller(tenant="a", user="b", groups=frozenset({"g"}))
    assert thread_of(with_groups, "t") == thread(("a", "b", "t"))


def test_loopback_is_decided_by_address_not_by_looks() -> None:
    assert not is_loopback("127.0.0.1.example.com")
