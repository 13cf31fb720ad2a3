"""A broker that was given up by an order, and a subscription that settled without it: a run folder built row by row."""

from dataclasses import replace
from pathlib import Path

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import FaultStage, Phase, RowKind
from murmur_pubsub.promise import Promise
from murmur_pubsub.run_manifest import FaultEntry, read_manifest, write_manifest
from spark_analysis.plain_judge import judge_run
from tests.spark.run_folder import RunFolder

FORGOTTEN = FaultEntry("forget b0", FaultKind.ORDER, 1_000_000, ("b1",), given_up=("b0",))


def settled_without_b0(folder: Path) -> Path:
    """b1 is told to forget b0, where c0 publishes, before c1 subscribes. c1 gets all but c0's first event."""
    run = RunFolder(folder, promise=Promise("exactly_once"))
    run.phase(0, Phase.PUBLISHING)
    run.settled(1, 0)
    run.row("driver", 1_000_000, RowKind.FAULT, sequence=0, hops=int(FaultStage.ORDERED))
    run.row("b1", 1_000_100, RowKind.ANSWER, sequence=0, value=0)
    run.subscribe("c1", 2_000_000, 1, "x > 0")
    run.settled(2_100_000, 2_050_000)
    for number in range(4):
        time_us = 3_000_000 + number * 100_000
        run.publish("c0", time_us, 0, number, {"x": 1})
        if number:
            run.deliver("c1", time_us + 5, 0, number, 1)
    run.phase(60_000_000, Phase.STOPPED)
    finished = run.finish()
    manifest = read_manifest(finished)
    write_manifest(finished, replace(manifest, faults=(FORGOTTEN,), recovery_limit_us=30_000_000))
    return finished


def test_a_subscription_may_settle_without_what_a_forgotten_broker_publishes(tmp_path: Path) -> None:
    judgement = judge_run(settled_without_b0(tmp_path / "run"))
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    assert (judgement.numbers["missing"], judgement.numbers["explained"]) == (1, 1)
