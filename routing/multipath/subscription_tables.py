"""Subscription tables: which origin holds which filter, and where that leads (section 4).

The master subscription table holds every subscription of the network, as pairs of filter and origin (the broker that
the subscriber is at). Anchor and ppath are the same for all subscriptions of one origin, so they are kept once for
each: the ppath is the last Δ brokers on the way to the origin, nearest first, and the anchor is its last.

The working subscription table says which brokers of the working overlay map the matching anchors were substituted
with. Filters do not change with links, so it shares the master table's index, and a rebuild only groups the origins
by substitute. With covering it keeps an index of its own, of a covering set for each of those brokers.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.values import Value
from routing.filter_set import FilterSet
from routing.multipath.messages import Path
from routing.multipath.overlay_maps import WorkingOverlayMap

Version = tuple[int, int]
"""(epoch, version), see `routing.multipath.messages`."""


class MasterSubscriptionTable:
    """Filters by origin, and their ppaths. Sets of origins are ints, by a number that each is given on sight."""

    def __init__(self) -> None:
        self.ppaths: dict[NodeName, Path] = {}
        self.versions: dict[NodeName, Version] = {}
        self.moved: dict[NodeName, int] = {}
        """The last Δ-move that changed the way to an origin, as far as this broker was told (absent: none)."""
        self.bits: dict[NodeName, int] = {}
        self._held: dict[NodeName, int] = {}
        self._keys: dict[Filter, int] = {}
        self._origins: dict[int, int] = {}
        self._index = MatchingIndex[None]()
        self._next_key = 0
        self._lookup: Callable[[Mapping[str, Value]], Iterable[NodeName]] | None = None

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return sum(self._held.values())

    def note_origin(self, origin: NodeName, version: Version, ppath: Path) -> None:
        """What is known of the origin is of this version."""
        self.bits.setdefault(origin, 1 << len(self.bits))
        self._held.setdefault(origin, 0)
        self.versions[origin] = version
        self.ppaths[origin] = ppath

    def add(self, origin: NodeName, wanted: Filter) -> None:
        """The origin, which is known, holds the filter."""
        key = self._keys.get(wanted)
        if key is None:
            key = self._keys[wanted] = self._next_key
            self._next_key += 1
            self._origins[key] = 0
            self._index.add(key, wanted, None)
        if not self._origins[key] & self.bits[origin]:
            self._origins[key] |= self.bits[origin]
            self._held[origin] += 1

    def remove(self, origin: NodeName, wanted: Filter) -> None:
        """The origin no longer holds the filter, if it did."""
        key = self._keys.get(wanted)
        if key is None or not self._origins[key] & self.bits[origin]:
            return
        self._origins[key] &= ~self.bits[origin]
        self._held[origin] -= 1
        if not self._origins[key]:
            del self._keys[wanted], self._origins[key]
            self._index.remove(key)

    def replace(self, origin: NodeName, filters: Iterable[Filter]) -> None:
        """The origin holds exactly these."""
        if self._held[origin]:
            wanted = dict.fromkeys(filters)
            for each in self.filters_of(origin):
                if each not in wanted:
                    self.remove(origin, each)
            filters = wanted
        for each in filters:
            self.add(origin, each)

    def forget(self, origin: NodeName) -> None:
        """The origin is gone; its number is not used again."""
        self.replace(origin, ())
        del self.ppaths[origin]
        self.moved.pop(origin, None)

    def filters_of(self, origin: NodeName) -> list[Filter]:
        """What the origin holds."""
        bit = self.bits[origin]
        return [wanted for wanted, key in self._keys.items() if self._origins[key] & bit]

    def by_origin(self) -> dict[NodeName, list[Filter]]:
        """All subscriptions of the origins that are there, in one walk."""
        found: dict[NodeName, list[Filter]] = {origin: [] for origin in self.ppaths}
        names = {bit: origin for origin, bit in self.bits.items()}
        for wanted, key in self._keys.items():
            origins = self._origins[key]
            while origins:
                lowest = origins & -origins
                origins ^= lowest
                found[names[lowest]].append(wanted)
        return found

    def matching_origins(self, attributes: Mapping[str, Value]) -> int:
        """The set of origins that hold a filter which the event matches."""
        origins = 0
        if self._lookup is not None:
            for origin in self._lookup(attributes):
                origins |= self.bits[origin]
            return origins
        for key in self._index.matching(attributes):
            origins |= self._origins[key]
        return origins

    def share_lookup(self, lookup: Callable[[Mapping[str, Value]], Iterable[NodeName]]) -> None:
        """From now on ask this function which origins hold a filter that an event matches, and let the own index go.
        Tables that hold the same subscriptions, and change no more, may ask one function and fit into one process."""
        self._lookup = lookup
        self._index = MatchingIndex()

    def held_by(self, origins: int) -> list[Filter]:
        """The filters that any of a set of origins holds."""
        return [wanted for wanted, key in self._keys.items() if self._origins[key] & origins]

    def check_invariants(self) -> None:
        self._index.check_invariants()
        assert sorted(self._keys.values()) == sorted(self._origins)
        for origin, bit in self.bits.items():
            assert self._held[origin] == sum(1 for origins in self._origins.values() if origins & bit)
            assert origin in self.ppaths or not self._held[origin]
        assert all(self._origins.values()), "a filter that no origin holds"


class WorkingSubscriptionTable:
    """The master table over a working overlay map, for ppaths that may be those of another time."""

    remembers: ClassVar = ("_covering",)  # made anew of the master table when an event asks after a change of links

    def __init__(
        self,
        mst: MasterSubscriptionTable,
        wom: WorkingOverlayMap,
        ppaths: Mapping[NodeName, Path],
        covering: bool = False,
    ) -> None:
        self._mst = mst
        self._ppaths = ppaths
        self._behind: dict[NodeName, int] | None = None
        groups: dict[int, int] = {}
        self.cut_off: dict[NodeName, int] = {}
        """By direction, the origins to which no link leads."""
        for origin, ppath in ppaths.items():
            bit = _substitute(wom, ppath)
            if bit:
                groups[bit] = groups.get(bit, 0) | mst.bits[origin]
            elif ppath:
                self.cut_off[ppath[0]] = self.cut_off.get(ppath[0], 0) | mst.bits[origin]
        self.groups = sorted(groups.items())
        self._covering: dict[int, FilterSet] | None = None
        if covering:
            self._covering = {}
            for bit, _ in self.groups:
                self._cover(bit)

    def behind(self, broker: NodeName) -> int:
        """The origins to which the way leads over the broker, one of the master map."""
        if self._behind is None:
            self._behind = {}
            for origin, ppath in self._ppaths.items():
                for each in ppath:
                    self._behind[each] = self._behind.get(each, 0) | self._mst.bits[origin]
        return self._behind.get(broker, 0)

    def anchors_of(self, origins: int) -> int:
        """The set of brokers in the working map that the anchors of these origins were substituted with."""
        found = 0
        for bit, group in self.groups:
            if origins & group:
                found |= bit
        return found

    def anchors(self, attributes: Mapping[str, Value]) -> int:
        """Anchors(p): the set of brokers in the working map that matching anchors were substituted with."""
        if self._covering is not None:
            found = 0
            for bit, covering in self._covering.items():
                if covering.matches_any(attributes):
                    found |= bit
            return found
        return self.anchors_of(self._mst.matching_origins(attributes))

    def is_cut_off(self, attributes: Mapping[str, Value], besides: NodeName | None) -> bool:
        """Does a subscription match that no link leads to, in a direction other than `besides`?"""
        origins = self._mst.matching_origins(attributes)
        return any(origins & those for direction, those in self.cut_off.items() if direction != besides)

    def changed(self, origin: NodeName, wanted: Filter, held: bool) -> None:
        """Follow a change of the master table that has just been made there."""
        if self._covering is None:
            return
        origin_bit = self._mst.bits[origin]
        for bit, group in self.groups:
            if group & origin_bit:
                if held:
                    self._covering[bit].put(wanted)
                elif wanted in self._covering[bit]:
                    self._cover(bit)  # those that it alone had covered come back

    def covering_sets(self) -> dict[int, FilterSet]:
        """For each broker of the working map, the filters towards it that no other one covers."""
        assert self._covering is not None
        return self._covering

    def _cover(self, bit: int) -> None:
        assert self._covering is not None
        covering = self._covering[bit] = FilterSet()
        for wanted in self._mst.held_by(dict(self.groups)[bit]):
            covering.put(wanted)


def _substitute(wom: WorkingOverlayMap, ppath: Path) -> int:
    """The substitute of the anchor, or of the farthest broker before it that the map has heard of."""
    substitutes = wom.substitutes
    for broker in reversed(ppath):
        if broker in substitutes:
            return substitutes[broker]
    return 0
