"""Publiy section 6: brokers that hear of the end of a move when all others have forgotten it."""

from typing import Any

import pytest

from murmuration.hunt.trial import play_schedule

MOVE_AND_DEATH: dict[str, Any] = {
    "name": "late-end",
    "runtime": "virtual",
    "seed": 5002,
    "overlay": {"kind": "chain", "brokers": 6},
    "workload": {
        "kind": "zipf", "clients": 6, "subscribers_per_actor": 2, "publishers": 2, "publications": 120,
        "rate_per_s": 40, "attributes": 2, "predicates": 1, "matching_rate": 0.5,
    },
    "links": {"delay": "2 ms"},
    "datagrams": {"delay": "1 ms"},
    "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
}  # fmt: skip


@pytest.mark.parametrize("routing", ["multipath", "multipath_delegation"])
@pytest.mark.parametrize("killed_ms", [1_200, 1_300, 1_330, 1_360])
def test_publiy_s6_who_hears_late_of_the_end_of_a_move_takes_no_copy_for_one_by_the_tree_before(
    routing: str, killed_ms: int
) -> None:
    """b3 is away when the others forget the tree before the move, and is told of the move when it is back. It keeps
    that tree for a grace, in which the others forget the move. What they sent by the new tree it passed on by the old
    one: events of b1 did not come to b4 any more (schedule multipath/best_effort 2001180)."""
    broker = {"routing": routing, "parameters": {routing: {"coordinator": "b0"}}}
    faults = [
        {"at": "330 ms", "move": "b0", "from": "b1", "to": "b2"},
        {"at": f"{killed_ms} ms", "kill": "b3", "for": "50 ms"},
    ]
    outcome = play_schedule({**MOVE_AND_DEATH, "broker": broker, "faults": faults})
    assert outcome.verdict.required > 500
    assert outcome.unexplained == []
    assert outcome.verdict.duplicate == []
