"""Peers that a Pastry node takes for failed: for some rounds it does not believe what others still say of them."""

from murmur_pubsub.machine import NodeName
from routing.pastry.messages import PastryPeer

QUARANTINE_ROUNDS = 10


class Quarantine:
    """The failed peers. One that speaks for itself, or is told of as a later incarnation, is believed again."""

    def __init__(self, round_us: int) -> None:
        self._lasts_us = QUARANTINE_ROUNDS * round_us
        self._failed: dict[NodeName, tuple[int, int]] = {}
        """The incarnation of each, and until when hearsay about it is not believed."""
        self._heard: dict[NodeName, int] = {}
        """The incarnation that had failed of each that has spoken again, until it is known which one that is."""

    def begin(self, peer: PastryPeer, now_us: int) -> None:
        """The peer has failed."""
        self._failed[peer.name] = peer.incarnation, now_us + self._lasts_us

    def heard(self, name: NodeName) -> None:
        """The peer has spoken for itself."""
        if name in self._failed:
            self._heard[name] = self._failed.pop(name)[0]

    def has_returned(self, peer: PastryPeer) -> bool:
        """Has it spoken, and is it just the one that was taken for failed? Said once."""
        return self._heard.pop(peer.name, None) == peer.incarnation

    def believes(self, peer: PastryPeer, now_us: int) -> bool:
        """Is hearsay about it taken seriously? If not, what is passed on of a failed peer would go round for ever."""
        incarnation, until_us = self._failed.get(peer.name, (-1, 0))
        return peer.incarnation > incarnation or now_us >= until_us
