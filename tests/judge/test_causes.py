"""Deliveries by cause: the figures of both judges are the same, and say what happened."""

import random

import numpy as np
import pandas as pd

from murmur_pubsub.journal import RowKind
from spark_analysis.cause_parts import cause_part, causes_in_parts
from spark_analysis.causes import Causes, causes_of, links_up
from spark_analysis.plain_judge import judge_run
from tests.protocols.durable.test_whole import a_cluster, publish


def test_an_event_that_waited_for_its_client_was_caught_up_with() -> None:
    ups_us = {1: [100, 5_000], 2: [100]}
    deliveries = [
        (1, 1_000, 1_010), (1, 2_000, 5_040), (1, 4_999, 6_000), (1, 5_001, 5_011), (2, 4_000, 6_000), (3, 7, 9),
    ]  # fmt: skip
    assert causes_of(deliveries, ups_us) == Causes(1_000, 2_000, 3_040)
    assert causes_of([(1, 1_000, 1_010)], ups_us) == Causes(None, 10, None)
    assert causes_of([], {}) == Causes()


def test_it_is_no_matter_in_what_parts_deliveries_are_looked_at() -> None:
    rng = random.Random(7)
    ups_us = {node: sorted(rng.sample(range(10**6), 5)) for node in range(5)}
    deliveries = []
    for _ in range(3_000):
        published_us = rng.randrange(10**6)
        deliveries.append(
            (rng.randrange(7), published_us, published_us + rng.choice((0, 7, 999, 54_321, 10**5, 10**6)))
        )
    parts = [
        cause_part(ups_us, *np.array(deliveries[at : at + 500], np.int64).T) for at in range(0, len(deliveries), 500)
    ]
    assert causes_in_parts(pd.concat(parts)) == causes_of(deliveries, ups_us)


def test_links_of_brokers_and_ends_of_links_do_not_count() -> None:
    up, down = int(RowKind.LINK_UP), int(RowKind.LINK_DOWN)
    rows = [(9, up, "c", "b"), (5, down, "c", "b"), (1, up, "c", "b"), (1, up, "b", "c"), (2, up, "b", "d")]
    assert links_up(rows, {"c": "b"}, {"b": 0, "c": 1}) == {1: [1, 9]}


def test_the_verdict_says_how_long_catching_up_took() -> None:
    with a_cluster(links={"delay": "2 ms"}) as cluster:
        for name in ("bob", "carol"):
            cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 0, 100)
        cluster.faults.connect("bob", "b2")
        publish(cluster, 100, 10)
        cluster.drain()
        cluster.end()
        verdict = judge_run(cluster.folder).numbers
    assert 8_000 < verdict["catch_up_us"] < 100_000
    assert verdict["delay_live_p99_us"] < 10_000
    assert 1_900_000 < verdict["delay_caught_up_p99_us"] < 2_100_000
