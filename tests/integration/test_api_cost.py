"""What a request costs before its `created` is sent: round trips to Redis, counted on the wire."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from door import Door, open_door
from relay import Proxy
from test_api_limits import ALICE
from test_api_strangers import SECRET

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store
from graph.compose import open_assistant
from graph.run import stream_turn
from graph.settings import load_settings

NARRATIVE = "创业补贴有多少？"
AT_MOST = 3


class Counter:
    """Runs the real graph; notes what had passed when it began, which is right after `created`."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.counts: list[int] = []

    def __call__(self, *args: Any, **more: Any) -> Any:
        self.counts.append(self.proxy.round_trips)
        return stream_turn(*args, **more)


@pytest.fixture(params=["local", "signed in"])
def counted(
    request: pytest.FixtureRequest, home: Any, proxy: Proxy, new_database: Callable[..., StoreConfig]
) -> Iterator[tuple[Door, Counter]]:
    env = {"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": proxy.url, "LEASE_SECONDS": "600"}
    if request.param == "signed in":
        env["JWT_SECRET"] = SECRET
    counter = Counter(proxy)
    with (
        open_assistant(load_settings(env)) as assistant,
        open_store(new_database("sqlite")) as store,
        open_door(assistant, store=store, run_turn=counter) as door,
    ):
        if request.param == "signed in":
            door.http.headers["Authorization"] = f"Bearer {ALICE}"
        door.app.state.keeper._tick = 3600  # a renewal in between is no part of the way to `created`
        yield door, counter


@pytest.mark.parametrize("more", [{}, {"client_message_id": "m"}])
def test_created_is_sent_after_at_most_three_round_trips(
    counted: tuple[Door, Counter], more: dict[str, str]
) -> None:
    door, counter = counted
    is_signed_in = "Authorization" in door.http.headers
    door.ask(NARRATIVE)  # scripts are loaded once
    counts = []
    for number in range(4):
        named = {name: f"{value}{number}" for name, value in more.items()}
        door.wait_idle()
        counter.proxy.reset()
        counter.counts.clear()
        assert door.ask(NARRATIVE, **named)[0][0] == "created"
        counts += counter.counts
    # The lease with the claim; the running record; and of a signed-in caller, the seat.
    assert min(counts) == (3 if is_signed_in else 2) <= AT_MOST
    assert len(counts) == 4


def test_a_message_that_was_sent_before_costs_one_round_trip(counted: tuple[Door, Counter]) -> None:
    door, counter = counted
    first = door.ask(NARRATIVE, client_message_id="m1")
    trips = []
    for _ in range(3):
        counter.proxy.reset()
        assert door.ask(NARRATIVE, client_message_id="m1")[-1] == first[-1]
        trips.append(counter.proxy.round_trips)
    assert min(trips) == 1
