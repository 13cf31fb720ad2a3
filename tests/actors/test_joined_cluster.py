"""A cluster that is there already, started by command as a user would, with token authentication."""

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from actors.joining import (
    CLOCK_US_MAX,
    FREE_BYTES_MIN,
    HostProbe,
    check_clock,
    check_host,
    check_versions,
    own_versions,
)
from murmur_pubsub.errors import InputError
from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.sweeps.tasks import Cores
from spark_analysis.plain_judge import judge_plainly
from tests.actors.joined import ROOT, JoinedCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JoinedCluster]:
    with JoinedCluster(tmp_path_factory.mktemp("cluster"), scratch=False) as made:
        yield made


@pytest.mark.ray
@pytest.mark.slow
def test_a_live_run_is_spread_over_all_hosts_of_a_cluster(cluster: JoinedCluster, tmp_path: Path) -> None:
    done = cluster.run(tmp_path / "run", "--no-analysis", "placement={b1: host2, b3: north}", "hosts=3")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    brokers = {host["name"]: host["brokers"] for host in manifest["cluster"]["hosts"]}
    assert len(brokers) == 3
    assert all(brokers.values()), brokers
    assert "b1" in brokers["host2"]
    assert "b3" in brokers["host0"], "the only host of that zone"
    assert all(abs(host["clock_us"]) < CLOCK_US_MAX for host in manifest["cluster"]["hosts"])
    assert sorted(name for on_it in brokers.values() for name in on_it) == [f"b{number}" for number in range(6)]
    assert judge_plainly(tmp_path / "run" / "journal", 1_000_000).counts == (0, 0, 0, 0)
    assert len({path.name.split("-")[0] for path in (tmp_path / "run" / "journal").glob("b*.seg")}) == 6


@pytest.mark.ray
@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        ((), {"RAY_AUTH_TOKEN_PATH": "WRONG"}, "a cluster that refuses this token"),
        ((), {"RAY_AUTH_MODE": "disabled"}, "a cluster that refuses this token"),
        (("hosts=4",), {}, "3 hosts"),
        (("placement={b1: host9}",), {}, "or a zone: north, south"),
        (("placement={b99: host1}",), {}, "no broker of that name"),
        (("runtime=virtual",), {}, "virtual time has no hosts"),
        (("faults=[{at: 1 s, lose_host: 1}]",), {}, "without --address"),
        (("--store=file:///dev/null/runs",), {}, "a place that cannot be written"),
        (("--store=nothing://here/runs",), {}, "a URI of a filesystem that pyarrow knows"),
        (("--analysis",), {"JAVA_HOME": "/nowhere"}, "Java 17 or later"),
    ],
)
@pytest.mark.slow
def test_what_cannot_run_on_the_cluster_is_said_before_anything_starts(
    cluster: JoinedCluster, tmp_path: Path, arguments: tuple[str, ...], variables: dict[str, str], message: str
) -> None:
    (tmp_path / "wrong").write_text("6a" * 32)
    given = {name: str(tmp_path / "wrong") if value == "WRONG" else value for name, value in variables.items()}
    done = cluster.run(tmp_path / "run", "--no-analysis", *arguments, **given)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.ray
@pytest.mark.slow
def test_a_sweep_is_played_on_the_cores_of_all_hosts(cluster: JoinedCluster, tmp_path: Path) -> None:
    file, folder = tmp_path / "s.yaml", tmp_path / "sweep"
    file.write_text("scenario: parity\nset: {workload.publications: 5}\ngrid: {links.loss: [0.0, 0.1]}\nseeds: 3\n")
    command = [sys.executable, "-m", "murmuration.commands.main", "sweep", str(file), "--no-analysis", "--json"]
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
@pytest.mark.slow
def test_the_runs_of_a_paper_are_spread_over_all_hosts_of_a_cluster(cluster: JoinedCluster, tmp_path: Path) -> None:
    program = f"from {__name__} import spread; spread({cluster.address!r}, {str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, env=cluster.environment(), capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    hosts = json.loads(done.stdout.splitlines()[-1])
    assert len(set(hosts)) == 3, "each of the three runs waited until all had begun"


def spread(address: str, folder: str) -> None:
    """In a process of its own: play three points on the cluster and print the host of each."""
    runs = PaperRuns(Path(folder), lambda *_: None, Cores(workers=3, address=address))
    print(json.dumps(list(runs.spread(meet, [f"{folder}/{number}" for number in range(3)], lambda _: str).values())))


def meet(place: str) -> str:
    """One point: wait until all three have begun. Returns Ray's identifier of the host that plays it."""
    Path(place).touch()
    deadline = time.monotonic() + 60
    while len(list(Path(place).parent.glob("[0-9]"))) < 3:
        assert time.monotonic() < deadline, "the points are played one after the other"
        time.sleep(0.1)
    return str(ray.get_runtime_context().get_node_id())


def murmur(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "murmuration.commands.main", *arguments]
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


OWN = own_versions()
FIT = HostProbe(
    "id", "m", "10.0.0.9", seen=True, free=FREE_BYTES_MIN, murmur=OWN["murmur"], ray=OWN["ray"], python=OWN["python"]
)


def test_a_fit_host_passes() -> None:
    check_host("here", FIT, OWN, shared=True, store=None)
    check_host("here", dataclasses.replace(FIT, seen=False, scratch="/scratch"), OWN, shared=False, store="s3://b/r")


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ({"failure": "WorkerCrashedError: gone"}, "gone"),
        ({"murmur": None}, "murmur missing"),
        ({"murmur": "9.9"}, "murmur 9.9"),
        ({"ray": "2.1.0"}, "a host of Ray 2.1.0"),
        ({"python": "3.9.1"}, "Python 3.9.1"),
        ({"seen": False}, "storage that all hosts share"),
        ({"trouble": "No such file"}, "no place for journals"),
        ({"free": FREE_BYTES_MIN - 1}, "MB free for journals"),
        ({"store_trouble": "access denied"}, "s3://b/r that it cannot write to"),
        ({"clock_us": 35_000.0}, "35 ms ahead"),
    ],
)
def test_a_host_that_is_not_fit_is_named(fact: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_host("host 10.0.0.9 (m)", dataclasses.replace(FIT, **fact), OWN, shared=True, store="s3://b/r")  # type: ignore[arg-type]


def test_a_clock_that_is_certainly_wrong_is_named() -> None:
    check_clock("m", CLOCK_US_MAX, 0)
    check_clock("m", -CLOCK_US_MAX - 5, 10)
    with pytest.raises(InputError, match="m: found a clock 35 ms behind"):
        check_clock("m", -35_000, 1_000)


@pytest.mark.parametrize("other", [{"ray": "2.1.0"}, {"python": "3.9.1"}])
def test_another_version_of_ray_or_python_is_named(other: dict[str, str]) -> None:
    from importlib.metadata import version

    own = {"ray": version("ray"), "python": ".".join(map(str, sys.version_info[:3]))}
    check_versions("here", "a cluster", own, own)
    with pytest.raises(InputError) as caught:
        check_versions("here", "a cluster", own | other, own)
    assert next(iter(other.values())) in caught.value.found
    assert own["ray"] in caught.value.allowed
