"""The protocols that a scenario may name, and how a broker is made of them.

A name not listed here may be a dotted path (`package.module:NAME`) of a declaration: a user's own protocol takes part
in everything without a change to this project. The path of a class will do for a router or reliability part that takes
no parameters: it is declared as the protocol that it is derived from, or else by the defaults.
"""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from murmur_pubsub.deployment import object_at
from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Machine, NodeContext
from murmur_pubsub.promise import Promise, Survival
from reliability.best_effort import BEST_EFFORT
from reliability.broker import Broker
from reliability.durable.durable import DURABLE
from reliability.end_to_end.end_to_end import END_TO_END
from reliability.epidemic.epidemic import EPIDEMIC
from reliability.gryphon.declaration import GRYPHON
from reliability.layer import Reliability
from reliability.protocol import ReliabilityProtocol
from routing.cells.router import CELLS
from routing.ferry.router import FERRY
from routing.flooding import FLOODING
from routing.forwarding import FORWARDING
from routing.irbr.members import IRBR_MEMBERS
from routing.irbr.router import IRBR
from routing.local_subscriptions import INDEXES
from routing.multipath.delegation import MULTIPATH_DELEGATION
from routing.multipath.router import MULTIPATH
from routing.protocol import NoParameters, OverlayTraits, RoutingProtocol, RunsOn
from routing.router import Router
from routing.rpf.router import RPF
from routing.scribe.router import SCRIBE
from routing.vinifera.even import VINIFERA_EVEN
from routing.vinifera.router import VINIFERA

RoutingDeclaration = RoutingProtocol[Any]
ReliabilityDeclaration = ReliabilityProtocol[Any]

_ROUTINGS: tuple[RoutingDeclaration, ...] = (
    FLOODING, FORWARDING, MULTIPATH, MULTIPATH_DELEGATION, CELLS, IRBR, IRBR_MEMBERS, SCRIBE, RPF, VINIFERA,
    VINIFERA_EVEN, FERRY,
)  # fmt: skip
ROUTINGS: Mapping[str, RoutingDeclaration] = {each.name: each for each in _ROUTINGS}
RELIABILITIES: Mapping[str, ReliabilityDeclaration] = {
    each.name: each for each in (BEST_EFFORT, EPIDEMIC, GRYPHON, DURABLE, END_TO_END)
}

BROKER_FACTORY = "murmuration.registry:make_broker"
CLIENT_FACTORY = "murmuration.registry:make_client"


def make_broker(context: NodeContext) -> Machine:
    """A broker of the parts that its parameters name: `matching`, `routing`, `reliability`, and for the two protocols
    `routing_parameters` and `reliability_parameters` (absent: the defaults)."""
    given = context.parameters
    routing, reliability = routing_named(given["routing"]), reliability_named(given["reliability"])
    router = routing.make(context, _parameters_of(routing, given, "routing_parameters"))
    parameters = _parameters_of(reliability, given, "reliability_parameters")
    return Broker(
        given["matching"], router, lambda services: reliability.make(context, parameters, services), context.name
    )


def make_client(context: NodeContext) -> Machine:
    """A client of the broker in the parameter `broker`, as the reliability protocol wants its clients."""
    given = context.parameters
    reliability = reliability_named(given.get("reliability", BEST_EFFORT.name))
    return reliability.client(given["broker"], _parameters_of(reliability, given, "reliability_parameters"))


def routing_named(name: str) -> RoutingDeclaration:
    """The routing protocol of that name or dotted path; raises `InputError`."""
    protocol: RoutingDeclaration = _named(name, "broker.routing", ROUTINGS, RoutingProtocol, Router)
    return protocol


def reliability_named(name: str) -> ReliabilityDeclaration:
    """The reliability protocol of that name or dotted path; raises `InputError`."""
    protocol: ReliabilityDeclaration = _named(
        name, "broker.reliability", RELIABILITIES, ReliabilityProtocol, Reliability
    )
    return protocol


def promise(
    routing: RoutingDeclaration,
    reliability: ReliabilityDeclaration,
    parameters: Any,
    reliability_parameters: Any,
    traits: OverlayTraits,
) -> Promise:
    """What the two protocols promise of deliveries; `parameters` are the routing's. Raises `InputError` for a promise
    that is none."""
    guarantee = reliability.guarantee
    if not isinstance(guarantee, Promise):
        found = f"{reliability.name!r}, whose promise is {guarantee!r:.60}"
        raise InputError("broker.reliability", found, "a murmur_pubsub.promise.Promise")
    order, survives = reliability.order(reliability_parameters) or guarantee.order, guarantee.survives
    if not reliability.end_to_end:
        order = order if routing.keeps_order else "none"
        survives = survives if routing.survives is None else routing.survives(parameters, traits)
    if not isinstance(survives, Survival):
        found = f"a routing that survives {survives!r:.60}"
        raise InputError("broker.routing", found, "one that survives a murmur_pubsub.promise.Survival")
    recovers = None if routing.recovers is None or traits.ring is None else routing.recovers(traits.ring)
    limits = reliability.limits(reliability_parameters)
    redundant = tuple(reliability.redundant(reliability_parameters))
    return dataclasses.replace(
        guarantee, order=order, survives=survives, recovers=recovers, limits=limits, redundant=redundant
    )


def check_parts(
    matching: str, routing: RoutingDeclaration, reliability: ReliabilityDeclaration, traits: OverlayTraits
) -> None:
    """Raise `InputError`, with the reason, for parts that do not exist or cannot work together. What a protocol has
    against its parameters here, its own `check` says."""
    if matching not in INDEXES:
        raise InputError("broker.matching", repr(matching), ", ".join(INDEXES))
    if routing.runs_on not in traits.suits:
        able = ", ".join(each.name for each in ROUTINGS.values() if each.runs_on in traits.suits)
        found = f"{routing.name!r} on {traits.kind}"
        allowed = routing.runs_on.value + (f"; on this one: {able}" if able else "")
        raise InputError("broker.routing", found, allowed)
    if routing.runs_on is RunsOn.STRUCTURED and not traits.has_datagrams:
        raise InputError("datagrams", "nothing", "a delay: brokers of a structured overlay talk by datagrams")
    missing = reliability.needs - routing.offers
    if missing:
        able = ", ".join(each.name for each in ROUTINGS.values() if not reliability.needs - each.offers)
        wants = " and ".join(sorted(each.value for each in missing))
        found = f"{reliability.name!r} over {routing.name!r}"
        raise InputError("broker.reliability", found, f"a routing that carries {wants} ({able})")


def _parameters_of(protocol: RoutingDeclaration | ReliabilityDeclaration, given: Mapping[str, Any], key: str) -> Any:
    return given[key] if key in given else protocol.parameters()


def _named(name: str, place: str, known: Mapping[str, Any], declaration: type[Any], part: type[Any]) -> Any:
    if name in known:
        return known[name]
    if ":" not in name:
        raise InputError(place, repr(name), f"{', '.join(known)} or a dotted path 'package.module:NAME'")
    found = object_at(name, place)
    if isinstance(found, declaration):
        _check_declares_nothing(name, found.make, declaration, place)
        return found
    if not (isinstance(found, type) and issubclass(found, part)):
        allowed = f"a {declaration.__name__}, or a class of its kind ({part.__module__}.{part.__name__})"
        raise InputError(place, f"{name!r}, which is {found!r:.60}", allowed)
    return declared_as(name, found, place)


def declared_as(name: str, part: type[Any], place: str = "broker") -> Any:
    """The declaration of a class of routers or reliability parts at that dotted path.

    It is that of the protocol that the class is derived from, whose name its parameters keep, or else the defaults.
    Raises `InputError` for a class that lacks methods.
    """
    known: Mapping[str, Any] = ROUTINGS if issubclass(part, Router) else RELIABILITIES
    declaration = RoutingProtocol if issubclass(part, Router) else ReliabilityProtocol
    _check_declares_nothing(name, part, declaration, place)
    if inspect.isabstract(part):
        lacking = ", ".join(sorted(part.__abstractmethods__))
        raise InputError(place, f"{name!r} without {lacking}", "a class with all the methods that it must have")
    for base in part.__mro__:
        for each in known.values():
            if each.make is base:
                return dataclasses.replace(each, make=part, orders=part.orders)
    return declaration(name=name, make=part, parameters=NoParameters, orders=part.orders)


_DECLARED = (
    "guarantee",
    "keeps_order",
    "limits",
    "measures",
    "needs",
    "offers",
    "promise",
    "recovers",
    "runs_on",
    "survives",
)
"""What only a declaration can say, and what one might take for it."""


def _check_declares_nothing(name: str, part: Any, declaration: type[Any], place: str) -> None:
    """Raise `InputError` if a class says of itself what nobody would ask it."""
    for each in _DECLARED:
        if isinstance(part, type) and hasattr(part, each):
            allowed = f"a {declaration.__name__} that says so, as the value that the scenario names"
            raise InputError(place, f"{name!r} with the class attribute {each!r}, which nobody reads", allowed)
