"""The subscriptions of a broker's own subscribers: which of them get an event.

Each distinct filter is indexed once, however many subscribers share it, so that an event costs one match for
each distinct filter and one step for each subscriber it is for. The index is chosen by name in the scenario.
"""

from collections.abc import Callable

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from murmur_pubsub.matching import FilterIndex, MatchingIndex
from murmur_pubsub.matching_naive import NaiveIndex

INDEXES: dict[str, Callable[[], FilterIndex[None]]] = {"bitset": MatchingIndex, "naive": NaiveIndex}

Owner = tuple[NodeName | None, int]
"""(client node or None for a subscriber of the broker's own, subscriber number)."""


class LocalSubscriptions:
    """Filter by filter, the subscribers that hold it, and how many times each (texts may differ, filters not)."""

    def __init__(self, index: str) -> None:
        self._index = INDEXES[index]()
        self._keys: dict[Filter, int] = {}
        self._owners: dict[int, dict[Owner, int]] = {}
        self._since: dict[tuple[int, Owner], int] = {}
        self._latest_since = 0
        self._next_key = 0

    def add(self, owner: Owner, wanted: Filter) -> bool:
        """Note the subscription; True if it is the first with this filter here."""
        key = self._keys.get(wanted)
        if key is not None:
            owners = self._owners[key]
            owners[owner] = owners.get(owner, 0) + 1
            return False
        key = self._keys[wanted] = self._next_key
        self._next_key += 1
        self._owners[key] = {owner: 1}
        self._index.add(key, wanted, None)
        return True

    def begin(self, owner: Owner, wanted: Filter, since: int) -> None:
        """The subscription just added counts from `since` on (see `subscribers`), which never falls; one that its owner
        holds already counts as before."""
        self._since.setdefault((self._keys[wanted], owner), since)
        self._latest_since = since

    def remove(self, owner: Owner, wanted: Filter) -> bool:
        """Forget the subscription (if it is known); True if it was the last with this filter here."""
        key = self._keys.get(wanted)
        if key is None or owner not in self._owners[key]:
            return False
        owners = self._owners[key]
        owners[owner] -= 1
        if not owners[owner]:
            del owners[owner]
            self._since.pop((key, owner), None)
        if owners:
            return False
        del self._keys[wanted], self._owners[key]
        self._index.remove(key)
        return True

    def remove_client(self, client: NodeName) -> list[Filter]:
        """Forget all subscriptions of the client; the filters that no subscriber here holds any more."""
        gone = []
        for wanted, key in list(self._keys.items()):
            for owner in [owner for owner in self._owners[key] if owner[0] == client]:
                self._owners[key][owner] = 1  # however many times it was held
                if self.remove(owner, wanted):
                    gone.append(wanted)
        return gone

    def subscribers(self, event: Event, until: int | None = None) -> dict[NodeName | None, list[int]]:
        """Client by client, the subscribers that get the event, each once however many of its filters match; with
        `until`, without subscriptions that count from later on."""
        if not self._keys:
            return {}
        keys = self._index.matching(event.attributes)
        if not keys:
            return {}
        if len(keys) == 1:
            owners = self._owners[keys[0]]
        else:
            owners = {}
            for key in keys:
                owners.update(self._owners[key])
        if until is not None and until < self._latest_since:
            since = self._since
            owners = {
                owner: count
                for key in keys
                for owner, count in self._owners[key].items()
                if since.get((key, owner), 0) <= until
            }
        by_client: dict[NodeName | None, list[int]] = {}
        for client, subscriber in owners:
            by_client.setdefault(client, []).append(subscriber)
        return by_client

    def of_client(self, client: NodeName | None) -> list[tuple[int, Filter]]:
        """Each subscriber of the client (None: of the broker's own), with each filter that it holds."""
        return [
            (subscriber, wanted)
            for wanted, key in self._keys.items()
            for owner, subscriber in self._owners[key]
            if owner == client
        ]

    def __len__(self) -> int:
        return len(self._keys)

    def check_invariants(self) -> None:
        assert sorted(self._keys.values()) == sorted(self._owners)
        assert len(self._index) == len(self._keys)
        assert all(self._owners.values())
        assert all(owner in self._owners[key] for key, owner in self._since)
