"""Filters: parsing, normal form, matching and exact covering."""

from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter import EVERYTHING, NOTHING, Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import Value, domain_of
from tests.strategies import BOOLEANS, ENDED_STRINGS, NAMES, NUMBERS, STRINGS, attributes, filter_texts, filters

UNIVERSE: list[Value] = [*NUMBERS, *STRINGS, *ENDED_STRINGS, *BOOLEANS]


@given(filters)
def test_the_text_of_a_filter_parses_back_to_it(wanted: Filter) -> None:
    assert parse_filter(str(wanted)) == wanted


@given(filters)
def test_a_filter_survives_the_wire(wanted: Filter) -> None:
    assert Filter.from_wire(msgpack.unpackb(msgpack.packb(wanted.to_wire()))) == wanted


def _plain_match(text: str, event: dict[str, Value]) -> bool:
    """The meaning of the text, predicate by predicate, from the grammar alone."""
    return all(_plain_predicate(part, event) for part in _split(text))


def _split(text: str) -> list[list[Any]]:
    import re

    tokens = re.findall(r"'(?:[^']|'')*'|[A-Za-z]+|[<>=!]+|-?[\d.]+|[(),]", text)
    parts: list[list[Any]] = [[]]
    for token in tokens:
        if (token == "AND" and "BETWEEN" not in parts[-1]) or (token == "AND" and len(parts[-1]) > 3):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _plain_value(token: str) -> Value:
    if token[0] == "'":
        return token[1:-1].replace("''", "'")
    return token == "TRUE" if token in ("TRUE", "FALSE") else (float(token) if "." in token else int(token))


def _plain_predicate(part: list[str], event: dict[str, Value]) -> bool:
    name, operator = part[0], part[1]
    if operator == "IS":
        return (name in event) is ("NOT" in part)
    if name not in event:
        return False
    value: Any = event[name]
    constants: list[Any] = [_plain_value(token) for token in part[2:] if token not in ("(", ")", ",", "AND", "IN")]
    if domain_of(value) != domain_of(constants[0]):
        return False
    if operator == "BETWEEN":
        return bool(constants[0] <= value <= constants[1])
    if operator == "IN":
        return value in constants
    if operator == "NOT":
        return value not in constants
    if operator == "LIKE":
        pattern = constants[0]
        return bool(value.startswith(pattern[:-1]) if pattern[-1] == "%" else value.endswith(pattern[1:]))
    compare = {"=": value.__eq__, "!=": value.__ne__}.get(operator)
    if compare is not None:
        return bool(value == constants[0]) is (operator == "=")
    return bool(
        {
            "<": value < constants[0],
            "<=": value <= constants[0],
            ">": value > constants[0],
            ">=": value >= constants[0],
        }[operator]
    )


@given(filter_texts, attributes)
@settings(max_examples=500)
def test_matching_is_what_the_text_says(text: str, event: dict[str, Value]) -> None:
    try:
        wanted = parse_filter(text)
    except InputError:
        return  # BETWEEN of two types
    assert wanted.matches(event) == _plain_match(text, event)


@given(filters, filters)
@settings(max_examples=800)
def test_covering_is_exact_over_an_enumerated_universe(first: Filter, second: Filter) -> None:
    """Attribute by attribute, since a filter is a product; a filter that is empty here may not be elsewhere."""
    covers = first.covers(second)
    if second == NOTHING or first == EVERYTHING:
        assert covers
        return
    if first == NOTHING:
        assert not covers
        return
    theirs, ours = second.constraints or {}, first.constraints or {}
    contained = all(
        name not in ours
        or (
            name in theirs
            and ours[name].is_absence == theirs[name].is_absence
            and all(ours[name].contains(v) for v in UNIVERSE if theirs[name].contains(v))
        )
        for name in NAMES
    )
    assert covers == contained


@given(filters, filters, attributes)
@settings(max_examples=500)
def test_what_a_covered_filter_matches_its_cover_matches(
    first: Filter, second: Filter, event: dict[str, Value]
) -> None:
    if first.covers(second) and second.matches(event):
        assert first.matches(event)


@given(filters, filters, filters)
def test_covering_is_a_partial_order(first: Filter, second: Filter, third: Filter) -> None:
    assert first.covers(first)
    if first.covers(second) and second.covers(third):
        assert first.covers(third)
    if first.covers(second) and second.covers(first):
        assert first == second
        assert hash(first) == hash(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x > 1 AND x < 3 AND x >= 2", "x >= 2 AND x < 3"),
        ("s LIKE 'a%'", "s >= 'a' AND s < 'b'"),
        ("s > 'a'", "s >= 'a\0'"),
        ("s > 'a' AND s < 'a\0\0'", "s = 'a\0'"),
        ("x BETWEEN 2 AND 2", "x = 2"),
        ("x BETWEEN 3 AND 2", "FALSE"),
        ("x = 1 AND x = 'a'", "FALSE"),
        ("x IN (1, 2, 3) AND x != 2", "x IN (3, 1)"),
        ("flag != TRUE", "flag = FALSE"),
        ("x IS NOT NULL AND x > 3", "x > 3"),
        ("x >= 1 AND x != 1", "x > 1"),
        ("s LIKE '%'", "s >= ''"),
        ("x > 5 AND x != 3", "x > 5"),
        ("x NOT IN (3, 4)", "x != 4 AND x != 3"),
        ("x NOT IN (3)", "x != 3"),
        ("x > 1 AND x NOT IN (1, 0, 2)", "x > 1 AND x != 2"),
        ("flag NOT IN (TRUE)", "flag = FALSE"),
        ("x IS NULL AND x IS NULL", "x IS NULL"),
        ("x IS NULL AND x IS NOT NULL", "FALSE"),
        ("x IS NULL AND x NOT IN (1)", "FALSE"),
        ("s LIKE '%b' AND s LIKE '%ab'", "s LIKE '%ab'"),
        ("s LIKE '%b' AND s LIKE '%a'", "FALSE"),
        ("s LIKE '%a' AND x = 1 AND s = 'ba'", "s = 'ba' AND x = 1"),
        ("s LIKE '%a' AND s = 'b'", "FALSE"),
        ("s > 'ab' AND s LIKE '%bb'", "s >= 'ab' AND s LIKE '%bb'"),
        ("s > 'b' AND s LIKE '%b' AND s != 'b\0b'", "s NOT IN ('b', 'b\0b') AND s >= 'b' AND s LIKE '%b'"),
        ("s LIKE '%\0' AND s != '\0'", "s LIKE '%\0' AND s > '\0'"),
    ],
)
def test_equal_meanings_have_one_normal_form(first: str, second: str) -> None:
    assert parse_filter(first) == parse_filter(second)


def test_true_is_no_number() -> None:
    assert not parse_filter("x = 1").matches({"x": True})
    assert not parse_filter("x = TRUE").matches({"x": 1})
    assert parse_filter("x = 1").matches({"x": 1.0})


@pytest.mark.parametrize(
    ("text", "column", "found", "allowed"),
    [
        ("price >", 8, "the end", "a number"),
        ("price > > 3", 9, "'>'", "a 'string'"),
        ("price ~ 3", 7, "'~ 3'", "BETWEEN"),
        ("s LIKE 'a%b'", 8, "LIKE 'a%b'", "a prefix"),
        ("s = 'abc", 5, '"\'abc"', "a 'string'"),
        ("x IN (1, 'a')", 10, "'a'", "one type"),
        ("x BETWEEN 1 OR 2", 13, "'OR'", "AND"),
        ("x BETWEEN 1 AND 'b'", 11, "BETWEEN", "two numbers"),
        ("flag > TRUE", 6, ">", "= or !="),
        ("= 3", 1, "'='", "an attribute name"),
        ("x = 1 y = 2", 7, "'y'", "AND"),
        ("x = 1e999", 5, "1e999", "a finite number"),
        ("x IS 3", 6, "'3'", "NOT, NULL"),
        ("x IS NOT 3", 10, "'3'", "NULL"),
        ("x NOT = 3", 7, "'='", "IN"),
        ("x NOT IN 3", 10, "'3'", "'('"),
        ("x NOT IN (1, 'a')", 14, "'a'", "one type"),
        ("s LIKE '%a%'", 8, "LIKE '%a%'", "before a suffix"),
        ("s LIKE ''", 8, "LIKE ''", "one %"),
        ("x = 1 OR", 9, "the end", "an attribute name"),
        ("OR x = 1", 1, "'OR'", "an attribute name"),
        ("(x = 1 OR y = 2)", 8, "'OR'", "')'"),
    ],
)
def test_a_mistake_is_named_with_its_column(text: str, column: int, found: str, allowed: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_filter(text, "scenario.yaml, filter 3")
    assert caught.value.place == f"scenario.yaml, filter 3, column {column}"
    assert found in caught.value.found
    assert allowed in caught.value.allowed


packable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats()
    | st.sampled_from(["x", "number", "string", "boolean"]),
    lambda inner: st.lists(inner, max_size=9),
    max_leaves=20,
)


@given(packable)
@settings(max_examples=500)
def test_a_malformed_filter_on_the_wire_is_a_value_error(body: Any) -> None:
    try:
        wanted = Filter.from_wire(body)
    except ValueError:
        return
    assert Filter.from_wire(msgpack.unpackb(msgpack.packb(wanted.to_wire()))) == wanted
    assert parse_filter(str(wanted)) == wanted
