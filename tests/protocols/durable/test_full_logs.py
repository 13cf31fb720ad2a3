"""A bound on what publishers' brokers keep: the slowest subscription loses what is oldest, and is told so."""

from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from reliability.durable.log import DurableLog
from reliability.durable.parameters import DurableParameters
from reliability.gryphon.pubend_log import Logged
from tests.protocols.durable.planted_bugs import DropsTooMuch
from tests.protocols.durable.test_leases import told
from tests.protocols.durable.test_whole import a_cluster, both_subscribe, judged, numbers, publish

ALL = parse_filter("x >= 0")


def test_the_oldest_message_is_given_up_for_whoever_lacks_it_and_no_other() -> None:
    log = DurableLog("p", 200, 3)
    for client in ("away", "here", "slow"):
        log.enlist(client, 1, [(1, ALL)], {0: 9})
    for tick in (10, 11, 12, 13, 14):
        log.append(Logged(0, tick, Event(3, tick, 0, {"x": 1})))
    log.record.release("here", 0, 14)
    log.record.release("slow", 0, 11)
    log.cut({0: 10})
    lost = {name: [each.flat for each in known.lost.values()] for name, known in log.record.registrations.items()}
    assert lost == {"away": [[3, 10, 10]], "here": [], "slow": []}, "other brokers still need the next one"
    log.cut({0: 14})
    lost = {name: [each.flat for each in known.lost.values()] for name, known in log.record.registrations.items()}
    assert lost == {"away": [[3, 10, 11]], "here": [], "slow": []}
    assert len(log) == 3
    log.record.check_invariants()


def drops(reliability: Any = "durable") -> Any:
    """A cluster whose publishers' brokers keep 20 messages."""
    return a_cluster(reliability=reliability, parameters={"durable": {"drop_above": 20, "checkpoint": 5}})


def miss(cluster: Any, lacks: int) -> None:
    """Bob has the first 10 events, lacks so many, and is back for the last 5."""
    both_subscribe(cluster)
    publish(cluster, 0, 10)
    cluster.advance("500 ms")
    cluster.faults.disconnect("bob", "b2")
    publish(cluster, 10, lacks)
    cluster.advance("1 s")
    cluster.faults.connect("bob", "b1")
    publish(cluster, 10 + lacks, 5)
    cluster.drain()


def test_a_subscriber_that_lacks_no_more_than_is_kept_gets_everything() -> None:
    with drops() as cluster:
        miss(cluster, 20)
        assert numbers(cluster, "bob") == list(range(35))
        assert judged(cluster).numbers["explained"] == 0
        assert told(cluster) == []


def test_one_that_lacks_more_has_lost_the_oldest_and_is_told_so() -> None:
    with drops() as cluster:
        miss(cluster, 50)
        assert numbers(cluster, "carol") == list(range(65))
        assert numbers(cluster, "bob") == [*range(10), *range(40, 65)]
        judgement = judged(cluster)
        assert told(cluster) == [(10, 39)]
    assert judgement.numbers["explained"] == 30
    assert {excuse.text for excuse in judgement.excused.values()} == {
        "a log was full of what bob lacked, and it was told that it lacks 0:10 to 0:39"
    }


def test_a_judge_sees_that_more_was_dropped_than_the_bound_allows() -> None:
    with drops(f"{DropsTooMuch.__module__}:{DropsTooMuch.__name__}") as cluster:
        miss(cluster, 50)
        with pytest.raises(AssertionError, match="are missing without a fault"):
            judged(cluster)


def test_a_bound_at_which_publishers_would_wait_is_refused() -> None:
    with pytest.raises(InputError, match="at most half of log_most"):
        DurableParameters(drop_above=60, log_most=100)
