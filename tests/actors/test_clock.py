"""The clocks of a run agree, and a node's time never goes back, not even where its host's clock does."""

import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from actors.clock import Clock, Origin, origin_now
from murmur_pubsub.journal import RowKind
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Effect, Input, Machine
from murmur_pubsub.machine_around import MachineAround
from tests.actors.net import Net, run

HOUR_NS = 3_600 * 10**9


def put_back(patch: pytest.MonkeyPatch, by_ns: int) -> None:
    """From now on the wall clock of this host shows that much less."""
    right = time.time_ns
    patch.setattr(time, "time_ns", lambda: right() - by_ns)


@pytest.mark.parametrize("dilation", [1.0, 4.0, 0.25])
def test_a_clock_goes_on_from_a_time_that_lies_before_it_is_made_to(
    monkeypatch: pytest.MonkeyPatch, dilation: float
) -> None:
    origin = Origin(time.time_ns())
    former = Clock(origin, dilation)
    put_back(monkeypatch, HOUR_NS)
    clock = Clock(origin, dilation)
    assert clock.now_us() < 0, "so it would be without a floor"
    floor_us = former.now_us()
    clock.not_before(floor_us)
    now_us = clock.now_us()
    assert floor_us <= now_us <= former.now_us() + 1
    assert clock.now_us() >= now_us


def test_a_clock_that_is_late_enough_is_left_alone() -> None:
    clock = Clock(Origin(time.time_ns() - 10**9), 1.0)
    clock.not_before(500_000)
    assert 1_000_000 <= clock.now_us() < 60_000_000


def test_processes_of_one_host_agree_though_its_wall_clock_is_put_back_between_their_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    origin = origin_now()
    early = Clock(origin, 1.0)
    put_back(monkeypatch, HOUR_NS)
    late = Clock(origin, 1.0)
    began_us, between_us, ended_us = early.now_us(), late.now_us(), early.now_us()
    assert began_us <= between_us <= ended_us


def test_later_nodes_of_another_host_have_the_tie_of_its_first_though_its_wall_clock_is_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    origin = Origin(time.time_ns())
    first = Clock(origin, 1.0)
    put_back(monkeypatch, HOUR_NS)
    later = Clock(origin, 1.0, first.zero_ns)
    assert first.now_us() <= later.now_us() <= first.now_us()
    assert later.zero_ns == first.zero_ns
    later.not_before(first.now_us() + 1_000_000)
    assert later.zero_ns is None, "it is ahead, and nobody else is to be"


@pytest.mark.parametrize("reading", ["time_ns", "monotonic_ns"])
def test_a_process_of_another_host_that_waits_for_a_core_while_it_reads_the_clocks_still_agrees(
    monkeypatch: pytest.MonkeyPatch, reading: str
) -> None:
    right, calls = getattr(time, reading), itertools.count()

    def held_up() -> int:
        told: int = right()
        if next(calls) < 5:
            time.sleep(0.01)
        return told

    origin = Origin(time.time_ns())
    early = Clock(origin, 1.0)
    monkeypatch.setattr(time, reading, held_up)
    late = Clock(origin, 1.0)
    monkeypatch.undo()
    assert abs(late.now_us() - early.now_us()) < 1_000, "as far as the judge lets the clocks of one host be apart"


class Noting(MachineAround):
    """Notes the times that it is handed."""

    def __init__(self, inner: Machine) -> None:
        super().__init__(inner)
        self.handed_us: list[int] = []

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self.handed_us.append(now_us)
        return super().handle(input, now_us)


def test_a_machine_is_handed_nothing_from_before_its_former_incarnation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        net = Net(tmp_path)
        former = await net.add("b0", {"b1": LinkSpec()})
        last_us = former.clock.now_us()
        put_back(monkeypatch, HOUR_NS)
        machine = Noting(former.machine)
        node = await net.add("b0", {"b1": LinkSpec()}, incarnation=1, machine=machine, not_before_us=last_us)
        assert machine.handed_us[0] >= last_us
        assert node.clock.now_us() >= last_us
        starts = net.rows("b0")[net.rows("b0")["kind"] == RowKind.START]["time_us"].tolist()
        assert starts == sorted(starts)

    run(scenario())
