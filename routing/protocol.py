"""A routing protocol is a declaration: one value with all that the rest of the product has to know of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from murmur_pubsub.faults import NewLinks
from murmur_pubsub.machine import NodeContext
from murmur_pubsub.measure import Measure
from murmur_pubsub.places import RingPlace
from murmur_pubsub.promise import Recovery, Survival
from routing.router import Router

Parameters = TypeVar("Parameters")


@dataclass(frozen=True, slots=True)
class NoParameters:
    """Of a protocol that takes none."""


class RunsOn(Enum):
    """Which overlays a routing works on."""

    LINKS = "an overlay with links"
    ACYCLIC = "an acyclic overlay: on a cycle an event would go round for ever"
    CELLS = "an acyclic overlay, or one of the kind 'cells'"
    STRUCTURED = "an overlay of the kind 'structured', whose brokers have no links and talk by datagrams"


class Offer(Enum):
    """What a routing can do for the reliability protocol above it, beside `Router`."""

    STREAMS = "streams"
    """It is a `routing.router.StreamRouter`."""
    GOSSIP = "gossip about filters"
    """It is a `routing.router.GossipRouter`."""


@dataclass(frozen=True, slots=True)
class OverlayTraits:
    """What of a scenario decides which protocols can work in it."""

    kind: str
    """The overlay's, as a message says it."""
    suits: frozenset[RunsOn]
    """The demands that it meets."""
    degree: int = 0
    """The most links that a broker has."""
    has_datagrams: bool = False
    identifiers: int = 0
    """How many a structured overlay has."""
    datagrams_overtake: bool = False
    """May a datagram overtake an earlier one of the same two brokers?"""
    ring: RingPlace | None = None
    """One broker's place in a structured overlay: its timeouts are those of all."""

    @property
    def is_tree(self) -> bool:
        """No cycles?"""
        return RunsOn.ACYCLIC in self.suits


def _allows_all(parameters: object, traits: OverlayTraits) -> None:
    """The protocol checks nothing but its parameters themselves."""


@dataclass(frozen=True, slots=True)
class RoutingProtocol(Generic[Parameters]):
    """What a routing protocol says of itself."""

    name: str
    """By which scenarios name it and its parameters."""
    make: Callable[[NodeContext, Parameters], Router]
    """Makes the router of one broker."""
    parameters: type[Parameters]
    """A frozen dataclass: its fields are what a scenario may say under `broker.parameters` and the protocol's name."""
    runs_on: RunsOn = RunsOn.LINKS
    offers: frozenset[Offer] = frozenset()
    keeps_order: bool = True
    """Do events of one publisher stay in order on their way?"""
    new_links: NewLinks = NewLinks.ANY
    """Between which brokers there may be a link that was not there when they started."""
    survives: Callable[[Parameters, OverlayTraits], Survival] | None = None
    """The failures that its deliveries survive, whatever the reliability protocol (None: what that says)."""
    recovers: Callable[[RingPlace], Recovery] | None = None
    """How long a failure may cost deliveries, by the timeouts of a structured overlay."""
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Those of its routers (`murmur_pubsub.machine.Machine.orders`): what a fault plan or a `Cluster` may order."""
    gives_up: Mapping[str, str] = field(default_factory=dict)
    """Those of the orders that give a broker up (`murmur_pubsub.faults.PlanRules.gives_up`)."""
    for_good: frozenset[str] = frozenset()
    """Those after which it is no part of the overlay any more (`murmur_pubsub.faults.PlanRules.for_good`)."""
    measures: Sequence[Measure] = ()
    """What its `Record` rows measure: the page shows brokers by it."""
    tried: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Values that random schedules choose from, as a scenario writes them; none: they leave it at its default. Of a
    parameter that is a choice or true or false they take any."""
    tried_seldom: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """The same of parameters that only varied schedules choose (`murmuration.hunt.varying`)."""
    check: Callable[[Parameters, OverlayTraits], None] = _allows_all
    """Raises `InputError`, its place a parameter, if the protocol cannot work so on such an overlay."""
