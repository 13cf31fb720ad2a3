"""Uniform total order (the paper's abstract): all subscribers see the events of all pubends in one order."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings

from murmur_pubsub.run_manifest import read_manifest
from murmuration.harness.cluster import Cluster
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from reliability.gryphon.messages import Silence
from spark_analysis.plain_judge import judge_journal, judge_run
from tests.protocols.gryphon.bench import Bench, Parcel
from tests.protocols.gryphon.planted_bugs import ORDER_BUGS
from tests.protocols.gryphon.test_schedules import GRYPHON, holds
from tests.schedules import examples, play, schedules

TOTAL = {**GRYPHON, "parameters": {"gryphon": {"order": "total"}}}
OVERLAYS = ("cells", "chain", "star")
READERS = ("left", "middle", "right")


def _chain(**parameters: Any) -> Any:
    return Cluster.start(
        overlay={"kind": "chain", "brokers": 3},
        clients={"a": "b0", "b": "b2", "left": "b0", "middle": "b1", "right": "b2"},
        links={"delay": "20 ms"},
        client_links={"delay": "1 ms"},
        routing="cells",
        reliability="gryphon",
        parameters={"gryphon": parameters},
    )


def _got(cluster: Any) -> Mapping[str, list[tuple[int, int]]]:
    return {name: [(each.publisher, each.sequence) for each in cluster.clients[name].deliveries()] for name in READERS}


def _play(cluster: Any) -> Mapping[str, list[tuple[int, int]]]:
    """Two publishers at the ends of a chain publish alternately: each end hears its own first."""
    for name in READERS:
        cluster.clients[name].subscribe("x >= 0")
    cluster.settle()
    for number in range(20):
        cluster.clients["ab"[number % 2]].publish({"x": number})
        cluster.advance("3 ms")
    cluster.drain()
    return _got(cluster)


def test_subscribers_at_both_ends_see_one_order_by_ticks() -> None:
    with _chain(order="total") as cluster:
        got = _play(cluster)
    assert len(got["left"]) == 20
    assert got["left"] == got["middle"] == got["right"]


def test_without_it_each_end_sees_its_own_publisher_first() -> None:
    with _chain() as cluster:
        got = _play(cluster)
    assert sorted(got["left"]) == sorted(got["right"])
    assert got["left"] != got["right"]


def test_a_single_event_waits_for_pubends_that_never_publish_and_comes() -> None:
    """A subend that others wait for is curious, and its pubend answers with silence."""
    with _chain(order="total") as cluster:
        cluster.clients["right"].subscribe("x >= 0")
        cluster.settle()
        cluster.clients["a"].publish({"x": 1})
        cluster.advance("1 s")
        assert len(cluster.clients["right"].deliveries()) == 1


def test_while_a_pubends_broker_is_away_others_wait_and_nothing_is_lost() -> None:
    with _chain(order="total") as cluster:
        for name in READERS:
            cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.kill("b0")
        for number in range(5):
            cluster.clients["b"].publish({"x": number})
            cluster.advance("100 ms")
        cluster.advance("2 s")
        assert cluster.clients["right"].deliveries() == []
        cluster.faults.restart("b0")
        cluster.drain()
        got = _got(cluster)
        assert len(got["right"]) == 5
        assert got["middle"] == got["right"]
        folder = cluster.folder
    assert judge_run(folder).numbers["verdict"] == "valid"


def test_a_broker_that_was_forgotten_holds_nobody_up() -> None:
    with _chain(order="total") as cluster:
        for name in READERS:
            cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.kill("b0")
        cluster.clients["b"].publish({"x": 1})
        cluster.advance("2 s")
        assert cluster.clients["right"].deliveries() == []
        cluster.faults.order("forget", "b1", "b0")
        cluster.advance("3 s")
        assert len(cluster.clients["right"].deliveries()) == len(cluster.clients["middle"].deliveries()) == 1


@examples(8, 100)
def test_schedules_leave_one_order(examples: int) -> None:
    drawn = given(schedules(TOTAL, overlays=OVERLAYS, losses=(0.0, 0.1, 0.3)))
    settings(max_examples=examples)(drawn(holds))()


@pytest.mark.parametrize("bug", [pytest.param(bug, id=name) for name, bug in ORDER_BUGS.items()])
def test_a_planted_bug_is_found(bug: str) -> None:
    """The first one leaves no order, the second one loses what would come too late to keep it."""

    def shows(data: dict[str, Any]) -> bool:
        return play(data).judgement.numbers["finding"] in ("missing", "out_of_order")

    found = find(
        schedules({**TOTAL, "reliability": bug}, overlays=OVERLAYS, kinds=(), faults_max=0),
        shows,
        settings=settings(max_examples=300, phases=[Phase.generate], derandomize=True, deadline=None),
    )
    assert shows(found)


def test_what_is_for_nobody_here_is_acknowledged_though_another_pubend_fell_silent_unheard() -> None:
    """Nobody waits for an event there, so nobody asks the other pubend; the log would be kept for good."""
    bench = Bench(order="total", pubends={"p": 2})
    bench.subscribe("s", 1, "x > 5")
    bench.subscribe("t", 2, "x < 5")

    def silence_of_the_other(parcel: Parcel) -> bool:
        return parcel.to == "s" and type(parcel.message) is Silence and parcel.message.pubend != 0

    bench.publish("p", 0, 0, 1)
    bench.pass_time(2_500, silence_of_the_other)
    assert bench.delivered == {1: [], 2: [(0, 0)]}
    bench.pass_time(20_000)
    assert not bench.stream("p").knowledge.messages
    assert not bench.waits("p")


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("live_ray")
@pytest.mark.parametrize("order", ["total", "publisher"])
def test_live_subscribers_see_one_order_though_a_broker_between_them_is_killed(order: str, tmp_path: Path) -> None:
    """Judged by the promise of the total order, also where the brokers keep that of each publisher alone."""
    scenario = {
        "name": "live-order", "seed": 3, "runtime": "ray", "recovery_limit": "20 s",
        "overlay": {
            "kind": "cells", "cells": {"p": ["p0"], "m": ["ma", "mb"], "s": ["s0"], "t": ["t0"]},
            "links": [["p", "m"], ["m", "s"], ["m", "t"]],
        },
        "workload": {
            "kind": "zipf", "clients": 6, "publishers": 3, "subscribers_per_actor": 1, "publications": 240,
            "rate_per_s": 40, "matching_rate": 0.6,
        },
        "broker": {"routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"order": order}}},
        "links": {"delay": "5 ms"},
        "faults": [{"at": "2 s", "kill": "ma", "for": "1 s"}],
    }  # fmt: skip
    run = execute(check_scenario(scenario, "test"), tmp_path / "run", lambda *_: None)
    manifest = read_manifest(run.folder)
    promised = dataclasses.replace(manifest, promise=dataclasses.replace(manifest.promise, order="total"))
    judgement = judge_journal(promised, run.folder / "journal")
    assert judgement.numbers["required"] > 400
    assert (judgement.numbers["verdict"] == "valid") is (order == "total"), judgement.numbers["reason"]
