"""Redundant publishers' brokers on small clusters in virtual time: any one of three is lost, and nothing is missing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.redundant_soak import soak
from murmur_pubsub.errors import InputError
from murmuration.deployment.build_deployment import build
from murmuration.harness.cluster import Cluster
from murmuration.hunt.trial import play_schedule
from murmuration.results.verdict import verdict_of
from murmuration.scenario.load import check_scenario
from spark_analysis.plain_judge import Judgement, judge_run
from tests.protocols.durable.test_whole import QUICK, both_subscribe, numbers, publish
from tests.protocols.end_to_end.redundant_bugs import BUGS
from tests.protocols.end_to_end.test_whole import DATAGRAMS, Nowhere, judged

CHAIN = {"kind": "chain", "brokers": 5}
BACKED_UP = {"pubends": ["b0"], "backups": {"b0": ["b1", "b2"]}, "beat": "50 ms", "silence": "300 ms"}
TAKE_OVER = "1500 ms"
"""Longer than it takes until the other one serves, or the two are a pair again."""


@contextmanager
def a_cluster(
    routing: str = "multipath", reliability: str = "end_to_end", more: dict[str, Any] | None = None, **keys: Any
) -> Iterator[Cluster]:
    given = {
        "overlay": CHAIN, "clients": {"alice": "b0", "bob": "b4", "carol": "b3"}, **QUICK, **DATAGRAMS,
        "drain": {"limit": "10 s"}, "parameters": {"end_to_end": {**BACKED_UP, **(more or {})}}, **keys,
    }  # fmt: skip
    with Cluster.start(routing=routing, reliability=reliability, **given) as cluster:
        yield cluster


def all_of(cluster: Cluster, count: int) -> Judgement:
    """Both subscribers have that many events, each once and in order, and the judge excuses nothing."""
    cluster.drain()
    assert numbers(cluster, "bob") == numbers(cluster, "carol") == list(range(count))
    return judged(cluster)


def go(cluster: Cluster, client: str, first: str, second: str) -> None:
    """The client leaves the one broker for the other."""
    cluster.faults.disconnect(client, first)
    cluster.faults.connect(client, second)


@pytest.mark.parametrize("disk_lost", [False, True])
@pytest.mark.parametrize("routing", ["multipath", "forwarding", f"{__name__}:{Nowhere.__name__}"])
def test_the_host_is_lost_for_good_and_its_clients_go_to_the_backup(routing: str, disk_lost: bool) -> None:
    with a_cluster(routing) as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 20)
        cluster.faults.kill("b0", disk_lost=disk_lost)
        publish(cluster, 20, 10)
        go(cluster, "alice", "b0", "b1")
        publish(cluster, 30, 10)
        cluster.advance(TAKE_OVER)
        publish(cluster, 40, 10)
        all_of(cluster, 50)


def test_what_the_lost_host_had_accepted_is_delivered_though_nobody_publishes_again() -> None:
    """The last events were accepted and handed to nobody: only the two disks have them."""
    with a_cluster() as cluster:
        both_subscribe(cluster)
        for client, broker in (("bob", "b4"), ("carol", "b3")):
            cluster.faults.disconnect(client, broker)
        publish(cluster, 0, 10)
        cluster.advance("3 s")
        cluster.faults.kill("b0", disk_lost=True)
        cluster.advance(TAKE_OVER)
        for client, broker in (("bob", "b4"), ("carol", "b3")):
            cluster.faults.connect(client, broker)
        cluster.advance("2 s")
        all_of(cluster, 10)


def test_each_of_the_two_loses_its_disk_one_after_the_other() -> None:
    with a_cluster() as cluster:
        both_subscribe(cluster)
        cluster.faults.disconnect("bob", "b4")
        for number, name in enumerate(["b0", "b1", "b0", "b1"]):
            publish(cluster, number * 10, 10)
            cluster.faults.kill(name, disk_lost=True)
            cluster.advance(TAKE_OVER)
            cluster.faults.restart(name)
            cluster.advance(TAKE_OVER)
        cluster.faults.connect("bob", "b4")
        publish(cluster, 40, 10)
        all_of(cluster, 50)


def test_the_backup_is_lost_and_the_host_goes_on_alone() -> None:
    with a_cluster() as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        cluster.faults.kill("b1", disk_lost=True)
        publish(cluster, 10, 40)
        cluster.advance(TAKE_OVER)
        publish(cluster, 50, 10)
        all_of(cluster, 60)


def test_the_witness_is_lost_and_the_service_goes_on() -> None:
    with a_cluster() as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        cluster.faults.kill("b2", disk_lost=True)
        publish(cluster, 10, 10)
        cluster.advance("5 s")
        publish(cluster, 20, 10)
        all_of(cluster, 30)


def test_both_logs_are_lost_at_once_and_who_is_there_gets_what_is_published_later() -> None:
    with a_cluster() as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 20)
        cluster.settle()
        for name in ("b0", "b1"):
            cluster.faults.kill(name, disk_lost=True)
        cluster.advance("200 ms")
        for name in ("b0", "b1"):
            cluster.faults.restart(name)
        cluster.settle()
        cluster.advance("2 s")
        publish(cluster, 20, 20)
        cluster.drain()
        assert numbers(cluster, "bob")[-20:] == numbers(cluster, "carol")[-20:] == [*range(20, 40)]
        cluster.end()
        assert judge_run(cluster.folder).numbers["verdict"] == "valid"


@pytest.mark.parametrize("disk_lost", [False, True])
def test_a_claim_that_waited_for_the_witness_is_granted_to_nobody_who_is_gone(disk_lost: bool) -> None:
    """Hunt of irbr/end_to_end/backups, seed 59: the host asked to serve alone while the backup was held up, was in a
    pair with it again, and died. Then the witness went on: the two waited for each other for ever."""
    with a_cluster() as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        cluster.faults.stall("b2")
        cluster.faults.stall("b1")
        cluster.advance("600 ms")
        cluster.faults.resume("b1")
        publish(cluster, 10, 40)
        for client, broker in (("bob", "b4"), ("carol", "b3")):
            cluster.faults.disconnect(client, broker)
        publish(cluster, 50, 10)
        cluster.advance("1 s")
        cluster.faults.kill("b0", disk_lost=disk_lost)
        cluster.advance("1 s")
        cluster.faults.resume("b2")
        cluster.advance(TAKE_OVER)
        for client, broker in (("bob", "b4"), ("carol", "b3")):
            cluster.faults.connect(client, broker)
        go(cluster, "alice", "b0", "b1")
        publish(cluster, 60, 10)
        all_of(cluster, 70)


def test_a_witness_that_is_back_without_its_disk_is_told_how_it_stands() -> None:
    with a_cluster() as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        for disk_lost in (True, True):
            cluster.faults.kill("b2", disk_lost=disk_lost)
            cluster.advance("200 ms")
            cluster.faults.restart("b2")
            cluster.advance(TAKE_OVER)
        cluster.faults.kill("b0", disk_lost=True)
        go(cluster, "alice", "b0", "b1")
        publish(cluster, 10, 10)
        cluster.advance(TAKE_OVER)
        publish(cluster, 20, 10)
        all_of(cluster, 30)


Sides = Callable[[Cluster], None]
SIDES: dict[str, Sides] = {
    "the host is alone": lambda cluster: cluster.faults.partition(["b0", "alice"]),
    "the backup is alone": lambda cluster: cluster.faults.partition(["b1"]),
    "the host and the witness are together": lambda cluster: cluster.faults.partition(["b0", "alice", "b2"]),
    "the witness is alone": lambda cluster: cluster.faults.partition(["b2"]),
    "all three are apart": lambda cluster: cluster.faults.partition(["b0", "alice"], ["b1"], ["b2"]),
}


@pytest.mark.parametrize("sides", SIDES)
def test_the_network_is_divided_and_comes_together_again(sides: str) -> None:
    with a_cluster() as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        SIDES[sides](cluster)
        publish(cluster, 10, 60)
        cluster.faults.unite()
        publish(cluster, 70, 30)
        cluster.advance(TAKE_OVER)
        all_of(cluster, 100)


def test_two_that_both_believe_to_serve_accept_nothing_twice() -> None:
    """The host is stalled, and does not know when it goes on that the backup has taken over."""
    with a_cluster() as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        cluster.faults.stall("b0")
        publish(cluster, 10, 10)
        cluster.advance(TAKE_OVER)
        publish(cluster, 20, 10)
        cluster.faults.resume("b0")
        publish(cluster, 30, 10)
        go(cluster, "alice", "b0", "b1")
        publish(cluster, 40, 10)
        all_of(cluster, 50)


def test_the_host_is_back_with_an_old_log_and_passes_on_what_its_clients_submit() -> None:
    with a_cluster() as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        cluster.faults.kill("b0")
        go(cluster, "alice", "b0", "b1")
        publish(cluster, 10, 50)
        cluster.faults.restart("b0")
        go(cluster, "alice", "b1", "b0")
        publish(cluster, 60, 10)
        cluster.advance(TAKE_OVER)
        cluster.faults.kill("b1", disk_lost=True)
        cluster.advance(TAKE_OVER)
        publish(cluster, 70, 10)
        all_of(cluster, 80)


def test_the_host_is_lost_while_a_client_is_caught_up() -> None:
    with a_cluster(more={"catch_up": 2, "window": 4}) as cluster:
        both_subscribe(cluster)
        cluster.faults.disconnect("bob", "b4")
        publish(cluster, 0, 60)
        cluster.advance("1 s")
        cluster.faults.connect("bob", "b2")
        cluster.advance("100 ms")
        assert 0 < len(numbers(cluster, "bob")) < 60
        cluster.faults.kill("b0", disk_lost=True)
        cluster.advance(TAKE_OVER)
        all_of(cluster, 60)


def test_a_subscription_made_at_the_backup_begins_and_ends_as_one_made_at_the_host() -> None:
    with a_cluster() as cluster:
        both_subscribe(cluster)
        cluster.faults.kill("b0", disk_lost=True)
        cluster.advance(TAKE_OVER)
        go(cluster, "alice", "b0", "b1")
        publish(cluster, 0, 10)
        second = cluster.clients["carol"].subscribe("x >= 15")
        cluster.settle()
        publish(cluster, 10, 10)
        cluster.faults.restart("b0")
        cluster.advance(TAKE_OVER)
        cluster.faults.kill("b1", disk_lost=True)
        cluster.advance(TAKE_OVER)
        go(cluster, "alice", "b1", "b0")
        publish(cluster, 20, 10)
        cluster.drain()
        got = [int(each.sequence) for each in cluster.clients["carol"].deliveries(second)]
        assert got == list(range(15, 30))
        judged(cluster)


# ------------------------------------------------------------------------------------------------------ the judges
def _host_is_lost(reliability: str) -> Path:
    """What a run in which the host is lost for good leaves, its last events accepted long before."""
    with a_cluster(f"{__name__}:{Nowhere.__name__}", reliability, {"rest": "8 s", "rest_most": "8 s"}) as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        cluster.advance("4 s")
        cluster.faults.kill("b0")
        cluster.advance("12 s")
        cluster.drain()
        cluster.end()
        return cluster.folder


def test_a_publishers_broker_that_never_comes_back_is_no_excuse_where_it_has_a_backup() -> None:
    assert judge_run(_host_is_lost("end_to_end")).numbers["verdict"] == "valid"
    numbers = judge_run(_host_is_lost(BUGS["only the first broker is asked"])).numbers
    assert (numbers["verdict"], numbers["missing"], numbers["explained"]) == ("invalid", 20, 0)


@pytest.mark.spark
def test_nor_is_it_for_the_judge_in_spark() -> None:
    verdict = verdict_of(_host_is_lost(BUGS["only the first broker is asked"]), "spark")
    assert not verdict.valid
    assert verdict.numbers["missing"] == 20


def test_without_a_backup_it_is_the_excuse_that_it_was() -> None:
    with a_cluster(f"{__name__}:{Nowhere.__name__}", parameters={"end_to_end": {"pubends": ["b0"]}}) as cluster:
        both_subscribe(cluster)
        cluster.faults.disconnect("bob", "b4")
        publish(cluster, 0, 10)
        cluster.advance("4 s")
        cluster.faults.kill("b0", disk_lost=True)
        cluster.faults.connect("bob", "b4")
        cluster.drain()
        cluster.end()
        numbers = judge_run(cluster.folder).numbers
    assert (numbers["verdict"], numbers["missing"], numbers["explained"]) == ("valid", 10, 10)


# --------------------------------------------------------------------------------------------------- what is refused
def _scenario(**keys: Any) -> dict[str, Any]:
    parameters = {"end_to_end": {"pubends": ["b0"], "backups": {"b0": ["b1", "b2"]}}}
    broker = {"routing": "multipath", "reliability": "end_to_end", "parameters": parameters}
    return {"overlay": CHAIN, "workload": {"kind": "by_hand"}, "broker": broker, **DATAGRAMS, **keys}


def test_a_backup_that_is_no_broker_is_refused_with_its_key() -> None:
    scenario = _scenario()
    scenario["broker"]["parameters"]["end_to_end"]["backups"] = {"b0": ["b7", "b2"]}
    with pytest.raises(InputError, match=r"end_to_end\.backups\.b0: found 'b7'"):
        build(check_scenario(scenario, "a scenario"))


def test_publishers_that_cannot_go_to_a_backup_are_refused() -> None:
    with pytest.raises(InputError, match="last_mile: found broker, with a backup of b0"):
        build(check_scenario(_scenario(last_mile="broker"), "a scenario"))


def test_a_client_that_publishes_goes_to_the_backup_and_nowhere_else() -> None:
    def moved(to: str) -> dict[str, Any]:
        publishes = {"at": "1 s", "publish": "c0", "event": {"x": 1}}
        again = {"at": "3 s", "publish": "c0", "event": {"x": 2}}
        return _scenario(faults=[publishes, {"at": "2 s", "move_client": "c0", "to": to}, again])

    build(check_scenario(moved("b1"), "a scenario"))
    with pytest.raises(InputError, match="where it cannot publish; allowed: b0, b1"):
        build(check_scenario(moved("b3"), "a scenario"))


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"at": "1 s", "kill": "b0", "disk": "gone"}, r"disk: found 'gone'; allowed: lost"),
        ({"at": "1 s", "kill": "c0", "disk": "lost"}, r"found kill c0, its disk lost; allowed: a broker"),
        ({"at": "1 s", "stall": "b0", "disk": "lost"}, r"disk: found an unknown key"),
    ],
)
def test_a_disk_that_cannot_be_lost_is_refused(entry: dict[str, str], found: str) -> None:
    scenario = _scenario(runtime="virtual", faults=[entry])
    with pytest.raises(InputError, match=found):
        build(check_scenario(scenario, "a scenario"))


def test_every_broker_dies_twice_and_each_disk_is_lost_once() -> None:
    """The soak of `benchmarks.redundant_soak`, of 20 s in virtual time."""
    outcome = play_schedule({"name": "soak", "runtime": "virtual", **soak(20)})
    numbers = outcome.judgement.numbers
    assert numbers["verdict"] == "valid", numbers["reason"]
    assert numbers["required"] == 10_000
    assert numbers["explained"] == 0
    assert sum(step.disk_lost for step in outcome.deployment.faults) == 3
