"""Where datagrams lose messages all the time, an event may not have had its turn when its subscriber withdraws."""

from typing import Any

from murmuration.hunt.trial import play_schedule

SCENARIO: dict[str, Any] = {
    "name": "lossy", "runtime": "virtual", "seed": 9,
    "overlay": {"kind": "structured", "brokers": 40},
    "broker": {"routing": "irbr", "reliability": "end_to_end"},
    "workload": {
        "kind": "zipf", "clients": 20, "publishers": 4, "publications": 80, "rate_per_s": 8, "attributes": 2,
        "predicates": 1, "matching_rate": 0.1, "subscribers_per_actor": 2, "resubscriptions": 20,
    },
    "datagrams": {"delay": "5 ms", "loss": 0.2},
    "drain": {"limit": "30 s"},
}  # fmt: skip


def test_what_lossy_datagrams_have_not_brought_before_its_subscriber_withdraws_is_no_loss() -> None:
    judgement = play_schedule(SCENARIO).judgement
    assert [excuse.text.split(":")[0] for excuse in judgement.excused.values()] == ["links lose messages"]
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
