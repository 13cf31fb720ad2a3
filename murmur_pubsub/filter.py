"""Filters: what a subscriber wants, as a conjunction of predicates in normal form.

Theory. A filter names attributes; for each it has one `Constraint`, a set of values of one domain. Predicates on
one attribute are intersected when the filter is made, so `x > 5 AND x < 3` (or a number and a string wanted at
once) is the filter that matches nothing. An event matches when it has every named attribute, with a value in
the constraint's set; an absent attribute or a value of another domain makes any predicate false, `!=` and `NOT IN`
too. Only `IS NULL` asks for an event without the attribute: no event has one whose value is null.

A constraint is an interval of an ordered domain without finitely many points, or a finite set of values.
Booleans are always finite sets. Strings are ordered by code points, where `s + "\\0"` comes right after `s`, so
every string interval is written half-open and `LIKE 'p%'` is one. An interval of strings may have a suffix besides, in
which all of its strings end; like the interval, what has a suffix is infinite or a finite set. Numbers count as dense:
two intervals that differ only by values no float can take are different filters. Within that, covering is exact:
because a filter is a product of non-empty sets, one covers another just if each of its sets contains the other's. An
absent attribute counts as one more value there, which is in the sets of the attributes that are not named.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from murmur_pubsub.values import DOMAINS, INT_MAX, INT_MIN, Domain, Value, canonical, domain_of

_LAST_CHARACTER = chr(0x10FFFF)
_TOO_MANY_NULS = "\0" * 65
"""No string of a normal form ends so: the strings between `s` and `s` with n NULs are listed one by one."""
_BASE_16 = re.compile(r"-?0x[1-9a-f][0-9a-f]{0,1000}\Z")
RESERVED_WORDS = ("and", "between", "false", "in", "is", "like", "not", "null", "or", "true")
"""No attribute is called so, in any case."""
_NAME = re.compile(rf"(?!(?:{'|'.join(RESERVED_WORDS)})\Z)[A-Za-z_][A-Za-z0-9_.]*\Z", re.ASCII | re.IGNORECASE)
INTEGER_DIGITS_MAX = 1_000
_INTEGER_LIMIT = 10**INTEGER_DIGITS_MAX
_MSGPACK_INTEGERS = range(INT_MIN, INT_MAX + 1)
"""Wider integers travel as text in base 16."""
Bound = Value | None
"""An end of an interval; None is without end."""


class Constraint(NamedTuple):
    """The values allowed for one attribute.

    domain: None allows any value ("exists"), or none at all ("absent": the set is empty). values: the finite set,
    sorted; then the interval is unused. Otherwise the interval from `low` to `high` (None: unbounded) without the
    points `excluded` (sorted), whose ends belong to it unless `low_open` or `high_open`; of its strings those that end
    in `suffix`.
    """

    domain: Domain | None
    values: tuple[Value, ...] | None = None
    low: Bound = None
    low_open: bool = False
    high: Bound = None
    high_open: bool = False
    excluded: tuple[Value, ...] = ()
    suffix: str = ""

    @property
    def is_absence(self) -> bool:
        """Is the attribute to be absent?"""
        return self.values == ()

    def contains(self, value: Value) -> bool:
        """Is the value allowed?"""
        # One unpacking and no calls: indexes ask this of their newcomers, and of filters in doubt.
        low: Any
        high: Any
        domain, values, low, low_open, high, high_open, excluded, suffix = self
        if domain is None:
            return values is None
        if DOMAINS.get(type(value)) != domain or value != value:  # only NaN differs from itself
            return False
        if values is not None:
            return value in values
        if low is not None and not (value > low if low_open else value >= low):
            return False
        if high is not None and not (value < high if high_open else value <= high):
            return False
        if suffix and not value.endswith(suffix):  # type: ignore[union-attr]
            return False
        return value not in excluded

    def covers(self, other: "Constraint") -> bool:
        """Does this allow everything that the other, not empty, allows?"""
        if self.domain is None:
            return self.is_absence == other.is_absence
        if self.domain != other.domain:
            return False
        if other.values is not None:
            return all(self.contains(value) for value in other.values)
        if self.values is not None:
            return False
        return (
            other.suffix.endswith(self.suffix)
            and (_begins_no_later(self, other) or _is_bare_before(other, self.low))
            and _ends_no_earlier(self, other)
            and not any(other.contains(value) for value in self.excluded)
        )

    def intersect(self, other: "Constraint") -> "Constraint | None":
        """What both allow; None if that is nothing."""
        if self.is_absence or other.is_absence:
            return self if self == other else None
        if self.domain is None:
            return other
        if other.domain is None:
            return self
        if self.domain != other.domain:
            return None
        if self.values is not None:
            return finite(self.domain, [value for value in self.values if other.contains(value)])
        if other.values is not None:
            return other.intersect(self)
        low = other if _begins_no_later(self, other) else self
        high = other if _ends_no_earlier(self, other) else self
        shorter, suffix = sorted((self.suffix, other.suffix), key=len)
        if not suffix.endswith(shorter):
            return None
        excluded = (*self.excluded, *other.excluded)
        return interval(self.domain, low.low, low.low_open, high.high, high.high_open, excluded, suffix)


def _begins_no_later(first: Constraint, second: Constraint) -> bool:
    a: Any = first.low
    b: Any = second.low
    if a is None or b is None:
        return a is None
    return bool(a < b or (a == b and (second.low_open or not first.low_open)))


def _ends_no_earlier(first: Constraint, second: Constraint) -> bool:
    a: Any = first.high
    b: Any = second.high
    if a is None or b is None:
        return a is None
    return bool(a > b or (a == b and (second.high_open or not first.high_open)))


def _is_bare_before(wanted: Constraint, low: Bound) -> bool:
    """Does the constraint, in spite of its lower end, allow nothing below this? Where a suffix is wanted, an interval
    may begin with strings that do not have it; a high end is always the least there can be."""
    if not wanted.suffix:
        return False
    listed = _finite_strings(wanted._replace(high=low))
    return listed is not None and not any(map(wanted.contains, listed))


EXISTS = Constraint(None)
ABSENT = Constraint(None, ())
ANY_NUMBER = Constraint("number")
"""All numbers: no predicates say that, so no filter has it."""


def finite(domain: Domain, values: Iterable[Value]) -> Constraint | None:
    """The constraint that allows just these values of the domain; None if there are none. Errors as `interval`."""
    ordered = tuple(sorted(set(map(canonical, values))))
    for value in ordered:
        _refuse_many_nuls(value)
    return Constraint(domain, ordered) if ordered else None


def interval(
    domain: Domain,
    low: Bound = None,
    low_open: bool = False,
    high: Bound = None,
    high_open: bool = False,
    excluded: Iterable[Value] = (),
    suffix: str = "",
) -> Constraint | None:
    """The constraint for an interval without some points, in normal form; None if it is empty. Only strings have a
    suffix.

    Raises ValueError if a string of the normal form would end in more than 64 NULs, or the suffix has no text form.
    """
    if "%" in suffix or "_" in suffix:
        raise ValueError("a suffix with % or _")
    low, high, excluded = canonical(low), canonical(high), tuple(map(canonical, excluded))
    if domain == "boolean":
        return finite(domain, [value for value in (False, True) if value not in excluded])
    if domain == "string":
        if low is not None and low_open:
            low, low_open = str(low) + "\0", False
        if high is not None and not high_open:
            high, high_open = str(high) + "\0", True
        for constant in (low, high, suffix, *excluded):
            _refuse_many_nuls(constant)
    draft = Constraint(
        domain, None, low, low_open and low is not None, high, high_open and high is not None, (), suffix
    )
    points = sorted({value for value in excluded if draft.contains(value)})
    draft = _without_ends(draft, points)
    _refuse_many_nuls(draft.low)
    if draft.low is not None and draft.high is not None:
        low_value: Any = draft.low
        high_value: Any = draft.high
        if low_value > high_value or (low_value == high_value and (draft.low_open or draft.high_open)):
            return None
        if low_value == high_value:
            return Constraint(domain, (draft.low,))
    if domain == "string" and draft.high is not None:
        listed = _finite_strings(draft)
        if listed is not None:
            return finite(domain, [value for value in listed if value not in points and value.endswith(suffix)])
    return draft._replace(excluded=tuple(value for value in points if draft.contains(value)))


def _refuse_many_nuls(constant: Bound) -> None:
    if isinstance(constant, str) and constant.endswith(_TOO_MANY_NULS):
        raise ValueError("a string that ends in more than 64 NULs")


def _without_ends(draft: Constraint, points: list[Any]) -> Constraint:
    """Move or open the ends of the interval that are excluded points, so that equal sets look equal."""
    if draft.domain == "number":
        if draft.low in points:
            draft = draft._replace(low_open=True)
        if draft.high in points:
            draft = draft._replace(high_open=True)
        return draft
    # Strings without the suffix are no points of the set: from `s` on means the same as from `s` and a NUL on. The low
    # end is the least string of the set, if there is one, else the least that means the same.
    suffix = draft.suffix
    low = "" if draft.low is None else str(draft.low)
    while low.endswith("\0") and not low[:-1].endswith(suffix):
        low = low[:-1]
    while (least := _with_nuls(low, suffix)) is not None:
        low = least
        if low not in points:
            break
        low += "\0"
    draft = draft._replace(low=low or None)
    # A string has a direct predecessor only if it ends in NUL: only then can the last point be excluded.
    while isinstance(draft.high, str) and draft.high.endswith("\0"):
        before = draft.high[:-1]
        if before.endswith(suffix) and before not in points:
            break
        draft = draft._replace(high=before)
    return draft


def _with_nuls(text: str, suffix: str) -> str | None:
    """The text and as few NULs as make it end in the suffix; None if none do."""
    return next((each for count in range(len(suffix) + 1) if (each := text + "\0" * count).endswith(suffix)), None)


def _finite_strings(draft: Constraint) -> list[str] | None:
    """The strings of a half-open interval that holds finitely many: `s` to `s` with some NULs after it."""
    low = "" if draft.low is None else str(draft.low)
    high = str(draft.high)
    rest = high[len(low) :]
    if not high.startswith(low) or rest.strip("\0"):
        return None
    return [low + "\0" * count for count in range(len(rest))]


def prefix(text: str) -> Constraint | None:
    """The strings that begin with the text."""
    end = text.rstrip(_LAST_CHARACTER)
    if not end:
        return interval("string", text or None)
    following = ord(end[-1]) + 1
    if 0xD800 <= following <= 0xDFFF:
        following = 0xE000  # code points of surrogates occur in no text
    return interval("string", text, False, end[:-1] + chr(following), True)


def ending(text: str) -> Constraint | None:
    """The strings that end with the text."""
    return interval("string", suffix=text)


def point_of(name: str, constraint: Constraint) -> tuple[tuple[str, Domain], Value] | None:
    """The attribute, the domain and the one value that the constraint allows; None if it allows others."""
    if constraint.domain is None or constraint.values is None or len(constraint.values) != 1:
        return None
    return (name, constraint.domain), constraint.values[0]


class Filter:
    """An immutable conjunction of constraints, one for each attribute named; equal if the normal forms are."""

    __slots__ = ("_hash", "_text", "_wire", "constraints", "point")

    def __init__(self, constraints: Mapping[str, Constraint] | None) -> None:
        self.constraints: dict[str, Constraint] | None = None
        if constraints is not None:
            self.constraints = {name: constraints[name] for name in sorted(constraints)}
        self.point = (
            None if constraints is None or len(constraints) != 1 else point_of(*next(iter(constraints.items())))
        )
        """If the filter allows one value of one attribute: which. Another one such covers it only if it is equal."""
        self._text: str | None = None
        self._wire: tuple[Any, ...] | None = None
        self._hash = hash(None if self.constraints is None else tuple(self.constraints.items()))

    def __reduce__(self) -> tuple[type["Filter"], tuple[dict[str, Constraint] | None]]:
        return Filter, (self.constraints,)  # another process hashes strings in its own way

    @classmethod
    def conjunction(cls, parts: Iterable[tuple[str, Constraint | None]]) -> "Filter":
        """The filter of all (attribute, constraint) pairs; a constraint of None matches nothing."""
        constraints: dict[str, Constraint] = {}
        for name, constraint in parts:
            met = (
                constraint if constraint is None or name not in constraints else constraints[name].intersect(constraint)
            )
            if met is None:
                return NOTHING
            constraints[name] = met
        return cls(constraints)

    @property
    def matches_nothing(self) -> bool:
        """Is this the filter of a contradiction?"""
        return self.constraints is None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes it names, sorted."""
        return () if self.constraints is None else tuple(self.constraints)

    @property
    def required(self) -> tuple[str, ...]:
        """The attributes that an event must have, sorted."""
        return tuple(name for name, each in (self.constraints or {}).items() if not each.is_absence)

    def matches(self, attributes: Mapping[str, Value]) -> bool:
        """Does an event with these attributes match? Plain evaluation: the oracle of every index."""
        if self.constraints is None:
            return False
        for name, constraint in self.constraints.items():
            if name not in attributes:
                if constraint != ABSENT:
                    return False
            elif not constraint.contains(attributes[name]):
                return False
        return True

    def covers(self, other: "Filter") -> bool:
        """Does everything that matches the other match this one?"""
        if other.constraints is None:
            return True
        if self.constraints is None:
            return False
        if self.point is not None and other.point is not None:
            return self.point == other.point
        theirs = other.constraints
        for name, constraint in self.constraints.items():
            if name not in theirs or not constraint.covers(theirs[name]):
                return False
        return True

    def to_wire(self) -> tuple[Any, ...] | None:
        """Nested tuples for msgpack, made once; None for the filter that matches nothing."""
        if self._wire is None and self.constraints is not None:
            self._wire = tuple(
                (name, *map(_field_to_wire, each if each.suffix else each[:-1]))
                for name, each in self.constraints.items()
            )
        return self._wire

    @classmethod
    def from_wire(cls, body: Any) -> "Filter":
        """The filter whose `to_wire`, unpacked again, is the body; raises ValueError for anything else."""
        if body is None:
            return NOTHING
        if type(body) is not list:
            raise ValueError(f"a filter is a list, not a {type(body).__name__}")
        constraints: dict[str, Constraint] = {}
        for entry in body:
            name, constraint = _constraint_from_wire(entry)
            if name in constraints:
                raise ValueError(f"the attribute {name:.40} is constrained twice")
            constraints[name] = constraint
        return cls(constraints)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Filter) and self._hash == other._hash and self.constraints == other.constraints

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text_of(self)
        return self._text

    def __repr__(self) -> str:
        return f"Filter({str(self)!r})"


NOTHING = Filter(None)
EVERYTHING = Filter({})


def _constraint_from_wire(entry: Any) -> tuple[str, Constraint]:
    if type(entry) is not list or len(entry) not in (8, 9) or type(entry[0]) is not str:
        raise ValueError("a constraint is a list of a name and seven fields, or eight with a suffix")
    if entry[1] == "number":
        entry = [*entry[:2], *map(_number_field_from_wire, entry[2:])]
    name, domain, values, low, low_open, high, high_open, excluded, *suffix = entry
    if not _NAME.match(name):
        raise ValueError(f"{name!r:.40} is no name of an attribute")
    if type(low_open) is not bool or type(high_open) is not bool or type(excluded) not in (list, tuple):
        raise ValueError(f"malformed interval for {name:.40}")
    if values is not None and type(values) not in (list, tuple):
        raise ValueError(f"malformed set for {name:.40}")
    if suffix and (domain != "string" or type(suffix[0]) is not str or not suffix[0]):
        raise ValueError(f"malformed suffix for {name:.40}")
    if domain is None:
        made: Constraint | None = EXISTS if values is None else ABSENT
    elif domain == "number" or domain == "string" or domain == "boolean":
        ends = [end for end in (low, high) if end is not None]
        if not all(is_constant(value, domain) for value in (*(values or ()), *excluded, *ends)):
            raise ValueError(f"the constraint of {name:.40} has something that is no {domain}")
        if values is not None:
            made = finite(domain, values)
        else:
            made = interval(domain, low, low_open, high, high_open, excluded, *suffix)
    else:
        raise ValueError(f"unknown domain for {name:.40}")
    if made is None or made == ANY_NUMBER or list(made)[1:] != [*map(_tuple, entry[2:8]), *(suffix or [""])]:
        raise ValueError(f"the constraint of {name:.40} is not in normal form")
    return name, made


def is_constant(value: Any, domain: Domain) -> bool:
    """May a filter name this value of the domain? Infinities and integers of over 1,000 digits have no text form."""
    if type(value) is int:
        return domain == "number" and abs(value) < _INTEGER_LIMIT
    return domain_of(value) == domain and value not in (math.inf, -math.inf)


def _field_to_wire(field: Any) -> Any:
    if type(field) is tuple:
        return tuple(_field_to_wire(each) for each in field)
    return hex(field) if type(field) is int and field not in _MSGPACK_INTEGERS else field


def _number_field_from_wire(field: Any) -> Any:
    if type(field) in (list, tuple):
        return [_wide_integer(each) for each in field]
    return _wide_integer(field)


def _wide_integer(field: Any) -> Any:
    if type(field) is not str or not _BASE_16.match(field):
        return field
    number = int(field, 16)
    if number in _MSGPACK_INTEGERS:
        raise ValueError(f"{field} is not the shortest form of the number")
    return number


def _tuple(field: Any) -> Any:
    return tuple(field) if type(field) is list else field


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _text_of(wanted: Filter) -> str:
    if wanted.constraints is None:
        return "FALSE"
    if not wanted.constraints:
        return "TRUE"
    return " AND ".join(part for name, each in wanted.constraints.items() for part in _predicates(name, each))


def _predicates(name: str, constraint: Constraint) -> list[str]:
    if constraint.domain is None:
        return [f"{name} IS NULL" if constraint.is_absence else f"{name} IS NOT NULL"]
    if constraint.values is not None:
        if len(constraint.values) == 1:
            return [f"{name} = {_literal(constraint.values[0])}"]
        return [f"{name} IN ({', '.join(_literal(value) for value in constraint.values)})"]
    low, high = constraint.low, constraint.high
    parts = []
    if len(constraint.excluded) == 1:
        parts.append(f"{name} != {_literal(constraint.excluded[0])}")
    elif constraint.excluded:
        parts.append(f"{name} NOT IN ({', '.join(map(_literal, constraint.excluded))})")
    if constraint.suffix:
        parts.append(f"{name} LIKE {_literal('%' + constraint.suffix)}")
    if low is not None and high is not None and not constraint.low_open and not constraint.high_open:
        return [f"{name} BETWEEN {_literal(low)} AND {_literal(high)}", *parts]
    if low is not None:
        parts.insert(0, f"{name} {'>' if constraint.low_open else '>='} {_literal(low)}")
    if high is not None:
        parts.insert(0, f"{name} {'<' if constraint.high_open else '<='} {_literal(high)}")
    if not parts:  # every string; `ANY_NUMBER` is in no filter
        parts.append(f"{name} >= ''")
    return parts
