"""A hunt: chunks of schedules over the quarries in turn, until the time or the schedules are spent.

Other processes play; this one keeps the corpus, says what the next chunk is to change or what to try to make a finding
small, and writes down what comes back. A chunk whose process died is lost, and said to be.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from murmur_pubsub.errors import InputError, RunError
from murmuration.hunt.chunk import Chunk, ChunkEnd, Found, Quarry
from murmuration.hunt.corpus import Corpus
from murmuration.hunt.findings import FindingStore
from murmuration.hunt.folder import HuntFolder
from murmuration.hunt.shrink_tasks import Attempt, AttemptKey, FoundSchedules

PLAY_PIECE = "murmuration.hunt.shrink_tasks:play_piece"
_SHRINK_S = 60.0
_COUNT = 20
"""Schedules of a chunk: two seconds or three."""
_PARENTS = 20
_LOST_MAX = 10
"""So many chunks one after the other may be lost."""


@dataclass(frozen=True, slots=True)
class HuntLimits:
    """When a hunt ends: after this time, or after so many schedules in all (None: no such limit). Raises `InputError`
    for no limit at all, or one that leaves no room."""

    seconds: float | None = None
    schedules: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is None and self.schedules is None:
            raise InputError("--minutes", "no limit", "--minutes or --schedules")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise InputError("--minutes", f"{self.seconds / 60:g}", "a time above zero")
        if self.schedules is not None and self.schedules < 1:
            raise InputError("--schedules", str(self.schedules), "1 or more")


@dataclass
class HuntState:
    """How far a hunt is."""

    chunks: int = 0
    """The number of the next one."""
    schedules: int = 0
    refused: int = 0
    cpu_s: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    """Chunks whose process died, with the reason."""
    seconds: float = 0.0
    """The time that was hunted, in all."""

    @property
    def per_cpu_hour(self) -> float:
        """Schedules a CPU hour, without the time spent on shrinking."""
        return 3_600 * self.schedules / self.cpu_s if self.cpu_s else 0.0


Work = Iterable[tuple[int, Chunk] | tuple[AttemptKey, Attempt] | None]
Ends = Callable[[Work], Iterator[Any]]
"""Plays pieces and hands back how each ended (`actors.sweep_tasks.TaskEnd`), in any order."""


class Hunt:
    """One hunt in its folder, begun or gone on with."""

    def __init__(
        self, quarries: Sequence[Quarry], folder: HuntFolder, limits: HuntLimits, seed: int, guided: bool = True
    ) -> None:
        self.quarries = quarries
        self._folder = folder
        self._limits = limits
        self._seed = seed
        self._guided = guided
        self._rng = Random(seed)
        self._given = 0
        """How many schedules were given out to be played, those of earlier on too."""
        self.state = HuntState()
        self.corpora = {quarry.name: Corpus() for quarry in quarries}
        self.found = FindingStore(folder.findings, quarries[0].properties)
        self.to_shrink = FoundSchedules(self.found, _SHRINK_S)

    @property
    def places(self) -> int:
        """How many places were reached, of all quarries."""
        return sum(len(corpus.places) for corpus in self.corpora.values())

    def run(self, ends: Ends, tell: Callable[["Hunt", float], None]) -> HuntState:
        """Hunt until a limit is reached; `tell` is called whenever something has come back, with the seconds hunted.
        Raises `InputError` before anything starts, and `RunError` if every chunk is lost."""
        for quarry in self.quarries:
            quarry.space()
        with self._folder.opened(self.quarries, self._seed, self._guided):
            self._read()
            if self._over(0.0) and not self.to_shrink:
                return self.state
            before_s, began = self.state.seconds, time.monotonic()
            self._given = self.state.schedules
            lost_in_a_row = 0
            now_s = 0.0
            coming = ends(self._pieces(lambda: self._over(now_s)))
            try:
                for end in coming:
                    now_s = time.monotonic() - began
                    self.state.seconds = before_s + now_s
                    if isinstance(end.key, AttemptKey):
                        self.to_shrink.take(end.key, end.result)
                    else:
                        lost_in_a_row = 0 if end.failure is None else lost_in_a_row + 1
                        self._take(end.key, end.result, end.failure)
                    self.to_shrink.keep_what_is_over()
                    tell(self, now_s)
                    if lost_in_a_row >= _LOST_MAX:
                        raise RunError(f"{_LOST_MAX} chunks in a row were lost, the last one so: {end.failure}")
                    if self._over(now_s) and not self.to_shrink:
                        break
            finally:
                close = getattr(coming, "close", None)
                if close is not None:
                    close()
                self.to_shrink.keep_all()
            return self.state

    def _over(self, now_s: float) -> bool:
        limits = self._limits
        if limits.schedules is not None and self.state.schedules >= limits.schedules:
            return True
        return limits.seconds is not None and now_s >= limits.seconds

    def _pieces(self, over: Callable[[], bool]) -> Work:
        """What is worth playing next, whenever that is asked: what was found comes first."""
        number = self.state.chunks
        while True:
            attempt = self.to_shrink.next_attempt()
            left = _COUNT if self._limits.schedules is None else min(_COUNT, self._limits.schedules - self._given)
            if attempt is not None:
                yield attempt
            elif left > 0 and not over():
                self._given += left
                yield number, self._chunk(number, left)
                number += 1
            else:
                yield None

    def _chunk(self, number: int, count: int) -> Chunk:
        """The chunk of that number, as it is now worth playing."""
        quarry = self.quarries[number % len(self.quarries)]
        parents = self.corpora[quarry.name].parents(self._rng, _PARENTS) if self._guided else ()
        return Chunk(str(self._folder.folder), quarry, f"{self._seed}/{number}", count, self._guided, parents)

    def _take(self, number: int, end: ChunkEnd | None, failure: str | None) -> None:
        state, quarry = self.state, self.quarries[number % len(self.quarries)]
        pair = quarry.name
        state.chunks = max(state.chunks, number + 1)
        record: dict[str, Any] = {"chunk": number, "pair": pair, "at_s": round(state.seconds, 3)}
        if end is None:
            state.lost.append(f"chunk {number} of {pair}: {failure}")
            self._folder.add_chunk({**record, "lost": failure})
            return
        self.corpora[pair].count(end.times)
        new = [(schedule, sorted(self.corpora[pair].take(schedule, places))) for schedule, places in end.reached]
        self._folder.add_reached(pair, [each for each in new if each[1]])
        record |= {
            "schedules": end.schedules,
            "refused": end.refused,
            "cpu_s": round(end.cpu_s, 3),
            "verdicts": dict(end.verdicts),
            "places": len(self.corpora[pair].places),
        }
        self._count(record)
        self._folder.add_chunk(record, end.found)
        self._look_into(number, end.found)

    def _look_into(self, number: int, found: Iterable[Found]) -> None:
        """Schedules of that chunk, unless they are known to be of a finding."""
        quarry = self.quarries[number % len(self.quarries)]
        for each in found:
            origin = f"{self._seed}/{number}/{each.number}"
            if origin not in self.found.origins:
                self.to_shrink.add(quarry, each, origin)

    def _read(self) -> None:
        """What was done before. What was found then, and had not become a finding when that hunt was killed, is looked
        into now."""
        self.found.read()
        for record in self._folder.chunks():
            self.state.chunks = max(self.state.chunks, record["chunk"] + 1)
            self.state.seconds = max(self.state.seconds, record["at_s"])
            if "lost" in record:
                self.state.lost.append(f"chunk {record['chunk']} of {record['pair']}: {record['lost']}")
            else:
                self._count(record)
                self._look_into(record["chunk"], self._folder.found_in(record))
        for pair, schedule, places in self._folder.corpus(self.corpora):
            self.corpora[pair].take(schedule, places)

    def _count(self, record: Mapping[str, Any]) -> None:
        state = self.state
        state.schedules += record["schedules"]
        state.refused += record["refused"]
        state.cpu_s += record["cpu_s"]
        state.verdicts.update(record["verdicts"])
