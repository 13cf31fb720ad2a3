"""Vinifera and its baseline on live actors: an availability trace replayed as real kills and starts.

The scenario is `vinifera-live`. What counts are the pairs that stayed up: events published at brokers that churn does
not touch, for subscribers of such brokers, worked out with `Filter.matches`. Overhead is of all brokers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import NONE, FaultStage, RowKind
from murmuration.papers.lab.judged_run import (
    fault_times_s,
    journal,
    play_judged,
    publishing_from_us,
    touched_by_faults,
    wanted_pairs,
)
from murmuration.papers.lab.real_data import Trace, churn_of
from murmuration.papers.vinifera.run import Routing
from murmuration.papers.vinifera.workload import Model
from murmuration.scenario.load import LoadedScenario, load_scenario

CHURN_BIN_S = 5
_COUNTED = ("required", "delivered", "missing", "explained", "duplicate", "spurious", "faults_failed")


@dataclass(frozen=True, slots=True)
class ViniferaLiveSpec:
    """One run. `changes`: of the scenario, as on the command line; `model`: the interests in it."""

    routing: Routing
    trace: Trace
    seed: int = 1
    changes: tuple[str, ...] = ()
    model: Model = "skewed"

    def load(self) -> LoadedScenario:
        """The scenario; raises `InputError`."""
        changes = [f"seed={self.seed}", *_SYSTEMS[self.routing], *churn_of(self.trace), *self.changes]
        return load_scenario(Path("vinifera-live"), changes)


_SYSTEMS: Mapping[Routing, Sequence[str]] = {
    "vinifera": (),
    "vinifera_even": (
        "broker={routing: vinifera_even, parameters: {vinifera_even: "
        "{attributes: {a0: {min: 0, max: 1}, a1: {min: 0, max: 1}}}}}",
    ),
    "ferry": ("broker={routing: ferry, parameters: {ferry: {attributes: [a0, a1]}}}",),
}
"""What each changes in the scenario."""


@dataclass(slots=True)
class ViniferaLiveRun:
    """By time of publication in bins of `CHURN_BIN_S`. interested, delivered, hops: pairs that stayed up, deliveries to
    them and their hops. received, uninterested: messages with events at all brokers, and those at brokers without
    interest. population: brokers that were up. `judged`: counts of Spark's judge, of all pairs."""

    spec: ViniferaLiveSpec
    interested: list[int] = field(default_factory=list)
    delivered: list[int] = field(default_factory=list)
    hops: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    uninterested: list[int] = field(default_factory=list)
    population: list[int] = field(default_factory=list)
    kills: int = 0
    starts: int = 0
    judged: dict[str, int] = field(default_factory=dict)

    @property
    def missed(self) -> int:
        """Pairs that stayed up without their delivery."""
        return sum(self.interested) - sum(self.delivered)


def measure_vinifera_live(spec: ViniferaLiveSpec, address: str | None = None) -> ViniferaLiveRun:
    """Play it, judge it, and read its journal."""
    loaded = spec.load()
    with TemporaryDirectory() as place:
        _, verdict = play_judged(loaded.data, Path(place) / "run", address)
        live = read_vinifera_live(spec, Path(place) / "run", touched_by_faults(loaded))
    live.judged = {name: int(verdict[name]) for name in _COUNTED}
    return live


def read_vinifera_live(spec: ViniferaLiveSpec, folder: Path, touched: set[str]) -> ViniferaLiveRun:
    """What a run's journal says."""
    rows = journal(folder)
    begin_us, bin_us = publishing_from_us(rows), CHURN_BIN_S * 1_000_000
    published = rows[rows.kind == RowKind.PUBLISH][["source", "sequence", "time_us"]]
    published = published.assign(bin=(published.time_us - begin_us).clip(lower=0) // bin_us)
    bins = int(published.bin.max()) + 1
    first = rows[rows.kind == RowKind.DELIVER].drop_duplicates(["source", "sequence", "value"])
    hops = first.set_index(["source", "sequence", "value"]).hops.to_dict()
    live = ViniferaLiveRun(spec, [0] * bins, [0] * bins, [0] * bins)
    for pair in wanted_pairs(folder, rows, touched):
        if pair.stayed:
            at = max(0, pair.time_us - begin_us) // bin_us
            live.interested[at] += 1
            if pair.delivery in hops:
                live.delivered[at] += 1
                live.hops[at] += hops[pair.delivery]
    live.received, live.uninterested = _messages(rows, first, published, bins)
    kills, starts = (fault_times_s(rows, kind) for kind in (FaultKind.KILL, FaultKind.RESTART))
    live.kills, live.starts = len(kills), len(starts)
    changes = rows[(rows.kind == RowKind.FAULT) & (rows.hops == FaultStage.IN_EFFECT)]
    first_of_each = changes.drop_duplicates("node").value
    begin = len(rows[rows.kind == RowKind.START].node.unique()) - int((first_of_each == FaultKind.RESTART).sum())
    live.population = [begin - _before(at, kills) + _before(at, starts) for at in range(bins)]
    return live


def _messages(
    rows: pd.DataFrame, delivered: pd.DataFrame, published: pd.DataFrame, bins: int
) -> tuple[list[int], list[int]]:
    """All of them, and those that reached a broker without interest: nothing of the event was delivered there."""
    event = ["source", "sequence"]
    arrived = rows[(rows.kind == RowKind.RECEIVE) & (rows.source != NONE)][[*event, "node"]]
    arrived = arrived.merge(published[[*event, "bin"]], on=event)
    useful = delivered[[*event, "node"]].drop_duplicates()
    found = arrived.merge(useful, on=[*event, "node"], how="left", indicator="useful")
    received, useless = (found.bin.value_counts(), found[found.useful == "left_only"].bin.value_counts())
    return [int(received.get(at, 0)) for at in range(bins)], [int(useless.get(at, 0)) for at in range(bins)]


def _before(bin: int, times_s: list[float]) -> int:
    """How many of them are before the middle of the bin."""
    return sum(time_s < (bin + 0.5) * CHURN_BIN_S for time_s in times_s)
