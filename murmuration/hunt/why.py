"""When did a failure become certain? The run is gone on with from points in time on, under new seeds.

Up to its point a fork is the run itself. From there on all random numbers are new, and what is yet to come (faults,
publications, changes of subscriptions) comes up to 100 ms later. The share of the forks that fail says how certain the
failure was; where it jumps is what brought it about. A fork is played from the beginning: its journal lies in mappings
that a forked process would share, and what it would save is a part of a run of tens of milliseconds.
"""

import dataclasses
import functools
import gc
import itertools
import random
import tempfile
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.journal import Phase, RowKind
from murmur_pubsub.progress import Progress
from murmur_pubsub.script import Change, Script
from murmuration.hunt.coverage import ObservedRun, Reached
from murmuration.hunt.difference import began_us_of, play_rows
from murmuration.hunt.properties import Property
from murmuration.hunt.symptoms import Symptom, tried, tried_run
from murmuration.hunt.trial import deployment_of

_POINTS = 8
_ROUNDS = 5
"""The points are first spread over the run, then laid into the stretch of the largest jump."""
_LATER_US = 100_000
_FORKS_AT_ONCE = 5
PLAY_FORKS = "murmuration.hunt.why:failing_forks"


@dataclasses.dataclass(frozen=True, slots=True)
class Certainty:
    """`at_us`: since publishing began; `failing` of `forks` had the symptom."""

    at_us: int
    failing: int
    forks: int

    @property
    def share(self) -> float:
        """How certain it was."""
        return self.failing / self.forks


@dataclasses.dataclass(frozen=True, slots=True)
class Why:
    """`points` in order of time; between `before_us` and `certain_us` the share rises most."""

    symptom: Symptom
    points: Sequence[Certainty]
    before_us: int
    certain_us: int


@dataclasses.dataclass(frozen=True, slots=True)
class Forks:
    """Some forks at one point in time, to be played as one task."""

    keys: Mapping[str, Any]
    at_us: int
    numbers: range
    kind: str
    """The symptom's."""
    properties: tuple[str, ...]


Ends = Callable[[Iterable[tuple[Any, Forks] | None]], Iterator[Any]]
"""Plays forks and hands back how each task ended (`actors.sweep_tasks.TaskEnd`), in any order."""


def find_why(
    keys: Mapping[str, Any], forks: int, ends: Ends, progress: Progress, properties: Sequence[str] = ()
) -> Why:
    """Ask from when on the scenario of these keys fails; raises `InputError` if it does not, `RunError` if a task is
    lost."""
    symptom = tried(keys, properties).symptom
    if symptom is None:
        raise InputError("--why", "a scenario that shows nothing wrong", "one that fails, such as of a finding")
    failing: Counter[int] = Counter()
    left: Counter[int] = Counter()
    jump = (0, _last_us(deployment_of(keys)))

    def pieces() -> Iterator[tuple[Any, Forks] | None]:
        nonlocal jump
        for _ in range(_ROUNDS):
            begin_us, end_us = jump
            step_us = max(1, (end_us - begin_us) // _POINTS)
            wanted = [at_us for at_us in range(begin_us, end_us + 1, step_us) if at_us not in left]
            left.update(dict.fromkeys(wanted, forks))
            for at_us in wanted:
                for first in range(0, forks, _FORKS_AT_ONCE):
                    numbers = range(first, min(forks, first + _FORKS_AT_ONCE))
                    yield (at_us, numbers), Forks(keys, at_us, numbers, symptom.kind, tuple(properties))
            while any(left.values()):
                yield None
            jump = _largest_jump([Certainty(at_us, failing[at_us], forks) for at_us in sorted(left)])

    for end in ends(pieces()):
        at_us, numbers = end.key
        if end.failure is not None:
            raise RunError(f"forks {at_us / 1e6:.3f} s after publishing began were lost: {end.failure}")
        failing[at_us] += end.result
        left[at_us] -= len(numbers)
        progress("forks", len(left) - len(+left), _POINTS * _ROUNDS)
    return Why(symptom, [Certainty(at_us, failing[at_us], forks) for at_us in sorted(left)], *jump)


def _largest_jump(points: Sequence[Certainty]) -> tuple[int, int]:
    pairs = list(itertools.pairwise(points))
    rises = [second.share - first.share for first, second in pairs]
    first, second = pairs[rises.index(max(rises))]
    return first.at_us, second.at_us


def _last_us(deployment: Deployment) -> int:
    """When the last message arrives, or what is planned last happens; since publishing began."""
    with tempfile.TemporaryDirectory() as folder:
        rows = play_rows(deployment, Path(folder))
    arrived = rows[np.isin(rows["kind"], (RowKind.RECEIVE, RowKind.DELIVER, RowKind.DROP, RowKind.FAULT))]
    return max(1, int(arrived["time_us"].max(initial=0)) - began_us_of(rows))


def failing_forks(forks: Forks) -> int:
    """How many of them have the symptom: the function that runs as a task."""
    return sum(_fails(forks, number) for number in forks.numbers)


def _fails(forks: Forks, fork: int) -> bool:
    at_us = forks.at_us
    deployment = later(deployment_of(forks.keys), at_us, random.Random(f"{fork}/{at_us}"))
    symptom = tried_run(deployment, functools.partial(ForkedRun, at_us, fork), forks.properties).symptom
    return symptom is not None and symptom.kind == forks.kind


def later(deployment: Deployment, at_us: int, rng: random.Random) -> Deployment:
    """The same up to that time; what is planned after it comes later, faults all by the same time."""
    by_us = rng.randint(0, _LATER_US)
    faults = [
        dataclasses.replace(fault, time_us=fault.time_us + by_us) if fault.time_us > at_us else fault
        for fault in deployment.faults
    ]
    scripts: dict[str, Script] = {
        name: LaterScript(script, at_us, rng.randint(0, _LATER_US)) for name, script in deployment.scripts.items()
    }
    return dataclasses.replace(deployment, faults=tuple(faults), scripts=scripts)


@dataclasses.dataclass(frozen=True, slots=True)
class LaterScript:
    """A script whose commands after `at_us` come `by_us` later."""

    script: Script
    at_us: int
    by_us: int

    @property
    def subscriptions(self) -> Sequence[tuple[int, str]]:
        """See `Script`."""
        return self.script.subscriptions

    @property
    def publications(self) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
        """See `Script`."""
        for time_us, publisher, attributes in self.script.publications:
            yield self._later(time_us), publisher, attributes

    @property
    def changes(self) -> Sequence[Change]:
        """See `Script`."""
        return [(self._later(time_us), *rest) for time_us, *rest in self.script.changes]  # type: ignore[misc]

    def _later(self, time_us: int) -> int:
        return time_us + self.by_us if time_us > self.at_us else time_us


class ForkedRun(ObservedRun):
    """A run whose random numbers are new from that time on."""

    def __init__(
        self,
        at_us: int,
        fork: int,
        reached: Reached,
        properties: Sequence[Property],
        deployment: Deployment,
        journal_folder: Path,
        progress: Progress,
    ) -> None:
        super().__init__(reached, properties, deployment, journal_folder, progress)
        self._at_us = at_us
        self._fork = fork
        self._began_us: int | None = None
        self._forked = False

    def enter(self, phase: Phase) -> None:
        """See `VirtualRun`."""
        super().enter(phase)
        if phase is Phase.PUBLISHING:
            self._began_us = self.runtime.now_us

    def after_entry(self) -> None:
        """See `VirtualRun`."""
        super().after_entry()
        if not self._forked and self._began_us is not None:
            if self.runtime.now_us - self._began_us >= self._at_us:
                self._forked = True
                self.runtime.seed = random.Random(f"{self.runtime.seed}/{self._fork}").randrange(1 << 32)
                for rng in _randoms_of(self.runtime):
                    rng.seed(f"{self._fork}/{rng.random()}")


def _randoms_of(thing: object) -> Iterable[random.Random]:
    """Every source of random numbers that the object holds, by whatever way."""
    found: dict[int, random.Random] = {}
    seen: set[int] = set()
    waiting = [thing]
    while waiting:
        here = waiting.pop()
        if id(here) in seen or isinstance(here, (type, types.ModuleType, types.FunctionType)):
            continue
        seen.add(id(here))
        if isinstance(here, random.Random):
            found[id(here)] = here
        waiting.extend(gc.get_referents(here))
    return found.values()
