"""Whom a node selects as neighbours: ring links, small-world links, friend links (Vinifera IV-B1).

One link to the closest node on each side of the ring; K_sw links to nodes at distances drawn with a probability
inversely proportional to the distance (Kleinberg, drawn as in Symphony: N^(u-1) of the ring for uniform u, N estimated
from the gaps to the ring links); K_f links to those with the best utility, ties by what is already a neighbour, then by
chance. The distances go against the direction of growing identifiers, which is the way that routing goes.
"""

import random
from collections.abc import Callable, Mapping

from pubsub.machine import NodeName
from routing.smallworld.messages import Peer
from routing.smallworld.ring import RING, clockwise


class NeighbourSelection:
    """The choice for one node. `utility`: of a peer's profile."""

    def __init__(self, small_world: int, friends: int, rng: random.Random, utility: Callable[[bytes], float]) -> None:
        self._draws = [rng.random() for _ in range(small_world)]
        self._friends = friends
        self._rng = rng
        self._utility = utility
        self.ring: list[NodeName] = []
        """The chosen predecessor and successor (one, if there is but one peer)."""

    def select(
        self, own: int, candidates: Mapping[NodeName, Peer], current: Mapping[NodeName, object]
    ) -> list[NodeName]:
        """The chosen ones of the candidates, ring links first."""
        if not candidates:
            self.ring = []
            return []
        rest = list(candidates.values())
        predecessor = min(rest, key=lambda peer: (clockwise(peer.identifier, own), peer.name))
        successor = min(rest, key=lambda peer: (clockwise(own, peer.identifier), peer.name))
        chosen = {predecessor.name: None, successor.name: None}
        self.ring = list(chosen)
        gap = max(1, (clockwise(predecessor.identifier, own) + clockwise(own, successor.identifier)) // 2)
        nodes = 1 << max(1, RING.bit_length() - 1 - gap.bit_length())
        for draw in self._draws:
            target = (own - int(RING * nodes ** (draw - 1))) % RING
            left = [peer for peer in rest if peer.name not in chosen]
            if left:
                nearest = min(left, key=lambda peer: (_apart(peer.identifier, target), peer.name))
                chosen[nearest.name] = None
        if self._friends:
            chance, utility = self._rng.random, self._utility
            ranked = sorted(
                (-utility(peer.profile), peer.name not in current, chance(), peer.name)
                for peer in rest
                if peer.name not in chosen
            )
            chosen.update((name, None) for *_, name in ranked[: self._friends])
        return list(chosen)


def _apart(first: int, second: int) -> int:
    distance = abs(first - second)
    return min(distance, RING - distance)
