"""What a node has installed at its next hops: the other side of their content routing tables."""

from collections.abc import Iterator
from typing import NamedTuple

from murmur_pubsub.machine import NodeName
from routing.smallworld.subscription_regions import SubscriptionRegions


class _Uplink(NamedTuple):
    version: int
    regions: SubscriptionRegions


_NOTHING = _Uplink(0, {})


class Uplinks:
    """The peers at which something is installed. The layer of subscriptions writes; the overlay reads versions, which
    its heartbeats carry, so that both ends notice when an installation was lost."""

    def __init__(self) -> None:
        self._uplinks: dict[NodeName, _Uplink] = {}
        self._version = 0

    def __iter__(self) -> Iterator[NodeName]:
        return iter(self._uplinks)

    def __contains__(self, peer: NodeName) -> bool:
        return peer in self._uplinks

    def version(self, peer: NodeName) -> int:
        """Of what is installed at the peer; 0: nothing is."""
        return self._uplinks.get(peer, _NOTHING).version

    def regions(self, peer: NodeName) -> SubscriptionRegions:
        """What is installed at the peer."""
        return self._uplinks.get(peer, _NOTHING).regions

    def put(self, peer: NodeName, regions: SubscriptionRegions) -> None:
        """From now on this is installed at the peer, under a new version."""
        self._version += 1
        self._uplinks[peer] = _Uplink(self._version, regions)

    def drop(self, peer: NodeName) -> bool:
        """Nothing is installed at the peer any more; was there anything?"""
        return self._uplinks.pop(peer, None) is not None
