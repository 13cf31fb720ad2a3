"""Makes a failing schedule small: fewer faults, brokers, clients and events, with the same symptom.

Many smaller schedules can be tried at once, on any hosts. Of those that still fail the first in order is taken, once
all before it are known not to: so what is left is the same however many are tried at once.
"""

import copy
import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.hunt.fault_draws import LASTING_MS, DrawnFault
from murmuration.hunt.schedule import Schedule
from murmuration.hunt.space import DRAIN, LINKED_RECOVERY, ScheduleSpace
from murmuration.hunt.symptoms import Symptom, tried
from murmuration.hunt.varying import broker_names, less_varied

_COMMON = ("kill", "cut", "stall", "partition", "rewire", "loss", "storm", "slow", "delay", "outage", "rolling")
"""Kinds of faults of which an earlier one may stand for a later one."""
_COUNTS = {
    "publications": 1, "posts": 1, "clients": 1, "clients_per_broker": 1, "users": 4, "mean_degree": 2,
    "resubscriptions": 0, "subscribers_per_actor": 1, "seconds": 1,
}  # fmt: skip
"""What a workload may have fewer of, and how few at least."""
_FIRST_TRIED = 4
HARM = ("loss", "duplication", "reordering")
"""What the links of a scenario may do to messages."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """`keys`: of the scenario; `tries`: how many smaller ones were played."""

    schedule: Schedule
    keys: dict[str, Any]
    symptom: Symptom
    tries: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Smaller:
    """A schedule that fails."""

    schedule: Schedule
    keys: dict[str, Any]
    symptom: Symptom


class Shrinking:
    """One schedule that is being made small, for so many seconds; at best none of the changes below leaves the symptom
    at the end. Raises `InputError` for a schedule that cannot be."""

    def __init__(self, schedule: Schedule, space: ScheduleSpace, symptom: Symptom, seconds: float = 60.0) -> None:
        self._began = time.monotonic()
        self._seconds = seconds
        self._space = space
        self._best = Smaller(schedule.with_least_numbers(space), schedule.keys(space), symptom)
        self._tries = 0
        self._given = 0
        self._begin()

    def next_try(self) -> tuple[int, Schedule] | None:
        """What is to be tried next, and a number for `take`; None: nothing, until what is tried has come back."""
        if self.over:
            return None
        following = next(self._changes, None)
        if following is None:
            self._all_given = True
            return None
        self._given += 1
        return self._given - 1, following

    def take(self, number: int, found: Smaller | None) -> None:
        """What became of that one (None: it does not fail so any more)."""
        if number < self._first:
            return  # it was made from what has become smaller since
        self._known[number] = found
        while self._next in self._known:
            smaller = self._known[self._next]
            self._next += 1
            self._tries += 1
            if smaller is not None:
                self._best = smaller
                self._begin()
                return

    @property
    def under_way(self) -> int:
        """How many that are to be tried now have not come back."""
        return self._given - self._first - len(self._known)

    @property
    def over(self) -> bool:
        """Is the time spent, or nothing left to be tried?"""
        done = self._all_given and not self.under_way
        return done or time.monotonic() - self._began > self._seconds

    def end(self) -> Shrunk:
        """The smallest one so far."""
        best = self._best
        return Shrunk(best.schedule, best.keys, best.symptom, self._tries, time.monotonic() - self._began)

    def _begin(self) -> None:
        """With the changes of the smallest one so far."""
        self._changes = _smaller(self._best.schedule, self._space)
        self._all_given = False
        self._first = self._next = self._given
        self._known: dict[int, Smaller | None] = {}


def shrink(schedule: Schedule, space: ScheduleSpace, symptom: Symptom, seconds: float = 60.0) -> Shrunk:
    """The same with one try at a time, here."""
    shrinking = Shrinking(schedule, space, symptom, seconds)
    while (following := shrinking.next_try()) is not None:
        number, smaller = following
        shrinking.take(number, still_fails(smaller, space, symptom.kind))
    return shrinking.end()


def still_fails(schedule: Schedule, space: ScheduleSpace, kind: str) -> Smaller | None:
    """The schedule, if it has that symptom."""
    try:
        keys = schedule.keys(space)
        symptom = tried(keys, space.properties).symptom
    except InputError:
        return None
    return None if symptom is None or symptom.kind != kind else Smaller(schedule, keys, symptom)


def _smaller(schedule: Schedule, space: ScheduleSpace) -> Iterator[Schedule]:
    """Schedules that are smaller in one thing each, those first that leave out most."""
    faults = schedule.faults
    if schedule.scenario.get("drain") == LINKED_RECOVERY:
        yield Schedule({**schedule.scenario, "drain": DRAIN}, faults)  # each try is the shorter
    fitted = _fitted(schedule, space)
    if len(fitted) < len(faults):
        yield Schedule(schedule.scenario, fitted)
    if len(faults) > 3:
        yield Schedule(schedule.scenario, faults[: len(faults) // 2])
        yield Schedule(schedule.scenario, faults[len(faults) // 2 :])
    for number in range(len(faults)):
        yield Schedule(schedule.scenario, (*faults[:number], *faults[number + 1 :]))
    usual = less_varied(schedule.scenario) if space.varied else ()
    for scenario in itertools.chain(usual, smaller_scenarios(schedule.scenario)):
        yield Schedule(scenario, faults)
    for broker in _fewer_parameters(schedule.scenario["broker"], space.broker.get("parameters", {})):
        yield Schedule({**schedule.scenario, "broker": broker}, faults)
    for number, fault in enumerate(faults):
        for simpler in _simpler(fault):
            yield Schedule(schedule.scenario, (*faults[:number], simpler, *faults[number + 1 :]))


def _fitted(schedule: Schedule, space: ScheduleSpace) -> tuple[DrawnFault, ...]:
    """The faults without those that could not be beside the earlier ones."""
    kept: list[DrawnFault] = []
    entries = 0
    for fault in schedule.faults:
        now = len(Schedule(schedule.scenario, (*kept, fault)).keys(space)["faults"])
        if now > entries:
            kept.append(fault)
            entries = now
    return tuple(kept)


def smaller_scenarios(scenario: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The scenario with less of something, for each that it may have less of."""
    overlay, workload, links = scenario["overlay"], scenario.get("workload", {}), scenario.get("links", {})
    if type(overlay.get("brokers")) is int and "identifiers" not in overlay:
        for brokers in (2, 3, overlay["brokers"] // 2, overlay["brokers"] - 1):
            if 1 < brokers < overlay["brokers"]:
                yield _of_fewer_brokers(_changed(scenario, "overlay", brokers=brokers))
    elif "identifiers" in overlay:
        for left_out in range(len(overlay["identifiers"])):
            kept = [each for number, each in enumerate(overlay["identifiers"]) if number != left_out]
            if len(kept) > 1:
                yield _of_fewer_brokers(_changed(scenario, "overlay", brokers=len(kept), identifiers=kept))
    if isinstance(overlay.get("cells"), Mapping):
        yield from _fewer_cells(scenario)
    for key, least in _COUNTS.items():
        count = workload.get(key)
        if key == "users":
            least = max(least, 1 + workload.get("mean_degree", 0))  # each has so many friends
        if type(count) is int:
            for smaller in sorted({least, count // 4, count // 2, count * 3 // 4, count - 1}):
                if least <= smaller < count:
                    changed = _changed(scenario, "workload", **{key: smaller})
                    if key == "clients" and type(workload.get("publishers")) is int:
                        publishers = min(workload["publishers"], smaller)
                        changed = _changed(changed, "workload", publishers=publishers)
                    yield changed
    for key in ("publishers", "subscribers", "visits"):
        for name in workload[key] if isinstance(workload.get(key), Mapping) else ():
            fewer = {other: each for other, each in workload[key].items() if other != name}
            if fewer or key == "visits":
                yield _changed(scenario, "workload", **{key: fewer})
    if workload.get("publishers") == 2:
        yield _changed(scenario, "workload", publishers=1)
    for key in HARM:
        if links.get(key):
            yield {**scenario, "links": {name: each for name, each in links.items() if name != key}}


def _of_fewer_brokers(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario whose workload and churn name only brokers that there are."""
    brokers = set(broker_names(scenario["overlay"]))
    fitted = dict(scenario)
    if "workload" in scenario:
        fitted["workload"] = {
            key: {name: each for name, each in value.items() if name in brokers} if type(value) is dict else value
            for key, value in scenario["workload"].items()
        }
    if "churn" in scenario:
        who = [name for name in scenario["churn"]["who"] if name in brokers or name.startswith("c")]
        fitted |= {"churn": {**scenario["churn"], "who": who}}
        if not who:
            del fitted["churn"]
    return fitted


def _fewer_parameters(broker: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The section `broker` without a parameter that was drawn, for each; at first without all of them."""
    parameters = broker.get("parameters", {})
    drawn = [(name, key) for name, keys in parameters.items() for key in keys if key not in given.get(name, {})]
    for away in (drawn, *([each] for each in drawn)) if drawn else ():
        left = {name: {key: keys[key] for key in keys if (name, key) not in away} for name, keys in parameters.items()}
        left = {name: keys for name, keys in left.items() if keys}
        others = {key: value for key, value in broker.items() if key != "parameters"}
        yield {**others, "parameters": left} if left else others


def _fewer_cells(scenario: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Without a cell at the rim, or with one broker of a cell less."""
    overlay = scenario["overlay"]
    cells, links = overlay["cells"], overlay["links"]
    for name, members in cells.items():
        ends = [link for link in links if name in link]
        gone = set(members) if len(ends) == 1 and name != links[0][0] and len(cells) > 2 else set()
        for away in (gone, {members[-1]} if len(members) > 1 else set()):
            if not away:
                continue
            smaller = copy.deepcopy(dict(scenario))
            left = smaller["overlay"]
            left["cells"][name] = [each for each in members if each not in away]
            if not left["cells"][name]:
                del left["cells"][name]
                left["links"] = [link for link in links if name not in link]
            without = [link for link in overlay.get("without", ()) if away.isdisjoint(link)]
            left.pop("without", None)
            if without:
                left["without"] = without
            workload = smaller["workload"]
            brokers = sum(len(each) for each in left["cells"].values())
            for key in ("clients", "publishers"):
                if type(workload.get(key)) is int:
                    workload[key] = min(workload[key], brokers)
            yield _of_fewer_brokers(smaller)


def _simpler(fault: DrawnFault) -> Iterator[DrawnFault]:
    """The same that is shorter, or at a rounder time, or of a kind that is more common: then two schedules that only
    differ in what kind of fault shows the cause come to be the same."""
    if fault.kind in _COMMON:
        for kind in _COMMON[: _COMMON.index(fault.kind)]:
            for number in (fault.place, 0, 1):  # brokers come first: what broke a link may break one of its ends
                yield fault._replace(kind=kind, number=number, near=None)
    for place in range(min(fault.place, _FIRST_TRIED)):  # at the first brokers, so that the last ones can go
        yield fault._replace(number=place) if fault.near is None else fault._replace(near=place)
    if fault.lasting_ms is not None:
        for lasting_ms in LASTING_MS:
            if lasting_ms < fault.lasting_ms:
                yield fault._replace(lasting_ms=lasting_ms)
    for step in (1_000, 100):
        rounder = fault.at_ms // step * step
        if rounder < fault.at_ms:
            yield fault._replace(at_ms=rounder)


def _changed(scenario: Mapping[str, Any], section: str, **changes: Any) -> dict[str, Any]:
    return {**scenario, section: {**scenario[section], **changes}}
