"""How actors are asked how they are: a question costs time, which all of them must not spend at once."""

from typing import Any

import pytest

from actors.actor_group import BETWEEN_QUESTIONS_S, ActorGroup
from actors.actor_settings import ActorSettings
from actors.clock import Clock
from tests.deployments import Shape, random_deployment


class Asked:
    """An actor that answers at once; the question is noted."""

    def __init__(self, log: list[object], clock: Clock, name: str) -> None:
        self._log, self._clock, self._name = log, clock, name
        self.status = self

    def remote(self) -> dict[str, Any]:
        self._log.append(self._name)
        return {"failure": None, "now_us": self._clock.now_us()}


class Counted(Clock):
    """Stands still but for what is waited."""

    def __init__(self) -> None:
        super().__init__(0, 1.0)
        self.at_us = 0

    def now_us(self) -> int:
        return self.at_us


@pytest.fixture
def log() -> list[object]:
    return []


@pytest.fixture
def group(log: list[object], monkeypatch: pytest.MonkeyPatch) -> ActorGroup:
    clock = Counted()

    def wait(seconds: float) -> None:
        log.append(seconds)
        clock.at_us += int(seconds * 1e6)

    monkeypatch.setattr("actors.actor_group.time.sleep", wait)
    deployment = random_deployment(1, Shape(brokers=3, clients=1))
    settings = ActorSettings(deployment.settings, "token", "journal", "storage", deployment.numbers, 0, None)
    group = ActorGroup(deployment, settings, clock, ["host"])
    names = [spec.name for spec in deployment.nodes]
    group._actors = {name: Asked(log, clock, name) for name in names}
    monkeypatch.setattr(group, "_answer", lambda name, answer: answer)
    return group


def test_one_is_asked_after_the_other(group: ActorGroup, log: list[object]) -> None:
    group.status()
    wait = BETWEEN_QUESTIONS_S
    assert log == ["b0", wait, "b1", wait, "b2", wait, "c0", wait]


def test_a_clock_is_compared_with_the_time_when_its_own_node_was_asked(group: ActorGroup) -> None:
    group.status()
    assert group._ahead_us == dict.fromkeys(["b0", "b1", "b2", "c0"], 0)
