"""Faults in virtual time, one by one, on networks small enough to follow."""

from pathlib import Path

import numpy as np
import pytest

from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.errors import RunError
from murmur_pubsub.journal import DropReason, JournalWriter, RowKind
from murmur_pubsub.journal_rows import read_rows, read_segment
from murmur_pubsub.machine import Effect, Input, Machine, Persist, Start, Stored
from murmur_virtual.run import play_virtual
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.deployment.build_deployment import build
from murmuration.harness.cluster import Cluster
from murmuration.scenario.load import check_scenario
from spark_analysis.plain_judge import judge_plainly

CHAIN = {"kind": "chain", "brokers": 3}
ENDS = {"alice": "b0", "bob": "b2"}
DETECTION = {"heartbeat": "100 ms", "timeout": "500 ms", "reconnect": "50 ms"}


def test_what_was_on_a_broken_connection_does_not_arrive_on_the_next(tmp_path: Path) -> None:
    """A slow link has seconds of messages on it when it is cut: they are lost, and none overtakes what comes after."""
    links = {"messages_per_s": 20}
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", links=links, failure_detection=DETECTION) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.clients["alice"].publish(*({"x": number} for number in range(60)))
        cluster.advance("1 s")
        cluster.faults.cut("b1", "b2")
        cluster.advance("100 ms")
        cluster.faults.heal("b1", "b2")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 1_000})
        cluster.wait_for(lambda: cluster.clients["bob"].deliveries()[-1].attributes["x"] == 1_000, within="20 s")
        got = [delivery.attributes["x"] for delivery in cluster.clients["bob"].deliveries()]
    assert got == sorted(got)
    assert 10 < len(got) < 61


def test_a_stalled_broker_goes_on_with_what_came_meanwhile(tmp_path: Path) -> None:
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", failure_detection=DETECTION) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.stall("b1")
        cluster.clients["alice"].publish({"x": 1}, {"x": 2})
        cluster.advance("400 ms")
        assert cluster.clients["bob"].deliveries() == []
        cluster.faults.resume("b1")
        cluster.wait_for(lambda: len(cluster.clients["bob"].deliveries()) == 2)
    assert judge_plainly(tmp_path / "run" / "journal").counts == (0, 0, 0, 0)


def test_a_broker_stalled_for_longer_is_given_up_and_comes_back(tmp_path: Path) -> None:
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", failure_detection=DETECTION) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.stall("b1")
        cluster.advance("1 s")
        cluster.clients["alice"].publish({"x": 1})
        cluster.faults.resume("b1")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 2})
        cluster.wait_for(lambda: len(cluster.clients["bob"].deliveries()) == 1)
        assert cluster.clients["bob"].deliveries()[0].attributes == {"x": 2}


def test_a_client_that_is_down_does_nothing_and_renews_when_it_is_back(tmp_path: Path) -> None:
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", failure_detection=DETECTION) as cluster:
        bob = cluster.clients["bob"]
        bob.subscribe("x >= 0")
        cluster.settle()
        cluster.faults.kill("bob")
        with pytest.raises(RunError, match="bob is not running"):
            bob.publish({"x": 0})
        cluster.faults.restart("bob")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 1})
        cluster.wait_for(lambda: len(bob.deliveries()) == 1)
    assert judge_plainly(tmp_path / "run" / "journal").counts == (0, 0, 0, 0)


def test_who_was_dead_before_its_actor_was_killed_does_not_come_back_with_it(tmp_path: Path) -> None:
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", failure_detection=DETECTION, density=2) as cluster:
        cluster.faults.kill("b0")
        cluster.faults.kill_actor("b1")
        cluster.advance("500 ms")
        cluster.faults.restart_actor("b1")
        cluster.advance("1 s")
    rows = read_rows(tmp_path / "run" / "journal")
    starts = rows[rows["kind"] == RowKind.START]["node"].tolist()
    assert [starts.count(broker) for broker in range(3)] == [1, 2, 1]


def rows_about_links(folder: Path, node: int, peer: int) -> list[tuple[int, int]]:
    """(time, kind) of what the node says of its link to the peer."""
    rows = read_rows(folder / "journal")
    about = np.isin(rows["kind"], (RowKind.LINK_UP, RowKind.LINK_DOWN)) & (rows["node"] == node)
    return [(int(row["time_us"]), int(row["kind"])) for row in rows[about & (rows["peer"] == peer)]]


def test_the_end_of_a_broken_connection_does_not_end_the_one_that_has_come_in_its_place(tmp_path: Path) -> None:
    """What b1 sent is on its way for 300 ms, and its death is seen behind it; b1 is back after 50 ms."""
    links = {"delay": "300 ms"}
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", links=links, failure_detection=DETECTION) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("310 ms")
        cluster.faults.kill("b1")
        cluster.faults.restart("b1")
        cluster.advance("2 s")
    kinds = [kind for _, kind in rows_about_links(tmp_path / "run", 2, 1)]
    assert kinds == [RowKind.LINK_UP, RowKind.LINK_DOWN, RowKind.LINK_UP]


def test_a_host_that_is_lost_is_missed_by_its_heartbeats_and_a_process_that_dies_at_once(tmp_path: Path) -> None:
    with Cluster.start(
        CHAIN, ENDS, folder=tmp_path / "run", failure_detection=DETECTION, hosts=2, placement={"b1": 1}
    ) as cluster:
        lost_us = cluster.now_us
        cluster.faults.lose_host(1)
        cluster.advance("2 s")
        cluster.faults.return_host(1)
        cluster.settle()
        killed_us = cluster.now_us
        cluster.faults.kill("b1")
        cluster.advance("2 s")
    told = rows_about_links(tmp_path / "run", 0, 1)
    downs = [time_us for time_us, kind in told if kind == RowKind.LINK_DOWN]
    assert downs == [lost_us + 500_000, killed_us]


class Logger(Machine):
    """Persists a record for each start, and knows what it was started with."""

    message_types: tuple[type, ...] = ()

    def __init__(self) -> None:
        self.found: list[bytes] = []
        self.stored: list[int] = []

    def handle(self, input: Input, now_us: int) -> tuple[Effect, ...]:
        if type(input) is Start:
            self.found = list(input.records)
            return (Persist(len(self.found), f"start {len(self.found)}".encode()),)
        if type(input) is Stored:
            self.stored.append(input.token)
        return ()

    def check_invariants(self) -> None:
        pass


def test_a_crash_loses_exactly_what_was_not_synced(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "run", 1)
    network = VirtualRuntime(1, writer, {"b0": 0, "driver": 1}, sync_us=2_000)
    first, second, third = Logger(), Logger(), Logger()
    network.add_node(NodeSpec("b0", "broker", "unused:unused"), first)
    network.run(until_us=1_999)
    network.crash("b0")
    network.restart("b0", second)
    assert (first.stored, second.found) == ([], []), "it was not safe yet"
    network.run(until_us=10_000)
    network.crash("b0")
    network.restart("b0", third)
    assert (second.stored, third.found) == ([0], [b"start 0"])
    writer.close()


def test_a_dead_node_writes_nothing_and_messages_to_it_are_drops(tmp_path: Path) -> None:
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", links={"delay": "50 ms"}) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("10 ms")
        cluster.faults.kill("b1")
    rows = read_segment(next((tmp_path / "run" / "journal").glob("*.seg")))[1]
    killed_us = int(rows[rows["kind"] == RowKind.FAULT]["time_us"][0])
    later = rows[(rows["time_us"] > killed_us) & (rows["node"] == 1)]
    assert len(later) == 0
    dropped = rows[rows["kind"] == RowKind.DROP]["value"].tolist()
    assert dropped == [DropReason.NODE_DOWN]


@pytest.mark.parametrize("stalled", ["c0", "b1"], ids=["a publisher", "a broker"])
def test_what_is_stalled_for_good_keeps_no_run_from_settling_and_ending(stalled: str, tmp_path: Path) -> None:
    """Brokers that gossip go on talking to it, and a publisher that stands still has more to publish."""
    scenario = {
        "runtime": "virtual",
        "overlay": {"kind": "chain", "brokers": 3},
        "workload": {"kind": "zipf", "clients": 3, "publishers": 1, "publications": 100, "rate_per_s": 100},
        "broker": {"routing": "multipath"},
        "datagrams": {"delay": "1 ms"},
        "failure_detection": DETECTION,
        "faults": [{"at": "200 ms", "stall": stalled}],
    }
    run = play_virtual(build(check_scenario(scenario, "test")).deployment, tmp_path, lambda *_: None)
    rows = read_segment(next(tmp_path.glob("*.seg")))[1]
    assert run.runtime.now_us < 3_000_000
    assert rows[rows["kind"] == RowKind.SETTLED]["time_us"].max() > 700_000, "the others settle without it"
