"""The schedules that have reached what none before them had: what a guided hunt changes to reach more."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from murmuration.hunt.schedule import Schedule

_KEPT = 400


@dataclass(slots=True)
class _Entry:
    schedule: Schedule
    first: tuple[str, ...]
    """The places that it was the first to reach."""
    chosen: int = 0


@dataclass
class Corpus:
    """Of one pair of protocols."""

    places: set[str] = field(default_factory=set)
    """All that was ever reached."""
    _times: Counter[str] = field(default_factory=Counter)
    """By how many schedules, as far as that was counted."""
    _entries: list[_Entry] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._entries)

    def count(self, times: Mapping[str, int]) -> None:
        """So many schedules have reached each of these places."""
        self._times.update(times)

    def take(self, schedule: Schedule, places: Iterable[str]) -> set[str]:
        """Note what a schedule has reached; what of it is new."""
        new = set(places) - self.places
        if new:
            self.places |= new
            self._entries.append(_Entry(schedule, tuple(new)))
            if len(self._entries) > 2 * _KEPT:
                self._entries = sorted(self._entries, key=self._worth, reverse=True)[:_KEPT]
        return new

    def parents(self, rng: random.Random, count: int) -> Sequence[Schedule]:
        """That many to be changed, those more often that reach what is rare and were seldom chosen."""
        if not self._entries:
            return ()
        chosen = rng.choices(self._entries, list(map(self._worth, self._entries)), k=count)
        for entry in chosen:
            entry.chosen += 1
        return [each.schedule for each in chosen]

    def _worth(self, entry: _Entry) -> float:
        """How much it is worth to change it once more: a place counts the less, the more schedules have reached it."""
        return sum(1 / max(1, self._times[place]) for place in entry.first) / (1 + entry.chosen)
