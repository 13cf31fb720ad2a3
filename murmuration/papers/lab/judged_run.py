"""One run of a scenario made of keys, its verdict, and what its journal says: rows, faults, wanted deliveries."""

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd

from murmur_pubsub.event import unpack_attributes
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import FaultStage, Phase, RowKind, SideKind, read_side
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.run_manifest import read_manifest
from murmur_pubsub.values import Value
from murmuration.deployment.build_deployment import build
from murmuration.runs.driver import FinishedRun, execute
from murmuration.scenario.load import LoadedScenario, check_scenario

Runtime = Literal["virtual", "ray"]
RUNTIMES: tuple[Runtime, ...] = ("virtual", "ray")


def play_judged(
    data: Mapping[str, Any], folder: Path, address: str | None = None
) -> tuple[FinishedRun, Mapping[str, Any]]:
    """Run the scenario, a live one on the cluster at the address if there is one, and judge it."""
    from spark_analysis.main import judge

    finished = _play(data, folder, address)
    return finished, judge(folder)


def play_plainly(data: Mapping[str, Any], folder: Path, address: str | None = None) -> Mapping[str, Any]:
    """The same for a run of thousands of events, judged in plain Python: Java's start is in the way of live runs that
    follow."""
    from spark_analysis.plain_judge import judge_run

    _play(data, folder, address)
    return judge_run(folder).numbers


def _play(data: Mapping[str, Any], folder: Path, address: str | None) -> FinishedRun:
    loaded = check_scenario(dict(data), str(data["name"]))
    return execute(loaded, folder, lambda *_: None, address if loaded.scenario.runtime == "ray" else None)


def node_names(folder: Path) -> list[str]:
    """Node names by number, of a run folder."""
    return read_manifest(folder).names


def journal(folder: Path) -> pd.DataFrame:
    """All rows of a run, in order of time."""
    rows = [pd.DataFrame(read_segment(path)[1]) for path in sorted((folder / "journal").glob("*.seg"))]
    return pd.concat(rows).sort_values("time_us", kind="stable").reset_index(drop=True)


def publishing_from_us(rows: pd.DataFrame) -> int:
    """When publishing began."""
    return int(rows[(rows.kind == RowKind.PHASE) & (rows.value == Phase.PUBLISHING)].time_us.iloc[0])


def touched_by_faults(loaded: LoadedScenario) -> set[str]:
    """The nodes that the scenario's plan, churn included, kills or starts."""
    return {name for fault in build(loaded).deployment.faults for name in fault.nodes}


def fault_times_s(rows: pd.DataFrame, kind: FaultKind) -> list[float]:
    """When faults of that kind took effect, in seconds from the beginning of publishing."""
    begin_us = publishing_from_us(rows)
    found = rows[(rows.kind == RowKind.FAULT) & (rows.hops == FaultStage.IN_EFFECT) & (rows.value == kind)]
    return [round((time_us - begin_us) / 1e6, 1) for time_us in found.time_us.tolist()]


class WantedPair(NamedTuple):
    """A delivery that had to be made, worked out with `Filter.matches`."""

    time_us: int
    """When the event was published."""
    source: int
    sequence: int
    subscriber: int
    stayed: bool
    """The brokers of publisher and subscriber were up all the time."""

    @property
    def delivery(self) -> tuple[int, int, int]:
        """Publisher, number of the event, subscriber."""
        return self.source, self.sequence, self.subscriber


def wanted_pairs(folder: Path, rows: pd.DataFrame, touched: Container[str]) -> Iterator[WantedPair]:
    """All of a run, event by event. `touched`: the nodes that a fault kills or starts."""
    stays = {number for number, name in enumerate(node_names(folder)) if name not in touched}
    wanted, events = _said_by_clients(folder)
    published = rows[rows.kind == RowKind.PUBLISH][["node", "source", "sequence", "time_us"]]
    for node, source, sequence, time_us in published.itertuples(index=False):
        for subscriber, (home, filters) in wanted.items():
            if any(each.matches(events[source, sequence]) for each in filters):
                yield WantedPair(time_us, source, sequence, subscriber, home in stays and node in stays)


def _said_by_clients(
    folder: Path,
) -> tuple[dict[int, tuple[int, list[Filter]]], dict[tuple[int, int], dict[str, Value]]]:
    """Each subscriber's home and filters, and each event's attributes by (source, sequence)."""
    wanted: dict[int, tuple[int, list[Filter]]] = {}
    events: dict[tuple[int, int], dict[str, Value]] = {}
    for path in sorted((folder / "journal").glob("*.blob")):
        for kind, fields in read_side(path):
            if kind is SideKind.SUBSCRIBE:
                wanted.setdefault(fields[2], (fields[1], []))[1].append(parse_filter(fields[3]))
            elif kind is SideKind.EVENT:
                events[fields[0], fields[1]] = unpack_attributes(fields[3])
    return wanted, events
