"""Reverse path forwarding over Pastry: the second baseline of identifier range based routing (its section 3.2).

Theory of operation. Each node has a spanning tree of its own, made of routing tables: it stands for all identifiers,
and the node that stands for a range has the peers of the parts of that range as children. A filter goes down its
subscriber's tree; a node remembers from which neighbours filters came, and an event follows those tracks back. As in
subscription forwarding on a tree, a filter that is covered by one that a neighbour has been sent already is not sent to
it; when that one is withdrawn, what it alone had covered is sent first (`routing.rpf.covering`, which has the text's
covering too).

A node is in the trees of many subscribers, so a neighbour's filters must not be followed from everywhere: on the way
down a tree each hop shares more digits than the one before, so that an event coming back from a node which shares `s`
digits may only go on to neighbours that share fewer. That is the event's header, and it makes its way from any
publisher to any subscriber the one path that the filter took: no event arrives twice.

A node that takes a failed peer's place is sent all that goes through this node, and a node forgets what failed
neighbours had asked for. To one that it hears from again it says so, and what it wants there now: what was said to it
before may be lost. Nobody misses an answer during a partition that is over at once, and what a node says in it is lost:
so an answer to a probe bears a digest of what the asking node has asked for, and where its own differs it asks for all
anew. Until the paths are built anew, events are lost.
Filters and withdrawals between two nodes must keep their order: datagrams with random delays do not serve.
"""

from collections.abc import Sequence, Set
from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import Effect, NodeContext, NodeName, Send
from murmur_pubsub.message import message
from routing.filter_set import FilterSet
from routing.pastry.changes import Answered, CellFilled, PeerFailed, PeerReturned
from routing.pastry.layer import OverPastry
from routing.pastry.messages import PASTRY_MESSAGES, PastryPeer, PastryPeerFields
from routing.pastry.neighbour_filters import Forgotten, NeighbourFilters, say_forgotten
from routing.pastry.recovery import pastry_recovers
from routing.pastry.reverse_paths import ReversePaths, needs_order
from routing.pastry.told_filters import ToldFilters
from routing.protocol import Offer, RoutingProtocol, RunsOn
from routing.router import GossipRouter, Hop
from routing.rpf.covering import PathParameters, ReceiverCovering, SenderCovering


@message(80, control=True)
class PathFilter(NamedTuple):
    """Send me what matches this filter."""

    peer: PastryPeerFields
    filter: Filter


@message(81, control=True)
class PathWithdrawn(NamedTuple):
    """I no longer need what only this filter matched."""

    filter: Filter


@message(82, control=True)
class PathReleased(NamedTuple):
    """I have taken you for dead and use another neighbour: forget all that I asked for."""

    incarnation: int


class ReversePathForwarding(OverPastry, GossipRouter):
    """See `routing.router.Router`. An event's header is how many digits its last two nodes share, and what
    `ReversePaths` adds."""

    message_types: tuple[type, ...] = (*PASTRY_MESSAGES, PathFilter, PathWithdrawn, PathReleased, Forgotten)

    def __init__(self, context: NodeContext, parameters: PathParameters) -> None:
        super().__init__(context, parameters.resets, lambda asking, length: self.received.digest(asking))
        self._space = self.pastry.space
        self._own = self.pastry.own
        self._local = FilterSet()
        self._back = ReversePaths(self.pastry, parameters.reverse_paths)
        self.received = NeighbourFilters()
        self._forwarded: dict[PastryPeer, FilterSet] = {}
        self._told: dict[PastryPeer, ToldFilters] = {}
        covering = ReceiverCovering if parameters.covering == "receiver" else SenderCovering
        self._covering = covering(self._local, self.received, self._forwarded, self._shared)
        self.receivers = {
            PathFilter: self._on_filter,
            PathWithdrawn: self._on_withdrawn,
            PathReleased: self._on_released,
            Forgotten: self._on_forgotten,
        }
        self.watchers = {
            CellFilled: self._on_cell_filled,
            PeerFailed: self._on_failed,
            PeerReturned: self._on_returned,
            Answered: self._on_answered,
        }

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        """See `routing.router.Router`."""
        self._local.add(wanted)
        return self._spread(wanted, None)

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        """See `routing.router.Router`."""
        self._local.remove(wanted)
        return self._withdraw(wanted, None)

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """See `routing.router.Router`."""
        if self._back.passes_on(header):
            return self._back.onward(header)
        below = header[0] if header else self._space.digits
        hops: list[Hop] = []
        for peer in self.received.destinations(event.attributes):
            shared = self._shared(peer)
            if shared < below:
                hops += self._back.back_to(peer, shared)
        return hops

    def patterns_of(self, event: Event) -> Sequence[Filter]:
        """See `routing.router.GossipRouter`."""
        return self.received.matching(event.attributes)

    def towards(self, pattern: Filter, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """See `routing.router.GossipRouter`: straight back along the tracks of filters."""
        below = header[0] if header else self._space.digits
        near = ((peer, self._shared(peer)) for peer in self.received.related(pattern))
        return [Hop(peer.name, (shared,)) for peer, shared in near if shared < below]

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        """Is the event on its way back over an edge that is not this node's?"""
        return self._back.passes_on(header)

    def _on_filter(self, source: NodeName, message: PathFilter) -> list[Effect]:
        peer = PastryPeer(*message.peer)
        effects: list[Effect] = []
        known = self.received.peers.get(peer.name)
        if known is not None and known.incarnation < peer.incarnation:
            effects += self._forget(known)
        self.pastry.watch(peer)
        self._covering.make_way(peer, message.filter)
        if self.received.add(peer, message.filter):
            effects += self._spread(message.filter, peer)
        return effects

    def _on_withdrawn(self, source: NodeName, message: PathWithdrawn) -> list[Effect]:
        if not self.received.remove(source, message.filter):
            return []
        return self._withdraw(message.filter, self.received.peers[source])

    def _on_released(self, source: NodeName, message: PathReleased) -> list[Effect]:
        peer = self.received.peers.get(source)
        return [] if peer is None or peer.incarnation > message.incarnation else self._forget(peer)

    def _on_forgotten(self, source: NodeName, message: Forgotten) -> list[Effect]:
        """The neighbour takes this node for a new one, without this node's having noticed that it was gone."""
        if message.incarnation != self.pastry.me.incarnation:
            return []
        known = (forwarded for peer, forwarded in self._forwarded.items() if peer.name == source)
        return [Send(source, PathFilter(self.pastry.me, each)) for forwarded in known for each in forwarded]

    def _on_cell_filled(self, change: CellFilled) -> list[Effect]:
        """A new child in the trees that pass this node: it is to know what the others before it do."""
        self._forwarded[change.peer] = FilterSet()
        self._told[change.peer] = ToldFilters(self.now_us)
        told = self._covering.told_to(change.peer)
        return [effect for each in told for effect in self._send_if_new(change.peer, each)]

    def _on_failed(self, change: PeerFailed) -> list[Effect]:
        effects: list[Effect] = []
        if self._forwarded.pop(change.peer, None) is not None:
            del self._told[change.peer]
            effects.append(Send(change.peer.name, PathReleased(self.pastry.me.incarnation)))
        peer = self.received.peers.get(change.peer.name)
        if peer is not None and peer.incarnation <= change.peer.incarnation:
            effects += self._forget(peer)
        return effects

    def _on_returned(self, change: PeerReturned) -> list[Effect]:
        """The neighbour was only out of reach, so that what it was told when it was taken for dead may be lost."""
        return [*say_forgotten(change), *self._ask_anew(change.peer)]

    def _on_answered(self, change: Answered) -> list[Effect]:
        sent = self._forwarded.get(change.peer)
        if sent is None or self._told[change.peer].agrees(change, sent, self.pastry.round_began_us):
            return []
        return self._ask_anew(change.peer)

    def _ask_anew(self, peer: PastryPeer) -> list[Effect]:
        if peer in self._told:
            self._told[peer].told(self.now_us)
        asked = [PathFilter(self.pastry.me, each) for each in self._forwarded.get(peer, ())]
        return [Send(peer.name, each) for each in (PathReleased(self.pastry.me.incarnation), *asked)]

    def _forget(self, peer: PastryPeer) -> list[Effect]:
        self.pastry.unwatch(peer.name)
        self._covering.forget(peer)
        return [effect for each in self.received.drop(peer.name) for effect in self._withdraw(each, peer)]

    def _shared(self, peer: PastryPeer) -> int:
        return self._space.shared(self._own, peer.identifier)

    def _spread(self, wanted: Filter, source: PastryPeer | None) -> list[Effect]:
        """To the children of this node in the trees in which the filter came: those that share more digits."""
        effects: list[Effect] = []
        if self._covering.goes_on(source, wanted):
            above = self._covering.above(source)
            for peer in self._forwarded:
                if self._shared(peer) > above:
                    effects += self._send_if_new(peer, wanted)
        return effects

    def _send_if_new(self, peer: PastryPeer, wanted: Filter) -> list[Effect]:
        if self._covering.is_new_to(peer, wanted):
            self._told[peer].told(self.now_us)
            return [Send(peer.name, PathFilter(self.pastry.me, wanted))]
        return []

    def _withdraw(self, wanted: Filter, source: PastryPeer | None) -> list[Effect]:
        effects: list[Effect] = []
        for child, instead, gone in self._covering.withdrawn(source, wanted):
            self._told[child].told(self.now_us)
            effects += [Send(child.name, PathFilter(self.pastry.me, each)) for each in instead]
            effects += [Send(child.name, PathWithdrawn(wanted))] if gone else []
        return effects

    def fingerprint(self) -> Set[Fact]:
        """See `murmur_pubsub.machine.Machine`."""
        return {
            *super().fingerprint(),
            state_of("paths", to_peers=any(self._forwarded.values()), from_peers=self.received.peers),
        }

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        self.pastry.check_invariants()
        self.received.check_invariants()
        if self.pastry.joined:
            assert {peer.name for peer in self._forwarded} == {peer.name for _, peer in self.pastry.table.cells()}
        self._covering.check_invariants()


RPF = RoutingProtocol(
    name="rpf",
    make=ReversePathForwarding,
    parameters=PathParameters,
    runs_on=RunsOn.STRUCTURED,
    offers=frozenset({Offer.GOSSIP}),
    keeps_order=False,
    recovers=pastry_recovers,
    tried={"covering": ()},  # the text's baseline is for its figures; its schedules are drawn where they are asked for
    check=needs_order,
)
