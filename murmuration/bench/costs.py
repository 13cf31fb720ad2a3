"""What a table is going to take: from cells that were played, and what cells of each system took elsewhere.

How long a cell takes depends on the computer and the size of the overlay much more than on how systems compare. So one
cell is played first, and all others are estimated from it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from murmuration.bench.matrix import Cell

CPU_S_OF: Mapping[str, float] = {
    "cells/best_effort": 0.44, "cells/durable": 1.51, "cells/epidemic": 0.48, "cells/gryphon": 0.66,
    "ferry/best_effort": 1.08, "flooding/best_effort": 0.13, "flooding/epidemic": 0.15, "forwarding/best_effort": 0.15,
    "forwarding/epidemic": 0.18, "irbr/best_effort": 0.67, "irbr/epidemic": 1.40, "irbr_members/best_effort": 0.66,
    "irbr_members/epidemic": 1.41, "multipath/best_effort": 0.23, "multipath/epidemic": 0.28, "rpf/best_effort": 0.65,
    "rpf/epidemic": 1.35, "scribe/best_effort": 0.52, "scribe/epidemic": 0.92, "vinifera/best_effort": 0.84,
}  # fmt: skip
"""CPU seconds of a cell and its judge in the table of docs/bench.md, of 20 brokers: the mean over faults."""


class Estimate(NamedTuple):
    """Of what is still to be played."""

    cells: int
    cpu_s: float
    wall_s: float


def estimate(waiting: Sequence[Cell], done: Mapping[Cell, Mapping[str, Any]], workers: int) -> Estimate:
    """What the waiting cells take on so many cores, by those that are done."""
    took_s = sum(record["cpu_s"] for record in done.values())
    cpu_s = took_s / sum(map(_usual_s, done)) * sum(map(_usual_s, waiting))
    return Estimate(len(waiting), cpu_s, cpu_s / workers)


def _usual_s(cell: Cell) -> float:
    known = CPU_S_OF.get(str(cell.system))
    return sum(CPU_S_OF.values()) / len(CPU_S_OF) if known is None else known
