"""What a runtime is asked to run: nodes, links and scripts, as plain data that may cross a process.

Machines are named by dotted path (`package.module:function`) and made where they run: a runtime knows no
protocol, and a user's own protocol needs no registration inside this project.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from murmur_pubsub.contract import check_machine
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import (
    ANYTHING_GOES,
    DEFAULT_DETECTION,
    FailureDetection,
    Fault,
    FaultTargets,
    PlanRules,
    link_key,
)
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Machine, NodeContext, NodeName
from murmur_pubsub.message import Role
from murmur_pubsub.places import CellPlan, RingPlace
from murmur_pubsub.promise import Promise
from murmur_pubsub.protocol_error import protocol_error
from murmur_pubsub.script import Script, subscribers_of

Factory = Callable[[NodeContext], Machine]


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node."""

    name: NodeName
    role: Role
    factory: str
    """A dotted path to a `Factory`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What the factory is given: values that may cross a process."""
    broker: NodeName | None = None
    """Where a client is attached."""
    place: RingPlace | CellPlan | None = None
    """Where in its overlay the node is, if there is more to that than its links."""
    uplink: LinkSpec | None = None
    """Caps and queue that everything the node sends passes before its link, datagrams too (none: there is no such
    bottleneck). What overflows is dropped. Virtual runtime only."""


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """A link between two nodes, the same in both directions."""

    first: NodeName
    second: NodeName
    spec: LinkSpec


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What holds for every node of a run, and is small: it goes to each actor."""

    seed: int
    identifier: int = 0
    """64 bits, which every file of the run's journal bears."""
    default_link: LinkSpec | None = None
    """What carries messages between nodes without a link of their own. None: they are dropped as unreachable."""
    detection: FailureDetection = DEFAULT_DETECTION
    journal_hops: bool = True
    """Is each hop of each event journaled, or only publications and deliveries?"""
    keep_inputs: bool = False
    """Are the inputs of each machine kept for a replay?"""
    time_dilation: float = 1.0
    """Wall-clock seconds for an emulated second (live runtime only)."""
    sync_us: int = 2_000
    """How long stable storage takes to be safe (virtual runtime only; the live one has a real disk)."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """Everything a runtime needs. Node numbers in the journal follow `nodes`; the driver comes after the last."""

    settings: RunSettings
    nodes: tuple[NodeSpec, ...]
    links: tuple[LinkPlan, ...]
    scripts: Mapping[NodeName, Script]
    """What each node publishes and subscribes to, by its name."""
    publish_us_min: int = 0
    """Publishing goes on at least so long, though all is published and no fault is to come."""
    drain_us: int = 1_000_000
    """The run is over when nothing has moved for this long."""
    drain_limit_us: int = 60_000_000
    """The run is over this long after the draining began in any case."""
    waits_say_all: bool = False
    """Whatever is still to come some machine waits for. Then a run is over when none has waited or settled for
    `drain_us`, though there be messages that never rest."""
    promise: Promise = field(default_factory=Promise)
    """What its protocols promise of deliveries."""
    faults: tuple[Fault, ...] = ()
    """In order of time."""
    start_down: frozenset[NodeName] = frozenset()
    """Nodes that are not there at first, until a RESTART."""
    rules: PlanRules = ANYTHING_GOES
    """What the protocols say of faults: those of the plan heed it, and so must any others."""
    hosts: Mapping[NodeName, int] = field(default_factory=dict)
    """Node to the number of its host (absent: 0)."""
    actors: tuple[tuple[NodeName, ...], ...] = ()
    """Nodes that share an actor, and so a process, in a live run; a node that is in none of them has its own."""

    @property
    def numbers(self) -> dict[NodeName, int]:
        """Node name to its number in the journal."""
        return {spec.name: number for number, spec in enumerate(self.nodes)} | {"driver": len(self.nodes)}

    @property
    def fault_targets(self) -> FaultTargets:
        """What a plan for it is checked against."""
        has_datagrams = self.settings.default_link is not None
        return targets_of(
            self.nodes,
            self.links,
            self.hosts,
            self.start_down,
            self.rules,
            has_datagrams,
            self.scripts,
            self.actors,
        )


def targets_of(
    nodes: Sequence[NodeSpec],
    links: Sequence[LinkPlan],
    hosts: Mapping[NodeName, int],
    start_down: frozenset[NodeName],
    rules: PlanRules,
    has_datagrams: bool,
    scripts: Mapping[NodeName, Script],
    actors: Sequence[tuple[NodeName, ...]] = (),
) -> FaultTargets:
    """What a fault plan for these nodes and links is checked against."""
    return FaultTargets(
        [node.name for node in nodes],
        [(plan.first, plan.second) for plan in links],
        {node.name: hosts.get(node.name, 0) for node in nodes},
        start_down,
        frozenset(node.name for node in nodes if node.role == "broker"),
        rules,
        has_datagrams,
        lambda name, wanted: subscribers_of(scripts.get(name), wanted),
        actors,
    )


def specs_of(links: Sequence[LinkPlan]) -> dict[tuple[NodeName, NodeName], LinkSpec]:
    """What each link is like, by its `link_key`."""
    return {link_key(plan.first, plan.second): plan.spec for plan in links}


def object_at(path: str, place: str) -> Any:
    """The object at the dotted path `package.module:name`; raises `InputError` naming `place`."""
    module_name, _, name = path.partition(":")
    if not name:
        raise InputError(place, repr(path), "a dotted path such as 'package.module:name'")
    try:
        return getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise InputError(place, f"{path!r} ({error})", "a dotted path that can be imported") from error


def make_machine(spec: NodeSpec, seed: int, incarnation: int = 0) -> Machine:
    """The node's machine, fresh. Raises `InputError` for parameters that it refuses, and `ProtocolError` for any other
    reason why there is none."""
    factory: Factory = object_at(spec.factory, f"factory of node {spec.name}")
    try:
        machine = factory(NodeContext(spec.name, seed, spec.parameters, incarnation, spec.place))
        check_machine(machine)
    except InputError:
        raise
    except Exception as error:
        raise protocol_error(spec.name, incarnation, None, "being made", error) from error
    return machine
