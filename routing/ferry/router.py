"""The Ferry-like baseline of the Vinifera paper (V): rendezvous routing that knows nothing of subscriptions.

Theory of operation. A pure small world: two ring links, all others at distances after Kleinberg, identifiers that never
change. The hash of an attribute's *name* is a place on the ring, and the node closest above it the attribute's
rendezvous node: one tree an attribute. A node installs each subscription whole at one of its attributes' rendezvous
nodes, that closest to it in the direction in which it routes (Ferry's choice among them); an event goes to those of all
its attributes and from there down each tree to every node that has installed anything, whatever it wants, unless
`prune` has it matched on the way. Routing is greedy by the node's own links; heartbeats, expiry and repair are those of
the shared overlay.
"""

from collections.abc import Mapping
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import EVERYTHING, Filter
from murmur_pubsub.machine import NodeContext
from routing.smallworld.parameters import SmallWorldParameters
from routing.smallworld.profile import ANY_ATTRIBUTE, attribute_key
from routing.smallworld.rendezvous import RendezvousRouter, Target
from routing.smallworld.ring import RING_SIZE, clockwise
from routing.smallworld.subscription_regions import SubscriptionRegions

_DEFAULTS: Mapping[str, Any] = {"small_world_links": 8, "friend_links": 0, "inbound": False, "resets": False}
_SPREAD = 2_654_435_769
"""Knuth's multiplier: names that differ little get places far apart."""


def place_of(attribute: int) -> int:
    """Where on the ring an attribute belongs."""
    return attribute * _SPREAD % RING_SIZE


class Ferry(RendezvousRouter):
    """See `routing.router.Router`. Parameters (`ferry`): those of the overlay, `prune` (default: false), and the names
    of `attributes` that events are known to have (see `targets`)."""

    def __init__(self, context: NodeContext) -> None:
        given = context.parameters.get("ferry", {})
        if not isinstance(given, Mapping):
            raise InputError("broker.parameters.ferry", repr(given), "a mapping")
        self.prunes = given.get("prune", False)
        if type(self.prunes) is not bool:
            raise InputError("broker.parameters.ferry.prune", repr(self.prunes), "true or false")
        self._attributes = given.get("attributes", [])
        if not isinstance(self._attributes, list | tuple):
            raise InputError("broker.parameters.ferry.attributes", repr(self._attributes), "names of attributes")
        of_overlay = {name: value for name, value in given.items() if name not in ("prune", "attributes")}
        super().__init__(context, SmallWorldParameters.of(context.parameters["pastry"], "ferry", of_overlay, _DEFAULTS))

    def own_regions(self) -> SubscriptionRegions:
        """See `RendezvousRouter`."""
        found: SubscriptionRegions = {}
        for wanted in self.filters:
            for attribute in self._registered(wanted):
                found[attribute, wanted] = [(place_of(attribute), place_of(attribute))]
        return found

    def targets(self, event: Event) -> list[Target]:
        """See `RendezvousRouter`. An event with none of the known attributes has one more target, where those are
        registered who want events whatever they say."""
        attributes = list(map(attribute_key, event.attributes))
        if not any(name in self._attributes for name in event.attributes):
            attributes.append(ANY_ATTRIBUTE)
        return [(attribute, place_of(attribute)) for attribute in attributes]

    def _registered(self, wanted: Filter) -> list[int]:
        if wanted == EVERYTHING:  # it has no constraint: no event may pass it by, whatever attributes that has
            return [ANY_ATTRIBUTE, *map(attribute_key, self._attributes)]
        own = self.overlay.parameters.identifier
        keys = sorted(map(attribute_key, wanted.attributes), key=lambda each: (clockwise(place_of(each), own), each))
        return keys[:1]
