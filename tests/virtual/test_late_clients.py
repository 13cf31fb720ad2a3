"""Clients that are not there at first, and come while the run goes on."""

from pathlib import Path
from typing import Any

from tests.schedules import play

CLIENTS = 4


def scenario(folder: Path) -> dict[str, Any]:
    """All clients publish all the time; one of them comes in the second second."""
    trace = folder / "late.avt"
    trace.write_text("".join(f"c{each}\t1\t {1 if each == 1 else 0} 4\n" for each in range(CLIENTS)))
    return {
        "name": "late",
        "runtime": "virtual",
        "seed": 1,
        "overlay": {"kind": "balanced", "brokers": 3, "degree": 2},
        "workload": {
            "kind": "zipf", "clients": CLIENTS, "subscribers_per_actor": 2, "publishers": CLIENTS,
            "publications": 3_000, "rate_per_s": 1_000, "attributes": 1, "predicates": 1, "matching_rate": 0.5,
        },
        "links": {"delay": "2 ms"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "churn": {"trace": str(trace), "select": "active"},
    }  # fmt: skip


def test_what_a_client_publishes_before_its_first_link_is_up_is_lost_since_it_has_just_come(tmp_path: Path) -> None:
    outcome = play(scenario(tmp_path))
    assert outcome.judgement.pairs.missing, "nothing was published that early"
    assert outcome.unexplained == []
