"""Vinifera (Rahimian, Girdzijauskas, Payberah and Haridi, "Subscription awareness meets rendezvous routing", 2012).

Theory of operation. Values of every attribute are hashed, in order, onto the ring of node identifiers; the node closest
above a value is its rendezvous node. A node registers each subscription with the rendezvous nodes of its range on one
attribute, its primary one, and every node on the path keeps an entry. An event goes to the rendezvous node of its value
in each attribute and back along those paths; each node matches it against its entries. Nodes link to nodes with similar
subscriptions, so that the paths of those meet early and few other nodes are on them. What is shared with the baseline
is in `routing.smallworld`; here is what knows of subscriptions: the hash, friendship, balancing.
"""

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, NodeContext, NodeName
from routing.protocol import RoutingProtocol, RunsOn
from routing.smallworld.parameters import SmallWorldParameters, fits_the_ring
from routing.smallworld.profile import wants
from routing.smallworld.recovery import gossip_recovers
from routing.smallworld.rendezvous import RendezvousRouter, Target
from routing.smallworld.subscription_regions import SubscriptionRegions
from routing.vinifera.balance import Load, jumps, new_identifier, place_within
from routing.vinifera.interests import OwnInterests
from routing.vinifera.parameters import ViniferaParameters


class Vinifera(RendezvousRouter):
    """The Vinifera router of one broker."""

    compares: type[OwnInterests] = OwnInterests
    """By which it compares its own interests with those of others."""

    def __init__(self, context: NodeContext, parameters: ViniferaParameters) -> None:
        self.parameters = parameters
        self.interests = self.compares(parameters.domains, context.random("interests"))
        self.load = Load()
        self._random = context.random("balance")
        self._regions: SubscriptionRegions | None = {}
        self.spreads = parameters.spread != "none"
        super().__init__(context, SmallWorldParameters.of(context, parameters), self.interests.utility)

    def filters_changed(self) -> None:
        """See `RendezvousRouter`."""
        self.overlay.set_profile(self.interests.change(self.filters))
        self._regions = None

    def own_regions(self) -> SubscriptionRegions:
        """See `RendezvousRouter`."""
        if self._regions is None:
            self._regions = self.regions_wanted()
        return self._regions

    def regions_wanted(self) -> SubscriptionRegions:
        """What to install of the node's own subscriptions, made anew."""
        return self.interests.regions()

    def targets(self, event: Event) -> list[Target]:
        """See `RendezvousRouter`."""
        return self.interests.targets(event)

    def interested_neighbours(self, event: Event) -> list[NodeName]:
        """See `RendezvousRouter`."""
        if self.parameters.spread != "friends":
            return []
        hashed = dict(self.interests.targets(event))
        return [peer.name for peer in self.overlay.neighbours.peers() if wants(peer.profile, hashed)]

    def on_rendezvous(self, event: Event, target: Target) -> None:
        """See `RendezvousRouter`."""
        self.load.add(target[1])

    def on_round(self) -> list[Effect]:
        """See `RendezvousRouter`."""
        overlay = self.overlay
        profile = self.interests.rank(peer.profile for peer in overlay.candidates)
        if profile is not None:
            self._regions = None
            self.installation.own_changed()
            overlay.set_profile(profile)
        effects: list[Effect] = []
        if self.parameters.beta and overlay.round % self.parameters.balance_rounds == 0:
            effects = self._balance()
            self.load.forget_half()
        overlay.set_load(self.load.events, self.load.median(overlay.me.identifier))
        return effects

    def on_neighbour_moved(self, name: NodeName) -> None:
        """See `RendezvousRouter`."""
        predecessor = self.overlay.predecessor
        if predecessor is not None and predecessor.name == name:
            self.load.become(predecessor.load)

    def on_moved_away(self) -> None:
        """See `RendezvousRouter`."""
        self.load.become(0)

    def _balance(self) -> list[Effect]:
        heaviest = self.overlay.contacts.heaviest
        if heaviest is not None and jumps(self.load.events, heaviest.load, self.parameters.beta, self._random):
            place = place_within(heaviest.identifier, heaviest.median, self._random)
            if place is not None:
                self.load.become(heaviest.load // 2)
                return self.overlay.jump(place, self.load.events)
        successor = self.overlay.successor
        if successor is None or successor.load - self.load.events <= self.parameters.beta:
            return []
        moved = new_identifier(self.overlay.me.identifier, successor.identifier, successor.median)
        if moved is None:
            return []
        self.load.become((self.load.events + successor.load) // 2)
        return self.overlay.move(moved, self.load.events)


VINIFERA = RoutingProtocol(
    name="vinifera",
    make=Vinifera,
    parameters=ViniferaParameters,
    runs_on=RunsOn.STRUCTURED,
    keeps_order=False,
    tried={
        "degree": (12,),
        "friend_links": (3,),
        "view": (8,),
        "shuffled": (3,),
        "filters_max": (1,),
        "beta": (2,),
        "balance_rounds": (1,),
    },
    tried_seldom={"attributes": ({"a0": {"min": 0, "max": 1}},)},
    recovers=gossip_recovers,
    check=fits_the_ring,
)
