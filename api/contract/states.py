"""How a state moves on by one message, by rule; and which domains have a state of their own.

A domain is data: its fields, its slots in the order in which they are asked, what it collects, its warning
signs. `advance` reads the state and the current message and nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from api.contract.hearing import (
    UNKNOWN,
    Heard,
    Label,
    Lexicon,
    hear,
    is_bare_no,
    is_bare_unknown,
    with_added,
)
from api.contract.models import DialogueState
from api.contract.readers import Asked, Reader
from nodes.contracts import Language

COLLECTING, READY, RED_FLAG = "collecting_details", "ready", "red_flag"


@dataclass(frozen=True)
class Slot:
    """One thing to know, and the question that asks for it."""

    name: str
    ask: Mapping[Language, str]
    read: Reader


@dataclass(frozen=True)
class ListSlot:
    """A slot with a growing list. In reply, `loose` words count too, and a bare no gives `none`."""

    name: str
    ask: Mapping[Language, str]
    strict: Lexicon
    loose: Lexicon
    none: Label

    def found(self, heard: Heard, asked: Asked) -> list[str]:
        words = self.loose if asked.is_pending else self.strict
        named = words.named_in(heard.stated, heard.language)
        if named or not asked.is_pending:
            return named
        if is_bare_no(heard.whole):
            return [self.none[heard.language]]
        return [UNKNOWN[heard.language]] if is_bare_unknown(heard.whole) else []


Values = Mapping[str, Any]


@dataclass(frozen=True)
class Domain:
    """A state model and the rules that fill it. `question` words what is asked once nothing is missing."""

    name: str
    model: type[DialogueState]
    slots: Sequence[Slot | ListSlot]
    flags: Lexicon
    notice: Mapping[Language, str]  # said before everything else while there are warning signs
    question: Callable[[Values, Language], str]
    collected: Mapping[str, Lexicon] = field(default_factory=dict)  # list fields that are never asked for
    derived_flags: Callable[[Values, Language], list[str]] = lambda _values, _language: []

    def __post_init__(self) -> None:
        named = (
            {slot.name for slot in self.slots} | set(self.collected) | set(self.model.other_names.values())
        )
        unknown = sorted(named - set(self.model.model_fields))
        if unknown:
            raise ValueError(f"domain {self.name}: {', '.join(unknown)} is no field of its state model")

    @property
    def slot_names(self) -> tuple[str, ...]:
        return tuple(slot.name for slot in self.slots)


class StateRegistry:
    """Domains by name; the first one is the default, for states that name none. Immutable."""

    def __init__(self, *domains: Domain) -> None:
        self._domains = {domain.name: domain for domain in domains}
        if not domains or len(self._domains) != len(domains):
            raise ValueError("a registry needs at least one domain, and each name once")
        self.default = domains[0]

    def __iter__(self) -> Any:
        return iter(self._domains.values())

    def with_domain(self, domain: Domain) -> "StateRegistry":
        return StateRegistry(*self._domains.values(), domain)

    def find(self, name: str | None) -> Domain | None:
        return self.default if name is None else self._domains.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._domains)


@dataclass(frozen=True)
class Advanced:
    """The state after a message. `filled` are the slots that got a value, `next_question` is what to ask."""

    state: DialogueState
    filled: tuple[str, ...] = ()
    new_flags: tuple[str, ...] = ()
    asks: bool = False  # the message asks something itself
    next_question: str | None = None

    @property
    def is_complete(self) -> bool:
        return not self.state.missing_slots


def advance(domain: Domain, state: DialogueState, text: str, language: Language) -> Advanced:
    """The state with everything that the message states. Warning signs are only ever added."""
    heard = hear(text, language)
    before = state.model_dump()
    filled = _filled(domain, before, heard)
    values = {**before, **filled, **_collected(domain, before, heard)}
    missing = _missing(domain, before, values)
    asking = next((slot for slot in domain.slots if slot.name in missing), None)
    flags = _flags(domain, values, heard)
    changed = {
        **values,
        "red_flags": flags,
        "missing_slots": missing,
        "stage": _stage(before, flags, missing),
        "last_question": asking.ask[language] if asking else None,
        "pending_answer_for": [asking.name] if asking else [],
    }
    return Advanced(
        domain.model.model_validate(changed),
        tuple(filled),
        tuple(flag for flag in flags if flag not in before["red_flags"]),
        heard.asks,
        changed["last_question"],
    )


def _stage(before: Values, flags: Sequence[str], missing: Sequence[str]) -> str:
    """Once there were signs it stays so, also where their list was lost on the way (a null slice of Go)."""
    if flags or before["stage"] == RED_FLAG:
        return RED_FLAG
    return COLLECTING if missing else READY


def watch(domain: Domain, state: DialogueState, text: str, language: Language) -> Advanced:
    """The state with new warning signs and nothing else: for a message that is not answered."""
    before = state.model_dump()
    flags = _flags(domain, before, hear(text, language))
    changed = {**before, "red_flags": flags, "stage": RED_FLAG if flags else before["stage"]}
    new = tuple(flag for flag in flags if flag not in before["red_flags"])
    return Advanced(domain.model.model_validate(changed), new_flags=new)


def is_set(value: object) -> bool:
    return value not in (None, "", [])


def _filled(domain: Domain, before: Values, heard: Heard) -> dict[str, Any]:
    pending = before["pending_answer_for"]
    filled: dict[str, Any] = {}
    for slot in domain.slots:
        current = before[slot.name]
        asked = Asked(slot.name in pending, len(pending) == 1, is_set(current))
        value: Any = (
            with_added(current, slot.found(heard, asked), slot.strict)
            if isinstance(slot, ListSlot)
            else slot.read(heard, asked)
        )
        if is_set(value) and (value != current or asked.is_pending):
            filled[slot.name] = value
    return filled


def _collected(domain: Domain, before: Values, heard: Heard) -> dict[str, list[str]]:
    return {
        name: with_added(before[name], words.named_in(heard.stated, heard.language), words)
        for name, words in domain.collected.items()
    }


def _flags(domain: Domain, values: Values, heard: Heard) -> list[str]:
    """Signs count in a question too ("发烧了怎么办？") and when they are said to be gone, only not in what is
    supposed.
    """
    clauses = [clause.unsupposed for clause in heard.clauses]
    found = domain.flags.named_in(clauses, heard.language, ever=True) + domain.derived_flags(
        values, heard.language
    )
    return with_added(values["red_flags"], found, domain.flags)


def _missing(domain: Domain, before: Values, values: Values) -> list[str]:
    """What the sender says is missing or asked for; everything, where a consultation has only just begun."""
    said = [*before["missing_slots"], *before["pending_answer_for"]]
    has_begun = bool(said) or any(is_set(before[name]) for name in domain.slot_names)
    wanted = said if has_begun else domain.slot_names
    return [name for name in domain.slot_names if name in wanted and not is_set(values[name])]
