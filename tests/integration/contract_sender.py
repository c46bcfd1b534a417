"""Contracts as a backend would send them, and one turn of them over the real services."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from api.contract.domains import SHIPPED
from api.contract.evidence import HeldSources
from api.contract.models import ContextAnswer
from api.contract.parsing import parse_contract
from api.contract.router import to_json
from api.contract.turn import ContractTurn, Origin, Reading
from graph.build import Services
from graph.compose import Assistant
from graph.run import ResetEvent, TokenEvent
from nodes.answer.providers import ScriptedProvider
from nodes.contracts import Caller, Evidence, Prompt

BACKEND = Caller(scopes=frozenset({"contract"}))
STRANGER = Caller()
AT = "2026-11-30T10:00:00.000+08:00"
KNEE = {
    "title": "膝关节不稳定常见原因",
    "content": "膝盖下坠感的可能原因包括股四头肌控制不足、髋膝踝力线异常和韧带损伤。"
    "走路加重时应当注意减少负重。",
    "source": "kb_001",
    "relevance_score": 0.92,
}
FRESH: dict[str, Any] = {
    "stage": "start",
    "body_parts": [],
    "symptoms": [],
    "aggravating_factors": [],
    "red_flags": [],
    "missing_slots": [],
    "pending_answer_for": [],
}
COMPLETE: dict[str, Any] = {
    **FRESH,
    "stage": "ready",
    "chief_complaint": "膝盖下坠感",
    "duration": "一周",
    "aggravating_factors": ["走路"],
    "pain_level": "6",
    "swelling": "无",
    "trauma": "无",
}
SUBSIDY: dict[str, Any] = {
    "domain": "startup_subsidy",
    "stage": "start",
    "red_flags": [],
    "missing_slots": [],
    "pending_answer_for": [],
}


def messages_of(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [
        {"role": role, "content": content, "turn_id": f"turn_{at}", "timestamp": AT}
        for at, (role, content) in enumerate(pairs)
    ]


def contract(
    message: str,
    state: dict[str, Any] | None = None,
    *,
    history: tuple[tuple[str, str], ...] = (),
    summary: str | None = None,
    budget: int = 8000,
    **context: Any,
) -> dict[str, Any]:
    """A contract that keeps every rule. `knowledge` and `profile` are left out unless they are given."""
    names = {"knowledge": "retrieved_knowledge", "profile": "user_profile"}
    more = {names[name]: value for name, value in context.items()}
    return {
        "session_id": "conv_1",
        "turn_id": "turn_9",
        "user_message": message,
        "context": {
            "recent_messages": messages_of(*history),
            "conversation_summary": summary,
            "consultation_state": FRESH if state is None else state,
            **more,
        },
        "meta": {
            "context_version": "1.0.0",
            "token_budget": budget,
            "included_message_count": len(history),
            "summary_version": 1 if summary else 0,
        },
    }


@dataclass
class SpyRetriever:
    """The real retriever, with the queries that it was asked."""

    inner: Any
    queries: list[str] = field(default_factory=list)

    def knowledge_version(self) -> str:
        return str(self.inner.knowledge_version())

    def retrieve(self, query: str, *, caller: Caller, on_date: str) -> Evidence:
        self.queries.append(query)
        evidence: Evidence = self.inner.retrieve(query, caller=caller, on_date=on_date)
        return evidence


@dataclass
class Sender:
    """Sends contracts through the real services. `replies` are the model's; without any, it only quotes."""

    assistant: Assistant
    caller: Caller = BACKEND
    replies: tuple[str, ...] = ()
    held: HeldSources = field(init=False)
    services: Services = field(init=False)
    spy: SpyRetriever = field(init=False)

    def __post_init__(self) -> None:
        self.held = HeldSources(self.assistant.store)
        self.spy = SpyRetriever(self.assistant.services.retriever)
        self.services = replace(self.assistant.services, retriever=self.spy)
        if self.replies:
            self.services = replace(self.services, provider=ScriptedProvider(self.replies))

    @property
    def prompts(self) -> list[Prompt]:
        provider = self.services.provider
        assert isinstance(provider, ScriptedProvider)
        return provider.prompts

    def turn(self, sent: dict[str, Any]) -> ContractTurn:
        parsed = parse_contract(json.dumps(sent), SHIPPED)
        return ContractTurn(self.services, self.held, parsed, self.caller, Origin("request-1", AT))

    def read(self, sent: dict[str, Any]) -> Reading:
        return self.turn(sent).read()

    def send(self, sent: dict[str, Any]) -> dict[str, Any]:
        """The answer as on the wire; what was shown on the way there equals it."""
        turn = self.turn(sent)
        shown = ""
        answer: ContextAnswer[Any] | None = None
        for event in turn.events(turn.read()):
            if isinstance(event, TokenEvent):
                shown += event.text
            elif isinstance(event, ResetEvent):
                shown = ""
            elif isinstance(event, ContextAnswer):
                answer = event
        assert answer is not None
        assert shown == answer.answer
        return to_json(answer)


def parts(answer: dict[str, Any]) -> dict[str, str]:
    """What was omitted -> why."""
    return {omission["part"]: omission["reason"] for omission in answer["meta"]["omitted"]}
