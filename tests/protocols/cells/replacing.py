"""A cluster with a cell of two and two subscribers' brokers, whose members are replaced while events flow."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from murmuration.harness.cluster import Cluster
from tests.protocols.durable.test_whole import QUICK

PAPERS: dict[str, Any] = {
    "kind": "cells",
    "cells": {"p": ["p1"], "m": ["b1", "b2"], "s": ["s1"], "t": ["t1"]},
    "links": [["p", "m"], ["m", "s"], ["m", "t"]],
}
CLIENTS = {"alice": "p1", "bob": "s1", "carol": "t1"}


@contextmanager
def a_cluster(reliability: str, **keys: Any) -> Iterator[Cluster]:
    """Alice publishes at p1; Bob at s1 and Carol at t1 have subscribed to all."""
    parameters = {} if reliability == "best_effort" else {reliability: {"pubends": {"p1": 2}}}
    given: dict[str, Any] = {
        "overlay": PAPERS, "clients": CLIENTS, "newcomers": ["n1", "n2"], "parameters": parameters, **QUICK, **keys
    }  # fmt: skip
    with Cluster.start(routing="cells", reliability=reliability, **given) as cluster:
        for name in ("bob", "carol"):
            cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        yield cluster


def publish(cluster: Cluster, count: int) -> None:
    """Alice publishes that many events more, 20 ms apart."""
    for _ in range(count):
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("20 ms")


def joins(cluster: Cluster, name: str, cell: str) -> str:
    """The broker joins with all its links; why it was refused, if it was."""
    return cluster.join_cell(name, cell).refusal


def departs(cluster: Cluster, told: str, broker: str) -> str:
    """That broker is told that the other one departs; why that was refused, if it was."""
    return cluster.order("depart", told, broker).refusal


def departs_later(cluster: Cluster, told: str, broker: str) -> str:
    """The same when everything has been heard."""
    cluster.advance("1 s")
    return departs(cluster, told, broker)


def goes(cluster: Cluster, client: str, old: str, new: str) -> None:
    """The client leaves its broker for another."""
    cluster.faults.disconnect(client, old)
    cluster.faults.connect(client, new)
