"""Filters at their borders: what matches, covering, intersection and the normal form, with no value drawn at random."""

import itertools
import math
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from murmur_pubsub.filter import (
    ABSENT,
    EVERYTHING,
    EXISTS,
    NOTHING,
    Constraint,
    Filter,
    ending,
    finite,
    interval,
    is_constant,
    prefix,
)
from murmur_pubsub.values import Value

SETS_OF_NUMBERS: list[list[Value]] = [[1], [2], [1, 2], [1.5], [1, 1.5, 3]]
NUMBERS: list[Value] = [0, 1, 1.25, 1.5, 1.75, 2, 2.5, 2.75, 3, 4]
"""Two between any two ends, so that none of the intervals without a point or two looks empty or finite."""
STRINGS: list[Value] = ["".join(each) for size in range(7) for each in itertools.product("\0ab", repeat=size)]
"""The constants are of one character, the suffixes of two: strings of six tell the sets apart."""
SUFFIXES = ("", "\0", "a", "a\0", "\0\0")


def intervals(
    domain: Any, ends: Sequence[Value | None], excluded: Sequence[Sequence[Value]], suffixes: Sequence[str] = ("",)
) -> Iterator[Constraint | None]:
    """All of these ends, open and closed, without those points."""
    opens = (False, True)
    for low, low_open, high, high_open in itertools.product(ends, opens, ends, opens):
        for points, suffix in itertools.product(excluded, suffixes):
            yield interval(domain, low, low_open, high, high_open, points, suffix)


def numbers() -> Iterator[Constraint | None]:
    yield from intervals("number", (None, 1, 2, 3), ((), (1,), (2,), (1.5, 2)))
    yield from (finite("number", each) for each in SETS_OF_NUMBERS)


def strings() -> Iterator[Constraint | None]:
    yield from intervals("string", (None, "", "\0", "a"), ((), ("",), ("a",)), SUFFIXES)
    yield from (finite("string", each) for each in (["a"], ["", "a"], ["a\0"], ["\0", "a"]))
    yield from (prefix(each) for each in ("", "a"))


@pytest.mark.parametrize(("made", "universe"), [(numbers, NUMBERS), (strings, STRINGS)])
def test_sets_are_one_normal_form_and_cover_and_meet_just_as_their_values_do(made: Any, universe: list[Value]) -> None:
    def held(each: Constraint | None) -> int:
        return sum(1 << place for place, value in enumerate(universe) if each is not None and each.contains(value))

    by_values: dict[int, Constraint | None] = {}
    for each in made():
        values = held(each)
        assert (each is None) == (values == 0), each
        assert by_values.setdefault(values, each) == each
    several = [(values, each) for values, each in by_values.items() if each is not None]
    assert len(several) > 30
    for (ours, first), (theirs, second) in itertools.product(several, repeat=2):
        assert first.covers(second) == (ours & theirs == theirs), (first, second)
        met = first.intersect(second)
        assert held(met) == ours & theirs, (first, second)
        assert (met is None) == (ours & theirs == 0), (first, second)


def number(low: Value | None, low_open: bool, high: Value | None, high_open: bool) -> Constraint:
    made = interval("number", low, low_open, high, high_open)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("low_open", "high_open", "inside"),
    [
        (False, False, [1, 1.0, 1.5, 2, 2.0]),
        (True, False, [1.5, 2, 2.0]),
        (False, True, [1, 1.0, 1.5]),
        (True, True, [1.5]),
    ],
)
def test_an_end_belongs_to_an_interval_unless_it_is_open(low_open: bool, high_open: bool, inside: list[Value]) -> None:
    wanted = number(1, low_open, 2, high_open)
    asked: list[Value] = [0, 0.999, 1, 1.0, 1.5, 2, 2.0, 2.001, 3, True, "1", "1.5", math.nan]
    assert [value for value in asked if wanted.contains(value)] == inside


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ((1, False, None, False), (1, True, None, False)),
        ((None, False, 2, False), (None, False, 2, True)),
        ((1, False, 2, False), (1, True, 2, False)),
        ((1, False, 2, False), (1, False, 2, True)),
        ((1, True, 2, True), (1.5, False, 2, True)),
        ((1, True, 2, True), (1, True, 1.5, False)),
        ((1, True, None, False), (1, True, 2, True)),
        ((None, False, 2, True), (1, True, 2, True)),
    ],
)
def test_the_wider_of_two_intervals_covers_the_other_and_meets_it_in_the_other(wide: Any, narrow: Any) -> None:
    outer, inner = number(*wide), number(*narrow)
    assert outer.covers(inner)
    assert not inner.covers(outer)
    assert outer.intersect(inner) == inner.intersect(outer) == inner
    assert outer.covers(outer)


@pytest.mark.parametrize(
    ("first", "second", "met"),
    [
        ((None, False, 1, False), (1, False, None, False), (1,)),
        ((None, False, 1, True), (1, False, None, False), None),
        ((None, False, 1, False), (1, True, None, False), None),
        ((None, False, 1, True), (1, True, None, False), None),
        ((0, False, 1, False), (1.0, False, 2, False), (1,)),
        ((0, False, 1, False), (1.5, False, 2, False), None),
    ],
)
def test_intervals_that_touch_meet_only_where_both_hold_the_end(first: Any, second: Any, met: Any) -> None:
    expected = None if met is None else Constraint("number", met)
    assert number(*first).intersect(number(*second)) == expected
    assert number(*second).intersect(number(*first)) == expected


def test_a_number_is_one_value_in_all_its_types_and_true_is_none_of_them() -> None:
    assert finite("number", [1, 1.0]) == finite("number", [1.0]) == interval("number", 1, False, 1.0)
    assert interval("number", 1, excluded=[1.0]) == interval("number", 1.0, True)
    one, true, text = Constraint("number", (1,)), Constraint("boolean", (True,)), Constraint("string", ("1",))
    assert [value for value in (1, 1.0, True, "1") if one.contains(value)] == [1, 1.0]
    assert one.contains(1.0)
    assert true.contains(True)
    assert not any(true.contains(value) for value in (1, 1.0, "TRUE", False))
    for first, second in itertools.permutations((one, true, text), 2):
        assert not first.covers(second)
        assert first.intersect(second) is None
        assert Filter({"x": first}) != Filter({"x": second})
    assert Filter({"x": one}) == Filter({"x": Constraint("number", (1.0,))})


def test_a_boolean_interval_is_the_set_of_what_is_left() -> None:
    assert interval("boolean") == Constraint("boolean", (False, True))
    assert interval("boolean", excluded=[True]) == Constraint("boolean", (False,))
    assert interval("boolean", excluded=[False]) == Constraint("boolean", (True,))
    assert interval("boolean", excluded=[False, True]) is None
    assert finite("boolean", []) is None


def test_a_set_is_sorted_and_has_no_value_twice() -> None:
    assert finite("number", [3, 1, 2, 1]) == Constraint("number", (1, 2, 3))
    assert finite("string", ["b", "", "a"]) == Constraint("string", ("", "a", "b"))


def test_excluded_points_that_are_outside_or_at_an_end_are_not_named() -> None:
    assert interval("number", 1, False, 3, False, [0, 4, 2, 2.0]) == Constraint(
        "number", None, 1, False, 3, False, (2,)
    )
    assert interval("number", 1, False, 3, False, [1, 3]) == Constraint("number", None, 1, True, 3, True)
    assert interval("number", 1, False, 1, False, [1]) is None
    assert interval("number", excluded=[2, 1]) == Constraint("number", excluded=(1, 2))


def test_an_end_that_is_not_there_is_not_open() -> None:
    """Or equal sets would look different."""
    for domain in ("number", "string"):
        assert interval(domain, None, True, None, True) == interval(domain)
        assert interval(domain) == Constraint(domain)


def test_an_interval_between_equal_ends_is_the_end_or_nothing() -> None:
    assert interval("number", 1, False, 1, False) == Constraint("number", (1,))
    for low_open, high_open in ((True, False), (False, True), (True, True)):
        assert interval("number", 1, low_open, 1, high_open) is None
    assert interval("number", 2, False, 1, False) is None


def test_a_suffix_narrows_and_of_two_the_longer_one_is_wanted() -> None:
    short, long, other = (Constraint("string", suffix=text) for text in ("b", "ab", "a"))
    assert [ending(text) for text in ("b", "ab", "a")] == [short, long, other]
    assert short.covers(long)
    assert not long.covers(short)
    assert short.intersect(long) == long.intersect(short) == long
    assert other.intersect(short) is short.intersect(other) is None
    assert Constraint("string").covers(long)
    assert not long.covers(Constraint("string"))


def test_an_interval_that_begins_with_strings_without_its_suffix_is_covered_by_one_that_begins_behind_them() -> None:
    ends_in_b = interval("string", "a", suffix="b")
    behind = interval("string", "a\0\0")
    assert ends_in_b is not None
    assert behind is not None
    assert behind.covers(ends_in_b)
    further = interval("string", "aa")
    assert further is not None
    assert not further.covers(ends_in_b), "it leaves out what begins with `a`, a NUL and more"
    bare = interval("string", "a")
    assert bare is not None
    assert not behind.covers(bare)
    ends_in_nul = interval("string", "a", suffix="\0")
    assert ends_in_nul is not None
    assert not behind.covers(ends_in_nul), "it leaves out `a` and a NUL"


@pytest.mark.parametrize(
    ("text", "last", "following"),
    [
        ("a", "a\U0010ffff", "b"),
        ("a\U0010fffe", "a\U0010fffe\U0010ffff", "a\U0010ffff"),
        ("a\U0010ffff\U0010ffff", "a\U0010ffff\U0010ffff\U0010ffff", "b"),
        ("ab", "ab\U0010ffff", "ac"),
        ("\ud7fe", "\ud7fe\U0010ffff", "\ud7ff"),
        ("\ud7ff", "\ud7ff\U0010ffff", "\ue000"),
        ("\ue000", "\ue000\U0010ffff", "\ue001"),
    ],
)
def test_a_prefix_is_the_strings_up_to_the_next_that_begins_otherwise(text: str, last: str, following: str) -> None:
    made = prefix(text)
    assert made == Constraint("string", None, text, False, following, True)
    assert made is not None
    assert made.contains(text)
    assert made.contains(last)
    assert not made.contains(following)
    assert not made.contains(text[:-1])


def test_a_prefix_of_nothing_but_last_characters_has_no_end() -> None:
    assert prefix("") == Constraint("string")
    assert prefix("\U0010ffff") == Constraint("string", None, "\U0010ffff")


def test_strings_may_end_in_64_nuls_and_no_more() -> None:
    most = "a" + "\0" * 64
    assert finite("string", [most]) == Constraint("string", (most,))
    assert interval("string", most) == Constraint("string", None, most)
    assert interval("string", None, False, most, True) == Constraint("string", None, None, False, most, True)
    assert interval("string", suffix="\0" * 64) == Constraint("string", None, "\0" * 64, suffix="\0" * 64)
    for refused in (
        {"low": most + "\0"},
        {"low": most, "low_open": True},
        {"high": most + "\0", "high_open": True},
        {"high": most},
        {"suffix": most + "\0"},
        {"excluded": [most + "\0"]},
        {"low": most, "excluded": [most]},
    ):
        with pytest.raises(ValueError, match="a string that ends in more than 64 NULs"):
            interval("string", **refused)
    with pytest.raises(ValueError, match="a string that ends in more than 64 NULs"):
        finite("string", ["a", most + "\0"])


def test_absence_meets_itself_and_nothing_else() -> None:
    one = Constraint("number", (1,))
    assert ABSENT.is_absence
    assert not EXISTS.is_absence
    assert not one.is_absence
    assert ABSENT.intersect(ABSENT) == ABSENT
    assert EXISTS.intersect(EXISTS) == EXISTS
    assert EXISTS.intersect(one) == one.intersect(EXISTS) == one
    for other in (EXISTS, one, Constraint("string")):
        assert ABSENT.intersect(other) is other.intersect(ABSENT) is None
        assert not ABSENT.covers(other)
        assert not other.covers(ABSENT)
    assert ABSENT.covers(ABSENT)
    assert EXISTS.covers(one)
    assert not one.covers(EXISTS)
    assert EXISTS.contains(0)
    assert EXISTS.contains("")
    assert not ABSENT.contains(0)


EXACTLY_ONE = Filter({"x": Constraint("number", (1,))})


@pytest.mark.parametrize(
    ("wanted", "event", "expected"),
    [
        (NOTHING, {}, False),
        (NOTHING, {"x": 1}, False),
        (EVERYTHING, {}, True),
        (EVERYTHING, {"x": 1}, True),
        (EXACTLY_ONE, {"x": 1, "y": 2}, True),
        (EXACTLY_ONE, {"x": 2, "y": 1}, False),
        (EXACTLY_ONE, {"y": 1}, False),
        (Filter({"x": EXISTS}), {"x": False}, True),
        (Filter({"x": EXISTS}), {"y": 1}, False),
        (Filter({"x": ABSENT}), {"x": 0}, False),
        (Filter({"x": ABSENT}), {"y": 1}, True),
        (Filter({"x": ABSENT, "y": EXISTS}), {"z": 1}, False),
    ],
)
def test_an_event_matches_if_every_attribute_named_is_as_wanted(
    wanted: Filter, event: Mapping[str, Value], expected: bool
) -> None:
    assert wanted.matches(event) is expected


def test_a_filter_covers_those_that_name_all_that_it_names_and_allow_no_more() -> None:
    two = Filter({"x": Constraint("number", (1,)), "y": EXISTS})
    assert EXACTLY_ONE.covers(two)
    assert not two.covers(EXACTLY_ONE)
    assert EVERYTHING.covers(two)
    assert not two.covers(EVERYTHING)
    assert two.covers(NOTHING)
    assert NOTHING.covers(NOTHING)
    assert not NOTHING.covers(two)
    assert not Filter({"y": ABSENT}).covers(two)


def test_a_conjunction_of_what_cannot_be_is_nothing() -> None:
    one, two = Constraint("number", (1,)), Constraint("number", (2,))
    assert Filter.conjunction([]) == EVERYTHING
    assert Filter.conjunction([("x", one), ("y", None)]) == NOTHING
    assert Filter.conjunction([("x", None)]) == NOTHING
    assert Filter.conjunction([("x", one), ("x", two)]) == NOTHING
    assert Filter.conjunction([("y", two), ("x", one), ("x", EXISTS)]) == Filter({"x": one, "y": two})
    assert NOTHING.matches_nothing
    assert not EVERYTHING.matches_nothing


def test_a_filter_says_which_attributes_it_names_and_which_an_event_must_have() -> None:
    wanted = Filter({"z": EXISTS, "y": ABSENT, "x": Constraint("number", (1,))})
    assert wanted.attributes == ("x", "y", "z")
    assert wanted.required == ("x", "z")
    assert NOTHING.attributes == NOTHING.required == EVERYTHING.attributes == EVERYTHING.required == ()


def test_filters_are_told_apart_where_their_hashes_are_one() -> None:
    less, least = (Filter({"x": Constraint("number", (value,))}) for value in (-1, -2))
    assert hash(less) == hash(least), "as Python hashes -1 and -2"
    assert less != least
    assert less == Filter({"x": Constraint("number", (-1.0,))})
    assert less != "x = -1"
    assert NOTHING != EVERYTHING
    assert hash(NOTHING) != hash(EVERYTHING)


@pytest.mark.parametrize("wanted", [NOTHING, EVERYTHING, EXACTLY_ONE])
def test_a_pickled_filter_is_the_same_filter(wanted: Filter) -> None:
    again = pickle.loads(pickle.dumps(wanted))
    assert again == wanted
    assert again.constraints == wanted.constraints
    assert hash(again) == hash(wanted)


@pytest.mark.parametrize(
    ("value", "domain", "allowed"),
    [
        (10**1_000 - 1, "number", True),
        (10**1_000, "number", False),
        (1 - 10**1_000, "number", True),
        (-(10**1_000), "number", False),
        (1, "string", False),
        (1, "boolean", False),
        (True, "number", False),
        (True, "boolean", True),
        (1.5, "number", True),
        (math.inf, "number", False),
        (-math.inf, "number", False),
        (math.nan, "number", False),
        ("", "string", True),
        ("1", "number", False),
        (None, "string", False),
    ],
)
def test_a_filter_may_name_what_has_a_text_form_and_is_of_the_domain(value: Any, domain: Any, allowed: bool) -> None:
    assert is_constant(value, domain) is allowed


def test_strings_that_follow_each_other_are_a_set_without_the_excluded_ones() -> None:
    assert interval("string", "a", False, "a\0\0", False) == Constraint("string", ("a", "a\0", "a\0\0"))
    assert interval("string", "a", False, "a\0\0", False, ["a\0"]) == Constraint("string", ("a", "a\0\0"))


def test_an_interval_without_an_end_is_no_interval_up_to_the_word_for_none() -> None:
    for low in ("None", "Non", "N"):
        assert interval("string", low) == Constraint("string", None, low)
