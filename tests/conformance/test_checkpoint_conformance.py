"""The savers against LangGraph's own conformance suite: every capability, async and sync."""

from collections.abc import AsyncGenerator
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer
from langgraph.checkpoint.conformance.validate import validate

TESTS_IN_THE_SUITE = 81


async def check(saver: BaseCheckpointSaver[Any]) -> None:
    async def make() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        yield saver

    report = await validate(RegisteredCheckpointer(name="ours", factory=make))
    failures = [failure for result in report.results.values() for failure in result.failures or []]
    assert failures == []
    assert {name for name, result in report.results.items() if result.passed} == {c.value for c in Capability}
    assert sum(result.tests_passed for result in report.results.values()) == TESTS_IN_THE_SUITE


async def test_all_capabilities(any_saver: Any) -> None:
    await check(any_saver)


async def test_all_capabilities_with_encryption(make_any_saver: Any) -> None:
    await check(make_any_saver(aes_key=b"k" * 32))


async def test_all_capabilities_when_everything_is_compressed(make_any_saver: Any) -> None:
    await check(make_any_saver(compress_from_bytes=1))


async def test_all_capabilities_as_transactions(make_any_saver: Any, monkeypatch: Any) -> None:
    """Every value takes the way of the large ones."""
    monkeypatch.setattr("checkpoint.plan.LARGEST_SCRIPT_BYTES", -1)
    await check(make_any_saver())
