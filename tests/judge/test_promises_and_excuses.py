"""What the judge demands and what it excuses, on small clusters in virtual time, by the plain judge."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import DropReason
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.promise import Promise, Survival
from murmuration.harness.cluster import Cluster
from murmuration.hunt.trial import deployment_of, play_schedule
from murmuration.runs.manifest import manifest_of_deployment
from murmuration.scenario.load import check_scenario
from spark_analysis.changing_overlay import OverlayAt
from spark_analysis.connections import Connections
from spark_analysis.excuses import Case, Excuses
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window
from spark_analysis.passages import Crossing, Loss, Passage
from tests.judge.by_hand import judge_ended

CHAIN = {"kind": "chain", "brokers": 3}
CLIENTS = {"alice": "b0", "bob": "b2"}
QUICK = {"failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"}}
GRYPHON = {"routing": "cells", "reliability": "gryphon"}


@contextmanager
def _cluster(**keys: Any) -> Iterator[Cluster]:
    with Cluster.start(**{"overlay": CHAIN, "clients": CLIENTS, **QUICK, **keys}) as cluster:
        yield cluster


def test_a_kill_in_the_instant_of_the_first_settling_is_seen_to_take_its_subscriber_away() -> None:
    with _cluster(**GRYPHON) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.kill("b2")
        cluster.clients["alice"].publish(*({"x": number} for number in range(10)))
        cluster.advance("2 s")
        judged = judge_ended(cluster)
    assert judged.numbers["missing"] == judged.numbers["explained"] == 10
    assert judged.left("missing") == []


@pytest.mark.parametrize("parts", [GRYPHON, {}], ids=["exactly once", "best effort"])
def test_a_withdrawal_while_a_fault_holds_deliveries_up_is_no_loss(parts: Mapping[str, str]) -> None:
    with _cluster(**parts) as cluster:
        wanted = cluster.clients["bob"].subscribe("x >= 0")
        kept = cluster.clients["alice"].subscribe("x >= 0")
        cluster.settle()
        if parts:
            cluster.faults.cut("b1", "b2")
        else:
            cluster.faults.stall("b1")
        cluster.clients["alice"].publish(*({"x": number} for number in range(10)))
        cluster.advance("200 ms" if not parts else "2 s")
        cluster.clients["bob"].unsubscribe(wanted)
        cluster.advance("2 s")
        if parts:
            cluster.faults.heal("b1", "b2")
        else:
            cluster.faults.resume("b1")
        cluster.settle()
        assert len(cluster.clients["alice"].deliveries(kept)) == 10
        judged = judge_ended(cluster)
    assert judged.left("missing") == []
    assert judged.left("spurious") == []
    assert judged.numbers["verdict"] == "valid", judged.numbers["reason"]


def test_an_event_from_long_before_a_subscription_is_spurious_unless_events_are_kept() -> None:
    """The recovery of lost events must not give them to subscribers that came later."""
    with _cluster(
        reliability="epidemic", parameters={"epidemic": {"algorithm": "push", "interval": "50 ms"}},
        datagrams={"delay": "1 ms"}, clients={"alice": "b0", "bob": "b2", "carol": "b2"},
    ) as cluster:  # fmt: skip
        first = cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.link("b1", "b2", loss=1.0)
        cluster.clients["alice"].publish(*({"x": number} for number in range(5)))
        cluster.advance("20 ms")
        second = cluster.clients["carol"].subscribe("x >= 0")
        cluster.advance("20 ms")
        cluster.faults.link("b1", "b2", loss=0.0)
        cluster.clients["alice"].publish({"x": 100})
        cluster.advance("5 s")
        assert sorted(each.attributes["x"] for each in cluster.clients["bob"].deliveries(first)) == [0, 1, 2, 3, 4, 100]
        assert [each.attributes["x"] for each in cluster.clients["carol"].deliveries(second)] == [100]
        judged = judge_ended(cluster)
    assert judged.numbers["spurious"] == 0


CELLS = {
    "kind": "cells",
    "cells": {"p": ["p0"], "m": ["ma", "mb"], "s": ["s0"]},
    "links": [["p", "m"], ["m", "s"]],
}


def test_no_event_is_owed_to_whom_no_path_leads_for_good() -> None:
    with _cluster(overlay=CELLS, **{**GRYPHON, "clients": {"alice": "p0", "bob": "s0"}}) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.cut("ma", "s0")
        cluster.advance("1 s")
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("1 s")
        cluster.faults.kill("mb")
        cluster.advance("1 s")
        cluster.clients["alice"].publish({"x": 2})
        cluster.advance("40 s")
        assert [each.attributes["x"] for each in cluster.clients["bob"].deliveries()] == [1]
        judged = judge_ended(cluster)
    assert judged.numbers["missing"] == judged.numbers["explained"] == 1
    assert judged.numbers["verdict"] == "valid", judged.numbers["reason"]


def test_where_links_lose_all_the_time_a_withdrawal_ends_what_had_not_had_its_turn() -> None:
    for loss in (0.6, 0.0):
        with _cluster(links={"delay": "1 ms", "loss": loss}, seed=3, **GRYPHON) as cluster:
            wanted = cluster.clients["bob"].subscribe("x >= 0")
            cluster.settle()
            cluster.clients["alice"].publish(*({"x": number} for number in range(10)))
            cluster.advance("1500 ms")
            cluster.clients["bob"].unsubscribe(wanted)
            cluster.advance("5 s")
            judged = judge_ended(cluster)
        assert judged.numbers["verdict"] == "valid", judged.numbers["reason"]
        assert (judged.numbers["missing"] > 0) == (loss > 0)


@pytest.mark.parametrize(
    ("over_us", "overtaken_us", "ordered", "is_excused"),
    [
        (1_200_000, None, True, True),
        (1_200_000, 2_000_000, True, False),
        (1_200_000, 2_700_000, True, True),
        (1_400_000, 2_000_000, True, False),
        (1_400_000, 2_000_000, False, True),
        (-40_000_000, None, True, False),
    ],
)
def test_a_withdrawal_ends_what_waits_behind_events_that_a_fault_held_up(
    over_us: int, overtaken_us: int | None, ordered: bool, is_excused: bool
) -> None:
    """The schedule cells/gryphon 1301062: a client's link that had lost messages took two seconds to bring the rest."""
    step = FaultStep(0, FaultKind.CHANGE_LINK, "lose", ("c1", "b1"), link=LinkSpec(loss=0.3), in_effect_us=0)
    windows = [
        Window(step, over_us - 1, over_us - 1, over_us, over_us, frozenset(), frozenset({frozenset(("c1", "b1"))}))
    ]
    links = (("c0", "b0"), ("b0", "b1"), ("b1", "c1"))
    judge = Connections({}, windows, {"c0": "b0", "c1": "b1"}, 30_000_000, [OverlayAt(0, links, True)], ordered=ordered)
    case = Case("missing", "c0", "c1", 1_350_000, overtaken_us=overtaken_us, withdrawn_us=2_700_000)
    assert (judge.explain(case, Passage()) is not None) == is_excused


def test_expectations_turn_measures_into_the_verdict() -> None:
    outcomes = {}
    for name, expect in {
        "none": {},
        "rate": {"delivery_rate": 0.99},
        "low rate": {"delivery_rate": 0.5},
        "delay": {"delay_p99": "1 us"},
        "recovery": {"recovery": "0 us"},
    }.items():
        with _cluster(expect=expect, links={"delay": "5 ms"}) as cluster:
            cluster.clients["bob"].subscribe("x >= 0")
            cluster.settle()
            cluster.clients["alice"].publish({"x": 1}, {"x": 2})
            cluster.advance("1 s")
            cluster.faults.kill("b1")
            cluster.clients["alice"].publish({"x": 3})
            cluster.advance("1 s")
            cluster.faults.restart("b1")
            cluster.advance("1 ms")
            cluster.clients["alice"].publish({"x": 4})
            cluster.settle()
            cluster.clients["alice"].publish({"x": 5})
            cluster.advance("1 s")
            numbers = judge_ended(cluster).numbers
        outcomes[name] = (numbers["verdict"], numbers["finding"])
    unmet = ("invalid", "expectation")
    met = ("valid", None)
    assert outcomes == {"none": met, "rate": unmet, "low rate": met, "delay": unmet, "recovery": unmet}


def test_an_unknown_expectation_is_refused_with_what_is_allowed() -> None:
    data = {"overlay": CHAIN, "workload": {"kind": "by_hand"}, "expect": {"delay": "1 s"}}
    with pytest.raises(InputError, match="delivery_rate, delay_p99, recovery, unexplained"):
        check_scenario(data, "test")


def test_a_client_whose_broker_is_dead_reaches_not_even_itself() -> None:
    """Where events have several ways, too."""
    with _cluster(overlay=CELLS, routing="cells", clients={"alice": "p0", "bob": "s0"}) as cluster:
        cluster.clients["alice"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.kill("p0")
        for number in range(20):
            cluster.clients["alice"].publish({"x": number})
            cluster.advance("100 ms")
        cluster.faults.restart("p0")
        cluster.settle()
        judged = judge_ended(cluster)
    assert judged.numbers["missing"] == judged.numbers["explained"] == 20, judged.numbers["reason"]


@pytest.mark.parametrize(
    ("came_us", "is_excused"),
    [([110_000, 3_099_000], True), ([110_000], False), ([110_000, 3_101_000], False)],
    ids=["it came once more", "its broker kept it", "it came once more, but later"],
)
def test_an_event_that_a_fault_held_up_may_come_to_a_later_subscriber_by_another_way(
    came_us: list[int], is_excused: bool
) -> None:
    """Over a structured overlay: one copy had come before, for other subscribers of the same broker."""
    stalled = FaultStep(0, FaultKind.STALL, "stall b1", ("b1",))
    window = Window(stalled, 0, 0, 3_000_000, 4_000_000, frozenset({"b1"}))
    passage = Passage(had={"b0": 100_000, "b2": 110_000}, received={"b2": came_us})
    early = Case("spurious", "b0", "c1", published_us=100_000, delivered_us=3_100_000, early=True)
    homes = {"c0": "b0", "c1": "b2"}
    excuse = Excuses([window], list(homes.items()), homes).explain(early, passage)
    assert (excuse is not None) == is_excused


@pytest.mark.parametrize(
    "about",
    [{"kill": "c1"}, {"kill": "b1"}, {"cut": ["c1", "b1"]}, {"stall": "b1"}],
    ids=["its client", "its broker", "between the two", "its broker is stalled"],
)
def test_where_no_link_tells_of_failures_a_subscriber_that_is_away_is_excused_for_as_long(
    about: dict[str, Any],
) -> None:
    """The time within which the overlay recovers is over long before."""
    data = {
        "name": "away",
        "runtime": "virtual",
        "overlay": {"kind": "structured", "brokers": 4, "probe": "50 ms", "probe_timeout": "20 ms"},
        "workload": {"kind": "zipf", "clients": 4, "publications": 100, "rate_per_s": 20, "matching_rate": 0.5},
        "broker": {"routing": "irbr", "reliability": "best_effort"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "datagrams": {"delay": "1 ms"},
        "drain": {"limit": "1 s"},
        "faults": [{"at": "500 ms", **about, "for": "3 s"}],
    }
    judged = play_schedule(data).judgement
    assert judged.numbers["verdict"] == "valid", judged.numbers["reason"]
    assert judged.numbers["explained"] > 10


def test_an_event_on_a_slow_link_is_overtaken_when_the_broker_that_sent_it_dies() -> None:
    """Later events go another way at once."""
    overtaken = 0
    for broker in ("ma", "mb"):  # one of them is on the way
        with _cluster(overlay=CELLS, routing="cells", clients={"alice": "p0", "bob": "s0"}) as cluster:
            cluster.clients["bob"].subscribe("x >= 0")
            cluster.settle()
            cluster.faults.link(broker, "s0", delay="60 ms")
            cluster.clients["alice"].publish({"x": 1})
            cluster.advance("20 ms")
            cluster.faults.kill(broker)
            cluster.advance("10 ms")
            cluster.clients["alice"].publish({"x": 2})
            cluster.advance("5 s")
            judged = judge_ended(cluster)
        assert judged.left("out_of_order") == []
        overtaken += judged.numbers["out_of_order"]
    assert overtaken == 1


@pytest.mark.parametrize("fixed_ways", [True, False], ids=["links say the ways", "after an order"])
@pytest.mark.parametrize("is_killed", [True, False], ids=["its sender died", "nothing else happened"])
def test_a_slow_link_alone_excuses_no_order(is_killed: bool, fixed_ways: bool) -> None:
    """Where cells give an event several ways, it takes one: a slow link delays the later events as well. After an
    order (a broker is given up) it is the same: a hunt found that nothing was excused then."""
    slow = FaultStep(0, FaultKind.CHANGE_LINK, "slow b0-b1", ("b0", "b1"), link=LinkSpec(Delay(low_us=60_000)))
    windows = [Window(slow, 0, 0, 3_000_000, 4_000_000, links=frozenset({frozenset({"b0", "b1"})}))]
    if is_killed:
        kill = FaultStep(1, FaultKind.KILL, "kill b0", ("b0",))
        windows.append(Window(kill, 120_000, 120_000, 3_000_000, 4_000_000, frozenset({"b0"})))
    sent = [Crossing(100_000, "b0", "b1")]
    passage = Passage(had={"b0": 100_000, "b1": 160_000}, received={"b1": [160_000]}, sent=sent)
    late = Case("out_of_order", "b0", "b1", published_us=100_000, delivered_us=160_000)
    links = [("b0", "b1"), ("b1", "b2"), ("b0", "b2")]
    excuses = Excuses(windows, links, fixed_ways=fixed_ways)
    assert (excuses.explain(late, passage) is not None) == is_killed


@pytest.mark.parametrize(
    ("lossy_until_us", "is_excused"), [(3_400_000, True), (1_000_000, False)], ids=["until then", "long ago"]
)
def test_an_event_that_a_lossy_link_kept_from_its_broker_may_meet_a_partition(
    lossy_until_us: int, is_excused: bool
) -> None:
    """Exactly once: the publisher sends it again and again, and its broker takes it when no path is left."""
    links = (("c0", "b0"), ("b0", "b1"), ("b1", "c1"))
    loss = FaultStep(0, FaultKind.CHANGE_LINK, "lossy c0-b0", ("c0", "b0"), link=LinkSpec(loss=0.5))
    parted = FaultStep(1, FaultKind.PARTITION, "partition", ("b1", "c1"), groups=(("b0", "c0"), ("b1", "c1")))
    windows = [
        Window(loss, 400_000, 400_000, lossy_until_us, lossy_until_us, links=frozenset({frozenset({"c0", "b0"})})),
        Window(parted, 3_500_000, 3_500_000, NEVER_US, NEVER_US, links=frozenset({frozenset({"b0", "b1"})})),
    ]
    judge = Connections({}, windows, {"c0": "b0", "c1": "b1"}, 30_000_000, [OverlayAt(0, links, True)])
    missing = Case("missing", "c0", "c1", published_us=1_600_000)
    assert (judge.explain(missing, Passage({}, {})) is not None) == is_excused


@pytest.mark.parametrize(
    ("is_away", "bridged", "is_excused"),
    [(True, 3, True), (False, 3, False), (True, 0, False)],
    ids=["bridged", "nothing to bridge", "no bridges"],
)
def test_a_cut_beside_the_way_excuses_a_loss_only_where_a_bridge_leads_over_it(
    is_away: bool, bridged: int, is_excused: bool
) -> None:
    """b3 takes b2 for dead and says so, while b0, by which b1 would know better, is."""
    links = [("b0", "b1"), ("b0", "b2"), ("b2", "b3"), ("c1", "b1"), ("c2", "b2")]
    cut = FaultStep(1, FaultKind.CUT, "cut b2-b3", ("b2", "b3"))
    windows = [Window(cut, 1_000_000, 1_000_000, 1_050_000, 1_100_000, links=frozenset({frozenset({"b2", "b3"})}))]
    if is_away:  # all have settled without it
        kill = FaultStep(0, FaultKind.KILL, "kill b0", ("b0",))
        windows.append(Window(kill, 400_000, 400_000, NEVER_US, NEVER_US, frozenset({"b0"}), absorbed_us=450_000))
    promise = Promise(survives=Survival(brokers_away=bridged))
    passage = Passage(had={"b1": 1_060_000}, received={"b1": [1_060_000]})
    missing = Case("missing", "c1", "c2", published_us=1_060_000)
    excuse = Excuses(windows, links, {"c1": "b1", "c2": "b2"}, promise).explain(missing, passage)
    assert (excuse is not None and excuse.text.startswith("cut b2-b3")) == is_excused


@pytest.mark.parametrize("is_stalled", [True, False], ids=["it was away", "nothing happened to it"])
def test_a_client_that_asks_again_filter_by_filter_may_miss_for_one_subscriber_what_another_gets(
    is_stalled: bool,
) -> None:
    """Over a slow link the broker hears of the second filter after an event that passes both; the schedule
    multipath/best_effort 1005300 found it."""
    stalled = FaultStep(0, FaultKind.STALL, "stall c0", ("c0",))
    windows = [Window(stalled, 0, 0, 1_214_000, 1_286_000, frozenset({"c0"}), absorbed_us=326_000)] * is_stalled
    homes = {"c0": "b0", "c1": "b1"}
    links = [("b0", "b1"), *homes.items()]
    had = {"c1": 1_265_000, "b1": 1_266_000, "b0": 1_268_000, "c0": 1_288_000}
    passage = Passage(had, {name: [at_us] for name, at_us in had.items() if name != "c1"})
    excuse = Excuses(windows, links, homes).explain(Case("missing", "c1", "c0", 1_265_000), passage)
    assert (excuse is not None) == is_stalled


def test_the_subscriber_that_a_client_asked_for_last_misses_no_more_than_the_judge_excuses() -> None:
    data = {
        "name": "asks-again",
        "runtime": "virtual",
        "overlay": {"kind": "chain", "brokers": 2},
        "workload": {
            "kind": "zipf", "clients": 2, "subscribers_per_actor": 2, "publications": 100, "rate_per_s": 200,
            "matching_rate": 0.9,
        },
        "links": {"delay": "2 ms"},
        "drain": {"limit": "5 s"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "faults": [
            {"at": "0 ms", "stall": "c0", "for": "400 ms"},
            {"at": "370 ms", "link": ["c0", "b0"], "messages_per_s": 50, "for": "200 ms"},
        ],
    }  # fmt: skip
    judged = play_schedule(data).judgement
    assert judged.numbers["verdict"] == "valid", judged.numbers["reason"]
    assert judged.numbers["explained"] > 10


def _changed(ends: tuple[str, str], spec: LinkSpec) -> Window:
    step = FaultStep(0, FaultKind.CHANGE_LINK, "change", ends, link=spec, in_effect_us=0)
    return Window(step, 0, 0, 9_000_000, 9_000_000, frozenset(), frozenset({frozenset(ends)}))


@pytest.mark.parametrize("is_lost", [True, False])
def test_the_second_of_two_copies_may_come_after_the_next_event_if_the_first_was_lost(is_lost: bool) -> None:
    """The schedule flooding/best_effort 2001331: b0-b1 doubles, and b1-b2 lost the first copy."""
    window = _changed(("b0", "b1"), LinkSpec(duplication=0.5))
    homes = {"c0": "b0", "c2": "b2"}
    excuses = Excuses([window], [("b0", "b1"), ("b1", "b2"), *homes.items()], homes)
    sent = [Crossing(time, *ends) for time, ends in enumerate(itertools.pairwise(("c0", "b0", "b1", "b2", "c2")))]
    lost = [Loss(2, 2, "b1", "b2", DropReason.LOSS)] if is_lost else []
    passage = Passage({}, {}, sent=sent, copied=[Crossing(1, "b0", "b1")], lost=lost)
    assert (excuses.explain(Case("out_of_order", "c0", "c2", 0), passage) is not None) == is_lost


@pytest.mark.parametrize(("issued_us", "is_excused"), [(3_000_000, True), (1_500_000, True), (500_000, False)])
def test_a_subscription_settles_without_a_publishers_broker_that_was_given_up(issued_us: int, is_excused: bool) -> None:
    """The schedule cells/gryphon 2001337: b1 was told to have b0 forgotten while the two were cut off. What was issued
    at b1 meanwhile counted as settled, and b0 heard of it when it was back."""
    step = FaultStep(0, FaultKind.ORDER, "forget b0", ("b0",), in_effect_us=2_000_000)
    window = Window(step, 2_000_000, 2_000_000, NEVER_US, NEVER_US, frozenset({"b0"}), frozenset())
    homes = {"c0": "b0", "c1": "b1"}
    judge = Connections({}, [window], homes, 1_000_000, (OverlayAt(0, (("b0", "b1"), *homes.items()), True),))
    case = Case("missing", "c0", "c1", 4_000_000, issued_us=issued_us)
    assert (judge.explain(case, Passage({}, {})) is not None) == is_excused
    elsewhere = Case("missing", "c1", "c1", 4_000_000, issued_us=issued_us)
    assert judge.explain(elsewhere, Passage({}, {})) is None


@pytest.mark.parametrize(
    ("copied", "is_excused"), [(("c0", "b0"), True), (("b3", "c3"), True), (("b0", "b1"), False), (("c3", "b3"), False)]
)
def test_a_link_that_doubles_at_an_end_excuses_what_a_bridge_brought_where_no_link_leads(
    copied: tuple[str, str], is_excused: bool
) -> None:
    """The schedule multipath/best_effort 1115636: b1 was dead, its link to b3 taken away, and b0 bridged it to b3."""
    step = FaultStep(0, FaultKind.CHANGE_LINK, "double", copied, link=LinkSpec(duplication=0.5), in_effect_us=0)
    window = Window(step, 0, 0, 9_000_000, 9_000_000, frozenset(), frozenset({frozenset(copied)}))
    homes = {"c0": "b0", "c3": "b3"}
    excuses = Excuses([window], [("b0", "b1"), *homes.items()], homes, in_parts=True)
    passage = Passage({}, {}, copied=[Crossing(1_000, *copied)])
    assert (excuses.explain(Case("duplicate", "c0", "c3", 0), passage) is not None) == is_excused


def test_a_schedule_is_judged_with_the_messages_that_pass_beside_links_as_a_run_is() -> None:
    """The schedule forwarding/epidemic 1002120: nothing but datagrams passed between the ends of a slow link."""
    parts = {"routing": "forwarding", "reliability": "epidemic"}
    overlay = {"kind": "chain", "brokers": 2}
    data: dict[str, Any] = {
        "name": "beside",
        "runtime": "virtual",
        "overlay": overlay,
        "broker": parts,
        "datagrams": {"delay": "1 ms"},
    }
    data["workload"] = {"kind": "zipf", "publications": 1}
    assert manifest_of_deployment(deployment_of(data), "schedule", "virtual").datagram_kinds


def test_a_broker_that_nobody_behind_a_dead_neighbour_has_met_since_its_restart_is_not_settled() -> None:
    """The schedule multipath_delegation/best_effort 1700499: b2 is back before b1, and b3 is there at once. Who is
    behind b1 it hears from b0 at the end of a round. Until then it knows no sender of what b0 passes on."""
    data = {
        "name": "back-beside-a-dead-one",
        "runtime": "virtual",
        "seed": 9795,
        "overlay": {"kind": "chain", "brokers": 4},
        "workload": {
            "kind": "zipf", "clients": 4, "subscribers_per_actor": 2, "publishers": 2, "publications": 147,
            "rate_per_s": 40, "attributes": 2, "predicates": 1, "matching_rate": 0.5,
            "resubscriptions": 4,
        },
        "broker": {
            "routing": "multipath_delegation",
            "parameters": {
                "multipath_delegation": {
                    "covering": False, "delta": 2, "fanout": 8, "round": "200 ms", "load_exchange": "100 ms",
                }
            },
        },
        "links": {"delay": "2 ms"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "datagrams": {"delay": "1 ms"},
        "faults": [
            {"at": "1 ms", "kill": "b1", "for": "3000 ms"},
            {"at": "240 ms", "coordinator": "b0"},
            {"at": "1010 ms", "kill": "b2", "for": "50 ms"},
        ],
    }  # fmt: skip
    judged = play_schedule(data).judgement
    assert judged.numbers["verdict"] == "valid", judged.numbers["reason"]
    assert judged.numbers["explained"] > 10


@pytest.mark.parametrize(
    ("came_us", "later_came_us", "later_had_us", "leads"),
    [
        ([10], [20], 6, True),
        ([20], [10], 6, False),
        ([10, 50], [20], 6, True),
        ([20], [10], 4, True),
        ([20], [20], 6, False),
        ([20], [], 6, False),
    ],
    ids=["in order", "overtaken", "in order, and once more", "it was behind before", "at once", "lost"],
)
def test_a_link_that_reorders_excuses_no_event_that_was_ahead_of_the_later_one_there(
    came_us: list[int], later_came_us: list[int], later_had_us: int, leads: bool
) -> None:
    passage = Passage({"a": 5, "b": min(came_us)}, {"b": came_us}, sent=[Crossing(5, "a", "b")])
    later = Passage({"a": later_had_us}, {"b": later_came_us}, sent=[Crossing(6, "a", "b")])
    assert passage.led(later, "a", "b") is leads
    assert not passage.led(Passage({"a": later_had_us}, {"b": later_came_us}), "a", "b"), "it went another way"
