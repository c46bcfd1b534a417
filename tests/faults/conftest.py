from pathlib import Path

import pytest
from faults.parts import Home, Model


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def place(home: Path, redis_url: str) -> Home:
    return Home(home, redis_url)
