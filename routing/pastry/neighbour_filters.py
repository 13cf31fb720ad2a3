"""The filters that other nodes of the overlay have asked this one for, by node: what IRBR's baselines route by."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, NodeName, Send
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.message import message
from murmur_pubsub.values import Value
from routing.filter_digest import digest
from routing.pastry.changes import PeerReturned
from routing.pastry.messages import PastryPeer


@message(50, control=True)
class Forgotten(NamedTuple):
    """I had taken you for dead, and know nothing any more of what you have asked me for."""

    incarnation: int
    """That of the receiver which is meant."""


def say_forgotten(change: PeerReturned) -> list[Effect]:
    """Tell the peer that what it had asked for is gone."""
    return [Send(change.peer.name, Forgotten(change.peer.incarnation))]


class NeighbourFilters:
    """Each neighbour's filters, in one matching index."""

    def __init__(self) -> None:
        self._peers: dict[NodeName, PastryPeer] = {}
        self._filters: dict[NodeName, dict[Filter, int]] = {}
        self._entries: dict[int, tuple[NodeName, Filter]] = {}
        self._index = MatchingIndex[NodeName]()
        self._next_key = 0
        self._digests: dict[NodeName, int] = {}

    def __iter__(self) -> Iterator[tuple[PastryPeer, Filter]]:
        return ((self._peers[name], wanted) for name, wanted in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def peers(self) -> Mapping[NodeName, PastryPeer]:
        """The neighbours that have asked for something."""
        return self._peers

    def add(self, peer: PastryPeer, wanted: Filter) -> bool:
        """The neighbour wants the filter; False if that is known."""
        filters = self._filters.setdefault(peer.name, {})
        self._peers[peer.name] = peer
        if wanted in filters:
            return False
        key = filters[wanted] = self._next_key
        self._next_key += 1
        self._digests.pop(peer.name, None)
        self._entries[key] = (peer.name, wanted)
        self._index.add(key, wanted, peer.name)
        return True

    def remove(self, name: NodeName, wanted: Filter) -> bool:
        """It wants the filter no more; False if it never did."""
        key = self._filters.get(name, {}).pop(wanted, None)
        if key is None:
            return False
        del self._entries[key]
        self._digests.pop(name, None)
        self._index.remove(key)
        return True

    def drop(self, name: NodeName) -> list[Filter]:
        """The neighbour is gone; what it wanted."""
        filters = list(self._filters.get(name, ()))
        for wanted in filters:
            self.remove(name, wanted)
        self._filters.pop(name, None)
        self._peers.pop(name, None)
        return filters

    def of(self, name: NodeName) -> list[Filter]:
        """What the neighbour wants."""
        return list(self._filters.get(name, ()))

    def digest(self, name: NodeName) -> int:
        """A number that says whether the neighbour has asked for what this node holds of it."""
        if name not in self._filters:
            return digest(())
        found = self._digests.get(name)
        if found is None:
            found = self._digests[name] = digest(self._filters[name])
        return found

    def covered_by(self, wanted: Filter) -> list[tuple[PastryPeer, Filter]]:
        """All that the filter covers, with whose it is."""
        entries = (self._entries[key] for key in self._index.covered_by(wanted))
        return [(self._peers[name], covered) for name, covered in entries]

    def related(self, wanted: Filter) -> list[PastryPeer]:
        """The neighbours with a filter that covers the given one or is covered by it."""
        return [self._peers[name] for name in self._index.related(wanted)]

    def matching(self, attributes: Mapping[str, Value]) -> list[Filter]:
        """The filters that an event with these attributes matches."""
        return list(dict.fromkeys(self._entries[key][1] for key in self._index.matching(attributes)))

    def destinations(self, attributes: Mapping[str, Value]) -> list[PastryPeer]:
        """The neighbours that want an event with these attributes."""
        return [self._peers[name] for name in self._index.destinations(attributes)]

    def check_invariants(self) -> None:
        """Raise AssertionError if the parts contradict each other."""
        assert len(self._entries) == len(self._index) == sum(map(len, self._filters.values()))
        assert self._peers.keys() == self._filters.keys()
