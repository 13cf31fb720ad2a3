"""Schedules of bursts: faults that meet, time to recover, and again; drawn, or taken from schedules that reached much.

A burst of a parent is some of its faults that met. It is put into another schedule, mostly over another overlay, and
half of the time with a change: one of its faults is shifted, moved, lengthened, left out, or another one is added.
Faults are changed before they are fitted to the nodes there are (`fault_draws.DrawnFault`), so that any change of any
schedule gives one that can be played.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from murmuration.hunt.fault_draws import (
    LASTING_MS,
    SOON_MS,
    DrawnFault,
    draw_absence,
    draw_burst,
    draw_kind,
    draw_meeting,
    draw_number,
    in_bursts,
)
from murmuration.hunt.schedule import Schedule, brokers_of, draw_scenario, publishing_for_long
from murmuration.hunt.space import ScheduleSpace

_BURST_MAX = 4
"""Faults of a burst that is taken."""
_WITH_ABSENCE = 0.6
"""So many schedules have something that is away for long."""
_CHANGED = 0.5
_OVER_ANOTHER = 0.7
"""The same faults over another overlay reach more than other faults over the same one."""
_TAKEN = 0.7
"""So many bursts of a schedule made of parents are theirs."""
_Faults = list[DrawnFault]
_Change = Callable[[random.Random, _Faults, ScheduleSpace, int], _Faults]
"""The number is that of the brokers."""


def drawn_in_bursts(rng: random.Random, space: ScheduleSpace) -> Schedule:
    """A schedule all of whose bursts are drawn, in many of them while a node or a link is away."""
    scenario, publishing_ms = publishing_for_long(rng, space, draw_scenario(rng, space))
    brokers = brokers_of(scenario["overlay"])
    absence = _absence(rng, space, publishing_ms, brokers)
    faults = in_bursts(rng, space, publishing_ms, lambda: draw_burst(rng, space, brokers, absence))
    return Schedule(scenario, _together(faults, absence))


def mutated(rng: random.Random, space: ScheduleSpace, parents: Sequence[Schedule]) -> Schedule:
    """A schedule made of the parents' bursts, over a new overlay or that of one of them."""
    overlay = draw_scenario(rng, space) if rng.random() < _OVER_ANOTHER else rng.choice(parents).scenario
    scenario, publishing_ms = publishing_for_long(rng, space, {**overlay, "seed": rng.randrange(10_000)})
    brokers = brokers_of(scenario["overlay"])
    absence = _absence(rng, space, publishing_ms, brokers)

    def burst() -> _Faults:
        faults = _taken(rng, rng.choice(parents).faults) if rng.random() < _TAKEN else []
        if not faults:
            return draw_burst(rng, space, brokers, absence)
        return rng.choice(_CHANGES)(rng, faults, space, brokers) if rng.random() < _CHANGED else faults

    return Schedule(scenario, _together(in_bursts(rng, space, publishing_ms, burst), absence))


def _absence(rng: random.Random, space: ScheduleSpace, publishing_ms: int, brokers: int) -> DrawnFault | None:
    return draw_absence(rng, space, publishing_ms, brokers) if rng.random() < _WITH_ABSENCE else None


def _together(faults: _Faults, absence: DrawnFault | None) -> tuple[DrawnFault, ...]:
    every = faults if absence is None else [*faults, absence]
    return tuple(sorted(every, key=lambda each: each.at_ms))


def _taken(rng: random.Random, faults: Sequence[DrawnFault]) -> _Faults:
    """One of the faults, and those that began while it was in force or just before or after."""
    if not faults:
        return []
    first = rng.choice(faults)
    ends_ms = first.moments_ms[-1] + SOON_MS[-1]
    met = [each for each in faults if first.at_ms - SOON_MS[-1] <= each.at_ms <= ends_ms and each is not first]
    return sorted([first, *rng.sample(met, min(len(met), _BURST_MAX - 1))], key=lambda each: each.at_ms)


def _shift(rng: random.Random, faults: _Faults, space: ScheduleSpace, brokers: int) -> _Faults:
    """One begins soon after another's begin or end, or a little earlier or later."""
    number = rng.randrange(len(faults))
    fault = faults[number]
    moments = [at_ms for each in faults if each is not fault for at_ms in each.moments_ms]
    if moments and rng.random() < 0.7:
        return _with(faults, number, at_ms=rng.choice(moments) + rng.choice(SOON_MS))
    return _with(faults, number, at_ms=max(0, fault.at_ms + rng.choice((-500, -100, -20, -5, -1, 1, 5, 20, 100, 500))))


def _drop(rng: random.Random, faults: _Faults, space: ScheduleSpace, brokers: int) -> _Faults:
    number = rng.randrange(len(faults))
    return [*faults[:number], *faults[number + 1 :]] or faults


def _move(rng: random.Random, faults: _Faults, space: ScheduleSpace, brokers: int) -> _Faults:
    """One hits another node or link."""
    number = rng.randrange(len(faults))
    return _put(faults, number, faults[number].moved(rng, draw_number(rng, brokers)))


def _last(rng: random.Random, faults: _Faults, space: ScheduleSpace, brokers: int) -> _Faults:
    """One takes longer, or shorter."""
    return _with(faults, rng.randrange(len(faults)), lasting_ms=rng.choice(LASTING_MS))


def _become(rng: random.Random, faults: _Faults, space: ScheduleSpace, brokers: int) -> _Faults:
    """One is of another kind."""
    number = rng.randrange(len(faults))
    become = faults[number]._replace(kind=draw_kind(rng, space))
    return _put(faults, number, become.moved(rng, faults[number].place))


def _add(rng: random.Random, faults: _Faults, space: ScheduleSpace, brokers: int) -> _Faults:
    """One more meets one of them."""
    return [*faults, draw_meeting(rng, space, faults, brokers)]


def _with(faults: _Faults, place: int, **changes: Any) -> _Faults:
    return _put(faults, place, faults[place]._replace(**changes))


def _put(faults: _Faults, place: int, fault: DrawnFault) -> _Faults:
    return [*faults[:place], fault, *faults[place + 1 :]]


_CHANGES: Sequence[_Change] = (_shift, _shift, _drop, _move, _last, _become, _add)
