"""The pinned requirements: exact, hashed, complete, and free of any address."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "requirements").glob("*.txt"))
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DECLARED = {
    "run": CONFIG["project"]["dependencies"],
    "test": [*CONFIG["project"]["dependencies"], *CONFIG["dependency-groups"]["test"]],
    "otlp": [*CONFIG["project"]["dependencies"], *CONFIG["project"]["optional-dependencies"]["otlp"]],
    "dense": [*CONFIG["project"]["dependencies"], *CONFIG["project"]["optional-dependencies"]["dense"]],
    "bench": [*CONFIG["project"]["dependencies"], *CONFIG["dependency-groups"]["bench"]],
    "model": CONFIG["dependency-groups"]["model"],
}


def pins(file: Path) -> dict[str, str]:
    """Name -> version. Fails on a line that pins nothing."""
    found = {}
    for line in requirement_lines(file):
        match = re.match(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?==(?P<version>[\w.!+]+)", line)
        assert match, f"{file.name}: {line[:80]}"
        found[canonicalize_name(match["name"])] = match["version"]
    return found


def requirement_lines(file: Path) -> list[str]:
    text = re.sub(r"^\s*#.*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_requirement_is_exact_and_hashed(file: Path) -> None:
    assert pins(file)
    for line in requirement_lines(file):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), line[:80]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_address_stands_in_a_requirements_file(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^-", text, flags=re.MULTILINE)  # no option such as an index


def test_every_file_is_of_a_declared_group() -> None:
    assert {file.stem for file in FILES} == DECLARED.keys()


@pytest.mark.parametrize("group", DECLARED)
def test_what_the_project_declares_is_pinned_within_its_bounds(group: str) -> None:
    pinned = pins(ROOT / "requirements" / f"{group}.txt")
    for wanted in map(Requirement, DECLARED[group]):
        if wanted.marker is None or wanted.marker.evaluate():
            version = pinned.get(canonicalize_name(wanted.name))
            assert version, f"{wanted.name} is not in requirements/{group}.txt"
            assert wanted.specifier.contains(version, prereleases=True), f"{wanted} is pinned at {version}"
