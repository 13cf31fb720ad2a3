"""Redundant publishers' brokers while one of the three is lost after the other, each when all is mended: nothing may be
missing, and nothing is excused, whichever it is and whatever becomes of it."""

import random
from typing import Any

import pytest

from murmuration.hunt.trial import play_schedule
from tests.protocols.durable.test_schedules import left
from tests.protocols.end_to_end.redundant_bugs import BUGS

TURNS = 4
TURN_MS = 5_000
"""What a loss and its mending take, with room to spare."""


def in_turn(seed: int, reliability: str = "end_to_end") -> dict[str, Any]:
    """A scenario in which some of the three are lost one after the other, the last one for good."""
    rng = random.Random(seed)
    faults: list[dict[str, Any]] = []
    client_at = "b0"
    for turn in range(TURNS):
        at_ms = turn * TURN_MS + rng.randrange(1_000)
        name = rng.choice(("b0", "b1", "b0", "b1", "b2"))
        what: dict[str, Any] = rng.choice(({"kill": name}, {"kill": name}, {"stall": name}, {"partition": [[name]]}))
        if "kill" in what and rng.random() < 0.7:
            what = {**what, "disk": "lost"}
        is_last = turn == TURNS - 1
        lasting = {} if is_last and "kill" in what else {"for": f"{rng.choice((50, 300, 1_000, 2_500))} ms"}
        faults.append({"at": f"{at_ms} ms", **what, **lasting})
        other = "b1" if client_at == "b0" else "b0"
        if what.get("kill") == client_at and (not lasting or rng.random() < 0.5):
            faults.append({"at": f"{at_ms + rng.choice((1, 100, 900))} ms", "move_client": "c0", "to": other})
            client_at = other
    return {
        "name": "in-turn", "runtime": "virtual", "seed": seed,
        "overlay": {"kind": rng.choice(("star", "chain", "random")), "brokers": 5},
        "workload": {
            "kind": "zipf", "clients": 3, "client_brokers": ["b0", "b3", "b4"], "subscribers_per_actor": 2,
            "publishers": 1, "publications": 250, "rate_per_s": 12, "attributes": 2, "predicates": 1,
            "matching_rate": 0.5,
        },
        "broker": {
            "routing": "flooding", "reliability": reliability,
            "parameters": {
                "end_to_end": {
                    "pubends": ["b0"], "backups": {"b0": ["b1", "b2"]}, "beat": "50 ms", "silence": "300 ms",
                    "checkpoint": rng.choice((5, 200)), "rest": "200 ms", "rest_most": "1 s",
                }
            },
        },
        "links": {"delay": "2 ms"},
        "datagrams": {"delay": {"uniform": ["500 us", "5 ms"]}},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "drain": {"limit": "10 s"},
        "faults": faults,
    }  # fmt: skip


def test_one_of_three_is_lost_after_the_other_and_nothing_is_excused() -> None:
    for seed in range(6):
        numbers = play_schedule(in_turn(seed)).judgement.numbers
        assert numbers["verdict"] == "valid", f"seed {seed}: {numbers['reason']}"
        assert numbers["explained"] == 0, f"seed {seed}: {numbers['reason']}"


SHOWN_AFTER = {
    "what is on one disk counts": 11,
    "a backup takes over unasked": 7,
    "a backup that is behind takes over": 2,
    "a backup relays nothing": 3,
    "a log is not shipped anew": 14,
    "a former host does not cease": 11,
}
"""How many of these runs it takes to find each planted bug."""


@pytest.mark.parametrize("name", SHOWN_AFTER)
def test_a_planted_bug_shows(name: str) -> None:
    assert any(left(play_schedule(in_turn(SHOWN_AFTER[name] - 1, BUGS[name])).judgement).values())
