"""Where the service asks for a token, the page asks the person for it, and shows each their own."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from browser.reader import Reader
from faults.parts import Home, Model

SECRET = "a secret of this test, long enough to sign with"
FACT = "云帆科技2023年的营业收入是多少？"


@pytest.fixture(scope="module")
def door(
    chromium: Any, model: Model, sample_home: Path, short_folder: Path, redis_server: str
) -> Iterator[Any]:
    folder = Path(shutil.copytree(sample_home, short_folder / "signing-in"))
    home = Home(folder, redis_server, {"JWT_SECRET": SECRET})
    with home.door(model) as door:
        yield door


def token(user: str) -> str:
    return jwt.encode({"sub": user, "tenant": "acme", "groups": [], "exp": 4102444800}, SECRET, "HS256")


def sign_in(reader: Reader, given: str) -> None:
    dialog = reader.page.get_by_role("dialog")
    dialog.get_by_label("访问令牌").fill(given)
    reader.button("登录", dialog).click()


def test_the_page_asks_for_a_token_and_forgets_it_on_request(open_page: Callable[..., Reader]) -> None:
    reader = open_page()
    reader.see("请粘贴您的访问令牌")
    sign_in(reader, "nonsense")
    sign_in(reader, f"Bearer {token('alice')}")
    reader.see("323,706.91万元", reader.ask(FACT))
    reader.page.reload()
    reader.page.locator("#log .cite").wait_for()
    reader.button("退出登录").click()
    sign_in(reader, token("bob"))
    reader.see("还没有对话")
    reader.see("323,706.91万元", reader.ask(FACT))
    assert reader.page.locator("#conversations button").count() == 1


def test_without_a_token_nothing_is_asked_and_the_page_says_why(open_page: Callable[..., Reader]) -> None:
    reader = open_page()
    dialog = reader.page.get_by_role("dialog")
    reader.button("取消", dialog).click()
    reader.see("需要登录，或登录已失效。", reader.page.locator("#conversations"))
    refused = reader.ask(FACT)
    reader.see("需要登录，或登录已失效。", refused)
    # Who declined is not asked again by what the page reads on its own.
    reader.page.locator("#theme").select_option("dark")
    reader.page.locator("#language").select_option("en")
    reader.see("Please sign in", reader.page.locator("#conversations"))
    assert dialog.count() == 0
    reader.page.locator("#language").select_option("zh")
    reader.button("登录", refused).click()
    sign_in(reader, token("carol"))
    reader.see("323,706.91万元", reader.answered())
