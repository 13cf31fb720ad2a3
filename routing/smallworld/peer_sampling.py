"""Peer sampling: a small view of random peers that is shuffled with others (Cyclon).

Each round a node takes the oldest peer out of its view and sends it some of the rest. The peer answers with some of its
own, and each side keeps what it got in the places of what it sent. So a peer that is gone is forgotten when it is the
oldest.
"""

import random
from collections.abc import Sequence
from typing import Any

from murmur_pubsub.machine import NodeName
from routing.smallworld.messages import GossipPeer


class PeerSampling:
    """The view of the node called `own`, of at most `size` peers, of which `shuffled` are exchanged at a time. A peer
    is kept in `view` with the round in which it last spoke for itself."""

    def __init__(self, own: NodeName, size: int, shuffled: int, rng: random.Random) -> None:
        self._own = own
        self._size = size
        self._shuffled = shuffled
        self._rng = rng
        self.view: dict[NodeName, tuple[GossipPeer, int]] = {}
        self._sent: list[NodeName] = []

    def __len__(self) -> int:
        return len(self.view)

    def begin(self, round: int, me: Sequence[Any]) -> tuple[NodeName, list[Sequence[Any]]] | None:
        """The peer to shuffle with this round and what it is sent, with `me` (None: the view is empty)."""
        if not self.view:
            return None
        oldest = min(self.view.values(), key=lambda entry: entry[1])[0].name
        del self.view[oldest]
        self._sent = self._pick(self._shuffled - 1)
        return oldest, [me, *self._written(self._sent, round)]

    def answer(self, received: Sequence[Sequence[Any]], round: int) -> list[Sequence[Any]]:
        """What is sent in return for what was received."""
        sent = self._pick(self._shuffled)
        written = self._written(sent, round)
        self._merge(received, sent, round)
        return written

    def end(self, received: Sequence[Sequence[Any]], round: int) -> None:
        """The answer to this node's own shuffle."""
        self._merge(received, self._sent, round)
        self._sent = []

    def add(self, peer: GossipPeer, round: int) -> None:
        """A peer met elsewhere; it takes a place that is free."""
        known = self.view.get(peer.name)
        if known is not None:
            peer = peer.with_later_profile(known[0])
        elif len(self.view) >= self._size or peer.name == self._own:
            return
        self.view[peer.name] = peer, round

    def forget(self, name: NodeName) -> None:
        """The peer is gone."""
        self.view.pop(name, None)

    def written(self, round: int) -> list[Sequence[Any]]:
        """The whole view as it is written in messages of that round."""
        return self._written(list(self.view), round)

    def _pick(self, count: int) -> list[NodeName]:
        names = list(self.view)
        return names if len(names) <= count else self._rng.sample(names, count)

    def _written(self, names: Sequence[NodeName], round: int) -> list[Sequence[Any]]:
        return [(*self.view[name][0], round - self.view[name][1]) for name in names if name in self.view]

    def _merge(self, received: Sequence[Sequence[Any]], sent: Sequence[NodeName], round: int) -> None:
        view = self.view
        replaceable = [name for name in sent if name in view]
        for name, incarnation, identifier, profile, revision, age in received:
            told, spoke = GossipPeer(name, incarnation, identifier, profile, revision), round - age
            known = view.get(name)
            if known is not None:
                if known[1] < spoke:
                    view[name] = told.with_later_profile(known[0]), spoke
                else:
                    view[name] = known[0].with_later_profile(told), known[1]
                continue
            if name == self._own:
                continue
            if len(view) >= self._size:
                if not replaceable:
                    continue
                del view[replaceable.pop()]
            view[name] = told, spoke

    def check_invariants(self) -> None:
        """Raise AssertionError if the view contradicts itself."""
        assert len(self.view) <= self._size
        assert self._own not in self.view
