"""Leases of durable subscriptions: what waits for one that is away for longer is given up, and it is told of what."""

from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import RowKind
from murmur_pubsub.promise import GIVEN_UP
from murmuration.harness.cluster import Cluster
from reliability.durable.parameters import DurableParameters
from spark_analysis.given_up import joined
from spark_analysis.history import read_history
from spark_analysis.plain_judge import Judgement, judge_run
from tests.protocols.durable.planted_bugs import ShortLease, SilentGivingUp
from tests.protocols.durable.test_whole import a_cluster, both_subscribe, judged, numbers, publish

LEASED = {"lease": "2 s", "checkpoint": 5}


def leased(**parameters: Any) -> Any:
    """A cluster whose subscriptions have a lease of 2 s."""
    return a_cluster(parameters={"durable": {**LEASED, **parameters}})


def told(cluster: Cluster) -> list[tuple[int, int]]:
    """What clients were told is lost of what Alice published: the first number and the last."""
    rows = read_history(cluster.folder / "journal").rows.of(RowKind.PROTOCOL)
    return [(row.value, row.sequence) for row in rows if row.bytes == GIVEN_UP]


def misses(cluster: Cluster, away: str) -> None:
    """Bob gets the events 0 to 9, is away while 10 to 39 come and so long after, and is back when 40 to 49 come."""
    both_subscribe(cluster)
    publish(cluster, 0, 10)
    cluster.advance("500 ms")  # he acknowledges them
    cluster.faults.disconnect("bob", "b2")
    publish(cluster, 10, 30)
    cluster.advance(away)
    cluster.faults.connect("bob", "b1")
    publish(cluster, 40, 10)
    cluster.drain()


def test_who_is_away_for_less_than_the_lease_gets_everything() -> None:
    with leased() as cluster:
        misses(cluster, "1 s")
        assert numbers(cluster, "bob") == list(range(50))
        assert judged(cluster).numbers["explained"] == 0
        assert told(cluster) == []


@pytest.mark.parametrize("lease", ["2 s", "3 s", "8 s"])
def test_a_lease_does_not_run_out_before_the_client_of_a_lost_event_is_asked(lease: str) -> None:
    """Nothing follows the events that were lost, so that only AckExpected shows them; and a client that takes few at a
    time gets the rest from what is kept for it."""
    with leased(lease=lease, window=5) as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        cluster.advance("4 s")  # no acknowledgement is expected any more
        cluster.faults.partition(["alice", "b0"])
        publish(cluster, 10, 10)
        cluster.advance("900 ms")  # silence is told meanwhile, and lost too
        cluster.faults.unite()
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(20))
        assert told(cluster) == []


def test_what_has_waited_for_longer_is_given_up_and_the_client_is_told_from_where_to_where() -> None:
    with leased() as cluster:
        misses(cluster, "2 s")
        got = numbers(cluster, "bob")
        judgement = judged(cluster)
        ((first, last),) = told(cluster)
    assert first == 10
    assert 10 < last < 40, "what came late in its absence had not waited for so long"
    assert got == [*range(10), *range(last + 1, 50)]
    assert judgement.numbers["missing"] == judgement.numbers["explained"] == last - first + 1
    assert {excuse.text for excuse in judgement.excused.values()} == {
        f"bob was away for longer than its lease, and told that it lacks 0:{first} to 0:{last}"
    }


def test_the_log_is_cut_behind_what_was_given_up() -> None:
    with leased(log_most=35) as cluster:
        both_subscribe(cluster)
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 0, 30)
        cluster.advance("3 s")
        publish(cluster, 30, 30)
        cluster.drain()
        assert numbers(cluster, "carol") == list(range(60))
        judged(cluster)
    topics = [row.bytes for row in read_history(cluster.folder / "journal").rows.of(RowKind.PROTOCOL)]
    assert GIVEN_UP not in topics, "he is not back"


@pytest.mark.parametrize("dies", ["before he is told", "after it"])
def test_a_publishers_broker_that_restarts_still_says_what_it_has_given_up(dies: str) -> None:
    with leased() as cluster:
        both_subscribe(cluster)
        publish(cluster, 0, 10)
        cluster.advance("500 ms")
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 10, 30)
        cluster.advance("4 s")
        publish(cluster, 40, 10)  # so that the log is cut
        cluster.advance("1 s")
        if dies == "after it":
            cluster.faults.connect("bob", "b1")
            cluster.advance("300 ms")
        cluster.faults.kill("b0")
        cluster.advance("500 ms")
        cluster.faults.restart("b0")
        if dies == "before he is told":
            cluster.faults.connect("bob", "b1")
        cluster.advance("1 s")
        publish(cluster, 50, 10)
        cluster.drain()
        assert numbers(cluster, "bob") == [*range(10), *range(40, 60)]
        judged(cluster)
        assert set(told(cluster)) == {(10, 39)}


def test_a_client_that_is_here_and_hands_nothing_back_is_told_when_it_goes_on() -> None:
    """It is as far as its window when it stands still; what follows that was given up meanwhile."""
    with leased(window=5) as cluster:
        both_subscribe(cluster)
        cluster.faults.slow("bob", "5 s")
        publish(cluster, 0, 50)
        cluster.advance("4 s")
        cluster.faults.slow("bob", "0 ms")
        cluster.drain()
        got = numbers(cluster, "bob")
        judgement = judged(cluster)
        assert numbers(cluster, "carol") == list(range(50))
    assert got == sorted(set(got))
    assert got[:5] == list(range(5)), "what he had been handed he gets before he is told"
    assert judgement.numbers["missing"] == 50 - len(got) > 0


def test_leases_do_not_run_while_their_publishers_broker_is_away() -> None:
    with leased() as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 0, 10)
        cluster.advance("300 ms")
        cluster.faults.kill("b0")
        cluster.advance("5 s")
        cluster.faults.restart("b0")
        cluster.advance("500 ms")
        cluster.faults.connect("bob", "b1")
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(10))
        judged(cluster)


def test_others_of_the_same_broker_keep_what_waits_for_them() -> None:
    with leased() as cluster:
        both_subscribe(cluster)
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 0, 10)
        cluster.advance("1800 ms")
        cluster.faults.disconnect("carol", "b2")
        publish(cluster, 10, 10)
        cluster.advance("500 ms")
        for name in ("bob", "carol"):
            cluster.faults.connect(name, "b1")
        cluster.drain()
        assert numbers(cluster, "carol") == list(range(20))
        assert numbers(cluster, "bob") == list(range(10, 20))
        judged(cluster)


def verdict_of(reliability: Any, away: str) -> Judgement:
    with a_cluster(reliability=reliability, parameters={"durable": LEASED}) as cluster:
        misses(cluster, away)
        cluster.end()
        return judge_run(cluster.folder)


def test_a_judge_sees_a_lease_that_runs_out_too_soon_and_one_of_which_nobody_is_told() -> None:
    early = verdict_of(f"{ShortLease.__module__}:{ShortLease.__name__}", "500 ms")
    silent = verdict_of(f"{SilentGivingUp.__module__}:{SilentGivingUp.__name__}", "2 s")
    for judgement in (early, silent):
        assert judgement.numbers["verdict"] == "invalid"
        assert judgement.left("missing")


def test_a_lease_below_what_an_acknowledgement_takes_is_refused() -> None:
    with pytest.raises(InputError, match="at least twice ack_delay"):
        DurableParameters(lease=300)


def test_stretches_that_touch_are_one() -> None:
    assert joined([(5, 9), (0, 3), (3, 4), (8, 20)]) == [(0, 4), (5, 20)]
