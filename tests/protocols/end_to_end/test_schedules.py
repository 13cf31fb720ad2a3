"""Exactly once over any overlay under random faults, and what such schedules find of planted bugs."""

import pytest

from benchmarks.schedules import drawn
from murmuration.hunt.symptoms import tried
from murmuration.hunt.trial import play_schedule
from tests.protocols.durable.test_schedules import left
from tests.protocols.end_to_end.planted_bugs import BUGS

FIRST = 960_000
SHOWN_AFTER = {
    "routing is believed": 4,
    "only gaps are asked for": 68,
    "a lost question is not asked again": 5,
    "released when it is handed over": 3,
    "the first of two steps is kept": 15,
    "an answer says too much": 1,
    "more is released than the client has": 3,
    "no question is answered": 1,
    "a log that forgets whom a message is for": 98,
}
"""How many of the schedules of multipath with seeds from FIRST on it takes to find each planted bug."""


@pytest.mark.parametrize("routing", ["multipath", "irbr", "vinifera"])
def test_every_subscriber_gets_everything_once_and_in_order(routing: str) -> None:
    for seed in range(FIRST, FIRST + 3):
        judgement = play_schedule(drawn(f"{routing}/end_to_end", seed)).judgement
        assert judgement.numbers["verdict"] == "valid", f"--pair {routing}/end_to_end --show {seed}"
        assert not any(left(judgement).values())


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_shows(name: str) -> None:
    """The schedules are worth nothing if they do not see what goes wrong."""
    seed = FIRST + SHOWN_AFTER[name] - 1
    planted = play_schedule(drawn(f"multipath/{BUGS[name]}", seed)).judgement
    assert any(left(planted).values()), f"--pair multipath/{BUGS[name]} --show {seed}"
    assert play_schedule(drawn("multipath/end_to_end", seed)).judgement.numbers["verdict"] == "valid"


def test_a_client_whose_questions_are_lost_is_waited_for() -> None:
    """Of three questions in a row none may arrive; the run ended then, with an event that was still to come."""
    assert not left(play_schedule(drawn("multipath/end_to_end", 2_701_117)).judgement)["missing"]


def test_a_run_goes_on_while_a_node_of_the_overlay_settles() -> None:
    """Nobody waited for an event; a node had yet to hear that its subscriptions were in effect."""
    assert tried(drawn("vinifera/end_to_end", 2_801_455)).symptom is None


def test_a_run_goes_on_until_a_client_is_told_of_what_was_given_up_for_it() -> None:
    """A link that loses half for ever lost what its broker said for longer than the lease."""
    assert tried(drawn("multipath/end_to_end", 2_801_535)).symptom is None
