"""A schedule is a scenario as a person would write it, drawn from a seed: few nodes, few events, few faults.

Each draw is a function of its random numbers alone, so that a schedule is known by its seed, and whoever hands in
other numbers (a tool that shrinks a failing draw) gets a schedule all the same. About half of the kinds of faults are
left out of each schedule: what only shows without some other fault is seen as well as what needs many kinds at once.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.deployment.build_deployment import build
from murmuration.hunt.fault_draws import DrawnFault, FaultWriter, draw_faults
from murmuration.hunt.space import DRAIN, USUAL, ScheduleSpace
from murmuration.hunt.varying import broker_names, drawn_harm, on_links_that_carry_it, varied
from murmuration.scenario.load import check_scenario

_PUBLICATIONS_MAX = 150
_DRAWS = 60
"""Of some pairs six in seven schedules cannot be."""
_CHANGING = 0.5
_SELDOM = 0.3
"""In so many of the schedules that publish for long subscriptions change all the while."""


@dataclass(frozen=True)
class Schedule:
    """A scenario without faults, and faults that are yet to be fitted to it, in order of time."""

    scenario: Mapping[str, Any]
    faults: tuple[DrawnFault, ...]

    def keys(self, space: ScheduleSpace) -> dict[str, Any]:
        """The keys of the whole scenario; raises `InputError` if it cannot be."""
        return {**self.scenario, "faults": self._writer(space).written(self.faults)}

    def with_least_numbers(self, space: ScheduleSpace) -> "Schedule":
        """One of the same keys; raises `InputError`."""
        return Schedule(self.scenario, tuple(map(self._writer(space).least, self.faults)))

    def _writer(self, space: ScheduleSpace) -> FaultWriter:
        loaded = check_scenario(self.scenario, "schedule")
        return FaultWriter(space, loaded, build(loaded).deployment)


def draw_schedule(rng: random.Random, space: ScheduleSpace) -> dict[str, Any]:
    """The keys of one scenario."""
    return draw_parts(rng, space).keys(space)


def draw_one_that_can_be(space: ScheduleSpace) -> dict[str, Any]:
    """The keys of the first that can be; raises `InputError` if none of many can."""
    refused: InputError | None = None
    for seed in range(_DRAWS):
        try:
            return draw_schedule(random.Random(seed), space)
        except InputError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def draw_parts(rng: random.Random, space: ScheduleSpace) -> Schedule:
    """The same, as a schedule that can be changed."""
    return Schedule(draw_scenario(rng, space), tuple(draw_faults(rng, space)))


def draw_scenario(rng: random.Random, space: ScheduleSpace) -> Mapping[str, Any]:
    """One without faults."""
    if space.scenario is None:
        return _draw_scenario(rng, space)
    return {**space.scenario, "seed": rng.randrange(10_000)}


def publishing_for_long(
    rng: random.Random, space: ScheduleSpace, scenario: Mapping[str, Any]
) -> tuple[dict[str, Any], int]:
    """The scenario with as many events as the tempo says, and for how many ms they are published: what follows a late
    fault is seen only by events that come later. In half of them subscriptions change all the while, so that some do
    while something is broken. One that was given keeps its own."""
    if space.scenario is not None:
        return dict(scenario), space.latest_ms
    publications = rng.randint(*space.tempo.publications)
    workload = dict(scenario["workload"])
    if workload["kind"] == "social":
        workload["posts"] = publications
    elif workload["kind"] == "paced":
        workload["seconds"] = publications // space.rate_per_s
    else:
        workload["publications"] = publications
        if space.resubscriptions_max and rng.random() < _CHANGING:
            workload["resubscriptions"] = rng.randint(space.resubscriptions_max, 2 * space.resubscriptions_max)
    return {**scenario, "workload": workload}, 1_000 * publications // space.rate_per_s


def brokers_of(overlay: Mapping[str, Any]) -> int:
    """How many brokers an overlay has, or would have by what is most common in one that a scenario says otherwise."""
    if "cells" in overlay:
        return len(broker_names(overlay))
    brokers = overlay.get("brokers")
    return brokers if type(brokers) is int else 8


def _draw_scenario(rng: random.Random, space: ScheduleSpace) -> dict[str, Any]:
    overlay = _overlay(rng, space)
    brokers = brokers_of(overlay)
    data: dict[str, Any] = {
        "name": "schedule",
        "runtime": "virtual",
        "seed": rng.randrange(10_000),
        "overlay": overlay,
        "workload": {
            "kind": "zipf", "clients": min(brokers, 7), "publishers": min(space.publishers, brokers),
            "publications": rng.randint(20, _PUBLICATIONS_MAX), "rate_per_s": space.rate_per_s, **USUAL["workload"],
        },
        "broker": dict(space.broker),
        "links": {**USUAL["links"], **drawn_harm(rng, space)},
        "failure_detection": USUAL["failure_detection"],
        "drain": DRAIN,
        **space.more,
    }  # fmt: skip
    if space.resubscriptions_max and rng.random() < 0.5:
        data["workload"]["resubscriptions"] = rng.randint(1, space.resubscriptions_max)
    if rng.random() < 0.5:
        data["workload"]["covered"] = 0.5
    if space.varied:
        data = varied(rng, space, data)
    if space.parameters and rng.random() < 0.5:
        data["broker"] = _with_parameters(rng, data, space.parameters, 0.5)
    if space.seldom and rng.random() < 0.5:
        data["broker"] = _with_parameters(rng, data, space.seldom, _SELDOM)
    return on_links_that_carry_it(data)


def _with_parameters(
    rng: random.Random, data: Mapping[str, Any], choices: Mapping[str, Mapping[str, Sequence[object]]], share: float
) -> dict[str, Any]:
    """The section `broker` with that share of these parameters drawn; without them if the protocols refuse these
    together."""
    given = data["broker"].get("parameters", {})
    drawn = {
        name: {
            **given.get(name, {}),
            **{key: rng.choice(values) for key, values in tried.items() if rng.random() < share},
        }
        for name, tried in choices.items()
    }
    chosen = {**given, **{name: keys for name, keys in drawn.items() if keys}}
    broker = {**data["broker"], **({"parameters": chosen} if chosen else {})}
    try:
        build(check_scenario({**data, "broker": broker}, "schedule"))
    except InputError:
        return dict(data["broker"])
    return broker


def _overlay(rng: random.Random, space: ScheduleSpace) -> dict[str, Any]:
    kind = rng.choice(space.overlays)
    if kind == "cells":
        return _cells(rng)
    brokers = rng.randint(space.brokers_min, space.brokers_max)
    if kind == "structured":
        return {"kind": kind, "brokers": brokers, "probe": "200 ms", "probe_timeout": "100 ms", **_ring(rng, brokers)}
    if kind == "ring":
        return {"kind": kind, "brokers": max(3, brokers)}
    if kind == "random_regular":
        return {"kind": kind, "brokers": max(4, brokers // 2 * 2), "degree": 3}
    if kind == "small_world":
        return {"kind": kind, "brokers": max(5, brokers), "degree": 4, "rewired": rng.choice((0.0, 0.2, 1.0))}
    if kind == "scale_free":
        return {"kind": kind, "brokers": max(3, brokers), "links": 2}
    return {"kind": kind, "brokers": brokers}


def _ring(rng: random.Random, brokers: int) -> dict[str, Any]:
    """Where the brokers of a structured overlay stand: spread over all identifiers, or close together."""
    leaf_set = rng.choice((4, 8, 16))
    if rng.random() < 0.5:
        return {"leaf_set": leaf_set}
    begin = rng.choice((0, 4**8 // 2 - 20, 4**8 - 40))
    return {"leaf_set": leaf_set, "identifiers": rng.sample(range(begin, begin + 40), brokers)}


def _cells(rng: random.Random) -> dict[str, Any]:
    """A tree of cells: a host, up to two levels of cells of one to four brokers, leaves of one; some links are left
    out, but not so many that a cell is cut off."""
    cells: dict[str, list[str]] = {"p": ["p0"]}
    links: list[list[str]] = []

    def grow(parent: str, name: str, depth: int) -> None:
        members = 1 if not depth else rng.randint(1, 4 if depth == 1 else 3)
        cells[name] = [f"{name}{letter}" for letter in "abcd"[:members]]
        links.append([parent, name])
        for number in range(rng.randint(1, 2) if depth else 0):
            grow(name, f"{name}{number}", rng.randint(0, depth - 1))

    for middle in range(rng.randint(1, 2)):
        grow("p", f"m{middle}", rng.randint(1, 2))
    without = [
        [rng.choice(cells[first]), rng.choice(cells[second])]
        for first, second in links
        if min(len(cells[first]), len(cells[second])) > 1 and rng.random() < 0.5
    ]
    return {"kind": "cells", "cells": cells, "links": links, **({"without": without} if without else {})}
