"""A node that is stalled while its links are cut, healed or changed is told so before it goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.journal import RowKind
from murmur_pubsub.run_manifest import read_manifest
from murmuration.harness.cluster import Cluster
from spark_analysis.history import read_history
from spark_analysis.plain_judge import judge_run

pytestmark = [
    pytest.mark.ray,
    pytest.mark.usefixtures("live_ray"),
    pytest.mark.parametrize(("runtime", "density"), [("virtual", 1), ("ray", 1), ("ray", 8)]),
]
PATIENT = {"heartbeat": "500 ms", "timeout": "30 s", "reconnect": "50 ms"}
"""Nobody is taken for dead: what has become of a link is only told."""
CLIENTS = {"alice": "b0", "carol": "b0", "bob": "b1", "dave": "b1"}


@contextmanager
def two_brokers(folder: Path, runtime: str, density: int) -> Iterator[Cluster]:
    """All clients want what the others publish; the run is valid, and each fault has taken effect."""
    chain = {"kind": "chain", "brokers": 2}
    with Cluster.start(
        chain, CLIENTS, runtime=runtime, density=density, folder=folder, failure_detection=PATIENT
    ) as cluster:
        for client in cluster.clients.values():
            client.subscribe("n >= 0")
        cluster.settle()
        yield cluster
    judged = judge_run(folder)
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert {check.outcome for check in judged.checks} == {"took_effect"}, judged.checks


def publish(cluster: Cluster, client: str, neighbour: str, *numbers: int) -> None:
    """The client's broker has taken the events: another client there has them."""
    cluster.advance("10 ms")  # not at the very instant of a fault
    cluster.clients[client].publish(*({"n": number} for number in numbers))
    cluster.wait_for(lambda: set(numbers) <= set(delivered(cluster, neighbour)))


def delivered(cluster: Cluster, client: str) -> list[Any]:
    return [delivery.attributes["n"] for delivery in cluster.clients[client].deliveries()]


def has(cluster: Cluster, client: str, *numbers: int) -> None:
    """It gets the last of these events, and had the others and no more."""
    cluster.wait_for(lambda: numbers[-1] in delivered(cluster, client))
    assert delivered(cluster, client) == list(numbers)


def test_a_link_that_heals_while_an_end_is_stalled_comes_up(tmp_path: Path, runtime: str, density: int) -> None:
    with two_brokers(tmp_path / "run", runtime, density) as cluster:
        cluster.faults.cut("b0", "b1")
        cluster.faults.stall("b1")
        cluster.faults.heal("b0", "b1")
        cluster.faults.resume("b1")
        cluster.settle()
        publish(cluster, "alice", "carol", 0)
        has(cluster, "bob", 0)


def test_nothing_passes_a_link_that_is_cut_while_both_ends_are_stalled(
    tmp_path: Path, runtime: str, density: int
) -> None:
    with two_brokers(tmp_path / "run", runtime, density) as cluster:
        for name in ("b0", "b1"):
            cluster.faults.stall(name)
        cluster.faults.cut("b0", "b1")
        for name in ("b0", "b1"):
            cluster.faults.resume(name)
        publish(cluster, "alice", "carol", 0)
        cluster.faults.heal("b0", "b1")
        cluster.settle()
        publish(cluster, "alice", "carol", 1)
        has(cluster, "bob", 1)


def test_what_waits_for_a_stalled_node_does_not_pass_the_cut_that_came_meanwhile(
    tmp_path: Path, runtime: str, density: int
) -> None:
    with two_brokers(tmp_path / "run", runtime, density) as cluster:
        cluster.faults.stall("b1")
        publish(cluster, "alice", "carol", *range(100))
        cluster.faults.cut("b0", "b1")
        cluster.faults.resume("b1")
        publish(cluster, "bob", "dave", 100)
        cluster.faults.heal("b0", "b1")
        cluster.settle()
        publish(cluster, "alice", "carol", 101)
        has(cluster, "bob", 100, 101)


def test_a_link_that_was_cut_and_healed_while_both_ends_were_stalled_is_made_anew(
    tmp_path: Path, runtime: str, density: int
) -> None:
    with two_brokers(tmp_path / "run", runtime, density) as cluster:
        for name in ("b0", "b1"):
            cluster.faults.stall(name)
        cluster.faults.cut("b0", "b1")
        cluster.faults.heal("b0", "b1")
        for name in ("b0", "b1"):
            cluster.faults.resume(name)
        cluster.settle()
        publish(cluster, "alice", "carol", 0)
        has(cluster, "bob", 0)
    ends = [read_manifest(tmp_path / "run").numbers[name] for name in ("b0", "b1")]
    made = [(row.node, row.peer) for row in read_history(tmp_path / "run" / "journal").rows.of(RowKind.LINK_UP)]
    assert [made.count((end, peer)) for end, peer in (ends, ends[::-1])] == [2, 2]


def test_a_link_is_as_it_was_made_while_its_end_was_stalled(tmp_path: Path, runtime: str, density: int) -> None:
    with two_brokers(tmp_path / "run", runtime, density) as cluster:
        cluster.faults.stall("b1")
        cluster.faults.link("b0", "b1", loss=1.0)
        cluster.faults.resume("b1")
        publish(cluster, "bob", "dave", 0, 1, 2)
        cluster.faults.stall("b1")
        cluster.faults.link("b0", "b1")
        cluster.faults.resume("b1")
        publish(cluster, "bob", "dave", 3)
        has(cluster, "alice", 3)


def test_no_datagram_passes_a_partition_that_began_while_a_node_was_stalled(
    tmp_path: Path, runtime: str, density: int
) -> None:
    ring = {"kind": "structured", "brokers": 4, "probe": "300 ms", "probe_timeout": "250 ms"}
    with Cluster.start(
        ring, CLIENTS, "irbr", runtime=runtime, density=density, folder=tmp_path / "run", datagrams={"delay": "1 ms"}
    ) as cluster:
        cluster.settle()
        cluster.faults.stall("b1")
        cluster.advance("600 ms")  # probes wait for it
        cluster.faults.partition(["b1", "bob", "dave"])
        cluster.faults.resume("b1")
        cluster.advance("600 ms")
        cluster.faults.unite()
    assert [check.outcome for check in judge_run(tmp_path / "run").checks] == ["took_effect", "took_effect"]
