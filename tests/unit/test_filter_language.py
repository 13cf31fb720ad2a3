"""NULL, NOT IN, suffixes and OR: what they mean, and covering held against all short strings."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter import EVERYTHING, NOTHING, Constraint, ending, finite, interval, prefix
from murmur_pubsub.filter_parser import parse_filter, parse_subscription, subscription_text
from murmur_pubsub.values import Value
from tests.strategies import attributes, same_types, subscription_texts

SHORT = ["".join(each) for size in range(8) for each in itertools.product("\0ab", repeat=size)]
"""The constants below are of at most two of the first two characters, so that strings of seven tell sets apart: an end
and NULs behind it, something else, and a suffix."""
texts = st.sampled_from(["".join(each) for size in range(3) for each in itertools.product("\0a", repeat=size)])


@st.composite
def string_sets(draw: st.DrawFn) -> Constraint | None:
    """An intersection of a few predicates on strings."""
    found: Constraint | None = prefix("")
    kinds = st.sampled_from(["low", "high", "ending", "ending", "prefix", "other", "one"])
    for kind in draw(st.lists(kinds, max_size=4)):
        text = draw(texts)
        made = {
            "low": interval("string", text, draw(st.booleans())),
            "high": interval("string", None, False, text, draw(st.booleans())),
            "ending": ending(text),
            "prefix": prefix(text),
            "other": interval("string", excluded=[text, draw(texts)]),
            "one": finite("string", [text, draw(texts)]),
        }[kind]
        found = None if found is None or made is None else found.intersect(made)
    return found


@given(string_sets(), string_sets())
@settings(max_examples=400, deadline=None)
def test_sets_of_strings_are_equal_and_cover_each_other_just_if_their_strings_do(
    first: Constraint | None, second: Constraint | None
) -> None:
    ours, theirs = ({text for text in SHORT if each is not None and each.contains(text)} for each in (first, second))
    assert (first is None) == (not ours)
    assert (first == second) == (ours == theirs)
    if first is None or second is None:
        return
    assert first.covers(second) == (ours >= theirs)
    met = first.intersect(second)
    assert {text for text in SHORT if met is not None and met.contains(text)} == ours & theirs


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("x NOT IN (1, 2)", {"x": 3}, True),
        ("x NOT IN (1, 2)", {"x": 2}, False),
        ("x NOT IN (1, 2)", {"y": 3}, False),  # as with !=, an event without the attribute does not match
        ("x NOT IN (1, 2)", {"x": "a"}, False),
        ("x IS NULL", {"y": 3}, True),
        ("x IS NULL", {"x": False}, False),
        ("x IS NULL AND y > 1", {"y": 3}, True),
        ("s LIKE '%ab'", {"s": "ab"}, True),
        ("s LIKE '%ab'", {"s": "b"}, False),
        ("s LIKE 'ab%' AND s LIKE '%bc'", {"s": "abc"}, True),  # the two may overlap
    ],
)
def test_what_an_event_without_the_attribute_or_with_another_end_matches(
    text: str, event: dict[str, Value], expected: bool
) -> None:
    assert parse_filter(text).matches(event) is expected


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("x > 1 OR y = 2 AND z IS NULL", ["x > 1", "y = 2 AND z IS NULL"]),
        ("(x > 1 AND y = 2) or (z = 3)", ["x > 1 AND y = 2", "z = 3"]),
        ("x > 2 OR x > 1 OR x > 3", ["x > 1"]),
        ("x = 1 OR x = 1", ["x = 1"]),
        ("x = 1 OR TRUE", ["TRUE"]),
        ("x = 1 OR FALSE", ["x = 1"]),
        ("FALSE OR x > 2 AND x < 1", ["FALSE"]),
        ("(TRUE)", ["TRUE"]),
    ],
)
def test_a_subscription_is_the_conjunctions_that_no_other_covers(text: str, filters: list[str]) -> None:
    assert parse_subscription(text) == tuple(map(parse_filter, filters))


def test_where_one_filter_is_meant_several_are_refused() -> None:
    with pytest.raises(InputError, match=r"a place: found 2 conjunctions joined by OR; allowed: one"):
        parse_filter("x > 1 OR y > 1", "a place")
    assert parse_filter("x > 1 OR x > 2 OR FALSE") == parse_filter("x > 1")


@given(subscription_texts.filter(lambda conjunctions: all(map(same_types, conjunctions))), attributes)
def test_a_subscription_wants_what_one_of_its_conjunctions_wants(
    conjunctions: list[str], event: dict[str, Value]
) -> None:
    each = [parse_filter(text) for text in conjunctions]
    filters = parse_subscription(" OR ".join(conjunctions))
    assert any(wanted.matches(event) for wanted in filters) == any(wanted.matches(event) for wanted in each)
    assert all(any(wide.covers(wanted) for wide in filters) for wanted in each)
    assert not any(one.covers(other) for one, other in itertools.permutations(filters, 2))
    assert parse_subscription(subscription_text(filters)) == tuple(sorted(filters, key=str))
    assert subscription_text(filters) == subscription_text(filters[::-1])


def test_absence_is_covered_by_what_does_not_name_the_attribute_and_by_itself() -> None:
    absent = parse_filter("x IS NULL")
    assert absent.covers(parse_filter("y = 1 AND x IS NULL"))
    assert EVERYTHING.covers(absent)
    assert absent.covers(NOTHING)
    assert not absent.covers(EVERYTHING)
    for text in ("x IS NOT NULL", "x NOT IN (1)", "x = 1"):
        assert not parse_filter(text).covers(absent)
        assert not absent.covers(parse_filter(text))
