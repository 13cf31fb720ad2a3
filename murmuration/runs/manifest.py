"""What a run says of itself before it starts: its manifest, from scenario and deployment."""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Literal

from murmur_pubsub.deployment import Deployment, make_machine
from murmur_pubsub.faults import Fault, FaultKind, actor_of, some_names
from murmur_pubsub.machine import NodeName
from murmur_pubsub.message import is_datagram, kind_of
from murmur_pubsub.run_manifest import FaultEntry, NodeEntry, OverlayEntry, RunManifest
from murmuration.deployment.build_deployment import BuiltScenario
from murmuration.scenario.load import LoadedScenario
from murmuration.version import own_version

_IN_PROCESS = (FaultKind.KILL, FaultKind.STALL, FaultKind.SLOW)
"""What is done to one node of an actor inside its process."""
_OF_ALL_THERE = (FaultKind.KILL_ACTOR, FaultKind.RESTART_ACTOR, FaultKind.LOSE_HOST, FaultKind.RETURN_HOST)
"""What is done to all nodes of an actor or a host that were ever there."""


def manifest_of(loaded: LoadedScenario, built: BuiltScenario) -> RunManifest:
    """The manifest of a run that has not begun."""
    scenario, overlay, deployment = loaded.scenario, built.overlay, built.deployment
    return dataclasses.replace(
        manifest_of_deployment(deployment, scenario.name, scenario.runtime),
        version=own_version(),
        time_dilation=scenario.time_dilation,
        scenario=loaded.data,
        scenario_file=str(Path(loaded.place).resolve()) if Path(loaded.place).is_file() else None,
        overlay=OverlayEntry(tuple(overlay.brokers), tuple(overlay.edges)),
        workload=built.workload.description,
        message_kinds=message_kinds(deployment),
        withdrawal_grace_us=scenario.withdrawal_grace,
        subscription_grace_us=scenario.subscription_grace,
        recovery_limit_us=scenario.recovery_limit,
        expect=scenario.expect.plain(),
        measures=built.protocols.measures,
    )


def manifest_of_deployment(deployment: Deployment, name: str, runtime: Literal["ray", "virtual"]) -> RunManifest:
    """What a deployment alone says of its run."""
    nodes = tuple(NodeEntry(spec.name, spec.role, spec.broker) for spec in deployment.nodes)
    beside = deployment.settings.default_link
    return RunManifest(
        name=name,
        runtime=runtime,
        seed=deployment.settings.seed,
        run=f"{deployment.settings.identifier:016x}",
        nodes=(*nodes, NodeEntry("driver", "driver")),
        links=tuple((plan.first, plan.second) for plan in deployment.links),
        lossy=any(plan.spec.loss for plan in deployment.links) or (beside is not None and beside.loss > 0),
        actors=deployment.actors,
        promise=deployment.promise,
        faults=tuple(fault_entry(fault, deployment) for fault in deployment.faults),
        datagram_kinds=_datagram_kinds(deployment),
    )


def fault_entry(
    fault: Fault, deployment: Deployment, by_itself: bool = False, by_hand: Iterable[Fault | FaultEntry] = ()
) -> FaultEntry:
    """A fault for the manifest: the loss of a host names the nodes that were on it, and so does its return if that does
    not say which came. `by_itself`: nobody ordered it; `by_hand`: what was done so before it."""
    nodes = fault.nodes
    if fault.kind in (FaultKind.LOSE_HOST, FaultKind.RETURN_HOST) and not nodes:
        nodes = tuple(name for name, host in deployment.hosts.items() if host == fault.host)
    if fault.kind in _OF_ALL_THERE:
        to_come = _to_come(fault, deployment, by_hand)
        nodes = tuple(name for name in nodes if name not in to_come)
    shared = fault.kind in _IN_PROCESS and not by_itself and len(actor_of(nodes[0], deployment.actors)) > 1
    text = _happened(fault) if by_itself else f"{fault}{' in its process' if shared else ''}"
    given_up = deployment.rules.given_up(fault)
    return FaultEntry(
        text, fault.kind, fault.time_us, nodes, fault.groups, fault.link, fault.work_us, given_up, by_itself,
        issuer=fault.issuer, in_process=shared, disk_lost=fault.disk_lost,
        for_good=bool(given_up) and fault.verb in deployment.rules.for_good,
    )  # fmt: skip


def _to_come(fault: Fault, deployment: Deployment, by_hand: Iterable[Fault | FaultEntry]) -> Set[NodeName]:
    """The nodes that were never there before."""
    earlier = itertools.takewhile(lambda each: each is not fault and each.time_us <= fault.time_us, deployment.faults)
    before = itertools.chain(earlier, by_hand)
    started = {name for each in before if each.kind is FaultKind.RESTART for name in each.nodes}
    return deployment.start_down - started


def _happened(fault: Fault) -> str:
    """The fault in words, where nobody ordered it."""
    if fault.kind is FaultKind.KILL:
        return f"death of {some_names(fault.nodes)}"
    return f"loss of host {fault.host}" if fault.kind is FaultKind.LOSE_HOST else str(fault)


def message_kinds(deployment: Deployment) -> dict[int, str]:
    """Message kind to the name of its class."""
    return {kind_of(each): each.__name__ for each in _message_types(deployment)}


def _datagram_kinds(deployment: Deployment) -> tuple[int, ...]:
    if deployment.settings.default_link is None:
        return ()  # there are no datagrams: such messages pass over links, too
    return tuple(kind_of(each) for each in _message_types(deployment) if is_datagram(each))


def _message_types(deployment: Deployment) -> Sequence[type]:
    return make_machine(deployment.nodes[0], deployment.settings.seed).message_types
