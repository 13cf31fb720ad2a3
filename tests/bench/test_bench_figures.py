"""The figures of a cell, of a journal that is small enough to count by hand."""

from dataclasses import replace
from pathlib import Path

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import FaultStage, Phase, RowKind
from murmur_pubsub.run_manifest import FaultEntry, read_manifest, write_manifest
from murmuration.bench.measure import judge_and_measure
from tests.spark.run_folder import RunFolder

SECOND_US = 1_000_000


def test_the_figures_of_four_events_of_which_one_is_lost_and_one_comes_three_times(tmp_path: Path) -> None:
    """Each event goes c0, b0, b1, c1. b1 is stalled from 2.5 s to 3.5 s, and the third is lost meanwhile:
    it counts, since no process was away."""
    built = RunFolder(tmp_path / "run")
    built.phase(0, Phase.SUBSCRIBING)
    built.subscribe("c1", 10, 1, "x >= 0")
    built.settled(500_000, covers_us=10)
    built.phase(600_000, Phase.PUBLISHING)
    for time_us in (700_000, 800_000):  # control messages, which carry no event
        built.row("b0", time_us, RowKind.SEND, "b1", size=40, value=17)
        built.row("b1", time_us + 100, RowKind.RECEIVE, "b0", value=17)
    for number, copies in enumerate((1, 3, 0, 1)):
        at_us = (number + 1) * SECOND_US
        built.publish("c0", at_us, 0, number, {"x": number})
        built.hop("c0", "b0", at_us, at_us + 100, 0, number)
        if copies:
            built.hop("b0", "b1", at_us + 100, at_us + 200, 0, number)
        for copy in range(copies):
            built.hop("b1", "c1", at_us + 200 + copy, at_us + 300 + copy, 0, number)
            built.deliver("c1", at_us + 300 + copy, 0, number, subscriber=1, hops=3)
    for step, kind, time_us in ((0, FaultKind.STALL, 2_500_000), (1, FaultKind.RESUME, 3_500_000)):
        for stage in (FaultStage.ORDERED, FaultStage.IN_EFFECT):
            built.row("driver", time_us, RowKind.FAULT, sequence=step, value=kind, hops=stage)
    built.settled(3_600_000, covers_us=3_550_000)
    built.phase(5 * SECOND_US, Phase.DRAINING)
    built.phase(6 * SECOND_US, Phase.STOPPED)
    run = built.finish()
    stall = FaultEntry("stall b1", FaultKind.STALL, 1_900_000, ("b1",))
    resume = FaultEntry("resume b1", FaultKind.RESUME, 2_900_000, ("b1",))
    write_manifest(run, replace(read_manifest(run), faults=(stall, resume)))
    verdict, figures = judge_and_measure(run)
    counts = ("required", "delivered", "missing", "duplicate", "published")
    assert [verdict[each] for each in counts] == [4, 3, 1, 2, 4]
    assert figures == {
        "delivery_rate": 3 / 4,
        "rate_present": 3 / 4,
        "duplicates": 2 / 3,
        "hops": 3.0,
        "overhead": 4 / 7,
        "delay_p50_us": 300.0,
        "delay_p99_us": 300.0,
        "event_messages": 12 / 4,
        "messages": 14 / 4,
        "message_bytes": (12 * 100 + 2 * 40) / 4,
        "recovery_us": 0,
    }
