"""What a hunt has found is made small beside it: single tries, as tasks on any host, between the hunt's chunks.

Of schedules with one symptom the first few are shrunk, since they may have several causes. The others wait for the
first finding with their symptom, and are counted for it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from murmuration.hunt.chunk import Chunk, ChunkEnd, Found, Quarry, play_chunk
from murmuration.hunt.findings import FindingStore
from murmuration.hunt.schedule import Schedule
from murmuration.hunt.shrink import Shrinking, Smaller, still_fails

_OF_A_SYMPTOM = 3
"""So many schedules of a pair with one symptom are shrunk."""
_AT_ONCE = 8
"""So many tries of one schedule are under way at most: all behind the first that still fails are for nothing."""


@dataclass(frozen=True)
class Attempt:
    """Does the schedule fail with a symptom of that kind?"""

    quarry: Quarry
    schedule: Schedule
    kind: str


class AttemptKey(NamedTuple):
    """Which attempt it is: of which schedule that is being shrunk, and its number there."""

    shrinking: int
    number: int


def play_piece(piece: Chunk | Attempt) -> ChunkEnd | Smaller | None:
    """Play a chunk or an attempt: the function that runs as a task."""
    if isinstance(piece, Chunk):
        return play_chunk(piece)
    return still_fails(piece.schedule, piece.quarry.space(), piece.kind)


@dataclass(frozen=True)
class _Waiting:
    quarry: Quarry
    found: Found
    origin: str


class FoundSchedules:
    """Those of one hunt, until they are findings in the store."""

    def __init__(self, store: FindingStore, seconds: float) -> None:
        self._store = store
        self._seconds = seconds
        self._begun: Counter[tuple[str, str]] = Counter()
        self._shrinking: dict[int, tuple[Shrinking, _Waiting]] = {}
        self._count = 0
        self._others: list[_Waiting] = []

    def __len__(self) -> int:
        """How many are being shrunk."""
        return len(self._shrinking)

    def add(self, quarry: Quarry, found: Found, origin: str) -> None:
        """A schedule with a symptom. `origin`: which chunk's which schedule it was."""
        waiting = _Waiting(quarry, found, origin)
        symptom = (quarry.name, found.symptom.kind)
        self._begun[symptom] += 1
        if self._begun[symptom] > _OF_A_SYMPTOM:
            self._others.append(waiting)
            self._count_others()
            return
        shrinking = Shrinking(found.schedule, quarry.space(), found.symptom, self._seconds)
        self._shrinking[self._count] = shrinking, waiting
        self._count += 1

    def next_attempt(self) -> tuple[AttemptKey, Attempt] | None:
        """What is to be tried next, if anything is."""
        for key, (shrinking, waiting) in self._shrinking.items():
            if shrinking.under_way < _AT_ONCE:
                following = shrinking.next_try()
                if following is not None:
                    number, schedule = following
                    return AttemptKey(key, number), Attempt(waiting.quarry, schedule, waiting.found.symptom.kind)
        return None

    def take(self, key: AttemptKey, result: Smaller | None) -> None:
        """What became of an attempt; None too if it was lost."""
        if key.shrinking in self._shrinking:
            self._shrinking[key.shrinking][0].take(key.number, result)

    def keep_what_is_over(self) -> None:
        """Make findings of those that are as small as they get."""
        self._keep([key for key, (shrinking, _) in self._shrinking.items() if shrinking.over])

    def keep_all(self) -> None:
        """The hunt ends: make findings of all as they are."""
        self._keep(list(self._shrinking))

    def _keep(self, keys: Sequence[int]) -> None:
        for key in keys:
            shrinking, waiting = self._shrinking.pop(key)
            self._store.add(waiting.quarry.name, waiting.found, shrinking.end(), waiting.origin)
        if keys:
            self._count_others()

    def _count_others(self) -> None:
        self._others = [
            each
            for each in self._others
            if not self._store.count(each.quarry.name, each.found.symptom.kind, each.origin)
        ]
