"""The table of all systems carried out: cells as tasks on all cores, each kept as soon as it is done."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from murmur_pubsub.progress import Progress
from murmuration.bench.card import card_of
from murmuration.bench.costs import Estimate, estimate
from murmuration.bench.folder import IDENTITY, BenchFolder
from murmuration.bench.matrix import Cell
from murmuration.bench.plan import BenchPlan, checked_scenario, scenario_with_data
from murmuration.sweeps.tasks import Cores, ends_of_tasks

_PLAY = "murmuration.bench.play:play_cell"


@dataclass(frozen=True, slots=True)
class BenchEnd:
    """`kept`: cells that were done before. `failed`: (cell, why) of those that could not be played."""

    kept: int
    done: int
    failed: Sequence[tuple[Cell, str]]


class BenchRun:
    """One table in its folder, begun or gone on with."""

    def __init__(self, plan: BenchPlan, folder: Path, brokers: int, cores: Cores) -> None:
        self.plan = plan
        self.folder = folder
        self._brokers = brokers
        self._cores = cores
        self._kept = BenchFolder(folder, brokers)
        self._records: dict[Cell, dict[str, Any]] = {}

    def run(self, progress: Progress, tell: Callable[[Estimate], None]) -> BenchEnd:
        """Play what is missing; `tell` is told what that takes, once one cell was played. Raises `InputError` before
        anything starts, `RunError` if Ray is lost."""
        with self._kept.opened():
            for cell in self.plan.cells:
                record = self._kept.record(cell)
                if record is not None:
                    self._records[cell] = record
            kept = len(self._records)
            waiting = {cell: scenario_with_data(cell) for cell in self.plan.cells if cell not in self._records}
            for number, cell in enumerate(of_each_kind(list(waiting))):
                progress("checking cells", number, 0)
                checked_scenario(cell)
            failed = self._play(waiting, progress, tell) if waiting else []
            return BenchEnd(kept, len(self._records) - kept, failed)

    def _play(
        self, waiting: Mapping[Cell, dict[str, Any]], progress: Progress, tell: Callable[[Estimate], None]
    ) -> list[tuple[Cell, str]]:
        """Play these cells and keep them; those that failed, and why."""
        failed: list[tuple[Cell, str]] = []
        total = len(self.plan.cells)

        def work() -> Iterator[tuple[Cell, Any] | None]:
            """One cell alone, if none was played yet, so that others can be estimated from it; then all others."""
            pieces = [
                (cell, {"cell": str(cell), "scenario": scenario, "scratch": str(self._kept.scratch)})
                for cell, scenario in waiting.items()
            ]
            if not self._records:
                yield pieces.pop(0)
                while not self._records and not failed:
                    yield None
            if self._records and pieces:
                left = [cell for cell, _ in pieces]
                tell(estimate(left, self._records, self._cores.workers or len(os.sched_getaffinity(0))))
            yield from pieces

        progress("starting Ray", 0, 0)
        begun = functools.partial(progress, "cells", len(self._records), total)
        with contextlib.closing(ends_of_tasks(_PLAY, work(), self._cores, self.folder, begun, shared=True)) as ends:
            for end in ends:
                if end.failure is None:
                    self._records[end.key] = self._kept.write_record(end.key, end.result)
                else:
                    failed.append((end.key, end.failure))
                progress("cells", len(self._records) + len(failed), total)
        return failed

    def table(self) -> pd.DataFrame:
        """A row for each cell that is done: what it is, its verdict, counts and figures."""
        rows = [_row(self._records[cell]) for cell in self.plan.cells if cell in self._records]
        return pd.DataFrame(rows)

    def cards(self) -> list[Mapping[str, Any]]:
        """The card of each workload and seed of which a cell is done."""
        wanted = dict.fromkeys((cell.workload, cell.seed) for cell in self.plan.cells if cell in self._records)
        return [card_of(workload, seed, self._brokers) for workload, seed in wanted]


def of_each_kind(cells: Sequence[Cell]) -> list[Cell]:
    """One cell of each workload, each fault and each system: any error of a scenario is one of them."""
    found: dict[Any, Cell] = {}
    for cell in cells:
        for kind in (("workload", cell.workload), ("fault", cell.fault), cell.system):
            found.setdefault(kind, cell)
    return list(dict.fromkeys(found.values()))


def _row(record: dict[str, Any]) -> dict[str, Any]:
    """A record as a row of the table; times in microseconds."""
    named = {key: record[key] for key in IDENTITY}
    figures: dict[str, Any] = record["figures"]
    verdict: dict[str, Any] = record["verdict"]
    return named | figures | verdict | {"cpu_s": round(record["cpu_s"], 2)}
