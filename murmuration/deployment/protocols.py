"""The protocols of a scenario: found by name, their parameters read and typed, and checked against its overlay."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import NewLinks, PlanRules
from murmur_pubsub.measure import Measure
from murmur_pubsub.promise import Promise
from murmuration.registry import (
    RELIABILITIES,
    ROUTINGS,
    ReliabilityDeclaration,
    RoutingDeclaration,
    check_parts,
    promise,
    reliability_named,
    routing_named,
)
from murmuration.scenario.load import LoadedScenario
from murmuration.scenario.options import read_options
from murmuration.scenario.schema import BrokerParts, Links
from routing.protocol import OverlayTraits, RunsOn
from workloads.overlay import Overlay

_PARAMETERS = ("broker", "parameters")


@dataclass(frozen=True, slots=True)
class ChosenProtocols:
    """What a broker is made of."""

    parts: BrokerParts
    """Their names, as the scenario has them."""
    routing: RoutingDeclaration
    routing_parameters: Any
    """Of the class that the routing declares."""
    reliability: ReliabilityDeclaration
    reliability_parameters: Any
    """Of the class that the reliability protocol declares."""
    traits: OverlayTraits

    @property
    def promise(self) -> Promise:
        """What they promise of deliveries; raises `InputError` for a promise that is none."""
        return promise(
            self.routing, self.reliability, self.routing_parameters, self.reliability_parameters, self.traits
        )

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What their own rows of the journal measure."""
        return (*self.routing.measures, *self.reliability.measures)

    @property
    def rules(self) -> PlanRules:
        """What they say of faults."""
        fixed = self.routing.runs_on is RunsOn.STRUCTURED
        new_links = NewLinks.NONE if fixed else self.routing.new_links
        orders = {**self.routing.orders, **self.reliability.orders}
        return PlanRules(self._acyclic, new_links, orders, self.routing.gives_up, self.routing.for_good)

    @property
    def _acyclic(self) -> bool:
        """Would one of them be refused on an overlay with a cycle?"""
        suits = self.traits.suits - {RunsOn.ACYCLIC, RunsOn.CELLS}
        cyclic = dataclasses.replace(self.traits, kind="an overlay with cycles", suits=suits)
        try:
            check_parts(self.parts.matching, self.routing, self.reliability, cyclic)
            self.routing.check(self.routing_parameters, cyclic)
            self.reliability.check(self.reliability_parameters, cyclic, self.routing)
        except InputError:
            return True
        return False

    @property
    def of_broker(self) -> Mapping[str, Any]:
        """The parameters of `murmuration.registry.make_broker`."""
        return {
            "matching": self.parts.matching,
            "routing": self.parts.routing,
            "routing_parameters": self.routing_parameters,
            **self.of_client,
        }

    @property
    def of_client(self) -> Mapping[str, Any]:
        """The parameters of `murmuration.registry.make_client`, but for its broker."""
        return {"reliability": self.parts.reliability, "reliability_parameters": self.reliability_parameters}


def choose_protocols(loaded: LoadedScenario, overlay: Overlay) -> ChosenProtocols:
    """The protocols that the scenario names, for that overlay; raises `InputError`."""
    parts = loaded.scenario.broker
    try:
        routing, reliability = routing_named(parts.routing), reliability_named(parts.reliability)
        traits = traits_of(overlay, loaded.scenario.datagrams)
        check_parts(parts.matching, routing, reliability, traits)
    except InputError as error:
        raise _error_at(loaded, (), error) from None
    for name in parts.parameters:
        if name not in (routing.name, reliability.name):
            known = name in ROUTINGS or name in RELIABILITIES
            found = f"parameters of {name!r}, which does not take part" if known else f"{name!r}, which is no protocol"
            allowed = f"parameters of {routing.name} and {reliability.name}"
            raise loaded.error_at((*_PARAMETERS, name), found, allowed)

    def parameters_of(protocol: RoutingDeclaration | ReliabilityDeclaration) -> Any:
        given = parts.parameters.get(protocol.name, {})
        return read_options(protocol.parameters, given, (*_PARAMETERS, protocol.name), loaded.error_at)

    chosen = ChosenProtocols(parts, routing, parameters_of(routing), reliability, parameters_of(reliability), traits)
    checked = routing.name
    try:
        routing.check(chosen.routing_parameters, traits)
        checked = reliability.name
        reliability.check(chosen.reliability_parameters, traits, routing)
        assert chosen.promise
    except InputError as error:
        raise _error_at(loaded, (*_PARAMETERS, checked), error) from None
    return chosen


def traits_of(overlay: Overlay, datagrams: Links | None) -> OverlayTraits:
    """What of an overlay decides which protocols work on it."""
    has_datagrams = datagrams is not None
    if overlay.structure is not None:
        overtake = datagrams is not None and datagrams.delay.kind != "constant"
        identifiers = max(place.base**place.digits for place in overlay.structure.values())
        suits = frozenset({RunsOn.STRUCTURED})
        ring = next(iter(overlay.structure.values()))
        return OverlayTraits("an overlay without links", suits, 0, has_datagrams, identifiers, overtake, ring)
    demands = {RunsOn.LINKS}
    if overlay.is_tree:
        demands |= {RunsOn.ACYCLIC, RunsOn.CELLS}
    elif overlay.cells:
        demands.add(RunsOn.CELLS)
    kind = "an acyclic overlay" if overlay.is_tree else "an overlay with cycles"
    degree = max(Counter(itertools.chain(*overlay.edges)).values(), default=0)
    return OverlayTraits(kind, frozenset(demands), degree, has_datagrams)


def entrances(loaded: LoadedScenario, chosen: ChosenProtocols, overlay: Overlay) -> tuple[str, ...]:
    """The brokers at which events may be published; raises `InputError`."""
    try:
        return tuple(chosen.reliability.entrances(chosen.reliability_parameters, overlay.client_brokers))
    except InputError as error:
        raise _error_at(loaded, (*_PARAMETERS, chosen.reliability.name), error) from None


def _error_at(loaded: LoadedScenario, parameters: tuple[str, ...], error: InputError) -> InputError:
    """The protocol's error with its place in the file: a key of the scenario, or one of the protocol's parameters."""
    steps = tuple(error.place.split("."))
    of_scenario = steps[0] in type(loaded.scenario).model_fields
    return loaded.error_at(steps if of_scenario else (*parameters, *steps), error.found, error.allowed)
