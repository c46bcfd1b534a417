"""Fixed texts of the gate and of clarification, in one table, and how a turn is closed without an answer."""

from typing import Literal

from nodes.contracts import Answer, AnswerKind, ChatMessage, Intent, Language, Outcome, Slot, WindowReport
from nodes.digest import decision_digest

Notice = Literal[
    "nothing_to_retry",
    "nothing_to_discard",
    "nothing_pending",
    "unfinished_turn",
    "discarded",
    "cancelled",
    "replaced",
    "given_up",
    "stopped",
]

NOTICES: dict[Notice, dict[Language, str]] = {
    "nothing_to_retry": {
        "zh": "没有需要重试的问题。请直接输入您的问题。",
        "en": "There is nothing to retry. Just type your question.",
    },
    "nothing_to_discard": {
        "zh": "没有需要放弃的问题。请直接输入您的问题。",
        "en": "There is nothing to discard. Just type your question.",
    },
    "nothing_pending": {
        "zh": "当前没有等待选择的内容。请直接输入您的问题。",
        "en": "Nothing is waiting for a choice. Just type your question.",
    },
    "unfinished_turn": {
        "zh": "上一个问题还没有处理完。输入 /retry（重试）继续处理，或输入 /discard（放弃）后再提新问题。",
        "en": "The previous question is not finished. Type /retry to finish it, or /discard to drop it, "
        "then ask again.",
    },
    "discarded": {
        "zh": "已放弃上一个未完成的问题。请输入新的问题。",
        "en": "The unfinished question was dropped. Ask a new one.",
    },
    "cancelled": {
        "zh": "已取消这个问题。请输入新的问题。",
        "en": "The question was cancelled. Ask a new one.",
    },
    "replaced": {
        "zh": "已取消上一个等待补充的问题，先回答新的问题。",
        "en": "The earlier question that was waiting for your reply was cancelled; here is the new one.",
    },
    "given_up": {
        "zh": "仍然无法确定您的意思，这个问题先到这里。请换一种说法重新提问。",
        "en": "I still cannot tell what you mean, so I leave this question here. Please reword it.",
    },
    "stopped": {"zh": "已停止回答。", "en": "The answer was stopped."},
}

PROMPTS: dict[Slot, dict[Language, str]] = {
    "company": {"zh": "您问的是哪家公司？", "en": "Which company do you mean?"},
    "period": {"zh": "您问的是哪个期间？", "en": "Which period do you mean?"},
    "metric": {"zh": "您想了解哪项指标？", "en": "Which figure do you want?"},
    "reference": {
        "zh": "您的问题没有说明具体指什么，请写出完整的问题。",
        "en": "Your question does not say what it refers to. Please write it out in full.",
    },
}

WHICH_QUESTION: dict[Language, str] = {
    "zh": "您想问的是下面哪一个问题？",
    "en": "Which of these questions do you mean?",
}

UNKNOWN_COMPANY: dict[Language, str] = {
    "zh": "没有找到名为“{}”的公司。您问的是下面哪一家？",
    "en": 'There is no company called "{}". Do you mean one of these?',
}

HOW_TO_REPLY: dict[Language, str] = {
    "zh": "请回复编号或名称，也可以输入：取消。",
    "en": "Reply with a number or a name, or type: cancel.",
}

HOW_TO_REPLY_PAGED: dict[Language, str] = {
    "zh": "请回复编号或名称，也可以输入：下一页、上一页、取消。",
    "en": "Reply with a number or a name, or type: next, previous, cancel.",
}

SOMETHING_ELSE: dict[Language, str] = {"zh": "都不是，我重新描述", "en": "Something else"}


def notice(name: Notice, language: Language) -> str:
    return NOTICES[name][language]


def closed(kind: AnswerKind, text: str, intent: Intent | None) -> Answer:
    """The answer that ends a turn in which nothing was answered."""
    return {
        "kind": kind,
        "text": text,
        "citations": [],
        "decision_digest": decision_digest(intent),
        "knowledge_version": None,
        "window": empty_window(),
        "usage": None,
        "replies": [],
    }


def empty_window() -> WindowReport:
    """No model was shown anything."""
    return {"turns": 0, "omitted_turns": 0, "cut_bytes": 0, "bytes": 0, "reasons": []}


def how_to_reply(pages: int, language: Language) -> str:
    return (HOW_TO_REPLY_PAGED if pages > 1 else HOW_TO_REPLY)[language]


def ended(
    outcome: Outcome,
    status: Literal["completed", "needs_input", "failed", "stopped"],
    *,
    degraded: bool = False,
) -> Outcome:
    return {**outcome, "status": status, "degraded": outcome["degraded"] or degraded}


def said(text: str, message_id: str) -> list[ChatMessage]:
    """The assistant's half of the pair that a chat client sees."""
    return [{"type": "ai", "content": text, "id": message_id}]
