"""Errors tell what was being done, what is wrong and what to do, as sentences."""

import pytest

from checkpoint.errors import CheckpointUnavailable


@pytest.mark.parametrize("problem", ["Connection refused", "Connection refused."])
def test_the_servers_words_end_with_one_full_stop(problem: str) -> None:
    error = CheckpointUnavailable("Reading thread a", problem, "Check REDIS_URL.")
    assert str(error) == "Reading thread a: Connection refused. Check REDIS_URL."
