"""Attribute values and their domains.

A value is an int, float, str or bool. Numbers (int and float) are one domain, strings another, booleans a third:
`True` is not 1. NaN is no value.
"""

from typing import Literal

Value = int | float | str | bool
Domain = Literal["number", "string", "boolean"]

_DOMAINS: dict[type, Domain] = {int: "number", float: "number", str: "string", bool: "boolean"}


def domain_of(value: object) -> Domain | None:
    """The value's domain; None if it is no value at all (NaN among them)."""
    domain = _DOMAINS.get(type(value))
    return None if value != value else domain  # only NaN differs from itself
