"""Durable subscriptions under random faults: who comes back misses nothing, gets nothing twice, and all in order."""

from typing import Any

import pytest
from hypothesis import given, settings

from benchmarks.schedules import drawn
from murmuration.hunt.space import FAULTS, MOVES
from murmuration.hunt.symptoms import tried
from murmuration.hunt.trial import play_schedule
from spark_analysis.plain_judge import Judgement
from tests.protocols.durable.planted_bugs import BUGS
from tests.schedules import examples, play, schedules

PAIR = "cells/durable"
PARTS = {"routing": "cells", "reliability": "durable", "matching": "bitset"}
FIRST = 950_000
SHOWN_AFTER = {
    "a seam between the streams": 1,
    "released when it is handed over": 18,
    "a log that forgets whom a message is for": 884,
    "nothing is asked for again": 10,
    "a client that begins anew": 1,
    "more is released than the client has": 4,
    "a lease that runs out too soon": 17,
    "nobody is told what was given up": 17,
    "more is given up than the log is full of": 290,
    "nobody is told what was refused": 18,
}
"""How many of the schedules with seeds from FIRST on it takes to find each planted bug."""


def left(judgement: Judgement) -> dict[str, Any]:
    """The findings that nothing excuses."""
    return {name: judgement.left(name) for name in ("missing", "duplicate", "spurious", "out_of_order")}


@examples(5, 100)
def test_a_durable_subscriber_gets_everything_once_and_in_order(examples: int) -> None:
    def holds(data: dict[str, Any]) -> None:
        outcome = play(data)
        assert not any(left(outcome.judgement).values())
        assert [check for check in outcome.checks if check.outcome == "failed"] == []

    schedule = schedules(PARTS, (*FAULTS, *MOVES), overlays=("cells", "chain", "star"), losses=(0.0, 0.1))
    settings(max_examples=examples)(given(schedule)(holds))()


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_shows(name: str) -> None:
    """The schedules are worth nothing if they do not see what goes wrong."""
    seed = FIRST + SHOWN_AFTER[name] - 1
    planted = play_schedule(drawn(f"cells/{BUGS[name]}", seed)).judgement
    assert any(left(planted).values()), f"python -m benchmarks.schedules --pair cells/{BUGS[name]} --show {seed}"
    assert planted.numbers["verdict"] == "invalid"
    assert play_schedule(drawn(PAIR, seed)).judgement.numbers["verdict"] == "valid"


def test_what_is_matched_by_a_new_revision_is_kept_for_nobody_though_its_pubend_says_nothing_more() -> None:
    """The consolidated stream does not get to where the revision begins."""
    assert tried(drawn("cells/durable", 2_700_368), ("benchmarks.rest:KEEPS_NOTHING",)).symptom is None


def test_a_client_that_comes_back_a_moment_later_is_not_sent_back_by_a_late_answer() -> None:
    assert tried(drawn("cells/durable", 2_704_438)).symptom is None


def test_what_a_partition_swallowed_is_kept_for_clients_that_were_there() -> None:
    """A lease of 3 s, as long as AET; the partition lasts 1.2 s."""
    assert tried(drawn("cells/durable", 2_807_695)).symptom is None
