"""The list of conversations, the steps of one, and what is done to them."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from browser.reader import Reader
from integration.door import WAIT_SECONDS

Open = Callable[..., Reader]
FACT = "云帆科技2023年的营业收入是多少？"
POLICY = "一次性创业补贴有多少钱？"


def titles(reader: Reader) -> list[str]:
    texts: list[str] = reader.page.locator("#conversations button").all_inner_texts()
    return texts


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_naming_putting_aside_and_deleting(open_page: Open, size: str) -> None:
    reader = open_page(size)
    reader.ask(FACT)
    reader.menu("重命名")
    dialog = reader.page.get_by_role("dialog")
    assert dialog.get_by_label("对话名称").input_value() == FACT
    dialog.get_by_label("对话名称").fill(f"营收 {size}")
    reader.button("保存", dialog).click()
    reader.page.locator("h1").get_by_text(f"营收 {size}").wait_for()
    reader.menu("归档")
    reader.see("已归档；再次提问会自动取消归档")
    if size == "phone":
        reader.page.locator("#open-shelf").click()
    reader.page.locator("#conversations").get_by_text(f"营收 {size}").wait_for(state="detached")
    reader.button("已归档").click()
    reader.page.locator("#conversations").get_by_role("button", name=f"营收 {size}", exact=True).click()
    reader.page.locator("#log .cite").first.wait_for()
    reader.menu("取消归档")
    reader.see("已取消归档")
    reader.menu("删除")
    reader.button("取消", dialog).click()
    assert reader.page.locator("h1").inner_text() == f"营收 {size}"
    reader.menu("删除")
    assert reader.focus == "取消"  # the safe one
    reader.button("删除", dialog).click()
    reader.page.locator("h1").get_by_text("新对话").wait_for()
    assert f"营收 {size}" not in titles(reader)
    assert "thread=" not in reader.page.url
    assert reader.is_as_wide_as_the_screen()


def test_conversations_are_kept_apart_with_what_was_typed(open_page: Open) -> None:
    reader = open_page()
    reader.ask(FACT)
    reader.message.fill("还没有写完")
    reader.page.locator("#new-thread").click()
    assert reader.message.input_value() == ""
    assert reader.focus == "message"
    reader.ask(POLICY)
    first = reader.page.locator("#conversations").get_by_role("button", name=FACT, exact=True).first
    first.click()
    reader.page.locator(".bubble").get_by_text(FACT).wait_for()
    assert reader.message.input_value() == "还没有写完"
    assert first.get_attribute("aria-current") == "true"
    assert reader.page.title().startswith(FACT)


def test_leaving_a_running_answer_does_not_stop_it(open_page: Open, model: Any) -> None:
    reader = open_page()
    model.go.clear()
    model.holds = True
    reader.send("创业补贴有多少？")
    assert model.waiting.wait(WAIT_SECONDS)
    reader.page.locator("#log .theirs .body p").first.wait_for()
    reader.page.locator("#new-thread").click()
    assert reader.page.locator("#send").is_visible()
    model.go.set()
    model.holds = False
    mine = reader.page.locator("#conversations").get_by_role("button", name="创业补贴有多少？").first
    mine.click()
    reader.log.locator(".theirs .cite").first.wait_for()


def test_earlier_messages_come_in_pages(open_page: Open, door: Any) -> None:
    for number in range(26):
        door.ask(f"你好{number}", "long")
    reader = open_page(address=f"{door.address}/?thread=long")
    reader.page.locator(".bubble").nth(24).wait_for()
    assert reader.said[0] != "你好0"
    reader.button("更早的消息").click()
    reader.page.locator(".bubble").nth(25).wait_for()
    assert [text for text in reader.said if text.startswith("你好")] == [f"你好{n}" for n in range(26)]


def test_the_export_holds_the_conversation(open_page: Open) -> None:
    reader = open_page()
    reader.ask(FACT)
    with reader.page.expect_download() as markdown:
        reader.menu("导出为 Markdown")
    text = markdown.value.path().read_text(encoding="utf-8")
    assert f"> {FACT}" in text
    with reader.page.expect_download() as exported:
        reader.menu("导出为 JSON")
    assert exported.value.suggested_filename.endswith(".json")
    held = json.loads(exported.value.path().read_text(encoding="utf-8"))
    assert [row["role"] for row in held["messages"]] == ["USER", "ASSISTANT"]


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_the_steps_show_what_ran_what_was_seen_and_where_to_branch(open_page: Open, size: str) -> None:
    reader = open_page(size)
    reader.ask(FACT)
    reader.ask(POLICY)
    reader.page.locator("#open-panel").click()
    panel = reader.page.locator("#panel-body")
    turns = panel.locator(".turns > li")
    turns.nth(1).wait_for()
    newest = turns.first
    assert newest.locator(".node").all_inner_texts() == ["gate", "intent", "retrieve", "answer"]
    reader.see("1 轮", newest)
    reader.button("显示历史内容", newest).click()
    newest.locator(".window dd").first.wait_for()
    assert newest.locator(".window dd").all_inner_texts()[0] == FACT
    assert len(newest.locator(".code").inner_text()) == 64
    older = turns.nth(1)
    older.locator("summary").click()
    reader.see("这一轮没有用到历史", older)
    reader.see("2 轮", panel.locator("section").nth(1))
    before = reader.page.url
    older.get_by_role("button", name="分支 answer: 从这里另开对话", exact=True).click()
    reader.see("已另开对话，从所选步骤继续")
    reader.page.locator(".bubble").get_by_text(FACT).wait_for()
    assert reader.said[0] == FACT
    assert POLICY not in reader.said
    assert reader.page.url != before


def test_what_was_left_out_and_why(open_page: Open, door: Any) -> None:
    for number in range(10):
        door.ask(f"云帆科技20{14 + number}年的营业收入是多少？", "many")
    reader = open_page(address=f"{door.address}/?thread=many")
    reader.page.locator("#open-panel").click()
    reader.see("省略了 2 轮 · 超过轮数上限", reader.page.locator("#panel-body"))


def test_a_conversation_that_cannot_be_opened_says_why(open_page: Open) -> None:
    reader = open_page()
    reader.ask(FACT)
    reader.page.locator("#new-thread").click()
    reader.page.route(re.compile("/messages"), lambda route: route.abort())
    reader.page.locator("#conversations").get_by_role("button", name=FACT, exact=True).first.click()
    reader.see("连接不上服务", reader.last)
    reader.page.unroute_all()
    reader.button("重试", reader.last).click()
    reader.page.locator("#log .cite").first.wait_for()


def test_an_expired_context_is_told(open_page: Open, door: Any) -> None:
    door.ask(FACT, "expired")
    door.app.state.assistant.saver.delete_thread("expired")
    reader = open_page(address=f"{door.address}/?thread=expired")
    note = reader.see("上下文已过期")
    reader.ask(FACT)
    assert note.count() == 0


def test_a_change_of_language_and_theme_is_kept(open_page: Open) -> None:
    reader = open_page()
    reader.ask(FACT)
    reader.page.locator("#language").select_option("en")
    reader.button("New conversation").wait_for()
    reader.see("1 source")
    reader.page.locator("#theme").select_option("dark")
    reader.page.reload()
    reader.button("New conversation").wait_for()
    ground = "getComputedStyle(document.body).backgroundColor"
    assert reader.page.evaluate(ground) == "rgb(23, 24, 26)"
    assert reader.page.locator("html").get_attribute("lang") == "en"


def test_another_tab_learns_of_a_new_name(open_page: Open) -> None:
    one = open_page()
    one.ask(FACT)
    other = open_page(beside=one, address=one.page.url)
    other.page.locator("#log .cite").first.wait_for()
    one.menu("重命名")
    one.page.get_by_label("对话名称").fill("改过的名字")
    one.page.keyboard.press("Enter")
    other.page.locator("#conversations").get_by_text("改过的名字").wait_for()
