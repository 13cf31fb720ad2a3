"""What a command reads of a folder that it goes on with may have become anything: that is told by the file's name."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from murmur_pubsub.errors import InputError
from murmuration.commands.main import application
from murmuration.hunt.chunk import Quarry
from murmuration.live.run_list import runs_in
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from murmuration.sweeps.folder import SweepFolder
from murmuration.sweeps.kept_lines import kept_lines
from murmuration.sweeps.plan import read_sweep
from spark_analysis.plain_judge import judge_run
from spark_analysis.table_columns import TABLES
from spark_analysis.tables import SMALL_TABLES, AnalysisFolder
from tests.hunt.hunting import here, hunt, silent
from tests.hunt.test_coverage import CHAIN

_SMALL = ["overlay.brokers=4", "workload.clients=4", "workload.publications=5"]
_SWEEP = "scenario: parity\ngrid:\n  workload.clients: [4]\nset:\n  overlay.brokers: 4\n"
BROKEN = {
    "nothing": b"",
    "half": b'{"format": "mur',
    "a list": b"[]",
    "a text": b'"text"',
    "nothing in it": b"{}",
    "other bytes": b'{"format": "\xff\xfe"}',
    "endless": b"[" * 100_000,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was analysed, a sweep, a hunt and a bench, each in a folder of that name."""
    place = tmp_path_factory.mktemp("read_back")
    run = execute(load_scenario(Path("parity"), _SMALL), place / "run", silent).folder
    analysis = AnalysisFolder(run)
    with analysis.anew():
        for name in (*SMALL_TABLES, "faults", "findings"):
            analysis.write_frame(name, pd.DataFrame(columns=list(TABLES[name].columns)))
        analysis.write_json("verdict", dict(judge_run(run).numbers))
        analysis.write_json("summary", {"bucket_us": 1, "first_us": 0, "last_us": 1})
    shutil.copytree(run, place / "other")
    (place / "sweep.yaml").write_text(_SWEEP)
    plan = read_sweep(place / "sweep.yaml")
    sweep = SweepFolder(place / "sweep")
    with sweep.opened(plan):
        pass
    hunt(place / "hunt", 20, Quarry("forwarding", "best_effort", scenario=CHAIN)).run(here, silent)
    return place


def _commands(place: Path) -> dict[str, Callable[[], Any]]:
    def murmur(*arguments: str | Path) -> Callable[[], Any]:
        return lambda: application(list(map(str, arguments)), standalone_mode=False)

    return {
        "compare": murmur("compare", place / "run", place / "other"),
        "report": murmur("report", place / "run"),
        "page": murmur("page", place / "run", "--out", place / "page.html"),
        "trace": murmur("trace", place / "run", "0:0", "--out", place / "way.svg"),
        "sweep": murmur("sweep", place / "sweep.yaml", "--out", place / "sweep"),
        "bench": murmur("bench", "--out", place / "bench"),
        "hunt": lambda: hunt(place / "hunt", 20, Quarry("forwarding", "best_effort", scenario=CHAIN)).run(here, silent),
    }


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("compare", "run/manifest.json"),
        ("compare", "run/analysis/verdict.json"),
        ("report", "run/analysis/verdict.json"),
        ("report", "run/analysis/summary.json"),
        ("report", "run/analysis/findings.csv"),
        ("report", "run/analysis/traffic.parquet"),
        ("page", "run/layout.json"),
        ("page", "run/analysis/verdict.json"),
        ("trace", "run/analysis/findings.csv"),
        ("sweep", "sweep/sweep.json"),
        ("sweep", "sweep/points/0001.json"),
        ("bench", "bench/bench.json"),
        ("hunt", "hunt/hunt.json"),
        ("hunt", "hunt/findings/001-none/finding.json"),
    ],
)
def test_what_is_no_longer_what_it_was_is_named(
    command: str, file: str, how: str, folders: Path, tmp_path: Path
) -> None:
    place = tmp_path / "folders"
    shutil.copytree(folders, place)
    path = place / file
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(BROKEN[how])
    with pytest.raises(InputError, match=f"^{path}"):
        _commands(place)[command]()


@pytest.mark.parametrize("line", [b"[]", b'"text"', b"{}", b'{"chunk": 0, "pair": 1}', b'{"chunk": 0, "lost": 1}'])
@pytest.mark.parametrize("name", ["log.jsonl", "corpus.jsonl"])
def test_so_is_a_line_of_a_hunt_that_is_none(name: str, line: bytes, folders: Path, tmp_path: Path) -> None:
    place = tmp_path / "folders"
    shutil.copytree(folders, place)
    with (place / "hunt" / name).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(InputError, match=f"^{place / 'hunt' / name}"):
        _commands(place)["hunt"]()


@pytest.mark.parametrize("line", [BROKEN["half"], BROKEN["other bytes"], BROKEN["endless"]])
def test_a_line_that_is_no_json_counts_as_not_there(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_bytes(b"1\n" + line + b"\n2\n")
    assert list(kept_lines(path)) == [1, 2]


@pytest.mark.parametrize("verdict", [*BROKEN.values(), b'{"verdict": "valid"}'])
def test_one_broken_verdict_hides_no_run_from_the_list(verdict: bytes, folders: Path, tmp_path: Path) -> None:
    shutil.copytree(folders / "run", tmp_path / "run")
    (tmp_path / "run" / "analysis" / "verdict.json").write_bytes(verdict)
    (listed,) = runs_in(tmp_path)
    assert listed.state == ("valid" if b"valid" in verdict else "complete")
