"""Guaranteed delivery under random faults: subscribers who stay connected miss nothing, get nothing twice, in order."""

from typing import Any

from hypothesis import given, settings

from tests.schedules import play, schedules

GRYPHON = {"routing": "cells", "reliability": "gryphon", "matching": "bitset"}


def holds(data: dict[str, Any]) -> None:
    outcome = play(data)
    verdict = outcome.verdict
    assert outcome.unexplained == []
    assert (verdict.duplicate, verdict.spurious, verdict.out_of_order) == ([], [], [])
    assert [check for check in outcome.checks if check.outcome == "failed"] == []


@settings(max_examples=100)
@given(schedules(GRYPHON, overlays=("cells", "chain", "star"), clients_fail=False, losses=(0.0, 0.1, 0.3)))
def test_who_stays_connected_gets_everything_once_and_in_order(data: dict[str, Any]) -> None:
    holds(data)
