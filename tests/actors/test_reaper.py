"""What the reaper ends when a driver is killed: the Ray that the driver started, and nothing else."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from actors import reaper
from actors.reaper import processes_of

DRIVER = """
import subprocess, sys
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
parent = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[2:])", sys.argv[1], *sleep]
print(subprocess.Popen(parent).pid, subprocess.Popen(sleep).pid, flush=True)
sys.stdin.read()
"""


class Driver:
    """A process that has started something in a folder, which has a child, and something else."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", DRIVER, f"--temp-dir={folder}/session"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.ray, self.other = (psutil.Process(int(pid)) for pid in self.process.stdout.readline().split())
        await_that(lambda: len(self.ray.children()) == 1)
        self.all_of_ray = [self.ray, *self.ray.children()]


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    made = Driver(tmp_path)
    yield made
    for each in (*made.all_of_ray, made.other, made.process):
        if each.is_running() if isinstance(each, psutil.Process) else each.poll() is None:
            each.kill()
    made.process.wait()


def await_that(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def alive(process: psutil.Process) -> bool:
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)


def test_only_what_was_told_of_the_folder_belongs_to_the_run(driver: Driver, tmp_path: Path) -> None:
    assert set(processes_of(driver.process.pid, str(tmp_path))) == set(driver.all_of_ray)
    assert processes_of(driver.process.pid, "/tmp/another") == []


def test_a_driver_that_is_gone_has_no_processes(driver: Driver, tmp_path: Path) -> None:
    driver.process.kill()
    driver.process.wait()
    assert processes_of(driver.process.pid, str(tmp_path)) == []


def test_a_killed_drivers_ray_is_ended_and_its_other_children_are_left_alone(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(reaper, "_GRACE_S", 0.0)
    looked = threading.Event()

    def look(pid: int, folder: str) -> list[psutil.Process]:
        found = processes_of(pid, folder)
        looked.set()
        return found

    monkeypatch.setattr(reaper, "processes_of", look)
    folder = tmp_path / "session"
    folder.mkdir()
    read, write = os.pipe()
    with os.fdopen(read) as heard:
        monkeypatch.setattr(sys, "stdin", heard)
        watching = threading.Thread(target=reaper.main, args=(driver.process.pid, str(folder)))
        watching.start()
        assert looked.wait(20)
        driver.process.kill()
        driver.process.wait()
        os.close(write)
        watching.join(20)
        assert not watching.is_alive()
    await_that(lambda: not any(alive(each) for each in driver.all_of_ray))
    assert alive(driver.other)
    assert not folder.exists()
