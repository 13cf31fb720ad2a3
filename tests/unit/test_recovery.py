"""Recovery times pair by pair, and part by part as Spark's tasks work them out, are the same."""

import random

import numpy as np
import pytest

from spark_analysis.fault_windows import NEVER_US
from spark_analysis.recovery import Repairs, recovered
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
