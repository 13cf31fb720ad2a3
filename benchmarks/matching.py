"""Matching: microseconds an event for the bit-set index against a vectorised numpy scan, in one run."""

import random
import time
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.table import print_table
from pubsub.filter import Constraint, Filter
from pubsub.filter_parser import parse_filter
from pubsub.matching import MatchingIndex
from pubsub.values import Value

SIZES = (6_552, 20_000, 120_000)
ATTRIBUTES = tuple("abcdefghij")
NEIGHBOURS = 8
_EVENTS = 1_000
_SCANNED = 50
_CHURNED = 2_000

Event = dict[str, Value]


def interval_filters(count: int, rng: random.Random) -> list[Filter]:
    """Filters of three intervals over ten attributes: centre uniform in 0 to 1, width uniform to 0.6."""
    filters = []
    for _ in range(count):
        constraints = {}
        for name in rng.sample(ATTRIBUTES, 3):
            centre, width = rng.random(), rng.random() * 0.6
            constraints[name] = Constraint(
                "number", None, max(0.0, centre - width / 2), False, min(1.0, centre + width / 2), False
            )
        filters.append(Filter(constraints))
    return filters


def numpy_scan(filters: Sequence[Filter], neighbours: Sequence[int]) -> Callable[[Event], list[int]]:
    """Which neighbours want an event, by comparing all packed bounds, an attribute at a time: the best layout."""
    low = np.full((len(ATTRIBUTES), len(filters)), -np.inf)
    high = np.full((len(ATTRIBUTES), len(filters)), np.inf)
    for number, wanted in enumerate(filters):
        for name, constraint in (wanted.constraints or {}).items():
            low[ATTRIBUTES.index(name), number] = constraint.low
            high[ATTRIBUTES.index(name), number] = constraint.high
    owners = np.array(neighbours)

    def scan(event: Event) -> list[int]:
        matched = np.ones(len(filters), dtype=bool)
        for row, name in enumerate(ATTRIBUTES):
            value = event[name]
            matched &= low[row] <= value
            matched &= high[row] >= value
        return np.unique(owners[matched]).tolist()  # type: ignore[no-any-return]

    return scan


def plain_scan(filters: Sequence[Filter], neighbours: Sequence[int]) -> Callable[[Event], list[int]]:
    """The same as one writes it first: a row for each filter, two comparisons and `all`."""
    low = np.full((len(filters), len(ATTRIBUTES)), -np.inf)
    high = np.full((len(filters), len(ATTRIBUTES)), np.inf)
    for number, wanted in enumerate(filters):
        for name, constraint in (wanted.constraints or {}).items():
            low[number, ATTRIBUTES.index(name)] = constraint.low
            high[number, ATTRIBUTES.index(name)] = constraint.high
    owners = np.array(neighbours)

    def scan(event: Event) -> list[int]:
        values = np.array([event[name] for name in ATTRIBUTES])
        return np.unique(owners[((values >= low) & (values <= high)).all(axis=1)]).tolist()  # type: ignore[no-any-return]

    return scan


def _us_each(action: Callable[[Event], object], events: Sequence[Event]) -> float:
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for event in events:
            action(event)
        best = min(best, time.perf_counter() - began)
    return best / len(events) * 1e6


def _interval_row(size: int) -> tuple[object, ...]:
    rng = random.Random(f"matching/{size}")
    filters = interval_filters(size, rng)
    neighbours = [rng.randrange(NEIGHBOURS) for _ in filters]
    events: list[Event] = [{name: rng.random() for name in ATTRIBUTES} for _ in range(_EVENTS)]
    index = MatchingIndex()
    tracemalloc.start()
    began = time.perf_counter()
    for key, wanted in enumerate(filters):
        index.add(key, wanted, neighbours[key])
    index.destinations(events[0])
    bulk_us = (time.perf_counter() - began) / size * 1e6
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    scan = numpy_scan(filters, neighbours)
    for event in events[:_SCANNED]:
        assert sorted(index.destinations(event)) == scan(event)
    index_us, scan_us = _us_each(index.destinations, events), _us_each(scan, events[:_SCANNED])
    plain_us = _us_each(plain_scan(filters, neighbours), events[:_SCANNED])
    insert_us, remove_us = _churn(index, interval_filters(_CHURNED, rng), size, events[0])
    return (
        f"{size:,}", f"{index_us:.1f}", f"{plain_us:.0f}", f"{plain_us / index_us:.0f}",
        f"{scan_us:.0f}", f"{scan_us / index_us:.1f}",
        f"{bulk_us:.0f}", f"{insert_us:.0f}", f"{remove_us:.1f}", f"{memory / 1e6:.0f}",
    )  # fmt: skip


def _churn(index: MatchingIndex, filters: Sequence[Filter], first_key: int, event: Event) -> tuple[float, float]:
    """Microseconds for an insertion and a removal, each of the insertions followed by a question."""
    asked = _us_each(index.destinations, [event] * 200)
    began = time.perf_counter()
    for number, wanted in enumerate(filters):
        index.add(first_key + number, wanted, number % NEIGHBOURS)
        index.destinations(event)
    insert_us = (time.perf_counter() - began) / len(filters) * 1e6 - asked
    began = time.perf_counter()
    for number in range(len(filters)):
        index.remove(first_key + number)
    return insert_us, (time.perf_counter() - began) / len(filters) * 1e6


def _other_rows() -> list[tuple[object, ...]]:
    rng = random.Random("matching/other")
    symbols = [f"S{number:03d}" for number in range(100)]
    quotes = [
        parse_filter(
            f"symbol = '{rng.choice(symbols)}' AND price < {rng.random() * 100} AND volume > {rng.randrange(10**6)}"
        )
        for _ in range(200)
    ]
    quote_events: list[Event] = [
        {"symbol": rng.choice(symbols), "price": rng.random() * 100, "volume": rng.randrange(10**6)}
        for _ in range(_EVENTS)
    ]
    authors = [parse_filter(f"author = {number}") for number in range(4_000)]
    posts: list[Event] = [{"author": rng.randrange(4_000), "length": 5, "topic": "x"} for _ in range(_EVENTS)]
    rows: list[tuple[object, ...]] = []
    for name, filters, events in (
        ("200 quote filters", quotes, quote_events),
        ("4,000 equality filters", authors, posts),
    ):
        index = MatchingIndex()
        for key, wanted in enumerate(filters):
            index.add(key, wanted, key % NEIGHBOURS)
        rows.append((name, f"{_us_each(index.destinations, events):.1f}", f"{_us_each(index.matching, events):.1f}"))
    return rows


def main() -> None:
    """Print both tables."""
    print_table(
        "Matching: 3 intervals over 10 attributes, 8 neighbours (aim: at least 30 times the scan)",
        (
            "filters",
            "index us",
            "numpy rows us",
            "ratio",
            "numpy columns us",
            "ratio",
            "bulk add us",
            "insert us",
            "remove us",
            "MB",
        ),
        [_interval_row(size) for size in SIZES],
    )
    print_table("Matching: other shapes", ("filters", "destinations us", "matching us"), _other_rows())


if __name__ == "__main__":
    main()
