"""The live part of the epidemic paper, in virtual time: what is counted, and what its criteria find."""

from collections.abc import Mapping
from typing import get_args

import pytest

from murmuration.papers.epidemic.live import (
    LiveDispatchers,
    LiveDispatchersSpec,
    judge_live_dispatchers,
    measure_live_dispatchers,
)
from murmuration.papers.lab.judged_run import Runtime
from murmuration.papers.lab.results import PaperResult
from reliability.epidemic.parameters import ALGORITHMS, Algorithm


def outcome(runtime: Runtime, algorithm: Algorithm, missing: int, duplicate: int = 0) -> LiveDispatchers:
    return LiveDispatchers(LiveDispatchersSpec(runtime, algorithm), 1_000, missing, duplicate, 0, 3, 1.0)


def judged(by: Mapping[tuple[Runtime, Algorithm], LiveDispatchers]) -> list[bool | None]:
    result = PaperResult(scaled_down=False)
    judge_live_dispatchers(result, by)
    return [each.met for each in result.criteria]


def test_the_order_is_kept_unless_algorithms_that_are_apart_change_places() -> None:
    missing = dict(zip(ALGORITHMS, (400, 10, 200, 100, 95, 150), strict=True))
    by = {
        (runtime, each): outcome(runtime, each, missing[each]) for runtime in get_args(Runtime) for each in ALGORITHMS
    }
    assert judged(by) == [True, True]
    first, second = ALGORITHMS[3:5]
    by["ray", first], by["ray", second] = outcome("ray", first, 90), outcome("ray", second, 105)
    assert judged(by) == [True, True], "these are alike"
    by["ray", "none"] = outcome("ray", "none", 5, duplicate=1)
    assert judged(by) == [False, False]


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_is_played_and_judged() -> None:
    spec = LiveDispatchersSpec("virtual", "none", changes=("workload.publications=450", "faults=[]"))
    found = measure_live_dispatchers(spec)
    assert found.required > 1_000
    assert 0.5 < found.rate < 0.9, "a tenth is lost on each link"
    assert (found.duplicate, found.spurious, found.faults_took_effect) == (0, 0, 0)
