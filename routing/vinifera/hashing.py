"""The order-preserving hash: each attribute's domain onto the whole identifier space (Vinifera IV-A).

Numbers of a declared domain are spread evenly over it; what lies outside is clamped to its ends, so that order is kept
and nothing gets lost. Strings are taken by their first characters in the order of code points, relative to the domain's
ends. An attribute without a declared domain takes all values: numbers x by x / (1 + |x|), strings from '' up. The hash
never reverses an order; values closer than a 2^32nd of the domain share a hash, and events are matched by their values.
"""

import math
from collections.abc import Mapping
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter import Constraint
from murmur_pubsub.intervals import Interval
from murmur_pubsub.values import Value
from routing.smallworld.ring import RING_SIZE

_LAST = RING_SIZE - 1
_CHARACTERS = 6
_STRINGS = 256**_CHARACTERS
_BOOLEANS = {False: RING_SIZE // 4, True: 3 * RING_SIZE // 4}


class AttributeDomain:
    """The values of one attribute; without ends: all of them. Raises `InputError` naming the place."""

    def __init__(self, place: str, low: Any = None, high: Any = None) -> None:
        numbers = all(type(end) in (int, float) for end in (low, high))
        strings = all(type(end) is str for end in (low, high))
        if (low is not None or high is not None) and not numbers and not strings:
            raise InputError(place, f"min {low!r}, max {high!r}", "two numbers, or two strings")
        if (numbers or strings) and not low < high:
            raise InputError(place, f"min {low!r}, max {high!r}", "a min below the max")
        self._numbers = _finite(place, low, high) if numbers else None
        # The two ends may be farther apart than the largest float.
        self._scale = 0.5 if self._numbers and math.isinf(self._numbers[1] - self._numbers[0]) else 1.0
        self._strings = (_of_string(low), _of_string(high)) if strings else (0, _STRINGS - 1)
        if self._strings[0] >= self._strings[1]:
            raise InputError(place, f"min {low!r}, max {high!r}", f"strings that differ in their first {_CHARACTERS}")

    def hash(self, value: Value) -> int:
        """The value's place in the identifier space."""
        if isinstance(value, bool):
            return _BOOLEANS[value]
        if isinstance(value, str):
            low, high = self._strings
            return _within((_of_string(value) - low) * _LAST // (high - low))
        if self._numbers is None:
            try:
                number = float(value)
            except OverflowError:
                return _LAST if value > 0 else 0
            if number in (float("inf"), float("-inf")):
                return _LAST if number > 0 else 0
            # Written so that each operation by itself keeps the order, rounded too: x / (1 + |x|) does not.
            share = math.copysign(1 - 1 / (1 + abs(number)), number)
            return _within(int((share + 1) / 2 * _LAST))
        start, end = self._numbers
        if value <= start:
            return 0
        if value >= end:
            return _LAST
        scale = self._scale
        return _within(int((value * scale - start * scale) / (end * scale - start * scale) * _LAST))

    def ranges(self, constraint: Constraint) -> list[Interval]:
        """Ranges that hold the hash of every value that the constraint allows."""
        if constraint.values is not None:
            return [(each, each) for each in dict.fromkeys(map(self.hash, constraint.values))]
        low = 0 if constraint.low is None else self.hash(constraint.low)
        high = _LAST if constraint.high is None else self.hash(constraint.high)
        return [(low, high)]


def read_domains(given: Any, place: str) -> dict[str, AttributeDomain]:
    """The declared domains, `{name: {min: …, max: …}}`; raises `InputError`."""
    if not isinstance(given, Mapping):
        raise InputError(place, repr(given), "a mapping from attribute to {min: …, max: …}")
    domains = {}
    for name, ends in given.items():
        at = f"{place}.{name}"
        if not isinstance(ends, Mapping) or set(ends) != {"min", "max"}:
            raise InputError(at, repr(ends), "{min: …, max: …}")
        domains[name] = AttributeDomain(at, ends["min"], ends["max"])
    return domains


def _finite(place: str, low: float, high: float) -> tuple[float, float]:
    try:
        ends = float(low), float(high)
    except OverflowError:
        ends = -math.inf, math.inf
    if not all(map(math.isfinite, ends)):
        raise InputError(place, f"min {low!r}, max {high!r}", "ends of at most 1.7e308 (no domain: all numbers)")
    return ends


def _of_string(text: str) -> int:
    number = 0
    beyond = False  # a character above those that are told apart: whatever follows, the string comes last
    for at in range(_CHARACTERS):
        beyond = beyond or (at < len(text) and ord(text[at]) > 255)
        number = number * 256 + (255 if beyond else ord(text[at]) if at < len(text) else 0)
    return number


def _within(number: int) -> int:
    return min(max(number, 0), _LAST)
