"""For everybody: by keyboard alone, with a screen reader, on a small screen, in both themes."""

from collections.abc import Callable
from typing import Any

import pytest
from browser.reader import Reader

Open = Callable[..., Reader]
FACT = "云帆科技2023年的营业收入是多少？"
VAGUE = "云帆2023年营业收入是多少？"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_axe_finds_nothing_serious(open_page: Open, size: str, theme: str) -> None:
    reader = open_page(size, theme=theme)
    assert reader.faults() == []
    reader.ask(FACT).locator(".cite").click()
    reader.ask(VAGUE)
    assert reader.faults() == []
    reader.page.locator("#open-panel").click()
    reader.page.locator(".turns li").first.wait_for()
    assert reader.faults() == []
    reader.page.locator("#close-panel").click()
    reader.page.locator("#actions").click()
    assert reader.faults() == []
    reader.button("删除").click()
    reader.page.get_by_role("dialog").wait_for()
    assert reader.faults() == []
    reader.page.keyboard.press("Escape")
    if size == "phone":
        reader.page.locator("#open-shelf").click()
        assert reader.faults() == []


NAME = "(it) => it.getAttribute('aria-label') || it.textContent"


def tab_to(reader: Reader, name: str, key: str = "Tab") -> None:
    """Press the key until what has the focus is named so."""
    seen = []
    for _ in range(60):
        reader.page.keyboard.press(key)
        seen.append(reader.page.evaluate_handle("document.activeElement").evaluate(NAME).strip())
        if seen[-1] == name:
            return
    raise AssertionError(f"{name} is not reached by {key}: {seen}")


def test_all_of_it_by_keyboard(open_page: Open) -> None:
    reader = open_page()
    press = reader.page.keyboard.press
    assert reader.focus == "message"
    reader.page.keyboard.type(VAGUE)
    press("Enter")
    reader.answered()
    tab_to(reader, "下一页", "Shift+Tab")
    press("Enter")
    reader.answered()
    # The keyboard stays where the reader is: at the first of the new options.
    assert reader.page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("6. ")
    tab_to(reader, "上一页")
    press("Enter")
    reader.answered()
    press("Enter")
    reader.see("323,706.91万元", reader.answered())
    tab_to(reader, "打开依据 C1：云帆科技股份有限公司2024年度报告摘要")
    press("Enter")
    assert reader.page.locator("details.source[open]").count() == 1
    tab_to(reader, "有帮助")
    press("Space")
    reader.page.locator('[data-rating="up"][aria-pressed="true"]').wait_for()
    tab_to(reader, "对话操作", "Shift+Tab")
    press("Enter")
    tab_to(reader, "重命名")
    press("Enter")
    reader.page.get_by_role("dialog").wait_for()
    press("Escape")
    reader.page.get_by_role("dialog").wait_for(state="detached")
    tab_to(reader, "查看步骤")
    press("Enter")
    reader.page.locator(".turns li").first.wait_for()
    tab_to(reader, "分支 answer: 从这里另开对话")
    press("Enter")
    reader.see("已另开对话，从所选步骤继续")


def test_a_line_break_is_not_a_wish_to_send(open_page: Open) -> None:
    reader = open_page()
    reader.message.focus()
    reader.page.keyboard.type("第一行")
    reader.page.keyboard.press("Shift+Enter")
    reader.page.keyboard.type("第二行")
    assert reader.message.input_value() == "第一行\n第二行"
    assert reader.said == []


def test_an_input_methods_enter_is_not_a_wish_to_send(open_page: Open) -> None:
    reader = open_page()
    reader.message.fill("yunfan")
    reader.message.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    assert reader.said == []
    assert reader.message.input_value() == "yunfan"


def test_the_skip_link_leads_to_the_question_box(open_page: Open) -> None:
    reader = open_page("desk")
    reader.page.evaluate("document.activeElement.blur()")
    tab_to(reader, "跳到输入框")
    assert reader.page.locator(".skip").bounding_box()["y"] >= 0
    reader.page.keyboard.press("Enter")
    assert reader.focus == "message"


def test_what_lies_under_an_open_part_cannot_be_reached(open_page: Open) -> None:
    reader = open_page("phone")
    reader.page.locator("#open-shelf").click()
    assert reader.page.evaluate("document.getElementById('talk').inert")
    assert reader.focus == "close-shelf"
    reader.page.keyboard.press("Escape")
    assert not reader.page.evaluate("document.getElementById('talk').inert")
    assert reader.focus == "open-shelf"


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_nothing_is_wider_than_the_screen(open_page: Open, size: str) -> None:
    reader = open_page(size)
    reader.ask("比较云帆科技和青石材料2024年的净利润")
    reader.send("很长的一个词" + "a" * 300)
    reader.answered()
    assert reader.is_as_wide_as_the_screen()
    small = reader.page.evaluate(
        "[...document.querySelectorAll('button, select, textarea')].filter((it) => it.offsetParent"
        " && Math.min(it.offsetWidth, it.offsetHeight) < 24).map((it) => it.outerHTML)"
    )
    assert small == []


def test_nothing_moves_for_those_who_ask_for_it(open_page: Open, model: Any) -> None:
    reader = open_page(reduced_motion="reduce")
    model.waiting.clear()
    model.go.clear()
    model.holds = True
    reader.send("创业补贴有多少？")
    reader.page.locator(".pulse").first.wait_for()
    moving = "document.getAnimations().filter((it) => it.playState === 'running').length"
    assert reader.page.evaluate(moving) == 0
    model.go.set()
    model.holds = False
    reader.answered()


def test_texts_of_documents_are_shown_as_they_are_meant(open_page: Open) -> None:
    """Lists, tables and bold are drawn; ranges, products and sentences after a list are left alone."""
    reader = open_page()
    text = (
        "# 标题\n正文 3~6 个月，5000~8000元，2*3*4。\n- 甲[C1]\n- 乙\n结论**重要**。\n1. 一\n2. 二\n"
        "| 年 | 额 |\n|---|---|\n| 2023 | <b>5</b> |\n```\n<i>x</i>\n```\n> 引文"
    )
    drawn = reader.page.evaluate(
        "async (text) => { const { renderText } = await import('/page/render.js');"
        " const box = document.createElement('div'); renderText(box, text);"
        " return [...box.children].map((it) => it.localName + ':' + it.textContent) }",
        text,
    )
    assert drawn == [
        "p:标题", "p:正文 3~6 个月，5000~8000元，2*3*4。", "ul:甲[C1]乙", "p:结论重要。", "ol:一二",
        "div:年额2023<b>5</b>", "pre:<i>x</i>", "blockquote:引文",
    ]  # fmt: skip
