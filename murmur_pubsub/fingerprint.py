"""What state a machine is in, coarsely: small facts about what it and its parts hold.

A fact is a class, one of its attributes, and how much or what that holds: an enumeration's member, true or false, some
or none, a number's sign, a container's size in four steps. Two parts of one class share their facts: which of ten
streams it is does not matter to whoever asks what has ever been reached. A machine that knows which of its states
matter says so itself, with `state_of`: fewer facts, each of which is rarer.
"""

import functools
import random
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import Any

Fact = tuple[str, str, str]
"""(class, attribute, what it holds)."""

_DEPTH_MAX = 4
_LOOKED_INTO = 2
"""Of the values of a container, so many are looked into: they are mostly of one class."""
_SIZES = (dict, list, set, frozenset, deque)
_NOT_LOOKED_INTO = ("builtins", "collections", "random", "functools", "enum", "types", "numpy")
_STATE_HERE = "murmur_pubsub.procedure"
"""All else in this package is a value, or an index of values."""


def facts_of(machine: object) -> set[Fact]:
    """The facts about an object of any class and what belongs to it, in no order."""
    facts: set[Fact] = set()
    _look(machine, facts, set(), 0)
    return facts


def state_of(part: str, **holds: object) -> Fact:
    """One fact about a part whose author says what matters: which of these hold, all of them together."""
    return part, "state", _all_of(tuple([name for name, true in holds.items() if true]))


@functools.cache
def _all_of(names: tuple[str, ...]) -> str:
    return " + ".join(name.replace("_", " ") for name in names) or "nothing"


def _look(thing: object, facts: set[Fact], seen: set[int], depth: int) -> None:
    seen.add(id(thing))
    name = type(thing).__name__
    for attribute, value in attributes_of(thing):
        read, parts_of = _ways.get(type(value)) or _learn(type(value))
        if read is not None:
            facts.add((name, attribute, read(value)))
        if parts_of is not None and depth < _DEPTH_MAX:
            for part in parts_of(value):
                if id(part) not in seen and _is_looked_into(type(part)):
                    _look(part, facts, seen, depth + 1)


def _learn(kind: type) -> "_Ways":
    parts_of: _PartsOf | None = None
    if _is_looked_into(kind):
        parts_of = _itself
    elif issubclass(kind, dict):
        parts_of = _first_values
    elif issubclass(kind, (list, deque, tuple)):
        parts_of = _first
    ways = _ways[kind] = _reader(kind), parts_of
    return ways


def _is_looked_into(kind: type) -> bool:
    """Is it a part that does not speak for itself, as another machine would?"""
    return is_part(kind) and not hasattr(kind, "fingerprint")


def _itself(value: Any) -> tuple[Any, ...]:
    return (value,)


def _first_values(value: Any) -> Iterator[Any]:
    return islice(value.values(), _LOOKED_INTO)


def _first(value: Any) -> Iterator[Any]:
    return islice(value, _LOOKED_INTO)


_PartsOf = Callable[[Any], Iterable[Any]]
_Ways = tuple[Callable[[Any], str] | None, _PartsOf | None]
"""How a value becomes the third part of a fact, and what is to be looked into; None: not at all."""
_ways: dict[type, _Ways] = {}
_slots_of: dict[type, tuple[str, ...]] = {}
_part_or_not: dict[type, bool] = {}


def attributes_of(thing: object) -> list[tuple[str, Any]]:
    """The attributes that the object has now, in its dictionary and in its slots, and their values."""
    attributes = list(getattr(thing, "__dict__", {}).items())
    attributes += [(slot, getattr(thing, slot)) for slot in _slots(type(thing)) if hasattr(thing, slot)]
    return attributes


def _slots(kind: type) -> tuple[str, ...]:
    names = _slots_of.get(kind)
    if names is None:
        listed = (vars(each).get("__slots__", ()) for each in kind.__mro__)
        each_class = ((slots,) if isinstance(slots, str) else tuple(slots) for slots in listed)
        names = _slots_of[kind] = tuple(name for slots in each_class for name in slots if not name.startswith("__"))
    return names


def is_part(kind: type) -> bool:
    """Is it an object with a state of its own, and no value or function?"""
    known = _part_or_not.get(kind)
    if known is None:
        module = kind.__module__
        ours = module.partition(".")[0] not in _NOT_LOOKED_INTO
        own = not module.startswith("murmur_pubsub.") or module == _STATE_HERE
        value = issubclass(kind, (tuple, Enum, type, types.ModuleType, Exception, random.Random, Mapping))
        frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
        known = _part_or_not[kind] = ours and own and not value and not frozen
    return known


def _reader(kind: type) -> Callable[[Any], str] | None:
    if kind is bool or kind is type(None):
        return str
    if issubclass(kind, Enum):
        return _member
    if kind in (int, float):
        return _sign
    if issubclass(kind, _SIZES):
        return _size
    return _some if issubclass(kind, (tuple, str, bytes)) else None


def _member(value: Enum) -> str:
    return f"is {value.name}"


def _sign(value: float) -> str:
    return "0" if value == 0 else "above 0" if value > 0 else "below 0"


def _size(value: Any) -> str:
    size = len(value)
    return "empty" if size == 0 else "one" if size == 1 else "a few" if size < 8 else "many"


def _some(value: object) -> str:
    return "some"
