"""Changes of a schedule: its faults shifted, doubled, dropped, moved, lengthened, spliced with another's; its numbers
drawn anew.

Faults are changed before they are fitted to the nodes there are (`fault_draws.DrawnFault`), so that any change of any
schedule gives one that can be played.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from murmuration.hunt.fault_draws import LASTING_MS, SOON_MS, DrawnFault, draw_fault
from murmuration.hunt.schedule import Schedule, draw_parts
from murmuration.hunt.space import ScheduleSpace

_MORE_FAULTS = 6
"""So many more than a drawn schedule has at most."""
_OVER_ANOTHER = 0.6
"""The same faults over another overlay reach more than other faults over the same one."""
_MERGED = 0.5
_Faults = list[DrawnFault]
_Change = Callable[[random.Random, _Faults, ScheduleSpace], _Faults]


def mutated(rng: random.Random, space: ScheduleSpace, parent: Schedule, other: Schedule) -> Schedule:
    """The parent with one to three changes, mostly over another overlay and workload; `other` is what it may be spliced
    with, or get faults of."""
    scenario, faults = parent.scenario, list(parent.faults)
    if rng.random() < _OVER_ANOTHER:
        scenario = draw_parts(rng, space).scenario
    if rng.random() < _MERGED:
        more = min(len(other.faults), rng.randint(1, 3))
        faults = _in_order([*faults, *rng.sample(other.faults, more)])
    for _ in range(rng.randint(1, 3)):
        drawn = rng.random()
        if drawn < 0.15:
            faults = _spliced(rng, faults, other.faults)
        elif drawn < 0.25:
            scenario = {**scenario, "seed": rng.randrange(10_000)}
        else:
            faults = rng.choice(_CHANGES)(rng, faults, space)
    return Schedule(scenario, tuple(_in_order(faults[: space.faults_max + _MORE_FAULTS])))


def _in_order(faults: Sequence[DrawnFault]) -> _Faults:
    return sorted(faults, key=lambda each: each.at_ms)


def _spliced(rng: random.Random, faults: Sequence[DrawnFault], others: Sequence[DrawnFault]) -> _Faults:
    """The faults up to some time, and the other's from then on."""
    times = sorted({each.at_ms for each in (*faults, *others)}) or [0]
    at_ms = rng.choice(times)
    return [each for each in faults if each.at_ms < at_ms] + [each for each in others if each.at_ms >= at_ms]


def _shift(rng: random.Random, faults: _Faults, space: ScheduleSpace) -> _Faults:
    """One begins soon after another's begin or end, or a little earlier or later."""
    if not faults:
        return _add(rng, faults, space)
    number = rng.randrange(len(faults))
    fault = faults[number]
    moments = [at_ms for each in faults if each is not fault for at_ms in each.moments_ms]
    if moments and rng.random() < 0.7:
        at_ms = rng.choice(moments) + rng.choice(SOON_MS)
    else:
        at_ms = max(0, fault.at_ms + rng.choice((-500, -100, -20, -5, -1, 1, 5, 20, 100, 500)))
    return [*faults[:number], fault._replace(at_ms=at_ms), *faults[number + 1 :]]


def _double(rng: random.Random, faults: _Faults, space: ScheduleSpace) -> _Faults:
    """One comes twice: at another place, or again where it was."""
    if not faults:
        return _add(rng, faults, space)
    fault = rng.choice(faults)
    number = fault.number if rng.random() < 0.5 else rng.randrange(10_000)
    return [*faults, fault._replace(at_ms=rng.choice(fault.moments_ms) + rng.choice(SOON_MS), number=number)]


def _drop(rng: random.Random, faults: _Faults, space: ScheduleSpace) -> _Faults:
    if not faults:
        return faults
    number = rng.randrange(len(faults))
    return [*faults[:number], *faults[number + 1 :]]


def _move(rng: random.Random, faults: _Faults, space: ScheduleSpace) -> _Faults:
    """One hits another node or link."""
    return _with_one(rng, faults, number=rng.randrange(10_000))


def _last(rng: random.Random, faults: _Faults, space: ScheduleSpace) -> _Faults:
    """One takes longer, or shorter."""
    return _with_one(rng, faults, lasting_ms=rng.choice(LASTING_MS))


def _add(rng: random.Random, faults: _Faults, space: ScheduleSpace) -> _Faults:
    """One more, of any kind."""
    moments = [0, *(at_ms for each in faults for at_ms in each.moments_ms)]
    return [*faults, draw_fault(rng, space, space.kinds, moments)]


def _with_one(rng: random.Random, faults: _Faults, **changes: Any) -> _Faults:
    if not faults:
        return faults
    number = rng.randrange(len(faults))
    return [*faults[:number], faults[number]._replace(**changes), *faults[number + 1 :]]


_CHANGES: Sequence[_Change] = (_shift, _shift, _double, _drop, _move, _last, _add, _add)
