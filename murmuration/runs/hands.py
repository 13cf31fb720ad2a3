"""Hands on a run: what somebody orders while it goes on, checked, entered and kept as a scenario that does it again.

An order is an entry of a scenario's `faults` without its time, such as `{"kill": "b3"}` or `{"subscribe": "c3",
"filter": "price > 10"}`. Orders come from any thread and are taken by the one that plays the run. Each is checked
against what is broken at that time and against the steps of the plan that are still to come; one that cannot take
effect is refused in a sentence, and the run goes on.
"""

import dataclasses
import functools
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import yaml

from murmur_pubsub.deployment import Deployment, specs_of
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import COMMANDS, DEATHS, RETURNS, Fault, FaultKind
from murmur_pubsub.plan_checker import check_plan
from murmur_pubsub.run_manifest import FaultEntry
from murmur_pubsub.whole_files import write_text
from murmuration.deployment.fault_entries import FaultReader
from murmuration.runs.manifest import fault_entry
from murmuration.runs.run_folder import RunFolder
from murmuration.scenario.durations import duration_text, parse_duration
from murmuration.scenario.load import LoadedScenario

SAVED = "by-hand.yaml"
_LOOK_S = 0.05
_SPEED_MAX = 1e6
_WAITING_MAX = 100
"""More orders than that wait for none: a page that asks faster is told so."""


class Hands:
    """The hands on one run; a `murmur_pubsub.steering.Steering`. `speed`: emulated seconds in a second, of a virtual
    run; `paused`: its time stands still."""

    def __init__(self, loaded: LoadedScenario, deployment: Deployment, run_folder: RunFolder) -> None:
        self.runtime = loaded.scenario.runtime
        self.speed = 1.0
        self.paused = False
        self.held = False
        self.over = False
        self.observed: Mapping[int, Fault] = {}
        """What happened though nobody ordered it, by step: a live runtime's own."""
        self._loaded = loaded
        self._deployment = deployment
        self._folder = run_folder
        self._orders: deque[tuple[Mapping[str, Any], Future[str]]] = deque()
        self._entries: list[Mapping[str, Any]] = []
        self._taken: list[Fault] = []
        self._deaths: list[Fault] = []
        """Of nodes that had died by themselves, and were started again by hand: as kills, without which none can be."""
        self._steps: dict[int, FaultEntry] = {}
        self._current: Future[str] | None = None
        self._lock = threading.Lock()
        self._paced_at = time.monotonic()

    # ------------------------------------------------------------------------------- from the page's side
    def order(self, entry: Mapping[str, Any]) -> Future[str]:
        """Have this done; the future says what came of it, or has the error that says why not."""
        answer: Future[str] = Future()
        with self._lock:
            if self.over or len(self._orders) >= _WAITING_MAX:
                found = "an order after the end of publishing" if self.over else f"{_WAITING_MAX} orders that wait"
                answer.set_exception(InputError("order", found, "orders while the run publishes, one by one"))
                return answer
            self.held = True
            self._orders.append((entry, answer))
        return answer

    def set_pace(self, speed: float | None = None, paused: bool | None = None) -> None:
        """Change speed, or pause; raises `InputError`."""
        if self.runtime != "virtual":
            raise InputError("pace", "a live run", "a virtual one: the time of a live run cannot be changed")
        if speed is not None:
            if not 0 < speed <= _SPEED_MAX:
                raise InputError("pace", f"{speed:g}", f"emulated seconds in a second, up to {_SPEED_MAX:g}")
            self.speed = speed
        if paused is not None:
            self.paused = paused

    def finish(self) -> None:
        """No more orders: the run may end when all is published."""
        self.paused = self.held = False

    def told(self) -> dict[str, Any]:
        """What a page is told of it."""
        state = {"paused": self.paused, "speed": self.speed, "held": self.held, "orders": len(self._taken)}
        return {
            "hands": {"runtime": self.runtime, "over": self.over, "saved": str(self._folder.folder / SAVED)}
            | state
            | self._example
        }

    # --------------------------------------------------------------------------------- from the run's side
    @property
    def waiting(self) -> bool:
        """See `Steering`."""
        return bool(self._orders)

    def pace(self, now_us: int) -> int:
        """See `Steering`."""
        before = self._paced_at
        time.sleep(_LOOK_S)
        self._paced_at = time.monotonic()
        if self.paused:
            return now_us
        return now_us + int(min(self._paced_at - before, 4 * _LOOK_S) * self.speed * 1e6)

    def take(self, now_us: int, step: int) -> Fault | None:
        """See `Steering`."""
        with self._lock:
            entry, answer = self._orders.popleft()
        try:
            timed = {"at": duration_text(now_us), **entry}
            fault = self._read(timed)
            if fault.kind in (FaultKind.SUBSCRIBE, FaultKind.UNSUBSCRIBE):
                timed["subscriber"] = fault.issuer  # read from the saved scenario, it may come before others
        except InputError as error:
            answer.set_exception(error)
            return None
        if (death := self._own_death(fault)) is not None:
            self._entries.append({"at": duration_text(death.time_us), "kill": death.nodes[0]})
            self._deaths.append(death)
        self._entries.append(timed)
        self._taken.append(fault)
        self._current = answer
        self._steps[step] = dataclasses.replace(self._entry(fault), by_hand=True)
        self.enter_faults()
        self._save(0)
        return fault

    def done(self, step: int, failure: str | None) -> None:
        """See `Steering`."""
        assert self._current is not None
        if failure is None:
            self._current.set_result(f"{self._taken[-1]} took effect")
        else:
            self._current.set_exception(InputError("order", failure, "a fault that takes effect"))
        self._current = None

    def let_go(self, now_us: int) -> None:
        """See `Steering`."""
        with self._lock:
            self.over = True
            waiting, self._orders = list(self._orders), deque()
        for _, answer in waiting:
            answer.set_exception(InputError("order", "an order after the end of publishing", "orders before that"))
        if self._taken:
            self._save(now_us)

    def enter_faults(self) -> None:
        """Have the manifest say what was done beside the plan, and what happened by itself, each at its step."""
        seen = {step: self._entry(each, by_itself=True) for step, each in self.observed.items()}
        beside = self._steps | seen
        planned = (self._entry(each) for each in self._deployment.faults)
        faults = (*planned, *(beside[step] for step in sorted(beside)))
        self._folder.write(dataclasses.replace(self._folder.manifest, faults=faults))

    def _entry(self, fault: Fault, by_itself: bool = False) -> FaultEntry:
        by_hand = (each for each in self._taken if each.time_us <= fault.time_us)
        return fault_entry(fault, self._deployment, by_itself, by_hand)

    # ------------------------------------------------------------------------------------------ the plan
    def _read(self, entry: Mapping[str, Any]) -> Fault:
        if "random" in entry or "for" in entry or "join" in entry:
            raise InputError("order", "random, for or join", "one thing to do now")
        deployment = self._deployment
        links, new_link = specs_of(deployment.links), self._loaded.scenario.links.spec()
        earlier = (*deployment.faults, *self._deaths, *self._taken)
        reader = FaultReader(deployment.fault_targets, links, new_link, 0, _at_order, earlier)
        (fault,) = reader.steps_of(entry)
        if fault.kind in COMMANDS and self._died(fault.nodes[0], fault.time_us):
            raise InputError("order", f"{fault}, where the process has died", "a node that is running")
        death = self._own_death(fault)
        plan = sorted((*earlier, *([] if death is None else [death]), fault), key=lambda each: each.time_us)
        check_plan(plan, deployment.fault_targets, [_place(each, fault) for each in plan])
        return fault

    def _own_death(self, restart: Fault) -> Fault | None:
        """If the order starts a node again whose process had died by itself, and that no step had killed since: its
        death, as a step of a plan that does the same."""
        if restart.kind is not FaultKind.RESTART or not self._died(name := restart.nodes[0], restart.time_us):
            return None
        died_us = [
            each.time_us for each in self.observed.values() if each.kind is FaultKind.KILL and name in each.nodes
        ]
        steps = (*self._deployment.faults, *self._taken)
        killed_us = [each.time_us for each in steps if each.kind in DEATHS and name in self._entry(each).nodes]
        if not died_us or any(died_us[-1] <= each <= restart.time_us for each in killed_us):
            return None
        return Fault(died_us[-1], FaultKind.KILL, (name,))

    def _died(self, name: str, now_us: int) -> bool:
        """Has the node died by itself, and not been started again?"""

        def last_us(faults: Iterable[Fault], kinds: Sequence[FaultKind]) -> int:
            about = (each for each in faults if each.kind in kinds and each.time_us <= now_us)
            hit = (each.time_us for each in about if name in self._entry(each).nodes)
            return max(hit, default=-1)

        seen = self.observed.values()
        return last_us(seen, DEATHS) > last_us((*self._deployment.faults, *self._taken, *seen), RETURNS)

    @functools.cached_property
    def _example(self) -> dict[str, Any]:
        """An event and a filter such as the workload has them."""
        scripts = self._deployment.scripts.values()
        published = next((each for script in scripts for each in script.publications), None)
        wanted = next((text for script in scripts for _, text in script.subscriptions), None)
        example = {"event": None if published is None else dict(published[2]), "filter": wanted}
        return {what: each for what, each in example.items() if each is not None}

    def _save(self, lasts_us: int) -> None:
        """Keep the scenario with all that was done."""
        data = dict(self._loaded.data)
        planned = list(data.get("faults") or [])
        drawn = [entry for entry in planned if "random" in entry]
        timed = [entry for entry in planned if "random" not in entry]
        read = [(parse_duration(entry["at"]), number, entry) for number, entry in enumerate((*timed, *self._entries))]
        data["faults"] = [*drawn, *(dict(entry) for _, _, entry in sorted(read, key=lambda each: each[:2]))]
        if lasts_us:
            data["lasts"] = duration_text(lasts_us)
        text = yaml.safe_dump(data, sort_keys=False)
        write_text(self._folder.folder / SAVED, f"# What was done by hand, as a scenario.\n{text}")


def _place(fault: Fault, ordered: Fault) -> str:
    return "order" if fault is ordered else f"the plan, which has a {fault} at {duration_text(fault.time_us)}"


def _at_order(path: tuple[str, ...], found: str, allowed: str) -> InputError:
    return InputError("order" if len(path) < 3 else f"order, key {path[-1]}", found, allowed)
