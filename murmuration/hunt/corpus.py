"""The schedules that have reached what none before them had: what a guided hunt changes to reach more."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from murmuration.hunt.schedule import Schedule

_GAIN_COUNTED = 50
"""The first schedules reach thousands of places that any schedule reaches: more than this many count for nothing."""
_KEPT = 400


@dataclass(slots=True)
class _Entry:
    schedule: Schedule
    gain: int
    chosen: int = 0

    @property
    def weight(self) -> float:
        """How much it is worth to change it once more."""
        return min(self.gain, _GAIN_COUNTED) / (1 + self.chosen)


@dataclass
class Corpus:
    """Of one pair of protocols."""

    places: set[str] = field(default_factory=set)
    """All that was ever reached."""
    _entries: list[_Entry] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._entries)

    def take(self, schedule: Schedule, places: Iterable[str]) -> set[str]:
        """Note what a schedule has reached; what of it is new."""
        new = set(places) - self.places
        if new:
            self.places |= new
            self._entries.append(_Entry(schedule, len(new)))
            if len(self._entries) > 2 * _KEPT:
                self._entries = sorted(self._entries, key=lambda each: -each.weight)[:_KEPT]
        return new

    def parents(self, rng: random.Random, count: int) -> Sequence[Schedule]:
        """That many to be changed, those more often that have reached much and were seldom chosen."""
        if not self._entries:
            return ()
        chosen = rng.choices(self._entries, [each.weight for each in self._entries], k=count)
        for entry in chosen:
            entry.chosen += 1
        return [each.schedule for each in chosen]
