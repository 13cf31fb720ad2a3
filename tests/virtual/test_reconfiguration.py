"""Links that come and go, brokers that join, orders to brokers: in virtual time, by a scenario and by hand."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.machine import Answer, Effect, Input, NodeName, Order, SetTimer, TimerFired
from murmur_pubsub.promise import Promise
from murmuration import Cluster
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import check_scenario
from reliability.best_effort import BEST_EFFORT, BestEffort
from routing.forwarding import FORWARDING, SubscriptionForwarding
from routing.router import Hop
from spark_analysis.plain_judge import Judgement, judge_run

CHAIN = {"kind": "chain", "brokers": 4}
ENDS = {"alice": "b0", "bob": "b3"}


class Told(BestEffort):
    """Best effort that can be told to swap two brokers, at its leisure, and to rest, which it will not."""

    orders = {"swap": ("with", "by"), "rest": ()}

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Order and input.verb == "rest":
            return (Answer(input.number, "there is no rest"),)
        if type(input) is Order:
            return (SetTimer(("reliability", f"{input.number} {' '.join(input.arguments)}"), 100_000),)
        if type(input) is TimerFired:
            number, *names = str(input.key[1]).split()
            return (Answer(int(number), "" if names == ["b1", "b2"] else f"swapped with {names}"),)
        return super().handle(input, now_us)


class Retiring(SubscriptionForwarding):
    """Can be told to retire: then it passes nothing on."""

    orders = {"retire": ()}
    retired = False

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Order:
            self.retired = True
            return (Answer(input.number),)
        return super().handle(input, now_us)

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        return () if self.retired else super().next_hops(event, came_from, header)


RETIRING = dataclasses.replace(FORWARDING, make=Retiring, orders=Retiring.orders, gives_up={"retire": ""})
BOASTFUL = dataclasses.replace(BEST_EFFORT, name="boastful", guarantee=Promise("exactly_once"))
MULTIPATH = {"broker": {"routing": "multipath"}, "datagrams": {"delay": "1 ms"}}
TOLD = "tests.virtual.test_reconfiguration:Told"
OWN = {"routing": "docs.examples.own_protocol:EVERY_LINK", "reliability": "docs.examples.own_protocol:FIRST_TIME_ONLY"}


def judged(cluster: Cluster) -> Judgement:
    cluster.end()
    return judge_run(cluster.folder)


def got(cluster: Cluster, client: str = "bob") -> list[Any]:
    return [each.attributes["x"] for each in cluster.clients[client].deliveries()]


# --------------------------------------------------------------------------------------------------- links
@pytest.mark.parametrize("datagrams", [{}, {"datagrams": {"delay": "1 ms"}}])
def test_what_is_disconnected_and_connected_otherwise_goes_the_new_way(tmp_path: Path, datagrams: Any) -> None:
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", links={"delay": "5 ms"}, **datagrams) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 0})
        cluster.advance("100 ms")
        cluster.faults.disconnect("b1", "b2")
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("100 ms")
        cluster.faults.connect("b0", "b3", delay="50 ms")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 2})
        cluster.advance("1 s")
        assert got(cluster) == [0, 2]
        last = cluster.clients["bob"].deliveries()[-1]
        assert (last.hops, last.delivered_us > cluster.now_us - 960_000) == (1, True)
        verdict = judged(cluster)
    assert verdict.numbers["verdict"] == "valid"
    assert verdict.pairs.missing == [((0, 1), 0)]
    (excuse,) = verdict.excused.values()
    assert excuse.text == "disconnect b1-b2 (step 1): no path was left"
    assert [(check.outcome, check.seen) for check in verdict.checks] == [
        ("took_effect", "2 of its ends saw it go"),
        ("took_effect", "2 of its ends saw it come up"),
    ]


@pytest.mark.parametrize("datagrams", [{}, {"datagrams": {"delay": "1 ms"}}])
def test_what_is_on_a_link_that_is_taken_away_is_lost_even_if_it_is_there_again_at_once(
    tmp_path: Path, datagrams: Any
) -> None:
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", links={"delay": "50 ms"}, **datagrams) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 0})
        cluster.advance("70 ms")  # it is on its way from b1 to b2
        cluster.faults.disconnect("b2", "b1")
        cluster.faults.connect("b1", "b2")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("1 s")
        assert got(cluster) == [1]
        verdict = judged(cluster)
    assert verdict.numbers["verdict"] == "valid"
    (excuse,) = verdict.excused.values()
    assert excuse.text.startswith("disconnect b2-b1 (step 1)")


def test_a_loss_beside_a_link_that_was_taken_away_is_not_excused_by_it(tmp_path: Path) -> None:
    """The judge knows the overlay at each time: on the way that there is now nothing was broken."""
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", links={"loss": 0.2}, seed=2) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.disconnect("b1", "b2")
        cluster.faults.connect("b0", "b2")
        cluster.settle()
        cluster.advance("1 s")
        for number in range(40):
            cluster.clients["alice"].publish({"x": number})
        cluster.advance("1 s")
        verdict = judged(cluster)
    assert verdict.numbers["verdict"] == "invalid"
    assert len(verdict.left("missing")) == len(verdict.pairs.missing) > 5


def test_a_guarantee_holds_for_what_was_on_a_part_that_is_joined_again_in_time(tmp_path: Path) -> None:
    """Best effort that promises more: what it loses is excused only while no link led to the subscriber."""
    boastful: dict[str, Any] = {"reliability": "tests.virtual.test_reconfiguration:BOASTFUL", "recovery_limit": "3 s"}
    with Cluster.start(CHAIN, ENDS, folder=tmp_path / "run", **boastful) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.disconnect("b1", "b2")
        cluster.clients["alice"].publish({"x": 0})
        cluster.advance("4 s")
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("1 s")
        cluster.faults.connect("b0", "b2")
        cluster.settle()
        cluster.advance("3 s")
        cluster.clients["alice"].publish({"x": 2})
        cluster.advance("4 s")
        verdict = judged(cluster)
    assert verdict.pairs.missing == [((0, 0), 0), ((0, 1), 0)]
    assert verdict.left("missing") == [((0, 1), 0)]
    assert verdict.excused["missing", ((0, 0), 0)].text == "the overlay was in parts: no path was left"


def test_a_broker_joins_by_a_link_and_serves_its_clients(tmp_path: Path) -> None:
    clients = {"alice": "b0", "carol": "new"}
    with Cluster.start(CHAIN, clients, folder=tmp_path / "run", newcomers=["new"]) as cluster:
        cluster.clients["carol"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.join("new", "b2")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("1 s")
        assert got(cluster, "carol") == [1]
        assert judged(cluster).numbers["verdict"] == "valid"


# -------------------------------------------------------------------------------------------------- orders
def test_an_order_is_answered_and_a_refusal_is_an_answer(tmp_path: Path) -> None:
    with Cluster.start(CHAIN, ENDS, reliability=TOLD, folder=tmp_path / "run") as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        assert cluster.order("swap", "b0", "b1", "b2") == Answer(0)
        assert cluster.order("swap", "b0", "b2", "b1") == Answer(1, "swapped with ['b2', 'b1']")
        number = cluster.faults.order("rest", "b1")
        assert cluster.answer(number) == Answer(2, "there is no rest")
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("10 ms")
        cluster.faults.order("swap", "b2", "b1", "b2")
        cluster.faults.kill("b2")
        verdict = judged(cluster)
    assert [(check.fault, check.outcome, check.seen) for check in verdict.checks[:4]] == [
        ("swap b0 with b1 by b2 (step 1)", "took_effect", "carried out after 0.10 s"),
        ("swap b0 with b2 by b1 (step 2)", "not_exercised", "refused after 0.10 s"),
        ("rest b1 (step 3)", "not_exercised", "refused after 0.00 s"),
        ("swap b2 with b1 by b2 (step 4)", "not_exercised", "no answer"),
    ]
    assert verdict.numbers["verdict"] == "valid"


@pytest.mark.parametrize(
    ("given", "place", "found", "allowed"),
    [
        (("rest", "b9"), "faults.rest", "'b9'", "a node of the run"),
        (("rest", "alice"), "faults.rest", "rest alice", "an order to a broker"),
        (("rest", "b1", "b2"), "faults.rest", "1 further names", "none"),
        (("swap", "b1", "b2"), "faults.swap", "1 further names", "with, by"),
        (("dance", "b1"), "faults.order", "'dance'", "what the protocols know: swap, rest"),
    ],
)
def test_an_order_that_cannot_be_given_is_refused_by_name(
    tmp_path: Path, given: Sequence[str], place: str, found: str, allowed: str
) -> None:
    start = Cluster.start(CHAIN, ENDS, reliability=TOLD, folder=tmp_path / "run")
    with start as cluster, pytest.raises(InputError) as error:
        cluster.faults.order(*given)
    assert (error.value.place, error.value.found) == (place, found)
    assert error.value.allowed.startswith(allowed)


@pytest.mark.parametrize(("away", "at"), [("b3", "b2"), ("b1", "b0")])
def test_after_an_order_a_loss_is_excused_by_whatever_broker_was_away(tmp_path: Path, away: str, at: str) -> None:
    """The judge does not know any more which way an event goes; what settled without a broker has not got it back."""
    with Cluster.start(CHAIN, {"alice": at, "bob": "b3"}, reliability=TOLD, folder=tmp_path / "run") as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 0})
        cluster.order("swap", "b0", "b1", "b2")
        cluster.faults.kill(away)
        cluster.advance("2 s")
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("2 s")
        verdict = judged(cluster)
    assert verdict.pairs.missing == [((0, 1), 0)]
    assert verdict.left("missing") == []


def test_after_an_order_a_client_elsewhere_that_is_away_excuses_no_loss(tmp_path: Path) -> None:
    clients = {**ENDS, "eve": "b1"}
    with Cluster.start(CHAIN, clients, reliability=TOLD, folder=tmp_path / "run", links={"loss": 0.3}) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.order("swap", "b0", "b1", "b2")
        cluster.faults.kill("eve")
        cluster.advance("2 s")
        for number in range(20):
            cluster.clients["alice"].publish({"x": number})
        cluster.advance("2 s")
        verdict = judged(cluster)
    assert len(verdict.left("missing")) == len(verdict.pairs.missing) > 5


@pytest.mark.parametrize("away", ["dead", "cut off"])
def test_nothing_is_promised_at_a_broker_that_was_given_up_until_it_starts_again(tmp_path: Path, away: str) -> None:
    """Guaranteed delivery is excused by nothing else for a client that was connected to its broker all the time."""
    cells = {"p": ["p1"], "m": ["b1", "b2"], "s": ["s1"], "t": ["s2"]}
    overlay = {"kind": "cells", "cells": cells, "links": [["p", "m"], ["m", "s"], ["m", "t"]]}
    clients = {"alice": "p1", "bob": "s1", "carol": "s2"}
    guaranteed: dict[str, Any] = {"routing": "cells", "reliability": "gryphon", "recovery_limit": "5 s"}
    with Cluster.start(overlay, clients, folder=tmp_path / "run", **guaranteed) as cluster:
        for name in ("bob", "carol"):
            cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        cluster.advance("1 ms")
        if away == "dead":
            cluster.faults.kill("s1")
        else:
            cluster.faults.cut("b1", "s1")
            cluster.faults.cut("b2", "s1")
        for number in range(10):
            cluster.clients["alice"].publish({"x": number})
        cluster.advance("2 s")
        assert cluster.order("forget", "b1", "s1").refusal == ""
        assert cluster.order("forget", "b1", "b1").refusal != ""
        cluster.advance("4 s")  # with the 2 s before, longer than the limit: what comes later excuses nothing
        if away == "cut off":
            cluster.faults.heal("b1", "s1")
            cluster.faults.heal("b2", "s1")
            cluster.advance("1 s")
            cluster.faults.kill("s1")
        cluster.faults.restart("s1")
        cluster.settle()
        cluster.advance("6 s")
        for number in range(10):
            cluster.clients["alice"].publish({"x": 100 + number})
        cluster.advance("2 s")
        assert got(cluster) == list(range(100, 110))
        assert len(got(cluster, "carol")) == 20
        verdict = judged(cluster)
    assert (verdict.numbers["verdict"], len(verdict.excused)) == ("valid", 10)
    if away == "cut off":
        text = "forget b1 broker s1 (step 3): nothing is promised at that broker"
        assert {excuse.text for excuse in verdict.excused.values()} == {text}
    assert [check.outcome for check in verdict.checks if check.fault.startswith("forget")] == [
        "took_effect",
        "not_exercised",
    ]


def test_what_is_published_at_a_broker_that_retired_may_be_missing_and_what_passes_it_may_not(tmp_path: Path) -> None:
    routing = "tests.virtual.test_reconfiguration:RETIRING"
    clients = {"alice": "b0", "dora": "b1", "bob": "b3"}
    with Cluster.start(CHAIN, clients, routing=routing, folder=tmp_path / "run") as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 0})
        cluster.advance("2 s")
        assert cluster.order("retire", "b1").refusal == ""
        cluster.clients["alice"].publish({"x": 1})
        cluster.clients["dora"].publish({"x": 2})
        cluster.advance("2 s")
        cluster.faults.kill("b1")
        cluster.faults.restart("b1")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 3})
        cluster.clients["dora"].publish({"x": 4})
        cluster.advance("2 s")
        assert sorted(got(cluster)) == [0, 3, 4]
        verdict = judged(cluster)
    assert verdict.pairs.missing == [((0, 1), 0), ((1, 0), 0)]
    assert verdict.left("missing") == [((0, 1), 0)]
    assert verdict.excused["missing", ((1, 0), 0)].text == "retire b1 (step 1): nothing is promised at that broker"


# ------------------------------------------------------------------------------------------------ scenarios
def scenario(*faults: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": "reconfigured",
        "runtime": "virtual",
        "overlay": CHAIN,
        "workload": {"kind": "by_hand", "clients": ENDS},
        "faults": [{"at": f"{number} s", **fault} for number, fault in enumerate(faults)],
        **more,
    }


def test_entries_become_steps_with_what_undoes_them() -> None:
    told = {"broker": {"reliability": TOLD}, "newcomers": ["b7"], "links": {"delay": "7 ms"}}
    entries = (
        {"disconnect": ["b1", "b2"], "for": "10 s"},
        {"connect": ["b0", "b3"], "loss": 0.5, "for": "2 s"},
        {"link": ["b3", "b0"], "delay": "1 ms"},
        {"swap": "b2", "with": "b1", "by": "b2"},
        {"join": "b7", "to": "b1"},
    )
    plan = build(check_scenario(scenario(*entries, **told), "test")).deployment
    assert plan.start_down == {"b7"}
    assert [(fault.time_us // 1_000_000, str(fault)) for fault in plan.faults] == [
        (0, "disconnect b1-b2"),
        (1, "connect b0-b3"),
        (2, "change link b3-b0"),
        (3, "disconnect b0-b3"),
        (3, "swap b2 with b1 by b2"),
        (4, "connect b7-b1"),
        (4, "restart b7"),
        (10, "connect b1-b2"),
    ]
    links = [fault.link for fault in plan.faults if fault.kind in (FaultKind.CONNECT, FaultKind.CHANGE_LINK)]
    assert [(link.loss, link.delay.low_us) for link in links if link is not None] == [
        (0.5, 7_000), (0.5, 1_000), (0.0, 7_000), (0.0, 7_000),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("faults", "key", "found", "allowed"),
    [
        (
            ({"connect": ["b0", "b2"]},),
            "faults.0",
            "connect b0-b2, which closes a cycle by b0, b1, b2",
            "two brokers without a way",
        ),
        (
            ({"connect": ["b0", "b1"]},),
            "faults.0",
            "connect b0-b1, which are connected then",
            "two brokers without a link",
        ),
        (
            ({"disconnect": ["b0", "b2"]},),
            "faults.0",
            "disconnect b0-b2, which are not connected then",
            "two brokers with a link",
        ),
        (({"connect": ["b0", "bob"]},), "faults.0", "connect b0-bob, which are not two brokers", "two of b0, b1"),
        (({"connect": ["b0", "b0"]},), "faults.0", "connect b0-b0, which are not two brokers", "two of b0, b1"),
        (({"connect": "b0"},), "faults.0.connect", "'b0'", "the names of the two ends"),
        (({"connect": ["b0", "b9"]},), "faults.0", "'b9'", "a node of the run"),
        (({"disconnect": ["b0", "b1"]}, {"connect": ["b0", "b3"], "weight": 3}), "faults.1", "{'weight': 3}", "weight"),
        (({"disconnect": ["b0", "b1"]}, {"cut": ["b0", "b1"]}), "faults.1", "a link b0-b1", "two nodes with a link"),
        (
            ({"stall": "b0"}, {"disconnect": ["b0", "b1"]}),
            "faults.1",
            "disconnect b0-b1, one of which is stalled then",
            "brokers that run",
        ),
        (
            ({"stall": "b1"}, {"disconnect": ["b0", "b1"]}),
            "faults.1",
            "disconnect b0-b1, one of which is stalled then",
            "brokers that run",
        ),
        (
            ({"partition": [["b0"]]}, {"disconnect": ["b0", "b1"]}),
            "faults.1",
            "disconnect b0-b1, during a partition",
            "changes of the overlay",
        ),
        (
            ({"cut": ["b0", "b1"], "for": "5 s"}, {"disconnect": ["b0", "b1"]}),
            "faults.0",
            "a link b0-b1",
            "two nodes with a link",
        ),
        (
            ({"disconnect": ["b0", "b1"], "for": "5 s"}, {"connect": ["b0", "b3"]}),
            "faults.0",
            "connect b0-b1, which closes a cycle",
            "two brokers without a way",
        ),
        (({"join": "b0", "to": "b3"},), "faults.0", "connect b0-b3, which closes a cycle", "two brokers without a way"),
        (({"join": "b9", "to": "b3"},), "faults.0", "'b9'", "a node of the run"),
        (({"join": "b9"},), "faults.0", "no `to`", "`to`: the name of a node"),
        (
            ({"move": "b1", "from": "b0", "to": "b2"},),
            "faults.0",
            "0 of them in ['at', 'from', 'move', 'to']",
            "`at` and one of",
        ),
    ],
)
def test_a_change_of_the_overlay_that_cannot_be_is_refused_when_the_scenario_is_read(
    faults: Sequence[dict[str, Any]], key: str, found: str, allowed: str
) -> None:
    with pytest.raises(InputError) as error:
        build(check_scenario(scenario(*faults), "test"))
    assert error.value.place.endswith(f"key {key}")
    assert error.value.found.startswith(found)
    assert allowed in error.value.allowed


@pytest.mark.parametrize(
    ("more", "faults", "found"),
    [
        ({"broker": {"reliability": TOLD}}, ({"swap": "b0", "with": "b1"},), "no `by`"),
        ({"broker": {"reliability": TOLD}}, ({"swap": "b0", "with": "b1", "by": "b9"},), "'b9'"),
        ({"broker": {"reliability": TOLD}}, ({"swap": ["b0"], "with": "b1", "by": "b2"},), "['b0']"),
        ({"broker": {"reliability": TOLD}}, ({"swap": "bob", "with": "b1", "by": "b2"},), "swap bob with b1 by b2"),
        ({"broker": {"reliability": TOLD}}, ({"rest": "b1", "for": "1 s"},), "`for` with rest"),
        ({"broker": {"reliability": TOLD}}, ({"kill": "b1"}, {"rest": "b1"}), "rest b1, which is down then"),
        (MULTIPATH, ({"disconnect": ["b0", "b1"]},), "disconnect b0-b1, which are both up"),
        ({**MULTIPATH, "newcomers": ["n", "m"]}, ({"join": "n", "to": "b0"}, {"connect": ["n", "m"]}), None),
        (MULTIPATH, ({"kill": "b0"}, {"disconnect": ["b0", "b1"]}, {"join": "b0", "to": "b3"}), None),
        ({"overlay": {"kind": "ring", "brokers": 4}, "broker": OWN}, ({"connect": ["b0", "b2"]},), None),
        ({"newcomers": ["b0"]}, (), "'b0'"),
        ({"newcomers": ["x", "x"]}, (), "'x'"),
        ({"newcomers": ["a/b"]}, (), "'a/b'"),
        (
            {"newcomers": ["x"], "broker": {"routing": "cells", "reliability": "gryphon"}},
            ({"join": "x", "cell": "b3"},),
            None,
        ),
        (
            {"broker": {"routing": "cells", "reliability": "gryphon"}},
            ({"disconnect": ["b0", "b1"]},),
            "disconnect b0-b1, neither of which has departed",
        ),
    ],
)
def test_what_the_protocols_say_of_faults_is_heeded(
    more: dict[str, Any], faults: Sequence[dict[str, Any]], found: str | None
) -> None:
    loaded = check_scenario(scenario(*faults, **more), "test")
    if found is None:
        assert build(loaded).deployment.faults
        return
    with pytest.raises(InputError) as error:
        build(loaded)
    assert error.value.found.startswith(found)
