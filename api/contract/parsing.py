"""From bytes to a contract, or to every fault in it: the path of the field and the rule it breaks.

No fault quotes a value: a value may be the user's text. Unknown fields are left out and reported under a
newer minor version, and are faults otherwise.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from api.contract.models import MAX_INT, ContextContract, DialogueState
from api.contract.states import Domain, StateRegistry
from api.contract.versions import SPOKEN, Standing, Version, read_version, standing_of
from api.strict_json import MAX_DEPTH, JsonFaultError, MalformedJsonError, read_object

MAX_FAULTS = 50
MAX_PATH = 200
VERSION_PATH = "meta.context_version"


@dataclass(frozen=True, order=True)
class Fault:
    """`path` is dotted, list places included ("context.recent_messages.0.role"); "" is the whole."""

    path: str
    rule: str
    detail: str = ""

    def to_json(self) -> dict[str, str]:
        return {"path": self.path, "rule": self.rule, "detail": self.detail}


class ContractError(ValueError):
    """The contract cannot be used. `faults` in order of the fields; never empty."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(
            f"{len(faults)} faults, the first at {faults[0].path or 'the top'}: {faults[0].rule}"
        )
        self.faults = tuple(faults[:MAX_FAULTS])


class MalformedError(ContractError):
    """Not one JSON object in UTF-8."""


class UnsupportedVersionError(ContractError):
    """A contract of another major version. The fault's detail names the supported range."""


@dataclass(frozen=True)
class Parsed:
    """A contract that keeps every rule, its domain, and the paths of fields that were left out."""

    contract: ContextContract[Any]
    domain: Domain
    ignored: tuple[str, ...] = ()

    @property
    def state(self) -> DialogueState:
        state: DialogueState = self.contract.context.consultation_state
        return state


def parse_contract(body: bytes | str, registry: StateRegistry, *, spoken: Version = SPOKEN) -> Parsed:
    """Raises ContractError, and of it MalformedError or UnsupportedVersionError where that is the reason."""
    sent = read_json(body)
    standing = _standing(sent, spoken)
    domain = _domain(sent, registry)
    contract, ignored = _validated(sent, domain, may_ignore=standing == "newer_minor")
    faults = _cross_faults(contract)
    if faults:
        raise ContractError(faults)
    return Parsed(contract, domain, tuple(ignored))


# JSON


def read_json(body: bytes | str) -> dict[str, Any]:
    """One object, as strict as every body; integers are exact."""
    try:
        return read_object(body)
    except MalformedJsonError:
        raise MalformedError([Fault("", "malformed_json", "must be one JSON object in UTF-8")]) from None
    except JsonFaultError as error:
        faults = [Fault(path_of(place), rule, _JSON_RULES[rule]) for place, rule in error.faults]
        raise ContractError(faults) from None


_JSON_RULES: Mapping[str, str] = {
    "object": "must be an object",
    "too_deep": f"must not nest deeper than {MAX_DEPTH} levels",
    "duplicate_key": "is given twice",
}


# Version and domain, read before anything else


def _standing(sent: Mapping[str, Any], spoken: Version) -> Standing:
    """Faults of the version come alone: what else is wrong cannot be told without it."""
    meta = sent.get("meta")
    text = meta.get("context_version") if isinstance(meta, dict) else None
    if not isinstance(text, str):
        return "known"  # the model says what is wrong
    version = read_version(text)
    if version is None:
        raise ContractError([Fault(VERSION_PATH, "semver", "must be a semantic version such as 1.0.0")])
    standing = standing_of(version, spoken)
    if standing == "other_major":
        raise UnsupportedVersionError(
            [Fault(VERSION_PATH, "unsupported_version", f"supported: {spoken.supported}")]
        )
    return standing


def _domain(sent: Mapping[str, Any], registry: StateRegistry) -> Domain:
    context = sent.get("context")
    state = context.get("consultation_state") if isinstance(context, dict) else None
    name = state.get("domain") if isinstance(state, dict) else None
    found = registry.find(name if isinstance(name, str) and name.strip() else None)
    if found is None:
        known = ", ".join(registry.names)
        raise ContractError([Fault("context.consultation_state.domain", "unknown_domain", f"known: {known}")])
    return found


# Fields


def _validated(
    sent: Mapping[str, Any], domain: Domain, *, may_ignore: bool
) -> tuple[ContextContract[Any], list[str]]:
    model: Any = ContextContract[domain.model]  # type: ignore[name-defined]
    try:
        return model.model_validate(sent), []
    except ValidationError as error:
        faults = _faults(error)
        places = [fault["loc"] for fault in error.errors() if fault["type"] in _IGNORABLE]
        if not (may_ignore and places):
            raise ContractError(faults) from None
    ignored = [path_of(place) for place in places]
    contract, _ = _validated(_without(sent, places), domain, may_ignore=False)
    return contract, ignored


_IGNORABLE = frozenset({"extra_forbidden", "unknown_slot"})


def _without(sent: Mapping[str, Any], places: Sequence[tuple[int | str, ...]]) -> dict[str, Any]:
    """A copy without what stands at these places; all are marked before any goes, so places stay true."""
    copy = deepcopy(dict(sent))
    for place in places:
        parent: Any = copy
        for part in place[:-1]:
            parent = parent[part]
        parent[place[-1]] = _GONE
    swept: dict[str, Any] = _swept(copy)
    return swept


_GONE = object()


def _swept(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _swept(item) for key, item in value.items() if item is not _GONE}
    return [_swept(item) for item in value if item is not _GONE] if isinstance(value, list) else value


def _faults(error: ValidationError) -> list[Fault]:
    return [
        Fault(path_of(fault["loc"]), _rule(fault["type"]), _detail(fault))
        for fault in error.errors(include_url=False, include_input=False)
    ]


def path_of(place: Sequence[int | str]) -> str:
    """Dotted, bounded, and without what no text can carry: an unknown key is the sender's own text."""
    text = ".".join(str(part) for part in place).encode("utf-8", "replace").decode()
    return text.replace("\0", "?")[:MAX_PATH]


_RULES: Mapping[str, str] = {
    "missing": "required",
    "extra_forbidden": "unknown_field",
    "string_type": "string",
    "string_unicode": "text_has_surrogate",
    "string_too_short": "too_short",
    "string_too_long": "too_long",
    "int_type": "integer",
    "int_from_float": "integer",
    "int_parsing_size": "maximum",
    "float_type": "number",
    "finite_number": "number",
    "list_type": "list",
    "model_type": "object",
    "dict_type": "object",
    "greater_than_equal": "minimum",
    "less_than_equal": "maximum",
    "literal_error": "unknown_domain",
}


def _rule(kind: str) -> str:
    return _RULES.get(kind, kind)


_SENTENCES: Mapping[str, str] = {
    "required": "must be there",
    "unknown_field": "is not known under this version",
    "string": "must be a string",
    "integer": "must be an integer",
    "number": "must be a finite number",
    "list": "must be a list or null",
    "object": "must be an object",
    "minimum": "must be at least {ge}",
    "maximum": "must be at most {le}",
    "too_short": "must have at least {min_length} characters",
    "too_long": "must have at most {max_length} characters",
    "text_has_surrogate": "must not contain a lone surrogate",
    "unknown_domain": "must name a known domain",
}


def _detail(fault: Any) -> str:
    """The rule in words: of bounds and types, never of the value or of how this service is made."""
    sentence = _SENTENCES.get(_rule(fault["type"]))
    return sentence.format(**{"le": MAX_INT, **fault.get("ctx", {})}) if sentence else str(fault["msg"])


# Rules over several fields


def _cross_faults(contract: ContextContract[Any]) -> list[Fault]:
    context, meta = contract.context, contract.meta
    faults = []
    sent = len(context.recent_messages)
    if meta.included_message_count != sent:
        faults.append(
            Fault("meta.included_message_count", "count_mismatch", f"{sent} recent_messages were sent")
        )
    has_summary = context.conversation_summary is not None
    if has_summary != (meta.summary_version > 0):
        remedy = "must be at least 1 with a summary" if has_summary else "must be 0 without a summary"
        faults.append(Fault("meta.summary_version", "summary_version", remedy))
    return faults
