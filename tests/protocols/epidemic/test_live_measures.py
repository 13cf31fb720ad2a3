"""The live part of the epidemic paper, in virtual time: what is counted, and what its criteria find."""

import random
from collections import Counter
from collections.abc import Mapping
from typing import get_args

import pytest

from murmuration.papers.epidemic.live import (
    LiveDispatchers,
    LiveDispatchersSpec,
    judge_live_dispatchers,
    measure_live_dispatchers,
)
from murmuration.papers.epidemic.reconfiguration import reconfigurations
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


def test_each_link_that_breaks_is_made_good_before_the_next_by_one_that_leaves_a_tree_of_the_degree() -> None:
    edges = [(f"b{(number - 1) // 3}", f"b{number}") for number in range(1, 30)]
    faults = reconfigurations(edges, 4, range(1_000, 9_000, 250), 100, 2, random.Random(1))
    there = {frozenset(edge) for edge in edges}
    for broken, joined in zip(faults[::2], faults[1::2], strict=True):
        assert int(joined["at"].split()[0]) - int(broken["at"].split()[0]) == 100
        there.remove(frozenset(broken["disconnect"]))
        there.add(frozenset(joined["connect"]))
        links = Counter(name for edge in there for name in edge)
        assert len(there) == 29
        assert max(links.values()) <= 4
        reached = ["b0"]
        for name in reached:
            reached += [peer for edge in there if name in edge for peer in edge if peer not in reached]
        assert len(reached) == 30
    assert there != {frozenset(edge) for edge in edges}


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_is_played_and_judged() -> None:
    spec = LiveDispatchersSpec("virtual", "none", changes=("workload.publications=450", "faults=[]"))
    found = measure_live_dispatchers(spec)
    assert found.required > 1_000
    assert 0.5 < found.rate < 0.9, "a tenth is lost on each link"
    assert (found.duplicate, found.spurious, found.faults_took_effect) == (0, 0, 0)
