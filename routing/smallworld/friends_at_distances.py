"""Neighbours that are friends at small-world distances (ours; Vinifera has friends and small-world links).

Theory of operation. Greedy routing takes few hops if links lead to all distances alike (Kleinberg): as many to between
an eighth and a quarter of the ring as to between a quarter and a half. Where exactly they lead does not matter much.
So, of the peers that are about as far away as a link should lead, a node takes the one whose subscriptions are most
like its own. Ways to rendezvous nodes are as short as over small-world links, and most nodes on them want what passes.
"""

from collections.abc import Mapping, Sequence

from murmur_pubsub.machine import NodeName
from routing.smallworld.messages import GossipPeer
from routing.smallworld.selection import NeighbourSelection, SmallWorldLink

_ABOUT = 0.5
"""A peer is about as far away as it should be if it is off by no more than this share of the distance."""


class FriendsAtDistances(NeighbourSelection):
    """See `NeighbourSelection`."""

    def _choose(
        self, distance: int, left: Sequence[tuple[int, GossipPeer]], current: Mapping[NodeName, object]
    ) -> tuple[int, GossipPeer]:
        """The one most alike of those that are about there; if none is, the closest."""
        about = [
            (-self.utility(peer.profile), peer.name not in current, off, peer)
            for off, peer in left
            if off <= distance * _ABOUT
        ]
        return min(about)[2:] if about else min(left)

    def _is_better(self, peer: GossipPeer, off: int, link: SmallWorldLink) -> bool:
        about = link.distance * _ABOUT
        if off > about:
            return off < link.off
        return link.off > about or self.utility(peer.profile) > self.utility(link.peer.profile)
