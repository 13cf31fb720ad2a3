"""Which protocols a scenario may name, and how a broker is made of them.

A name not listed here may be a dotted path (`package.module:factory`): a user's own protocol takes part in
everything without a change to this project.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from murmur_pubsub.client import ClientMachine
from murmur_pubsub.deployment import object_at
from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Machine, NodeContext
from murmur_pubsub.promise import Promise, promise_of
from reliability.best_effort import BestEffort
from reliability.broker import Broker, ReliabilityFactory, RouterFactory
from reliability.epidemic.epidemic import Epidemic
from reliability.gryphon.gryphon import Gryphon
from routing.cells.router import CellRouting
from routing.ferry.router import Ferry
from routing.flooding import Flooding
from routing.forwarding import SubscriptionForwarding
from routing.irbr.router import Irbr
from routing.local_subscriptions import INDEXES
from routing.multipath.router import MultipathRouter
from routing.rpf.router import ReversePathForwarding
from routing.scribe.router import Scribe
from routing.vinifera.router import Vinifera

ROUTINGS: Mapping[str, RouterFactory] = {
    "flooding": Flooding,
    "forwarding": SubscriptionForwarding,
    "multipath": MultipathRouter,
    "cells": CellRouting,
    "irbr": Irbr,
    "scribe": Scribe,
    "rpf": ReversePathForwarding,
    "vinifera": Vinifera,
    "ferry": Ferry,
}
RELIABILITIES: Mapping[str, ReliabilityFactory] = {
    "best_effort": BestEffort,
    "epidemic": Epidemic,
    "gryphon": Gryphon,
}

BROKER_FACTORY = "murmuration.registry:make_broker"
CLIENT_FACTORY = "murmuration.registry:make_client"


def make_broker(context: NodeContext) -> Machine:
    """A broker of the parts that the scenario names: parameters `matching`, `routing`, `reliability`."""
    parameters = context.parameters
    return Broker(
        context,
        parameters["matching"],
        routing_named(parameters["routing"]),
        reliability_named(parameters["reliability"]),
    )


def make_client(context: NodeContext) -> Machine:
    """A client of the broker in the parameter `broker`: one of the reliability protocol's own, if it needs more of a
    client than to pass things on (attribute `client` of its factory)."""
    parameters = context.parameters
    own: Callable[[str, Mapping[str, Any]], Machine] | None
    own = getattr(reliability_named(parameters.get("reliability", "best_effort")), "client", None)
    return ClientMachine(parameters["broker"]) if own is None else own(parameters["broker"], parameters)


def routing_named(name: str) -> RouterFactory:
    """The routing protocol of that name or dotted path; raises `InputError`."""
    factory: RouterFactory = _named(name, "broker.routing", ROUTINGS)
    return factory


def reliability_named(name: str) -> ReliabilityFactory:
    """The reliability protocol of that name or dotted path; raises `InputError`."""
    factory: ReliabilityFactory = _named(name, "broker.reliability", RELIABILITIES)
    return factory


def promise(
    routing: str, reliability: str, parameters: Mapping[str, Any] = MappingProxyType({}), has_datagrams: bool = False
) -> Promise:
    """What the two protocols promise of deliveries; raises `InputError` for a promise that is none."""
    return promise_of(reliability, reliability_named(reliability), routing_named(routing), parameters, has_datagrams)


def roots(reliability: str, parameters: Mapping[str, Any], hosts: Sequence[str]) -> list[str]:
    """The brokers at which events may be published: those that the reliability protocol says, or all that take
    clients. Raises `InputError` for parameters that cannot be."""
    chosen: Callable[[Mapping[str, Any], Sequence[str]], list[str]] | None
    chosen = getattr(reliability_named(reliability), "roots", None)
    return list(hosts) if chosen is None else chosen(parameters, hosts)


def needs_cells(routing: str) -> bool:
    """Do brokers of that routing have to be told the tree of cells?"""
    return getattr(routing_named(routing), "needs_cells", False)


class Ground(NamedTuple):
    """What of a scenario decides which parts can work on it; all but the last are about its overlay."""

    is_tree: bool
    has_cells: bool = False
    is_structured: bool = False
    degree: int = 0
    has_datagrams: bool = False


def check_parts(
    matching: str,
    routing: str,
    reliability: str,
    ground: Ground,
    parameters: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Raise `InputError`, with the reason, for parts that do not exist or cannot work together. A routing factory
    may have a `check_parameters(parameters)` and a `check_degree(parameters, degree)` of its own that do so, a
    reliability factory a `check_parts(parameters, is_tree, has_datagrams, routing_carries_gossip)`."""
    if matching not in INDEXES:
        raise InputError("broker.matching", repr(matching), ", ".join(INDEXES))
    router = routing_named(routing)
    promised = reliability_named(reliability)
    promise(routing, reliability, parameters, ground.has_datagrams)
    structured = ", ".join(name for name, each in ROUTINGS.items() if getattr(each, "requires_structure", False))
    if ground.is_structured != getattr(router, "requires_structure", False):
        raise InputError(
            "broker.routing",
            f"{routing!r} on an overlay {'without' if ground.is_structured else 'with'} links",
            f"{structured} on an overlay of the kind 'structured', and none of them on another",
        )
    if ground.is_structured and not ground.has_datagrams:
        raise InputError("datagrams", "nothing", "a delay: brokers of a structured overlay talk by datagrams")
    if getattr(router, "requires_tree", False) and not ground.is_tree:
        raise InputError(
            "broker.routing",
            f"{routing!r} on an overlay with cycles",
            "an acyclic overlay: on a cycle an event would go round for ever",
        )
    if needs_cells(routing) and not (ground.is_tree or ground.has_cells):
        found = f"{routing!r} on an overlay with cycles that has no cells"
        raise InputError("broker.routing", found, "an acyclic overlay, or one of the kind 'cells'")
    if getattr(promised, "needs_streams", False) and not getattr(router, "carries_streams", False):
        able = ", ".join(name for name, each in ROUTINGS.items() if getattr(each, "carries_streams", False))
        raise InputError(
            "broker.reliability",
            f"{reliability!r} over {routing!r}",
            f"a routing that carries streams ({able}): over others a broker that has restarted would filter out what"
            " it has not been told that somebody wants",
        )
    check_parameters = getattr(router, "check_parameters", None)
    if check_parameters is not None:
        check_parameters(parameters)
    check_degree = getattr(router, "check_degree", None)
    if check_degree is not None:
        check_degree(parameters, ground.degree)
    check_reliability = getattr(promised, "check_parts", None)
    if check_reliability is not None:
        carries_gossip = getattr(router, "carries_gossip", False)
        check_reliability(parameters, ground.is_tree, ground.has_datagrams, carries_gossip)


def _named(name: str, place: str, known: Mapping[str, Any]) -> Any:
    if name in known:
        return known[name]
    if ":" not in name:
        raise InputError(place, repr(name), f"{', '.join(known)} or a dotted path 'package.module:factory'")
    return object_at(name, place)
