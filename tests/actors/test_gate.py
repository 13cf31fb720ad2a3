"""A node that shares its process is stalled, or slow, and the others of its process go on."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from actors.clock import Clock, Origin
from actors.connection import Connection
from actors.gate import Gate
from actors.live_node import LiveNode
from actors.log_keeper import LogKeeper
from actors.workbench import Workbench
from murmur_pubsub.client import ClientMachine
from murmur_pubsub.event import Event
from murmur_pubsub.faults import FailureDetection, FaultKind
from murmur_pubsub.journal import RowKind
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Effect, Input, Order, Persist, Send, Stored, TimerFired
from reliability.best_effort import Forwarded
from spark_analysis.checked_rows import CheckedRow, CheckedRows
from spark_analysis.fault_checks import FaultCheck, check_faults
from spark_analysis.fault_windows import FaultStep, Window
from tests.actors.net import NUMBERS, Net, connect_raw, run, until
from tests.actors.test_live_node import chain, publish, subscribed

WORK_US = 5_000


class Leaky(Gate):
    """A gate that says that it is shut, and lets everything through."""

    @property
    def shut(self) -> bool:
        return False

    def _shut(self) -> None:
        pass


def checked(net: Net, kind: FaultKind, from_us: int, until_us: int, work_us: int = 0) -> FaultCheck:
    """What the judge says of the fault of b1."""
    names = ("b0", "b1")
    rows = (
        CheckedRow(*(int(row[name]) for name in ("time_us", "node", "source", "sequence", "peer", "kind", "value")))
        for each in names
        for row in net.rows(each)
    )
    step = FaultStep(0, kind, f"{kind.name.lower()} b1", ("b1",), work_us=work_us)
    window = Window(step, from_us, from_us, until_us, until_us, frozenset({"b1"}))
    [check] = check_faults([window], CheckedRows.of(rows), NUMBERS, until_us)
    return check


@pytest.mark.parametrize("gate", [Gate, Leaky])
def test_a_stalled_node_does_nothing_while_the_others_of_its_loop_go_on(tmp_path: Path, gate: type[Gate]) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        await subscribed(net)
        b0, b1, c1 = (net.nodes[name] for name in ("b0", "b1", "c1"))
        b1.gate.__class__ = gate
        b1.gate.stall()
        assert b1.gate.stalled, "what a driver is told"
        before, from_us = len(net.rows("b1")), b1.clock.now_us()
        publish(net, 50)
        await until(lambda: b0.counters.received >= 50)
        for _ in range(20):
            await connect_raw(net, b"rubbish", to="b1")  # strangers find its door open, and nobody behind it
        until_us = b1.clock.now_us()
        silent = len(net.rows("b1")) == before
        b1.gate.resume()
        await until(lambda: c1.counters.delivered == 50)
        check = checked(net, FaultKind.STALL, from_us, until_us)
        assert (silent, check.outcome) == ((True, "took_effect") if gate is Gate else (False, "failed")), check

    run(scenario())


def test_what_waits_for_a_stalled_node_comes_in_its_order_and_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        await subscribed(net)
        b1, c1 = net.nodes["b1"], net.nodes["c1"]
        b1.gate.stall()
        publish(net, 300)
        for _ in range(5):
            await asyncio.sleep(0)
            b1.gate.resume()
            b1.gate.stall()
        await until(lambda: net.nodes["b0"].counters.received >= 300)
        b1.gate.resume()
        await until(lambda: c1.counters.delivered == 300)
        rows = net.rows("c1")
        assert rows[rows["kind"] == RowKind.DELIVER]["sequence"].tolist() == list(range(300))

    run(scenario())


def test_peers_take_a_stalled_node_for_dead_and_it_comes_back(tmp_path: Path) -> None:
    """It answers no heartbeat; and it does not take its own absence for theirs. What it writes before it finds out goes
    nowhere."""

    async def scenario() -> None:
        detection = FailureDetection(heartbeat_us=20_000, timeout_us=60_000, reconnect_us=10_000)
        net = Net(tmp_path)
        await net.add("b0", {"b1": LinkSpec()}, detection=detection)
        await net.add("b1", {"b0": LinkSpec()}, detection=detection)
        b0, b1 = net.nodes["b0"], net.nodes["b1"]
        for name, node in net.nodes.items():
            node.links.addresses = {other: net.address(other) for other in net.nodes if other != name}
            node.links.begin()
        b1.links.dial_always(["b0"])
        await until(lambda: "b1" in b0.connections and "b0" in b1.connections)
        b1.gate.stall()
        b1.gate.enter(lambda: written(b1, Send("b0", Forwarded(Event(0, 0, 0, {"x": 1}), 1, []))))
        before = len(net.rows("b1"))
        await until(lambda: "b1" not in b0.connections)
        assert len(net.rows("b1")) == before
        assert "b0" in b1.connections, "it has not found out"
        b1.gate.resume()
        await until(lambda: net.count("b1", RowKind.LINK_DOWN) == 1 and net.count("b1", RowKind.LINK_UP) == 2)
        await until(lambda: "b1" in b0.connections)
        assert net.count("b0", RowKind.LINK_DOWN) == 1
        written(b1, Send("b0", Forwarded(Event(0, 1, 0, {"x": 1}), 1, [])))
        await until(lambda: b0.counters.received > 0)
        rows = net.rows("b0")
        assert rows[rows["kind"] == RowKind.RECEIVE]["sequence"].tolist() == [1]
        for node in net.nodes.values():
            node.links.end()

    run(scenario())


def test_a_node_that_is_killed_while_it_is_stalled_hears_of_nothing_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        await subscribed(net)
        b1 = net.nodes["b1"]
        b1.gate.stall()
        publish(net, 10)
        await until(lambda: net.nodes["b0"].counters.received >= 10)
        before = len(net.rows("b1"))
        b1.crash()
        b1.gate.resume()
        await until(lambda: "b1" not in net.nodes["b0"].connections)
        assert len(net.rows("b1")) == before

    run(scenario())


def written(node: LiveNode, effect: Effect) -> None:
    """Have the node carry it out, as if its machine had returned it."""
    node.perform([effect], node.clock.now_us())
    node.flush()


# ------------------------------------------------------------------------------------------------- slow
def test_a_slow_node_takes_its_time_for_each_message_and_takes_none_of_the_loops(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        await subscribed(net)
        b1, c1 = net.nodes["b1"], net.nodes["c1"]
        before, turns = b1.counters.received, 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += before < b1.counters.received < before + 20
                await asyncio.sleep(0)

        assert b1.slow_down(WORK_US) == WORK_US
        from_us = b1.clock.now_us()
        publish(net, 20)
        task = asyncio.create_task(turn())
        await until(lambda: c1.counters.delivered == 20)
        task.cancel()
        until_us = b1.clock.now_us()
        assert b1.slow_down(0) == 0
        assert checked(net, FaultKind.SLOW, from_us, until_us, WORK_US).outcome == "took_effect"
        rows = net.rows("c1")
        assert rows[rows["kind"] == RowKind.DELIVER]["sequence"].tolist() == list(range(20))
        assert turns >= 19, "others have a turn at each message"

    run(scenario())


def test_a_node_that_is_not_slowed_down_is_found(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        await subscribed(net)
        b1, c1 = net.nodes["b1"], net.nodes["c1"]
        from_us = b1.clock.now_us()
        publish(net, 200)
        await until(lambda: c1.counters.delivered == 200)
        assert checked(net, FaultKind.SLOW, from_us, b1.clock.now_us(), WORK_US).outcome == "failed"

    run(scenario())


def test_a_stall_of_a_slow_node_lasts_until_it_is_over_and_the_work_goes_on_then(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        await subscribed(net)
        b1, c1 = net.nodes["b1"], net.nodes["c1"]
        before = b1.counters.received
        b1.slow_down(1_000)
        publish(net, 20)
        await until(lambda: b1.counters.received > before)
        b1.gate.stall()
        held = b1.counters.received
        assert held < before + 20
        await asyncio.sleep(0.02)
        assert b1.counters.received == held
        b1.gate.resume()
        await until(lambda: c1.counters.delivered == 20)

    run(scenario())


def test_a_slow_node_does_between_two_messages_what_has_come_up(tmp_path: Path) -> None:
    """Its timers and heartbeats waited until no message did: its peers took it for dead."""

    async def scenario() -> None:
        net = await chain(tmp_path)
        await subscribed(net)
        b1, c1 = net.nodes["b1"], net.nodes["c1"]
        seen: list[int] = []

        async def beat() -> None:
            while True:
                await b1.gate.passed()
                seen.append(c1.counters.delivered)
                await asyncio.sleep(0.001)

        b1.slow_down(WORK_US)
        publish(net, 20)
        task = asyncio.create_task(beat())
        b1.call_at(b1.clock.now_us() + WORK_US, lambda: seen.append(-1 - c1.counters.delivered))
        await until(lambda: c1.counters.delivered == 20)
        task.cancel()
        assert len([number for number in dict.fromkeys(seen) if 0 < number < 20]) >= 10
        assert -10 < min(seen) < 0, "a timer that is due does not wait for all messages"

    run(scenario())


def test_what_waits_at_a_slow_node_is_lost_with_its_link(tmp_path: Path) -> None:
    """It was handed messages of a neighbour that it had been told is none any more."""

    async def scenario() -> None:
        net = await chain(tmp_path)
        await subscribed(net)
        b1 = net.nodes["b1"]
        before = b1.counters.received
        b1.slow_down(WORK_US)
        publish(net, 20)
        await until(lambda: b1.counters.received > before)
        b1.links.leave("b0")
        taken = b1.counters.received
        assert taken < before + 20
        b1.slow_down(0)
        await until(lambda: not b1._workbench.occupied)
        assert b1.counters.received == taken

    run(scenario())


# ------------------------------------------------------------------------------------------ the gate alone
def test_a_timer_that_was_cancelled_while_it_waited_is_none() -> None:
    async def scenario() -> None:
        gate, said = Gate(), list[str]()
        gate.stall()
        handles = {name: gate.call_later(0, _saying(said, name)) for name in "abc"}
        gate.enter(lambda: handles["b"].cancel())
        await until(lambda: len(gate._waiting) == 4)
        gate.resume()
        assert said == ["a", "c"]

    run(scenario())


def test_a_task_passes_once_the_gate_is_open_and_not_before() -> None:
    async def scenario() -> None:
        gate, said = Gate(), list[str]()

        async def passing() -> None:
            await gate.passed()
            said.append("passed")

        gate.stall()
        task = asyncio.create_task(passing())
        await asyncio.sleep(0)
        gate.resume()
        gate.stall()  # before the task has had its turn
        await asyncio.sleep(0)
        assert said == []
        gate.resume()
        await task
        assert said == ["passed"]

    run(scenario())


def _saying(said: list[str], name: str) -> Callable[[], None]:
    return lambda: said.append(name)


class _Worker:
    """Takes messages, and has a full queue when it is told so."""

    def __init__(self) -> None:
        self.clock = Clock(Origin(0), 1.0)
        self.gate = Gate()
        self.full = False
        self.taken: list[int] = []

    def holds_back(self, connection: Connection) -> bool:
        return self.full

    def take_now(self, connection: Connection, bodies: list[Any]) -> None:
        self.taken += bodies
        self.full = len(self.taken) == 1


class _Backlog:
    def __init__(self) -> None:
        self.backlog: list[int] = []


def test_what_goes_back_because_a_queue_is_full_keeps_its_order() -> None:
    async def scenario() -> None:
        worker = _Worker()
        bench, first = Workbench(worker), cast(Connection, _Backlog())
        bench.slow_down(1_000)
        bench.put(first, [1, 2, 3, 4])
        await until(lambda: first.backlog != [])
        assert (worker.taken, first.backlog) == ([1], [2, 3, 4])
        worker.full = False
        bench.put(first, first.backlog)
        bench.slow_down(0)
        assert bench.occupied, "what waits goes first"
        await until(lambda: len(worker.taken) == 4)
        assert worker.taken == [1, 2, 3, 4]
        assert not bench.occupied

    run(scenario())


def test_what_is_safe_on_the_disk_is_told_to_a_stalled_node_when_it_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        net, machine = Net(tmp_path), _Storing()
        b0 = await net.add("b0", {}, machine=machine, keeper=LogKeeper(tmp_path / "b0.sqlite", "b0"))
        b0.take_input(Order(0, "store", []))
        b0.gate.stall()
        await until(lambda: bool(b0.gate._waiting))
        assert machine.stored == 0
        b0.gate.resume()
        assert machine.stored == 1

    run(scenario())


class _Storing(ClientMachine):
    """Keeps a record when it is ordered to."""

    def __init__(self) -> None:
        super().__init__("b1")
        self.stored = 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Order:
            return [Persist(1, b"record")]
        self.stored += type(input) is Stored
        return ()


def test_a_timer_of_a_machine_waits_at_the_gate(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        b1, heard = net.nodes["b1"], list[TimerFired]()
        b1.gate.stall()
        b1.call_at(0, lambda: heard.append(TimerFired(("x",))))
        await until(lambda: bool(b1.gate._waiting))
        assert heard == []
        b1.gate.resume()
        assert len(heard) == 1

    run(scenario())
