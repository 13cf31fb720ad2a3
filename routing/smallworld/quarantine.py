"""Failed peers: for some rounds a node does not believe what others still say of them.

It believes that a peer is there if somebody has heard it some rounds after it failed here: then it was only silent, or
on the other side of a partition.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from murmur_pubsub.machine import NodeName

QUARANTINE_ROUNDS = 12
_SINCE_ROUNDS = 2
"""By how much the rounds of two nodes that heard a peer last may differ."""


class Quarantine:
    """The failed peers. A peer that speaks for itself, or is told of as a later incarnation, is believed again."""

    def __init__(self) -> None:
        self._round = 0
        self._failed: dict[NodeName, tuple[int, int]] = {}
        """Peer to the incarnation that failed and the round in which its quarantine ends."""

    def begin(self, name: NodeName, incarnation: int, round: int) -> None:
        """That incarnation of the peer has failed in this round."""
        self._failed[name] = incarnation, round + QUARANTINE_ROUNDS

    def end(self, name: NodeName) -> None:
        """The peer has spoken for itself."""
        self._failed.pop(name, None)

    def begin_round(self, round: int) -> None:
        """Release the peers whose time is over."""
        self._round = round
        if self._failed:
            self._failed = {name: entry for name, entry in self._failed.items() if entry[1] > round}

    def believed(self, peers: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
        """Those of the peers, as they are written in messages, that are not in quarantine."""
        failed = self._failed
        if not failed:
            return list(peers)
        return [each for each in peers if each[0] not in failed or self._has_news(each[1], each[-1], *failed[each[0]])]

    def _has_news(self, incarnation: int, age: int, failed: int, until: int) -> bool:
        """Is that of a later incarnation than the failed one, or from well after it failed? `age`: in rounds."""
        return incarnation > failed or self._round - age > until - QUARANTINE_ROUNDS + _SINCE_ROUNDS
