"""How a dispatcher finds out what it has lost (section 4.2), and the LostBuffer.

Theory of operation. A source counts its events for each pattern it knows and tags each event with the numbers: S:Pa-5:
Pb-4. A dispatcher that subscribes to Pa and gets S:Pa-7 after S:Pa-4 has lost two events, whatever else they matched.
So a loss is seen only when a later event of the same source and pattern arrives. The first number seen is learnt, not
judged: a subscription that begins late has lost nothing before it. While the subscription is still on its way to the
sources, every number is learnt: an event may come because it matches something else as well, and the next one of the
pattern not come, because it was not sent here. A source that was restarted counts anew under a higher incarnation,
which is learnt in the same way as the first number.

An event that matches several patterns held here leaves an entry for each; when it is recovered, by whichever name, its
tag tells all its names and all entries go. Entries that no dispatcher could answer are given up after some time.
"""

import random
from collections.abc import Container, Mapping, Sequence
from typing import ClassVar

from murmur_pubsub.machine import NodeName

Lost = tuple[NodeName, int, int, int]
"""(source, incarnation, pattern, sequence number): the paper's triple, its source being an incarnation."""


class LostBuffer:
    """What is known to be lost, oldest first, at most `capacity` entries; found by pattern and by source."""

    remembers: ClassVar = ("_since_us", "_by_pattern", "_by_source")  # what is lost is looked for `lost_age_us` long

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._since_us: dict[Lost, int] = {}
        self._by_pattern: dict[int, dict[Lost, None]] = {}
        self._by_source: dict[NodeName, dict[Lost, None]] = {}

    def __len__(self) -> int:
        return len(self._since_us)

    def __contains__(self, lost: Lost) -> bool:
        return lost in self._since_us

    @property
    def patterns(self) -> list[int]:
        """Those that have entries."""
        return list(self._by_pattern)

    def draw(self, rng: random.Random) -> Lost | None:
        """An entry drawn at random, so that a pattern or source is drawn the likelier the more of it is lost."""
        return rng.choice(tuple(self._since_us)) if self._since_us else None

    def add(self, lost: Lost, now_us: int) -> None:
        """An event is lost under that name."""
        if lost in self._since_us:
            return
        if len(self._since_us) >= self._capacity:
            self.remove(next(iter(self._since_us)))
        self._since_us[lost] = now_us
        self._by_pattern.setdefault(lost[2], {})[lost] = None
        self._by_source.setdefault(lost[0], {})[lost] = None

    def remove(self, lost: Lost) -> None:
        """It is here, or given up; nothing happens if it was not lost."""
        if self._since_us.pop(lost, None) is None:
            return
        of_pattern, of_source = self._by_pattern[lost[2]], self._by_source[lost[0]]
        del of_pattern[lost], of_source[lost]
        if not of_pattern:
            del self._by_pattern[lost[2]]
        if not of_source:
            del self._by_source[lost[0]]

    def remove_event(self, source: NodeName, incarnation: int, numbers: Sequence[int]) -> None:
        """The event with this tag is here: it is lost under none of its names."""
        for at in range(0, len(numbers), 2):
            self.remove((source, incarnation, numbers[at], numbers[at + 1]))

    def remove_pattern(self, pattern: int) -> None:
        """The pattern is not wanted here any more."""
        for lost in list(self._by_pattern.get(pattern, ())):
            self.remove(lost)

    def give_up(self, before_us: int) -> None:
        """Forget what was lost before that time."""
        while self._since_us:
            oldest = next(iter(self._since_us))
            if self._since_us[oldest] >= before_us:
                return
            self.remove(oldest)

    def of_pattern(self, pattern: int) -> list[list[NodeName | int]]:
        """The digest of a pattern: source, incarnation, numbers…, in lists."""
        groups: dict[tuple[NodeName, int], list[NodeName | int]] = {}
        for source, incarnation, _, number in self._by_pattern.get(pattern, ()):
            groups.setdefault((source, incarnation), [source, incarnation]).append(number)
        return list(groups.values())

    def of_source(self, source: NodeName) -> list[list[int]]:
        """The digest of a source: incarnation, pattern, numbers…, in lists."""
        groups: dict[tuple[int, int], list[int]] = {}
        for _, incarnation, pattern, number in self._by_source.get(source, ()):
            groups.setdefault((incarnation, pattern), [incarnation, pattern]).append(number)
        return list(groups.values())

    def check_invariants(self) -> None:
        """Raise AssertionError if it contradicts itself."""
        assert len(self._since_us) <= self._capacity
        for groups in ([*self._by_pattern.values()], [*self._by_source.values()]):
            assert sum(map(len, groups)) == len(self._since_us)
            assert all(groups)


class LossDetector:
    """The next number expected of each pattern held here and each source; `gap_max`: of a longer gap only this number
    of its last events are taken for lost, since no cache holds more; `settle_us`: how long a subscription may be on its
    way."""

    remembers: ClassVar = ("_expected",)  # a number for each source and pattern that is held here

    def __init__(self, lost: LostBuffer, gap_max: int, settle_us: int) -> None:
        self._lost = lost
        self._settle_us = settle_us
        self._gap_max = gap_max
        self._expected: dict[int, dict[NodeName, tuple[int, int]]] = {}

    def observe(
        self,
        source: NodeName,
        incarnation: int,
        numbers: Sequence[int],
        published_us: int,
        local: Mapping[int, int],
        now_us: int,
    ) -> bool:
        """An event with this tag is here; True if it shows that others are not. `local`: the patterns held here, and
        since when."""
        lost = self._lost
        if lost:
            lost.remove_event(source, incarnation, numbers)
        found = False
        for at in range(0, len(numbers), 2):
            pattern = numbers[at]
            if pattern not in local:
                continue
            number = numbers[at + 1]
            of_pattern = self._expected.setdefault(pattern, {})
            known, expected = of_pattern.get(source, (-1, 0))
            if known < incarnation:
                of_pattern[source] = (incarnation, number + 1)
            elif known == incarnation and number >= expected:
                of_pattern[source] = (incarnation, number + 1)
                if published_us < local[pattern] + self._settle_us:
                    continue
                for missed in range(max(expected, number - self._gap_max), number):
                    lost.add((source, incarnation, pattern, missed), now_us)
                    found = True
        return found

    def forget(self, pattern: int) -> None:
        """The pattern is not wanted here any more: if it is again, numbers are learnt anew."""
        self._expected.pop(pattern, None)
        self._lost.remove_pattern(pattern)

    def check_invariants(self, local: Container[int]) -> None:
        """Raise AssertionError if numbers are expected of patterns that are not wanted here."""
        assert all(pattern in local for pattern in self._expected)
        assert all(pattern in local for pattern in self._lost.patterns)
