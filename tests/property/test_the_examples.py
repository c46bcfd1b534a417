"""What hypothesis tries in the other tests is the same in every run, on every machine, in every order."""

import importlib
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MODULE = "WORDS = [" + ", ".join(repr(f"a word {number}") for number in range(50)) + "]\n"


def tried() -> list[str]:
    seen: list[str] = []

    @given(st.text())
    def keep(text: str) -> None:
        seen.append(text)

    keep()
    return seen


def test_they_do_not_depend_on_what_was_loaded_before(
    tmp_path: Path, is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_long:
        pytest.skip("with --long they are new ones each time")
    before = tried()
    (tmp_path / "loaded_in_between.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("loaded_in_between")
    assert tried() == before
    assert len(before) == 100
    del sys.modules["loaded_in_between"]


def test_no_slow_machine_ends_them() -> None:
    assert settings.default
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check
