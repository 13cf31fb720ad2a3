"""Brokers that publish and deliver themselves: what excuses that a publisher's own subscribers lack an event."""

from typing import Any

from murmuration.hunt.trial import play_schedule
from spark_analysis.plain_judge import Judgement

QUICK = {"failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"}}
WORKLOAD = {
    "kind": "zipf", "clients": 6, "publishers": 2, "publications": 70, "rate_per_s": 10, "attributes": 2,
    "predicates": 1, "matching_rate": 0.5, "subscribers_per_actor": 2,
}  # fmt: skip


def judged(**keys: Any) -> Judgement:
    own = {"name": "own", "runtime": "virtual", "last_mile": "broker", "workload": WORKLOAD, **QUICK}
    return play_schedule({**own, **keys}).judgement


def own_pairs(judgement: Judgement) -> list[str]:
    """The excuses of missing deliveries for subscribers at the publisher's broker: the two that it has."""
    found = [(source, reader, excuse.text) for (_, ((source, _), reader)), excuse in judgement.excused.items()]
    return [text for source, reader, text in found if reader // 2 == source]


def test_an_event_that_was_lost_on_its_way_to_the_root_need_not_come_back_from_there() -> None:
    overlay = {
        "kind": "structured", "brokers": 6, "probe": "200 ms", "probe_timeout": "100 ms", "leaf_set": 8,
        "identifiers": [23, 5, 21, 1, 11, 27],
    }  # fmt: skip
    judgement = judged(
        seed=1818, overlay=overlay, broker={"routing": "scribe"}, datagrams={"delay": "1 ms"},
        drain={"limit": "5 s"}, faults=[{"at": "760 ms", "kill": "b5", "for": "600 ms"}],
    )  # fmt: skip
    assert any("lost from b1 to b5" in text for text in own_pairs(judgement))
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]


def test_an_event_that_passed_a_broker_and_was_lost_on_its_way_to_the_root_need_not_come_back_there() -> None:
    overlay = {
        "kind": "structured", "brokers": 10, "probe": "200 ms", "probe_timeout": "100 ms", "leaf_set": 4,
        "identifiers": [20, 36, 5, 8, 26, 14, 35, 30, 24, 39],
    }  # fmt: skip
    workload = {
        **WORKLOAD, "clients": 11, "publications": 32, "resubscriptions": 1, "covered": 0.5, "integers": 4,
        "subscriptions_per_subscriber": 2, "arrival": "uniform",
    }  # fmt: skip
    judgement = judged(
        seed=331, overlay=overlay, workload=workload, broker={"routing": "scribe"}, datagrams={"delay": "1 ms"},
        drain={"limit": "5 s"}, faults=[{"at": "140 ms", "kill": "b9", "for": "600 ms"}],
    )  # fmt: skip
    assert any(reader // 2 == 1 for _, ((source, _), reader) in judgement.excused if source == 0)
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]


def test_a_broker_may_refuse_what_it_publishes_itself() -> None:
    judgement = judged(
        overlay={"kind": "chain", "brokers": 6}, drain={"limit": "60 s"},
        broker={"routing": "cells", "reliability": "durable", "parameters": {"durable": {"refuse_above": 15}}},
        faults=[{"at": "500 ms", "stall": "b5", "for": "6 s"}],
    )  # fmt: skip
    assert any("was told that it was refused" in text for text in own_pairs(judgement))
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]


def test_a_broker_that_was_killed_subscribes_anew_with_publishers_brokers_that_come_back_later() -> None:
    overlay = {
        "kind": "structured", "brokers": 2, "probe": "200 ms", "probe_timeout": "100 ms", "leaf_set": 16,
        "identifiers": [36, 11],
    }  # fmt: skip
    workload = {
        "kind": "zipf", "clients": 2, "publishers": 1, "publications": 104, "rate_per_s": 10, "attributes": 3,
        "predicates": 2, "matching_rate": 0.5, "subscribers_per_actor": 1, "integers": 4, "categories": 3,
        "subscriptions_per_subscriber": 3,
    }  # fmt: skip
    faults = [{"at": "0 ms", "kill": "b1", "for": "50 ms"}, {"at": "0 ms", "kill": "b0", "for": "10220 ms"}]
    judgement = judged(
        seed=7928, overlay=overlay, workload=workload, broker={"routing": "scribe", "reliability": "end_to_end"},
        datagrams={"delay": "1 ms"}, drain={"limit": "60 s"}, faults=faults,
    )  # fmt: skip
    assert any("begin anew" in excuse.text for excuse in judgement.excused.values())
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
