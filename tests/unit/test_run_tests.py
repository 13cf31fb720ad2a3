"""The script that plays all tests: both halves are played and told of, whatever the other found, and live tests come
first on the cores."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "run_tests.sh"
STUB = """#!/bin/sh
echo "played: $*"
case "$*" in
*"not (ray or spark or sockets)"*) exit {others} ;;
*) exit {live} ;;
esac
"""
TELLS_ITS_WEIGHT = """#!/bin/sh
case "$*" in
*"not (ray or spark or sockets)"*) sed 's/^/others: /' /proc/$$/autogroup; echo niceness $(nice) ;;
*) sed 's/^/live: /' /proc/$$/autogroup ;;
esac
"""
HANGS = """#!/bin/sh
case "$*" in
*"not (ray or spark or sockets)"*) echo $$ >"$0.pid"; sleep 300 & wait ;;
*) while [ ! -s "$0.pid" ]; do sleep 0.05; done ;;
esac
"""


def script_with(tmp_path: Path, stub: str) -> list[str]:
    python = tmp_path / "python"
    python.write_text(stub)
    python.chmod(0o755)
    return ["/bin/sh", str(SCRIPT), str(python), "not slow"]


def played(tmp_path: Path, stub: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    command = script_with(tmp_path, stub)
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": path}, timeout=60)


def without_setsid(tmp_path: Path) -> str:
    """A PATH with all that the script calls but `setsid`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mktemp", "tail", "rm"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


@pytest.mark.parametrize(("others", "live", "code"), [(0, 0, 0), (1, 0, 1), (0, 1, 1), (2, 5, 1)])
@pytest.mark.parametrize("has_setsid", [True, False])
def test_both_halves_are_played_and_either_failure_counts(
    tmp_path: Path, others: int, live: int, code: int, has_setsid: bool
) -> None:
    stub = STUB.format(others=others, live=live)
    told = played(tmp_path, stub, os.environ["PATH"] if has_setsid else without_setsid(tmp_path))
    assert told.returncode == code
    assert "played: -m pytest -q -m not slow and (ray or spark or sockets)" in told.stdout
    assert "-m not slow and not (ray or spark or sockets)" in told.stdout


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this Linux knows no groups of sessions")
@pytest.mark.skipif(shutil.which("setsid") is None, reason="this computer has no command setsid")
def test_the_others_give_way_to_processes_of_other_sessions(tmp_path: Path) -> None:
    """Ray's processes have a session of their own, and the cores are shared among sessions before niceness counts."""
    told = played(tmp_path, TELLS_ITS_WEIGHT).stdout
    weights = dict(line.split(": ") for line in told.splitlines() if "autogroup" in line)
    assert weights["others"].endswith("nice 6")
    assert weights["live"].split()[0] != weights["others"].split()[0], "they have a session of their own"
    assert "niceness 19" in told


@pytest.mark.skipif(shutil.which("setsid") is None, reason="this computer has no command setsid")
def test_a_script_that_is_ended_takes_the_others_with_it(tmp_path: Path) -> None:
    script = subprocess.Popen(script_with(tmp_path, HANGS), stdout=subprocess.PIPE, text=True)
    assert script.stdout is not None
    assert script.stdout.readline().startswith("the other tests"), "the live ones are through"
    others = int((tmp_path / "python.pid").read_text())
    assert os.getpgid(others) == others
    script.send_signal(signal.SIGTERM)
    script.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while still := [each.pid for each in psutil.process_iter() if alive_in(each, others)]:
        assert time.monotonic() < deadline, still
        time.sleep(0.1)


def alive_in(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False
