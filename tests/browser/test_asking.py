"""Asking on a desktop and on a phone: answers, sources, clarifications, feedback."""

from collections.abc import Callable
from typing import Any

import pytest
from browser.reader import Reader

Open = Callable[..., Reader]
FACT = "云帆科技2023年的营业收入是多少？"
VAGUE = "云帆2023年营业收入是多少？"  # several companies share the short name
MARKUP = '<img src=x onerror="document.title=1"><script>document.title=1</script>'


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_fact_and_its_source(open_page: Open, size: str) -> None:
    reader = open_page(size)
    answer = reader.ask(FACT)
    reader.see("323,706.91万元", answer)
    cite = answer.locator(".cite")
    assert cite.get_attribute("aria-label") == "打开依据 C1：云帆科技股份有限公司2024年度报告摘要"
    cite.click()
    source = answer.locator("details.source[open]")
    reader.see("云帆科技股份有限公司 2023 营业收入 323706.91 万元", source)
    about = source.locator(".about").inner_text()
    assert about == "云湖市企业登记局 · 版本 2025 · yunfan-tech-annual-2024"
    assert reader.page.evaluate("document.activeElement.localName") == "summary"
    assert reader.is_as_wide_as_the_screen()


def test_what_was_quoted_is_marked_in_its_passage(open_page: Open, model: Any) -> None:
    reader = open_page()
    answer = reader.ask("一次性创业补贴有多少钱？")
    answer.locator(".cite").first.click()
    marked = answer.locator("details[open] mark").all_inner_texts()
    assert marked
    assert all(phrase in answer.locator(".body").inner_text() for phrase in marked)


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_clarification_with_pages_a_pick_and_a_cancel(open_page: Open, size: str) -> None:
    reader = open_page(size)
    asked = reader.ask(VAGUE)
    reader.see("第 1 页，共 2 页", asked)
    assert asked.locator(".options button").count() == 5
    reader.button("下一页", asked).click()
    following = reader.answered()
    reader.see("第 2 页，共 2 页", following)
    assert following.locator(".number").first.inner_text() == "6"
    assert reader.page.locator("#log > .theirs").first.locator("button").count() == 0
    reader.button("上一页", following).click()
    again = reader.answered()
    reader.see("第 1 页，共 2 页", again)
    again.locator(".options button").first.click()
    answer = reader.answered()
    reader.see("323,706.91万元", answer)
    assert reader.said[-2] == "云帆科技股份有限公司"
    asked = reader.ask(VAGUE)
    reader.button("取消", asked).click()
    assert reader.answered().locator(".options").count() == 0
    reader.see("323,706.91万元", reader.ask(FACT))


def test_a_follow_up_offers_questions_and_shows_what_was_answered(open_page: Open) -> None:
    reader = open_page()
    meant = "云帆科技股份有限公司2023年的净利润是多少？"
    reader.ask(FACT)
    asked = reader.ask("那净利润呢？")
    asked.locator(".options button").first.click()
    reader.answered()
    assert reader.said[-2] == meant
    reader.ask("那净利润呢？")
    answer = reader.ask("1")
    reader.see(f"按此问题回答：{meant}", answer)
    reader.page.reload()
    reader.page.locator(".bubble").nth(4).wait_for()
    assert reader.said[-2] == meant  # the number, as what it stood for
    assert reader.page.get_by_text("按此问题回答").count() == 0


def test_markup_is_text(open_page: Open) -> None:
    reader = open_page()
    reader.ask(MARKUP)
    assert reader.said[0] == MARKUP
    assert MARKUP in reader.page.locator("#conversations button").first.inner_text()
    reader.page.locator("#open-panel").click()
    reader.see(MARKUP, reader.page.locator("#panel-body"))
    reader.page.reload()
    reader.page.locator(".bubble").wait_for()
    assert reader.said[0] == MARKUP
    assert reader.page.locator("#log img, #log script, #panel img, #shelf li img").count() == 0
    assert reader.page.title().startswith("<img")


def test_a_script_that_makes_markup_is_stopped_by_the_policy(open_page: Open) -> None:
    """Not only is it not done: it cannot be done."""
    reader = open_page()
    made = reader.page.evaluate(
        "(() => { try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); return 'made' }"
        " catch (error) { return error.name } })()"
    )
    assert made == "TypeError"
    assert "require-trusted-types-for" in reader.page.evaluate("sessionStorage.getItem('violations')")
    reader.page.close()


def test_feedback_is_kept(open_page: Open) -> None:
    reader = open_page()
    answer = reader.ask(FACT)
    reader.button("没帮助", answer).click()
    answer.get_by_label("哪里不对？（选填）").fill("年份不对")
    reader.button("提交", answer).click()
    reader.see("谢谢反馈", answer)
    reader.page.reload()
    thumb = reader.button("没帮助")
    thumb.wait_for()
    assert thumb.get_attribute("aria-pressed") == "true"
    thumb.click()
    reader.page.locator('[data-rating="down"][aria-pressed="false"]').wait_for()


def test_sentences_are_said_once_and_stages_are_told(open_page: Open) -> None:
    reader = open_page()
    reader.ask("一次性创业补贴有多少钱？")
    assert len(reader.spoken) == len(set(reader.spoken)) > 0
    assert not any("[C1]" in sentence for sentence in reader.spoken)
    assert reader.page.locator("#progress").inner_text() == "回答完毕"
    region = reader.page.locator("#spoken")
    assert (region.get_attribute("role"), region.get_attribute("aria-live")) == ("log", "polite")


def test_the_examples_ask_and_english_answers_in_english(open_page: Open) -> None:
    reader = open_page("phone", language="en")
    reader.button("What was Yunfan Technology's revenue in 2023?").click()
    answer = reader.answered()
    reader.see("3.2370691 billion yuan", answer)
    assert answer.locator(".body").get_attribute("lang") == "en"
    assert answer.locator(".source .title").get_attribute("lang") == "zh-CN"


def test_what_was_cited_is_shown_as_it_stands_now(open_page: Open, door: Any) -> None:
    """A passage that changed says so; a withdrawn one shows nothing of itself."""
    from nodes.retrieve.documents import Document, Record, SourceSet

    def load(text: str | None, version: str = "1") -> None:
        record = Record("yunhu-canteen", version, "云湖市食堂补贴办法", "云湖市食堂办公室")
        documents = [] if text is None else [Document(record, text)]
        door.app.state.assistant.store.replace(SourceSet("canteen", f"{text}{version}", documents))

    text = "# 食堂补贴\n\n云湖市食堂补贴的标准为每人每天15元。食堂补贴按月发放。申请食堂补贴须提交登记表。"
    load(text)
    reader = open_page()
    answer = reader.ask("食堂补贴的标准是多少？")
    reader.see("15元", answer)
    load(text.replace("15", "18"))
    reader.page.reload()
    reader.see("原文已变更").click()
    reader.see("以下是回答当时引用的原文")
    load(text, "2")
    reader.page.reload()
    reader.see("资料已撤回或无权查看")
    assert "15元" not in reader.page.locator("#log .theirs").inner_text()
    load(None)


def test_what_is_too_long_is_kept_and_said(open_page: Open) -> None:
    reader = open_page()
    box = reader.page.locator("#message")
    box.fill("长" * 4001)
    box.press("Enter")
    assert box.evaluate("box => box.validationMessage") == "共 4001 个字符，最多 4000 个，请缩短后再发送。"
    assert box.input_value() == "长" * 4001
    assert reader.page.locator("#log > .theirs").count() == 0
    box.fill("🙂" * 4000)
    assert box.evaluate("box => box.validationMessage") == ""
