"""Answers that are stopped, fail, are reloaded, watched from two tabs, or lose their connection."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from browser.line import Line
from browser.reader import Reader
from faults.parts import NARRATIVE, OTHER_NARRATIVE, Model
from integration.door import WAIT_SECONDS
from playwright.sync_api import Route

Open = Callable[..., Reader]
FACT = "云帆科技2023年的营业收入是多少？"


@pytest.fixture
def line(door: Any) -> Iterator[Line]:
    line = Line(door.port)
    yield line
    line.close()


@pytest.fixture
def holding(model: Model) -> Iterator[Model]:
    """The model holds after its first sentence, until `go`."""
    model.waiting.clear()
    model.go.clear()
    model.holds = True
    yield model
    model.holds = False
    model.go.set()


def begin(reader: Reader, model: Model, question: str = NARRATIVE) -> str:
    """Ask, and wait until the first sentence can be read. -> it"""
    reader.send(question)
    assert model.waiting.wait(WAIT_SECONDS)
    text = reader.last.locator(".body p").first
    text.wait_for()
    return str(text.inner_text())


STOP = "**/api/chat/stop"


@contextmanager
def before_it_is_heard(reader: Reader) -> Iterator[None]:
    """The server hears of a stop after the block, which sees what the page shows until then."""
    held: list[Route] = []
    reader.page.route(STOP, lambda route: held.append(route))
    yield
    with reader.page.expect_response(STOP):
        held[0].continue_()


def test_stop_keeps_what_was_said_and_the_next_question_works(open_page: Open, holding: Model) -> None:
    reader = open_page()
    first = begin(reader, holding)
    reader.see("组织回答", reader.last)
    with before_it_is_heard(reader):
        reader.button("停止").click()
        reader.see("正在停止", reader.last)
    holding.go.set()
    stopped = reader.answered()
    reader.see("已停止，以上内容不完整", stopped)
    assert first[:8] in stopped.locator(".body").inner_text()
    assert stopped.get_by_role("button", name="重试").count() == 0
    assert reader.focus == "message"
    reader.see("323,706.91万元", reader.ask(FACT))
    reader.page.reload()
    reader.see("已停止，以上内容不完整")


def test_escape_stops(open_page: Open, holding: Model) -> None:
    reader = open_page("desk", language="en")
    begin(reader, holding)
    with before_it_is_heard(reader):
        reader.page.keyboard.press("Escape")
        reader.see("Stopping", reader.last)
    holding.go.set()
    reader.see("Stopped; the answer above is incomplete", reader.answered())


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_failed_turn_is_retried(open_page: Open, model: Model, size: str) -> None:
    reader = open_page(size)
    model.faults.append("error")
    failed = reader.ask(NARRATIVE)
    reader.see("处理失败，可以重试，或放弃这一问。", failed)
    refused = reader.ask(OTHER_NARRATIVE)
    reader.button("重试", refused).wait_for()
    reader.page.reload()
    reader.see("上一个问题还没有处理完。可以重试，或放弃这一问。")
    reader.button("重试").click()
    answer = reader.answered()
    assert answer.locator(".cite").count() > 0
    assert answer.get_by_role("button", name="重试").count() == 0


def test_a_failed_turn_is_discarded(open_page: Open, model: Model) -> None:
    reader = open_page()
    model.faults.append("error")
    failed = reader.ask(NARRATIVE)
    reader.button("放弃这一问", failed).click()
    assert reader.answered().locator(".choosing button").count() == 0
    reader.see("323,706.91万元", reader.ask(FACT))


def test_a_reload_in_mid_answer_goes_on_with_it(open_page: Open, holding: Model) -> None:
    reader = open_page()
    first = begin(reader, holding)
    reader.page.reload()
    reader.page.locator("#log .theirs .body p").first.wait_for()
    assert reader.last.locator(".body p").first.inner_text() == first
    assert reader.page.locator("#stop").is_visible()
    holding.go.set()
    answer = reader.answered()
    assert answer.locator(".cite").count() > 0
    assert len(reader.said) == 2


def test_an_answer_that_came_while_the_page_was_read_is_shown_once(open_page: Open) -> None:
    """The open turn is read before the messages: what ran then may have been answered in between."""
    reader = open_page()
    reader.ask(FACT)

    def still_running(route: Any) -> None:
        held = route.fetch().json()
        request_id = reader.page.evaluate(f"fetch('{route.request.url}/messages').then((it) => it.json())")
        running = {"state": "running", "requestId": request_id["items"][-1]["requestId"]}
        route.fulfill(json={**held, "open_turn": running})

    reader.page.route(re.compile(r"/conversations/[-0-9a-f]{36}$"), still_running)
    reader.page.reload()
    reader.page.locator("#log .cite").first.wait_for()
    assert len(reader.said) == 2
    assert not reader.page.locator("#stop").is_visible()


def test_a_reload_shows_the_pending_question_again(open_page: Open) -> None:
    reader = open_page()
    reader.ask("云帆2023年营业收入是多少？")
    reader.page.reload()
    reader.page.locator(".options button").first.wait_for()
    assert reader.page.locator("#log > .theirs").count() == 1
    assert reader.last.locator(".body").inner_text() == "您问的是哪家公司？"
    reader.button("下一页", reader.last).click()
    reader.see("第 2 页，共 2 页", reader.answered())


def test_another_tab_sees_the_answer_as_it_is_written(open_page: Open, holding: Model) -> None:
    one = open_page()
    one.ask(FACT)
    other = open_page(beside=one, address=one.page.url)
    other.page.locator("#log .cite").first.wait_for()
    first = begin(one, holding)
    other.page.locator("#stop").wait_for()
    other.page.locator("#log .theirs .body p").nth(1).wait_for()
    assert other.last.locator(".body p").first.inner_text() == first
    holding.go.set()
    for reader in (one, other):
        assert reader.answered().locator(".cite").count() > 0
    assert one.said == other.said


def test_a_question_from_elsewhere_meanwhile_is_told(open_page: Open, door: Any, holding: Model) -> None:
    """Two browsers know nothing of each other: the second one is told, and shown the answer in progress."""
    one = open_page()
    one.ask(FACT)
    other = open_page(address=one.page.url)
    other.page.locator("#log .cite").first.wait_for()
    begin(one, holding)
    other.send(OTHER_NARRATIVE)
    other.see("这个对话正在回答另一个问题", other.last)
    other.button("查看正在进行的回答", other.last).click()
    other.page.locator("#stop").wait_for()
    holding.go.set()
    other.answered()
    one.answered()
    assert other.said == one.said


def test_a_lost_connection_is_taken_up_again(open_page: Open, line: Line, holding: Model, door: Any) -> None:
    reader = open_page(address=line.address)
    calls = len(holding.prompts)
    first = begin(reader, holding)
    line.cut()
    reader.see("连接已断开，正在重连", reader.last)
    assert reader.last.locator(".body p").first.inner_text() == first
    line.mend()
    reader.reconnect()
    holding.go.set()
    answer = reader.answered()
    assert answer.locator(".cite").count() > 0
    assert len(reader.spoken) == len(set(reader.spoken))
    assert len(holding.prompts) == calls + 1
    assert [text for text in reader.said if text == NARRATIVE] == [NARRATIVE]


def test_a_run_that_is_gone_is_looked_up(open_page: Open, line: Line, holding: Model) -> None:
    """As after a restart: nobody knows the request any more, but its conversation does."""
    reader = open_page(address=line.address)
    begin(reader, holding)
    gone = {"title": "x", "code": "not_found", "retryable": False}
    reader.page.route("**/events?**", lambda route: route.fulfill(status=404, json=gone))
    line.cut()
    holding.go.set()
    reader.see("连接已断开，正在重连", reader.last)
    line.mend()
    reader.reconnect()
    assert reader.answered().locator(".cite").count() > 0
    assert len(reader.said) == 2


def test_a_question_that_could_not_leave_is_sent_once_the_line_is_back(
    open_page: Open, line: Line, model: Model, door: Any
) -> None:
    reader = open_page(address=line.address)
    reader.ask(FACT)
    calls = len(model.prompts)
    line.cut()
    reader.send(OTHER_NARRATIVE)
    reader.see("连接已断开，正在重连", reader.last)
    line.mend()
    reader.reconnect()
    assert reader.answered().locator(".cite").count() > 0
    assert len(model.prompts) == calls + 1
    reader.page.reload()
    reader.page.locator(".bubble").nth(1).wait_for()
    assert [text for text in reader.said if text == OTHER_NARRATIVE] == [OTHER_NARRATIVE]


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        (429, "pool_full", "现在提问的人较多，请稍后再试。 请在 3 秒后再试。"),
        (503, "store_unavailable", "对话存储暂时连不上，请稍后再试。 请在 3 秒后再试。"),
        (500, "internal_error", "服务出现意外错误。 请在 3 秒后再试。"),
    ],
)
def test_a_refusal_is_told_and_the_same_question_sent_again(
    open_page: Open, status: int, code: str, text: str
) -> None:
    reader = open_page()
    sent: list[Any] = []

    def refuse(route: Any) -> None:
        sent.append(route.request.post_data_json)
        body = {"title": "x", "detail": "x", "code": code, "retryable": True, "request_id": "r-1"}
        route.fulfill(
            status=status, json=body, headers={"Retry-After": "3"}, content_type="application/problem+json"
        )

    reader.page.route("**/api/chat", refuse, times=1)
    refused = reader.ask(FACT)
    reader.see(text, refused)
    reader.see("请求编号 r-1", refused)
    reader.page.on("request", lambda request: sent.append(request.post_data_json))
    reader.button("重新发送", refused).click()
    reader.see("323,706.91万元", reader.answered())
    assert sent[0] == sent[1]
    assert len(reader.said) == 2


def test_a_deleted_conversation_is_told(open_page: Open, door: Any) -> None:
    reader = open_page()
    answer = reader.ask(FACT)
    (held, *_) = door.http.get("/conversations").json()["items"]
    door.http.delete(f"/conversations/{held['id']}")
    reader.button("有帮助", answer).click()
    reader.see("没有这个对话，或它已被删除。", reader.page.locator("#toast"))
