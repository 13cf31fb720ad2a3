"""Reads a section of a file into a frozen dataclass: options of overlays and workloads, parameters of protocols.

The dataclass is the declaration: its fields are the keys, their annotations the types, and what it raises when it is
made (`InputError`, whose place is a field) is what it does not allow. Pydantic checks types here, so that the pure
floors, where the dataclasses live, do without it.
"""

import dataclasses
import datetime
import functools
import re
import types
from collections.abc import Callable, Hashable, Mapping
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from murmur_pubsub.errors import InputError
from murmur_pubsub.units import Unit
from murmuration.scenario.changes import KeyPath
from murmuration.scenario.durations import duration_text, parse_in

Options = TypeVar("Options")
At = Callable[[KeyPath, str, str], InputError]
"""Makes the error for a key path, what was found and what is allowed."""


def at_key(path: KeyPath, found: str, allowed: str) -> InputError:
    """The error at a key that stands in no file."""
    return InputError(".".join(path), found, allowed)


_SUFFIXES = {Unit.MICROSECONDS: "_us", Unit.MILLISECONDS: "_ms"}
_UNION_MEMBER = re.compile(
    r"int|float|str|bool|none|constrained-\w+|literal\[.*\]|(dict|list|tuple|function-\w+)[\[(].*[\])]"
)
_WORDS = {
    "string_pattern_mismatch": "letters, digits, '-' and '_', 60 at most",  # the one pattern is that of names
    "string_type": "a text",
    "model_type": "a mapping of keys",
    "dict_type": "a mapping of keys",
    "list_type": "a list",
    "int_parsing": "a valid integer",
    "float_parsing": "a valid number",
}
_NUMBER = re.compile(r"\d+")
_SCIENTIFIC = re.compile(r"\d+(\.\d+)?[eE][+-]?\d+")


def read_options(kind: type[Options], given: Any, path: KeyPath, at: At = at_key) -> Options:
    """The options of that kind under the key path; raises `InputError`, made by `at`."""
    keys = keys_of(kind)
    allowed = ", ".join(keys) or "no key: it takes no parameters"
    if not isinstance(given, Mapping):
        raise at(path, repr(given)[:80], f"a mapping with some of the keys {allowed}")
    for key in given:
        if key not in keys:
            raise at((*path, str(key)), "an unknown key", allowed)
    try:
        values = _model_of(cast(Hashable, kind)).model_validate(dict(given))
    except ValidationError as error:
        raise _first_error(error, path, at) from None
    try:
        return kind(**{name: getattr(values, name) for name in values.model_fields_set})
    except InputError as error:
        raise _in_the_file(error, kind, given, path, at) from None


def _in_the_file(error: InputError, kind: type[Any], given: Mapping[str, Any], path: KeyPath, at: At) -> InputError:
    """The dataclass's own error, with the key and the times as the file has them."""
    field, *rest = error.place.split(".")
    if field == path[0]:
        return at((field, *rest), error.found, error.allowed)
    unit = unit_of(get_type_hints(kind, include_extras=True).get(field))
    key = next((key for key, name in keys_of(kind).items() if name == field), field)
    if unit is None:
        return at((*path, key, *rest), error.found, error.allowed)
    found = repr(given[key]) if key in given else error.found
    return at(
        (*path, key), found, _NUMBER.sub(lambda number: duration_text(int(number[0]) * unit.value), error.allowed)
    )


def keys_of(kind: type[Any]) -> dict[str, str]:
    """The keys that a section may have, with the names of their fields."""
    hints = get_type_hints(kind, include_extras=True)
    return {_key_of(each.name, hints[each.name]): each.name for each in dataclasses.fields(kind) if each.init}


def unit_of(annotation: Any) -> Unit | None:
    """The unit of a time, also of one that may be absent, or of each of several."""
    found = [each for each in getattr(annotation, "__metadata__", ()) if isinstance(each, Unit)]
    found += [unit for each in get_args(annotation) if (unit := unit_of(each)) is not None]
    return found[0] if found else None


def _key_of(name: str, annotation: Any) -> str:
    unit = unit_of(annotation)
    return name if unit is None else name.removesuffix(_SUFFIXES[unit])


@functools.cache
def _model_of(kind: Hashable) -> type[BaseModel]:
    assert isinstance(kind, type)
    hints = get_type_hints(kind, include_extras=True)
    fields: dict[str, Any] = {}
    for each in dataclasses.fields(kind):
        if each.init:
            required = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
            alias = _key_of(each.name, hints[each.name])
            fields[each.name] = (_readable(hints[each.name]), Field(... if required else None, alias=alias))
    return create_model(kind.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def _readable(annotation: Any) -> Any:
    """The annotation as a file is read by it: times are texts, and a number is no text and no truth value."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        unit = unit_of(annotation)
        return annotation if unit is None else Annotated[int, BeforeValidator(functools.partial(parse_in, unit))]
    if annotation in (int, float, bool):
        return Annotated[annotation, BeforeValidator(number_of), Field(strict=True)]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(_readable, arguments))]  # noqa: UP007 - the members are known at run time only
    if origin in (tuple, list, dict):
        return origin[tuple(each if each is ... else _readable(each) for each in arguments)]
    return annotation


def number_of(value: Any) -> Any:
    """YAML takes 1e9 for a text: its numbers with an exponent need a sign and a point."""
    if isinstance(value, str) and _SCIENTIFIC.fullmatch(value):
        number = float(value)
        return int(number) if number.is_integer() else number
    return value


def _first_error(error: ValidationError, path: KeyPath, at: At) -> InputError:
    first = error.errors()[0]
    place = (*path, *(str(step) for step in first["loc"] if not is_of_union(step)))
    if first["type"] == "missing":
        return at(place, "nothing", "a value: this key is required")
    return at(place, *in_words(first))


def in_words(error: Mapping[str, Any]) -> tuple[str, str]:
    """What was found and what is allowed, of an error of pydantic's: some of its words are about Python."""
    value, cause = error["input"], error.get("ctx", {}).get("error")
    found = str(value) if isinstance(value, datetime.date) else repr(value)[:80]
    allowed = error["msg"].removeprefix("Input should be ") if cause is None else str(cause)
    return found, _WORDS.get(error["type"], allowed)


def is_of_union(step: Any) -> bool:
    """Is the step of a place pydantic's name for a member of a union, and no key?"""
    return isinstance(step, str) and _UNION_MEMBER.fullmatch(step) is not None
