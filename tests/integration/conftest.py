"""The door of tests that say themselves when a run goes on; a module may have another of the same name."""

from collections.abc import Iterator

import pytest
from door import Door, Script, open_door, stand_in

from checkpoint import RedisContextSaver


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def door(saver: RedisContextSaver, script: Script) -> Iterator[Door]:
    with open_door(stand_in(saver), run_turn=script) as door:
        yield door
        script.go.set()
        door.wait_idle()
