"""The judge's evaluation in columns against the plain evaluation of one filter on one event."""

from hypothesis import given
from hypothesis import strategies as st

from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import Value
from spark_analysis.evaluation import EventColumns, condition_of
from tests.strategies import attributes, filters


def _matching(events: list[dict[str, Value]], text: str) -> list[int]:
    return sorted(EventColumns(events).matching(condition_of(parse_filter(text))).tolist())


@given(st.lists(attributes, max_size=12), st.lists(filters, max_size=4))
def test_matches_are_those_of_the_plain_evaluation(events: list[dict[str, Value]], wanted: list[Filter]) -> None:
    rows, numbers = EventColumns(events).match_all([condition_of(each) for each in wanted])
    found = sorted(zip(numbers.tolist(), rows.tolist(), strict=True))
    plain = [
        (number, row) for number, each in enumerate(wanted) for row, event in enumerate(events) if each.matches(event)
    ]
    assert found == plain


def test_integers_beyond_the_precision_of_floats_are_told_apart() -> None:
    events: list[dict[str, Value]] = [{"n": 2**53}, {"n": 2**53 + 1}, {"n": float(2**53)}, {"n": 2**200}]
    assert _matching(events, f"n = {2**53}") == [0, 2]
    assert _matching(events, f"n > {2**53}") == [1, 3]
    assert _matching(events, f"n = {2**200}") == [3]


def test_a_string_that_ends_in_nul_is_not_the_string_without_it() -> None:
    assert _matching([{"s": "a"}, {"s": "a\0"}], "s = 'a'") == [0]


def test_booleans_are_no_numbers() -> None:
    events: list[dict[str, Value]] = [{"x": True}, {"x": 1}, {"x": 1.0}]
    assert _matching(events, "x = TRUE") == [0]
    assert _matching(events, "x = 1") == [1, 2]
    assert _matching(events, "x IS NOT NULL") == [0, 1, 2]


def test_inequality_asks_for_a_value_of_the_domain() -> None:
    events: list[dict[str, Value]] = [{"x": 1}, {"x": 2}, {"x": "1"}, {"y": 3}]
    assert _matching(events, "x != 1") == [1]


def test_the_filters_of_everything_and_of_nothing() -> None:
    events: list[dict[str, Value]] = [{}, {"x": 1}]
    assert _matching(events, "TRUE") == [0, 1]
    assert _matching(events, "x > 5 AND x < 3") == []


def test_no_events_and_no_filters_match_nothing() -> None:
    rows, numbers = EventColumns([]).match_all([])
    assert len(rows) == len(numbers) == 0
