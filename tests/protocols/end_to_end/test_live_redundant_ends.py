"""Redundant publishers' brokers on live actors: the one that serves is killed with its disk, and comes back as the
backup, from the log of the other one."""

from pathlib import Path

import pytest

from murmuration import Cluster
from spark_analysis.plain_judge import judge_run

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def test_live_the_backup_takes_over_and_has_all_that_was_accepted(tmp_path: Path) -> None:
    with Cluster.start(
        overlay={"kind": "chain", "brokers": 4},
        clients={"alice": "b0", "bob": "b3"},
        routing="multipath",
        reliability="end_to_end",
        parameters={"end_to_end": {"pubends": ["b0"], "backups": {"b0": ["b1", "b2"]}}},
        runtime="ray",
        datagrams={"delay": "1 ms"},
        drain={"limit": "6 s"},
        failure_detection={"heartbeat": "200 ms", "timeout": "2 s", "reconnect": "50 ms"},
        folder=tmp_path / "run",
    ) as cluster:
        alice, bob = (cluster.clients[name] for name in ("alice", "bob"))
        bob.subscribe("x >= 0")
        cluster.settle()
        alice.publish(*({"x": number} for number in range(50)))
        cluster.wait_for(lambda: len(bob.deliveries()) == 50)
        cluster.faults.kill("b0", sigkill=True, disk_lost=True)
        cluster.faults.disconnect("alice", "b0")
        cluster.faults.connect("alice", "b1")
        alice.publish(*({"x": number} for number in range(50, 100)))
        cluster.wait_for(lambda: len(bob.deliveries()) == 100)
        cluster.faults.restart("b0")
        cluster.faults.disconnect("alice", "b1")
        cluster.faults.connect("alice", "b0")
        alice.publish(*({"x": number} for number in range(100, 150)))
        cluster.wait_for(lambda: len(bob.deliveries()) == 150)
        cluster.advance("3 s")
        cluster.faults.kill("b1", sigkill=True)
        alice.publish(*({"x": number} for number in range(150, 200)))
        cluster.wait_for(lambda: len(bob.deliveries()) == 200)
        cluster.drain()
        assert [each.sequence for each in bob.deliveries()] == list(range(200))
    numbers = judge_run(tmp_path / "run").numbers
    assert numbers["verdict"] == "valid", numbers["reason"]
    assert (numbers["required"], numbers["missing"], numbers["duplicate"], numbers["explained"]) == (200, 0, 0, 0)
