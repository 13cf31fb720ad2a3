"""Folders as commands leave them, small and written at once, and the commands that go on with them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from murmuration.bench.folder import BenchFolder
from murmuration.bench.measure import judge_and_measure
from murmuration.bench.plan import BenchChoice, plan_bench
from murmuration.commands.main import application
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.folder import HuntFolder
from murmuration.hunt.summary import write_summary
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from murmuration.sweeps.folder import SweepFolder
from murmuration.sweeps.plan import read_sweep
from spark_analysis import key_figures
from spark_analysis.table_columns import TABLES
from spark_analysis.tables import SMALL_TABLES, AnalysisFolder
from tests.hunt.hunting import here, hunt, silent
from tests.hunt.test_coverage import CHAIN

_SMALL = ["overlay.brokers=4", "workload.clients=4", "workload.publications=5"]
_SWEEP = "scenario: parity\ngrid:\n  workload.clients: [4]\nset:\n  overlay.brokers: 4\n"
_TEXTS = ("name", "phase", "kind", "reason")
_BENCH = BenchChoice(["irbr/best_effort"], ["zipf"], ["none"], 1, 10)
QUARRY = Quarry("forwarding", "best_effort", scenario=CHAIN)


def write_folders(place: Path) -> None:
    """A run that was analysed, a sweep, a hunt and a bench that have nothing left to do, each in a folder of that
    name."""
    run = execute(load_scenario(Path("parity"), _SMALL), place / "run", silent).folder
    verdict, figures = key_figures.judge_and_measure(run)
    _write_analysis(AnalysisFolder(run), verdict)
    shutil.copytree(run, place / "other")
    _write_sweep(place, {"judge": "plain", "verdict": verdict, "figures": figures})
    _write_bench(place / "bench", run)
    _write_hunt(place / "hunt")


def commands(place: Path) -> dict[str, Callable[[], Any]]:
    """Those that read the folders, by what is read."""

    def murmur(*arguments: str | Path) -> Callable[[], Any]:
        return lambda: application(list(map(str, arguments)), standalone_mode=False)

    return {
        "compare": murmur("compare", place / "run", place / "other"),
        "analyze": murmur("analyze", place / "run", "--plain"),
        "report": murmur("report", place / "run"),
        "page": murmur("page", place / "run", "--out", place / "page.html"),
        "trace": murmur("trace", place / "run", "0:0", "--out", place / "way.svg"),
        "sweep": murmur("sweep", place / "sweep.yaml", "--plain", "--out", place / "sweep"),
        "bench": murmur(
            "bench", "--only", "irbr/best_effort", "--workload", "zipf", "--fault", "none", "--seeds", "1",
            "--brokers", "10", "--out", place / "bench",
        ),
        "hunt": lambda: _hunted(place / "hunt"),
    }  # fmt: skip


def _hunted(place: Path) -> None:
    begun = hunt(place, 20, QUARRY)
    begun.run(here, silent)
    write_summary(begun, HuntFolder(place))


def _write_analysis(analysis: AnalysisFolder, verdict: dict[str, Any]) -> None:
    with analysis.anew():
        for name in (*SMALL_TABLES, "faults", "findings"):
            row = {column: "text" if column in _TEXTS else 1 for column in TABLES[name].columns}
            rows = [row] if name in SMALL_TABLES else []
            analysis.write_frame(name, pd.DataFrame(rows, columns=list(TABLES[name].columns)))
        analysis.write_json("verdict", verdict)
        analysis.write_json("summary", {"bucket_us": 1_000, "first_us": 0, "last_us": 1})


def _write_sweep(place: Path, judged: dict[str, Any]) -> None:
    (place / "sweep.yaml").write_text(_SWEEP)
    plan = read_sweep(place / "sweep.yaml")
    sweep = SweepFolder(place / "sweep")
    with sweep.opened(plan):
        for point in plan.points:
            of_point = {"point": point.number, "parameters": dict(point.parameters), "seed": point.seed}
            sweep.write_record(point, {**of_point, **judged, "wall_seconds": {"publishing": 0.5}})


def _write_bench(place: Path, run: Path) -> None:
    verdict, figures = judge_and_measure(run)
    bench = BenchFolder(place, _BENCH.brokers)
    with bench.opened():
        for cell in plan_bench(_BENCH).cells:
            bench.write_record(cell, {"verdict": verdict, "figures": figures, "cpu_s": 0.5})


def _write_hunt(place: Path) -> None:
    """With a finding, and the line of the chunk that found it."""
    hunt(place, 20, QUARRY).run(here, silent)
    corpus = [json.loads(line) for line in (place / "corpus.jsonl").read_text().splitlines()]
    schedule = {key: corpus[-1][key] for key in ("scenario", "faults")}
    log = place / "log.jsonl"
    chunk = json.loads(log.read_text())
    found = {
        "schedule": schedule,
        "keys": {**schedule["scenario"], "faults": []},
        "symptom": ["missing", "a delivery"],
        "number": 1,
    }
    lost = {"chunk": 0, "pair": QUARRY.name, "at_s": 1.0, "lost": "its process died"}
    log.write_text("".join(json.dumps(line) + "\n" for line in (lost, {**chunk, "found": [found]})))
    finding = {
        "pair": QUARRY.name, "symptom": "missing", "reason": "a delivery", "shows": "lost", "faults": ["kill"],
        "sorts": ["takes away"], "schedules": 1, "origins": ["7/0/1"], "before": {}, "after": {}, "tries": 1,
        "seconds": 0.5,
    }  # fmt: skip
    (place / "findings" / "001-lost").mkdir()
    (place / "findings" / "001-lost" / "finding.json").write_text(json.dumps(finding))
