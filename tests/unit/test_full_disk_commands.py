"""What commands promise when there is no room: what is there, by its name, and nothing else."""

import functools
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from murmur_pubsub.errors import DiskError
from murmuration.commands.init import Starter, begin
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from tests.no_room import BEFORE_IT_STARTS, leave_no_room_for

ROOT = Path(__file__).parents[2]


def murmur(room: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command where no file may become larger than this."""
    return subprocess.run(
        [sys.executable, "-m", "murmuration.commands.main", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
        preexec_fn=functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room, room)),
    )  # fmt: skip


def test_a_run_that_finds_no_room_at_all_leaves_no_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = murmur(10, "run", "parity", "--no-analysis", "--out", str(run))
    told = f"murmur: {run}/manifest.json: File too large\nnothing was kept\n"
    assert (done.returncode, done.stderr[-len(told) :]) == (1, told)
    assert not run.exists()


@pytest.mark.parametrize("name", BEFORE_IT_STARTS)
def test_nor_does_one_that_finds_none_for_its_scenario_but_what_was_there_stays(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_no_room_for(name, monkeypatch)
    theirs = ("other", "layout.json" if name == "scenario.yaml" else "scenario.yaml")
    for each in theirs:
        (tmp_path / each).write_text("not the run's")
    for run in (tmp_path, tmp_path / "run"):
        with pytest.raises(DiskError, match=name):
            execute(load_scenario(Path("parity")), run, lambda *_: None)
    assert {path.name for path in tmp_path.iterdir()} == {*theirs}


def test_nothing_is_promised_of_a_run_that_journaled_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = murmur(100_000, "run", "parity", "--no-analysis", "--out", str(run))
    told = f"murmur: {run}/journal/run-0-00000.seg: File too large\nnothing was journaled in {run}\n"
    assert (done.returncode, done.stderr[-len(told) :]) == (1, told)
    assert not [path for path in (run / "journal").iterdir() if path.suffix == ".seg"]


def test_what_one_begins_with_finds_no_room(tmp_path: Path) -> None:
    done = murmur(2_000, "init", "protocol", str(tmp_path))
    assert (done.returncode, done.stderr) == (1, f"murmur: {tmp_path}/hop_acks.py: File too large\n")
    assert not list(tmp_path.iterdir())


def test_nor_does_any_of_it_stay_where_the_last_file_finds_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nearly_full(path: Path, text: str) -> None:
        if path.name == "test_hop_acks.py":
            raise DiskError(str(path), "No space left on device")
        path.write_text(text)

    monkeypatch.setattr("murmuration.commands.init.write_text", nearly_full)
    with pytest.raises(DiskError, match=r"/test_hop_acks.py: No space left"):
        begin(Starter.PROTOCOL, tmp_path)
    assert not list(tmp_path.iterdir())
