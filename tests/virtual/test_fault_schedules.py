"""S0 with best effort under random faults: it loses only what a fault explains, and every fault takes effect."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings

from murmur_pubsub.machine import Effect, NodeName
from routing.forwarding import SubscriptionForwarding
from tests.schedules import examples, play, schedules

BEST_EFFORT = {"routing": "forwarding", "reliability": "best_effort", "matching": "bitset"}
FLOODING = {"routing": "flooding", "reliability": "best_effort", "matching": "bitset"}


def holds(data: dict[str, Any]) -> None:
    outcome = play(data)
    assert outcome.unexplained == []
    assert outcome.verdict.spurious == []
    assert [check for check in outcome.checks if check.outcome == "failed"] == []
    changed = {key for entry in data["faults"] for key in entry}
    assert outcome.verdict.duplicate == [] or "duplication" in changed
    assert outcome.verdict.out_of_order == [] or changed & {"reordering", "duplication"}


@examples(30, 150)
def test_forwarding_loses_only_what_a_fault_explains(examples: int) -> None:
    settings(max_examples=examples)(given(schedules(BEST_EFFORT))(holds))()


@settings(max_examples=50)
@given(schedules(FLOODING))
def test_flooding_loses_only_what_a_fault_explains(data: dict[str, Any]) -> None:
    holds(data)


@settings(max_examples=50)
@given(schedules(BEST_EFFORT, kinds=("delay", "slow", "bandwidth")))
def test_faults_that_destroy_nothing_lose_nothing(data: dict[str, Any]) -> None:
    verdict = play(data).verdict
    assert verdict.counts == (0, 0, 0, 0)


def test_a_schedule_that_breaks_something_is_drawn() -> None:
    """The strategy is worth nothing if its schedules never hurt."""
    hurts = find(
        schedules(BEST_EFFORT, kinds=("kill",)),
        lambda data: len(play(data).verdict.missing) > 0,
        settings=settings(phases=[Phase.generate], derandomize=True),
    )
    assert hurts["faults"]


class Forgetful(SubscriptionForwarding):
    """S0 that does not tell a neighbour that returns what is wanted here."""

    def _on_link_up(self, peer: NodeName) -> Sequence[Effect]:
        effects = super()._on_link_up(peer)
        return () if self._ever(peer) else effects

    def _ever(self, peer: NodeName) -> bool:
        self._met: dict[NodeName, None] = getattr(self, "_met", {})
        before = peer in self._met
        self._met[peer] = None
        return before


@pytest.mark.slow
def test_a_broker_that_forgets_to_renew_is_found_and_shrunk_to_one_fault() -> None:
    parts = {**BEST_EFFORT, "routing": "tests.virtual.test_fault_schedules:Forgetful"}
    smallest = find(
        schedules(parts, kinds=("cut", "kill")),
        lambda data: len(play(data).unexplained) > 0,
        settings=settings(max_examples=300, derandomize=True),
    )
    assert len(smallest["faults"]) == 1
    assert smallest["overlay"]["brokers"] == 2
