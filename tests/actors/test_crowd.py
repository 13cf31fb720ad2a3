"""The benchmark of strangers, for some seconds: its figures are for reading, what must hold is held here."""

import pytest

from benchmarks.strangers import QUICK_SECONDS, QUICK_STRANGERS, measure


@pytest.mark.ray
@pytest.mark.slow
def test_a_crowd_of_strangers_costs_no_delivery_and_little_memory_and_all_of_it_is_in_the_journal() -> None:
    without, beside = measure(QUICK_STRANGERS, QUICK_SECONDS)
    for outcome in (without, beside):
        assert outcome.delivered == outcome.required > 0
        assert (outcome.doubled, outcome.malformed, outcome.links_down) == (0, 0, 0)
    assert without.refused.total() == 0
    assert beside.refused.total() == beside.came.total() >= QUICK_STRANGERS, (beside.refused, beside.came)
    assert len(beside.came) == 7, "every kind of stranger was there"
    assert beside.rss[1] - without.rss[1] < 20e6
