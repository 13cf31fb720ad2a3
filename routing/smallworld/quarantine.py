"""Failed peers: for some rounds a node does not believe what others still say of them."""

from collections.abc import Iterable, Sequence
from typing import Any

from murmur_pubsub.machine import NodeName

_ROUNDS = 12


class Quarantine:
    """The failed peers. A peer that speaks for itself, or is told of as a later incarnation, is believed again."""

    def __init__(self) -> None:
        self._failed: dict[NodeName, tuple[int, int]] = {}
        """Peer to the incarnation that failed and the round in which its quarantine ends."""

    def begin(self, name: NodeName, incarnation: int, round: int) -> None:
        """That incarnation of the peer has failed in this round."""
        self._failed[name] = incarnation, round + _ROUNDS

    def end(self, name: NodeName) -> None:
        """The peer has spoken for itself."""
        self._failed.pop(name, None)

    def begin_round(self, round: int) -> None:
        """Release the peers whose time is over."""
        if self._failed:
            self._failed = {name: entry for name, entry in self._failed.items() if entry[1] > round}

    def believed(self, peers: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
        """Those of the peers, as they are written in messages, that are not in quarantine."""
        failed = self._failed
        if not failed:
            return list(peers)
        return [each for each in peers if each[0] not in failed or each[1] > failed[each[0]][0]]
