"""The Ferry-like baseline of the Vinifera paper (V): rendezvous routing that knows nothing of subscriptions.

Theory of operation. A pure small world: two ring links, all others at distances after Kleinberg, identifiers that never
change. The hash of an attribute's *name* is a place on the ring, and the node closest above it is the attribute's
rendezvous node: one tree for each attribute. A node installs each subscription whole at the rendezvous node of one of
its attributes, the closest in the direction of routing (Ferry's choice among them). An event goes to the rendezvous
nodes of all its attributes, and from there down each tree to every node that has installed anything, whatever that node
wants; with `prune` it is matched on the path. Links, heartbeats, expiry and repair are those of the shared overlay. So
a node routes over the links that others have to it, too (`inbound`), and hears that connections have closed (`resets`),
as with Vinifera.
"""

from dataclasses import dataclass

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeContext
from routing.protocol import RoutingProtocol, RunsOn
from routing.smallworld.parameters import GossipOverlayParameters, SmallWorldParameters, fits_the_ring
from routing.smallworld.profile import ANY_ATTRIBUTE, attribute_key
from routing.smallworld.recovery import gossip_recovers
from routing.smallworld.rendezvous import RendezvousRouter, Target
from routing.smallworld.ring import RING_SIZE, clockwise
from routing.smallworld.subscription_regions import SubscriptionRegions

_SPREAD = 2_654_435_769
"""Knuth's multiplier: names that differ little get places far apart."""


def place_of(attribute: int) -> int:
    """Where on the ring an attribute belongs."""
    return attribute * _SPREAD % RING_SIZE


@dataclass(frozen=True, slots=True)
class FerryParameters(GossipOverlayParameters):
    """One node's parameters: a pure small world by default."""

    small_world_links: int = 8
    """How many links it seeks at distances after Kleinberg."""
    friend_links: int = 0
    """The baseline knows nothing of subscriptions."""
    filters_max: int = 0
    """It installs each subscription whole."""
    prune: bool = False
    """Match events on their way down each tree."""
    attributes: tuple[str, ...] = ()
    """The names of attributes that events are known to have (see `Ferry.targets`)."""


class Ferry(RendezvousRouter):
    """The baseline's router of one broker."""

    def __init__(self, context: NodeContext, parameters: FerryParameters) -> None:
        self.prunes = parameters.prune
        self._attributes = parameters.attributes
        super().__init__(context, SmallWorldParameters.of(context, parameters))

    def own_regions(self) -> SubscriptionRegions:
        """See `RendezvousRouter`."""
        found: SubscriptionRegions = {}
        for wanted in self.filters:
            for attribute in self._registered(wanted):
                found[attribute, wanted] = [(place_of(attribute), place_of(attribute))]
        return found

    def targets(self, event: Event) -> list[Target]:
        """See `RendezvousRouter`. An event with none of the known attributes has one more target, where those are
        registered that require no attribute."""
        attributes = list(map(attribute_key, event.attributes))
        if not any(name in self._attributes for name in event.attributes):
            attributes.append(ANY_ATTRIBUTE)
        return [(attribute, place_of(attribute)) for attribute in attributes]

    def _registered(self, wanted: Filter) -> list[int]:
        if not wanted.required and not wanted.matches_nothing:  # no event may pass it by, whatever attributes that has
            return [ANY_ATTRIBUTE, *map(attribute_key, self._attributes)]
        own = self.overlay.parameters.identifier
        keys = sorted(map(attribute_key, wanted.required), key=lambda each: (clockwise(place_of(each), own), each))
        return keys[:1]


FERRY = RoutingProtocol(
    name="ferry",
    make=Ferry,
    parameters=FerryParameters,
    runs_on=RunsOn.STRUCTURED,
    keeps_order=False,
    tried={"degree": (12,), "small_world_links": (3,), "view": (8,), "shuffled": (3,), "filters_max": (1,)},
    tried_seldom={"attributes": (["a0"],)},
    recovers=gossip_recovers,
    check=fits_the_ring,
)
