"""Recovery times pair by pair, and part by part as Spark's tasks work them out, are the same; what never settled."""

import random

import numpy as np
import pytest

from murmur_pubsub.faults import FaultKind
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window
from spark_analysis.recovery import Repairs, recovered, unsettled_after, unsettled_change
from spark_analysis.recovery_parts import recovered_in_parts, recovery_part


@pytest.mark.parametrize("seed", range(40))
def test_parts_together_say_what_all_pairs_say(seed: int) -> None:
    rng = random.Random(seed)
    repaired = sorted(rng.randrange(1_000) for _ in range(rng.randrange(4)))
    ordered = sorted(rng.randrange(1_000) for _ in range(rng.randrange(5)))
    repairs = Repairs(repaired, ordered, repaired[-1] if repaired and rng.random() < 0.5 else NEVER_US, 100)
    pairs = []
    for _ in range(rng.randrange(60)):
        published_us = rng.randrange(1_000)
        pairs.append((published_us, NEVER_US if rng.random() < 0.3 else published_us + rng.randrange(400)))
    cut = len(pairs) // 2
    parts = [recovery_part(repairs, *np.array(some, np.int64).reshape(-1, 2).T) for some in (pairs[:cut], pairs[cut:])]
    assert recovered_in_parts(parts, repairs) == recovered(pairs, repairs)


@pytest.mark.parametrize(("last_us", "is_told"), [(149, False), (150, True)])
def test_what_has_not_settled_is_told_of_a_run_that_went_on_until_it_was_due(last_us: int, is_told: bool) -> None:
    """The limit is 100 after a repair, and after a subscription was issued."""
    cut = FaultStep(0, FaultKind.CUT, "cut", ("a", "b"))
    mended = Window(cut, 10, 10, undone_us=40, until_us=NEVER_US, repaired_us=50, settled=False)
    assert (unsettled_after([mended], last_us, 100) == mended) == is_told
    assert (unsettled_change([50], [], [], last_us, 100) == 50) == is_told
