"""The scan in C that the index is measured against finds what the filters themselves say."""

import pytest

from benchmarks.packed_scan import packed_scan
from benchmarks.rule_sets import city_lots
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import Value


def test_rules_over_city_lots_are_scanned_as_the_filters_say() -> None:
    filters, events = city_lots(800)
    scan = packed_scan(filters, events)
    if scan is None:
        pytest.skip("there is no C compiler")
    matching = [[number for number, wanted in enumerate(filters) if wanted.matches(event)] for event in events]
    assert [scan(event) for event in events] == matching
    assert {number % 4 for numbers in matching for number in numbers} >= {1, 2}, "a prefix, a range"


def test_open_ends_excluded_values_and_absent_attributes_are_scanned_as_the_filters_say() -> None:
    texts = [
        "x > 1 AND x < 3",
        "x >= 1 AND x <= 3",
        "x NOT IN (1, 2)",
        "s != 'b'",
        "s >= 'b'",
        "s = 'q'",
        "x != 7",
        "TRUE",
    ]
    filters = [parse_filter(text) for text in texts]
    events: list[dict[str, Value]] = [{"x": x, "s": s} for x in (1, 2, 3, 7) for s in "abc"]
    events += [{"x": 1}, {"s": "b"}, {"y": 1}]
    scan = packed_scan(filters, events)
    if scan is None:
        pytest.skip("there is no C compiler")
    for event in events:
        assert scan(event) == [number for number, wanted in enumerate(filters) if wanted.matches(event)]
