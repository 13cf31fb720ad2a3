"""The oracle's definitions: required, missing, duplicate, spurious; with and without a publisher's own."""

import pytest

from murmuration.papers.lab.oracle import Oracle, Tally


def oracle(own_count: bool) -> Oracle:
    """Node 0 publishes event 7 at 100 us; it, 1 and 2 want it. 0, 1 (twice) and 3 get it."""
    found = Oracle(own_count)
    found.published(7, 0, 0b0111, 100)
    found.delivered(7, 0, 0, 100)
    found.delivered(7, 1, 2, 400)
    found.delivered(7, 1, 5, 900)
    found.delivered(7, 3, 3, 500)
    return found


def test_each_delivery_counts_as_one_thing() -> None:
    fate = oracle(own_count=True).fates[7]
    assert (fate.required, fate.made) == (3, 2)
    assert (fate.missing, fate.duplicate, fate.spurious) == (1, 1, 1)


@pytest.mark.parametrize(("own_count", "required", "made"), [(True, 3, 2), (False, 2, 1)])
def test_hops_and_delays_are_those_of_the_first_required_deliveries(own_count: bool, required: int, made: int) -> None:
    tally = oracle(own_count).tally()
    assert tally == Tally(1, required, made, missing=1, duplicate=1, spurious=1, hops=2, delay_us=300)


def test_a_publisher_that_does_not_serve_its_own_subscribers_is_missed_in_any_case() -> None:
    found = Oracle(own_count=False)
    found.published(0, 4, 1 << 4, 0)
    assert (found.fates[0].required, found.fates[0].missing) == (0, 1)


def test_a_tally_is_of_the_events_that_it_is_asked_for() -> None:
    found = oracle(own_count=True)
    found.published(8, 1, 0b1, 200)
    assert found.tally(fate for fate in found.fates.values() if fate.at_us >= 200).missing == 1
    assert found.tally().events == 2
