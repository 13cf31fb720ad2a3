"""Which brokers are asked whether they are there, because nobody would tell of their end.

No link of the runtime leads to a primary neighbour that a move has made, nor to a broker that stands in for one that is
away. They are asked often, and one that leaves several requests in a row unanswered is taken to be away: a datagram or
two may be lost. It is asked on, so that it is found when it is back.
"""

from collections.abc import Iterable

from murmur_pubsub.machine import NodeName

PATIENCE = 3
"""So many requests in a row may be lost."""


class Watch:
    """`unanswered`: how many requests of each broker that is watched."""

    def __init__(self) -> None:
        self.unanswered: dict[NodeName, int] = {}

    def ask(self, watched: Iterable[NodeName]) -> list[NodeName]:
        """Each of these is asked (again), and no other; those that have left so many requests unanswered."""
        self.unanswered = {peer: self.unanswered.get(peer, 0) for peer in watched}
        gone = [peer for peer, count in self.unanswered.items() if count >= PATIENCE]
        for peer in self.unanswered:
            self.unanswered[peer] += 1
        return gone

    def answered(self, peer: NodeName) -> None:
        """The broker is there."""
        if peer in self.unanswered:
            self.unanswered[peer] = 0
