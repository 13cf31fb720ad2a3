"""Random scenarios with random faults, for the tests of every protocol: drawn by hypothesis, so that they shrink.

A schedule is a scenario as a person would write it, with few nodes, few events and few faults. `play` runs it in
virtual time and judges it by the plain judge, with losses explained as the analysis explains them. A failing test
prints the scenario and the one command that runs it again.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmur_pubsub.run_manifest import NodeEntry, RunManifest
from murmur_virtual.run import play_virtual
from murmuration.deployment.build_deployment import build
from murmuration.registry import promise, reliability_named, routing_named
from murmuration.runs.manifest import fault_entry
from murmuration.scenario.load import LoadedScenario, check_scenario
from routing.protocol import OverlayTraits
from spark_analysis.fault_checks import FaultCheck
from spark_analysis.plain_judge import Judgement, Pair, PlainVerdict, judge_journal

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
    """What became of a schedule. `guaranteed`: required pairs that no fault excuses, delivered or not."""

    deployment: Deployment
    judgement: Judgement
    guaranteed: frozenset[Pair]

    @property
    def verdict(self) -> PlainVerdict:
        """The findings."""
        return self.judgement.pairs

    @property
    def unexplained(self) -> list[Pair]:
        """Missing pairs that no fault excuses."""
        return self.judgement.left("missing")

    @property
    def checks(self) -> Sequence[FaultCheck]:
        """Whether each fault took effect."""
        return self.judgement.checks


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
    overlay = {"kind": overlay_kind, "brokers": brokers}
    if overlay_kind == "cells":
        overlay = draw(_cells())
    elif overlay_kind == "structured":
        overlay |= {"probe": "200 ms", "probe_timeout": "100 ms"}
    data: dict[str, Any] = {
        "name": "schedule",
        "runtime": "virtual",
        "seed": draw(st.integers(0, 9999), label="seed"),
        "overlay": overlay,
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
    deployment = build(clean).deployment
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


def examples(quick: int, thorough: int) -> pytest.MarkDecorator:
    """The test's parameter `examples`: how many schedules it draws, the larger number in a test that is slow."""
    return pytest.mark.parametrize("examples", [quick, pytest.param(thorough, marks=pytest.mark.slow)])


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
        entry: dict[str, Any]
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
            build(loaded)
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
    deployment = build(loaded).deployment
    with tempfile.TemporaryDirectory() as folder:
        play_virtual(deployment, Path(folder), lambda *_: None)
        return judge_faults(deployment, Path(folder))


def judge_faults(deployment: Deployment, journal: Path) -> Outcome:
    """Judge the journal of a run of this deployment, on either runtime."""
    parts = deployment.nodes[0].parameters
    nodes = tuple(NodeEntry(spec.name, spec.role, spec.broker) for spec in deployment.nodes)
    manifest = RunManifest(
        name="schedule",
        runtime="virtual",
        seed=deployment.settings.seed,
        run=f"{deployment.settings.identifier:016x}",
        nodes=(*nodes, NodeEntry("driver", "driver")),
        status="complete",
        writers={},  # whether the journal is whole is not asked here
        links=tuple((plan.first, plan.second) for plan in deployment.links),
        faults=tuple(fault_entry(fault, deployment) for fault in deployment.faults),
        withdrawal_grace_us=GRACE_US,
        subscription_grace_us=GRACE_US,
        promise=promise(
            routing_named(parts["routing"]),
            reliability_named(parts["reliability"]),
            parts["routing_parameters"],
            OverlayTraits("the overlay", frozenset(), has_datagrams=deployment.settings.default_link is not None),
        ),
    )
    judgement = judge_journal(manifest, journal)
    excused = {pair for finding, pair in judgement.excused if finding == "missing"}
    return Outcome(deployment, judgement, judgement.pairs.required_pairs - excused)


def _loaded(data: Mapping[str, Any]) -> LoadedScenario:
    return check_scenario(dict(data), "schedule")
