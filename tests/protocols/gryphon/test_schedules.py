"""Guaranteed delivery under random faults: connected subscribers miss nothing, get nothing twice, in order."""

from typing import Any

import pytest
from hypothesis import Phase, find, given, settings

from murmur_pubsub.protocol_error import ProtocolError
from tests.protocols.gryphon.planted_bugs import BUGS
from tests.schedules import examples, play, schedules

GRYPHON = {"routing": "cells", "reliability": "gryphon", "matching": "bitset"}


def holds(data: dict[str, Any]) -> None:
    outcome = play(data)
    left = {name: outcome.judgement.left(name) for name in ("missing", "duplicate", "spurious", "out_of_order")}
    assert not any(left.values()), left
    assert [check for check in outcome.checks if check.outcome == "failed"] == []


@examples(20, 100)
def test_a_connected_subscriber_gets_everything_once_and_in_order(examples: int) -> None:
    drawn = given(schedules(GRYPHON, overlays=("cells", "chain", "star"), losses=(0.0, 0.1, 0.3)))
    settings(max_examples=examples)(drawn(holds))()


LATE = "a tick used again after a restart"
"""It takes most schedules to find."""


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, id=name, marks=[pytest.mark.slow] * (name == LATE)) for name, bug in BUGS.items()]
)
def test_a_planted_bug_is_found(bug: str) -> None:
    """The schedules are worth nothing if they do not see what goes wrong."""
    parts = {**GRYPHON, "reliability": bug}

    def shows(data: dict[str, Any]) -> bool:
        try:
            outcome = play(data)
        except (AssertionError, ProtocolError):
            return True  # a contradiction
        return bool(outcome.unexplained or outcome.verdict.duplicate or outcome.verdict.out_of_order)

    found = find(
        schedules(parts, overlays=("cells", "chain"), losses=(0.0, 0.1, 0.3)),
        shows,
        settings=settings(
            max_examples=1000 if bug == BUGS[LATE] else 300, phases=[Phase.generate], derandomize=True, deadline=None
        ),
    )
    assert shows(found)
