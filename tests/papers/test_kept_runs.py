"""Finished runs are read back as what they were, and never done twice in a folder."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from murmuration.papers.epidemic import run as epidemic_run
from murmuration.papers.irbr import run as irbr_run
from murmuration.papers.irbr.workload import Rates
from murmuration.papers.lab import run_cache as kept_runs
from murmuration.papers.lab.run_cache import carry_out, read_kept
from murmuration.papers.multipath import cost as publiy_cost
from murmuration.papers.multipath import run as publiy_run
from murmuration.papers.multipath.paper import ACTIONS

EPIDEMIC = epidemic_run.RunSpec("push", seed=3)
COST = irbr_run.CostSpec("irbr", 64, Rates(covering=0.2), (16, 32), 0)
FAULTS = irbr_run.FaultSpec("rpf", 64, 0.2)
RUN = publiy_run.RunSpec("DT1", 120, "S2", uplink_messages_per_s=400)
RESULTS: dict[Any, Any] = {
    EPIDEMIC: epidemic_run.Measures(EPIDEMIC, delivered=7, over_time=[(1, 2), (3, 3)]),
    COST: irbr_run.Cost(COST, [1.5, 2.0], required=4),
    FAULTS: irbr_run.Resilience(FAULTS, [3, 4], [3, 1]),
    ("run", RUN): publiy_run.Measures(RUN, delays_us={130: [900, 2]}, dataset={"matching share": "8 %", "size": 6_552}),
    ("covering", (500, 10)): publiy_cost.Covering(10, 3.5, 7.0, 4.0, 9.1, 12.0),
    ("cost", ("DT1", 120, 35)): [publiy_cost.Cost("DT1", 6_552, 35, 800.0, 17e3, 20e3, {"S0": 1.0, "S2": 1.5})],
}


def result_type(point: Any) -> Any:
    """As the papers say it of their own points."""
    return ACTIONS[point[0]][1] if isinstance(point, tuple) else type(RESULTS[point])


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The points that were run, in one process."""
    ran: list[Any] = []

    def in_process(
        function: Callable[[Any], Any],
        points: Sequence[Any],
        progress: object,
        workers: int,
        keep: Callable[[Any, Any], None],
    ) -> list[Any]:
        for point in points:
            ran.append(point)
            keep(point, function(point))
        return [RESULTS[point] for point in points]

    monkeypatch.setattr(kept_runs, "in_parallel", in_process)
    return ran


def carried_out(folder: Path) -> dict[Any, Any]:
    return carry_out(RESULTS.__getitem__, RESULTS, folder, lambda *_: None, result_type)


def test_a_finished_run_is_read_back_whole_and_not_done_again(tmp_path: Path, done: list[Any]) -> None:
    assert carried_out(tmp_path) == RESULTS
    assert done == list(RESULTS)
    assert carried_out(tmp_path) == RESULTS
    assert done == list(RESULTS)
    kept = read_kept(tmp_path / "runs.jsonl", list(RESULTS), result_type)
    assert kept == RESULTS
    assert [type(each) for each in kept.values()] == [type(each) for each in RESULTS.values()]


def test_a_line_cut_short_or_of_another_version_is_done_again(tmp_path: Path, done: list[Any]) -> None:
    carried_out(tmp_path)
    path = tmp_path / "runs.jsonl"
    lines = path.read_text().splitlines()
    other = json.loads(lines[1])
    other["result"] = {"unheard": 1}
    lines[1] = json.dumps(other)
    path.write_text("\n".join(lines)[:-30])
    done.clear()
    assert carried_out(tmp_path) == RESULTS
    assert done == [list(RESULTS)[1], list(RESULTS)[-1]]
    done.clear()
    assert carried_out(tmp_path) == RESULTS
    assert not done
