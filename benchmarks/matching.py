"""Matching: microseconds of processor time for the bit-set index against scans and fixed bit sets, in one run.

Three things to compare with: a numpy scan that keeps an array for each attribute (the best layout found), one
with a row for each filter (as one writes it first), and the same bit sets without anything that lets filters
come and go. Processor time, because wall time on a busy host says more about the neighbours.
"""

import random
import time
import tracemalloc
from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.table import print_table
from murmur_pubsub.filter import Constraint, Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.values import Value

SIZES = (6_552, 20_000, 120_000)
ATTRIBUTES = tuple("abcdefghij")
NEIGHBOURS = 8
_EVENTS = 1_000
_SCANNED = 50
_ASKED = 1_000
_FIXED_CELLS = 256

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


def fixed_bit_sets(filters: Sequence[Filter], neighbours: Sequence[int]) -> Callable[[Event], list[int]]:
    """The plainest bit sets: built once, an int for each cell; what being able to add and remove costs beside it."""
    size = len(filters)
    tables = []
    for name in ATTRIBUTES:
        bounds = [(wanted.constraints or {}).get(name) for wanted in filters]
        ends = sorted(end for each in bounds if each for end in (each.low, each.high) if isinstance(end, float))
        edges = ends[:: max(1, len(ends) // _FIXED_CELLS)]
        first = np.array([bisect_right(edges, each.low) if each else -1 for each in bounds])  # type: ignore[type-var]
        last = np.array([bisect_right(edges, each.high) if each else len(edges) + 1 for each in bounds])  # type: ignore[type-var]
        possible, certain = [], []
        for cell in range(len(edges) + 1):
            possible.append(_packed((first <= cell) & (cell <= last)))
            certain.append(_packed((first < cell) & (cell < last)))
        tables.append((name, edges, possible, certain))
    owners = [_packed(np.array(neighbours) == each) for each in range(NEIGHBOURS)]

    def match(event: Event) -> list[int]:
        possibly = certainly = (1 << size) - 1
        for name, edges, possible, certain in tables:
            cell = bisect_right(edges, event[name])
            possibly &= possible[cell]
            certainly &= certain[cell]
        found, unsure = [], possibly ^ certainly
        for neighbour, owned in enumerate(owners):
            bits = unsure & owned
            if certainly & owned:
                found.append(neighbour)
                continue
            while bits:
                lowest = bits & -bits
                if filters[lowest.bit_length() - 1].matches(event):
                    found.append(neighbour)
                    break
                bits ^= lowest
        return found

    return match


def _packed(marks: np.ndarray) -> int:
    return int.from_bytes(np.packbits(marks, bitorder="little").tobytes(), "little")


def us_each(action: Callable[[Event], object], events: Sequence[Event], rounds: int = 5) -> float:
    """Microseconds of processor time for an event: the best of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        for event in events:
            action(event)
        best = min(best, time.process_time() - began)
    return best / len(events) * 1e6


def _index_of(filters: Sequence[Filter], neighbours: Sequence[int], event: Event) -> MatchingIndex[int]:
    index = MatchingIndex[int]()
    for key, wanted in enumerate(filters):
        index.add(key, wanted, neighbours[key])
    index.destinations(event)
    return index


def _megabytes(filters: Sequence[Filter], neighbours: Sequence[int], event: Event) -> float:
    """What the index allocates, without the filters, once it has been asked."""
    tracemalloc.start()
    index = _index_of(filters, neighbours, event)
    allocated = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    assert len(index) == len(filters)
    return allocated


def _interval_rows(size: int) -> tuple[tuple[object, ...], tuple[object, ...]]:
    rng = random.Random(f"matching/{size}")
    filters = interval_filters(size, rng)
    neighbours = [rng.randrange(NEIGHBOURS) for _ in filters]
    events: list[Event] = [{name: rng.random() for name in ATTRIBUTES} for _ in range(_EVENTS)]
    began = time.process_time()
    index = _index_of(filters, neighbours, events[0])
    bulk_us = (time.process_time() - began) / size * 1e6
    scan, fixed = numpy_scan(filters, neighbours), fixed_bit_sets(filters, neighbours)
    for event in events[:_SCANNED]:
        assert sorted(index.destinations(event)) == scan(event) == fixed(event)
    index_us, scan_us = us_each(index.destinations, events), us_each(scan, events[:_SCANNED])
    rows_us = us_each(plain_scan(filters, neighbours), events[:_SCANNED], 2)
    matched = (
        f"{size:,}", f"{index_us:.1f}", f"{us_each(fixed, events):.1f}",
        f"{scan_us:.0f}", f"{scan_us / index_us:.1f}", f"{rows_us:.0f}", f"{rows_us / index_us:.0f}",
        f"{us_each(index.matching, events[:200], 2):.0f}", f"{_megabytes(filters, neighbours, events[0]):.0f}",
    )  # fmt: skip
    del fixed, scan
    grown_us, worst_ms = _grow(filters, neighbours, events[0])
    known_us = _covers_any_us(index, filters[:_ASKED])
    new_us = _covers_any_us(index, interval_filters(_ASKED, rng))
    changed = (
        f"{size:,}", f"{bulk_us:.0f}", f"{grown_us:.0f}", f"{worst_ms:.0f}", f"{_removals(index, rng):.1f}",
        f"{known_us:.1f}", f"{new_us:.1f}",
    )  # fmt: skip
    return matched, changed


def _grow(filters: Sequence[Filter], neighbours: Sequence[int], event: Event) -> tuple[float, float]:
    """Microseconds for each insertion, the index asked after each one, over its whole growth; the worst in ms.

    The same questions, put again to the finished index, are taken off.
    """
    index = MatchingIndex[int]()
    worst = 0.0
    began = before = time.process_time()
    for key, wanted in enumerate(filters):
        index.add(key, wanted, neighbours[key])
        index.destinations(event)
        now = time.process_time()
        worst = max(worst, now - before)
        before = now
    return (before - began) / len(filters) * 1e6 - us_each(index.destinations, [event] * 500), worst * 1e3


def _removals(index: MatchingIndex[int], rng: random.Random) -> float:
    """Microseconds for each removal, in random order until one filter in ten is left, with what is built anew."""
    keys = list(range(len(index)))
    rng.shuffle(keys)
    keys = keys[len(keys) // 10 :]
    began = time.process_time()
    for number, key in enumerate(keys):
        index.remove(key)
        if number % 100 == 0:
            index.matching({})
    return (time.process_time() - began) / len(keys) * 1e6


def _covers_any_us(index: MatchingIndex[int], asked: Sequence[Filter]) -> float:
    began = time.process_time()
    for wanted in asked:
        index.covers_any(wanted)
    return (time.process_time() - began) / len(asked) * 1e6


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
    rows: list[tuple[object, ...]] = []
    shapes: list[tuple[str, list[Filter], list[Event]]] = [("200 quote filters", quotes, quote_events)]
    for count in (4_000, 100_000):
        posts: list[Event] = [{"author": rng.randrange(count), "length": 5, "topic": "x"} for _ in range(_EVENTS)]
        shapes.append(
            (f"{count:,} equality filters", [parse_filter(f"author = {each}") for each in range(count)], posts)
        )
    for name, filters, events in shapes:
        neighbours = [key % NEIGHBOURS for key in range(len(filters))]
        index = _index_of(filters, neighbours, events[0])
        rows.append(
            (
                name,
                f"{us_each(index.destinations, events):.1f}",
                f"{us_each(index.matching, events):.1f}",
                f"{_megabytes(filters, neighbours, events[0]):.1f}",
            )
        )
    return rows


def main() -> None:
    """Print the three tables."""
    rows = [_interval_rows(size) for size in SIZES]
    print_table(
        "Matching, us an event: 3 intervals over 10 attributes, 8 neighbours",
        ("filters", "index", "fixed sets", "numpy columns", "ratio", "numpy rows", "ratio", "all keys", "MB"),
        [matched for matched, _ in rows],
    )
    print_table(
        "Change, us a filter",
        ("filters", "add in bulk", "add one by one", "worst ms", "remove", "covers_any, known", "new"),
        [changed for _, changed in rows],
    )
    print_table("Matching, us an event: other shapes", ("filters", "destinations", "all keys", "MB"), _other_rows())


if __name__ == "__main__":
    main()
