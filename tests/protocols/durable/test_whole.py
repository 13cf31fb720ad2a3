"""Durable subscriptions on small clusters in virtual time: who comes back gets what it missed, once and in order."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmuration.deployment.build_deployment import build
from murmuration.harness.cluster import Cluster, Subscription
from murmuration.scenario.load import check_scenario
from reliability.durable.durable import Durable
from reliability.end_to_end.end_to_end import EndToEnd
from spark_analysis.plain_judge import Judgement, judge_run
from tests.deployments import played, reliability_at

CHAIN = {"kind": "chain", "brokers": 3}
QUICK = {"failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"}}
DURABLE = {"routing": "cells", "reliability": "durable"}


@contextmanager
def a_cluster(**keys: Any) -> Iterator[Cluster]:
    given = {"overlay": CHAIN, "clients": {"alice": "b0", "bob": "b2", "carol": "b2"}, **DURABLE, **QUICK, **keys}
    with Cluster.start(**given) as cluster:
        yield cluster


def both_subscribe(cluster: Cluster) -> Subscription:
    """Bob and Carol ask for everything, and it has settled; what Bob has asked for."""
    bobs, _ = [cluster.clients[name].subscribe("x >= 0") for name in ("bob", "carol")]
    cluster.settle()
    return bobs


def publish(cluster: Cluster, first: int, count: int) -> None:
    """Alice publishes that many events, 20 ms apart."""
    for number in range(first, first + count):
        cluster.clients["alice"].publish({"x": number})
        cluster.advance("20 ms")


def judged(cluster: Cluster) -> Judgement:
    """The run's verdict: nothing may be missing or wrong, and nothing excused."""
    cluster.end()
    judgement = judge_run(cluster.folder)
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    return judgement


def numbers(cluster: Cluster, name: str) -> list[int]:
    """What the client was delivered, in its order."""
    return [int(each.sequence) for each in cluster.clients[name].deliveries()]


def _leaves_for_b1(cluster: Cluster) -> None:
    cluster.faults.disconnect("bob", "b2")
    cluster.faults.connect("bob", "b1")


Step = Callable[[Cluster], None]
AWAY: dict[str, tuple[Step, Step]] = {
    "its link is cut": (
        lambda cluster: cluster.faults.cut("bob", "b2"), lambda cluster: cluster.faults.heal("bob", "b2"),
    ),
    "it is disconnected": (
        lambda cluster: cluster.faults.disconnect("bob", "b2"), lambda cluster: cluster.faults.connect("bob", "b2"),
    ),
    "its broker dies": (lambda cluster: cluster.faults.kill("b2"), lambda cluster: cluster.faults.restart("b2")),
    "it goes to another broker": (
        lambda cluster: cluster.faults.disconnect("bob", "b2"), lambda cluster: cluster.faults.connect("bob", "b1"),
    ),
    "it goes to the publisher's broker": (
        lambda cluster: cluster.faults.disconnect("bob", "b2"), lambda cluster: cluster.faults.connect("bob", "b0"),
    ),
    "its broker dies for good": (
        lambda cluster: cluster.faults.kill("b2"), _leaves_for_b1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", AWAY)
def test_a_subscriber_that_was_away_gets_what_it_missed_once_and_in_order(case: str) -> None:
    goes, comes = AWAY[case]
    with a_cluster() as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        publish(cluster, 0, 10)
        goes(cluster)
        publish(cluster, 10, 30)
        comes(cluster)
        publish(cluster, 40, 10)
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(50))
        judgement = judged(cluster)
    assert judgement.numbers["required"] == 50
    assert judgement.numbers["explained"] == 0


RESTARTED = {
    "workload": {"kind": "paced", "publishers": {"b0": 1}, "subscribers": {"b1": 2}, "rate_per_s": 40, "seconds": 1},
    "faults": [{"at": "3 s", "kill": "b0", "for": "100 ms"}],
}


def kept_at_the_end(scenario: dict[str, Any], folder: Path) -> bool:
    """Does the publishers' broker b0 keep anything for clients when the run has come to rest?"""
    given = {
        "name": "at-rest", "runtime": "virtual", "overlay": {"kind": "chain", "brokers": 2}, "broker": DURABLE,
        "drain": {"limit": "60 s"}, **QUICK, **scenario,
    }  # fmt: skip
    run = played(given, folder)
    assert run.runtime.now_us < 20_000_000
    part = reliability_at(run, "b0")
    assert isinstance(part, Durable | EndToEnd)
    return part._log.record.keeps_any or len(part._log) > 0


def test_a_publishers_broker_that_restarts_hears_again_what_clients_have(tmp_path: Path) -> None:
    """Else it would keep that for them, and its log from there on, until the next message for each of them."""
    assert not kept_at_the_end(RESTARTED, tmp_path)


@pytest.mark.parametrize("reliability", ["durable", "end_to_end"])
def test_so_it_does_of_one_that_meanwhile_wants_something_else(reliability: str, tmp_path: Path) -> None:
    """What the client has stands in the word that says what it wants, which has to be recorded first."""
    faults = [
        {"at": "3365 ms", "subscribe": "c2", "filter": "x > 2"}, {"at": "3365 ms", "kill": "b0", "for": "250 ms"},
    ]  # fmt: skip
    workload = {
        "kind": "paced", "publishers": {"b0": 2}, "subscribers": {"b1": 1}, "rate_per_s": 13, "seconds": 2,
    }  # fmt: skip
    broker = {"routing": "cells", "reliability": reliability}
    drawn = {"workload": workload, "broker": broker, "datagrams": {"delay": "1 ms"}, "faults": faults}
    assert not kept_at_the_end(drawn, tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_matched_before_a_subscription_begins_is_not_kept_for_good(seed: int, tmp_path: Path) -> None:
    """The broker with the subscribers hears later than the publishers' broker that they ask anew."""
    workload = {
        "kind": "zipf", "clients": 2, "subscribers_per_actor": 2, "publishers": 1, "publications": 40, "rate_per_s": 40,
        "attributes": 2, "predicates": 1, "matching_rate": 0.5, "resubscriptions": 8,
    }  # fmt: skip
    assert not kept_at_the_end({"workload": workload, "links": {"delay": "100 ms"}, "seed": seed}, tmp_path)


def test_a_broker_that_has_started_again_catches_nobody_up_who_has_withdrawn_all(tmp_path: Path) -> None:
    """Nobody else had subscribed there: that it wants nothing any more is in effect, too. Else it asked for ever."""
    kill = {"at": "3300 ms", "kill": "b1", "for": "50 ms"}
    assert not waits_for_who_has_withdrawn_all("b1", "b2", 3.4, [kill], tmp_path)


def test_a_broker_catches_nobody_up_who_had_withdrawn_all_before_it_came_there(tmp_path: Path) -> None:
    """Nobody had subscribed there, so that the broker had not noted since when its filters are in effect."""
    move = {"at": "3 s", "move_client": "c2", "to": "b2"}
    assert not waits_for_who_has_withdrawn_all("b2", "b0", 2.0, [move], tmp_path)


def waits_for_who_has_withdrawn_all(
    broker: str, other: str, withdrawn_s: float, faults: Sequence[Mapping[str, object]], folder: Path
) -> bool:
    """Does that broker, where the client c2 is in the end, wait for something? c2 subscribes at b1, and withdraws;
    another client subscribes at the other broker."""
    workload = {
        "kind": "paced", "publishers": {"b0": 1}, "subscribers": {other: 1}, "visits": {"b1": [[1.0, withdrawn_s]]},
        "rate_per_s": 20, "seconds": 5,
    }  # fmt: skip
    drawn = {"workload": workload, "overlay": CHAIN, "faults": faults, "drain": {"limit": "20 s"}}
    given = {"name": "at-rest", "runtime": "virtual", "broker": DURABLE, **QUICK, **drawn}
    part = reliability_at(played(given, folder), broker)
    assert isinstance(part, Durable)
    assert "c2" in part._holders.of
    return part.waiting


def lose_the_disk(cluster: Cluster) -> None:
    """The publishers' broker b0 dies with its disk, and is back a second ago."""
    cluster.faults.kill("b0", disk_lost=True)
    cluster.advance("200 ms")
    cluster.faults.restart("b0")
    cluster.advance("1 s")


def test_clients_that_are_caught_up_while_a_disk_is_lost_get_what_is_published_after_it() -> None:
    slow = {"delay": "1 ms", "messages_per_s": 30}
    with a_cluster(client_links=slow, parameters={"durable": {"window": 5}}, drain={"limit": "60 s"}) as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 100)
        lose_the_disk(cluster)
        publish(cluster, 100, 50)
        cluster.drain()
        for name in ("bob", "carol"):
            assert set(numbers(cluster, name)) >= {*range(100, 150)}
        judged(cluster)


def test_who_goes_away_after_a_disk_was_lost_is_owed_what_it_misses_then() -> None:
    with a_cluster() as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 20)
        lose_the_disk(cluster)
        publish(cluster, 20, 20)
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 40, 20)
        cluster.faults.connect("bob", "b2")
        cluster.drain()
        for name in ("bob", "carol"):
            assert set(numbers(cluster, name)) >= {*range(20, 60)}
        judged(cluster)


def test_a_client_that_was_killed_gets_all_and_again_only_what_it_had_not_recorded() -> None:
    with a_cluster() as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        publish(cluster, 0, 20)
        cluster.faults.kill("bob")
        publish(cluster, 20, 20)
        cluster.faults.restart("bob")
        publish(cluster, 40, 5)
        cluster.drain()
        got = numbers(cluster, "bob")
        judgement = judged(cluster)
    assert sorted(set(got)) == list(range(45))
    twice = [each for each in range(45) if got.count(each) > 1]
    assert twice
    assert twice == list(range(twice[0], 20)), "the last ones before it died"
    assert len(judgement.pairs.duplicate) == len(twice)
    assert judgement.left("duplicate") == []


def test_the_publishers_broker_may_die_while_a_subscriber_is_away() -> None:
    with a_cluster(parameters={"durable": {"checkpoint": 5}}) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.clients["carol"].subscribe("x >= 10")
        cluster.settle()
        publish(cluster, 0, 10)
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 10, 30)
        cluster.advance("2 s")  # all others have acknowledged
        cluster.faults.kill("b0")
        cluster.advance("500 ms")
        cluster.faults.restart("b0")
        cluster.advance("500 ms")
        cluster.faults.connect("bob", "b1")
        publish(cluster, 40, 10)
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(50))
        assert numbers(cluster, "carol") == list(range(10, 50))
        judged(cluster)


def test_a_log_that_is_full_of_what_an_absent_subscriber_lacks_makes_publishers_wait_and_loses_nothing() -> None:
    with a_cluster(parameters={"durable": {"log_most": 20, "checkpoint": 5}}) as cluster:
        both_subscribe(cluster)
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 0, 50)
        cluster.advance("2 s")
        assert numbers(cluster, "carol") == list(range(20)), "the others wait with the publishers"
        cluster.faults.connect("bob", "b1")
        cluster.drain()
        assert numbers(cluster, "bob") == numbers(cluster, "carol") == list(range(50))
        judged(cluster)


def test_publishers_go_on_when_what_a_full_log_keeps_is_wanted_no_more() -> None:
    with a_cluster(parameters={"durable": {"log_most": 20, "checkpoint": 5}}) as cluster:
        cluster.clients["bob"].subscribe("y >= 0")
        wanted = both_subscribe(cluster)
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 0, 50)
        cluster.clients["bob"].unsubscribe(wanted)
        cluster.faults.connect("bob", "b1")
        cluster.drain()
        assert numbers(cluster, "carol") == list(range(50))
        judged(cluster)


@pytest.mark.parametrize(("log_most", "again"), [(10, False), (100_000, False), (10, True)])
def test_who_was_forgotten_and_is_there_is_caught_up_all_the_same(log_most: int, again: bool) -> None:
    """Nothing is promised of what was published meanwhile. But it is kept: a log full of it would stay so. `again`: the
    link breaks as soon as the broker has heard, and with it what it asks for."""
    bounded = {"durable": {"log_most": log_most, "checkpoint": 5}}
    with a_cluster(parameters=bounded, links={"delay": "2 ms"}) as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 5)
        cluster.faults.cut("b1", "b2")
        cluster.advance("1 s")
        publish(cluster, 5, 5)
        cluster.faults.order("forget", "b0", "b2")
        publish(cluster, 10, 15)
        cluster.faults.heal("b1", "b2")
        part = reliability_at(cluster._runtime._run, "b2")  # type: ignore[attr-defined]
        assert isinstance(part, Durable)
        while again and not part._holders.of["bob"].behind:
            cluster.advance("1 ms")
        if again:
            cluster.faults.cut("b1", "b2")
            cluster.advance("5 s")
            cluster.faults.heal("b1", "b2")
        cluster.drain()
        publish(cluster, 25, 5)
        cluster.drain()
        assert numbers(cluster, "bob") == numbers(cluster, "carol") == list(range(30))
        judged(cluster)


def test_others_are_not_held_up_by_one_that_is_slow() -> None:
    """Under `gryphon` a client whose window is full holds up its broker; here it falls behind, and catches up."""
    with a_cluster(parameters={"durable": {"window": 5}}) as cluster:
        both_subscribe(cluster)
        cluster.faults.slow("bob", "200 ms")
        publish(cluster, 0, 50)
        assert len(numbers(cluster, "carol")) >= 45
        assert len(numbers(cluster, "bob")) < 20
        cluster.faults.slow("bob", "0 ms")
        cluster.drain()
        assert numbers(cluster, "bob") == numbers(cluster, "carol") == list(range(50))
        judged(cluster)


def test_a_name_is_at_one_broker_at_a_time() -> None:
    with a_cluster() as cluster, pytest.raises(InputError, match="which is at b2 then"):
        cluster.faults.connect("bob", "b1")


def test_of_two_brokers_that_believe_to_have_a_client_only_the_newer_one_is_heard() -> None:
    with a_cluster() as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        publish(cluster, 0, 10)
        cluster.faults.slow("b2", "200 ms")  # it hears of his leaving when he has long been elsewhere
        publish(cluster, 10, 5)
        cluster.faults.disconnect("bob", "b2")
        cluster.faults.connect("bob", "b1")
        publish(cluster, 15, 10)
        cluster.faults.slow("b2", "0 ms")
        publish(cluster, 25, 5)
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(30))
        judged(cluster)


def test_a_subscriber_that_is_not_back_when_the_run_ends_is_the_only_excuse() -> None:
    with a_cluster() as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.clients["carol"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 0, 10)
        cluster.drain()
        judgement = judged(cluster)
    assert judgement.numbers["missing"] == judgement.numbers["explained"] == 10


BAD_MOVES = {
    "of a client that publishes": ({"at": "1 s", "move_client": "c0", "to": "b2"}, "c0"),
    "of a broker": ({"at": "1 s", "move_client": "b1", "to": "b2"}, "a client"),
    "of nobody": ({"at": "1 s", "move_client": "c9", "to": "b2"}, "a client"),
    "to where it is": ({"at": "1 s", "move_client": "c2", "to": "b2"}, "a client"),
    "to a client": ({"at": "1 s", "move_client": "c2", "to": "c1"}, "c1"),
    "without an end": ({"at": "1 s", "move_client": "c2"}, "to"),
    "for a time": ({"at": "1 s", "move_client": "c2", "to": "b1", "for": "1 s"}, "for"),
}


@pytest.mark.parametrize("case", BAD_MOVES)
def test_a_move_that_cannot_be_is_refused(case: str) -> None:
    entry, told = BAD_MOVES[case]
    workload = {"kind": "zipf", "clients": 3, "publishers": 1, "publications": 10}
    keys = {"runtime": "virtual", "overlay": CHAIN, "workload": workload, "broker": DURABLE, "faults": [entry]}
    with pytest.raises(InputError, match=told):
        build(check_scenario(keys, "scenario"))


def test_under_any_other_protocol_clients_stay_where_they_are() -> None:
    workload = {"kind": "zipf", "clients": 3, "publishers": 1, "publications": 10}
    move = {"at": "1 s", "move_client": "c2", "to": "b1"}
    broker = {"routing": "cells", "reliability": "gryphon"}
    with pytest.raises(InputError, match="two of b0, b1, b2"):
        build(check_scenario({"overlay": CHAIN, "workload": workload, "broker": broker, "faults": [move]}, "scenario"))
