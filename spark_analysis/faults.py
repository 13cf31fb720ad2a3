"""The faults of a run, from its journal and manifest: their windows, whether each bit, and what they explain."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pubsub.errors import InputError
from pubsub.faults import FaultKind
from pubsub.journal import FaultStage, RowKind
from spark_analysis.connections import Connections, LinkRow, times_away
from spark_analysis.fault_checks import Check, check_faults
from spark_analysis.fault_windows import Explainer, Step, Window, fault_windows
from spark_analysis.journal_source import Journal
from spark_analysis.run_folder import Manifest

_QUIET_EXPOSURE_US = 1_000_000
"""How long an event is taken to be on its way if the run had no quiet time in which to see it."""
_COLUMNS = ("time_us", "node", "source", "sequence", "peer", "kind", "value")
CHECK_COLUMNS = ("step", "fault", "from_us", "until_us", "outcome", "seen")


class Faults:
    """The faults of one run. Nothing is read if the plan is empty."""

    def __init__(self, journal: Journal, manifest: Manifest) -> None:
        self._journal = journal
        self._manifest = manifest
        self.windows: Sequence[Window] = ()
        if manifest.faults:
            self.windows = fault_windows(self._steps(), self._settled(), manifest.links)

    def checks(self, last_us: int) -> list[Check]:
        """What became of each fault."""
        if not self.windows:
            return []
        numbers = self._manifest.numbers
        return check_faults(self.windows, self._involved(numbers, last_us), numbers, last_us)

    def explainer(self, outcomes: DataFrame) -> Explainer | Connections:
        """What may explain a finding under the run's guarantee; `outcomes` as in `judge.OUTCOMES_SCHEMA`."""
        homes = {node.name: node.broker for node in self._manifest.nodes if node.broker is not None}
        if self._manifest.guarantee == "exactly_once":
            away = times_away(self._link_rows(homes), self._settled(), homes)
            return Connections(away, self.windows, homes)
        exposure_us, held_up_us = self._exposures_us(outcomes) if self.windows else (0, 0)
        return Explainer(self.windows, self._manifest.links, exposure_us, held_up_us, homes)

    def publishers(self) -> dict[int, str]:
        """The name of the node where each publisher is."""
        names = [node.name for node in self._manifest.nodes]
        seen = self._journal.of(RowKind.PUBLISH).select("source", "node").distinct().collect()
        return {row["source"]: names[row["node"]] for row in seen}

    def _steps(self) -> list[Step]:
        times: dict[tuple[int, int], int] = {}
        for row in self._journal.of(RowKind.FAULT).collect():
            times[row["sequence"], row["hops"]] = row["time_us"]
        steps = []
        for number, listed in enumerate(self._manifest.faults):
            try:
                step = Step(
                    number,
                    FaultKind[listed["kind"]],
                    f"{listed['text']} (step {number + 1})",
                    tuple(listed["nodes"]),
                    tuple(tuple(group) for group in listed["groups"]),
                    listed["link"],
                    listed["work_us"],
                    times.get((number, FaultStage.ORDERED)),
                    times.get((number, FaultStage.IN_EFFECT)),
                )
            except (KeyError, TypeError) as error:
                place = f"manifest.json, key faults[{number}]"
                raise InputError(place, f"{listed!r:.80} ({error!r})", "a step of a fault plan") from None
            steps.append(step)
        return steps

    def _link_rows(self, homes: Mapping[str, str]) -> list[LinkRow]:
        names = [node.name for node in self._manifest.nodes]
        clients = [self._manifest.numbers[client] for client in homes]
        rows = self._journal.of(RowKind.LINK_UP, RowKind.LINK_DOWN)
        rows = rows.where(F.col("node").isin(clients) | F.col("peer").isin(clients))
        found = rows.select("time_us", "kind", "node", "peer").collect()
        return [(row["time_us"], row["kind"], names[row["node"]], names[row["peer"]]) for row in found]

    def _settled(self) -> list[tuple[int, int]]:
        rows = self._journal.of(RowKind.SETTLED).select("time_us", "value").collect()
        return [(row["time_us"], row["value"]) for row in rows]

    def _involved(self, numbers: dict[str, int], last_us: int) -> pd.DataFrame:
        """The rows of all nodes that a fault is about, while it is in force."""
        stretches: dict[int, list[tuple[int, int]]] = {}
        for window in self.windows:
            for name in window.nodes | frozenset(name for link in window.links for name in link):
                if name in numbers:
                    until_us = min(window.undone_us, last_us)
                    stretches.setdefault(numbers[name], []).append((window.from_us, until_us))
        merged = {node: np.array(_merged(each)) for node, each in stretches.items()}
        rows = self._journal.rows.select(*_COLUMNS)
        return rows.mapInPandas(_within(merged), rows.schema).toPandas()

    def _exposures_us(self, outcomes: DataFrame) -> tuple[int, int]:
        """The longest delivery delay of events published and delivered while no fault was in force anywhere, plus how
        far nodes fell behind; and the longest delay of all."""
        quiet = F.lit(True)
        for from_us, until_us in _merged((window.from_us, window.until_us) for window in self.windows):
            quiet = quiet & ~((F.col("published_us") <= until_us) & (F.col("delivered_us") >= from_us))
        delay = F.col("delivered_us") - F.col("published_us")
        delivered = outcomes.where((F.col("copies") > 0) & F.col("published_us").isNotNull())
        row = delivered.agg(F.max(F.when(quiet, delay)).alias("quiet"), F.max(delay).alias("longest")).first()
        calm, longest = (None, None) if row is None else (row["quiet"], row["longest"])
        exposure_us = (_QUIET_EXPOSURE_US if calm is None else int(calm)) + self._lag_us()
        return exposure_us, max(exposure_us, int(longest or 0))

    def _lag_us(self) -> int:
        """How far nodes fell behind emulated time, but for those that a fault held up: an event may wait so long."""
        kinds = (FaultKind.STALL, FaultKind.SLOW)
        held_up = {name for window in self.windows if window.step.kind in kinds for name in window.nodes}
        numbers = self._manifest.numbers
        lag = self._journal.of(RowKind.LAG)
        row = lag.where(~F.col("node").isin([numbers[name] for name in sorted(held_up)])).agg(F.max("value")).first()
        return 0 if row is None or row[0] is None else int(row[0])


def _merged(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same stretches of time without overlaps: there may be thousands under churn, and few of these."""
    merged: list[tuple[int, int]] = []
    for from_us, until_us in sorted(stretches):
        if merged and from_us <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(until_us, merged[-1][1]))
        else:
            merged.append((from_us, until_us))
    return merged


def _within(stretches: Mapping[Any, np.ndarray]) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """Keeps each node's rows in its stretches of time (rows of begin and end, in order, apart)."""

    def keep(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            time_us = frame["time_us"].to_numpy()
            wanted = np.zeros(len(frame), dtype=bool)
            for node, places in frame.groupby("node").indices.items():
                if node in stretches:
                    begins, ends = stretches[node].T
                    last = np.searchsorted(begins, time_us[places], "right") - 1
                    wanted[places] = (last >= 0) & (time_us[places] <= ends[last])
            yield frame[wanted]

    return keep


def checks_table(checks: Sequence[Check]) -> pd.DataFrame:
    """The checks as a table with the columns `CHECK_COLUMNS`."""
    table = pd.DataFrame([asdict(check) for check in checks], columns=list(CHECK_COLUMNS))
    table["until_us"] = table["until_us"].astype("Int64")
    return table
