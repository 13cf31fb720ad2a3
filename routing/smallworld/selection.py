"""How a node selects its neighbours: ring links, small-world links, friend links (Vinifera IV-B1).

A node seeks three kinds of links. Ring links: the closest node on each side. K_sw small-world links: nodes at distances
drawn with a probability inversely proportional to the distance (Kleinberg; drawn as in Symphony, N^(u-1) of the ring
for uniform u, N estimated from the gaps to the ring links). K_f friend links: the nodes with the best utility; among
equal ones those that are neighbours already come first, then chance decides. The distances go against the direction of
growing identifiers, as routing does.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from murmur_pubsub.machine import NodeName
from routing.smallworld.messages import GossipPeer
from routing.smallworld.ring import RING_SIZE

_HALF = RING_SIZE // 2
"""A peer `off` ahead of where a link should lead is so far from there, or `RING_SIZE - off` if that is less. Not a
function: a node asks that of all peers that it hears of, for each of its links."""


class SmallWorldLink(NamedTuple):
    """A link that a node seeks at some distance, and the peer that it has chosen for that."""

    distance: int
    """How far behind the node it should lead."""
    peer: GossipPeer
    off: int
    """By how much it leads elsewhere."""


class NeighbourSelection:
    """The choice for one node. `utility`: of a peer's profile."""

    def __init__(self, small_world: int, friends: int, rng: random.Random, utility: Callable[[bytes], float]) -> None:
        self._draws = [rng.random() for _ in range(small_world)]
        self._friends = friends
        self._rng = rng
        self.utility = utility
        self.ring: list[NodeName] = []
        """The chosen predecessor and successor (one, if there is but one peer)."""
        self._ahead = self._behind = RING_SIZE
        self._least = -1.0
        """Of the chosen friends, the worst one's utility; below zero if more are sought."""
        self._links: list[SmallWorldLink] = []

    def select(
        self, own: int, candidates: Mapping[NodeName, GossipPeer], current: Mapping[NodeName, object]
    ) -> list[NodeName]:
        """The chosen ones of the candidates, ring links first."""
        if not candidates:
            self.ring = []
            return []
        around = [((identifier - own) % RING_SIZE, name) for name, _, identifier, _, _ in candidates.values()]
        self._ahead, successor = min(around)
        behind, predecessor = max(around)
        self._behind = RING_SIZE - behind
        chosen = {predecessor: None, successor: None}
        self.ring = list(chosen)
        self._links = []
        gap = max(1, (self._behind + self._ahead) // 2)
        nodes = 1 << max(1, RING_SIZE.bit_length() - 1 - gap.bit_length())
        for draw in self._draws:
            distance = int(RING_SIZE * nodes ** (draw - 1))
            left = [
                (off if off <= _HALF else RING_SIZE - off, candidates[name])
                for ahead, name in around
                if name not in chosen
                for off in ((ahead + distance) % RING_SIZE,)
            ]
            if left:
                off, peer = self._choose(distance, left, current)
                chosen[peer.name] = None
                self._links.append(SmallWorldLink(distance, peer, off))
        if self._friends:
            chance, utility = self._rng.random, self.utility
            ranked = [
                (-utility(profile), name not in current, chance(), name)
                for name, _, _, profile, _ in candidates.values()
                if name not in chosen
            ]
            ranked.sort()
            chosen.update((name, None) for *_, name in ranked[: self._friends])
            self._least = -ranked[self._friends - 1][0] if len(ranked) >= self._friends else -1.0
        return list(chosen)

    def prefers(self, own: int, peer: GossipPeer) -> bool:
        """Might the peer be chosen in the place of a neighbour that was chosen last?"""
        ahead = (peer.identifier - own) % RING_SIZE
        if ahead < self._ahead or RING_SIZE - ahead < self._behind:
            return True
        if self._friends and self.utility(peer.profile) > self._least:
            return True
        if len(self._links) < len(self._draws):
            return True
        for link in self._links:
            off = (ahead + link.distance) % RING_SIZE
            if self._is_better(peer, off if off <= _HALF else RING_SIZE - off, link):
                return True
        return False

    def _choose(
        self, distance: int, left: Sequence[tuple[int, GossipPeer]], current: Mapping[NodeName, object]
    ) -> tuple[int, GossipPeer]:
        """For a link to that distance, one of those that are left, each with how far off it is."""
        return min(left)

    def _is_better(self, peer: GossipPeer, off: int, link: SmallWorldLink) -> bool:
        """Would the peer, so far off, be chosen for the link in the place of the one that is?"""
        return off < link.off
