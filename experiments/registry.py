"""Which protocols a scenario may name, and how a broker is made of them.

A name not listed here may be a dotted path (`package.module:factory`): a user's own protocol takes part in
everything without a change to this project.
"""

from collections.abc import Mapping
from typing import Any

from pubsub.client import Client
from pubsub.deployment import load
from pubsub.errors import InputError
from pubsub.machine import Machine, NodeContext
from reliability.best_effort import BestEffort
from reliability.broker import Broker, ReliabilityFactory, RouterFactory
from routing.flooding import Flooding
from routing.forwarding import SubscriptionForwarding
from routing.irbr.router import Irbr
from routing.local_subscriptions import INDEXES
from routing.multipath.router import MultipathRouter
from routing.rpf.router import ReversePathForwarding
from routing.scribe.router import Scribe

ROUTINGS: Mapping[str, RouterFactory] = {
    "flooding": Flooding,
    "forwarding": SubscriptionForwarding,
    "multipath": MultipathRouter,
    "irbr": Irbr,
    "scribe": Scribe,
    "rpf": ReversePathForwarding,
}
RELIABILITIES: Mapping[str, ReliabilityFactory] = {"best_effort": BestEffort}

BROKER_FACTORY = "experiments.registry:make_broker"
CLIENT_FACTORY = "experiments.registry:make_client"


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
    """A client of the broker in the parameter `broker`."""
    return Client(context.parameters["broker"])


def routing_named(name: str) -> RouterFactory:
    """The routing protocol of that name or dotted path; raises `InputError`."""
    factory: RouterFactory = _named(name, "broker.routing", ROUTINGS)
    return factory


def reliability_named(name: str) -> ReliabilityFactory:
    """The reliability protocol of that name or dotted path; raises `InputError`."""
    factory: ReliabilityFactory = _named(name, "broker.reliability", RELIABILITIES)
    return factory


def guarantee(reliability: str) -> str:
    """What a reliability protocol promises: "best_effort" (what a fault on its way destroys may be lost) or
    "exactly_once" (nothing may), as its factory's attribute `guarantee` says."""
    promised: str = getattr(reliability_named(reliability), "guarantee", "best_effort")
    return promised


def check_parts(
    matching: str,
    routing: str,
    reliability: str,
    overlay_is_tree: bool,
    overlay_is_structured: bool = False,
    datagrams: bool = False,
) -> None:
    """Raise `InputError`, with the reason, for parts that do not exist or cannot work together."""
    if matching not in INDEXES:
        raise InputError("broker.matching", repr(matching), ", ".join(INDEXES))
    router = routing_named(routing)
    reliability_named(reliability)
    if overlay_is_structured != getattr(router, "requires_structure", False):
        raise InputError(
            "broker.routing",
            f"{routing!r} on an overlay {'without' if overlay_is_structured else 'with'} links",
            "irbr, scribe or rpf on an overlay of the kind 'structured', and none of them on another",
        )
    if overlay_is_structured and not datagrams:
        raise InputError("datagrams", "nothing", "a delay: brokers of a structured overlay talk by datagrams")
    if getattr(router, "requires_tree", False) and not overlay_is_tree:
        raise InputError(
            "broker.routing",
            f"{routing!r} on an overlay with cycles",
            "an acyclic overlay: on a cycle an event would go round for ever",
        )


def _named(name: str, place: str, known: Mapping[str, Any]) -> Any:
    if name in known:
        return known[name]
    if ":" not in name:
        raise InputError(place, repr(name), f"{', '.join(known)} or a dotted path 'package.module:factory'")
    return load(name, place)
