"""A reliability protocol is a declaration: one value with all that the rest of the product has to know of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from murmur_pubsub.client import ClientMachine
from murmur_pubsub.machine import Machine, NodeContext, NodeName
from murmur_pubsub.measure import Measure
from murmur_pubsub.promise import Limits, Promise, RedundantEnd
from reliability.layer import BrokerServices, Reliability
from routing.protocol import Offer, OverlayTraits, Parameters, RoutingProtocol


def _plain_client(broker: NodeName, parameters: object) -> Machine:
    return ClientMachine(broker)


def _order_of_the_guarantee(parameters: object) -> None:
    return None


def _all_entrances(parameters: object, client_brokers: Sequence[NodeName]) -> Sequence[NodeName]:
    return client_brokers


def _no_limits(parameters: object) -> Limits:
    return Limits()


def _no_redundant_ends(parameters: object) -> Sequence[RedundantEnd]:
    return ()


def _works_over_all(parameters: object, traits: OverlayTraits, routing: RoutingProtocol[Any]) -> None:
    """The protocol checks nothing but its parameters themselves."""


@dataclass(frozen=True, slots=True)
class ReliabilityProtocol(Generic[Parameters]):
    """What a reliability protocol says of itself."""

    name: str
    """By which scenarios name it and its parameters."""
    make: Callable[[NodeContext, Parameters, BrokerServices], Reliability]
    """Makes the reliability part of one broker."""
    parameters: type[Parameters]
    """A frozen dataclass: its fields are what a scenario may say under `broker.parameters` and the protocol's name."""
    guarantee: Promise = field(default_factory=Promise)
    """What it promises of deliveries; the judge holds it to that."""
    limits: Callable[[Parameters], Limits] = _no_limits
    """How its parameters limit that."""
    order: Callable[[Parameters], str | None] = _order_of_the_guarantee
    """The order that it promises with its parameters (None: that of its guarantee)."""
    needs: frozenset[Offer] = frozenset()
    """What the routing below it must offer."""
    end_to_end: bool = False
    """Does it keep its guarantee whatever routing does? Then order and survival are its own, not those of the routing.
    Its brokers are told in `NodeContext.parameters["entrances"]` at which of them events may be published, and in
    `["brokers"]` of all."""
    client: Callable[[NodeName, Parameters], Machine] = _plain_client
    """Makes the machine of a client of that broker."""
    entrances: Callable[[Parameters, Sequence[NodeName]], Sequence[NodeName]] = _all_entrances
    """The brokers at which events may be published, of those that take clients. Raises `InputError`, its place a
    parameter."""
    redundant: Callable[[Parameters], Sequence[RedundantEnd]] = _no_redundant_ends
    """The brokers of publishers that another one stands in for; a client that publishes may go from one to the other.
    """
    clients_roam: bool = False
    """May a client that does not publish go from one broker to another?"""
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Those of its parts of brokers (`murmur_pubsub.machine.Machine.orders`)."""
    measures: Sequence[Measure] = ()
    """See `routing.protocol.RoutingProtocol.measures`."""
    tried: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """See `routing.protocol.RoutingProtocol.tried`."""
    tried_seldom: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """See `routing.protocol.RoutingProtocol.tried_seldom`."""
    check: Callable[[Parameters, OverlayTraits, RoutingProtocol[Any]], None] = _works_over_all
    """Raises `InputError`, its place a parameter or a key of the scenario, if it cannot work so over that routing."""
