"""Section 4.2 taken further: a subscriber that a path of links is left to is served, and what it has is acknowledged.

`python -m benchmarks.gryphon_cuts` plays every cut; here are those that once went wrong, a draw, and the smallest
overlay whole.
"""

import random
from itertools import permutations

import pytest

from murmur_pubsub.places import CellPlan
from tests.protocols.gryphon.cuts import LinkName, connected, cuts, one_cell, play_cut, two_cells

HALF = one_cell(2, ("s", "t"))
"""Half of the paper's overlay."""


@pytest.mark.parametrize(
    ("plan", "cut"),
    [
        (HALF, (("m0", "s"), ("m0", "m1"))),
        (one_cell(3), (("m0", "s"), ("m1", "s"))),
        (one_cell(3), (("p", "m0"), ("p", "m1"))),
        (HALF, (("m0", "s"), ("m1", "t"), ("m0", "m1"))),
        (HALF, (("p", "m1"), ("m0", "m1"), ("m0", "t"))),
        (two_cells(2), (("a0", "b0"), ("a1", "b0"), ("b0", "b1"))),
    ],
    ids=["the turn leads nowhere", "two of three", "two of three above", "each leads to one", "by way of s", "a row"],
)
def test_gryphon_s4_a_subscriber_with_any_path_is_served(plan: CellPlan, cut: tuple[LinkName, ...]) -> None:
    outcome = play_cut(plan, cut)
    assert outcome.starving == ()
    assert outcome.broken == ()


@pytest.mark.parametrize("cut", [(("p", "m0"), ("m1", "s")), (("m0", "s"), ("m1", "t"))], ids=["below", "each one"])
def test_gryphon_s4_acknowledgements_go_sideways_as_knowledge_does(cut: tuple[LinkName, ...]) -> None:
    assert play_cut(HALF, cut).kept == 0


def test_gryphon_s4_all_cuts_of_two_links_of_a_small_cell_healed_in_any_order() -> None:
    plan = one_cell(2)
    for cut in cuts(plan, 2):
        for order in [(), *permutations(cut)]:
            assert play_cut(plan, cut, order).is_well, f"cut {cut}, healed {order}"


@pytest.mark.parametrize("count", [30, pytest.param(600, marks=pytest.mark.slow)])
def test_gryphon_s4_cuts_drawn_from_larger_overlays(count: int) -> None:
    rng = random.Random("cuts/1")
    plans = [one_cell(size, subscribers) for size in (2, 3, 4) for subscribers in (("s",), ("s", "t"))]
    plans += [two_cells(2), two_cells(3)]
    all_cuts = [(plan, cut) for plan in plans for cut in cuts(plan, 3)]
    for plan, cut in rng.sample(all_cuts, count):
        healed = rng.sample(cut, rng.randrange(len(cut) + 1))
        assert play_cut(plan, cut, healed).is_well, f"play_cut({plan}, {cut}, {healed})"


def test_the_cuts_that_leave_nobody_a_path_are_left_out() -> None:
    plan = one_cell(2)
    assert connected(plan, (("p", "m0"), ("p", "m1"))) == []
    assert len(list(cuts(plan, 1))) == 5
    assert len(list(cuts(plan, 2))) == 5 + 8
