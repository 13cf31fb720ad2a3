"""The subscription table: which patterns there are, and on which sides of this dispatcher they are held.

Theory of operation (section 2.1). Every pattern is told to every dispatcher along the tree, once in each direction, and
without covering: a source must know each pattern as its subscribers hold it to count events for it, and gossip about a
pattern must find exactly its subscribers. Routing cannot be asked for that, since it may keep covering filters only
(S0) or none (flooding), so this table is recovery's own and recovery runs over any routing on the tree.

A neighbour is told of a pattern while a dispatcher on this side, which is any other side than the neighbour's, holds
it. A link that breaks takes its side's patterns with it; when it is up (or another in its place) everything is told
again. A pattern that no dispatcher holds any more lingers for a while, in which the source goes on counting events for
it: when the tree was broken and is mended, the subscribers behind it find by those numbers what they have missed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, NodeName, Send
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.values import Value
from reliability.epidemic.messages import PatternsForwarded, PatternsWithdrawn, signature


class _Entry:
    """A pattern. `holders`: neighbours on whose side it is held, and None for this dispatcher's own subscribers;
    `told`: the neighbours that know of it from here."""

    __slots__ = ("holders", "key", "pattern", "told")

    def __init__(self, pattern: Filter, key: int) -> None:
        self.pattern = pattern
        self.key = key
        self.holders: dict[NodeName | None, None] = {}
        self.told: dict[NodeName, None] = {}


class SubscriptionTable:
    """Pairs of (node, pattern). `local`: signature of each pattern held here, to the time since when it is. `fresh`:
    patterns that have come to be known, until whoever looks at them takes them out."""

    remembers: ClassVar = ("_lingering",)  # what was withdrawn within `linger_us` before the last event or change

    def __init__(self, linger_us: int) -> None:
        self.local: dict[int, int] = {}
        self.fresh: dict[int, None] = {}
        self.neighbours: dict[NodeName, None] = {}
        self._linger_us = linger_us
        self._entries: dict[int, _Entry] = {}
        self._lingering: dict[int, int] = {}
        self._index = MatchingIndex[int]()
        self._by_key: dict[int, int] = {}
        self._next_key = 0
        self._held: tuple[int, ...] | None = None

    # ------------------------------------------------------------------------------------------ what is asked
    def matching(self, attributes: Mapping[str, Value], now_us: int) -> list[int]:
        """The patterns known, lingering ones too, that an event matches."""
        if self._lingering:
            self._forget(now_us)
        by_key = self._by_key
        return [by_key[key] for key in self._index.matching(attributes)]

    def wanted_here(self, event: Event, now_us: int) -> bool:
        """Was there a subscriber here for the event already when it was published?"""
        local = self.local
        return any(
            pattern in local and local[pattern] <= event.time_us for pattern in self.matching(event.attributes, now_us)
        )

    def held_here(self, attributes: Mapping[str, Value]) -> list[Filter]:
        """The patterns of this dispatcher's subscribers that an event matches."""
        numbers = (self._by_key[key] for key in self._index.matching(attributes))
        return [self._entries[number].pattern for number in numbers if number in self.local]

    def related_here(self, pattern: Filter) -> bool:
        """Does a subscriber here hold a pattern that covers the given one, or is covered by it?"""
        return not self.local.keys().isdisjoint(self._index.related(pattern))

    def towards(self, pattern: int, came_from: NodeName | None) -> list[NodeName]:
        """The neighbours behind which there are subscribers of the pattern, but the one the gossip came from."""
        entry = self._entries.get(pattern)
        if entry is None:
            return []
        return [peer for peer in entry.holders if peer is not None and peer != came_from]

    @property
    def held(self) -> tuple[int, ...]:
        """The patterns that are held by any dispatcher."""
        if self._held is None:
            self._held = tuple(pattern for pattern, entry in self._entries.items() if entry.holders)
        return self._held

    def pattern(self, number: int) -> Filter:
        """The pattern with that signature, which is known."""
        return self._entries[number].pattern

    def __len__(self) -> int:
        return len(self._entries)

    # ------------------------------------------------------------------------------------------ what changes
    def subscribe(self, pattern: Filter, now_us: int) -> list[Effect]:
        """The first subscriber of this dispatcher with the pattern has come."""
        self.local[signature(pattern)] = now_us
        return self._change([pattern], None, True, now_us)

    def unsubscribe(self, pattern: Filter, now_us: int) -> list[Effect]:
        """The last one has gone."""
        del self.local[signature(pattern)]
        return self._change([pattern], None, False, now_us)

    def on_forwarded(self, peer: NodeName, patterns: Sequence[Filter], now_us: int) -> list[Effect]:
        """The neighbour's side holds the patterns."""
        return self._change(patterns, peer, True, now_us)

    def on_withdrawn(self, peer: NodeName, patterns: Sequence[Filter], now_us: int) -> list[Effect]:
        """The neighbour's side holds them no more."""
        return self._change(patterns, peer, False, now_us)

    def on_link_up(self, peer: NodeName) -> list[Effect]:
        """There is a (new) link to a neighbour: tell it everything."""
        self.neighbours[peer] = None
        known = [entry for entry in self._entries.values() if entry.holders]
        for entry in known:
            entry.told[peer] = None
        return [Send(peer, PatternsForwarded([entry.pattern for entry in known]))] if known else []

    def on_link_down(self, peer: NodeName, now_us: int) -> list[Effect]:
        """The neighbour's side is gone, and what it held."""
        del self.neighbours[peer]
        for entry in self._entries.values():
            entry.told.pop(peer, None)
        lost = [entry.pattern for entry in self._entries.values() if peer in entry.holders]
        return self._change(lost, peer, False, now_us)

    def _change(self, patterns: Iterable[Filter], side: NodeName | None, holds: bool, now_us: int) -> list[Effect]:
        self._held = None
        self._forget(now_us)
        forwarded: dict[NodeName, list[Filter]] = {}
        withdrawn: dict[NodeName, list[Filter]] = {}
        for pattern in patterns:
            number = signature(pattern)
            entry = self._entries.get(number) or self._add(pattern, number)
            if holds:
                entry.holders[side] = None
                self._lingering.pop(number, None)
            else:
                entry.holders.pop(side, None)
                if not entry.holders:
                    self._lingering.setdefault(number, now_us)
            for peer in self.neighbours:
                wanted = len(entry.holders) > (peer in entry.holders)
                if wanted and peer not in entry.told:
                    entry.told[peer] = None
                    forwarded.setdefault(peer, []).append(pattern)
                elif not wanted and peer in entry.told:
                    del entry.told[peer]
                    withdrawn.setdefault(peer, []).append(pattern)
        effects: list[Effect] = [Send(peer, PatternsForwarded(each)) for peer, each in forwarded.items()]
        return effects + [Send(peer, PatternsWithdrawn(each)) for peer, each in withdrawn.items()]

    def _add(self, pattern: Filter, number: int) -> _Entry:
        key, self._next_key = self._next_key, self._next_key + 1
        entry = self._entries[number] = _Entry(pattern, key)
        self._by_key[key] = number
        self.fresh[number] = None
        self._index.add(key, pattern, number)
        return entry

    def _forget(self, now_us: int) -> None:
        """Those that have lingered long enough; the first is the one that has lingered longest."""
        while self._lingering:
            number = next(iter(self._lingering))
            if now_us - self._lingering[number] < self._linger_us:
                return
            del self._lingering[number]
            self.fresh.pop(number, None)
            key = self._entries.pop(number).key
            del self._by_key[key]
            self._index.remove(key)

    def check_invariants(self) -> None:
        """Raise AssertionError if the table contradicts itself."""
        assert len(self._entries) == len(self._by_key) == len(self._index)
        assert all(number in self._entries for number in self.fresh)
        assert [number for number, entry in self._entries.items() if None in entry.holders] == [
            number for number in self._entries if number in self.local
        ]
        for number, entry in self._entries.items():
            assert (number in self._lingering) == (not entry.holders)
            assert all(side is None or side in self.neighbours for side in entry.holders)
            for peer in self.neighbours:
                assert (peer in entry.told) == (len(entry.holders) > (peer in entry.holders))
            assert all(peer in self.neighbours for peer in entry.told)
