"""Finished runs are read back as what they were, and never done twice in a folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from murmuration.papers.epidemic.run import EpidemicMeasures, EpidemicSpec
from murmuration.papers.gryphon.memory import Kept, MemorySpec
from murmuration.papers.gryphon.plan import failure_tests
from murmuration.papers.gryphon.run import FailureRun
from murmuration.papers.irbr.run import CostSpec, FaultSpec, OperationCost, Resilience
from murmuration.papers.irbr.workload import Rates
from murmuration.papers.lab.paper_runs import read_kept
from murmuration.papers.multipath.cost import CoveringSize, ForwardingCost
from murmuration.papers.multipath.filled_links import FilledSpec
from murmuration.papers.multipath.overload import OverloadMeasures, OverloadSpec
from murmuration.papers.multipath.plan import RESULT_TYPES
from murmuration.papers.multipath.run import MultipathMeasures, MultipathSpec
from tests.papers.runs_here import RunsHere

EPIDEMIC = EpidemicSpec("push", seed=3)
COST = CostSpec("irbr", 64, Rates(covering=0.2), (16, 32), 0)
FAULTS = FaultSpec("rpf", 64, 0.2)
RUN = MultipathSpec("DT1", 120, "S2", uplink_messages_per_s=400)
SHORT = OverloadSpec("DT1", 120, "S2", work_us=2_500)
CRASH = failure_tests("virtual").crash
RESULTS: dict[Any, Any] = {
    EPIDEMIC: EpidemicMeasures(EPIDEMIC, delivered=7, over_time=[(1, 2), (3, 3)]),
    COST: OperationCost(COST, [1.5, 2.0], required=4),
    FAULTS: Resilience(FAULTS, [3, 4], [3, 1]),
    ("run", RUN): MultipathMeasures(RUN, delays_us={130: [900, 2]}, dataset={"matching share": "8 %", "size": 6_552}),
    ("overload", SHORT): OverloadMeasures(SHORT, required=8, deliveries=7, path=21, asked=[30.5, 20.0]),
    ("filled", FilledSpec(500, 10)): CoveringSize(10, 3.5, 7.0, 4.0, 7.0, 12.0),
    ("covering", (500, 10)): CoveringSize(10, 3.5, 7.0, 4.0, 9.1, 12.0),
    ("cost", ("DT1", 120, 35)): [ForwardingCost("DT1", 6_552, 35, 800.0, 17e3, 20e3, {"S0": 1.0, "S2": 1.5})],
    CRASH: FailureRun(CRASH, {"missing": 0}, {"s1": [(1.5, 2.0)]}, {"s1": 2.0}, {"s1": [(3.0, 40)]},
                      [(9_200.0, "stall b1")], [(9_300.0, "b1", "s1")], None, 0, {"s1": [100, 99]}),
    MemorySpec(True, 40): [Kept(1.0, 1, 2, 3, 4)],
}  # fmt: skip


def result_type(point: Any) -> Any:
    """As the papers say it of their own points."""
    if isinstance(point, MemorySpec):
        return list[Kept]
    return RESULT_TYPES[point[0]] if isinstance(point, tuple) else type(RESULTS[point])


def carried_out(folder: Path) -> tuple[dict[Any, Any], list[Any]]:
    runs = RunsHere(folder)
    return runs.spread(RESULTS.__getitem__, RESULTS, result_type), runs.played


def test_a_finished_run_is_read_back_whole_and_not_done_again(tmp_path: Path) -> None:
    assert carried_out(tmp_path) == (RESULTS, list(RESULTS))
    assert carried_out(tmp_path) == (RESULTS, [])
    kept = read_kept(tmp_path / "runs.jsonl", list(RESULTS), result_type)
    assert kept == RESULTS
    assert [type(each) for each in kept.values()] == [type(each) for each in RESULTS.values()]


def test_a_line_cut_short_or_of_another_version_is_done_again(tmp_path: Path) -> None:
    carried_out(tmp_path)
    path = tmp_path / "runs.jsonl"
    lines = path.read_text().splitlines()
    other = json.loads(lines[1])
    other["result"] = {"unheard": 1}
    lines[1] = json.dumps(other)
    path.write_text("\n".join(lines)[:-30])
    assert carried_out(tmp_path) == (RESULTS, [list(RESULTS)[1], list(RESULTS)[-1]])
    assert carried_out(tmp_path) == (RESULTS, [])


@pytest.mark.parametrize("rate", [60, 60.0])
def test_points_that_are_equal_are_one_run_however_their_numbers_are_written(tmp_path: Path, rate: float) -> None:
    runs = RunsHere(tmp_path)
    runs.spread(lambda point: 1, [MultipathSpec("DT1", 120, "S0", rate_per_s=rate)], lambda _: int)
    again = RunsHere(tmp_path)
    assert list(again.spread(lambda point: 2, [MultipathSpec("DT1", 120, "S0")], lambda _: int).values()) == [1]
    assert not again.played
