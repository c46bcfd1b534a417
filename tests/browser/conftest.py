"""A real Chromium in front of a real server with the sample knowledge."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.reader import PHONE, WAIT_MILLISECONDS, Reader
from faults.parts import Home, Model

ARGUMENTS = [
    "--no-sandbox",  # CI runs as root in a container, where Chromium has no sandbox of its own
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs them all: a second Chromium beside the first slows both down."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A module's own: while Playwright runs in a thread, no event loop of another test may."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on this machine: install Debian's chromium and fonts-noto-cjk to run this")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, timeout=WAIT_MILLISECONDS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def door(
    chromium: Any, model: Model, sample_home: Path, short_folder: Path, redis_server: str
) -> Iterator[Any]:
    """The module's server. Its tests ask in conversations of their own."""
    folder = Path(shutil.copytree(sample_home, short_folder / f"page-{os.urandom(4).hex()}"))
    with Home(folder, redis_server).door(model) as door:
        yield door


@pytest.fixture
def open_page(chromium: Any, door: Any) -> Iterator[Callable[..., Reader]]:
    """Opens the page in a profile of its own, and holds every page to what all of them owe."""
    readers: list[Reader] = []

    def open_one(
        size: str = "desk", *, language: str = "zh", theme: str = "light", beside: Reader | None = None,
        address: str | None = None, **options: Any,
    ) -> Reader:  # fmt: skip
        context = beside.context if beside else chromium.new_context(
            locale="zh-CN" if language == "zh" else "en-GB",
            color_scheme=theme,
            **(PHONE if size == "phone" else {"viewport": {"width": 1280, "height": 800}}),
            **options,
        )  # fmt: skip
        reader = Reader(context, address or f"{door.address}/", language)
        readers.append(reader)
        return reader

    yield open_one
    for reader in readers:
        reader.check()
    for context in {reader.context for reader in readers}:
        context.close()
