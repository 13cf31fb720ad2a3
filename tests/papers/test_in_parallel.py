"""Runs in processes of their own end with the command that started them, however that ends."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from murmur_pubsub.errors import RunError
from murmuration.papers.lab.framework import in_parallel


def sleep_long(place: str) -> None:
    """One point: say which process this is, and never come to an end."""
    Path(place).write_text(str(os.getpid()))
    time.sleep(600)


def fail_at_two(number: int) -> int:
    if number == 2:
        raise ValueError("two")
    return number * number


def end_at_two(number: int) -> int:
    if number == 2:
        os._exit(9)
    return number * number


def test_results_come_in_the_order_of_the_points_and_each_is_kept() -> None:
    kept: dict[int, int] = {}
    assert in_parallel(fail_at_two, [3, 1, 4], lambda *_: None, keep=kept.__setitem__) == [9, 1, 16]
    assert kept == {3: 9, 1: 1, 4: 16}


def test_what_a_point_raises_is_raised_with_its_place() -> None:
    with pytest.raises(ValueError, match="two") as caught:
        in_parallel(fail_at_two, [2], lambda *_: None)
    assert "fail_at_two" in caught.value.__notes__[0]


def test_a_point_whose_process_is_killed_is_named() -> None:
    with pytest.raises(RunError, match="process of 2 ended with exit code 9"):
        in_parallel(end_at_two, [2], lambda *_: None)


def main(folder: str) -> None:
    in_parallel(sleep_long, [f"{folder}/{number}" for number in range(5)], lambda *_: None)


def written(folder: Path) -> list[int]:
    """The processes that have begun with a point."""
    return [int(text) for path in sorted(folder.iterdir()) if (text := path.read_text())]


def is_there(process: int) -> bool:
    with contextlib.suppress(OSError):
        os.kill(process, 0)
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_or_killed_command_leaves_no_process_and_starts_no_other_point(
    tmp_path: Path, how: signal.Signals
) -> None:
    command = f"import sys; sys.path[:0] = {sys.path!r}; from {__name__} import main; main({str(tmp_path)!r})"
    parent = subprocess.Popen([sys.executable, "-c", f"if __name__ == '__main__':\n {command}"], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(written(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    begun = written(tmp_path)
    assert len(begun) == 2
    parent.send_signal(how)
    assert parent.wait(timeout=30) != 0
    while any(map(is_there, begun)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_there, begun))
    assert written(tmp_path) == begun
