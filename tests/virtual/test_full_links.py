"""A broker whose queue to a peer is full takes nothing that could fill it further, but takes what that peer sends."""

from pathlib import Path

import pytest

from murmur_pubsub.journal import NONE, RowKind
from murmur_pubsub.journal_rows import read_rows
from murmuration.harness.cluster import Cluster

LINKS = {"messages_per_s": 100, "queue_messages": 4}
B0, B1, ALICE = range(3)


@pytest.mark.parametrize("fifth_ms", [1, 27])
def test_a_broker_that_pauses_takes_what_comes_from_the_peer_and_makes_others_wait(
    fifth_ms: int, tmp_path: Path
) -> None:
    """Alice's four events fill b0's queue to b1, which is half empty after 30 ms: her fifth, before or after Bob's,
    waits for that. Bob's two, of 5 ms, take 10 ms each over the link the other way, and do not wait."""
    with Cluster.start(
        {"kind": "chain", "brokers": 2}, {"alice": "b0", "bob": "b1"}, folder=tmp_path / "run", links=LINKS
    ) as cluster:
        alice, bob = cluster.clients["alice"], cluster.clients["bob"]
        alice.subscribe("x = 1")
        bob.subscribe("x = 2")
        cluster.settle()
        begin_us = cluster.now_us
        alice.publish(*({"x": 2} for _ in range(4)))
        for now_ms in range(1, 28):
            cluster.advance("1 ms")
            if now_ms == 5:
                bob.publish(*({"x": 1} for _ in range(2)))
            if now_ms == fifth_ms:
                alice.publish({"x": 2})
        cluster.wait_for(lambda: (len(bob.deliveries()), len(alice.deliveries())) == (5, 2))
    rows = read_rows(tmp_path / "run" / "journal")
    rows = rows[rows["node"] == B0]
    events = rows[(rows["kind"] == RowKind.RECEIVE) & (rows["sequence"] != NONE)]
    came = [(int(row["time_us"]) - begin_us, int(row["peer"])) for row in events]
    assert came == [(0, ALICE)] * 4 + [(15_000, B1), (25_000, B1), (30_000, ALICE)]
    pauses = rows[rows["kind"] == RowKind.PAUSE]
    told = [(int(row["time_us"]) - begin_us, int(row["value"]), int(row["peer"])) for row in pauses]
    assert told == [(0, 1, B1), (30_000, 0, B1)]


def test_a_slow_broker_before_a_full_link_keeps_the_order_of_each_source(tmp_path: Path) -> None:
    """When there is room again, others wait for their turn already: Carol's, since b1 is at work."""
    with Cluster.start(
        {"kind": "chain", "brokers": 3},
        {"alice": "b0", "bob": "b2", "carol": "b1"},
        folder=tmp_path / "run",
        links=LINKS,
    ) as cluster:
        alice, bob, carol = cluster.clients["alice"], cluster.clients["bob"], cluster.clients["carol"]
        bob.subscribe("x >= 0")
        cluster.settle()
        cluster.faults.slow("b1", work="3 ms")
        for number in range(40):
            alice.publish({"x": number})
            carol.publish({"x": 100 + number})
            cluster.advance("5 ms")
        cluster.wait_for(lambda: len(bob.deliveries()) == 80)
        got = [int(each.attributes["x"]) for each in bob.deliveries()]
    assert [each for each in got if each < 100] == list(range(40))
    assert [each for each in got if each >= 100] == list(range(100, 140))
