"""The IRBR paper's protocols on live actors: real kills of a fifth of 64 nodes at once, then churn from a trace.

The scenario is `irbr-live`. What counts are the pairs that stayed up: events published at brokers that no fault
touches, for subscribers of such brokers. Which those are is worked out with `Filter.matches`; Spark's judge of the
whole run is kept beside.
"""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import RowKind
from murmuration.papers.lab.judged_run import (
    fault_times_s,
    journal,
    play_judged,
    publishing_from_us,
    touched_by_faults,
    wanted_pairs,
)
from murmuration.papers.lab.real_data import Trace, churn_of
from murmuration.scenario.load import load_scenario

LIVE_BIN_S = 2
KILL_S, FOUND_S, CHURN_S, END_S = 10, 20, 30, 60
"""From the scenario: the kill, when it has been found and repaired at the latest (a round of probes begins every 4 s
and takes 2 s; repairs are learnt in the next), churn, the end."""


@dataclass(frozen=True, slots=True)
class IrbrLiveSpec:
    """One run. `trace`: of whose churn; `changes`: of the scenario, as on the command line."""

    routing: str
    seed: int = 1
    trace: Trace = "generated"
    changes: tuple[str, ...] = ()


@dataclass(slots=True)
class IrbrLiveRun:
    """Pairs that stayed up, by time of publication in bins of `LIVE_BIN_S`: how many were required, how many delivered;
    and how many more deliveries there were to one of them. `kills`, `starts`: their times in seconds from the first
    publication. `judged`: counts of Spark's judge, of all pairs."""

    spec: IrbrLiveSpec
    required: list[int] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    duplicate: int = 0
    spurious: int = 0
    kills: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    judged: dict[str, int] = field(default_factory=dict)

    def rate(self, from_s: int, until_s: int) -> float:
        """The delivery rate of what was published in that time (whole bins)."""
        bins = slice(from_s // LIVE_BIN_S, until_s // LIVE_BIN_S)
        return sum(self.made[bins]) / max(1, sum(self.required[bins]))


def measure_irbr_live(spec: IrbrLiveSpec, address: str | None = None) -> IrbrLiveRun:
    """Play it, judge it, and read its journal."""
    changes = [f"seed={spec.seed}", f"broker.routing={spec.routing}", *churn_of(spec.trace), *spec.changes]
    if spec.trace == "skype":
        changes.append("churn.window=[4,5.25]")
    loaded = load_scenario(Path("irbr-live"), changes)
    with TemporaryDirectory() as place:
        _, verdict = play_judged(loaded.data, Path(place) / "run", address)
        live = read_irbr_live(spec, Path(place) / "run", touched_by_faults(loaded))
    faults = ("faults_took_effect", "faults_failed")
    counted = ("required", "delivered", "missing", "explained", "duplicate", "spurious", *faults)
    live.judged = {name: int(verdict[name]) for name in counted}
    return live


def read_irbr_live(spec: IrbrLiveSpec, folder: Path, touched: set[str]) -> IrbrLiveRun:
    """What a run's journal says of the pairs that no fault touched."""
    rows = journal(folder)
    begin_us, bin_us = publishing_from_us(rows), LIVE_BIN_S * 1_000_000
    last_us = int(rows[rows.kind == RowKind.PUBLISH].time_us.max())
    bins = (last_us - begin_us) // bin_us + 1
    live = IrbrLiveRun(spec, [0] * bins, [0] * bins)
    delivered = rows[rows.kind == RowKind.DELIVER].groupby(["source", "sequence", "value"]).size().to_dict()
    due = set()
    for pair in wanted_pairs(folder, rows, touched):
        due.add(pair.delivery)
        if pair.stayed:
            at = max(0, pair.time_us - begin_us) // bin_us
            live.required[at] += 1
            live.made[at] += pair.delivery in delivered
    live.duplicate = sum(count - 1 for count in delivered.values())
    live.spurious = len(delivered.keys() - due)
    live.kills, live.starts = (fault_times_s(rows, kind) for kind in (FaultKind.KILL, FaultKind.RESTART))
    return live
