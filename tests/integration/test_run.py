"""One request through the real graph: retries, stops, failures, replayed steps, bounded state."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from langgraph.runtime import RunControl

from graph.build import Services, build_graph
from graph.compose import Assistant, caller_of_context
from graph.run import STOP, ResetEvent, TokenEvent, TurnResult, config_for, last_result, stream_turn
from nodes.answer.providers import Reply, ScriptedProvider
from nodes.contracts import Caller

POLICY = "一次性创业补贴有多少钱？"
TWO_SENTENCES = "一次性创业补贴的标准为每户8000元[C1]。申请人为残疾人的，补贴标准提高到每户12000元[C1]。"


def with_services(assistant: Assistant, **changes: Any) -> Assistant:
    services: Services = replace(assistant.services, **changes)
    graph = build_graph(services, assistant.saver, caller_of_context)
    return replace(assistant, graph=graph, services=services)


def scripted(assistant: Assistant, *replies: Reply | str) -> Assistant:
    return with_services(assistant, provider=ScriptedProvider(list(replies)))


@pytest.fixture
def say(assistant: Assistant) -> Callable[..., TurnResult]:
    def call(text: str, on: Assistant = assistant, thread: str = "t", **more: Any) -> TurnResult:
        request = {"request_id": on.new_id(), "text": text, "received_at": on.clock()}
        given = {"caller": Caller(), **more}
        return last_result(stream_turn(on, request, thread_id=thread, **given))  # type: ignore[arg-type]

    return call


Say = Callable[..., TurnResult]


def values(assistant: Assistant, thread: str = "t") -> dict[str, Any]:
    state: dict[str, Any] = assistant.graph.get_state(config_for(thread)).values
    return state


class FailingOnce:
    """Wraps one service and raises at its first call; counts all of them."""

    def __init__(self, inner: Any, method: str) -> None:
        self.inner, self.method, self.calls = inner, method, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name != self.method:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == 1:
                raise RuntimeError("planted")
            return found(*args, **kwargs)

        return call


def test_a_retry_runs_only_what_has_not_finished(assistant: Assistant, say: Say) -> None:
    retrievals: list[str] = []
    real = assistant.services.retriever

    class Recording:
        def retrieve(self, query: str, **kwargs: Any) -> Any:
            retrievals.append(query)
            return real.retrieve(query, **kwargs)

        def knowledge_version(self) -> str:
            return real.knowledge_version()

    failing = with_services(
        assistant,
        retriever=Recording(),
        provider=ScriptedProvider([Reply(error="503"), Reply("每户8000元[C1]。")]),
    )
    assert say(POLICY, failing).status == "failed"
    refused = say("北渚茶业2024年净利润是多少？", failing)
    assert (refused.status, refused.error_code) == ("failed", "unfinished_turn")
    assert refused.original_question == POLICY
    done = say("/retry", failing)
    assert (done.status, done.input_kind) == ("completed", "retry")
    assert retrievals == [POLICY]
    assert say("北渚茶业2024年净利润是多少？", failing).status == "completed"


def test_a_failing_retrieval_is_retried_from_there(assistant: Assistant, say: Say) -> None:
    failing = with_services(assistant, retriever=FailingOnce(assistant.services.retriever, "retrieve"))
    assert say(POLICY, failing).error_code == "processing_failed"
    assert say("/retry", failing).answer["kind"] == "narrative"  # type: ignore[index]


def test_a_retry_decides_the_same_as_the_first_try_would_have(assistant: Assistant, say: Say) -> None:
    failing = with_services(assistant, retriever=FailingOnce(assistant.services.retriever, "retrieve"))
    say(POLICY, failing)
    retried = say("/retry", failing)
    assert retried.decision_digest == say(POLICY, thread="other").decision_digest


def test_langgraphs_own_resume_finishes_a_failed_turn(assistant: Assistant, say: Say) -> None:
    from graph.steps import RequestContext

    failing = scripted(assistant, Reply(error="503"), Reply("每户8000元[C1]。"))
    say(POLICY, failing)
    resumed = failing.graph.invoke(None, config_for("t"), context=RequestContext(Caller()), durability="sync")
    assert resumed["answer"]["kind"] == "narrative"
    assert say("/retry", failing).notice is not None


def interrupted(assistant: Assistant, reason: str) -> tuple[Assistant, TurnResult]:
    """A run that is asked to stop while the model is writing its second sentence."""
    control, pieces = RunControl(), iter(range(100))

    def sleep(_seconds: float) -> None:
        if next(pieces) == 5:
            control.request_drain(reason)

    model = ScriptedProvider([Reply(TWO_SENTENCES, wait=1)], sleep=sleep)
    slow = with_services(assistant, provider=model)
    request: Any = {"request_id": "r", "text": POLICY, "received_at": assistant.clock()}
    return slow, last_result(stream_turn(slow, request, thread_id="t", caller=Caller(), control=control))


def test_a_users_stop_closes_the_turn_and_keeps_the_partial_text(assistant: Assistant, say: Say) -> None:
    slow, stopped = interrupted(assistant, STOP)
    assert stopped.status == "stopped"
    assert stopped.answer is not None
    assert stopped.answer["kind"] == "stopped"
    assert stopped.answer["partial"] is True
    assert stopped.answer["text"] == "一次性创业补贴的标准为每户8000元[C1]。"
    assert say("云帆科技2023年营收是多少？", slow).status == "completed"
    assert [turn["kind"] for turn in values(slow)["history"]["turns"]] == ["fact"]


def test_a_shutdown_leaves_the_turn_to_be_retried(assistant: Assistant, say: Say) -> None:
    slow, stopped = interrupted(assistant, "shutdown")
    assert (stopped.status, stopped.answer, stopped.error_code) == ("stopped", None, None)
    assert stopped.partial_text == "一次性创业补贴的标准为每户8000元[C1]。"
    assert say("/retry", slow).answer["text"] == TWO_SENTENCES  # type: ignore[index]


def test_a_stop_before_the_answer_closes_the_turn_too(assistant: Assistant, say: Say) -> None:
    control = RunControl()
    request: Any = {"request_id": "r", "text": POLICY, "received_at": assistant.clock()}
    events = stream_turn(assistant, request, thread_id="t", caller=Caller(), control=control)
    result = None
    for event in events:
        if getattr(event, "node", None) == "intent":
            control.request_drain(STOP)
        result = event
    assert isinstance(result, TurnResult)
    assert (result.status, result.answer["kind"]) == ("stopped", "stopped")  # type: ignore[index]
    assert say("北渚茶业2024年净利润是多少？").status == "completed"


def test_a_stop_while_a_question_is_pending_changes_nothing_of_it(assistant: Assistant, say: Say) -> None:
    say("云帆2023年营收")
    assert say("下一页").clarification["page"] == 2  # type: ignore[index]


@pytest.mark.parametrize("blank", ["", "  \n "])
def test_a_blank_answer_is_a_failure_and_never_history(assistant: Assistant, say: Say, blank: str) -> None:
    silent = scripted(assistant, blank, "每户8000元[C1]。")
    assert say(POLICY, silent).status == "failed"
    assert not values(silent).get("history")
    assert say("/retry", silent).status == "completed"
    assert all(turn["answer"].strip() for turn in values(silent)["history"]["turns"])


def test_a_model_that_dies_half_way_leaves_a_retryable_turn(assistant: Assistant, say: Say) -> None:
    dying = scripted(assistant, Reply(TWO_SENTENCES, error="reset", fail_after=4), Reply(TWO_SENTENCES))
    failed = say(POLICY, dying)
    assert failed.status == "failed"
    assert failed.partial_text
    assert say("/retry", dying).answer["text"] == TWO_SENTENCES  # type: ignore[index]


def test_an_ungrounded_answer_never_leaves(assistant: Assistant) -> None:
    lying = scripted(assistant, "补贴标准为每户99999元[C1]。", "补贴标准为每户88888元[C1]。")
    request: Any = {"request_id": "r", "text": POLICY, "received_at": assistant.clock()}
    events = list(stream_turn(lying, request, thread_id="t", caller=Caller()))
    shown = "".join(event.text for event in events if isinstance(event, TokenEvent))
    assert "99999元" not in shown + str(events[-1])  # an id may hold the digits
    assert "88888元" not in shown + str(events[-1])
    assert events[-1].degraded is True  # type: ignore[union-attr]
    assert events[-1].answer["citations"]  # type: ignore[union-attr,index]


def test_nothing_of_an_earlier_turn_appears_in_a_later_one(say: Say, assistant: Assistant) -> None:
    say(POLICY)
    assert say("你好").answer["citations"] == []  # type: ignore[index]
    state = values(assistant)
    assert (state["evidence"], state["facts"], state["clarification"]) == (None, None, None)


def test_state_stays_bounded(assistant: Assistant, say: Say) -> None:
    import json

    sizes = []
    for number in range(24):
        say("云帆科技2023年营收是多少？" if number % 2 else "北渚茶业2024年净利润是多少？")
        sizes.append(len(json.dumps(values(assistant), ensure_ascii=False)))
    assert max(sizes[12:]) <= max(sizes[:12]) + 64
    assert values(assistant)["turn_count"] == 24
    assert len(values(assistant)["history"]["turns"]) == 8
    assert values(assistant)["history"]["omitted_turns"] == 16


def test_a_run_without_a_caller_is_refused(assistant: Assistant) -> None:
    with pytest.raises(PermissionError, match="caller"):
        assistant.graph.invoke({"request": {"text": "你好"}}, config_for("t"))


def test_rubbish_in_the_history_is_an_empty_window(assistant: Assistant, say: Say) -> None:
    say(POLICY)
    assistant.graph.update_state(config_for("t"), {"history": "\x00rubbish"}, as_node="answer")
    result = say(POLICY)
    assert result.status == "completed"
    assert result.window["turns"] == 0
    assert "unreadable" in result.window["reasons"]


def test_a_chat_client_sees_the_current_pair(assistant: Assistant) -> None:
    from graph.steps import RequestContext

    graph: Any = assistant.graph
    context = RequestContext(Caller())
    whole: list[dict[str, str]] = []
    for text in ("你好", "云帆科技2023年营收是多少？"):
        whole.append({"role": "user", "content": text})
        state = graph.invoke({"messages": whole}, config_for("t"), context=context)
        whole.append({"role": "assistant", "content": state["messages"][-1]["content"]})
        assert [message["type"] for message in state["messages"]] == ["human", "ai"]
    assert state["turn"]["original_question"] == "云帆科技2023年营收是多少？"
    assert state["turn_count"] == 2


def test_a_turn_is_dropped_with_any_document_its_model_was_shown(assistant: Assistant, say: Say) -> None:
    """Cited or not: a model may have taken its words from every passage and every earlier answer."""
    uncited = scripted(assistant, "每户8000元[C1]。", "研发费用补助按规定办理。")
    say(POLICY, uncited)
    say("研发费用补助怎么申请？", uncited)
    first, second = values(uncited)["history"]["turns"]
    shown = {passage["document_id"] for passage in values(uncited)["evidence"]["passages"]}
    assert {source[0] for source in second["sources"]} >= shown | {source[0] for source in first["sources"]}
    assert "yunhu-startup-subsidy" in {source[0] for source in second["sources"]}


def test_a_reset_keeps_the_facts_that_stand_above(assistant: Assistant) -> None:
    lying = scripted(assistant, "补贴为99999元[C1]。", "一次性创业补贴的标准为每户8000元[C1]。")
    text = "云帆科技2023年营收是多少？一次性创业补贴有多少钱？"
    request: Any = {"request_id": "r", "text": text, "received_at": assistant.clock()}
    shown = ""
    for event in stream_turn(lying, request, thread_id="t", caller=Caller()):
        if isinstance(event, TokenEvent):
            shown += event.text
        elif isinstance(event, ResetEvent):
            shown = ""
        result = event
    assert isinstance(result, TurnResult)
    assert shown == result.answer["text"]  # type: ignore[index]
    assert "323,706.91万元[C1]" in shown
    assert "8000元[C2]" in shown
    assert [citation["label"] for citation in result.answer["citations"]] == ["C1", "C2"]  # type: ignore[index]
    assert result.answer["citations"][1]["document_id"] == "yunhu-startup-subsidy"  # type: ignore[index]


def test_passages_that_hold_no_answer_are_not_an_answer(assistant: Assistant, say: Say) -> None:
    found = say(POLICY, scripted(assistant, "资料中没有可以直接回答这个问题的内容。"))
    assert found.answer is not None
    assert (found.answer["kind"], found.answer["citations"]) == ("not_found", [])


def test_a_company_that_nobody_knows_is_not_found_by_its_name(say: Say) -> None:
    found = say("华为2023年的营收是多少？")
    assert (found.status, found.answer["kind"]) == ("completed", "not_found")  # type: ignore[index]
    assert "没有找到名为“华为”的公司" in found.text
    both = say("云帆科技2023年营收是多少？华为2022年净利润是多少？")
    assert both.answer["kind"] == "fact"  # type: ignore[index]
    assert "323,706.91万元" in both.text
    assert "没有找到名为“华为”的公司" in both.text


def test_all_companies_are_compared_over_what_the_caller_may_see(assistant: Assistant, say: Say) -> None:
    auditor = Caller(user="a", groups=frozenset({"audit", "finance-bureau"}))
    plain = say("哪家公司2024年纳税额最高？")
    granted = say("哪家公司2024年纳税额最高？", caller=auditor)
    for found in (plain, granted):
        assert found.answer["kind"] == "comparison"  # type: ignore[index]
        labels = [citation["label"] for citation in found.answer["citations"]]  # type: ignore[index]
        assert labels == [f"C{at}" for at in range(1, len(labels) + 1)]
        assert all(f"[{label}]" in found.text for label in labels)
    hidden = {one["document_id"] for one in granted.answer["citations"]} - {  # type: ignore[index]
        one["document_id"]
        for one in plain.answer["citations"]  # type: ignore[index]
    }
    assert hidden
    assert "云帆能源" in granted.text
    assert "云帆能源" not in plain.text


def test_what_was_asked_of_all_is_followed_up_of_all(assistant: Assistant, say: Say) -> None:
    say("哪家公司2023年营收最高？")
    say("那2022年呢？")
    options = values(assistant)["suggestions"]["options"]
    assert options[0]["value"] == "所有公司2022年的营业收入是多少？"
    assert say("1").answer["kind"] == "comparison"  # type: ignore[index]
