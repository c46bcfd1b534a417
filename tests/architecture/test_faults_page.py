"""docs/faults.md claims nothing that is not tested: each test it names exists, and each row names one."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "faults.md"
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows() -> list[str]:
    """The rows of the page's tables, without their heads."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith("| kind of fault")]


def names_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds) and node.name.startswith("test_")}


def test_every_kind_of_fault_has_a_test() -> None:
    assert len(rows()) >= 45
    for row in rows():
        kind, guard, tests = (cell.strip() for cell in row.strip("|").split("|"))
        assert kind
        assert guard
        assert NAMED.findall(tests), kind


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(PAGE.read_text(encoding="utf-8")))))
def test_the_test_is_there(file: str, name: str) -> None:
    assert name in names_in(TESTS / file)


def test_every_test_of_faults_is_named() -> None:
    """Whoever adds one says what it is about."""
    named = {name for file, name in NAMED.findall(PAGE.read_text(encoding="utf-8")) if "faults/" in file}
    found = {name for file in (TESTS / "faults").glob("test_*.py") for name in names_in(file)}
    unnamed = found - named
    assert not unnamed
