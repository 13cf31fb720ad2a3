"""Times as people write them, with their unit."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from murmur_pubsub.errors import InputError
from murmur_pubsub.units import Unit

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_LONGEST_H = 100_000
"""Eleven years: what protocols make of it by doubling is a delay that a runtime can count for long."""
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h)\s*")


def parse_duration(value: Any) -> int:
    """Microseconds from a text such as "5 ms"; raises ValueError."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a time with its unit, such as '5 ms' (units: us, ms, s, min, h)")
    time_us = float(match[1]) * _UNITS_US[match[2]]
    if time_us > _LONGEST_H * _UNITS_US["h"]:
        raise ValueError(f"at most {_LONGEST_H:,} h")
    return round(time_us)


def duration_of(text: str, place: str) -> int:
    """The same of a text that a program gives; raises `InputError` naming `place`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InputError(place, repr(text), str(error)) from None


def parse_in(unit: Unit, value: Any) -> int:
    """The same in that unit; raises ValueError for a time that is no whole number of them."""
    whole, rest = divmod(parse_duration(value), unit.value)
    if rest:
        raise ValueError(f"a whole number of {unit.name.lower()}")
    return whole


def duration_text(value_us: int) -> str:
    """The shortest text that `parse_duration` reads back, such as "30 ms"."""
    if not value_us:
        return "0 s"
    unit = next(name for name in reversed(_UNITS_US) if value_us % _UNITS_US[name] == 0)
    return f"{value_us // _UNITS_US[unit]} {unit}"


DurationUs = Annotated[int, Unit.MICROSECONDS, BeforeValidator(parse_duration)]
