"""What a prompt may hold besides rules, question and evidence: generation context, and how much of it fits.

It has exactly the rights of history: it may shape the words of a narrative answer, nothing else. First come
rules and question, then evidence, the window of recent messages, the state, the summary, the profile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from api.contract.models import ContextContract, Omission
from checkpoint.window import Window, WindowLimits, window_from_pairs
from nodes.answer.prompts import PromptBudget, PromptPlan, plan_prompt
from nodes.contracts import Language, Passage

MAX_OUTPUT = 1024
REWRITE = 64
OVER_BUDGET = "over_token_budget"
_SKIPPED = frozenset({"domain", "stage", "missing_slots", "pending_answer_for", "last_question"})
_HEADINGS: Mapping[str, Mapping[Language, str]] = {
    "consultation_state": {"zh": "用户已说明的情况：", "en": "What the user has stated:"},
    "conversation_summary": {"zh": "更早的对话：", "en": "The earlier conversation:"},
    "user_profile": {"zh": "用户资料：", "en": "About the user:"},
}


@dataclass(frozen=True)
class Part:
    """One piece of generation context under the name of its field."""

    name: str
    text: str


def budget_of(total: int) -> PromptBudget:
    """At most a quarter of the contract's budget, and at most MAX_OUTPUT, is reserved for the answer.

    REWRITE tokens stay free for the rule that is added when an answer has to be written anew.
    """
    output = max(1, min(MAX_OUTPUT, total // 4))
    return PromptBudget(max(total - REWRITE, output + 1), output)


def room_of(budget: PromptBudget) -> int:
    return budget.total - budget.output


def least_budget(question: str, language: Language) -> int:
    """The smallest token_budget whose prompt holds the rules and this question."""
    bare = plan_prompt(question, language=language, passages=(), window=None, budget=PromptBudget()).tokens
    least = min(-(-(bare + REWRITE) * 4 // 3), bare + REWRITE + MAX_OUTPUT)
    while room_of(budget_of(least - 1)) >= bare:
        least -= 1
    return least


def window_of(contract: ContextContract[Any], limits: WindowLimits, language: Language) -> Window:
    pairs = [(message.role, message.content) for message in contract.context.recent_messages]
    return window_from_pairs(pairs, limits=limits, language=language)


def parts_of(contract: ContextContract[Any], state: Mapping[str, Any], language: Language) -> list[Part]:
    """The pieces in the order of their priority; `state` is the one after this message."""
    context = contract.context
    profile = context.user_profile.model_dump() if context.user_profile else {}
    texts = {
        "consultation_state": _lines({k: v for k, v in state.items() if k not in _SKIPPED}, language),
        "conversation_summary": context.conversation_summary or "",
        "user_profile": _lines(profile, language),
    }
    return [Part(name, f"{_HEADINGS[name][language]}\n{text}") for name, text in texts.items() if text]


def _lines(values: Mapping[str, Any], language: Language) -> str:
    colon, comma = ("：", "、") if language == "zh" else (": ", ", ")
    shown = {
        name: comma.join(str(item) for item in value) if isinstance(value, list) else value
        for name, value in values.items()
    }
    return "\n".join(f"{name}{colon}{value}" for name, value in shown.items() if value not in (None, ""))


@dataclass
class ContractPlan:
    """Stands in for `plan_prompt` in one turn: adds the context, keeps to the contract's budget, and notes
    what went in and what did not.
    """

    budget: PromptBudget
    parts: Sequence[Part]
    tokens: int = 0
    omitted: list[Omission] = field(default_factory=list)

    def __call__(
        self,
        question: str,
        *,
        language: Language,
        passages: Sequence[Passage],
        window: Window | None,
        budget: PromptBudget,  # noqa: ARG002 - the contract's own counts
        summary: str | None = None,  # noqa: ARG002 - so do its own parts
    ) -> PromptPlan:
        plan, kept = self._with_parts(question, language, passages, window)
        self.tokens = plan.tokens if plan.prompt.passages or not passages else 0  # nobody is asked
        self.omitted = [
            *_omitted_passages(passages, plan.prompt.passages),
            *_omitted_messages(plan.window),
            *(_omission(part.name, OVER_BUDGET, 1) for part in self.parts[kept:]),
        ]
        return plan

    def _with_parts(
        self, question: str, language: Language, passages: Sequence[Passage], window: Window | None
    ) -> tuple[PromptPlan, int]:
        """The plan with as many parts as fit, and how many those are."""
        for kept in range(len(self.parts), -1, -1):
            text = "\n\n".join(part.text for part in self.parts[:kept])
            plan = plan_prompt(
                question,
                language=language,
                passages=passages,
                window=window,
                budget=self.budget,
                summary=text or None,
            )
            if plan.has_summary or not text:
                break
        return plan, kept


def _omission(part: str, reason: str, count: int, sources: Sequence[str] = ()) -> Omission:
    return Omission(part=part, reason=reason, count=count, sources=list(sources))


def left_out(pairs: Sequence[tuple[str, str]]) -> list[Omission]:
    """Supplied knowledge that was not admitted, one omission a reason."""
    by_reason: dict[str, list[str]] = {}
    for source, reason in pairs:
        by_reason.setdefault(reason, []).append(source)
    return [
        _omission("retrieved_knowledge", reason, len(sources), sources)
        for reason, sources in by_reason.items()
    ]


def _omitted_passages(passages: Sequence[Passage], used: Sequence[Passage]) -> list[Omission]:
    dropped = [passage["source"] for passage in passages[len(used) :]]
    cut = [
        whole["source"]
        for whole, kept in zip(passages, used, strict=False)
        if len(kept["text"]) < len(whole["text"])
    ]
    omissions = [_omission("retrieved_knowledge", OVER_BUDGET, len(dropped), dropped)] if dropped else []
    return omissions + ([_omission("retrieved_knowledge", "shortened", len(cut), cut)] if cut else [])


def _omitted_messages(window: Window) -> list[Omission]:
    """Turns of recent_messages that the model did not see; every reason that holds is named."""
    if not (window.omitted_turns or window.cut_bytes or window.reasons):
        return []
    return [_omission("recent_messages", ",".join(window.reasons), window.omitted_turns)]
