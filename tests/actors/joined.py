"""A cluster as a user would start it: three raylets on this host, by command, with token authentication.

Each raylet stands for a host: it has a name, a zone and a scratch folder of its own, can be lost as by a power cut,
and can be started again.
"""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import psutil
import pytest

from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
_ENOUGH = ["--num-cpus=1", "--object-store-memory=80000000", "--min-worker-port=0", "--max-worker-port=0", "--block"]
_QUICK_DEATH = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "4",
}
"""A lost host is noticed in seconds, as waiting for Ray's own quarter of a minute shows nothing more."""
ZONES = ("north", "south", "south")
HAS_JOBS = importlib.util.find_spec("aiohttp_cors") is not None
"""Is `ray[default]` here, with the server that takes jobs?"""


class JoinedCluster:
    """The raylets by number, the head first. With `scratch`, each keeps journals in `scratch_of(number)`."""

    def __init__(self, folder: Path, scratch: bool) -> None:
        self.token = folder / "token"
        self.token.write_text("5f" * 32)
        self.address = ""
        self.job_address = ""
        self._folder = folder
        self._scratch = scratch
        self._temporary = tempfile.mkdtemp(prefix="mcl-", dir="/tmp")
        self._port = free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def environment(self, **changes: str) -> dict[str, str]:
        """What a command on a host of the cluster finds."""
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token)}
        return {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", **token, **changes}

    def scratch_of(self, number: int) -> Path:
        """Where the host keeps journals."""
        return self._folder / f"scratch{number}"

    def start(self) -> None:
        """Raylets one by one: those that start at once take each other's ports."""
        for number in range(3):
            self.start_host(number)

    def start_host(self, number: int) -> None:
        """Start the raylet; one that was lost comes back under its name, as another one for Ray."""
        own = [f"--node-name=host{number}", f"--labels=ray.io/availability-zone={ZONES[number]}"]
        # Agents take jobs at one port by default: beside another cluster of this machine's, none of these would.
        own.append(f"--dashboard-agent-listen-port={free_port()}")
        if number == 0:
            head = ["--head", f"--port={self._port}", f"--temp-dir={self._temporary}"]
            jobs = ["--include-dashboard=true", f"--dashboard-port={free_port()}"]
            own += [*head, *(jobs if HAS_JOBS else ["--include-dashboard=false"])]
            self.job_address = f"http://127.0.0.1:{jobs[1].partition('=')[2]}"
        else:
            own += [f"--address={self.address}"]
        scratch = {"MURMUR_SCRATCH": str(self.scratch_of(number))} if self._scratch else {}
        self.scratch_of(number).mkdir(exist_ok=True)
        log = self._folder / f"said-{number}-{time.monotonic_ns()}"
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *own, *_ENOUGH]
        with log.open("w") as out:
            environment = self.environment(**scratch, **_QUICK_DEATH)
            process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
        self._processes[number : number + 1] = [process]
        deadline = time.monotonic() + 90
        while "Ray runtime started" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        if number == 0:
            import ray

            self.address = f"{ray.util.get_node_ip_address()}:{self._port}"

    def lose(self, number: int) -> None:
        """Take a host away as a power cut would."""
        process = psutil.Process(self._processes[number].pid)
        for each in [*process.children(recursive=True), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self._processes[number].wait()

    def at_work(self, number: int, what: str) -> bool:
        """Does a worker of that host carry out this method of an actor, as its title says?"""
        for each in psutil.Process(self._processes[number].pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if what in " ".join(each.cmdline()):
                    return True
        return False

    def stop(self) -> None:
        """End what was started."""
        for process in reversed(self._processes):
            children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
            for child in children:
                if child.is_running():
                    child.kill()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def murmur(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """A `murmur` command on the head's host, under way."""
        return subprocess.Popen(
            [sys.executable, "-m", "murmuration.commands.main", *arguments],
            cwd=ROOT, env=self.environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def submit(self, *arguments: str) -> subprocess.Popen[str]:
        """The same by `ray job submit`, which prints what the command says."""
        job = [sys.executable, "-m", "ray.scripts.scripts", "job", "submit", "--address", self.job_address, "--"]
        return subprocess.Popen(
            [*job, sys.executable, "-m", "murmuration.commands.main", *arguments],
            cwd=ROOT, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, out: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A small live run on this cluster, to its end; arguments are options, or settings without a dash."""
        settings = ["runtime=ray", "workload.publications=100", "overlay.brokers=6", "workload.clients=3"]
        settings += [each for each in arguments if not each.startswith("--")]
        options = [each for each in arguments if each.startswith("--")]
        process = self.murmur(
            "run", "parity", "--address", self.address, "--out", str(out), *options,
            *(f"--set={each}" for each in settings), **variables,
        )  # fmt: skip
        said, complaint = process.communicate(timeout=200)
        return subprocess.CompletedProcess(process.args, process.returncode, said, complaint)


def await_publishing(process: subprocess.Popen[str], *journals: Path) -> None:
    """Return when a node that writes below one of these folders has published something, in the run of the process."""
    deadline = time.monotonic() + 180
    while True:
        has_ended = process.poll() is not None
        if has_published(*journals):
            return
        if has_ended or time.monotonic() > deadline:
            process.terminate()
            pytest.fail("nothing is published:\n" + "".join(process.communicate(timeout=60)))
        time.sleep(0.2)


def await_excused(process: subprocess.Popen[str]) -> None:
    """Return when the run, with `--json`, has ended as valid: something is missing, and faults excuse all of it."""
    said, complaint = process.communicate(timeout=200)
    assert process.returncode == 0, said + complaint
    verdict = json.loads(said.splitlines()[-1])  # Ray says before it what it saw of the host
    assert verdict["verdict"] == "valid", verdict
    assert verdict["missing"] == verdict["explained"] > 0, verdict


def has_published(*journals: Path) -> bool:
    """Was something published by a node that writes below one of these folders?"""
    return any((read_segment(path)[1]["kind"] == RowKind.PUBLISH).any() for path in _segments(journals))


def _segments(folders: Sequence[Path]) -> list[Path]:
    found = [path for folder in folders for path in folder.rglob("*.seg")]
    return [path for path in found if any(path.read_bytes()[:8])]  # one that is just being opened has no header yet
