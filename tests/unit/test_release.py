"""How text leaves: only checked sentences, once taken back and written anew, then the extractive answer."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from nodes.answer.prompts import PromptBudget, build_prompt
from nodes.answer.providers import ExtractiveProvider, Reply, ScriptedProvider
from nodes.answer.release import AnswerInterruptedError, Released, is_other_language, release
from nodes.answer.rendering import fixed_text
from nodes.contracts import Generated, Language, Passage, Prompt, Provider, ProviderError

TEXT = "补贴标准为每人1500元，最高30万元。申请期限为7个工作日。"


def passage(text: str = TEXT) -> Passage:
    return {
        "document_id": "d",
        "version": "1",
        "title": "补贴办法",
        "source": "s",
        "text": text,
        "start": 0,
        "end": len(text),
        "passage_hash": "h",
        "score": 1.0,
        "valid_from": None,
        "valid_until": None,
    }


def prompt(
    question: str = "补贴标准是多少？", language: Language = "zh", output: int = 256, *texts: str
) -> Prompt:
    passages = [passage(text) for text in texts or (TEXT,)]
    budget = PromptBudget(total=9000, output=output)
    return build_prompt(question, language=language, passages=passages, window=None, budget=budget)


@dataclass
class Reader:
    """What a reader sees: texts and resets in order; it stops after `stop_after` texts."""

    events: list[str | None] = field(default_factory=list)
    stop_after: int | None = None

    def emit(self, text: str) -> None:
        self.events.append(text)

    def reset(self) -> None:
        self.events.append(None)

    def stopped(self) -> bool:
        return self.stop_after is not None and len(self.events) >= self.stop_after

    @property
    def shown(self) -> str:
        texts = (
            self.events[len(self.events) - self.events[::-1].index(None) :]
            if None in self.events
            else self.events
        )
        return "".join(text for text in texts if text)

    @property
    def all_text(self) -> str:
        return "".join(text for text in self.events if text)


def run(provider: Provider, reader: Reader, asked: Prompt | None = None, **more: object) -> Released:
    released = release(
        provider,
        asked or prompt(),
        emit=reader.emit,
        reset=reader.reset,
        stopped=reader.stopped,
        **more,  # type: ignore[arg-type]
    )
    assert released.text == reader.shown
    return released


GOOD = "补贴标准为每人1,500元[C1]。最高30万元[C1]。"
BAD = "补贴标准为每人1,500元[C1]。另有奖励9999元[C1]。"


def test_a_good_answer_leaves_sentence_by_sentence() -> None:
    reader = Reader()
    released = run(ScriptedProvider([GOOD]), reader)
    assert reader.events == ["补贴标准为每人1,500元[C1]。", "最高30万元[C1]。"]
    assert released == Released(GOOD, usage=released.usage, replies=(GOOD,), cited=(1,))
    assert released.usage is not None


def test_labels_leave_in_the_order_of_their_use_and_start_anew_after_a_reset() -> None:
    reader = Reader()
    bad, good = "补贴为9999元[C1]。", "每年复核一次[C2]。补贴标准为每人1,500元[C1]。"
    asked = prompt("补贴标准是多少？", "zh", 256, TEXT, "每年复核一次。")
    released = run(ScriptedProvider([f"最高30万元[C1]。{bad}", good]), reader, asked, first_label=2)
    assert reader.events[0] == "最高30万元[C2]。"
    assert released.text == "每年复核一次[C2]。补贴标准为每人1,500元[C3]。"
    assert released.cited == (2, 1)
    assert released.replies[1] == good


def test_each_sentence_leaves_before_the_next_is_written() -> None:
    reader = Reader()
    seen: list[int] = []

    class Watching:
        name = "watching"

        def stream(self, prompt: Prompt) -> Iterator[Generated]:
            yield Generated("补贴标准为每人1500元[C1]。最")
            seen.append(len(reader.events))
            yield Generated("高30万元[C1]。")

    run(Watching(), reader)
    assert seen == [1]


def test_a_failing_sentence_never_leaves_and_the_answer_is_written_anew_once() -> None:
    reader = Reader()
    provider = ScriptedProvider([BAD, GOOD])
    released = run(provider, reader)
    assert reader.events == [
        "补贴标准为每人1,500元[C1]。",
        None,
        "补贴标准为每人1,500元[C1]。",
        "最高30万元[C1]。",
    ]
    assert "9999" not in reader.all_text
    assert not released.degraded
    assert released.refusals == ("figure",)
    assert released.replies == (BAD, GOOD)


def test_the_second_prompt_has_one_more_rule_and_does_not_repeat_what_was_wrong() -> None:
    provider = ScriptedProvider([BAD, GOOD])
    run(provider, Reader())
    first, second = provider.prompts
    assert second.messages[0].content.startswith(first.messages[0].content)
    assert len(second.messages[0].content) > len(first.messages[0].content)
    assert "9999" not in str(second.messages)
    assert second.messages[1:] == first.messages[1:]


def test_after_a_second_failure_the_extractive_answer_stands_in() -> None:
    reader = Reader()
    provider = ScriptedProvider([BAD, BAD])
    released = run(provider, reader)
    assert released.degraded
    assert released.text == "补贴标准为每人1500元，最高30万元[C1]。"
    assert reader.events == [
        "补贴标准为每人1,500元[C1]。", None, "补贴标准为每人1,500元[C1]。", None, released.text
    ]  # fmt: skip
    assert "9999" not in reader.all_text
    assert len(provider.prompts) == 2
    assert len(released.replies) == 2


def test_nothing_is_taken_back_when_nothing_has_left() -> None:
    reader = Reader()
    run(ScriptedProvider(["奖励9999元[C1]。", "奖励9999元[C1]。"]), reader)
    assert None not in reader.events


def test_a_model_that_fails_while_writing_anew_is_replaced() -> None:
    released = run(ScriptedProvider([Reply(BAD), Reply(error="429")]), Reader())
    assert released.degraded
    assert "1500元" in released.text
    interrupted = run(ScriptedProvider([Reply(BAD), Reply(GOOD, error="429", fail_after=4)]), Reader())
    assert interrupted.degraded
    assert "1500元" in interrupted.text


@pytest.mark.parametrize(
    "reply", [Reply(error="429"), Reply(""), Reply("  \n "), Reply("补贴", error="500", fail_after=1)]
)
def test_a_model_that_gives_no_sentence_fails_the_turn(reply: Reply) -> None:
    reader = Reader()
    with pytest.raises(ProviderError) as caught:
        run(ScriptedProvider([reply]), reader)
    assert not isinstance(caught.value, AnswerInterruptedError)
    assert reader.events == []


def test_a_provider_that_says_nothing_without_failing_fails_the_turn() -> None:
    class Silent:
        name = "silent"

        def stream(self, prompt: Prompt) -> Iterator[Generated]:
            yield Generated(" \n")

    reader = Reader()
    with pytest.raises(ProviderError, match="no text"):
        run(Silent(), reader)
    assert reader.events == []


def test_a_model_that_dies_after_some_text_carries_what_has_left() -> None:
    reader = Reader()
    provider = ScriptedProvider([Reply(GOOD + "秘密", error="429", fail_after=3, piece=8)])
    with pytest.raises(AnswerInterruptedError) as caught:
        run(provider, reader)
    assert caught.value.partial == reader.all_text == "补贴标准为每人1,500元[C1]。"
    assert caught.value.replies == ((GOOD + "秘密")[:24],)
    assert caught.value.__cause__ is None


def test_a_stop_keeps_what_has_left_and_closes_the_stream() -> None:
    closed: list[bool] = []

    class Endless:
        name = "endless"

        def stream(self, prompt: Prompt) -> Iterator[Generated]:
            try:
                while True:
                    yield Generated("补贴标准为每人1500元[C1]。")
            finally:
                closed.append(True)

    reader = Reader(stop_after=2)
    released = run(Endless(), reader)
    assert released.partial
    assert released.text == "补贴标准为每人1500元[C1]。" * 2
    assert closed == [True]


def test_a_stop_before_the_first_sentence_is_no_failure() -> None:
    reader = Reader(stop_after=0)
    released = run(ScriptedProvider([GOOD]), reader)
    assert (released.text, released.partial, reader.events) == ("", True, [])


def test_a_stop_while_the_extractive_answer_leaves() -> None:
    reader = Reader(stop_after=5)
    asked = prompt("补贴标准和期限？", "zh", 256, TEXT)
    released = run(ScriptedProvider([BAD, BAD]), reader, asked)
    assert released.degraded


def test_the_output_screen_sees_each_sentence_with_what_went_before() -> None:
    seen: list[str] = []

    def screen(text: str) -> str | None:
        seen.append(text)
        return "spoken" if "最高" in text else None

    reader = Reader()
    released = run(ScriptedProvider([GOOD, "补贴标准为每人1500元[C1]。"]), reader, screen=screen)
    assert seen[:2] == ["补贴标准为每人1,500元[C1]。", GOOD]
    assert released.refusals == ("screen:spoken",)
    assert "最高" not in reader.all_text


def test_what_the_screen_refuses_everywhere_ends_in_the_fixed_text() -> None:
    released = run(ScriptedProvider([GOOD]), Reader(), screen=lambda text: "no" if "元" in text else None)
    assert released.text == fixed_text("nothing_checked", "zh")
    assert released.degraded
    assert not released.is_answer


def test_an_answer_that_the_passages_do_not_hold_is_none() -> None:
    released = run(ExtractiveProvider(), Reader(), prompt("天气怎么样？"))
    assert not released.is_answer
    assert not released.degraded


def test_another_language_is_refused_but_quotes_keep_theirs() -> None:
    english = "The subsidy for every person who is hired by the company is 1500 yuan [C1]."
    released = run(ScriptedProvider([english, GOOD]), Reader())
    assert released.refusals == ("language",)
    assert released.text == GOOD
    quoted = run(ExtractiveProvider(), Reader(), prompt("How much is the subsidy?", "en"))
    assert "1500元" in quoted.text
    assert not quoted.degraded


@pytest.mark.parametrize(
    ("sentence", "language", "is_other"),
    [
        ("补贴标准为1500元。", "zh", False),
        ("The subsidy for each person is 1500 yuan a year in total.", "zh", True),
        ("The subsidy is 8000 yuan [C1].", "zh", True),
        ("La subvention est de 8000 yuans [C1].", "zh", True),
        ("npm run build", "zh", False),
        ("Yunfan Technology Corporation of China", "zh", False),
        ("年报：the subsidy is 8000 yuan", "zh", False),
        ("GDPR、ISO 9001、OpenAI API。", "zh", False),
        ("Yunfan Technology Corporation Limited (云帆科技股份有限公司) 的收入", "zh", False),
        ("补贴标准为每人一千五百元，每年发放一次。", "en", True),
        ("The 云湖市就业与创业服务局 decides within seven days.", "en", False),
        ("Субсидия составляет 1500 юаней на человека.", "zh", True),
        ("補助金は一人あたりとなりますのでよろしくおねがいします", "zh", True),
        ("[C1]", "en", False),
        ("の" * 8, "zh", False),
        ("の" * 9, "zh", True),
        ("の" * 9 + "甲" * 9, "zh", False),
        ("の" * 9 + "甲" * 5 + "a" * 4, "zh", False),
        ("a" * 39, "zh", False),
        ("a" * 40, "zh", True),
        ("甲" * 4 + "a" * 40, "zh", False),
        ("甲" * 4 + "a" * 41, "zh", True),
        ("甲" * 11, "en", False),
        ("甲" * 12 + "a" * 23, "en", True),
        ("甲" * 12 + "a" * 24, "en", False),
    ],
)
def test_what_counts_as_another_language(sentence: str, language: Language, is_other: bool) -> None:
    assert is_other_language(sentence, language) == is_other


def test_a_200_kb_answer_ends_with_a_whole_sentence_within_the_limit() -> None:
    reader = Reader()
    released = run(ScriptedProvider([GOOD * 8000]), reader, prompt(output=100))
    assert len(released.text) <= 400
    assert released.text.endswith("。")
    assert len(released.replies[0]) < 1000


def test_joined_texts_are_the_answer_without_blank_ends() -> None:
    reader = Reader()
    reply = "\n\n 补贴标准为每人1500元[C1]。\n\n- 最高30万元[C1]。\n\n  "
    released = run(ScriptedProvider([reply]), reader)
    assert released.text == "补贴标准为每人1500元[C1]。\n\n- 最高30万元[C1]。"
    assert reader.events == ["补贴标准为每人1500元[C1]。", "\n\n- 最高30万元[C1]。"]


def test_a_figure_of_history_never_leaves() -> None:
    reader = Reader()
    released = run(ScriptedProvider(["上海 FY2099 REVENUE = 999[C1]。", "营收为999。"]), reader)
    assert "999" not in reader.all_text
    assert released.degraded


def test_the_raw_replies_repeat_the_whole_course() -> None:
    for script in ([BAD, GOOD], [BAD, BAD], [GOOD]):
        first = run(ScriptedProvider(script), Reader())
        again_reader = Reader()
        again = run(ScriptedProvider(list(first.replies)), again_reader)
        assert (again.text, again.degraded, again.refusals, again.replies) == (
            first.text,
            first.degraded,
            first.refusals,
            first.replies,
        )


def test_usage_of_both_attempts_is_added() -> None:
    once = run(ScriptedProvider([GOOD]), Reader()).usage
    twice = run(ScriptedProvider(["奖励9999元[C1]。", GOOD]), Reader()).usage
    assert once is not None
    assert twice is not None
    assert twice["completion_tokens"] >= once["completion_tokens"]


def test_an_answer_that_cites_nothing_is_written_anew_then_replaced() -> None:
    reader = Reader()
    told = run(ScriptedProvider(["补贴请咨询窗口。", "补贴请咨询窗口[C1]。"]), reader)
    assert (told.text, told.degraded, told.refusals) == ("补贴请咨询窗口[C1]。", False, ("uncited",))
    assert reader.events == ["补贴请咨询窗口。", None, "补贴请咨询窗口[C1]。"]
    told = run(ScriptedProvider(["补贴请咨询窗口。不要着急。"]), Reader())
    assert (told.degraded, told.refusals) == (True, ("uncited", "uncited"))
    assert "[C1]" in told.text


@pytest.mark.parametrize(
    "text", ["资料中没有找到补贴的标准。", "The sources do not contain the amount.", "资料未提及补贴标准。"]
)
def test_that_nothing_was_found_needs_no_source(text: str) -> None:
    asked = prompt(language="en" if text.isascii() else "zh")
    told = run(ScriptedProvider([text]), Reader(), asked)
    assert (told.text, told.degraded, told.refusals) == (text, False, ())


def test_a_long_answer_does_not_pass_for_one_that_found_nothing() -> None:
    told = run(ScriptedProvider(["资料中没有找到标准。" + "申请人可以到窗口咨询。" * 20]), Reader())
    assert (told.degraded, told.refusals) == (True, ("uncited", "uncited"))


def test_a_stopped_answer_need_not_have_come_to_its_source() -> None:
    reader = Reader(stop_after=1)
    told = run(ScriptedProvider(["补贴请咨询窗口。标准见资料[C1]。"]), reader)
    assert (told.partial, told.text, told.refusals) == (True, "补贴请咨询窗口。", ())


def test_an_answer_that_is_cut_at_the_limit_needs_its_source_too() -> None:
    told = run(ScriptedProvider(["申请人可以到窗口咨询。" * 80]), Reader(), prompt(output=100))
    assert (told.degraded, told.refusals) == (True, ("uncited", "uncited"))


# Found missing by mutation


@dataclass
class Writes:
    """Gives these pieces, of an iterator that cannot be closed."""

    pieces: list[Generated]
    name: str = "writes"
    only_quotes: bool = False

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        return iter(self.pieces)


CLAUSE = "申请" * 97 + "人[C1]。"  # 200 characters


def test_four_characters_a_token_leave_and_no_more() -> None:
    released = run(Writes([Generated(CLAUSE * 3)]), Reader(), prompt(output=100))
    assert released.text == CLAUSE * 2
    one_less = run(Writes([Generated("人" + CLAUSE * 2)]), Reader(), prompt(output=100))
    assert one_less.text == "人" + CLAUSE


def test_the_first_sentence_leaves_whole_whatever_the_limit() -> None:
    assert run(Writes([Generated(CLAUSE)]), Reader(), prompt(output=10)).text == CLAUSE


def test_another_stand_in_may_be_given() -> None:
    quote = Writes([Generated("申请期限为7个工作日[C1]。")])
    released = run(ScriptedProvider([BAD, BAD]), Reader(), fallback=quote)
    assert (released.text, released.degraded) == ("申请期限为7个工作日[C1]。", True)


def test_a_stream_that_is_still_held_is_closed() -> None:
    held: list[Iterator[Generated]] = []
    closed: list[bool] = []

    class Held:
        name = "held"

        def stream(self, prompt: Prompt) -> Iterator[Generated]:
            held.append(self.pieces())
            return held[0]

        def pieces(self) -> Iterator[Generated]:
            try:
                yield Generated("补贴标准为每人1500元[C1]。另外")
                yield Generated("最高30万元[C1]。")
            finally:
                closed.append(True)

    run(Held(), Reader(stop_after=1))
    assert closed == [True]


@pytest.mark.parametrize("ask", range(1, 6))
def test_nothing_leaves_once_the_stop_was_seen(ask: int) -> None:
    events: list[str] = []
    seen_at: list[int] = []
    asks = iter(range(1, 100))

    def stopped() -> bool:
        is_seen = next(asks) >= ask
        seen_at.extend([len(events)] if is_seen else [])
        return is_seen

    pieces = [Generated("补贴标准为每人1500元[C1]。最高30万元[C1]。申请"), Generated("期限为7个工作日")]
    released = release(Writes(pieces), prompt(), emit=events.append, reset=lambda: None, stopped=stopped)
    assert released.partial
    assert len(events) == seen_at[0]
    assert released.text == "".join(events)


def test_a_stop_before_the_stand_in_leaves_nothing_in_its_place() -> None:
    released = run(ScriptedProvider([BAD, BAD]), Reader(stop_after=4))
    assert (released.text, released.partial) == ("", True)


def test_without_passages_there_is_nothing_to_cite() -> None:
    budget = PromptBudget(total=9000, output=256)
    asked = build_prompt("你是谁？", language="zh", passages=[], window=None, budget=budget)
    released = run(Writes([Generated("我是助手。")]), Reader(), asked)
    assert (released.text, released.refusals) == ("我是助手。", ())


def test_who_only_quotes_need_not_cite() -> None:
    released = run(Writes([Generated("申请期限为7个工作日。")], only_quotes=True), Reader())
    assert (released.text, released.refusals) == ("申请期限为7个工作日。", ())


def test_usage_is_that_of_all_attempts_and_of_the_last_model() -> None:
    def told(text: str, model: str, asked: int, written: int) -> Generated:
        return Generated(text, {"model": model, "prompt_tokens": asked, "completion_tokens": written})

    class Twice:
        name = "twice"

        def __init__(self, *replies: Generated) -> None:
            self.replies = iter(replies)

        def stream(self, prompt: Prompt) -> Iterator[Generated]:
            return iter([next(self.replies)])

    both = run(Twice(told(BAD, "a", 10, 1), told(GOOD, "b", 5, 2)), Reader()).usage
    assert both == {"model": "b", "prompt_tokens": 15, "completion_tokens": 3}
    first = run(Twice(told(BAD, "a", 10, 1), Generated(GOOD)), Reader()).usage
    assert first == {"model": "a", "prompt_tokens": 10, "completion_tokens": 1}


def test_an_answer_of_200_characters_may_say_that_nothing_was_found() -> None:
    found_nothing = "资料中没有找到标准" + "申" * 190
    assert run(Writes([Generated(found_nothing + "。")]), Reader()).refusals == ()
    assert run(Writes([Generated(found_nothing + "请。")]), Reader()).refusals == ("uncited", "uncited")


def test_the_fixed_text_needs_no_source() -> None:
    text = fixed_text("nothing_checked", "zh")
    assert run(Writes([Generated(text)]), Reader()).refusals == ()
