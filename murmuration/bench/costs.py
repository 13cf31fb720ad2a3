"""What a table is going to take: from cells that were played, and what cells of each system took elsewhere.

How systems compare hardly depends on the computer or the size of the overlay; how long a cell takes does. So one cell
is played first, and all others are estimated from it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from murmuration.bench.matrix import Cell

CPU_S_OF: Mapping[str, float] = {
    "forwarding/best_effort": 4.2, "forwarding/epidemic": 7.3, "cells/gryphon": 10.2, "irbr/best_effort": 7.4,
    "vinifera/best_effort": 18.5,
}  # fmt: skip
"""CPU seconds of a cell of 120 brokers and its judge, the mean over workloads and faults of docs/bench.md."""


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
