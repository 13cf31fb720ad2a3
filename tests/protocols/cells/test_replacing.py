"""A broker joins a cell, another departs from it for good, and nobody misses anything."""

from collections.abc import Callable

import pytest

from murmur_pubsub.errors import InputError
from murmuration.harness.cluster import Cluster
from tests.protocols.cells.replacing import (
    CLIENTS,
    PAPERS,
    a_cluster,
    departs,
    departs_later,
    goes,
    joins,
    publish,
)
from tests.protocols.durable.test_whole import judged, numbers

RELIABILITIES = ("best_effort", "gryphon", "durable")
PROMISING = ("gryphon", "durable")


@pytest.mark.parametrize("reliability", RELIABILITIES)
def test_both_brokers_of_a_cell_are_replaced_while_events_flow(reliability: str) -> None:
    with a_cluster(reliability) as cluster:
        publish(cluster, 10)
        assert joins(cluster, "n1", "m") == ""
        publish(cluster, 10)
        assert departs(cluster, "n1", "b1") == ""
        publish(cluster, 10)
        cluster.faults.kill("b1")
        assert joins(cluster, "n2", "m") == ""
        publish(cluster, 10)
        assert departs(cluster, "n1", "b2") == ""
        publish(cluster, 5)
        cluster.faults.kill("b2")
        publish(cluster, 25)
        cluster.drain()
        for name in ("bob", "carol"):
            assert numbers(cluster, name) == list(range(70))
        judgement = judged(cluster)
    assert judgement.numbers["required"] == 140
    assert judgement.numbers["explained"] == 0


def test_a_subscribers_broker_is_replaced_while_events_flow() -> None:
    with a_cluster("durable") as cluster:
        publish(cluster, 10)
        assert joins(cluster, "n1", "s") == ""
        publish(cluster, 5)
        goes(cluster, "bob", "s1", "n1")
        publish(cluster, 20)
        assert departs(cluster, "n1", "s1") == ""
        cluster.faults.kill("s1")
        publish(cluster, 20)
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(55))
        judgement = judged(cluster)
    assert judgement.numbers["explained"] == 0


def test_a_new_subscriber_at_a_newcomer_is_served_and_the_log_shrinks() -> None:
    with a_cluster("gryphon", clients={**CLIENTS, "dora": "n1"}) as cluster:
        publish(cluster, 10)
        assert joins(cluster, "n1", "s") == ""
        wanted = cluster.clients["dora"].subscribe("x >= 0")
        cluster.settle()
        publish(cluster, 20)
        cluster.faults.kill("n1")
        publish(cluster, 5)
        cluster.faults.restart("n1")
        cluster.settle()
        publish(cluster, 10)
        cluster.drain()
        got = [int(each.sequence) for each in cluster.clients["dora"].deliveries(wanted)]
        assert got == [*range(10, 30), *range(35, 45)]
        judged(cluster)


@pytest.mark.parametrize("reliability", PROMISING)
def test_a_broker_that_died_for_good_is_replaced(reliability: str) -> None:
    """By an order to its sibling; the last broker of the cell that lives is not waited for, and nothing is kept."""
    with a_cluster(reliability) as cluster:
        cluster.faults.kill("b1")
        publish(cluster, 10)
        assert departs(cluster, "b2", "b1") == ""
        assert joins(cluster, "n1", "m") == ""
        publish(cluster, 10)
        cluster.faults.kill("b2")
        publish(cluster, 20)
        cluster.drain()
        for name in ("bob", "carol"):
            assert numbers(cluster, name) == list(range(40))
        assert judged(cluster).numbers["explained"] == 0


@pytest.mark.parametrize("reliability", PROMISING)
def test_a_departed_broker_that_comes_back_is_nobody(reliability: str) -> None:
    with a_cluster(reliability) as cluster:
        assert joins(cluster, "n1", "m") == ""
        cluster.faults.kill("b1")
        assert departs(cluster, "b2", "b1") == ""
        publish(cluster, 10)
        cluster.faults.restart("b1")
        publish(cluster, 20)
        cluster.faults.kill("b2")
        cluster.faults.kill("n1")
        publish(cluster, 10)
        cluster.faults.restart("n1")
        publish(cluster, 10)
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(50))
        assert judged(cluster).numbers["explained"] == 0


REFUSED: dict[str, tuple[Callable[[Cluster], str], str]] = {
    "a cell that there is not": (lambda cluster: joins(cluster, "n1", "nowhere"), "there is no cell 'nowhere'"),
    "a member already": (
        lambda cluster: cluster.order("join", "b1", "s").refusal, "b1 is a member of m already",
    ),
    "a lone broker between others": (
        lambda cluster: joins(cluster, "n1", "u"), "u has one broker, with its clients, between others",
    ),
    "a pubend's broker": (lambda cluster: departs(cluster, "b1", "p1"), "p1 hosts pubends: events enter there"),
    "the last member": (lambda cluster: departs(cluster, "b1", "s1"), "s1 is the last member of s"),
    "by one that goes itself": (
        lambda cluster: departs(cluster, "b1", "b1"), "b1 is no other member of m: tell one that stays, such as b2",
    ),
    "by one of another cell": (
        lambda cluster: departs(cluster, "s1", "b1"), "s1 is no other member of m: tell one that stays, such as b2",
    ),
    "no member": (lambda cluster: departs(cluster, "b1", "n2"), "'n2' is no member of a cell"),
    "with subscribers": (
        lambda cluster: joins(cluster, "n1", "s") or departs_later(cluster, "n1", "s1"),
        "s1 has subscribers: move its clients away",
    ),
    "whose subscribers are not known yet": (
        lambda cluster: joins(cluster, "n1", "s") or departs(cluster, "n1", "s1"),
        "nothing is known here yet of subscribers at s1",
    ),
    "for the second time": (
        lambda cluster: departs(cluster, "b1", "b2") or departs(cluster, "b1", "b2"), "'b2' is no member of a cell",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_answered_with_why(case: str) -> None:
    order, why = REFUSED[case]
    between = {**PAPERS, "cells": {**PAPERS["cells"], "u": ["u1"], "v": ["v1"]}}
    overlay = {**between, "links": [*PAPERS["links"], ["m", "u"], ["u", "v"]]}
    with a_cluster("gryphon", overlay=overlay) as cluster:
        publish(cluster, 3)
        assert order(cluster).startswith(why)
        publish(cluster, 3)
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(len(numbers(cluster, "carol"))))
        assert len(numbers(cluster, "bob")) >= 6
        judged(cluster)


def test_a_dead_broker_with_subscribers_departs_once_it_is_forgotten() -> None:
    with a_cluster("durable") as cluster:
        assert joins(cluster, "n1", "s") == ""
        publish(cluster, 5)
        cluster.faults.kill("s1")
        publish(cluster, 5)
        goes(cluster, "bob", "s1", "n1")
        assert departs(cluster, "n1", "s1").startswith("s1 has subscribers")
        assert cluster.order("forget", "n1", "s1").refusal == ""
        assert departs(cluster, "n1", "s1") == ""
        publish(cluster, 10)
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(20))
        judged(cluster)


NO_PLAN: dict[str, tuple[Callable[[Cluster], None], str | None]] = {
    "a client goes to a broker that has not joined": (
        lambda cluster: goes(cluster, "bob", "s1", "n1"), "where no clients are",
    ),
    "a new link of brokers that have been started": (
        lambda cluster: cluster.faults.connect("b1", "n2"), None,
    ),
    "a link between two cells that are no neighbours": (
        lambda cluster: cluster.faults.connect("p1", "s1"), "which have both been started",
    ),
    "a link of a member is taken away": (
        lambda cluster: cluster.faults.disconnect("b1", "s1"), "neither of which has departed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_PLAN)
def test_what_no_plan_may_say(case: str) -> None:
    step, why = NO_PLAN[case]
    with a_cluster("durable") as cluster:
        if why is None:
            step(cluster)
        else:
            with pytest.raises(InputError, match=why):
                step(cluster)


def test_the_links_of_a_departed_broker_may_be_taken_away() -> None:
    with a_cluster("gryphon") as cluster:
        assert departs(cluster, "b1", "b2") == ""
        publish(cluster, 5)
        for peer in ("p1", "b1", "s1", "t1"):
            cluster.faults.disconnect("b2", peer)
        publish(cluster, 5)
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(10))
        judged(cluster)
