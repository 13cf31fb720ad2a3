"""A path that is there again for a while: how long it has to last to bring over an event that is still to come."""

import pytest

from murmur_pubsub.faults import FaultKind
from spark_analysis.changing_overlay import OverlayAt
from spark_analysis.connections import Connections
from spark_analysis.excuses import Case
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window
from spark_analysis.passages import Passage


@pytest.mark.parametrize(
    ("cut_us", "overtaken_us", "is_excused"),
    [(2_600_000, None, True), (9_000_000, None, False), (2_600_000, 2_500_000, False), (1_900_000, 2_500_000, True)],
)
def test_what_nothing_has_followed_takes_longer_than_a_path_may_last(
    cut_us: int, overtaken_us: int | None, is_excused: bool
) -> None:
    """The schedule cells/gryphon 2703077: published while b1 was dead, and b1 was cut off again for good before its
    pubend expected an acknowledgement."""
    dead = FaultStep(0, FaultKind.KILL, "kill b1", ("b1",), in_effect_us=0)
    cut = FaultStep(1, FaultKind.CUT, "cut b1-b2", ("b1", "b2"), in_effect_us=cut_us)
    windows = [
        Window(dead, 0, 0, 1_400_000, 1_500_000, frozenset({"b1"}), frozenset()),
        Window(cut, cut_us, cut_us, NEVER_US, NEVER_US, frozenset(), frozenset({frozenset({"b1", "b2"})})),
    ]
    overlays = [OverlayAt(0, (("b0", "b1"), ("b1", "b2"), ("c0", "b0"), ("c2", "b2")), True)]
    judge = Connections({}, windows, {"c0": "b0", "c2": "b2"}, 30_000_000, overlays)
    case = Case("missing", "c0", "c2", 700_000, overtaken_us=overtaken_us)
    assert (judge.explain(case, Passage({}, {})) is not None) == is_excused


@pytest.mark.parametrize(
    ("last_us", "overtaken_us", "withdrawn_us", "is_excused"),
    [
        (60_000_000, None, None, False),
        (7_000_000, None, None, True),
        (60_000_000, 10_000_000, None, False),
        (60_000_000, 2_900_000, None, True),
        (60_000_000, None, 7_000_000, True),
    ],
    ids=["the run goes on", "it ends", "a later one comes", "a later one comes soon", "it is wanted no more"],
)
def test_a_path_is_looked_for_up_to_the_end_however_short_the_limit(
    last_us: int, overtaken_us: int | None, withdrawn_us: int | None, is_excused: bool
) -> None:
    """A link that was cut for a second is no excuse for ever."""
    away = FaultStep(0, FaultKind.CUT, "cut b0-b1", ("b0", "b1"), in_effect_us=1_000_000)
    cut = frozenset({frozenset({"b0", "b1"})})
    windows = [Window(away, 1_000_000, 1_000_000, 2_000_000, 2_100_000, links=cut)]
    overlays = [OverlayAt(0, (("b0", "b1"), ("c0", "b0"), ("c1", "b1")), True)]
    judge = Connections({}, windows, {"c0": "b0", "c1": "b1"}, 2_000_000, overlays, last_us=last_us)
    case = Case("missing", "c0", "c1", 800_000, overtaken_us=overtaken_us, withdrawn_us=withdrawn_us)
    assert (judge.explain(case, Passage({}, {})) is not None) == is_excused


@pytest.mark.parametrize(
    ("whole_us", "is_excused"),
    [(2_799_999, False), (2_800_000, True), (5_000_000, True)],
    ids=["in time", "just too late", "much too late"],
)
def test_a_path_that_comes_back_later_than_a_recovery_may_take_is_too_late_however_long_it_lasts(
    whole_us: int, is_excused: bool
) -> None:
    cut = FaultStep(0, FaultKind.CUT, "cut b0-b1", ("b0", "b1"), in_effect_us=500_000)
    link = frozenset({frozenset({"b0", "b1"})})
    windows = [Window(cut, 500_000, 500_000, whole_us, whole_us, links=link)]
    overlays = [OverlayAt(0, (("b0", "b1"), ("c0", "b0"), ("c1", "b1")), True)]
    judge = Connections({}, windows, {"c0": "b0", "c1": "b1"}, 2_000_000, overlays, last_us=60_000_000)
    assert (judge.explain(Case("missing", "c0", "c1", 800_000), Passage({}, {})) is not None) == is_excused
