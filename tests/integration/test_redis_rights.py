"""The documented Redis user can do all that the assistant does, and lacking one right is told by name."""

import re
from pathlib import Path

import pytest
import redis

from api.leases import LeaseKeeper, Seats, hold
from checkpoint.errors import CheckpointUnavailable
from graph.compose import open_assistant
from graph.run import last_result, stream_turn
from graph.settings import Settings, load_settings
from nodes.contracts import Caller

PAGE = Path(__file__).parents[2] / "docs" / "redis.md"


def documented() -> list[str]:
    block = re.search(r"<!-- acl -->\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block
    return block[1].split()[2:]


@pytest.fixture
def as_user(settings: Settings, redis_client: redis.Redis):  # type: ignore[no-untyped-def]
    def make(*without: str) -> Settings:
        rules = [rule.replace("PASSWORD", "secret") for rule in documented()[1:] if rule not in without]
        redis_client.execute_command("ACL", "SETUSER", "assistant", "reset", *rules)
        socket = (settings.context.url or "").removeprefix("unix://")
        url = f"unix://assistant:secret@{socket}"
        return load_settings({"BUSINESS_ASSISTANT_HOME": str(settings.home), "REDIS_URL": url})

    yield make
    redis_client.execute_command("ACL", "DELUSER", "assistant")


def converse(settings: Settings) -> list[str]:
    with open_assistant(settings) as assistant:
        statuses = []
        for text in ("云帆2023年净利润", "2", "一次性创业补贴有多少钱？", "那营收呢", "取消"):
            with hold(assistant.saver.wire.client, "t") as lease:
                request = {"request_id": assistant.new_id(), "text": text, "received_at": assistant.clock()}
                events = stream_turn(
                    assistant,
                    request,  # type: ignore[arg-type]
                    thread_id="t",
                    caller=Caller(),
                    lease=lease.token,
                )
                statuses.append(last_result(events).status)
        keeper = LeaseKeeper(assistant.saver.wire.client)
        with keeper.hold("t", "r", seats=Seats("caller", 1)):
            pass
        keeper.close()
        assistant.saver.list_requests("t")
        assistant.saver.copy_thread("t", "u")
        list(assistant.saver.list(None))
        assistant.saver.prune(["u"])
        assistant.saver.delete_thread("u")
        list(assistant.saver.scan_requests())
    return statuses


def test_the_documented_user_holds_a_whole_conversation(as_user) -> None:  # type: ignore[no-untyped-def]
    assert converse(as_user()) == ["needs_input", "completed", "completed", "needs_input", "completed"]


def test_a_user_without_expire_is_told_what_to_grant(as_user) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CheckpointUnavailable, match="EXPIRE"):
        converse(as_user("+expire"))
