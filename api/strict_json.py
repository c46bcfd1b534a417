"""From bytes to one JSON object, or to what is wrong with it, for every body that this service reads.

Stricter than `json.loads`, which takes the last of two equal keys, and NaN for a number: two readers of one
body must not see two meanings. Nothing of the body is ever quoted.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 16

Place = tuple[int | str, ...]


class MalformedJsonError(ValueError):
    """Not one JSON value in UTF-8, or a number with more digits than any number needs."""


class JsonFaultError(ValueError):
    """JSON that is not taken. `faults`: where, and which rule: object, too_deep or duplicate_key."""

    def __init__(self, *faults: tuple[Place, str]) -> None:
        super().__init__(", ".join(rule for _, rule in faults))
        self.faults = faults


def read_object(body: bytes | str) -> dict[str, Any]:
    """One object; a key given twice, NaN and Infinity are refused. Integers are exact up to 4,300 digits."""
    try:
        text = body.decode("utf-8") if isinstance(body, bytes) else body
        sent = json.loads(text, object_pairs_hook=_Object.of, parse_constant=_no_constant)
    except RecursionError:
        raise JsonFaultError(((), "too_deep")) from None
    except ValueError:
        raise MalformedJsonError from None
    if not isinstance(sent, dict):
        raise JsonFaultError(((), "object"))
    if _is_deeper(sent, MAX_DEPTH):
        raise JsonFaultError(((), "too_deep"))
    twice = list(_given_twice(sent, ()))
    if twice:
        raise JsonFaultError(*((place, "duplicate_key") for place in twice))
    return sent


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)


class _Object(dict[str, Any]):
    """A JSON object that knows which keys it was given more than once."""

    twice: tuple[str, ...] = ()

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> "_Object":
        found = cls(pairs)
        if len(found) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            found.twice = tuple(key for key, count in counts.items() if count > 1)
        return found


def _given_twice(value: Any, place: Place) -> Iterator[Place]:
    if isinstance(value, _Object):
        yield from ((*place, key) for key in value.twice)
        for key, item in value.items():
            yield from _given_twice(item, (*place, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _given_twice(item, (*place, at))


def _no_constant(_name: str) -> Any:
    raise ValueError
