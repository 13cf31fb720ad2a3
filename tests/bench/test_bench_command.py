"""`murmur bench` as it is typed: a small table, gone on with, one of its cells again, and bad input."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from actors.sweep_tasks import TaskEnd
from murmur_pubsub.errors import InputError
from murmur_pubsub.filter_parser import parse_filter
from murmuration.bench.folder import VERDICT_KEPT
from murmuration.bench.matrix import Cell, System, scenario_of
from murmuration.bench.measure import judge_and_measure
from murmuration.bench.play import play_cell
from murmuration.commands.main import application
from murmuration.deployment.build_deployment import build
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario, load_scenario
from spark_analysis import main as judge
from spark_analysis.tables import AnalysisFolder

ROOT = Path(__file__).parents[2]
SMALL = ["--brokers", "10", "--seeds", "1", "--workload", "zipf"]
TWO = [*SMALL, "--fault", "killed", "--only", "cells/gryphon", "--only", "irbr/best_effort"]


def silent(step: str, done: int, total: int) -> None:
    pass


def tasks_here(function: str, work: Iterable[tuple[Cell, Any] | None], *_: object, shared: bool) -> Any:
    """Tasks that are played one after the other in this process."""
    for cell, each in filter(None, work):
        yield TaskEnd(cell, play_cell(each))


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murmuration.bench.bench.ends_of_tasks", tasks_here)


def bench(*arguments: object) -> Any:
    """What came of the command."""
    return CliRunner().invoke(application, ["bench", *map(str, arguments)])


@pytest.mark.usefixtures("without_ray")
def test_a_small_table_is_played_written_and_gone_on_with(tmp_path: Path) -> None:
    out = tmp_path / "bench"
    done = bench(*TWO, "--out", out)
    assert done.exit_code == 0, done.output
    assert "1 more to play: about " in done.output, "one was timed, and the other estimated from it"
    assert "2 cells: 0 kept, 2 done, 0 failed" in done.output
    table = pd.read_csv(out / "table.csv")
    assert pd.read_parquet(out / "table.parquet").shape == table.shape
    assert set(table["verdict"]) == {"valid"}
    assert list(table["published"]) == [40, 40]
    assert table["required"].nunique() == 1, "both had to deliver the same"
    assert table.drop(columns=["reason"]).notna().all(axis=None)
    page = (out / "bench.html").read_text()
    for told in ("2 of 2 cells were played", "zipf/killed/irbr/best_effort/1", "cards.json"):
        assert told in page
    (card,) = json.loads((out / "cards.json").read_text())
    assert card["sha256"] in page
    assert not list((out / "scratch").iterdir())

    before = (out / "cells.jsonl").read_text()
    assert before.count("\n") == 2
    with (out / "cells.jsonl").open("a") as file:
        file.write('{"workload": "zi')  # what a computer that lost power may leave
    again = bench(*TWO, "--only", "forwarding/epidemic", "--out", out, "--json")
    assert json.loads(again.stdout)["kept"] == 2
    assert json.loads(again.stdout)["done"] == 1
    after = (out / "cells.jsonl").read_text()
    assert after.startswith(before)
    assert after.count("\n") == 4


@pytest.mark.usefixtures("without_ray")
def test_a_cell_made_again_by_its_scenario_gives_the_same_figures(tmp_path: Path) -> None:
    out, name = tmp_path / "bench", "zipf/killed/cells/durable/1"
    assert bench(*SMALL, "--fault", "killed", "--only", "cells/durable", "--out", out).exit_code == 0
    record = json.loads((out / "cells.jsonl").read_text())
    scenario = tmp_path / "cell.yaml"
    scenario.write_text(bench("--brokers", 10, "--cell", name).stdout)
    run = tmp_path / "run"
    execute(load_scenario(scenario), run, silent)
    verdict, figures = judge_and_measure(run)
    assert {key: verdict[key] for key in VERDICT_KEPT} == record["verdict"]
    assert figures == record["figures"]
    assert figures["recovery_us"]


@pytest.mark.slow
@pytest.mark.parametrize("routing", ["vinifera", "ferry"])
def test_an_overlay_of_120_brokers_settles_in_time(tmp_path: Path, routing: str) -> None:
    """Its ways go on changing for a minute and more, and what is wanted no more is taken back as long."""
    cell = Cell("uniform", "none", System(routing, "best_effort"), 1, 120)
    done = play_cell({"cell": str(cell), "scenario": scenario_of(cell, None, None), "scratch": str(tmp_path)})
    assert (done["verdict"]["verdict"], done["verdict"]["required"]) == ("valid", 6_696)


@pytest.mark.usefixtures("without_ray")
def test_a_cell_that_cannot_be_played_costs_no_other_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tasks(function: str, work: Iterable[tuple[Cell, Any] | None], *_: object, shared: bool) -> Any:
        for cell, each in filter(None, work):
            irbr = cell.system.routing == "irbr"
            yield TaskEnd(cell, failure="the worker died") if irbr else TaskEnd(cell, play_cell(each))

    monkeypatch.setattr("murmuration.bench.bench.ends_of_tasks", tasks)
    failed = bench(*TWO, "--out", tmp_path / "bench")
    assert failed.exit_code == 1
    assert "zipf/killed/irbr/best_effort/1: the worker died" in failed.output
    assert "1 of 2 cells were played" in (tmp_path / "bench" / "bench.html").read_text()
    monkeypatch.setattr("murmuration.bench.bench.ends_of_tasks", tasks_here)
    assert "1 kept, 1 done" in bench(*TWO, "--out", tmp_path / "bench").output


def test_the_rate_of_those_present_leaves_out_exactly_pairs_with_a_dead_broker(tmp_path: Path) -> None:
    """Flooding over a star loses nothing else when one of its tips dies."""
    scenario = scenario_of(Cell("zipf", "killed", System("flooding", "best_effort"), 1, 10), None, None)
    scenario["overlay"] = {"kind": "star", "brokers": 10}
    scenario["faults"] = scenario["faults"][:1]
    loaded = check_scenario(scenario, "cell")
    dead = {entry["kill"] for entry in scenario["faults"]}
    clients = build(loaded).workload.clients
    events = [(time_us, plan.broker, event) for plan in clients for time_us, _, event in plan.publications]
    wanted = [(plan.broker, parse_filter(text)) for plan in clients for _, text in plan.subscriptions]
    pairs = [(time_us, {at, home}) for time_us, at, event in events for home, each in wanted if each.matches(event)]
    absent = sum(bool(ends & dead) and 8_000_000 <= time_us < 16_000_000 for time_us, ends in pairs)
    run = tmp_path / "run"
    execute(loaded, run, silent)
    verdict, figures = judge_and_measure(run)
    assert verdict["required"] == len(pairs)
    assert verdict["missing"] == absent > 0
    assert figures["rate_present"] == 1.0


@pytest.mark.spark
def test_overhead_is_what_spark_measures(spark: SparkSession, tmp_path: Path) -> None:
    run = tmp_path / "run"
    cell = Cell("zipf", "loss", System("forwarding", "epidemic"), 1, 10)
    execute(check_scenario(scenario_of(cell, None, None), str(cell)), run, silent)
    figures = judge_and_measure(run)[1]
    judge.analyze(run)
    forwarding = AnalysisFolder(run).read("forwarding")
    assert figures["overhead"] == pytest.approx(float(forwarding["traffic_overhead"].iloc[0]), rel=1e-12)
    assert figures["messages"] == AnalysisFolder(run).read("messages_by_kind")["sent"].sum() / 40


@pytest.mark.usefixtures("without_ray")
def test_a_folder_of_another_table_is_refused(tmp_path: Path) -> None:
    one = [*SMALL, "--fault", "none", "--only", "flooding/best_effort"]
    assert bench(*one, "--out", tmp_path / "bench").exit_code == 0
    with pytest.raises(InputError, match="a bench of 10 brokers"):
        application(["bench", *one, "--brokers", "11", "--out", str(tmp_path / "bench")], standalone_mode=False)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (["--only", "irbr/gryphon"], "--only irbr/gryphon"),
        (["--cell", "zipf/killed/irbr/gryphon/1"], "broker.reliability"),
        (["--workers", "0"], "--workers"),
    ],
)
def test_bad_input_is_told_before_anything_is_made(tmp_path: Path, given: list[str], place: str) -> None:
    with pytest.raises(InputError, match=place):
        application(["bench", *given, "--out", str(tmp_path / "bench")], standalone_mode=False)
    assert not (tmp_path / "bench").exists()


@pytest.mark.ray
@pytest.mark.slow
def test_an_interrupted_bench_keeps_what_is_done_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "bench"
    many = ["--brokers", "20", "--seeds", "8", "--workload", "zipf", "--fault", "loss", "--only", "cells/durable"]
    many += ["--json", "--out", str(out)]
    command = [sys.executable, "-m", "murmuration.commands.main", "bench", *many]
    begun = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (out / "cells.jsonl").exists() or (out / "cells.jsonl").read_text().count("\n") < 2:
        assert begun.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    begun.terminate()  # Ray would end the process without a word
    said = begun.communicate(timeout=60)[1]
    assert begun.returncode == 130, said
    assert "the same command goes on" in said
    kept = (out / "cells.jsonl").read_text()
    assert 2 <= kept.count("\n") < 8
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=200)
    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout)
    assert told["kept"] == kept.count("\n")
    assert told["kept"] + told["done"] == told["cells"] == 8
    assert (out / "cells.jsonl").read_text().startswith(kept)
