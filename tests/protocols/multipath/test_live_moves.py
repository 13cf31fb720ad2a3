"""Bridges and moves by hand, on either runtime: live, brokers are really killed. Judged by what they journaled."""

from pathlib import Path

import pytest

from murmuration import Cluster
from spark_analysis.plain_judge import judge_run

PARAMETERS = {"multipath": {"coordinator": "b0", "move_grace": "300 ms", "watch": "300 ms", "round": "2 s"}}


@pytest.mark.parametrize("runtime", ["virtual", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def test_a_bridge_of_two_and_moves_during_kills_lose_nothing_that_is_promised(runtime: str, tmp_path: Path) -> None:
    with Cluster.start(
        {"kind": "chain", "brokers": 6},
        {"alice": "b0", "bob": "b5"},
        routing="multipath",
        parameters=PARAMETERS,
        runtime=runtime,
        links={"delay": "2 ms"},
        datagrams={"delay": "2 ms"},
        failure_detection={"heartbeat": "300 ms", "timeout": "1500 ms", "reconnect": "100 ms"},
        folder=tmp_path / "run",
    ) as cluster:
        alice, bob = cluster.clients["alice"], cluster.clients["bob"]
        for client in (alice, bob):
            client.subscribe("x >= 0")
        cluster.settle()

        def all_hear_all(what: int) -> None:
            had = {client: len(client.deliveries()) for client in (alice, bob)}
            for client in (alice, bob):
                for _ in range(10):
                    client.publish({"x": what})
            cluster.wait_for(lambda: all(len(each.deliveries()) == had[each] + 20 for each in had))

        all_hear_all(0)
        for name in ("b2", "b3"):
            cluster.faults.kill(name, sigkill=True)
        cluster.settle()
        all_hear_all(1)
        for name in ("b2", "b3"):
            cluster.faults.restart(name)
        cluster.settle()
        all_hear_all(2)

        number = cluster.faults.order("move", "b5", "b4", "b2")
        cluster.faults.kill("b3", sigkill=True)
        cluster.wait_for(lambda: cluster.answer(number) is not None, "30 s")
        answer = cluster.answer(number)
        assert answer is not None
        assert answer.refusal == ""
        all_hear_all(3)
        cluster.faults.restart("b3")
        cluster.settle()
        all_hear_all(4)

        # The mover dies in the middle: the move is undone or finished, and the next one goes on.
        cluster.faults.order("move", "b5", "b2", "b1")
        cluster.advance("20 ms")
        cluster.faults.kill("b5", sigkill=True)
        cluster.advance("1 s")
        cluster.faults.restart("b5")
        cluster.settle()
        all_hear_all(5)
        again = cluster.order("move", "b4", "b3", "b1")
        assert again.refusal == ""
        all_hear_all(6)
    pairs = judge_run(tmp_path / "run").pairs
    assert (pairs.duplicate, pairs.spurious) == ([], [])
    assert pairs.missing == []
