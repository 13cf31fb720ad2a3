"""A host that goes away and returns by itself in the middle of a plan: which of its nodes come with it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from actors import live_fault_injector
from actors.clock import Clock, Origin
from actors.live_fault_injector import LiveFaultInjector
from murmur_pubsub.faults import Fault, FaultKind
from murmuration.runs.manifest import fault_entry
from tests.deployments import Shape, random_deployment

ON_HOST = ["b1", "b2"]
DEPLOYMENT = replace(random_deployment(1, Shape(brokers=3, clients=1)), hosts=dict.fromkeys(ON_HOST, 1))


class Group:
    """All nodes of the deployment, each with a process of its own. Only one that is down can be brought back."""

    def __init__(self) -> None:
        self.specs = {spec.name: spec for spec in DEPLOYMENT.nodes}
        self.addresses = dict.fromkeys(self.specs, ("127.0.0.1", 1))
        self.places = dict.fromkeys(self.specs, SimpleNamespace(hostname="elsewhere"))
        self.hosts = ["a", "b"]
        self.down: dict[str, None] = {}
        self.stalled: dict[str, list[str]] = {}

    def process_gone(self, names: list[str]) -> None: ...

    def kill(self, name: str) -> None: ...

    def shares(self, name: str) -> bool:
        return False

    def bring_back(self, names: list[str]) -> None:
        for name in names:
            del self.down[name]


@pytest.fixture
def group() -> Group:
    return Group()


@pytest.fixture
def injector(group: Group, monkeypatch: pytest.MonkeyPatch) -> LiveFaultInjector:
    monkeypatch.setattr(live_fault_injector, "await_state", lambda *_: None)
    recorder: Any = SimpleNamespace(fault=lambda *_: None)
    return LiveFaultInjector(DEPLOYMENT, group, Clock(Origin(0), 1.0), recorder, None)  # type: ignore[arg-type]


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
    injector.host_vanished(1, 0)
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
    injector.died(["b1"], 0)
    injector.host_vanished(1, 0)
    injector.host_returned(1, "c")
    assert not group.down
    assert group.hosts == ["a", "c"]


def test_a_host_that_returns_without_any_node_is_no_step(group: Group, injector: LiveFaultInjector) -> None:
    for step, name in enumerate(ON_HOST):
        injector.carry_out(step, Fault(1, FaultKind.KILL, (name,)))
    injector.host_vanished(1, 0)
    injector.host_returned(1, "c")
    assert list(group.down) == ON_HOST
    assert [each.kind for each in injector.observed.values()] == [FaultKind.LOSE_HOST]
    injector.carry_out(2, Fault(2, FaultKind.RESTART, ("b1",)))
    assert list(group.down) == ["b2"]
