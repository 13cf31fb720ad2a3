"""A node's own subscriptions as Vinifera uses them: profile, utility, primary attribute (IV-B1, Algorithm 1).

Every attribute that a filter names gives ranges of hashed values. An attribute's *rank* is the number of candidate
neighbours that have a range on it which overlaps with the node's own. The *primary attribute* is the one of highest
rank. Where others come near it, within a factor of two, it is that of them which most candidates have for theirs, the
first of their profiles. So nodes agree where ranks leave it open, and their subscriptions meet, and aggregate, on the
same trees; and chance does not change it to and fro. Ranks are compared anew each round. The utility
of a friend link is the share of the values wanted by either node, on the primary attribute, that both want. A filter
is registered for its ranges on the primary attribute, or, if it does not name that, on its own attribute with the
highest rank.
"""

import functools
import random
from collections.abc import Iterable, Mapping

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.intervals import Interval, overlap, union
from routing.smallworld.profile import ANY_ATTRIBUTE, attribute_key, pack_profile, ranges_on, unpack_profile
from routing.smallworld.ring import RING_SIZE
from routing.smallworld.subscription_regions import SubscriptionRegions
from routing.vinifera.hashing import AttributeDomain

_NEAR = 2
"""Of two attributes neither of which has more than so many times the rank of the other, either may be the primary one.
Found by looking at networks of 150 nodes with three attributes alike: with 1.2 a third of them did not agree."""
_CACHED_MAX = 20_000
_EVERY_VALUE = AttributeDomain("any attribute")


class OwnInterests:
    """What the node's own subscribers want."""

    def __init__(self, domains: Mapping[str, AttributeDomain], rng: random.Random) -> None:
        self._domains = domains
        self._rng = rng
        self._filters: dict[Filter, dict[int, list[Interval]]] = {}
        self._ranges: dict[int, list[Interval]] = {}
        self._ranks: dict[int, int] = {}
        self._packed = b""
        self.primary: int | None = None
        self.utility = functools.lru_cache(maxsize=_CACHED_MAX)(self._utility)
        """Of a friend link to a node with this profile: intersection over union on the primary attribute."""

    def change(self, filters: Iterable[Filter]) -> bytes:
        """The subscriptions are these now; the profile to gossip."""
        self._filters = {wanted: self._ranges_of(wanted) for wanted in filters}
        gathered: dict[int, list[Interval]] = {}
        for ranges in self._filters.values():
            for attribute, each in ranges.items():
                gathered.setdefault(attribute, []).extend(each)
        self._ranges = {attribute: union(each) for attribute, each in gathered.items()}
        if self.primary not in self._ranges:
            self.primary = self._rng.choice(sorted(self._ranges)) if self._ranges else None
        self.utility.cache_clear()
        self._packed = pack_profile(self._ranges, self.primary)
        return self._packed

    def rank(self, profiles: Iterable[bytes]) -> bytes | None:
        """Rank the attributes by candidates with an overlapping range; the profile to gossip, if the primary attribute
        has changed."""
        self._ranks = dict.fromkeys(self._ranges, 0)
        if len(self._ranges) < 2:
            return None
        chosen = dict.fromkeys(self._ranges, 0)
        for packed in profiles:
            theirs = unpack_profile(packed)
            first = next(iter(theirs), None)
            if first in chosen:
                chosen[first] += 1
            for attribute, mine in self._ranges.items():
                if attribute in theirs and overlap(mine, theirs[attribute]):
                    self._ranks[attribute] += 1
        highest = max(self._ranks.values())
        near = [attribute for attribute, rank in self._ranks.items() if rank * _NEAR >= highest]
        best = max(near, key=lambda attribute: (chosen[attribute], attribute == self.primary, self._ranks[attribute]))
        if best == self.primary:
            return None
        self.primary = best
        self.utility.cache_clear()
        self._packed = pack_profile(self._ranges, best)
        return self._packed

    def _utility(self, packed: bytes) -> float:
        if self.primary is None:
            return 0.0
        mine, wanted = ranges_on(self.primary, self._packed)
        theirs, wanted_there = ranges_on(self.primary, packed)
        shared = overlap(mine, theirs)
        return shared / (wanted + wanted_there - shared) if shared else 0.0

    def regions(self) -> SubscriptionRegions:
        """What to install: each filter under one attribute, which its region's filter names no more."""
        found: SubscriptionRegions = {}
        for wanted, ranges in self._filters.items():
            for attribute in self._registered(ranges):
                rest = self._without(wanted, attribute)
                known = found.get((attribute, rest))
                found[attribute, rest] = ranges[attribute] if known is None else union([*known, *ranges[attribute]])
        return found

    def targets(self, event: Event) -> list[tuple[int, int]]:
        """One rendezvous for each attribute of the event. If none of them is declared, there is one more: filters
        that require no attribute are registered there."""
        found = [(attribute_key(name), self._domain(name).hash(value)) for name, value in event.attributes.items()]
        if not any(name in self._domains for name in event.attributes):
            found.append((ANY_ATTRIBUTE, 0))
        return found

    def _registered(self, ranges: Mapping[int, list[Interval]]) -> Iterable[int]:
        if ANY_ATTRIBUTE in ranges:  # it needs no attribute: no event may pass it by, whatever attributes that has
            return ranges
        if self.primary is not None and self.primary in ranges:
            return (self.primary,)
        return (max(ranges, key=lambda attribute: (self._ranks.get(attribute, 0), attribute)),) if ranges else ()

    def _ranges_of(self, wanted: Filter) -> dict[int, list[Interval]]:
        if not wanted.required and not wanted.matches_nothing:
            everywhere = {attribute_key(name): [(0, RING_SIZE - 1)] for name in self._domains}
            return {ANY_ATTRIBUTE: [(0, 0)], **everywhere}
        constraints = wanted.constraints or {}
        return {attribute_key(name): union(self._domain(name).ranges(constraints[name])) for name in wanted.required}

    def _without(self, wanted: Filter, attribute: int) -> Filter:
        constraints = wanted.constraints or {}
        kept = {name: each for name, each in constraints.items() if each.is_absence or attribute_key(name) != attribute}
        return Filter(kept)

    def _domain(self, name: str) -> AttributeDomain:
        return self._domains.get(name, _EVERY_VALUE)


class WholeInterests(OwnInterests):
    """As `OwnInterests`, but a friend is alike on all attributes, and not on the primary one alone (ours). The utility
    is the product over the attributes that both name, times the share that these are of all that either names."""

    def _utility(self, packed: bytes) -> float:
        theirs = unpack_profile(packed)
        both = self._ranges.keys() & theirs.keys()
        utility = len(both) / max(1, len(self._ranges.keys() | theirs.keys()))
        for attribute in both:
            mine, wanted = ranges_on(attribute, self._packed)
            there, wanted_there = ranges_on(attribute, packed)
            shared = overlap(mine, there)
            if not shared:
                return 0.0
            utility *= shared / (wanted + wanted_there - shared)
        return utility
