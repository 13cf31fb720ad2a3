"""A sweep of 40 points is killed halfway, with all that it started, and goes on: none is lost, none run twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spark_analysis.plain_judge import judge_plainly

ROOT = Path(__file__).parents[2]
SWEEP = """
name: forty
scenario: parity
set: {overlay.brokers: 3, workload.clients: 3, workload.subscribers_per_actor: 2, workload.publications: 5}
grid:
    workload.rate_per_s: [100, 200, 400, 800]
    links.loss: [0.0, 0.1]
seeds: 5
"""


def command(file: Path, folder: Path) -> list[str]:
    options = ["--no-analysis", "--workers", "2", "--json", "--out", str(folder)]
    return [sys.executable, "-m", "murmuration.commands.main", "sweep", str(file), *options]


def whole(folder: Path) -> dict[str, int]:
    """The points that are there whole, and when each was played."""
    return {each.name: each.stat().st_mtime_ns for each in (folder / "runs").glob("[0-9]*")}


@pytest.mark.ray
@pytest.mark.slow
def test_a_sweep_killed_halfway_loses_no_point_and_runs_none_twice(tmp_path: Path) -> None:
    file, folder = tmp_path / "forty.yaml", tmp_path / "sweep"
    file.write_text(SWEEP)
    with (tmp_path / "said").open("w") as said:
        killed = subprocess.Popen(command(file, folder), cwd=ROOT, start_new_session=True, stdout=said, stderr=said)
    deadline = time.monotonic() + 120
    while len(whole(folder)) < 15:
        assert killed.poll() is None, (tmp_path / "said").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    before = whole(folder)
    assert 15 <= len(before) < 40
    for name in before:
        assert json.loads((folder / "runs" / name / "manifest.json").read_text())["status"] == "complete"

    again = subprocess.run(command(file, folder), cwd=ROOT, capture_output=True, text=True, check=False, timeout=200)
    assert again.returncode == 0, again.stderr
    after = whole(folder)
    assert len(after) == 40, "no point is lost"
    orphans = {name for name in before if before[name] != after[name]}
    assert not orphans, "none that was there was played again"
    told = json.loads(again.stdout)
    assert (told["kept"] + told["done"], told["failed"]) == (40, 0)
    assert told["kept"] >= len(before), "a task that outlived its driver may have finished one more"
    assert {each.name for each in (folder / "runs").iterdir()} == set(after), "nothing half done is left"
    point = judge_plainly(folder / "runs" / "0001" / "journal", 1_000_000)
    assert point.counts == (0, 0, 0, 0)

    once_more = subprocess.run(command(file, folder), cwd=ROOT, capture_output=True, text=True, check=False)
    assert json.loads(once_more.stdout)["kept"] == 40
    assert whole(folder) == after

    file.write_text(SWEEP.replace("800", "900"))
    other = subprocess.run(command(file, folder), cwd=ROOT, capture_output=True, text=True, check=False)
    assert other.returncode == 2
    assert "another point" in other.stderr
    assert whole(folder) == after
