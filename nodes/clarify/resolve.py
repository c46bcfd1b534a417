"""Resolve: ask a model to word the explicit questions that a vague one may have meant.

The model sees the re-authorised window and the vague question, nothing else: no document, no permission.
What it returns is offered to the user, or in `FOLLOW_UP=auto` used at once; it is never an answer.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Literal, TypedDict

from nodes.contracts import Language, Message, Prompt, Provider, ProviderError
from nodes.patience import Awaited

MAX_QUESTION_CHARACTERS = 300
MAX_OUTPUT_TOKENS = 512

History = Sequence[tuple[Literal["user", "assistant"], str]]

RULES: dict[Language, str] = {
    "zh": (
        "根据最近的对话，把用户最新的问题改写成不依赖上文、可以独立检索的问题。\n"
        "要求：保留用户原意；不要回答问题；不要添加对话中没有的事实；"
        "不要改变资料库或权限范围；如果问题已经独立，原样返回。\n"
        "最多给出三种可能的改写，最可能的在前。只输出 JSON："
        '{"requires_history": true, "standalone_questions": ["…"]}'
    ),
    "en": (
        "Using the recent conversation, rewrite the user's newest question as one that stands alone and\n"
        "can be searched for. Keep the meaning; answer nothing; add no fact that the conversation does not\n"
        "hold; change neither the knowledge base nor any permission; return an independent question\n"
        "unchanged. Give at most three readings, the likeliest first. Output JSON only: "
        '{"requires_history": true, "standalone_questions": ["…"]}'
    ),
}


class Resolution(TypedDict):
    """`standalone_questions` is the question itself where it needs no history."""

    requires_history: bool
    standalone_questions: list[str]


def resolve(
    text: str,
    *,
    history: History,
    language: Language,
    provider: Provider,
    stopped: Callable[[], bool] = lambda: False,
) -> Resolution:
    """The model's readings, those that add figures of their own left out. Raises ProviderError.

    Once `stopped` the model is waited for no longer, and what it has said so far is all there is.
    """
    messages = [
        Message("system", RULES[language]),
        *(Message(role, content) for role, content in history),
        Message("user", text),
    ]
    prompt = Prompt(text, language, (), messages, MAX_OUTPUT_TOKENS)
    with closing(Awaited(lambda: provider.stream(prompt), stopped)) as pieces:
        said = read_reply("".join(piece.text for piece in pieces))
    known = "\n".join([text, *(content for _, content in history)])
    questions = [question for question in said["standalone_questions"] if adds_no_figure(question, known)]
    return {**said, "standalone_questions": questions}


def read_reply(reply: str) -> Resolution:
    """The JSON object in the reply. Raises ProviderError where there is none of this form."""
    found = re.search(r"\{.*\}", reply, re.DOTALL)
    try:
        value = json.loads(found[0]) if found else None
    except ValueError:
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("standalone_questions"), list):
        raise ProviderError("the model did not word the question; it is asked openly instead")
    questions = [_one_line(item) for item in value["standalone_questions"] if isinstance(item, str)]
    usable = [question for question in questions if 0 < len(question) <= MAX_QUESTION_CHARACTERS]
    return {"requires_history": bool(value.get("requires_history", True)), "standalone_questions": usable}


def adds_no_figure(question: str, known: str) -> bool:
    """Whether every number of the question stands in what the user or the conversation said."""
    return set(_numbers(question)) <= set(_numbers(known))


def _numbers(text: str) -> Sequence[str]:
    return re.findall(r"\d+", text)  # also full-width digits


def _one_line(text: str) -> str:
    return " ".join(text.split())
