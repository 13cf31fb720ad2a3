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
    node_names,
    play,
    publishing_from_us,
    said_by_clients,
    touched_by_faults,
)
from murmuration.papers.lab.real_data import Trace, churn_of
from murmuration.scenario.load import load_scenario

BIN_S = 2
KILL_S, FOUND_S, CHURN_S, END_S = 10, 20, 30, 60
"""From the scenario: the kill, when it has been found and repaired at the latest (a round of probes begins every 4 s
and takes 2 s; repairs are learnt in the next), churn, the end."""


@dataclass(frozen=True, slots=True)
class LiveSpec:
    """One run. `trace`: of whose churn; `changes`: of the scenario, as on the command line."""

    routing: str
    seed: int = 1
    trace: Trace = "generated"
    changes: tuple[str, ...] = ()


@dataclass(slots=True)
class Live:
    """Pairs that stayed up, by time of publication in bins of `BIN_S`: how many were required, how many delivered; and
    how many more deliveries there were to one of them. `kills`, `starts`: their times in seconds from the first
    publication. `judged`: counts of Spark's judge, of all pairs."""

    spec: LiveSpec
    required: list[int] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    duplicate: int = 0
    spurious: int = 0
    kills: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    judged: dict[str, int] = field(default_factory=dict)

    def rate(self, from_s: int, until_s: int) -> float:
        """The delivery rate of what was published in that time (whole bins)."""
        bins = slice(from_s // BIN_S, until_s // BIN_S)
        return sum(self.made[bins]) / max(1, sum(self.required[bins]))


def measure_live(spec: LiveSpec) -> Live:
    """Play it, judge it, and read its journal."""
    changes = [f"seed={spec.seed}", f"broker.routing={spec.routing}", *churn_of(spec.trace), *spec.changes]
    if spec.trace == "skype":
        changes.append("churn.window=[4,5.25]")
    loaded = load_scenario(Path("irbr-live"), changes)
    with TemporaryDirectory() as folder:
        _, verdict = play(loaded.data, Path(folder))
        live = read_live(spec, Path(folder), touched_by_faults(loaded))
    faults = ("faults_took_effect", "faults_failed")
    counted = ("required", "delivered", "missing", "explained", "duplicate", "spurious", *faults)
    live.judged = {name: int(verdict[name]) for name in counted}
    return live


def read_live(spec: LiveSpec, folder: Path, touched: set[str]) -> Live:
    """What a run's journal says of the pairs that no fault touched."""
    names = node_names(folder)
    stays = {number for number, name in enumerate(names) if name not in touched}
    rows = journal(folder)
    begin_us = publishing_from_us(rows)
    wanted, events = said_by_clients(folder)
    published = rows[rows.kind == RowKind.PUBLISH]
    delivered = rows[rows.kind == RowKind.DELIVER].groupby(["source", "sequence", "value"]).size().to_dict()
    bins = (int(published.time_us.max()) - begin_us) // (BIN_S * 1_000_000) + 1
    live = Live(spec, [0] * bins, [0] * bins)
    due = set()
    for node, source, sequence, time_us in published[["node", "source", "sequence", "time_us"]].itertuples(index=False):
        at = max(0, time_us - begin_us) // (BIN_S * 1_000_000)
        for subscriber, (home, filters) in wanted.items():
            if any(each.matches(events[source, sequence]) for each in filters):
                due.add((source, sequence, subscriber))
                if home in stays and node in stays:
                    live.required[at] += 1
                    live.made[at] += (source, sequence, subscriber) in delivered
    live.duplicate = sum(count - 1 for count in delivered.values())
    live.spurious = len(delivered.keys() - due)
    live.kills, live.starts = (fault_times_s(rows, kind) for kind in (FaultKind.KILL, FaultKind.RESTART))
    return live
