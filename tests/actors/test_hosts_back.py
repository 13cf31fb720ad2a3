"""A host that goes away and returns by itself in the middle of a plan: which of its nodes come with it."""

import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import ray

from actors import live_fault_injector
from actors.actor_group import ActorGroup
from actors.clock import Clock, Origin
from actors.live_fault_injector import LiveFaultInjector
from actors.processes import ProcessGoneError, ProcessPlace
from actors.run import LiveRun
from murmur_pubsub.faults import Fault, FaultKind
from murmur_pubsub.journal import FaultStage
from murmuration.runs.manifest import fault_entry
from tests.deployments import Shape, random_deployment

ON_HOST = ["b1", "b2"]
PLAN = tuple(Fault(number, FaultKind.KILL, ("b1",)) for number in range(10))
"""As many steps as a test carries out, at most: what is observed has the numbers after these."""
DEPLOYMENT = replace(random_deployment(1, Shape(brokers=3, clients=1)), hosts=dict.fromkeys(ON_HOST, 1))


class Group:
    """All nodes of the deployment, each with a process of its own. Only one that is down can be brought back."""

    def __init__(self) -> None:
        self.specs = {spec.name: spec for spec in DEPLOYMENT.nodes}
        self.addresses = dict.fromkeys(self.specs, ("127.0.0.1", 1))
        self.places = dict.fromkeys(self.specs, ProcessPlace("elsewhere", "b", 1))
        self.hosts = ["a", "b"]
        self.down: dict[str, None] = {}
        self.stalled: dict[str, list[str]] = {}
        self.gone_hosts: set[int] = set()
        """Of which Ray knows that they are."""
        self.going_hosts: set[int] = set()
        """That are gone as well, which Ray finds out when it asks them."""
        self.unheard: dict[str, None] = {}
        self.starts = 0
        self.sealed: list[tuple[str, int]] = []
        """Whose journals were sealed though nobody had heard of them, and after how many starts."""
        self.stillborn: set[str] = set()
        """Who dies before it has answered."""
        self.starting: Callable[[], None] = lambda: None
        self.started: Callable[[], None] = lambda: None

    def host_is_gone(self, number: int, ask: bool = False) -> bool:
        if ask:
            self.gone_hosts |= self.going_hosts
        return number in self.gone_hosts

    def process_gone(self, names: list[str]) -> None: ...

    def seal_unheard(self, name: str) -> None:
        if 1 not in self.gone_hosts:
            del self.unheard[name]
            self.sealed.append((name, self.starts))

    def kill(self, name: str) -> None: ...

    def together(self, name: str) -> tuple[str, ...]:
        return (name,)

    def shares(self, name: str) -> bool:
        return False

    def listen(self, names: list[str]) -> dict[tuple[str, ...], ProcessGoneError]:
        self.starts += 1
        self.starting()
        died = [name for name in names if name in self.stillborn]
        self.unheard |= dict.fromkeys(died)
        return {(name,): ProcessGoneError(f"{name} died") for name in died}

    def bring_back(self, names: list[str]) -> None:
        for name in names:
            del self.down[name]
        self.started()


class Journal:
    """What the injector journals: the step, and the stage."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, FaultStage]] = []

    def fault(self, now_us: int, step: int, fault: Fault, stage: FaultStage) -> None:
        self.rows.append((step, stage))

    def in_effect(self, step: int) -> bool:
        assert self.rows.count((step, FaultStage.ORDERED)) == 1
        return (step, FaultStage.IN_EFFECT) in self.rows


@pytest.fixture
def group() -> Group:
    return Group()


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def injector(group: Group, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> LiveFaultInjector:
    for what in ("await_state", "check_there"):
        monkeypatch.setattr(live_fault_injector, what, lambda *_: None)
    return LiveFaultInjector(replace(DEPLOYMENT, faults=PLAN), group, Clock(Origin(0), 1.0), journal, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("before", [True, False], ids=["killed before", "killed meanwhile"])
@pytest.mark.parametrize(
    ("kill", "restart"),
    [(FaultKind.KILL, FaultKind.RESTART), (FaultKind.KILL_ACTOR, FaultKind.RESTART_ACTOR)],
)
def test_a_node_that_the_plan_had_killed_waits_for_its_restart(
    group: Group, injector: LiveFaultInjector, kill: FaultKind, restart: FaultKind, before: bool
) -> None:
    if before:
        injector.carry_out(0, Fault(1, kill, ("b1",)))
    injector.host_vanished(1)
    if not before:
        injector.carry_out(0, Fault(1, kill, ("b1",)))
    assert set(group.down) == set(ON_HOST)
    injector.host_returned(1, "c")
    assert list(group.down) == ["b1"]
    injector.carry_out(1, Fault(2, restart, ("b1",)))
    assert not group.down
    (entry,) = (
        fault_entry(each, DEPLOYMENT, by_itself=True)
        for each in injector.observed.values()
        if each.kind is FaultKind.RETURN_HOST
    )
    assert (entry.nodes, entry.text) == (("b2",), "return host 1")


def test_a_host_returns_with_all_that_it_took_and_who_had_died_by_itself(
    group: Group, injector: LiveFaultInjector
) -> None:
    injector.died({"b1": group.places["b1"]})
    injector.host_vanished(1)
    injector.host_returned(1, "c")
    assert not group.down
    assert group.hosts == ["a", "c"]


def test_a_host_that_returns_without_any_node_is_no_step(group: Group, injector: LiveFaultInjector) -> None:
    for step, name in enumerate(ON_HOST):
        injector.carry_out(step, Fault(1, FaultKind.KILL, (name,)))
    injector.host_vanished(1)
    injector.host_returned(1, "c")
    assert list(group.down) == ON_HOST
    assert [each.kind for each in injector.observed.values()] == [FaultKind.LOSE_HOST]
    injector.carry_out(2, Fault(2, FaultKind.RESTART, ("b1",)))
    assert list(group.down) == ["b2"]


def test_a_restart_while_the_host_is_away_is_in_effect_when_that_is_back(
    group: Group, injector: LiveFaultInjector, journal: Journal
) -> None:
    injector.carry_out(0, Fault(1, FaultKind.KILL, ("b1",)))
    injector.host_vanished(1)
    assert injector.carry_out(1, Fault(2, FaultKind.RESTART, ("b1",))) == []
    assert list(group.down) == ["b1", "b2"]
    assert injector.waits(1)
    assert not journal.in_effect(1)
    injector.host_returned(1, "c")
    assert not group.down
    assert not injector.waits(1)
    assert journal.in_effect(1)


def test_a_restart_that_waits_is_taken_back_by_a_kill(
    group: Group, injector: LiveFaultInjector, journal: Journal
) -> None:
    injector.carry_out(0, Fault(1, FaultKind.KILL_ACTOR, ("b1",)))
    injector.host_vanished(1)
    injector.carry_out(1, Fault(2, FaultKind.RESTART_ACTOR, ("b1",)))
    injector.carry_out(2, Fault(3, FaultKind.KILL, ("b1",)))
    injector.host_returned(1, "c")
    assert list(group.down) == ["b1"]
    assert not journal.in_effect(1)
    injector.carry_out(3, Fault(4, FaultKind.RESTART, ("b1",)))
    assert not group.down
    assert journal.in_effect(1), "its node is up, whatever has started it: what the kill had broken is whole"


def test_a_restart_finds_out_that_the_host_is_gone(group: Group, injector: LiveFaultInjector, journal: Journal) -> None:
    injector.carry_out(0, Fault(1, FaultKind.KILL, ("b1",)))
    group.gone_hosts.add(1)
    injector.carry_out(1, Fault(2, FaultKind.RESTART, ("b1",)))
    injector.host_vanished(1)  # the watch sees it too, and later
    assert [each.kind for each in injector.observed.values()] == [FaultKind.LOSE_HOST]
    group.gone_hosts.clear()

    injector.host_returned(1, "c")
    assert (not group.down, journal.in_effect(1)) == (True, True)


def test_a_process_that_falls_silent_as_it_starts_may_be_gone_with_its_host(
    group: Group, injector: LiveFaultInjector, journal: Journal
) -> None:
    """Ray knows of the connection first, and some seconds later of the host."""

    def go() -> None:
        group.going_hosts.add(1)
        raise ProcessGoneError("the actor is unavailable")

    injector.carry_out(0, Fault(1, FaultKind.KILL, ("b1",)))
    group.starting = go
    injector.carry_out(1, Fault(2, FaultKind.RESTART, ("b1",)))
    assert [each.kind for each in injector.observed.values()] == [FaultKind.LOSE_HOST]
    assert not journal.in_effect(1)
    group.going_hosts.clear()
    group.gone_hosts.clear()
    group.starting = lambda: None

    injector.host_returned(1, "c")
    assert (not group.down, journal.in_effect(1)) == (True, True)


def test_a_host_that_goes_again_while_its_nodes_start_is_waited_for(
    group: Group, injector: LiveFaultInjector, journal: Journal
) -> None:
    def go_again() -> None:
        group.gone_hosts.add(1)
        raise ProcessGoneError("the actor died")

    injector.host_vanished(1)
    group.starting = go_again
    injector.host_returned(1, "c")
    assert list(group.down) == ON_HOST
    assert [each.kind.name for each in injector.observed.values()] == ["LOSE_HOST", "RETURN_HOST", "LOSE_HOST"]
    _, returned, _ = injector.observed
    assert not journal.in_effect(returned)
    group.gone_hosts.clear()
    group.starting = lambda: None
    injector.host_returned(1, "d")
    assert not group.down
    assert journal.in_effect(returned)


def test_a_node_stalled_while_its_host_is_away_goes_on_when_that_is_back(
    group: Group, injector: LiveFaultInjector, journal: Journal
) -> None:
    injector.host_vanished(1)
    injector.carry_out(0, Fault(1, FaultKind.STALL, ("b1",)))
    injector.host_returned(1, "c")
    injector.carry_out(1, Fault(2, FaultKind.RESUME, ("b1",)))
    assert journal.in_effect(1)


def test_a_node_that_dies_as_it_starts_has_died_by_itself(group: Group, injector: LiveFaultInjector) -> None:
    injector.carry_out(0, Fault(1, FaultKind.KILL, ("b1",)))
    group.started = lambda: injector.died({"b1": group.places["b1"]})
    injector.carry_out(1, Fault(2, FaultKind.RESTART, ("b1",)))
    assert list(group.down) == ["b1"]
    group.started = lambda: None
    injector.host_vanished(1)
    injector.host_returned(1, "c")
    assert not group.down, "what dies by itself comes back with its host"


def test_who_dies_before_it_has_answered_comes_back_with_its_host_too(
    group: Group, injector: LiveFaultInjector, journal: Journal
) -> None:
    injector.carry_out(0, Fault(1, FaultKind.KILL_ACTOR, tuple(ON_HOST)))
    group.stillborn = {"b1"}
    assert injector.carry_out(1, Fault(2, FaultKind.RESTART_ACTOR, tuple(ON_HOST))) == ["b2"]
    assert list(group.down) == ["b1"]
    assert [(each.kind, each.nodes) for each in injector.observed.values()] == [(FaultKind.KILL, ("b1",))]
    assert journal.in_effect(1)
    group.stillborn = set()
    injector.host_vanished(1)
    injector.host_returned(1, "c")
    assert not group.down


def test_who_dies_so_with_its_host_waits_for_that(group: Group, injector: LiveFaultInjector) -> None:
    injector.carry_out(0, Fault(1, FaultKind.KILL, ("b1",)))
    group.starting, group.stillborn = lambda: group.gone_hosts.add(1), {"b1"}
    injector.carry_out(1, Fault(2, FaultKind.RESTART, ("b1",)))
    assert injector.waits(1)
    assert [each.kind for each in injector.observed.values()] == [FaultKind.LOSE_HOST]
    group.starting, group.stillborn, group.gone_hosts = lambda: None, set(), set()
    injector.host_returned(1, "c")
    assert not group.down
    assert group.sealed == [("b1", 1)], "before it was started once more"


def test_who_saw_a_death_too_late_tells_nothing_of_the_process_that_came_after(
    group: Group, injector: LiveFaultInjector
) -> None:
    seen = {"b1": group.places["b1"]}
    group.places["b1"] = group.places["b1"]._replace(pid=2)
    injector.died(seen)
    assert not group.down
    assert not injector.observed


def test_an_order_by_hand_and_what_is_seen_at_the_same_moment_have_numbers_of_their_own(
    group: Group, injector: LiveFaultInjector, journal: Journal
) -> None:
    """The run's thread takes an order while that of the watch notices a loss, and of the plan's steps a death."""
    seers = [
        threading.Thread(target=injector.host_vanished, args=[1]),
        threading.Thread(target=injector.died, args=[{"b0": group.places["b0"]}]),
    ]
    told: list[tuple[int, str | None]] = []

    def take(now_us: int, step: int) -> Fault:
        for seer in seers:
            seer.start()
            seer.join(0.2)
        return Fault(now_us, FaultKind.KILL, ("c0",))

    steering = SimpleNamespace(waiting=True, held=False, take=take, done=lambda *what: told.append(what))
    run: Any = SimpleNamespace(_clock=injector._clock, fault_injector=injector)
    assert LiveRun._steered(run, steering, -1)
    for seer in seers:
        seer.join()
    assert told == [(len(PLAN), None)]
    assert sorted(injector.observed) == [len(PLAN) + 1, len(PLAN) + 2]
    assert sorted(journal.rows) == [(len(PLAN) + each, stage) for each in range(3) for stage in FaultStage]


def test_who_orders_a_restart_that_waits_is_told_so(group: Group, injector: LiveFaultInjector) -> None:
    injector.carry_out(0, Fault(1, FaultKind.KILL, ("b1",)))
    injector.host_vanished(1)
    told: list[tuple[int, str | None]] = []
    order = Fault(2, FaultKind.RESTART, ("b1",))
    steering = SimpleNamespace(waiting=True, held=False, take=lambda *_: order, done=lambda *what: told.append(what))
    run: Any = SimpleNamespace(_clock=injector._clock, fault_injector=injector)
    assert LiveRun._steered(run, steering, -1)
    assert told == [(11, "restart b1, whose host is away: that waits for its return")]


@pytest.mark.parametrize("dead", [True, False])
def test_who_finds_a_node_dead_says_so_and_waits_for_no_other_thread(
    monkeypatch: pytest.MonkeyPatch, dead: bool
) -> None:
    """It may be in the middle of a step, for whose end the watch over the hosts waits. A node that answers after all,
    as when its connection broke, is not dead."""

    def get(*_: Any, **__: Any) -> dict[str, Any]:
        if dead:
            raise ray.exceptions.ActorDiedError
        return {}

    monkeypatch.setattr(ray, "get", get)
    places, told = Group().places, list[Any]()
    actors: ActorGroup = object.__new__(ActorGroup)
    known = {"addresses": dict.fromkeys(places), "places": places, "down": {}, "stalled": {}, "on_death": told.append}
    question = SimpleNamespace(remote=lambda *_: None)
    own = {"_deployment": DEPLOYMENT, "_actor_of": {"b1": 0}, "_actors": {0: SimpleNamespace(ask=question)}}
    vars(actors).update(known | own, _watched=True)
    actors._note_death("b1")
    assert told == ([{"b1": places["b1"]}] if dead else [])
