"""Brokers that join cells and depart, under random faults: nobody misses anything, and all comes to rest."""

import random

import pytest

from benchmarks.schedules import drawn
from murmuration.hunt.schedule import draw_schedule
from murmuration.hunt.space import REPLACED, space_of_variant
from murmuration.hunt.symptoms import tried
from tests.protocols.cells.planted_bugs import DRAWN

PAIRS = ("cells/gryphon/replaced", "cells/durable/replaced", "cells/best_effort/replaced")
SHOWN_AFTER = {"who has departed is waited for": 76, "no newcomer is served": 2}
"""How many of the schedules of `cells/gryphon/replaced`, with seeds from 0 on, it takes to find each planted bug."""


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_wrong_with_a_schedule(pair: str, seed: int) -> None:
    assert tried(drawn(pair, seed), ("benchmarks.rest:KEEPS_NOTHING",)).symptom is None


@pytest.mark.parametrize("name", DRAWN)
def test_a_planted_bug_shows(name: str) -> None:
    seed = SHOWN_AFTER[name] - 1
    planted = draw_schedule(random.Random(seed), space_of_variant(*DRAWN[name], REPLACED))
    assert tried(planted, ("benchmarks.rest:KEEPS_NOTHING",)).symptom is not None
    assert tried(drawn("cells/gryphon/replaced", seed), ("benchmarks.rest:KEEPS_NOTHING",)).symptom is None


def test_brokers_join_and_depart_in_many_schedules() -> None:
    entries = [entry for seed in range(40) for entry in drawn("cells/durable/replaced", seed)["faults"]]
    for verb in ("join", "depart", "move_client"):
        assert sum(verb in entry for entry in entries) >= 5, verb


def test_the_schedules_of_cells_that_stay_as_they_are_order_no_such_thing() -> None:
    entries = [entry for seed in range(60) for entry in drawn("cells/gryphon", seed)["faults"]]
    assert any("forget" in entry for entry in entries)
    assert not any("join" in entry or "depart" in entry for entry in entries)
