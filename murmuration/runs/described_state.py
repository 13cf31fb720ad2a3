"""What a machine holds, in words: one table for it and one for each of its parts, as a person reads them.

Whatever its class is, an object is described by its attributes: numbers and texts as they are, containers entry by
entry, parts of its own in tables of their own. What has no words (functions, classes, indexes) is left out. The words
are a function of the state alone.
"""

import random
import types
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Set
from enum import Enum
from itertools import islice
from typing import Any, NamedTuple

from murmur_pubsub.fingerprint import attributes_of, is_part

_ENTRIES_MAX = 50
"""Of a container, so many entries are told."""
_INSIDE_MAX = 8
"""Of a container inside a container."""
_TEXT_MAX = 200
_DEPTH_MAX = 5
_NO_STATE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, random.Random, type)
_LISTS = (list, tuple, deque)


class StateLine(NamedTuple):
    """An attribute: its value, or the number of its entries with (the first of) them."""

    name: str
    value: str
    entries: list[str]


class StateTable(NamedTuple):
    """A part of a machine: its class and below which attribute it is found, and its own attributes."""

    title: str
    lines: list[StateLine]


def described(machine: object) -> list[StateTable]:
    """The machine, then its parts, each before those that it holds."""
    return list(_tables(machine, (), set()))


def _tables(thing: object, path: tuple[str, ...], seen: set[int]) -> Iterator[StateTable]:
    seen.add(id(thing))
    kind = type(thing).__name__
    lines: list[StateLine] = []
    parts: list[tuple[str, object]] = []
    for attribute, value in attributes_of(thing):
        name = attribute.lstrip("_")
        held = list(_parts_in(name, value))
        parts += held
        if not held and _has_words(value):
            lines.append(_line(name, value))
    yield StateTable(f"{'.'.join(path)}: {kind}" if path else kind, lines)
    for name, part in parts:
        if len(path) < _DEPTH_MAX and id(part) not in seen:
            yield from _tables(part, (*path, name), seen)


def _parts_in(name: str, value: Any) -> Iterator[tuple[str, object]]:
    """The value if it is a part, or the parts that it contains."""
    if is_part(type(value)):
        yield name, value
    elif isinstance(value, Mapping | list | tuple | deque):
        keyed = value.items() if isinstance(value, Mapping) else enumerate(value)
        first = islice(keyed, _ENTRIES_MAX)
        yield from ((f"{name}[{_words(key)}]", each) for key, each in first if is_part(type(each)))


def _has_words(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_has_words(key) and _has_words(each) for key, each in islice(value.items(), 1))
    if isinstance(value, Set) or type(value) in _LISTS:
        return all(map(_has_words, islice(value, 1)))
    return not isinstance(value, _NO_STATE) and not _is_mute(value)


def _is_mute(value: Any) -> bool:
    kind: Any = type(value)
    return kind.__repr__ is object.__repr__ and kind.__str__ is object.__str__


def _line(name: str, value: Any) -> StateLine:
    if isinstance(value, Mapping | Set) or type(value) in _LISTS:
        return StateLine(name, f"{len(value):,}", list(islice(_entries(value), _ENTRIES_MAX)))
    return StateLine(name, _words(value), [])


def _entries(value: Collection[Any]) -> Iterator[str]:
    if isinstance(value, Mapping):  # a mapping to nothing is a set that keeps its order
        return (_words(key) if each is None else f"{_words(key)}: {_words(each)}" for key, each in value.items())
    if isinstance(value, Set):
        return iter(sorted(map(_words, value)))
    return map(_words, value)


def _words(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping | Set) or type(value) in _LISTS:
        told = ", ".join(islice(_entries(value), _INSIDE_MAX))
        more = f" and {len(value) - _INSIDE_MAX:,} more" if len(value) > _INSIDE_MAX else ""
        return f"({told}{more})"
    text = f"a {type(value).__name__}" if _is_mute(value) else str(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
