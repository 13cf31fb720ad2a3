"""What state a machine is in, coarsely: small facts about what it and its parts hold.

A fact is a class, one of its attributes, and how much or what that holds: an enumeration's member, true or false, some
or none, a number's sign, a container's size in four steps. Two parts of one class share their facts: which of ten
streams it is does not matter to whoever asks what has ever been reached.
"""

import random
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
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


def _look(thing: object, facts: set[Fact], seen: set[int], depth: int) -> None:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    name = type(thing).__name__
    for attribute, value in _attributes(thing):
        reader = _reader(type(value))
        if reader is not None:
            facts.add((name, attribute, reader(value)))
        if depth < _DEPTH_MAX:
            for part in _parts(value):
                _look(part, facts, seen, depth + 1)


def _attributes(thing: object) -> Iterator[tuple[str, Any]]:
    if hasattr(thing, "__dict__"):
        yield from vars(thing).items()
    for name in _slots(type(thing)):
        if hasattr(thing, name):
            yield name, getattr(thing, name)


def _parts(value: Any) -> Iterator[object]:
    if _is_part(type(value)):
        yield value
    elif type(value) is dict or isinstance(value, dict):
        for number, part in enumerate(value.values()):
            if number == _LOOKED_INTO:
                break
            if _is_part(type(part)):
                yield part
    elif type(value) in (list, deque, tuple):
        for number, part in enumerate(value):
            if number == _LOOKED_INTO:
                break
            if _is_part(type(part)):
                yield part


_slots_of: dict[type, tuple[str, ...]] = {}
_part_or_not: dict[type, bool] = {}
_readers: dict[type, Callable[[Any], str] | None] = {}


def _slots(kind: type) -> tuple[str, ...]:
    names = _slots_of.get(kind)
    if names is None:
        listed = (vars(each).get("__slots__", ()) for each in kind.__mro__)
        each_class = ((slots,) if isinstance(slots, str) else tuple(slots) for slots in listed)
        names = _slots_of[kind] = tuple(name for slots in each_class for name in slots if not name.startswith("__"))
    return names


def _is_part(kind: type) -> bool:
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
    """How a value of that class becomes the third part of a fact; None: it tells nothing."""
    try:
        return _readers[kind]
    except KeyError:
        reader: Callable[[Any], str] | None = None
        if kind is bool or kind is type(None):
            reader = str
        elif issubclass(kind, Enum):
            reader = _member
        elif kind in (int, float):
            reader = _sign
        elif issubclass(kind, _SIZES):
            reader = _size
        elif issubclass(kind, (tuple, str, bytes)):
            reader = _some
        _readers[kind] = reader
        return reader


def _member(value: Enum) -> str:
    return f"is {value.name}"


def _sign(value: float) -> str:
    return "0" if value == 0 else "above 0" if value > 0 else "below 0"


def _size(value: Any) -> str:
    size = len(value)
    return "empty" if size == 0 else "one" if size == 1 else "a few" if size < 8 else "many"


def _some(value: object) -> str:
    return "some"
