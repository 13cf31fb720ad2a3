"""The driver or Ray itself killed in the middle of a run: journals stay readable, and the analysis says so."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from spark_analysis.main import judge

ROOT = Path(__file__).parents[2]


def running(folder: Path) -> tuple["subprocess.Popen[str]", list[psutil.Process]]:
    """A live run that has begun to publish, and all processes under it."""
    changes = ["workload.publications=100000", "overlay.brokers=3", "workload.clients=4"]
    arguments = ["run", "parity", "--runtime", "ray", "--out", str(folder), *(f"--set={change}" for change in changes)]
    process = subprocess.Popen(
        [sys.executable, "-m", "murmuration.commands.main", *arguments], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "publishing" in line and "publishing 0 " not in line:
            break
    return process, psutil.Process(process.pid).children(recursive=True)


def judge_what_is_left(folder: Path) -> None:
    kinds = {int(kind) for path in (folder / "journal").glob("*.seg") for kind in read_segment(path)[1]["kind"]}
    assert {RowKind.PUBLISH, RowKind.DELIVER} <= kinds
    verdict = judge(folder)
    assert verdict["published"] > 100
    assert verdict["spurious"] == verdict["duplicate"] == 0
    assert verdict["verdict"] == "unknown"
    assert "cut short" in verdict["reason"]


@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.slow
def test_the_driver_is_killed(tmp_path: Path) -> None:
    process, started = running(tmp_path / "run")
    process.kill()
    process.communicate(timeout=60)
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive, f"left over: {alive}"
    judge_what_is_left(tmp_path / "run")


@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.parametrize("part", ["gcs_server", "raylet"])
@pytest.mark.slow
def test_a_part_of_ray_is_killed(tmp_path: Path, part: str) -> None:
    process, started = running(tmp_path / "run")
    victims = [each for each in started if each.is_running() and part in each.name()]
    assert victims, [each.name() for each in started]
    for victim in victims:
        victim.kill()
    began = time.monotonic()
    said = process.communicate(timeout=200)[1]
    assert process.returncode == 1, said
    assert "kept" in said
    assert "Traceback" not in said, said
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive, f"left over: {[each.name() for each in alive]}"
    print(f"{part} killed: the run ended after {time.monotonic() - began:.0f} s")
    judge_what_is_left(tmp_path / "run")
