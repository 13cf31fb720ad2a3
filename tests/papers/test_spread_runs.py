"""Runs as Ray tasks: each has a process of its own, one that fails costs no other, and all end with their command."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError, RunError
from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.sweeps.tasks import Cores


def process_of(number: int) -> int:
    """One point: fail, be killed, or say which process this is."""
    if number == 2:
        raise ValueError("two is wrong")
    if number == 3:
        os._exit(9)
    return os.getpid()


def sleep_long(place: str) -> int:
    """One point: say which process this is, and never come to an end."""
    Path(place).write_text(str(os.getpid()))
    time.sleep(600)
    return 0


@pytest.mark.ray
def test_a_failed_run_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    runs = PaperRuns(tmp_path, lambda *step: told.append(step), Cores(workers=2))
    with pytest.raises(RunError, match=r"(?s)2 of 5 runs failed; the others are kept.*2: ValueError: two is wrong"):
        runs.spread(process_of, range(1, 6), lambda _: int)
    kept = runs.spread(process_of, [5, 1, 4], lambda _: int)
    assert list(kept) == [5, 1, 4]
    assert len({os.getpid(), *kept.values()}) == 4, "no two of them ran in one process"
    assert told[:4] == [("runs", done, 5) for done in range(4)]


def test_less_than_one_worker_is_refused() -> None:
    with pytest.raises(InputError, match="--workers: found 0"):
        Cores(workers=0)


def main(folder: str) -> None:
    runs = PaperRuns(Path(folder), lambda *_: None, Cores(workers=2))
    runs.spread(sleep_long, [f"{folder}/{number}" for number in range(5)], lambda _: int)


def written(folder: Path) -> list[int]:
    """The processes that have begun with a point."""
    return [int(text) for path in sorted(folder.glob("[0-9]")) if (text := path.read_text())]


def is_there(process: int) -> bool:
    with contextlib.suppress(OSError):
        os.kill(process, 0)
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return False


@pytest.mark.ray
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_or_killed_command_leaves_no_process_and_starts_no_other_point(
    tmp_path: Path, how: signal.Signals
) -> None:
    command = f"import sys; sys.path[:0] = {sys.path!r}; from {__name__} import main; main({str(tmp_path)!r})"
    parent = subprocess.Popen(
        [sys.executable, "-c", command],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell has it ignored
    )
    deadline = time.monotonic() + 100
    while len(written(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    begun = written(tmp_path)
    assert len(begun) == 2
    parent.send_signal(how)
    assert parent.wait(timeout=60) != 0
    while any(map(is_there, begun)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_there, begun))
    assert written(tmp_path) == begun
