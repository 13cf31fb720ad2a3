"""A client that goes to another broker counts for the one where it is."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import FaultStage, Phase, RowKind
from murmur_pubsub.run_manifest import FaultEntry, NodeEntry, RunManifest, read_manifest, write_manifest
from murmuration.bench import measure
from murmuration.zoo.entry import CHAIN
from murmuration.zoo.play import play_in_zoo
from spark_analysis.key_figures import judge_and_measure
from spark_analysis.stays import clients_that_move
from tests.spark.run_folder import RunFolder

MOVED: dict[str, Any] = {
    **CHAIN,
    "name": "moved",
    "broker": {"routing": "cells", "reliability": "durable"},
    "workload": {"kind": "paced", "publishers": {"b0": 1}, "subscribers": {"b3": 1}, "rate_per_s": 50, "seconds": 4},
    "faults": [{"at": "100 ms", "move_client": "c1", "to": "b1"}],
}
"""c1 gets the first five of 200 events at b3, and the others at b1."""


def test_what_is_delivered_after_a_move_was_wanted_at_the_new_broker(tmp_path: Path) -> None:
    run = play_in_zoo(MOVED, tmp_path / "run")
    verdict, figures = judge_and_measure(run)
    assert (verdict["verdict"], verdict["delivered"]) == ("valid", 200)
    assert figures["yield"] == pytest.approx(200 / 210), "five passed b1, and b2"
    overhead = measure.judge_and_measure(run)[1]["overhead"]
    assert overhead == pytest.approx(210 / 411), "also what b0 takes from its own client; one event comes twice to b1"


def test_a_client_is_present_while_the_broker_is_up_where_it_is(tmp_path: Path) -> None:
    """c1 has left b1 when that dies, and gets three of four events at b0."""
    run = RunFolder(tmp_path / "run")
    run.phase(0, Phase.PUBLISHING)
    run.subscribe("c1", 0, 1, "x > 0")
    run.settled(1, 0)
    run.row("c1", 500_000, RowKind.LINK_UP, "b0")
    for stage in (FaultStage.ORDERED, FaultStage.IN_EFFECT):
        run.row("driver", 1_000_000 + stage, RowKind.FAULT, sequence=0, hops=int(stage))
    for number in range(4):
        run.publish("c0", 2_000_000 + number, 0, number, {"x": 1})
        if number:
            run.deliver("c1", 2_000_100 + number, 0, number, 1)
    finished = run.finish()
    killed = FaultEntry("kill b1", FaultKind.KILL, 1_000_000, ("b1",))
    write_manifest(finished, replace(read_manifest(finished), faults=(killed,)))
    assert measure.judge_and_measure(finished)[1]["rate_present"] == 0.75


def test_only_a_client_that_the_plan_gives_a_link_can_have_been_at_two_brokers() -> None:
    clients = [NodeEntry(name, "client", "b0") for name in ("c0", "c1", "c2")]
    faults = [
        FaultEntry(kind.name, kind, nodes=nodes)
        for kind, nodes in (
            (FaultKind.KILL, ("c0",)),
            (FaultKind.DISCONNECT, ("c1", "b0")),
            (FaultKind.CONNECT, ("c1", "b1")),
            (FaultKind.CONNECT, ("b0", "b1")),
        )
    ]
    nodes = (NodeEntry("b0", "broker"), NodeEntry("b1", "broker"), *clients)
    assert clients_that_move(RunManifest("moved", "virtual", 1, "5ea1", nodes, faults=tuple(faults))) == {"c1"}
