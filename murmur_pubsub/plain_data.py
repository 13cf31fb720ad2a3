"""Dataclasses as the plain data that a JSON document holds, and back, checked against their annotations.

A field may be annotated with `str`, `int`, `float`, `bool`, an enumeration (its member's name), a `Literal`, another
dataclass, `tuple[...]`, `Mapping[...]`, any of these `| None`, or `Any`. Keys of a mapping are texts in JSON; those
annotated `int` are converted.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from enum import EnumMeta, IntEnum
from typing import Any, Literal, TypeVar

from murmur_pubsub.errors import InputError

Kind = TypeVar("Kind")

_WORDS = {str: "a text", int: "an integer", float: "a number", bool: "true or false"}


def to_plain(value: Any) -> Any:
    """The value with its dataclasses as mappings, its tuples as lists and its enumeration members as names."""
    if isinstance(value, IntEnum):
        return value.name
    if dataclasses.is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(each) for each in value]
    return value


def from_plain(kind: type[Kind], plain: Any, place: str, key: str = "") -> Kind:
    """The value of that kind; raises `InputError` naming place and key for what is none.

    A dataclass may check itself: the `InputError` that it raises is raised again with the key where the value stands.
    """
    return typing.cast(Kind, _read(kind, plain, place, key))


def _read(kind: Any, plain: Any, place: str, key: str) -> Any:
    if kind is Any:
        return plain
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, plain, place, key)
    if isinstance(kind, EnumMeta):
        if not isinstance(plain, str) or plain not in kind.__members__:
            raise _error(place, key, plain, ", ".join(kind.__members__))
        return kind[plain]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if plain not in arguments:
            raise _error(place, key, plain, ", ".join(map(str, arguments)))
        return plain
    if origin in (types.UnionType, typing.Union):
        (given,) = (each for each in arguments if each is not types.NoneType)
        return None if plain is None else _read(given, plain, place, key)
    if origin is tuple:
        return _read_tuple(arguments, plain, place, key)
    if origin is Mapping:
        return _read_mapping(arguments, plain, place, key)
    if type(plain) is not kind and not (kind is float and type(plain) is int):
        raise _error(place, key, plain, _WORDS[kind])
    return plain


def _read_dataclass(kind: Any, plain: Any, place: str, key: str) -> Any:
    annotations = _annotations(kind)
    if not isinstance(plain, Mapping):
        raise _error(place, key, plain, f"a mapping with the keys {', '.join(annotations)}")
    for name in plain:
        if name not in annotations:
            raise InputError(_place(place, _below(key, name)), "an unknown key", ", ".join(annotations))
    for field in dataclasses.fields(kind):
        if field.name not in plain and field.default is field.default_factory is dataclasses.MISSING:
            raise InputError(_place(place, _below(key, field.name)), "nothing", "a value: this key is required")
    values = {name: _read(annotations[name], each, place, _below(key, name)) for name, each in plain.items()}
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(_place(place, key or error.place), error.found, error.allowed) from None


def _read_tuple(kinds: tuple[Any, ...], plain: Any, place: str, key: str) -> tuple[Any, ...]:
    endless = kinds[-1] is Ellipsis
    if not isinstance(plain, list) or not (endless or len(plain) == len(kinds)):
        raise _error(place, key, plain, "a list" if endless else f"a list of {len(kinds)}")
    each_kind = kinds[:1] * len(plain) if endless else kinds
    return tuple(
        _read(kind, each, place, f"{key}[{number}]")
        for number, (kind, each) in enumerate(zip(each_kind, plain, strict=True))
    )


def _read_mapping(kinds: tuple[Any, Any], plain: Any, place: str, key: str) -> dict[Any, Any]:
    key_kind, kind = kinds
    if not isinstance(plain, Mapping):
        raise _error(place, key, plain, "a mapping")
    values = {name: _read(kind, each, place, _below(key, name)) for name, each in plain.items()}
    if key_kind is not int:
        return values
    try:
        return {int(name): each for name, each in values.items()}
    except ValueError:
        raise _error(place, key, plain, "a mapping whose keys are integers") from None


@functools.cache
def _annotations(kind: Any) -> Mapping[str, Any]:
    """The fields of the dataclass and what each is annotated with."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _below(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _place(place: str, key: str) -> str:
    return f"{place}, key {key}" if key else place


def _error(place: str, key: str, found: Any, allowed: str) -> InputError:
    return InputError(_place(place, key), f"{found!r:.60}", allowed)
