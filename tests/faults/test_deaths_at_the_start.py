"""A process that dies before it has said where its nodes listen: a death like any other, of nodes that were started."""

import os
import signal
from pathlib import Path

import pytest

from murmur_pubsub.machine import Machine, NodeContext
from murmur_pubsub.run_manifest import read_manifest
from murmuration import registry
from murmuration.deployment import build_deployment
from spark_analysis.plain_judge import judge_run
from tests.faults.test_own_deaths import started

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("live_ray")]


def make_where_the_second_dies(context: NodeContext) -> Machine:
    """A broker; the process in which the second incarnation of b1 is made dies of that."""
    if (context.name, context.incarnation) == ("b1", 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return registry.make_broker(context)


@pytest.mark.parametrize("density", [1, 3])
def test_who_dies_before_it_has_answered_has_died_by_itself(
    density: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory = f"{make_where_the_second_dies.__module__}:{make_where_the_second_dies.__name__}"
    monkeypatch.setattr(build_deployment, "BROKER_FACTORY", factory)
    dead = ["b1"] if density == 1 else ["b0", "b2", "b1"]
    with started(tmp_path / "run", density=density) as cluster:
        alice, bob = cluster.clients["alice"], cluster.clients["bob"]
        wanted = bob.subscribe("n >= 0")
        cluster.settle()
        cluster.faults.kill("b1")
        cluster.faults.restart("b1")
        assert [each.nodes for each in cluster._runtime.observed.values()] == [tuple(dead)]
        alice.publish({"n": 0})  # a broker on the way is away
        for name in dead:
            cluster.faults.restart(name)
        cluster.settle()
        alice.publish({"n": 1})
        cluster.wait_for(lambda: {"n": 1} in [each.attributes for each in bob.deliveries(wanted)])
    assert read_manifest(tmp_path / "run").by_themselves == [f"death of {', '.join(dead)}"]
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert judged.numbers["kills_of_processes"] == (2 if density == 1 else 1)
    assert "failed" not in [check.outcome for check in judged.checks]
