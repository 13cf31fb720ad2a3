"""Where processor time goes, by function: a question of the matching index, and an event in virtual time.

    python -m benchmarks.profiles [--index] [--virtual]

Shares are cProfile's, whose own cost weighs on what calls much; they say where to look, and the other benchmarks say
how long it takes. `judge_default` and `live_hop` are the profiles of the judge and of a live hop.
"""

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.engine import run_machines
from benchmarks.matching_million import drawn
from benchmarks.table import print_table
from murmur_pubsub.matching import MatchingIndex

_SHOWN = 12
_FILTERS = 120_000
_NODES, _CYCLES = 1_000, 20


def index_questions() -> tuple[Callable[[], int], str]:
    """All matches of three intervals over ten attributes."""
    filters, events = drawn("three", _FILTERS, None)
    index: MatchingIndex[int] = MatchingIndex()
    for key, each in enumerate(filters):
        index.add(key, each, key % 8)
    for _ in range(1_000):  # what is under way comes to its end
        index.destinations({})

    def ask() -> int:
        for event in events:
            index.matching(event)
            index.destinations(event)
        return 2 * len(events)

    return ask, f"questions of an index of {_FILTERS:,} filters"


def virtual_events() -> tuple[Callable[[], int], str]:
    """Cyclon as machines."""
    return lambda: run_machines(_NODES, _CYCLES), f"events in virtual time, Cyclon of {_NODES:,} nodes"


WHAT = {"index": index_questions, "virtual": virtual_events}


def profiled(prepared: Callable[[], tuple[Callable[[], int], str]]) -> None:
    """Print the table of one of them."""
    work, what = prepared()
    began = time.process_time()
    count = work()
    plain_us = (time.process_time() - began) / count * 1e6
    profile = cProfile.Profile(time.process_time)
    profile.runcall(work)
    found: Any = pstats.Stats(profile)
    whole = sum(row[2] for row in found.stats.values())
    rows = sorted(found.stats.items(), key=lambda each: -each[1][2])[:_SHOWN]
    cells = [
        (_where(place), f"{calls / count:.2f}", f"{100 * own / whole:.0f} %", f"{own / whole * plain_us:.2f}")
        for place, (_, calls, own, _, _) in rows
    ]
    title = f"{count:,} {what}: {plain_us:.1f} us of a core each without the profiler, shared out by its shares"
    print_table(title, ("function", "calls each", "own share", "us each"), cells)


def _where(place: tuple[str, int, str]) -> str:
    path, line, function = place
    return function if path == "~" else f"{Path(path).parent.name}/{Path(path).name}:{line} {function}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in WHAT:
        parser.add_argument(f"--{name}", action="store_true", help="this one alone, unless others are given too")
    given = vars(parser.parse_args())
    for name, prepared in WHAT.items():
        if given[name] or not any(given.values()):
            profiled(prepared)


if __name__ == "__main__":
    main()
