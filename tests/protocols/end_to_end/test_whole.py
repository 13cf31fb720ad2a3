"""Exactly once over any overlay, on small clusters in virtual time: routing may lose and repeat what it likes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.machine import NodeName
from murmuration.deployment.build_deployment import build
from murmuration.harness.cluster import Cluster
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario, load_scenario
from routing.flooding import Flooding
from routing.router import Hop
from spark_analysis.plain_judge import Judgement, judge_plainly, judge_run
from tests.deployments import played, reliability_at
from tests.protocols.durable.test_whole import (
    QUICK,
    RESTARTED,
    both_subscribe,
    kept_at_the_end,
    lose_the_disk,
    numbers,
    publish,
)
from tests.protocols.durable.test_whole import judged as valid
from tests.protocols.end_to_end.planted_bugs import BUGS

DATAGRAMS = {"datagrams": {"delay": "1 ms"}}
CHAIN = {"kind": "chain", "brokers": 4}
RING = {"kind": "structured", "brokers": 4, "probe": "200 ms", "probe_timeout": "100 ms"}
OVERLAYS: dict[str, dict[str, Any]] = {
    "multipath": CHAIN, "forwarding": CHAIN, "irbr": RING, "vinifera": RING,
}  # fmt: skip


class Forgetful(Flooding):
    """Every third event goes nowhere from here, and every second one twice."""

    _count = 0

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        self._count += 1
        if self._count % 3 == 0:
            return ()
        return [*super().next_hops(event, came_from, header)] * (1 + self._count % 2)


class Nowhere(Flooding):
    """No event ever leaves the broker at which it was published."""

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        return ()


@contextmanager
def a_cluster(routing: str, **keys: Any) -> Iterator[Cluster]:
    clients = {"alice": "b0", "bob": "b3", "carol": "b2"}
    given = {"overlay": OVERLAYS.get(routing, CHAIN), "clients": clients, **QUICK, **DATAGRAMS, **keys}
    with Cluster.start(**{"routing": routing, "reliability": "end_to_end", **given}) as cluster:
        yield cluster


def judged(cluster: Cluster) -> Judgement:
    """The run's verdict: nothing may be missing or wrong, and nothing excused."""
    judgement = valid(cluster)
    assert judgement.numbers["explained"] == 0
    return judgement


def test_a_broker_that_restarts_does_not_keep_what_is_for_nobody(tmp_path: Path) -> None:
    """Whoever gets none of it acknowledges none of it."""
    workload = {
        "kind": "paced", "publishers": {"b0": 1, "b2": 1}, "subscribers": {"b1": 1}, "share": 1.0, "rate_per_s": 40,
        "seconds": 1,
    }  # fmt: skip
    given = {
        "name": "at-rest", "runtime": "virtual", "overlay": CHAIN, "workload": workload, **DATAGRAMS, **QUICK,
        "broker": {"routing": "forwarding", "reliability": "end_to_end"},
        "faults": [{"at": "3 s", "kill": name, "for": "100 ms"} for name in ("b0", "b2")],
    }  # fmt: skip
    run = played(given, tmp_path)
    assert [len(reliability_at(run, name)._log) for name in ("b0", "b2")] == [0, 0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("routing", ["forwarding", "irbr"])
def test_who_is_there_when_a_disk_was_lost_gets_what_is_published_a_second_later(routing: str) -> None:
    """Or it asks its publishers' broker after `idle`, half a minute."""
    with a_cluster(routing) as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 20)
        lose_the_disk(cluster)
        publish(cluster, 20, 20)
        cluster.advance("1 s")
        for name in ("bob", "carol"):
            assert set(numbers(cluster, name)) >= {*range(20, 40)}
        valid(cluster)


def test_who_was_cut_off_when_a_disk_was_lost_gets_what_is_published_some_seconds_after_that() -> None:
    """What is asked as the broker begins does not reach them, and they have nothing to say."""
    with a_cluster("irbr") as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 20)
        cluster.settle()
        cluster.faults.partition(["b0", "alice"])
        cluster.advance("2 s")
        lose_the_disk(cluster)
        cluster.faults.unite()
        cluster.advance("9 s")
        publish(cluster, 20, 20)
        cluster.drain()
        for name in ("bob", "carol"):
            assert numbers(cluster, name) == [*range(40)]
        valid(cluster)


@pytest.mark.parametrize("routing", [f"{__name__}:{each.__name__}" for each in (Forgetful, Nowhere)])
def test_what_routing_loses_or_repeats_is_delivered_once_and_in_order(routing: str) -> None:
    with a_cluster(routing) as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 40)
        cluster.drain()
        assert numbers(cluster, "bob") == numbers(cluster, "carol") == list(range(40))
        assert judged(cluster).numbers["required"] == 80


@pytest.mark.parametrize("answers", [True, False])
def test_a_link_that_is_cut_for_good_excuses_nothing_where_the_ends_may_talk_beside_it(answers: bool) -> None:
    """Routing over links brings nothing past it. A broker that answers no questions is found by that."""
    reliability = "end_to_end" if answers else BUGS["no question is answered"]
    with a_cluster("forwarding", reliability=reliability) as cluster:
        both_subscribe(cluster)
        cluster.faults.cut("b0", "b1")
        publish(cluster, 0, 10)
        cluster.advance("20 s")
        cluster.end()
        judgement = judge_run(cluster.folder)
        assert judgement.numbers["required"] == 20
        assert len(judgement.left("missing")) == (0 if answers else 20)


@pytest.mark.parametrize("routing", OVERLAYS)
def test_a_subscriber_whose_broker_dies_and_that_goes_to_another_one_misses_nothing(routing: str) -> None:
    with a_cluster(routing) as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        cluster.faults.kill("b3")
        publish(cluster, 10, 20)
        cluster.faults.disconnect("bob", "b3")
        cluster.faults.connect("bob", "b1")
        publish(cluster, 30, 10)
        cluster.faults.restart("b3")
        publish(cluster, 40, 10)
        cluster.drain()
        assert numbers(cluster, "bob") == numbers(cluster, "carol") == list(range(50))
        judged(cluster)


@pytest.mark.parametrize("routing", OVERLAYS)
def test_what_was_accepted_outlives_the_publishers_broker_and_its_router_finds_its_own_records(routing: str) -> None:
    with a_cluster(routing, parameters={"end_to_end": {"checkpoint": 5}}) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        for first in (0, 20, 40):
            publish(cluster, first, 20)
            cluster.faults.kill("b0")
            cluster.advance("700 ms")
            cluster.faults.restart("b0")
            cluster.advance("1 s")
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(60))
        judged(cluster)


def test_a_publishers_broker_that_restarts_hears_again_what_clients_have(tmp_path: Path) -> None:
    """Else it would keep that for them, and the run would go on to its limit."""
    broker = {"routing": "multipath", "reliability": "end_to_end"}
    assert not kept_at_the_end({**RESTARTED, "broker": broker, **DATAGRAMS}, tmp_path)


def test_a_broker_without_a_pubend_comes_back_too() -> None:
    with a_cluster("forwarding", parameters={"end_to_end": {"pubends": ["b0"]}}) as cluster:
        both_subscribe(cluster)
        cluster.faults.kill("b3")
        publish(cluster, 0, 20)
        cluster.faults.restart("b3")
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(20))
        judged(cluster)


class Asked(Flooding):
    """Counts how often it is asked both questions about an event."""

    relays: ClassVar[list[Event]] = []
    hops: ClassVar[list[Event]] = []

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        self.relays.append(event)
        return super().is_relay(event, header)

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        self.hops.append(event)
        return super().next_hops(event, came_from, header)


def test_routing_is_asked_both_questions_whenever_an_event_comes_by() -> None:
    """A router may note by either what has been here (`routing.router.Router.is_relay`)."""
    with a_cluster(f"{__name__}:{Asked.__name__}") as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 5)
        cluster.drain()
    assert len(Asked.relays) == len(Asked.hops) == 5 * 4


def test_a_subscription_begins_at_its_tick_and_ends_with_its_withdrawal() -> None:
    with a_cluster("multipath") as cluster:
        publish(cluster, 0, 5)
        first = cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        publish(cluster, 5, 5)
        second = cluster.clients["bob"].subscribe("x >= 8")
        cluster.settle()
        publish(cluster, 10, 5)
        cluster.clients["bob"].unsubscribe(first)
        cluster.settle()
        publish(cluster, 15, 5)
        cluster.drain()
        by_subscription = {
            each: [
                int(got.sequence) for got in cluster.clients["bob"].deliveries() if got.subscriber == each.subscriber
            ]
            for each in (first, second)
        }
        assert by_subscription == {first: list(range(5, 15)), second: list(range(10, 20))}
        judged(cluster)


def test_brokers_of_a_whole_scenario_deliver_all(tmp_path: Path) -> None:
    changes = ["broker.reliability=end_to_end", "broker.routing=multipath", "datagrams.delay=1 ms"]
    run = execute(load_scenario(Path("parity"), changes), tmp_path, lambda *_: None)
    verdict = judge_plainly(run.folder / "journal", 1_000_000)
    assert verdict.counts == (0, 0, 0, 0)
    assert verdict.required > 100


def test_a_run_ends_when_nobody_waits_though_probes_and_questions_never_rest() -> None:
    with a_cluster("irbr", drain={"limit": "60 s"}) as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        published_us = cluster.now_us
        cluster.drain()
        assert cluster.now_us < published_us + 15_000_000
        assert judged(cluster).numbers["required"] == 20


@pytest.mark.parametrize("routing", ["irbr", "multipath"])
def test_a_run_goes_on_for_a_client_that_is_slow_to_take_what_it_lacks(routing: str) -> None:
    with a_cluster(routing, drain={"limit": "300 s"}) as cluster:
        both_subscribe(cluster)
        cluster.faults.link("bob", "b3", loss=0.7)
        publish(cluster, 0, 60)
        published_us = cluster.now_us
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(60))
        assert published_us + 5_000_000 < cluster.now_us < published_us + 300_000_000
        judged(cluster)


@pytest.mark.parametrize("routing", ["irbr", "multipath"])
def test_publishers_go_on_when_what_a_full_log_keeps_is_wanted_no_more(routing: str) -> None:
    with a_cluster(routing, parameters={"end_to_end": {"log_most": 20, "checkpoint": 5}}) as cluster:
        cluster.clients["bob"].subscribe("y >= 0")
        wanted = both_subscribe(cluster)
        cluster.faults.partition(["b3", "bob"])
        cluster.advance("500 ms")
        publish(cluster, 0, 50)
        cluster.clients["bob"].unsubscribe(wanted)
        cluster.faults.unite()
        cluster.drain()
        assert numbers(cluster, "carol") == list(range(50))
        valid(cluster)


def test_without_datagrams_the_ends_cannot_talk_and_the_pair_is_refused() -> None:
    scenario = {
        "overlay": CHAIN, "workload": {"kind": "by_hand"},
        "broker": {"routing": "forwarding", "reliability": "end_to_end"},
    }  # fmt: skip
    with pytest.raises(InputError, match="datagrams") as found:
        build(check_scenario(scenario, "a scenario"))
    assert "talk straight to each other" in str(found.value)


def test_pubends_are_at_brokers_that_take_clients() -> None:
    broker = {"routing": "multipath", "reliability": "end_to_end", "parameters": {"end_to_end": {"pubends": ["b9"]}}}
    scenario = {"overlay": CHAIN, "workload": {"kind": "by_hand"}, "broker": broker, **DATAGRAMS}
    with pytest.raises(InputError, match="pubends: found 'b9'"):
        build(check_scenario(scenario, "a scenario"))
