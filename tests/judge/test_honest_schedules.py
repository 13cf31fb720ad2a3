"""The judge flags no honest run: every registered pair under random schedules of faults."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.judge.honest import PAIRS, STRUCTURED, schedules_of
from tests.schedules import examples, play


@pytest.mark.parametrize(("routing", "reliability"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@examples(15, 70)
def test_no_honest_run_is_flagged(routing: str, reliability: str, examples: int) -> None:
    if routing in STRUCTURED:
        examples //= 5  # a structured schedule takes ten times as long

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(schedules_of(routing, reliability))
    def holds(data: dict[str, Any]) -> None:
        numbers = play(data).judgement.numbers
        assert numbers["verdict"] != "invalid", numbers["reason"]

    holds()


def test_every_registered_pair_is_among_them() -> None:
    from murmuration.registry import RELIABILITIES, ROUTINGS

    assert {routing for routing, _ in PAIRS} == set(ROUTINGS)
    assert {reliability for _, reliability in PAIRS} == set(RELIABILITIES)
