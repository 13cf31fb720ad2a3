"""Random scenarios with random faults, for the tests of every protocol: drawn by hypothesis, so that they shrink.

A schedule is a scenario as a person would write it, with few nodes, few events and few faults. `play` runs it in
virtual time and judges it by the plain judge, with losses explained as the analysis explains them. A failing test
prints the scenario and the one command that runs it again.
"""

import bisect
import itertools
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import yaml
from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st

from experiments.deploy import deploy, describe_fault
from experiments.registry import guarantee
from experiments.scenario import LoadedScenario, check_scenario
from pubsub.deployment import Deployment
from pubsub.errors import InputError
from pubsub.faults import FaultKind
from pubsub.journal import FaultStage, RowKind, read_segment
from simulation.run import play as play_virtual
from spark_analysis.connections import Connections, times_away
from spark_analysis.fault_checks import Check, check_faults
from spark_analysis.fault_windows import Explainer, Step, fault_windows
from tests.plain_judge import Pair, Verdict, judge

GRACE_US = 1_000_000
NODE_FAULTS = ("kill", "stall", "slow")
LINK_FAULTS = ("cut", "loss", "duplication", "reordering", "delay", "bandwidth")
_LINK_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "loss": {"loss": 0.5},
    "duplication": {"duplication": 0.5},
    "reordering": {"reordering": 0.5},
    "delay": {"delay": "30 ms"},
    "bandwidth": {"messages_per_s": 50},
}


@dataclass(frozen=True)
class Outcome:
    """What became of a schedule. `unexplained`: missing pairs without a fault on their way; `guaranteed`: required
    pairs that no fault would excuse, delivered or not; `checks`: whether each fault bit."""

    deployment: Deployment
    verdict: Verdict
    unexplained: list[Pair]
    guaranteed: frozenset[Pair]
    checks: list[Check]


@st.composite
def schedules(
    draw: st.DrawFn,
    broker: Mapping[str, str],
    kinds: Sequence[str] = (*NODE_FAULTS, *LINK_FAULTS, "partition"),
    overlays: Sequence[str] = ("chain", "star", "random"),
    brokers_max: int = 6,
    faults_max: int = 5,
    clients_fail: bool = True,
    losses: Sequence[float] = (0.0,),
    more: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The keys of a scenario with the given `broker` section, and `more`; every link between brokers loses one of
    `losses`."""
    overlay_kind = draw(st.sampled_from(overlays), label="overlay")
    brokers = draw(st.integers(2, brokers_max), label="brokers")
    data: dict[str, Any] = {
        "name": "schedule",
        "runtime": "virtual",
        "seed": draw(st.integers(0, 9999), label="seed"),
        "overlay": draw(_cells()) if overlay_kind == "cells" else {"kind": overlay_kind, "brokers": brokers},
        "workload": {
            "kind": "zipf", "clients": brokers, "subscribers_per_actor": 2, "publishers": min(2, brokers),
            "publications": draw(st.integers(20, 150)), "rate_per_s": 40, "attributes": 2, "predicates": 1,
            "matching_rate": 0.5,
        },
        "broker": dict(broker),
        "links": {"delay": "2 ms", "loss": draw(st.sampled_from(losses))},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "drain": {"limit": "300 s"},
        "journal": "hops",
        **more,
    }  # fmt: skip
    clean = _loaded(data)
    overlay = clean.build_overlay()
    deployment = deploy(clean, overlay, clean.build_workload(overlay))
    nodes = [spec.name for spec in deployment.nodes if clients_fail or spec.role == "broker"]
    links = [[plan.first, plan.second] for plan in deployment.links]
    entries = draw(
        st.lists(
            st.tuples(
                st.integers(0, 30), st.sampled_from(kinds), st.integers(0, 99), st.sampled_from((50, 200, 600, 1200))
            ),
            max_size=faults_max,
        )
    )
    data["faults"] = _possible(sorted(entries), nodes, links, data, deployment)
    return data


@st.composite
def _cells(draw: st.DrawFn) -> dict[str, Any]:
    """A tree of cells: a host, one or two cells of two brokers next to it, a host or two behind each."""
    cells, links = {"p": ["p0"]}, []
    for middle in range(draw(st.integers(1, 2))):
        cells[f"m{middle}"] = [f"m{middle}a", f"m{middle}b"]
        links.append(["p", f"m{middle}"])
        for leaf in range(draw(st.integers(1, 2))):
            cells[f"s{middle}{leaf}"] = [f"s{middle}{leaf}"]
            links.append([f"m{middle}", f"s{middle}{leaf}"])
    return {"kind": "cells", "cells": cells, "links": links}


def _possible(
    drawn: Sequence[tuple[int, str, int, int]],
    nodes: Sequence[str],
    links: Sequence[list[str]],
    data: Mapping[str, Any],
    deployment: Deployment,
) -> list[dict[str, Any]]:
    """The drawn faults as entries, without those that could not take effect beside the earlier ones."""
    entries: list[dict[str, Any]] = []
    busy: dict[str, int] = {}
    for tenths, kind, number, lasts_ms in drawn:
        at_ms = 100 * tenths
        if kind in NODE_FAULTS:
            name = nodes[number % len(nodes)]
            about, entry = [name], {kind: name} | ({"work": "2 ms"} if kind == "slow" else {})
        elif kind == "partition":
            about = list(nodes)
            entry = {kind: [_side(links[number % len(links)], links, data)]}
        else:
            about = links[number % len(links)]
            entry = {"cut": about} if kind == "cut" else {"link": about, **_LINK_CHANGES[kind]}
        if any(busy.get(name, -1) >= at_ms for name in about):
            continue
        candidate = [*entries, {"at": f"{at_ms} ms", **entry, "for": f"{lasts_ms} ms"}]
        try:
            loaded = _loaded({**data, "faults": candidate})
            overlay = loaded.build_overlay()
            deploy(loaded, overlay, loaded.build_workload(overlay))
        except InputError:
            continue
        entries = candidate
        busy |= dict.fromkeys(about, at_ms + lasts_ms)
    return entries


def _side(cut: Sequence[str], links: Sequence[Sequence[str]], data: Mapping[str, Any]) -> list[str]:
    """The nodes of a tree on the second end's side of the link; where there are cells, that end and its clients."""
    if data["overlay"]["kind"] == "cells":
        ends = {cut[1]} | {name for link in links for name in link if cut[1] in link and name.startswith("c")}
        return sorted(ends)
    reached = [cut[1]]
    for name in reached:
        for first, second in links:
            if {first, second} != set(cut):
                reached += [
                    other for here, other in ((first, second), (second, first)) if here == name and other not in reached
                ]
    return reached


def play(data: Mapping[str, Any]) -> Outcome:
    """Run the scenario and judge it. A failing test prints it, and the command that runs it again: the last one that
    hypothesis tries is the smallest."""
    file = Path(tempfile.gettempdir()) / f"murmur-schedule-{os.getpid()}.yaml"
    text = yaml.safe_dump(dict(data), sort_keys=False)
    file.write_text(text)
    if currently_in_test_context():
        note(f"{text}seed {data['seed']}; again: murmur run {file}")
    loaded = _loaded(data)
    overlay = loaded.build_overlay()
    deployment = deploy(loaded, overlay, loaded.build_workload(overlay))
    with tempfile.TemporaryDirectory() as folder:
        play_virtual(deployment, Path(folder), lambda *_: None)
        return judge_faults(deployment, Path(folder))


class _Overtakings:
    """When each subscriber first got a later event of a publisher; of deliveries (subscriber, source, sequence, us)."""

    def __init__(self, deliveries: Iterable[tuple[int, int, int, int]]) -> None:
        self._streams: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for subscriber, source, sequence, time_us in deliveries:
            self._streams.setdefault((subscriber, source), []).append((sequence, time_us))
        self._earliest: dict[tuple[int, int], list[int]] = {}
        for key, stream in self._streams.items():
            stream.sort()
            self._earliest[key] = list(itertools.accumulate((time_us for _, time_us in reversed(stream)), min))[::-1]

    def after(self, subscriber: int, source: int, sequence: int) -> int | None:
        """The time of the first delivery of an event of that source with a higher number (None: there is none)."""
        stream = self._streams.get((subscriber, source), [])
        place = bisect.bisect_left(stream, (sequence + 1, 0))
        return self._earliest[subscriber, source][place] if place < len(stream) else None


def judge_faults(deployment: Deployment, journal: Path) -> Outcome:
    """Judge the journal of a run of this deployment, on either runtime."""
    verdict = judge(journal, GRACE_US)
    rows = pd.concat([pd.DataFrame(read_segment(path)[1]) for path in sorted(journal.glob("*.seg"))])
    names = [*(spec.name for spec in deployment.nodes), "driver"]
    links = [(plan.first, plan.second) for plan in deployment.links]
    seen = rows[rows["kind"] == RowKind.FAULT]
    times = {(row.sequence, row.hops): row.time_us for row in seen.itertuples()}
    steps = []
    for number, fault in enumerate(deployment.faults):
        said = describe_fault(fault, deployment)
        steps.append(
            Step(
                number, fault.kind, str(fault), tuple(said["nodes"]), fault.groups, said["link"], fault.work_us,
                times.get((number, FaultStage.ORDERED)), times.get((number, FaultStage.IN_EFFECT)),
            )
        )  # fmt: skip
    settled = rows[rows["kind"] == RowKind.SETTLED]
    windows = fault_windows(steps, zip(settled["time_us"], settled["value"], strict=True), links)
    homes = {spec.name: spec.broker for spec in deployment.nodes if spec.broker is not None}
    published = rows[rows["kind"] == RowKind.PUBLISH]
    where = {(row.source, row.sequence): (names[row.node], row.time_us) for row in published.itertuples()}
    subscribed = rows[rows["kind"] == RowKind.SUBSCRIBE]
    subscriber_at = {row.source: names[row.node] for row in subscribed.itertuples()}
    delivered = rows[rows["kind"] == RowKind.DELIVER]
    delays = [row.time_us - where[row.source, row.sequence][1] for row in delivered.itertuples()]
    held_up = [
        name for fault in deployment.faults if fault.kind in (FaultKind.STALL, FaultKind.SLOW) for name in fault.nodes
    ]
    behind = rows[(rows["kind"] == RowKind.LAG) & ~rows["node"].isin([deployment.numbers[name] for name in held_up])]
    exposure_us = 50_000 + int(behind["value"].max() if len(behind) else 0)
    longest_us = max(delays, default=0)
    overtakings = _Overtakings(
        zip(delivered["value"], delivered["source"], delivered["sequence"], delivered["time_us"], strict=True)
    )
    explainer: Explainer | Connections = Explainer(windows, links, exposure_us, longest_us, homes)
    if guarantee(deployment.nodes[0].parameters["reliability"]) == "exactly_once":
        moved = rows[rows["kind"].isin([RowKind.LINK_UP, RowKind.LINK_DOWN])]
        changes = [(row.time_us, row.kind, names[row.node], names[row.peer]) for row in moved.itertuples()]
        away = times_away(changes, zip(settled["time_us"], settled["value"], strict=True), homes)
        explainer = Connections(away, windows, homes)

    def excused(pair: Pair) -> bool:
        (event, subscriber) = pair
        if event not in where:
            return True  # its publisher was killed after the event's attributes were written and before it was out
        publisher, published_us = where[event]
        overtaken_us = overtakings.after(subscriber, *event)
        return (
            explainer.explain("missing", publisher, subscriber_at[subscriber], published_us, overtaken_us) is not None
        )

    unexplained = [pair for pair in verdict.missing if not excused(pair)]
    guaranteed = frozenset(pair for pair in verdict.required_pairs if not excused(pair))
    checks = check_faults(windows, rows, deployment.numbers, int(rows["time_us"].max()))
    return Outcome(deployment, verdict, unexplained, guaranteed, checks)


def _loaded(data: Mapping[str, Any]) -> LoadedScenario:
    return check_scenario(dict(data), "schedule")
