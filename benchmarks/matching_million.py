"""The matching index up to a million filters: questions, changes, the worst stall and memory, beside scans in one run.

    python -m benchmarks.matching_million [SHAPE ...] [--before CHECKOUT] [--quotes RECORDING]

Shapes: `three` (three intervals over ten attributes), `hem` (ten intervals of width 0.4 over twenty, as the papers on
HEM and OEM have it), `symbols` (three equalities over ten attributes of fifty symbols), `lots` (rules over city lots)
and `quotes` (recorded ones, `docs/paper-figure.md` says where they are), each with a number of filters: `hem:1000000`.
With a checkout of another state of murmur, the same is measured with its index. Each row is
measured in a process of its own.

Microseconds and stalls are processor time: wall time on a busy computer says more about the neighbours. The collector
of cycles is off, as it would search millions of filters now and then. Memory is what the process grows by while the
index takes the filters, which are there before.
"""

import argparse
import gc
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from benchmarks.matching import Event, us_each
from benchmarks.other_code import HERE, environment_of
from benchmarks.packed_scan import packed_scan
from benchmarks.rule_sets import city_lots, recorded_quotes
from benchmarks.table import print_table
from murmur_pubsub.filter import Constraint, Filter
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.values import Value

SHAPES = ("three:6552", "three:120000", "hem:1000000", "symbols:10000", "symbols:50000", "lots:100000", "quotes:20000")
NEIGHBOURS = 8
_EVENTS = 200
_REMOVED = 50_000
_ASKED_EVERY = 1_000
"""Insertions between two questions while the index grows: an index that does its work when asked shows its stalls."""
_HEADINGS = (
    "filters", "code", "matches", "all keys", "neighbours", "C scan", "all/scan", "neighb./scan", "insert", "remove",
    "worst ms", "MB",
)  # fmt: skip


def _interval(low: float, high: float) -> Constraint:
    return Constraint("number", None, low, False, high, False)


def drawn(shape: str, count: int, quotes: Path | None) -> tuple[list[Filter], list[Event]]:
    """(filters, events), the same each time."""
    if shape == "lots":
        return city_lots(count)
    if shape == "quotes":
        assert quotes is not None
        return recorded_quotes(quotes, count)
    rng = random.Random(f"{shape}/{count}")
    names = [f"a{number:02}" for number in range(20 if shape == "hem" else 10)]
    filters = []
    for _ in range(count):
        constraints = {}
        for name in rng.sample(names, 10 if shape == "hem" else 3):
            if shape == "symbols":
                constraints[name] = Constraint("number", (rng.randrange(50),))
            elif shape == "hem":
                low = rng.random() * 0.6
                constraints[name] = _interval(low, low + 0.4)
            else:
                centre, width = rng.random(), rng.random() * 0.6
                constraints[name] = _interval(max(0.0, centre - width / 2), min(1.0, centre + width / 2))
        filters.append(Filter(constraints))
    value: Callable[[], Value] = (lambda: rng.randrange(50)) if shape == "symbols" else rng.random
    return filters, [{name: value() for name in names} for _ in range(_EVENTS)]


def measure(shape: str, count: int, quotes: Path | None = None) -> dict[str, float | None]:
    """One row of the table; some answers are checked against the scan, or one by one if there is none."""
    gc.disable()
    filters, events = drawn(shape, count, quotes)
    rss = psutil.Process().memory_info().rss
    index = MatchingIndex[int]()
    longest = asking = 0.0
    began = before = time.process_time()
    for key, wanted in enumerate(filters):
        index.add(key, wanted, key % NEIGHBOURS)
        now = time.process_time()
        longest = max(longest, now - before)
        before = now
        if key % _ASKED_EVERY == 0:
            index.destinations(events[key % _EVENTS])
            now = time.process_time()
            longest = max(longest, now - before)
            asking += now - before
            before = now
    insert_us = (before - began - asking) / count * 1e6
    megabytes = (psutil.Process().memory_info().rss - rss) / 1e6
    for _ in range(10_000):  # what is under way comes to its end
        index.destinations({})
    scan = packed_scan(filters, events)
    for event in events[:3]:
        expected = scan(event) if scan else [key for key, each in enumerate(filters) if each.matches(event)]
        assert index.matching(event) == expected
        assert sorted(index.destinations(event)) == sorted({key % NEIGHBOURS for key in expected})
    row: dict[str, float | None] = {
        "matches": sum(len(index.matching(event)) for event in events) / len(events),
        "all": us_each(index.matching, events),
        "neighbours": us_each(index.destinations, events),
        "scan": us_each(scan, events[:30]) if scan else None,
        "insert": insert_us,
    }
    removed = random.Random(count).sample(range(count), min(_REMOVED, count // 2))
    began = before = time.process_time()
    for key in removed:
        index.remove(key)
        now = time.process_time()
        longest = max(longest, now - before)
        before = now
    return row | {
        "remove": (before - began) / len(removed) * 1e6,
        "worst": longest * 1e3,
        "megabytes": megabytes,
    }


def _measured_apart(shape: str, checkout: Path, quotes: Path | None) -> dict[str, float | None]:
    """The row that a process of its own finds, with the index of that checkout."""
    given = [] if quotes is None else ["--quotes", str(quotes.resolve())]
    command = [sys.executable, "-P", "-m", "benchmarks.matching_million", "--row", shape, *given]
    with environment_of(checkout) as environment:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def _cells(where: str, code: str, row: Mapping[str, float | None]) -> tuple[str, ...]:
    def shown(name: str, digits: int = 1) -> str:
        value = row[name]
        return "-" if value is None else f"{value:,.{digits}f}"

    scan, everything, neighbours = row["scan"], row["all"], row["neighbours"]
    assert everything is not None
    assert neighbours is not None
    ratios = ("-", "-") if scan is None else (f"1/{scan / everything:.1f}", f"1/{scan / neighbours:.1f}")
    return (
        where, code, shown("matches"), shown("all"), shown("neighbours"), shown("scan", 0), *ratios, shown("insert"),
        shown("remove"), shown("worst"), shown("megabytes", 0),
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", default=list(SHAPES))
    parser.add_argument("--before", type=Path, metavar="CHECKOUT")
    parser.add_argument("--quotes", type=Path, metavar="RECORDING")
    parser.add_argument("--row", metavar="SHAPE", help="print the figures of one shape as JSON, and nothing else")
    arguments = parser.parse_args()
    if arguments.row is not None:
        shape, count = arguments.row.split(":")
        print(json.dumps(measure(shape, int(count), arguments.quotes)))
        return
    rows = []
    for shape in arguments.shapes:
        if shape.startswith("quotes:") and arguments.quotes is None:
            print(f"{shape} is left out: no --quotes RECORDING was given", file=sys.stderr)
            continue
        if arguments.before is not None:
            rows.append(_cells(shape, "before", _measured_apart(shape, arguments.before, arguments.quotes)))
        rows.append(_cells(shape, "this", _measured_apart(shape, HERE, arguments.quotes)))
    print_table("Matching, us of processor time", _HEADINGS, rows)


if __name__ == "__main__":
    main()
