"""The orders of multipath forwarding, given by a scenario, by hand and at random: moves, departures, joins."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from murmuration import Cluster
from spark_analysis.plain_judge import Judgement, judge_run
from tests.schedules import play

CLIENTS = {"alice": "b0", "bob": "b4", "carol": "new"}
MULTIPATH: dict[str, Any] = {
    "routing": "multipath",
    "parameters": {"multipath": {"strategy": "S1"}},
    "newcomers": ["new"],
    "links": {"delay": "2 ms"},
    "datagrams": {"delay": "1 ms"},
}


def order_about(cluster: Cluster) -> Judgement:
    """Let b4 move, a newcomer join and depart, events being published all the time."""
    published = 0

    def publish(count: int) -> None:
        nonlocal published
        for _ in range(count):
            cluster.clients["alice"].publish({"x": published})
            cluster.advance("100 ms")
            published += 1

    def got(client: str) -> list[Any]:
        return [each.attributes["x"] for each in cluster.clients[client].deliveries()]

    for name in ("bob", "carol"):
        cluster.clients[name].subscribe("x >= 0")
    cluster.settle()
    cluster.advance("1 s")
    publish(1)
    assert "coordinator" in cluster.order("move", "b4", "b3", "b2").refusal
    assert cluster.order("coordinator", "b0").refusal == ""
    cluster.advance("500 ms")
    number = cluster.faults.order("move", "b4", "b3", "b2")
    while cluster.answer(number) is None:
        publish(1)
        assert published < 200
    answer = cluster.answer(number)
    assert answer is not None
    assert answer.refusal == ""
    assert "b3" in cluster.order("move", "b4", "b3", "b2").refusal, "it is no neighbour any more"
    cluster.faults.join("new", "b1")
    cluster.settle()
    cluster.advance("1 s")
    joined = published
    publish(3)
    cluster.advance("1 s")
    assert cluster.order("depart", "b1").refusal != "", "it is no edge broker"
    assert cluster.order("depart", "new").refusal == ""
    publish(3)
    cluster.advance("2 s")
    assert sorted(got("bob")) == list(range(published))
    assert set(range(joined, joined + 3)) <= set(got("carol"))
    cluster.end()
    return judge_run(cluster.folder)


def check(judgement: Judgement) -> None:
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    assert [(check.fault.split(" (")[0], check.outcome) for check in judgement.checks] == [
        ("move b4 from b3 to b2", "not_exercised"),
        ("coordinator b0", "took_effect"),
        ("move b4 from b3 to b2", "took_effect"),
        ("move b4 from b3 to b2", "not_exercised"),
        ("connect new-b1", "took_effect"),
        ("depart b1", "not_exercised"),
        ("depart new", "took_effect"),
    ]
    assert {excuse.text.split(": ")[1] for excuse in judgement.excused.values()} == {
        "no path was left",
        "nothing is promised at that broker",
    }


def test_a_move_a_join_and_a_departure_by_hand_lose_nothing_but_what_nobody_is_promised(tmp_path: Path) -> None:
    with Cluster.start({"kind": "chain", "brokers": 5}, CLIENTS, folder=tmp_path / "run", **MULTIPATH) as cluster:
        check(order_about(cluster))


def test_a_broker_that_departed_joins_again_at_another_place(tmp_path: Path) -> None:
    with Cluster.start({"kind": "chain", "brokers": 5}, CLIENTS, folder=tmp_path / "run", **MULTIPATH) as cluster:
        cluster.clients["carol"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.join("new", "b1")
        cluster.settle()
        assert cluster.order("depart", "new").refusal == ""
        cluster.settle()  # its neighbour has heard of it
        cluster.faults.kill("new")
        cluster.faults.disconnect("new", "b1")
        cluster.faults.join("new", "b3")
        cluster.settle()
        cluster.advance("1 s")
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("1 s")
        assert [each.attributes["x"] for each in cluster.clients["carol"].deliveries()] == [1]
        cluster.end()
        assert judge_run(cluster.folder).numbers["verdict"] == "valid"


def each_gets_all(cluster: Cluster, clients: Iterable[str]) -> None:
    """Each of the clients publishes an event, and each gets all of them once."""
    wanted = {name: cluster.clients[name].subscribe("x >= 0") for name in clients}
    cluster.settle()
    for name in wanted:
        cluster.clients[name].publish({"x": 1})
        cluster.advance("100 ms")
    cluster.advance("1 s")
    for name, subscription in wanted.items():
        assert len(cluster.clients[name].deliveries(subscription)) == len(wanted)
        cluster.clients[name].unsubscribe(subscription)


def joins_elsewhere(strategy: str) -> dict[str, Any]:
    if strategy == "delegation":
        return {**MULTIPATH, "routing": "multipath_delegation", "parameters": {}, "newcomers": []}
    return {**MULTIPATH, "parameters": {"multipath": {"strategy": strategy}}, "newcomers": []}


@pytest.mark.parametrize("strategy", ["S0", "S1", "S2", "SH", "delegation"])
@pytest.mark.parametrize("back", ["before", "after", "never"])
@pytest.mark.parametrize(("parted", "joined"), [("b2", "b3"), ("b3", "b2")])
def test_a_broker_joins_elsewhere_when_its_link_to_a_dead_neighbour_is_taken_away(
    strategy: str, back: str, parted: str, joined: str
) -> None:
    """It bridges the neighbour, and cannot tell that it is not to do so any more until somebody hears it again. Of its
    filters all are told meanwhile."""
    clients = {f"c{number}": f"b{number}" for number in range(1, 4)}
    with Cluster.start({"kind": "star", "brokers": 4}, clients, **joins_elsewhere(strategy)) as cluster:
        cluster.faults.kill("b0")
        cluster.faults.disconnect("b0", parted)
        cluster.advance("200 ms")
        if back == "before":
            cluster.faults.restart("b0")
            cluster.advance("400 ms")
        cluster.faults.connect(joined, parted)
        cluster.settle()
        if back == "before" or strategy != "S0":  # S0 bridges nothing
            each_gets_all(cluster, clients)
        if back == "after":
            cluster.faults.restart("b0")
            cluster.settle()
            each_gets_all(cluster, clients)


@pytest.mark.parametrize("strategy", ["S0", "S1", "S2", "SH", "delegation"])
@pytest.mark.parametrize("back", [True, False])
@pytest.mark.parametrize("dead", [("b1",), ("b4",), ("b1", "b4"), ("b4", "b1")])
def test_a_broker_joins_beyond_its_map_when_its_link_to_a_dead_neighbour_is_taken_away(
    strategy: str, back: bool, dead: tuple[str, ...]
) -> None:
    """Neither end of the new link can tell by its map that there would be a cycle. If all neighbours of both are dead,
    the wrong one may give up its own; when that is back, both hear."""
    parted, joined = ("b0", "b5") if dead[0] == "b1" else ("b5", "b0")
    clients = {f"c{number}": f"b{number}" for number in range(6) if f"b{number}" not in dead}
    with Cluster.start({"kind": "chain", "brokers": 6}, clients, **joins_elsewhere(strategy)) as cluster:
        for broker in dead:
            cluster.faults.kill(broker)
        cluster.faults.disconnect(dead[0], parted)
        cluster.advance("1200 ms")
        cluster.faults.connect(joined, parted)
        cluster.settle()
        if strategy != "S0":
            each_gets_all(cluster, clients)
        if back:
            for broker in dead:
                cluster.faults.restart(broker)
            cluster.settle()
            cluster.advance("1 s")
            each_gets_all(cluster, clients)


@pytest.mark.parametrize("strategy", ["S1", "S2", "SH", "delegation"])
@pytest.mark.parametrize("newcomer", ["a", "z"])
def test_a_newcomer_at_a_broker_whose_neighbours_are_dead_takes_nothing_from_it(strategy: str, newcomer: str) -> None:
    clients = {"c0": "b0", "c2": "b2", "c9": newcomer}
    keys = {**joins_elsewhere(strategy), "newcomers": [newcomer]}
    with Cluster.start({"kind": "chain", "brokers": 3}, clients, **keys) as cluster:
        cluster.faults.kill("b1")
        cluster.advance("1200 ms")
        cluster.faults.join(newcomer, "b0")
        cluster.settle()
        each_gets_all(cluster, clients)
        cluster.faults.restart("b1")
        cluster.settle()
        each_gets_all(cluster, clients)


@pytest.mark.parametrize("seed", range(4))
def test_orders_at_random_lose_nothing(seed: int) -> None:
    """Moves along walks, of which most are refused; brokers that join in the middle; one coordinator after another."""
    kinds = ["move", "move", "join", "coordinator"]
    random = {"every": "300 ms", "until": "8 s", "kinds": kinds}
    outcome = play(
        {
            "name": "orders",
            "runtime": "virtual",
            "seed": seed,
            "overlay": {"kind": "random", "brokers": 8, "degree": 3},
            "newcomers": ["new", "newer"],
            "workload": {
                "kind": "zipf",
                "clients": 8,
                "subscribers_per_actor": 2,
                "publishers": 4,
                "publications": 300,
                "rate_per_s": 30,
                "attributes": 2,
                "predicates": 1,
                "matching_rate": 0.4,
            },
            "broker": {"routing": "multipath", "parameters": {"multipath": {"strategy": "S1"}}},
            "links": {"delay": "2 ms"},
            "datagrams": {"delay": "1 ms"},
            "faults": [{"at": "0 ms", "coordinator": "b0"}, {"random": random}],
        }
    )
    assert outcome.verdict.required > 500
    assert outcome.verdict.missing == []
    assert outcome.judgement.numbers["verdict"] == "valid"
    done = [check.fault.split()[0] for check in outcome.checks if check.outcome == "took_effect"]
    assert {"move", "coordinator", "connect"} <= set(done)
