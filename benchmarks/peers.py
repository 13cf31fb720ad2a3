"""What others' tools take for the same work in the same run, as far as Python's package index has them.

    pip install simpy==4.1.2 duckdb==2.0.1 rtree==1.4.1
    python -m benchmarks.peers

Time: SimPy is the event loop that simulations in Python mostly use. Matching: DuckDB asks a table of the filters'
bounds, a column each; an R-tree holds each filter as a box, unbounded where the filter says nothing. Rows: DuckDB
counts a journal's rows as Parquet, as Spark does for the judge's yardstick. A peer that is not installed is left out,
and said to be.
"""

import importlib
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.bare_loop import run_bare_loop
from benchmarks.cyclon import SHUFFLE, VIEW
from benchmarks.engine import run_machines
from benchmarks.judge_scale import generate
from benchmarks.matching import us_each
from benchmarks.matching_million import drawn
from benchmarks.table import print_table
from benchmarks.timing import seconds
from murmur_pubsub.filter import Filter
from murmur_pubsub.matching import MatchingIndex

NODES, CYCLES = 1_000, 50
FILTERS = 120_000
ROWS = 3_000_000
_ROUNDS = 3
_FAR = 1e9
_NAMES = [f"a{number:02}" for number in range(10)]


def peer(name: str) -> Any | None:
    """The package, or None with a word about how to have it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is left out: pip install {name}")
        return None


def shortest_s(work: Callable[[], object]) -> float:
    """The shortest of some rounds."""
    return min(seconds(work) for _ in range(_ROUNDS))


# ------------------------------------------------------------------------------------------- events in virtual time
def run_simpy(simpy: Any) -> int:
    """The bare loop's Cyclon: a process for each node, a callback for each message; how many events were handled."""
    rng = random.Random(1)
    views = [[rng.randrange(NODES) for _ in range(VIEW)] for _ in range(NODES)]
    environment = simpy.Environment()
    handled = 0

    def send(delay: float, take: Callable[[Any], None]) -> None:
        environment.timeout(delay).callbacks.append(take)

    def exchange(node: int, source: int | None, peers: list[int]) -> Callable[[Any], None]:
        def take(_: Any) -> None:
            nonlocal handled
            handled += 1
            view = views[node]
            if source is not None:
                send(0.03, exchange(source, None, rng.sample(view, SHUFFLE)))
            view[:SHUFFLE] = peers

        return take

    def live(node: int) -> Iterator[Any]:
        nonlocal handled
        yield environment.timeout(rng.random())
        while True:
            handled += 1
            view = views[node]
            asked = exchange(view[rng.randrange(VIEW)], node, rng.sample(view, SHUFFLE))
            send(0.02 + 0.05 * rng.random(), asked)
            yield environment.timeout(1)

    for node in range(NODES):
        environment.process(live(node))
    environment.run(until=CYCLES)
    return handled


def virtual_time() -> list[tuple[str, ...]]:
    """Rows of the table of events."""
    runs: dict[str, Callable[[], int]] = {
        "bare loop": lambda: run_bare_loop(NODES, CYCLES),
        "murmur, machines with messages and a journal": lambda: run_machines(NODES, CYCLES),
    }
    simpy = peer("simpy")
    if simpy is not None:
        runs["SimPy"] = lambda: run_simpy(simpy)
    rows: list[tuple[str, ...]] = []
    for name, run in runs.items():
        events, taken_s = run(), shortest_s(run)
        rows.append((name, f"{events:,}", f"{taken_s:.2f}", f"{events / taken_s:,.0f}"))
    return rows


# ------------------------------------------------------------------------------------------- matching
def bounds_of(filters: Sequence[Filter]) -> pd.DataFrame:
    """For each attribute two columns, the lowest and the highest value that each filter lets through."""
    columns: dict[str, list[float]] = {f"{end}_{name}": [] for name in _NAMES for end in ("low", "high")}
    for each in filters:
        assert each.constraints is not None
        for name in _NAMES:
            constraint = each.constraints.get(name)
            low, high = (-_FAR, _FAR) if constraint is None else (constraint.low, constraint.high)
            columns[f"low_{name}"].append(float(low))  # type: ignore[arg-type]
            columns[f"high_{name}"].append(float(high))  # type: ignore[arg-type]
    return pd.DataFrame(columns)


def matching() -> list[tuple[str, ...]]:
    """Rows of the table of matching; all find the same."""
    filters, events = drawn("three", FILTERS, None)
    index: MatchingIndex[int] = MatchingIndex()
    for key, each in enumerate(filters):
        index.add(key, each, 0)
    asked: dict[str, tuple[Callable[[Any], list[int]], int]] = {"murmur": (index.matching, len(events))}
    bounds = bounds_of(filters)
    duckdb, rtree = peer("duckdb"), peer("rtree")
    if duckdb is not None:
        database = duckdb.connect()
        database.execute("SET threads = 1")
        database.register("bounds", bounds.reset_index(names="key"))
        database.execute("CREATE TABLE filters AS SELECT * FROM bounds")
        where = " AND ".join(f"? BETWEEN low_{name} AND high_{name}" for name in _NAMES)

        def by_duckdb(event: Any) -> list[int]:
            values = [event[name] for name in _NAMES]
            found = database.execute(f"SELECT key FROM filters WHERE {where} ORDER BY key", values).fetchnumpy()
            return found["key"].tolist()  # type: ignore[no-any-return]

        asked["DuckDB, one thread"] = by_duckdb, 20
    if rtree is not None:
        properties = rtree.index.Property(dimension=len(_NAMES), fill_factor=0.9)
        lows, highs = (bounds[[f"{end}_{name}" for name in _NAMES]].to_numpy() for end in ("low", "high"))
        boxes = ((key, box, None) for key, box in enumerate(np.hstack((lows, highs)).tolist()))
        tree = rtree.index.Index(boxes, properties=properties)
        asked["R-tree"] = lambda event: sorted(tree.intersection([event[name] for name in _NAMES] * 2)), 5
    rows: list[tuple[str, ...]] = []
    for name, (ask, count) in asked.items():
        assert ask(events[0]) == index.matching(events[0]), name
        rows.append((name, f"{us_each(ask, events[:count]):,.0f}"))
    return rows


# ------------------------------------------------------------------------------------------- rows of a journal
def rows_counted() -> list[tuple[str, ...]]:
    """Rows of the table of a scan."""
    duckdb = peer("duckdb")
    if duckdb is None:
        return []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        generate(ROWS, folder)
        query = f"SELECT node, kind, count(*), max(time_us) FROM '{folder}/rows.parquet/*.parquet' GROUP BY node, kind"
        taken_s = shortest_s(lambda: duckdb.sql(query).fetchall())
    return [("DuckDB, all cores", f"{taken_s:.2f}", f"{ROWS / taken_s:,.0f}")]


def main() -> None:
    """Print the tables."""
    heading = f"Virtual time: Cyclon, {NODES:,} nodes, {CYCLES} cycles"
    print_table(heading, ("", "events", "seconds", "events/s"), virtual_time())
    print_table(f"All matches of {FILTERS:,} filters, three intervals over ten attributes", ("", "us"), matching())
    counted = rows_counted()
    if counted:
        print_table(f"{ROWS:,} rows of a journal counted by node and kind", ("", "seconds", "rows/s"), counted)


if __name__ == "__main__":
    main()
