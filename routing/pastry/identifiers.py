"""Identifiers of a fixed number of digits, and the ranges of identifiers that share their first digits.

A base is a power of two, as Pastry's 2^b is: the digits two identifiers share can then be read off their exclusive or.
"""

from typing import NamedTuple

from murmur_pubsub.errors import InputError

_IDENTIFIER_BITS_MAX = 62
"""Identifiers travel as integers and go round the ring: they stay small ones."""


class IdentifierRange(NamedTuple):
    """All identifiers whose first `length` digits are those of the number `value`; of length 0: the whole space."""

    value: int
    length: int


FULL_RANGE = IdentifierRange(0, 0)


class IdentifierSpace:
    """The identifiers of `digits` digits in `base`; raises `InputError` for a space that Pastry cannot use."""

    def __init__(self, base: int, digits: int) -> None:
        if base < 2 or base & (base - 1):
            raise InputError("pastry.base", str(base), "a power of two from 2 on: 2, 4, 8, 16, …")
        self.bits_a_digit = base.bit_length() - 1
        if not 1 <= digits * self.bits_a_digit <= _IDENTIFIER_BITS_MAX:
            most = _IDENTIFIER_BITS_MAX // self.bits_a_digit
            raise InputError("pastry.digits", str(digits), f"1 to {most} digits in base {base}")
        self.base = base
        self.digits = digits
        self.size: int = base**digits
        self._shifts = [self.bits_a_digit * (digits - length) for length in range(digits + 1)]
        self._bits = digits * self.bits_a_digit

    def check(self, identifier: int, place: str) -> None:
        """Raise `InputError` naming the place if this is no identifier of the space."""
        if not 0 <= identifier < self.size:
            allowed = f"0 to {self.size - 1}: {self.digits} digits in base {self.base}"
            raise InputError(place, str(identifier), allowed)

    def shared(self, first: int, second: int) -> int:
        """How many leading digits the two have in common."""
        return (self._bits - (first ^ second).bit_length()) // self.bits_a_digit

    def range_of(self, identifier: int, length: int) -> IdentifierRange:
        """The range of that length that the identifier is in."""
        return IdentifierRange(identifier >> self._shifts[length], length)

    def contains(self, wide: IdentifierRange, identifier: int) -> bool:
        """Is the identifier in the range?"""
        return identifier >> self._shifts[wide.length] == wide.value

    def within(self, narrow: IdentifierRange, wide: IdentifierRange) -> bool:
        """Is the one range part of the other (or the same)?"""
        if narrow.length < wide.length:
            return False
        return narrow.value >> (self.bits_a_digit * (narrow.length - wide.length)) == wide.value

    def first(self, wide: IdentifierRange) -> int:
        """The lowest identifier of the range."""
        return wide.value << self._shifts[wide.length]

    def middle(self, wide: IdentifierRange) -> int:
        """The range's middle identifier (IRBR 5.5): in base 4 with 4 digits that of 12xx is 1220."""
        return self.first(wide) + (1 << self._shifts[wide.length]) // 2

    def distance(self, first: int, second: int) -> int:
        """How far the two are apart on the ring."""
        apart = abs(first - second)
        return min(apart, self.size - apart)

    def text(self, identifier: int) -> str:
        """The identifier's digits (those above 9 as letters)."""
        digits = []
        for position in range(self.digits):
            digit = identifier >> self._shifts[position + 1] & (self.base - 1)
            digits.append("0123456789abcdefghijklmnopqrstuvwxyz"[digit] if digit < 36 else f"<{digit}>")
        return "".join(digits)
