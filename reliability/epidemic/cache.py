"""The cache: copies of the last events, found by identifier, by pattern or by sequence number.

Which event makes room for a new one is a policy of section 5: the oldest; the oldest of those for which this dispatcher
is neither source nor subscriber, while there is such a one; or one drawn at random, so that an event does not disappear
from all caches at about the same time.
"""

import random
from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from murmur_pubsub.event import Event, EventId
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from reliability.epidemic.parameters import Discard

Pattern = int | Filter
Number = tuple[NodeName, int, int, int]
"""(source, incarnation, pattern, sequence number): one of the names that an event has."""


class CachedEvent(NamedTuple):
    """An event with its tag (as in `messages.TaggedEvent`) and the patterns by which it is found for a push:
    signatures, or filters where those are not known everywhere. `EventCache.index` adds to them."""

    event: Event
    hops: int
    source: NodeName
    incarnation: int
    numbers: Sequence[int]
    patterns: list[Pattern]


class EventCache:
    """At most `capacity` events."""

    remembers = ("_by_number", "_by_pattern", "_drawn", "_events", "_interested", "_uninterested")

    def __init__(self, capacity: int, discard: Discard, rng: random.Random) -> None:
        self._capacity = capacity
        self._discard = discard
        self._rng = rng
        self._events: dict[EventId, CachedEvent] = {}
        self._by_pattern: dict[Pattern, dict[EventId, None]] = {}
        self._by_number: dict[Number, CachedEvent] = {}
        self._interested: deque[EventId] = deque()
        self._uninterested: deque[EventId] = deque()
        self._drawn: list[EventId] = []

    def __len__(self) -> int:
        return len(self._events)

    def __contains__(self, event: EventId) -> bool:
        return event in self._events

    def add(self, cached: CachedEvent, interested: bool) -> None:
        """Keep an event that is not here yet; `interested`: this dispatcher is its source or a subscriber."""
        event = cached.event.id
        if len(self._events) >= self._capacity:
            self._remove(self._choose())
        self._events[event] = cached
        for pattern in cached.patterns:
            self._by_pattern.setdefault(pattern, {})[event] = None
        for number in _names(cached):
            self._by_number[number] = cached
        if self._discard == "random":
            self._drawn.append(event)
        elif interested or self._discard == "oldest":
            self._interested.append(event)
        else:
            self._uninterested.append(event)

    def get(self, event: EventId) -> CachedEvent | None:
        """The event of that identifier."""
        return self._events.get(event)

    def numbered(self, number: Number) -> CachedEvent | None:
        """The event that has that name, whichever of its patterns it is."""
        return self._by_number.get(number)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Those by which there are events."""
        return tuple(self._by_pattern)

    def index(self, pattern: Pattern, wanted: Filter) -> None:
        """Find the events that are here by that pattern too, whose filter is `wanted`."""
        for event, cached in self._events.items():
            if pattern not in cached.patterns and wanted.matches(cached.event.attributes):
                cached.patterns.append(pattern)
                self._by_pattern.setdefault(pattern, {})[event] = None

    def digest(self, pattern: Pattern) -> list[int]:
        """The identifiers (publisher, sequence, …) of the events that match the pattern."""
        return list(chain.from_iterable(self._by_pattern.get(pattern, ())))

    def _choose(self) -> EventId:
        if self._discard == "random":
            at = self._rng.randrange(len(self._drawn))
            chosen, last = self._drawn[at], self._drawn.pop()
            if at < len(self._drawn):
                self._drawn[at] = last
            return chosen
        return (self._uninterested or self._interested).popleft()

    def _remove(self, event: EventId) -> None:
        cached = self._events.pop(event)
        for pattern in cached.patterns:
            matching = self._by_pattern[pattern]
            del matching[event]
            if not matching:
                del self._by_pattern[pattern]
        for number in _names(cached):
            self._by_number.pop(number, None)

    def check_invariants(self) -> None:
        """Raise AssertionError if it contradicts itself."""
        assert len(self._events) <= self._capacity
        kept = [*self._drawn, *self._interested, *self._uninterested]
        assert sorted(kept) == sorted(self._events)
        assert sum(map(len, self._by_pattern.values())) == sum(len(each.patterns) for each in self._events.values())
        assert len(self._by_number) == sum(len(each.numbers) // 2 for each in self._events.values())


def _names(cached: CachedEvent) -> list[Number]:
    numbers = cached.numbers
    return [(cached.source, cached.incarnation, numbers[at], numbers[at + 1]) for at in range(0, len(numbers), 2)]
