"""What the judge excuses where a broker beside the way may be given what those on it are to have."""

import itertools

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import DropReason
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.promise import Promise, Survival
from spark_analysis.excuses import Case, Excuses
from spark_analysis.fault_windows import FaultStep, Window
from spark_analysis.passages import Crossing, Loss, Passage


@pytest.mark.parametrize(("copied", "is_excused"), [(("b3", "b0"), True), (("b0", "b3"), False)])
def test_a_link_that_doubles_on_a_delegates_way_excuses_a_duplicate(copied: tuple[str, str], is_excused: bool) -> None:
    """The schedule multipath_delegation/best_effort 1700993: b1 gave the work of b0 to b3, which is beside the way."""
    step = FaultStep(0, FaultKind.CHANGE_LINK, "double", copied, link=LinkSpec(duplication=0.5), in_effect_us=0)
    window = Window(step, 0, 0, 9_000_000, 9_000_000, frozenset(), frozenset({frozenset(copied)}))
    homes = {"c1": "b1", "c2": "b2"}
    excuses = Excuses([window], [("b0", "b1"), ("b0", "b2"), ("b0", "b3"), *homes.items()], homes)
    taken = [
        Crossing(time, *ends) for time, ends in enumerate(itertools.pairwise(("c1", "b1", "b3", "b0", "b2", "c2")))
    ]
    passage = Passage({}, {}, sent=[*taken, Crossing(9, *copied)], copied=[Crossing(2, *copied)])
    assert (excuses.explain(Case("duplicate", "c1", "c2", 0), passage) is not None) == is_excused


@pytest.mark.parametrize(("receiver", "is_excused"), [("b0", True), ("b3", False)])
def test_a_cut_between_a_delegate_and_the_way_excuses_what_the_delegate_was_to_hand_on(
    receiver: str, is_excused: bool
) -> None:
    """The schedule multipath_delegation/best_effort 2200231: b1 gave b4, a leaf of the star, the work of its centre."""
    step = FaultStep(0, FaultKind.CUT, "cut", ("b0", "b4"), in_effect_us=0)
    window = Window(step, 0, 0, 9_000_000, 9_000_000, frozenset(), frozenset({frozenset(("b0", "b4"))}))
    homes = {"c1": "b1", "c2": "b2"}
    star = [("b0", leaf) for leaf in ("b1", "b2", "b3", "b4")]
    excuses = Excuses([window], [*star, *homes.items()], homes)
    had = {"b1": 1_000, "b4": 2_000}
    lost = [Loss(2_000, 2_000, "b4", receiver, DropReason.LINK_BROKEN)]
    passage = Passage(had, {"b1": [1_000], "b4": [2_000]}, lost=lost)
    assert (excuses.explain(Case("missing", "c1", "c2", 0), passage) is not None) == is_excused


@pytest.mark.parametrize("by_delegates", [True, False])
@pytest.mark.parametrize("receiver", ["b4", "c4"])
def test_a_copy_that_is_lost_on_its_way_to_a_delegate_excuses_what_the_delegate_was_to_hand_on(
    receiver: str, by_delegates: bool
) -> None:
    """The schedule multipath_delegation/best_effort 3500594: b1 gave b4, a leaf of the star, the work of its centre. A
    copy for b4's client is none that others wait for; nor is one for b4 where no broker is a delegate."""
    step = FaultStep(0, FaultKind.CUT, "cut", ("b1", "b4"), in_effect_us=0)
    ends = frozenset((frozenset(("b1", "b4")), frozenset(("b1", "c4"))))
    window = Window(step, 0, 0, 9_000_000, 9_000_000, frozenset(), ends)
    homes = {"c1": "b1", "c2": "b2", "c4": "b4"}
    star = [("b0", leaf) for leaf in ("b1", "b2", "b3", "b4")]
    promise = Promise(survives=Survival(by_delegates=by_delegates))
    excuses = Excuses([window], [*star, *homes.items()], homes, promise=promise)
    lost = [Loss(2_000, 2_000, "b1", receiver, DropReason.LINK_BROKEN)]
    passage = Passage({"b1": 1_000}, {"b1": [1_000]}, lost=lost)
    excused = excuses.explain(Case("missing", "c1", "c2", 0), passage) is not None
    assert excused == (by_delegates and receiver == "b4")


@pytest.mark.parametrize("by_delegates", [True, False])
@pytest.mark.parametrize(
    ("sender", "had_us", "is_excused"),
    [("b0", 1_000, True), ("b0", 9_000_000, False), ("b2", 1_000, False)],
    ids=["it had just begun again", "it had recovered", "by a link"],
)
def test_a_delegate_that_has_just_begun_again_excuses_what_it_was_to_hand_on(
    sender: str, had_us: int, is_excused: bool, by_delegates: bool
) -> None:
    """A schedule of multipath_delegation/best_effort: b0 gave b3 what b2 was to get, and b3 had no tables yet."""
    step = FaultStep(0, FaultKind.KILL, "kill b3", ("b3",), ordered_us=0, in_effect_us=0)
    window = Window(step, 0, 0, 500, 8_000_000, frozenset({"b3"}), absorbed_us=100, repaired_us=500)
    homes = {"c0": "b0", "c2": "b2"}
    promise = Promise(survives=Survival(by_delegates=by_delegates))
    excuses = Excuses([window], [("b0", "b1"), ("b1", "b2"), ("b2", "b3"), *homes.items()], homes, promise=promise)
    passage = Passage({"b0": had_us, "b3": had_us}, {"b0": [0], "b3": [0]}, sent=[Crossing(0, sender, "b3")])
    excused = excuses.explain(Case("missing", "c0", "c2", 0), passage) is not None
    assert excused == (is_excused and by_delegates)
