"""A chunk of a hunt: some schedules of one pair of protocols, played one after the other as one task on any core."""

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.hunt.mutation import drawn_in_bursts, mutated
from murmuration.hunt.properties import property_at
from murmuration.hunt.schedule import Schedule, draw_parts
from murmuration.hunt.space import ScheduleSpace, space_of, space_of_variant
from murmuration.hunt.symptoms import Symptom, tried_impatiently

_DRAWS = 20
"""For each schedule that is played so many are drawn at most: of some pairs six in seven cannot be."""
_PLAIN, _BURSTS = 0.1, 0.65
"""So many schedules of a guided hunt are drawn one after the other, and so many in bursts; the others are made of those
that have reached much."""


@dataclass(frozen=True)
class Quarry:
    """What is hunted: two protocols, and the keys that every schedule has (`scenario`; None: they are drawn).
    `variant`: one of `space.VARIANTS`, or none; `properties`: dotted paths."""

    routing: str
    reliability: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    scenario: Mapping[str, Any] | None = None
    latest_ms: int | None = None
    properties: tuple[str, ...] = ()
    variant: str | None = None

    @classmethod
    def named(cls, name: str) -> "Quarry":
        """The one of that name."""
        routing, _, others = name.partition("/")
        reliability, _, variant = others.partition("/")
        return cls(routing, reliability, variant=variant or None)

    @property
    def name(self) -> str:
        """ROUTING/RELIABILITY, or ROUTING/RELIABILITY/VARIANT."""
        return "/".join(each for each in (self.routing, self.reliability, self.variant) if each is not None)

    def space(self) -> ScheduleSpace:
        """What its schedules are drawn from; raises `InputError`."""
        for path in self.properties:
            property_at(path)
        if self.variant is None:
            space = space_of(self.routing, self.reliability, self.parameters)
        else:
            space = space_of_variant(self.routing, self.reliability, self.variant)
        space = replace(space, properties=self.properties)
        if self.scenario is not None:
            latest_ms = self.latest_ms or space.latest_ms
            return replace(space, scenario=self.scenario, latest_ms=latest_ms)
        return space


@dataclass(frozen=True)
class Chunk:
    """What a task is to do. `hunt`: a name for what its process has reported before. `parents`: of the corpus."""

    hunt: str
    quarry: Quarry
    seed: str
    count: int
    guided: bool = False
    parents: Sequence[Schedule] = ()


@dataclass(frozen=True)
class Found:
    """A schedule with a symptom."""

    schedule: Schedule
    keys: Mapping[str, Any]
    symptom: Symptom
    number: int
    """Which schedule of the chunk it was."""


@dataclass
class ChunkEnd:
    """What became of a chunk. `reached`: schedules, and what they reached that this process had not reported; `times`:
    how many of them reached each place."""

    schedules: int = 0
    refused: int = 0
    """What was drawn and could not be, as protocols that an overlay of that kind does not suit: others were drawn."""
    cpu_s: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    reached: list[tuple[Schedule, list[str]]] = field(default_factory=list)
    times: Counter[str] = field(default_factory=Counter)
    found: list[Found] = field(default_factory=list)


_reported: dict[tuple[str, str], set[str]] = {}


def play_chunk(chunk: Chunk) -> ChunkEnd:
    """Play it: the function that runs as a task."""
    space = chunk.quarry.space()
    reported = _reported.setdefault((chunk.hunt, chunk.quarry.name), set())
    rng = random.Random(chunk.seed)
    end = ChunkEnd()
    began = time.process_time()
    while end.schedules < chunk.count and end.schedules + end.refused < _DRAWS * chunk.count:
        schedule = next_schedule(rng, space, chunk.parents) if chunk.guided else draw_parts(rng, space)
        try:
            keys = schedule.keys(space)
            played = tried_impatiently(keys, space.properties)
        except InputError:
            end.refused += 1
            continue
        end.verdicts[played.verdict] += 1
        places = played.reached.places()
        end.times.update(places)
        new = places - reported
        if new:
            reported |= new
            end.reached.append((schedule, sorted(new)))
        if played.symptom is not None:
            end.found.append(Found(schedule, keys, played.symptom, end.schedules))
        end.schedules += 1
    end.cpu_s = time.process_time() - began
    return end


def next_schedule(rng: random.Random, space: ScheduleSpace, parents: Sequence[Schedule]) -> Schedule:
    """The next one of a guided hunt: drawn, or made of the parents if there are any."""
    way = rng.random()
    if way < _PLAIN:
        return draw_parts(rng, space)
    if way < _PLAIN + _BURSTS or not parents:
        return drawn_in_bursts(rng, space)
    return mutated(rng, space, rng.sample(parents, min(2, len(parents))))
