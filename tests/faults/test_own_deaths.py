"""What happens to live processes without an order: one that dies is a fault that was seen, one that hangs ends the run
by name, and a clock that is put back takes no machine back."""

import os
import re
import signal
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from actors import actor_group
from actors.processes import await_state
from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import FaultStage, RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.machine import Machine, NodeContext
from murmur_pubsub.protocol_error import ProtocolError
from murmur_pubsub.run_manifest import read_manifest
from murmuration import registry
from murmuration.deployment import build_deployment
from murmuration.harness.cluster import Cluster
from spark_analysis.plain_judge import judge_run

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("live_ray")]
HOUR_NS = 3_600 * 10**9
BROKEN = "tests.conformance.broken_protocols:"


def started(folder: Path, **keys: Any) -> AbstractContextManager[Cluster]:
    chain, ends = {"kind": "chain", "brokers": 3}, {"alice": "b0", "bob": "b2"}
    quick = {"heartbeat": "200 ms", "timeout": "1 s", "reconnect": "50 ms"}
    return Cluster.start(chain, ends, runtime="ray", folder=folder, failure_detection=quick, **keys)


def end_process(cluster: Cluster, name: str) -> None:
    """As the kernel does when memory is short, or a person by hand: murmur is not asked."""
    os.kill(cluster._runtime._run.group.places[name].pid, signal.SIGKILL)  # type: ignore[attr-defined]


def test_a_process_that_dies_by_itself_is_a_fault_and_the_run_goes_on(tmp_path: Path) -> None:
    with started(tmp_path / "run") as cluster:
        alice, bob = cluster.clients["alice"], cluster.clients["bob"]
        wanted = bob.subscribe("n >= 0")
        cluster.settle()
        alice.publish({"n": 0})
        cluster.wait_for(lambda: len(bob.deliveries(wanted)) == 1)
        end_process(cluster, "b1")
        cluster.wait_for(lambda: bool(cluster._runtime.observed))
        alice.publish({"n": 1})
        cluster.settle()
        with pytest.raises(InputError, match="kill b1, which is down then"):
            cluster.faults.kill("b1")
        cluster.faults.restart("b1")
        cluster.settle()
        alice.publish({"n": 2})
        cluster.wait_for(lambda: len(bob.deliveries(wanted)) == 2)
        end_process(cluster, "b1")
        cluster.wait_for(lambda: len(cluster._runtime.observed) == 2)
        cluster.settle()
    manifest = read_manifest(tmp_path / "run")
    assert [(each.text, each.by_itself) for each in manifest.faults] == [
        ("death of b1", True), ("restart b1", False), ("death of b1", True),
    ]  # fmt: skip
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert (judged.numbers["missing"], judged.numbers["explained"]) == (1, 1)
    assert judged.numbers["reason"].endswith("; nobody had ordered the death of b1, the death of b1")
    assert [check.outcome for check in judged.checks] == ["took_effect", "took_effect"]
    rows = read_segment(next((tmp_path / "run" / "journal").glob("faults-*.seg")))[1]
    seen = rows[rows["kind"] == RowKind.FAULT]
    assert seen["sequence"].tolist() == [0, 0, 1, 1, 2, 2]
    assert seen["hops"].tolist() == [FaultStage.ORDERED, FaultStage.IN_EFFECT] * 3
    assert all(numbered["time_us"][0] <= numbered["time_us"][1] for numbered in (seen[:2], seen[2:4], seen[4:]))


def test_an_order_and_a_death_that_another_thread_sees_are_two_steps(tmp_path: Path) -> None:
    with started(tmp_path / "run") as cluster:
        run = cluster._runtime._run  # type: ignore[attr-defined]
        enter, looking = cluster._enter_fault, threading.Thread(target=run.look)

        def enter_late(*what: Any, **keys: Any) -> int:
            step = enter(*what, **keys)
            if not looking.ident:
                looking.start()
                looking.join(1.0)
            return step

        end_process(cluster, "alice")
        await_state(run.group.places["alice"], "gone")
        cluster._enter_fault = enter_late  # type: ignore[method-assign]
        cluster.faults.kill("b1")
        looking.join()
        cluster.settle()
    manifest = read_manifest(tmp_path / "run")
    assert [each.text for each in manifest.faults] == ["kill b1", "death of alice"]
    rows = read_segment(next((tmp_path / "run" / "journal").glob("faults-*.seg")))[1]
    seen = rows[rows["kind"] == RowKind.FAULT]
    about = dict(zip(seen["sequence"].tolist(), seen["node"].tolist(), strict=True))
    assert about == {0: manifest.numbers["b1"], 1: manifest.numbers["alice"]}
    assert len(seen) == 2 * len(about)


def test_a_client_that_dies_by_itself_is_a_fault_too(tmp_path: Path) -> None:
    with started(tmp_path / "run") as cluster:
        wanted = cluster.clients["bob"].subscribe("n >= 0")
        cluster.settle()
        end_process(cluster, "alice")
        cluster.wait_for(lambda: bool(cluster._runtime.observed))
        with pytest.raises(Exception, match="alice is not running"):
            cluster.clients["alice"].publish({"n": 1})
        cluster.faults.restart("alice")
        cluster.settle()
        cluster.clients["alice"].publish({"n": 2})
        cluster.wait_for(lambda: len(cluster.clients["bob"].deliveries(wanted)) == 1)
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers


@pytest.mark.parametrize(
    ("density", "steps"),
    [(1, ("stall", "stall, kill")), (1, ("stall, resume", "kill")), (3, ("kill", "stall, resume"))],
)
def test_a_step_that_finds_its_node_dead_by_itself_is_done_and_the_run_goes_on(
    tmp_path: Path, density: int, steps: tuple[str, ...]
) -> None:
    """What comes before the comma is done before the process dies, which nobody notices before the step."""
    dead = ["b1"] if density == 1 else ["b0", "b1", "b2"]
    with started(tmp_path / "run", density=density) as cluster:
        group = cluster._runtime._run.group  # type: ignore[attr-defined]
        alice, bob = cluster.clients["alice"], cluster.clients["bob"]
        wanted = bob.subscribe("n >= 0")
        cluster.settle()
        for number, step in enumerate(steps, 1):
            *before, last = step.split(", ")
            for each in before:
                getattr(cluster.faults, each)("b1")
            end_process(cluster, "b1")
            await_state(group.places["b1"], "gone")
            getattr(cluster.faults, last)("b1")
            assert len(cluster._runtime.observed) == number
            alice.publish({"n": 0})  # a broker on the way is away
            for name in dead:
                cluster.faults.restart(name)
            cluster.settle()
            alice.publish({"n": number})
            cluster.wait_for(lambda n=number: {"n": n} in [each.attributes for each in bob.deliveries(wanted)])  # type: ignore[misc]
    assert read_manifest(tmp_path / "run").by_themselves == [f"death of {', '.join(dead)}"] * len(steps)
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert judged.numbers["kills_of_processes"] == len(steps), "an actor that died is one process, whoever was in it"
    assert "failed" not in [check.outcome for check in judged.checks]


def test_a_node_that_is_back_before_its_answer_is_looked_at_is_not_taken_for_dead(tmp_path: Path) -> None:
    with started(tmp_path / "run") as cluster:
        group = cluster._runtime._run.group  # type: ignore[attr-defined]
        wanted = cluster.clients["bob"].subscribe("n >= 0")
        look = group._answers

        def look_late(pending: Any) -> Any:
            group._answers = look
            cluster.faults.kill("b0", sigkill=True)
            cluster.faults.restart("b0")
            return look(pending)

        os.kill(group.places["b0"].pid, signal.SIGSTOP)  # the question to it stays open
        group._answers = look_late
        assert sorted(group.status()) == ["alice", "b1", "b2", "bob"]
        assert "b0" in group.in_service
        assert cluster._runtime.observed == {}
        cluster.settle()
        cluster.clients["alice"].publish({"n": 1})
        cluster.wait_for(lambda: len(cluster.clients["bob"].deliveries(wanted)) == 1)
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers


@pytest.mark.parametrize("name", ["Loops", "Sleeps"])
def test_a_machine_that_does_not_come_back_ends_the_run_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(actor_group, "_OVERDUE_S", 1.0)
    monkeypatch.setattr(actor_group, "_OVERDUE_LOOK_S", 1.0)
    protocols = {"routing": "flooding", "reliability": BROKEN + name}
    with started(tmp_path / "run", **protocols) as cluster:
        cluster.clients["alice"].publish({"n": 1}, {"n": 2})
        with pytest.raises(ProtocolError) as caught:
            cluster.advance("1 s")
        cluster._close()
    error = caught.value
    assert (error.node, error.incarnation) == ("b0", 0)
    assert re.match(r"has not come back after \d+ s", error.what)
    assert re.search(rf"broken_protocols\.py:\d+, in {name}\.wrong", error.place or "")
    assert error.input.startswith("Received(source='alice', message=Publication(event=Event(0:1 at")
    assert f"run folder: {tmp_path / 'run'}" in str(error)


def test_a_machine_that_cannot_be_made_is_told_as_one_that_raises(tmp_path: Path) -> None:
    told = r"raised KeyError: 'no such thing'(.|\n)*NotMade.__init__"
    with pytest.raises(ProtocolError, match=told), started(tmp_path / "run", reliability=BROKEN + "NotMade"):
        pass


def test_invariants_that_do_not_hold_are_told_as_well(tmp_path: Path) -> None:
    told = "raised AssertionError: one and one is three"
    with pytest.raises(ProtocolError, match=told), started(tmp_path / "run", reliability=BROKEN + "Inconsistent"):
        pass


def test_a_wrong_value_in_a_live_client_is_the_publishers_mistake(tmp_path: Path) -> None:
    with started(tmp_path / "run") as cluster:
        alice = cluster.clients["alice"]
        with pytest.raises(InputError, match="publication 0:0, attribute 'n': found inf"):
            alice.publish({"n": float("inf")})


def make_on_a_backwards_host(context: NodeContext) -> Machine:
    """A broker; the clock of its host is put back by an hour before its second incarnation starts."""
    if context.incarnation:
        right = time.time_ns
        time.time_ns = lambda: right() - HOUR_NS
    return registry.make_broker(context)


def test_a_clock_that_is_put_back_takes_no_machine_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    factory = "tests.faults.test_own_deaths:make_on_a_backwards_host"
    monkeypatch.setattr(build_deployment, "BROKER_FACTORY", factory)
    with started(tmp_path / "run") as cluster:
        wanted = cluster.clients["bob"].subscribe("n >= 0")
        cluster.settle()
        cluster.faults.kill("b1")
        cluster.faults.restart("b1")
        cluster.settle()
        cluster.clients["alice"].publish({"n": 2})
        cluster.wait_for(lambda: len(cluster.clients["bob"].deliveries(wanted)) == 1)
    rows = [read_segment(path)[1]["time_us"] for path in sorted((tmp_path / "run" / "journal").glob("b1-*.seg"))]
    former, latter = (times[times > 0] for times in rows)
    assert former.max() <= latter.min()
    assert latter.max() < former.max() + 600_000_000, "and nothing is an hour late"
