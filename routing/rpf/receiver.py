"""Reverse path forwarding that looks for covering where a filter arrives (IRBR section 5.3).

The text says of its baseline: "a new subscription covered by a subscription of a neighbour node need not be forwarded".
Here that is read of the node to which a filter comes. It keeps all that a neighbour has sent, and passes a filter on
unless the same neighbour has sent one that covers it; so does it with what its own subscribers want. Whether another
neighbour's filter went the same way before does not matter: the next node finds that out. Sender-side covering
(`routing.rpf.router`) asks for it, and so needs fewer messages.

Why nothing is missed: what a source (a neighbour, or the own subscribers) wants is covered by one of its filters that
no other of the same source covers, and these have all been sent to the children that come next in the source's trees.
A withdrawal takes back what no source above the child wants any more. What it alone had covered of the same source's
goes on before it.
"""

from collections.abc import Iterable

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, NodeContext, NodeName, Send
from routing.forwarding import FilterSet
from routing.pastry.messages import PastryPeer
from routing.pastry.reverse_paths import ReversePathParameters
from routing.rpf.router import PathWithdrawn, ReversePathForwarding


class CoveredAtReceiver(ReversePathForwarding):
    """See `ReversePathForwarding`."""

    def __init__(self, context: NodeContext, parameters: ReversePathParameters) -> None:
        super().__init__(context, parameters)
        self._widest: dict[NodeName | None, FilterSet] = {}
        """Of each source the filters that no other of its own covers; None: this node's subscribers."""

    def _make_way(self, peer: PastryPeer, wanted: Filter) -> None:
        """A neighbour sends what it has covered by itself, too, and withdraws it by itself."""

    def _spread(self, wanted: Filter, source: PastryPeer | None) -> list[Effect]:
        widest = self._widest.setdefault(_name(source), FilterSet())
        return super()._spread(wanted, source) if widest.put(wanted) else []

    def _is_new_to(self, peer: PastryPeer, wanted: Filter) -> bool:
        forwarded = self._forwarded[peer]
        if wanted in forwarded:
            return False
        forwarded.add(wanted)
        return True

    def _told_to(self, peer: PastryPeer) -> Iterable[Filter]:
        above = [owner for owner in self.received.peers.values() if self._shared(owner) < self._shared(peer)]
        sets = (self._widest.get(name, FilterSet()) for name in (None, *(owner.name for owner in above)))
        return dict.fromkeys(each for widest in sets for each in widest)

    def _withdraw(self, wanted: Filter, source: PastryPeer | None) -> list[Effect]:
        exposed = self._exposed(wanted, source)
        effects: list[Effect] = []
        above, covered = self._above(source), self._covered_by(wanted)
        first = min((shared for shared, each in covered if each == wanted), default=self._space.digits)
        for peer, forwarded in self._forwarded.items():
            shared = self._shared(peer)
            if shared <= above:
                continue
            for each in exposed:
                effects += self._send_if_new(peer, each)
            if wanted in forwarded and first >= shared:
                forwarded.remove(wanted)
                self._told[peer].told(self.now_us)
                effects.append(Send(peer.name, PathWithdrawn(wanted)))
        return effects

    def _exposed(self, wanted: Filter, source: PastryPeer | None) -> list[Filter]:
        """What the source goes on wanting of what only this filter of its own had covered."""
        widest = self._widest.get(_name(source))
        if widest is None or wanted not in widest:
            return []
        widest.remove(wanted)
        covered = (
            self._local.covered_by(wanted)
            if source is None
            else [each for owner, each in self.received.covered_by(wanted) if owner.name == source.name]
        )
        return [each for each in FilterSet.of(covered) if widest.put(each)]

    def _forget(self, peer: PastryPeer) -> list[Effect]:
        self._widest.pop(peer.name, None)
        return super()._forget(peer)

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        super().check_invariants()
        for name in (None, *self.received.peers):
            wanted = self._local if name is None else self.received.of(name)
            assert set(self._widest.get(name, ())) == set(FilterSet.of(wanted)), "not the widest of a source's filters"
        assert self._widest.keys() <= {None, *self.received.peers}
        for peer, forwarded in self._forwarded.items():
            assert all(each in forwarded for each in self._told_to(peer)), f"{peer.name} was not sent a source's widest"


def _name(source: PastryPeer | None) -> NodeName | None:
    return None if source is None else source.name
