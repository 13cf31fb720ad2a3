"""Scribe over Pastry, with content filters: the first baseline of identifier range based routing (its section 3.1).

Theory of operation. One node, the closest to a fixed identifier, is the rendezvous for all events. A subscription is
routed towards it, and each node on the way remembers from which child it came: the reverse paths are a tree, in which a
node's parent is its next hop towards the rendezvous. An event is routed to the rendezvous and goes down from there, at
each node to the children that sent a filter it matches. As the paper says of its Scribe, every subscription goes all
the way; only exactly the same filter is not sent twice. Whenever
the next hop changes, so does the parent. Parents chosen at different times could make a circle, since Pastry goes by
shared digits far from the rendezvous and by distance near it. A node that changes its parent may get an event from
both; it takes the first.

The heartbeats between parent and child are Pastry's probes, in both directions: a child whose parent is gone sends all
it wants to its next hop of now, a parent whose child is gone forgets what it wanted, and says so if it hears from the
child again. A rendezvous that is no longer the closest node attaches itself to the one that is. Events are lost as long
as that takes. Nobody misses an answer during a partition that is over at once, and what a child says in it is lost: so
a parent's answer to a probe bears a digest of what the child wants, and a child whose own differs says all anew. What a
child says to its parent must keep its order: datagrams with random delays do not serve.
"""

from collections.abc import Sequence, Set
from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import Effect, NodeContext, NodeName, Send
from murmur_pubsub.message import message
from routing.pastry.changes import Answered, CellFilled, Joined, LeavesChanged, PeerFailed, PeerReturned, RoundEnded
from routing.pastry.identifiers import FULL_RANGE
from routing.pastry.layer import OverPastry
from routing.pastry.messages import PASTRY_MESSAGES, PastryPeer, PastryPeerFields
from routing.pastry.neighbour_filters import Forgotten, NeighbourFilters, say_forgotten
from routing.pastry.recovery import pastry_recovers
from routing.pastry.reverse_paths import ReversePathParameters, ReversePaths, needs_order
from routing.pastry.told_filters import ToldFilters
from routing.protocol import Offer, RoutingProtocol, RunsOn
from routing.recently_seen import RecentlySeen
from routing.router import GossipRouter, Hop

_UP, _DOWN, _CLIMBING = range(3)
"""The header's first field: on the way to the rendezvous; on the way down; gossip that goes up and down from there."""


@message(70, control=True)
class TreeSubscription(NamedTuple):
    """Child to parent: I want what matches these filters."""

    peer: PastryPeerFields
    filters: Sequence[Filter]


@message(71, control=True)
class TreeCancellation(NamedTuple):
    """Child to parent: I want what matches this filter no more."""

    filter: Filter


@message(72, control=True)
class Detached(NamedTuple):
    """Child to former parent: I have another one."""

    incarnation: int


class Scribe(OverPastry, GossipRouter):
    """See `routing.router.Router`."""

    message_types: tuple[type, ...] = (*PASTRY_MESSAGES, TreeSubscription, TreeCancellation, Detached, Forgotten)

    def __init__(self, context: NodeContext, parameters: ReversePathParameters) -> None:
        super().__init__(context, parameters.resets, lambda asking, length: self.children.digest(asking))
        self.rendezvous = self.pastry.space.middle(FULL_RANGE)
        self.parent: PastryPeer | None = None
        self.children = NeighbourFilters()
        self._back = ReversePaths(self.pastry, parameters.reverse_paths)
        self._wanted: dict[Filter, int] = {}
        self._told = ToldFilters(0)
        """What the parent was told."""
        self._seen = RecentlySeen()
        self.receivers = {
            TreeSubscription: self._on_subscription,
            TreeCancellation: self._on_cancellation,
            Detached: self._on_detached,
            Forgotten: self._on_forgotten,
        }
        self.watchers = {
            PeerFailed: self._on_failed,
            PeerReturned: say_forgotten,
            RoundEnded: self._on_round_ended,
            Answered: self._on_answered,
            **dict.fromkeys((Joined, CellFilled, LeavesChanged), self._on_overlay_changed),
        }

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        """See `routing.router.Router`."""
        return self._want([wanted])

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        """See `routing.router.Router`."""
        return self._want_no_more(wanted)

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """See `routing.router.Router`."""
        if self._back.passes_on(header):
            return self._back.onward(header)
        if not header or header[0] == _UP:
            hop = self.pastry.next_hop(self.rendezvous)
            if hop is not None:
                return [Hop(hop.name, (_UP,))]
        if self._seen.again((event.source, event.sequence, _DOWN)):
            return []
        children = self.children.destinations(event.attributes)
        return [hop for child in children for hop in self._back.back_to(child, _DOWN)]

    def patterns_of(self, event: Event) -> Sequence[Filter]:
        """See `routing.router.GossipRouter`: those of the tree below this node."""
        return self.children.matching(event.attributes)

    def towards(self, pattern: Filter, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """See `routing.router.GossipRouter`: down to children that want it, and up until it has once gone down, since
        only parents know of subscribers elsewhere."""
        hops = [Hop(child.name, (_DOWN,)) for child in self.children.related(pattern) if child.name != came_from]
        if self.parent is not None and (not header or header[0] == _CLIMBING):  # gossip's header has this one field
            hops.append(Hop(self.parent.name, (_CLIMBING,)))
        return hops

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        """An event is delivered on its way down, its publisher included, if it has not come down before."""
        if self._back.passes_on(header):
            return True
        if (not header or header[0] == _UP) and self.pastry.next_hop(self.rendezvous) is not None:
            return True
        return self._seen.again((event.source, event.sequence))

    def _want(self, filters: Sequence[Filter]) -> list[Effect]:
        """One more subscriber or child wants these."""
        new = [wanted for wanted in filters if wanted not in self._wanted]
        for wanted in filters:
            self._wanted[wanted] = self._wanted.get(wanted, 0) + 1
        return self._tell_parent(TreeSubscription(self.pastry.me, new)) if new else []

    def _want_no_more(self, wanted: Filter) -> list[Effect]:
        self._wanted[wanted] -= 1
        if self._wanted[wanted]:
            return []
        del self._wanted[wanted]
        return self._tell_parent(TreeCancellation(wanted))

    def _tell_parent(self, message: TreeSubscription | TreeCancellation) -> list[Effect]:
        self._told.told(self.now_us)
        return [] if self.parent is None else [Send(self.parent.name, message)]

    def _on_subscription(self, source: NodeName, message: TreeSubscription) -> list[Effect]:
        child = PastryPeer(*message.peer)
        effects: list[Effect] = []
        known = self.children.peers.get(child.name)
        if known is not None and known.incarnation < child.incarnation:
            effects += self._forget(known)
        self.pastry.watch(child)
        return effects + self._want([wanted for wanted in message.filters if self.children.add(child, wanted)])

    def _on_cancellation(self, source: NodeName, message: TreeCancellation) -> list[Effect]:
        return self._want_no_more(message.filter) if self.children.remove(source, message.filter) else []

    def _on_detached(self, source: NodeName, message: Detached) -> list[Effect]:
        child = self.children.peers.get(source)
        return [] if child is None or child.incarnation > message.incarnation else self._forget(child)

    def _on_forgotten(self, source: NodeName, message: Forgotten) -> list[Effect]:
        """The parent takes this node for a new child, without this node's having noticed that it was gone."""
        if self.parent is None or self.parent.name != source or message.incarnation != self.pastry.me.incarnation:
            return []
        return self._tell_all()

    def _tell_all(self) -> list[Effect]:
        return self._tell_parent(TreeSubscription(self.pastry.me, list(self._wanted))) if self._wanted else []

    def _on_answered(self, change: Answered) -> list[Effect]:
        if change.peer != self.parent or self._told.agrees(change, self._wanted, self.pastry.round_began_us):
            return []
        return self._attach(self.parent)

    def _on_failed(self, change: PeerFailed) -> list[Effect]:
        effects: list[Effect] = []
        child = self.children.peers.get(change.peer.name)
        if child is not None and child.incarnation <= change.peer.incarnation:
            effects += self._forget(child)
        if self.parent is not None and self.parent.name == change.peer.name:
            effects += self._attach(self.pastry.next_hop(self.rendezvous))
        return effects

    def _forget(self, child: PastryPeer) -> list[Effect]:
        self.pastry.unwatch(child.name)
        return [effect for wanted in self.children.drop(child.name) for effect in self._want_no_more(wanted)]

    def _on_round_ended(self, change: RoundEnded) -> list[Effect]:
        self._seen.forget()
        return []

    def _on_overlay_changed(self, change: object) -> list[Effect]:
        """The parent is the next hop of now: of parents chosen at different times, each by the tables of its time, some
        may be each other's ancestors, and what is below them would get nothing."""
        hop = self.pastry.next_hop(self.rendezvous)
        return [] if not self.pastry.joined or hop == self.parent else self._attach(hop)

    def _attach(self, parent: PastryPeer | None) -> list[Effect]:
        effects: list[Effect] = []
        if self.parent is not None:
            effects.append(Send(self.parent.name, Detached(self.pastry.me.incarnation)))
            self.pastry.unwatch(self.parent.name)
        self.parent = parent
        if parent is not None:
            self.pastry.watch(parent)
            effects += self._tell_all()
        return effects

    def fingerprint(self) -> Set[Fact]:
        """See `murmur_pubsub.machine.Machine`."""
        return {
            *super().fingerprint(),
            state_of("Scribe", no_parent=self.parent is None, children=self.children.peers, wants=self._wanted),
        }

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        self.pastry.check_invariants()
        self.children.check_invariants()
        assert all(count > 0 for count in self._wanted.values())
        assert self.parent is None or self.parent.name != self.pastry.me.name


SCRIBE = RoutingProtocol(
    name="scribe",
    make=Scribe,
    parameters=ReversePathParameters,
    runs_on=RunsOn.STRUCTURED,
    offers=frozenset({Offer.GOSSIP}),
    keeps_order=False,
    recovers=pastry_recovers,
    check=needs_order,
)
