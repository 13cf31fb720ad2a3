"""The content routing table: which neighbour has asked for which ranges (Vinifera IV-B3).

An entry is what one neighbour wants by way of this node, in all attributes together. The neighbour's next lookup
replaces it as a whole, or extends it. It expires when the neighbour has not confirmed it for some rounds.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from murmur_pubsub.values import Value
from routing.smallworld.subscription_regions import SubscriptionRegions, extended


class Entry(NamedTuple):
    """What one neighbour wants by way of this node."""

    incarnation: int
    version: int
    """The neighbour's number for it."""
    regions: SubscriptionRegions


class ContentTable:
    """All entries."""

    def __init__(self) -> None:
        self._entries: dict[NodeName, Entry] = {}
        self._confirmed: dict[NodeName, int] = {}
        self._ranges: dict[int, dict[NodeName, list[tuple[int, int, Filter]]]] = {}
        """Of each attribute, by neighbour: (low, high, filter) of each of its regions."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[NodeName, Entry]]:
        return iter(self._entries.items())

    def version(self, neighbour: NodeName) -> int:
        """Of the neighbour's entry; 0: there is none."""
        entry = self._entries.get(neighbour)
        return 0 if entry is None else entry.version

    def regions(self, neighbour: NodeName) -> SubscriptionRegions:
        """What the neighbour wants."""
        entry = self._entries.get(neighbour)
        return {} if entry is None else entry.regions

    def extend(self, neighbour: NodeName, entry: Entry, since: int, round: int) -> bool:
        """The neighbour wants this besides what it wanted at the version `since`; False if that is not what is here: it
        will hear so with its next heartbeat."""
        known = self._entries.get(neighbour)
        if known is None or known[:2] != (entry.incarnation, since):
            return False
        self._confirmed[neighbour] = round
        self._entries[neighbour] = entry._replace(regions=extended(known.regions, entry.regions))
        self._list(neighbour, entry.regions)
        return True

    def install(self, neighbour: NodeName, entry: Entry, round: int) -> bool:
        """The neighbour wants this, and nothing else; False if that is outdated, or what it wanted before."""
        known = self._entries.get(neighbour)
        self._confirmed[neighbour] = round
        if known is not None and known[:2] >= entry[:2]:
            return False
        if known is not None and known.regions == entry.regions:
            self._entries[neighbour] = entry
            return False
        self.drop(neighbour)
        self._confirmed[neighbour] = round
        self._entries[neighbour] = entry
        self._list(neighbour, entry.regions)
        return True

    def _list(self, neighbour: NodeName, regions: SubscriptionRegions) -> None:
        for (attribute, wanted), ranges in regions.items():
            listed = self._ranges.setdefault(attribute, {}).setdefault(neighbour, [])
            listed += [(low, high, wanted) for low, high in ranges]

    def confirm(self, neighbour: NodeName, incarnation: int, version: int, round: int) -> bool:
        """The neighbour says that its entry of that version holds (another one is on its way, or will expire). True if
        the neighbour is a new incarnation that knows nothing of what was wanted."""
        known = self._entries.get(neighbour)
        if known is None:
            return False
        if known[:2] == (incarnation, version):
            self._confirmed[neighbour] = round
        return known.incarnation < incarnation and self.drop(neighbour)

    def drop(self, neighbour: NodeName) -> bool:
        """The neighbour is gone, or wants nothing; True if it wanted something."""
        entry = self._entries.pop(neighbour, None)
        self._confirmed.pop(neighbour, None)
        if entry is None:
            return False
        for attribute in dict.fromkeys(attribute for attribute, _ in entry.regions):
            del self._ranges[attribute][neighbour]
        return bool(entry.regions)

    def expire(self, before: int) -> bool:
        """Drop what was last confirmed before that round; True if something was."""
        late = [neighbour for neighbour, confirmed in self._confirmed.items() if confirmed < before]
        return sum(self.drop(neighbour) for neighbour in late) > 0

    def destinations(self, attribute: int, value: int, attributes: Mapping[str, Value] | None) -> list[NodeName]:
        """The neighbours that want an event with that hashed value; `attributes`: of the event, matched against their
        filters (None: they are not)."""
        found = []
        for neighbour, ranges in self._ranges.get(attribute, {}).items():
            for low, high, wanted in ranges:
                if low <= value <= high and (attributes is None or wanted.matches(attributes)):
                    found.append(neighbour)
                    break
        return found

    def check_invariants(self) -> None:
        """Raise AssertionError if the parts contradict each other."""
        assert self._entries.keys() == self._confirmed.keys()
        listed = {neighbour for ranges in self._ranges.values() for neighbour in ranges}
        assert listed == {neighbour for neighbour, entry in self._entries.items() if entry.regions}
