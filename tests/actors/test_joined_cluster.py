"""A cluster that is there already, started by command as a user would, with token authentication."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from actors.joining import CLOCK_US_MAX, check_clock, check_versions
from pubsub.errors import InputError
from pubsub.journal import read_segment
from tests.plain_judge import judge

ROOT = Path(__file__).parents[2]
PORT = 27391
_ENOUGH = ["--num-cpus=1", "--object-store-memory=80000000", "--min-worker-port=0", "--max-worker-port=0", "--block"]


class Cluster:
    """Three raylets on this machine, the head among them."""

    def __init__(self, folder: Path) -> None:
        self.token = folder / "token"
        self.token.write_text("5f" * 32)
        self.address = ""
        self._temporary = tempfile.mkdtemp(prefix="mcl-", dir="/tmp")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._said = folder / "said"

    def environment(self, **changes: str) -> dict[str, str]:
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token)}
        return {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", **token, **changes}

    def start(self) -> None:
        """Raylets one by one: those that start at once take each other's ports."""
        head = ["--head", f"--port={PORT}", f"--temp-dir={self._temporary}", "--include-dashboard=false"]
        self._raylet([*head, *_ENOUGH])
        self.address = f"{self._address()}:{PORT}"
        for number in (1, 2):
            self._raylet([f"--address={self.address}", f"--node-name=machine{number}", *_ENOUGH])

    def stop(self) -> None:
        for process in reversed(self._processes):
            children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
            for child in children:
                if child.is_running():
                    child.kill()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def lose(self, number: int) -> None:
        """Take a machine away as a power cut would."""
        process = psutil.Process(self._processes[number].pid)
        for each in [*process.children(recursive=True), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self._processes[number].wait()

    def _raylet(self, arguments: list[str]) -> None:
        log = self._said.with_name(f"said-{len(self._processes)}")
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *arguments]
        with log.open("w") as out:
            self._processes.append(subprocess.Popen(command, env=self.environment(), stdout=out, stderr=out))
        deadline = time.monotonic() + 90
        while "Ray runtime started" not in log.read_text():
            assert self._processes[-1].poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)

    def _address(self) -> str:
        import ray

        return str(ray.util.get_node_ip_address())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def run(cluster: Cluster, out: Path, *changes: str, **variables: str) -> subprocess.CompletedProcess[str]:
    settings = ["runtime=ray", "workload.publications=100", "overlay.brokers=6", "workload.clients=3", *changes]
    command = ["run", "parity", "--no-analysis", "--address", cluster.address, "--out", str(out)]
    return subprocess.run(
        [sys.executable, "-m", "experiments.command_line", *command, *(f"--set={each}" for each in settings)],
        cwd=ROOT, env=cluster.environment(**variables), capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip


@pytest.mark.ray
def test_a_live_run_is_spread_over_all_machines_of_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    done = run(cluster, tmp_path / "run", "placement={b1: machine2}", "machines=3")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    brokers = {machine["name"]: machine["brokers"] for machine in manifest["cluster"]["machines"]}
    assert len(brokers) == 3
    assert all(brokers.values()), brokers
    assert "b1" in brokers["machine2"]
    assert all(abs(machine["clock_us"]) < CLOCK_US_MAX for machine in manifest["cluster"]["machines"])
    assert sorted(name for on_it in brokers.values() for name in on_it) == [f"b{number}" for number in range(6)]
    assert judge(tmp_path / "run" / "journal", 1_000_000).counts == (0, 0, 0, 0)
    assert len({path.name.split("-")[0] for path in (tmp_path / "run" / "journal").glob("b*.seg")}) == 6


@pytest.mark.ray
@pytest.mark.parametrize(
    ("changes", "variables", "message"),
    [
        ((), {"RAY_AUTH_TOKEN_PATH": "WRONG"}, "a cluster that refuses this token"),
        ((), {"RAY_AUTH_MODE": "disabled"}, "a cluster that refuses this token"),
        (("machines=4",), {}, "3 machines"),
        (("placement={b1: machine9}",), {}, "machine 'machine9'"),
        (("placement={b99: machine1}",), {}, "no broker of that name"),
        (("runtime=virtual",), {}, "virtual time has no machines"),
        (("faults=[{at: 1 s, lose_machine: 1}]",), {}, "without --address"),
    ],
)
def test_what_cannot_run_on_the_cluster_is_said_before_anything_starts(
    cluster: Cluster, tmp_path: Path, changes: tuple[str, ...], variables: dict[str, str], message: str
) -> None:
    (tmp_path / "wrong").write_text("6a" * 32)
    given = {name: str(tmp_path / "wrong") if value == "WRONG" else value for name, value in variables.items()}
    done = run(cluster, tmp_path / "run", *changes, **given)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.ray
def test_a_sweep_is_played_on_the_cores_of_all_machines(cluster: Cluster, tmp_path: Path) -> None:
    file, folder = tmp_path / "s.yaml", tmp_path / "sweep"
    file.write_text("scenario: parity\nset: {workload.publications: 5}\ngrid: {links.loss: [0.0, 0.1]}\nseeds: 3\n")
    command = [sys.executable, "-m", "experiments.command_line", "sweep", str(file), "--no-analysis", "--json"]
    for workers, code in ((4, 2), (3, 0)):
        done = subprocess.run(
            [*command, "--address", cluster.address, "--workers", str(workers), "--out", str(folder)],
            cwd=ROOT, env=cluster.environment(), capture_output=True, text=True, check=False, timeout=200,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        if code:
            assert "1 to 3, the cores there are" in done.stderr
    assert json.loads(done.stdout)["done"] == 6
    assert len(list((folder / "runs").iterdir())) == 6


@pytest.mark.ray
def test_a_machine_lost_during_a_run_leaves_every_journal_readable(cluster: Cluster, tmp_path: Path) -> None:
    """The last one with this cluster: a machine of it is gone then."""
    out = tmp_path / "run"
    settings = ["runtime=ray", "workload.publications=100000", "workload.rate_per_s=200", "overlay.brokers=6"]
    command = ["run", "parity", "--no-analysis", "--address", cluster.address, "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.command_line", *command, *(f"--set={each}" for each in settings)],
        cwd=ROOT, env=cluster.environment(), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if "publishing" in line and "publishing 0 " not in line:
            break
    cluster.lose(2)
    said += process.communicate(timeout=120)[1]
    assert process.returncode == 1, said
    assert "the actor of b" in said, "who died is named"
    assert "kept" in said
    assert "Traceback" not in said
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    brokers = {machine["name"]: machine["brokers"] for machine in manifest["cluster"]["machines"]}
    last_us = {
        name: max(int(read_segment(path)[1]["time_us"].max()) for path in (out / "journal").glob(f"{name}-0-*.seg"))
        for on_it in brokers.values()
        for name in on_it
    }
    survivors = [name for machine, on_it in brokers.items() if machine != "machine2" for name in on_it]
    assert len(survivors) == 4
    lost_us = max(last_us[name] for name in brokers["machine2"])
    assert min(last_us[name] for name in survivors) > lost_us - 1_000_000, "the others were journaled to the end"
    assert judge(out / "journal", 1_000_000).counts[1:] == (0, 0, 0), "what is there is sound"


def murmur(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "experiments.command_line", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "nowhere", "nowhere:x"])
def test_no_cluster_at_the_address_is_said_at_once(tmp_path: Path, address: str) -> None:
    began = time.monotonic()
    done = murmur("run", "default", "--no-analysis", "--address", address, "--out", str(tmp_path / "run"))
    assert done.returncode == 2, done.stderr
    assert "HOST:PORT" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()
    assert time.monotonic() - began < 60


def test_a_clock_that_is_certainly_wrong_is_named() -> None:
    check_clock("m", CLOCK_US_MAX, 0)
    check_clock("m", -CLOCK_US_MAX - 5, 10)
    with pytest.raises(InputError, match="m: found a clock 35 ms behind"):
        check_clock("m", -35_000, 1_000)


@pytest.mark.parametrize("other", [{"ray": "2.1.0"}, {"python": "3.9.1"}])
def test_another_version_of_ray_or_python_is_named(other: dict[str, str]) -> None:
    from importlib.metadata import version

    own = {"ray": version("ray"), "python": ".".join(map(str, sys.version_info[:3]))}
    check_versions("here", own)
    with pytest.raises(InputError) as caught:
        check_versions("here", own | other)
    assert next(iter(other.values())) in caught.value.found
    assert own["ray"] in caught.value.allowed
