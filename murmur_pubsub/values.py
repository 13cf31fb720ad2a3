"""Attribute values and their domains.

A value is an int, float, str or bool. Numbers (int and float) are one domain, strings another, booleans a third:
`True` is not 1. NaN is no value. An event may have what is finite, fits 64 bits and can be written down as text.
"""

import math
from typing import Any, Literal

Value = int | float | str | bool
Domain = Literal["number", "string", "boolean"]

SENDABLE = "a finite number of at most 64 bits, a text or a boolean"
"""What an attribute of an event may be, in words."""
INT_MIN, INT_MAX = -(1 << 63), (1 << 64) - 1
"""The integers that msgpack can carry."""

DOMAINS: dict[type, Domain] = {int: "number", float: "number", str: "string", bool: "boolean"}


def domain_of(value: object) -> Domain | None:
    """The value's domain; None if it is no value at all (NaN among them)."""
    domain = DOMAINS.get(type(value))
    return None if value != value else domain  # only NaN differs from itself


def canonical(value: Any) -> Any:
    """Of equal numbers always the same one, since what two brokers compare may be texts or bytes: an integer of at most
    64 bits where there is one, else a float. Anything else as it is."""
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and INT_MIN <= value <= INT_MAX else value
    if kind is int and not INT_MIN <= value <= INT_MAX:
        try:
            return float(value) if float(value) == value else value
        except OverflowError:
            return value
    return value


def is_sendable(value: object) -> bool:
    """May an event have this value? A filter may compare with more: an infinity bounds nothing, and does no harm."""
    kind = type(value)
    if kind is str:
        return is_text(value)
    if kind is int:
        return INT_MIN <= value <= INT_MAX  # type: ignore[operator]
    return kind is bool or (kind is float and math.isfinite(value))  # type: ignore[arg-type]


def is_text(value: object) -> bool:
    """Is it a text that has a form as bytes? Half of a surrogate pair, which JSON can write, has none."""
    return type(value) is str and (
        value.isprintable() or not any("\ud800" <= character <= "\udfff" for character in value)
    )
