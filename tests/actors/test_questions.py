"""How actors are asked how they are: a question costs time, which all of them must not spend at once."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from actors.actor_group import BETWEEN_QUESTIONS_S, ActorGroup
from actors.actor_settings import ActorSettings
from actors.clock import Clock, Origin
from actors.processes import ProcessPlace
from actors.run import LiveRun
from tests.deployments import Shape, random_deployment


class Asked:
    """An actor that answers at once; the question is noted."""

    def __init__(self, log: list[object], clock: Clock) -> None:
        self._log, self._clock = log, clock
        self.ask = self

    def remote(self, what: str, arguments: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        assert what == "status"
        self._log.append(" ".join(arguments))
        return {name: {"failure": None, "now_us": self._clock.now_us()} for name in arguments}


class Counted(Clock):
    """Stands still but for what is waited."""

    def __init__(self) -> None:
        super().__init__(Origin(0), 1.0)
        self.at_us = 0

    def now_us(self) -> int:
        return self.at_us


@pytest.fixture
def log() -> list[object]:
    return []


@pytest.fixture
def group(log: list[object], monkeypatch: pytest.MonkeyPatch) -> ActorGroup:
    return asked_group(log, monkeypatch, ())


def asked_group(log: list[object], monkeypatch: pytest.MonkeyPatch, actors: tuple[tuple[str, ...], ...]) -> ActorGroup:
    clock = Counted()

    def wait(seconds: float) -> None:
        log.append(seconds)
        clock.at_us += int(seconds * 1e6)

    monkeypatch.setattr("actors.actor_group.time.sleep", wait)
    deployment = replace(random_deployment(1, Shape(brokers=3, clients=1)), actors=actors)
    settings = ActorSettings(deployment.settings, "token", "journal", "storage", deployment.numbers, Origin(0), None)
    group = ActorGroup(deployment, settings, clock, ["host"])
    group.addresses = {spec.name: ("127.0.0.1", 1) for spec in deployment.nodes}
    group._actors = dict.fromkeys(range(group.actor_count), Asked(log, clock))
    monkeypatch.setattr(group, "_answer", lambda names, actor, answer: answer)
    return group


def test_one_is_asked_after_the_other(group: ActorGroup, log: list[object]) -> None:
    group.status()
    wait = BETWEEN_QUESTIONS_S
    assert log == ["b0", wait, "b1", wait, "b2", wait, "c0", wait]


def test_nodes_that_share_an_actor_are_asked_together(log: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    group = asked_group(log, monkeypatch, (("b0", "b2"),))
    answers = group.status()
    wait = BETWEEN_QUESTIONS_S
    assert log == ["b0 b2", wait, "b1", wait, "c0", wait]
    assert sorted(answers) == ["b0", "b1", "b2", "c0"]
    assert [group.shares(name) for name in ("b0", "b1", "b2")] == [True, False, True]


def test_a_node_that_is_down_is_not_asked_and_the_others_of_its_actor_are(
    log: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = asked_group(log, monkeypatch, (("b0", "b2"), ("b1", "c0")))
    group.down |= dict.fromkeys(["b2", "b1", "c0"])
    assert list(group.status()) == ["b0"]
    assert [each for each in log if isinstance(each, str)] == ["b0"]


def test_actors_start_in_waves_each_with_all_of_its_nodes(log: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    group = asked_group(log, monkeypatch, (("b0", "b2"),))
    assert group.waves(["b0", "b1", "b2", "c0"], 2) == [["b0", "b1", "b2"], ["c0"]]


def test_a_clock_is_compared_with_the_time_when_its_own_node_was_asked(group: ActorGroup) -> None:
    group.status()
    assert group._ahead_us == dict.fromkeys(["b0", "b1", "b2", "c0"], 0)


@pytest.mark.parametrize(
    ("former_host", "known", "not_before_us", "zero_ns"),
    [("host", {"host": 5}, 0, 5), ("host", {}, 7_040, None), ("elsewhere", {"host": 5}, 7_040, 5)],
    ids=["where it was", "nobody there has said when time began", "on another host"],
)
def test_only_a_node_that_goes_elsewhere_is_kept_ahead_of_what_it_was_handed(
    group: ActorGroup, former_host: str, known: dict[str, int], not_before_us: int, zero_ns: int | None
) -> None:
    """The answer to a question takes its time: a node was put ahead by that with each restart."""
    assert group._arrival("b0").not_before_us == 0
    group._zeros_ns = known
    group._ahead_us["b0"] = 7_000
    group._clock.at_us = 40  # type: ignore[attr-defined]
    group.places["b0"] = ProcessPlace("name", former_host, 1)
    arrival = group._arrival("b0")
    assert (arrival.incarnation, arrival.not_before_us, arrival.zero_ns) == (1, not_before_us, zero_ns)


@pytest.mark.parametrize(
    ("end_us", "ordered_us", "left_alone_us"),
    [(10_000_000, None, 500_000), (200_000, None, 200_000), (0, 10_000_000, 500_000), (10_000_000, 300_000, 300_000)],
    ids=["half a second", "until all is published", "while it is held for orders", "until something is ordered"],
)
def test_a_calm_run_is_left_alone_while_there_is_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch, end_us: int, ordered_us: int | None, left_alone_us: int
) -> None:
    clock = Counted()

    def wait(seconds: float) -> None:
        clock.at_us += int(seconds * 1e6)

    class Orders:
        @property
        def waiting(self) -> bool:
            return ordered_us is not None and clock.at_us >= ordered_us

    monkeypatch.setattr("actors.run.time", SimpleNamespace(monotonic=lambda: clock.at_us / 1e6, sleep=wait))
    run = LiveRun.__new__(LiveRun)
    run._clock, run._steering = clock, None if ordered_us is None else Orders()  # type: ignore[assignment]
    run._leave_alone(end_us)
    assert clock.at_us == left_alone_us


def test_a_run_without_faults_or_orders_is_left_alone_between_two_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_us = played(monkeypatch, unsettled=False)
    assert asked_us == [0, 600_000, 1_200_000, 1_800_000, 2_000_000]


def test_a_run_that_has_something_to_settle_is_asked_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_us = played(monkeypatch, unsettled=True)
    assert asked_us == list(range(0, 2_100_000, 100_000))


def played(monkeypatch: pytest.MonkeyPatch, unsettled: bool) -> list[int]:
    """When the nodes are asked how they are, in a run that publishes for two seconds."""
    clock = Counted()
    asked_us: list[int] = []

    def wait(seconds: float) -> None:
        clock.at_us += int(seconds * 1e6)

    def ask() -> dict[str, Any]:
        asked_us.append(clock.at_us)
        return {}

    monkeypatch.setattr("actors.run.time", SimpleNamespace(monotonic=lambda: clock.at_us / 1e6, sleep=wait))
    monkeypatch.setattr("actors.run._PUBLISH_AFTER_US", 0)
    monkeypatch.setattr(
        "actors.run.FaultThread", lambda *_: SimpleNamespace(start=list, is_alive=lambda: False, failure=None)
    )
    run: Any = LiveRun.__new__(LiveRun)
    run._deployment = SimpleNamespace(settings=SimpleNamespace(time_dilation=1.0), publish_us_min=2_000_000)
    run.group = SimpleNamespace(ask=lambda *_, **__: None, tell=lambda *_: None, scripted=list)
    run.fault_injector = SimpleNamespace(base_us=0)
    run._clock, run._steering, run._watch, run._changing, run._rest_s = clock, None, None, False, 0.1
    run._unsettled, run._look_for_settling = unsettled, lambda _: False
    run._ask_all, run._total = ask, lambda _: {"playing": 0}
    run._publish()
    return asked_us
