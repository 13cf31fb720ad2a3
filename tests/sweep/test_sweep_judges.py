"""Who plays and who judges the points of a sweep: tasks or this process, Spark or plain Python."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from actors.sweep_tasks import TaskEnd
from murmur_pubsub.errors import InputError
from murmuration.runs.driver import execute
from murmuration.sweeps.folder import play_point
from murmuration.sweeps.plan import SweepPoint, read_sweep
from murmuration.sweeps.sweep import SweepOptions, SweepRun
from murmuration.sweeps.tasks import Cores
from spark_analysis import key_figures
from spark_analysis.main import judge_and_measure

SMALL = """
scenario: parity
set: {overlay.brokers: 5, workload.clients: 5, workload.subscribers_per_actor: 2, workload.publications: 12}
"""


def silent(step: str, done: int, total: int) -> None:
    pass


def points_of(folder: Path, text: str) -> tuple[SweepPoint, ...]:
    file = folder / "some.yaml"
    file.write_text(SMALL + text)
    return read_sweep(file).points


def tasks_here(function: str, work: Iterable[tuple[int, Any]], *_: object, shared: bool) -> Any:
    """Tasks that are played one after the other in this process."""
    for number, each in work:
        yield TaskEnd(number, play_point(each))


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murmuration.sweeps.sweep.ends_of_tasks", tasks_here)


@pytest.mark.usefixtures("without_ray")
def test_plain_python_judges_where_a_point_was_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_analysis.session.start_session", None)  # calling it would fail
    points_of(tmp_path, "grid: {links.loss: [0.0, 0.3]}\nseeds: 2\n")
    sweep = SweepRun(read_sweep(tmp_path / "some.yaml"), tmp_path / "sweep", SweepOptions(judge="plain"))
    end = sweep.run(silent)
    assert (end.kept, end.done, end.failed) == (0, 4, [])
    table = sweep.table()
    assert set(table["judge"]) == {"plain"}
    assert set(table["verdict"][table["links.loss"] == 0.0]) == {"valid"}
    assert set(table["delivery_rate"][table["links.loss"] == 0.0]) == {1.0}
    assert min(table["delivery_rate"][table["links.loss"] == 0.3]) < 1.0
    assert table["messages_per_publication"].notna().all()
    assert sweep.run(silent).kept == 4


@pytest.mark.usefixtures("without_ray")
def test_what_was_only_played_is_judged_and_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points_of(tmp_path, "points: [{expect.delay_p99: 10 s}, {expect.delay_p99: 1 us}]\n")
    plan, folder = read_sweep(tmp_path / "some.yaml"), tmp_path / "sweep"
    assert SweepRun(plan, folder, SweepOptions(judge=None)).run(silent).done == 2
    monkeypatch.setattr("murmuration.sweeps.folder.execute", None)  # calling it would fail
    judged = SweepRun(plan, folder, SweepOptions(judge="plain"))
    assert judged.run(silent).done == 2
    assert sorted(judged.table()["verdict"]) == ["invalid", "valid"]
    assert [each.name for each in (folder / "runs").iterdir()] == ["0002"], "what is valid is not kept"


@pytest.mark.usefixtures("without_ray")
def test_live_points_are_played_here_after_the_tasks_and_one_that_fails_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[str] = []

    def played_here(loaded: Any, folder: Path, progress: Any, address: str | None) -> Any:
        played.append(f"{loaded.scenario.runtime} at {address}")
        if loaded.scenario.runtime == "ray" and loaded.data["links"]["loss"]:
            raise InputError("cluster", "500 brokers", "as many as fit")
        virtual = loaded.scenario.model_copy(update={"runtime": "virtual"})
        return execute(dataclasses.replace(loaded, scenario=virtual), folder, progress)

    monkeypatch.setattr("murmuration.sweeps.folder.execute", played_here)
    points_of(tmp_path, "grid: {runtime: [ray, virtual], links.loss: [0.2, 0.0]}\n")
    options = SweepOptions(Cores(address="head:6379"), judge="plain")
    end = SweepRun(read_sweep(tmp_path / "some.yaml"), tmp_path / "sweep", options).run(silent)
    assert played == ["virtual at None", "virtual at None", "ray at head:6379", "ray at head:6379"]
    assert end.done == 3
    (failed,) = end.failed
    assert str(failed[0]) == "runtime=ray, links.loss=0.2, seed=7"
    assert "as many as fit" in failed[1]


@pytest.mark.spark
@pytest.mark.parametrize("change", ["links.duplication: 0.3", "links: {loss: 0.2, delay: 30 ms}"])
def test_both_judges_measure_the_same(spark: SparkSession, tmp_path: Path, change: str) -> None:
    (point,) = points_of(tmp_path, f"points: [{{{change}}}]\n")
    run = tmp_path / "run"
    play_point({"scenario": dict(point.scenario), "point": str(point), "run": str(run), "judged": False})
    verdict, figures = key_figures.judge_and_measure(run)
    by_spark, measured = judge_and_measure(run)
    assert by_spark == verdict
    assert measured == pytest.approx(figures, rel=1e-12)
    assert None not in figures.values()


@pytest.mark.ray
@pytest.mark.slow
def test_a_live_sweep_plays_one_run_after_another(tmp_path: Path) -> None:
    points_of(tmp_path, "grid: {runtime: [ray]}\nseeds: 2\n")
    sweep = SweepRun(read_sweep(tmp_path / "some.yaml"), tmp_path / "sweep", SweepOptions(judge="plain"))
    steps: list[str] = []
    end = sweep.run(lambda step, done, total: steps.append(step))
    assert (end.done, end.failed) == (2, [])
    assert set(sweep.table()["verdict"]) == {"valid"}
    assert "publishing" in steps
