"""Modules of a user's own are found where the user is, and one that hides a package of murmur's is named."""

import subprocess
import sys
from pathlib import Path

import pytest

from murmur_pubsub.run_manifest import read_manifest

ROOT = Path(__file__).parents[2]
PROTOCOL = """
from routing.flooding import Flooding

class Halfway(Flooding):
    pass
"""
SCENARIO = """
name: own
runtime: virtual
overlay: {kind: chain, brokers: 2}
workload: {kind: zipf, clients: 2, publications: 5, rate_per_s: 400}
broker: {routing: "halfway:Halfway"}
"""


def murmur(folder: Path, *arguments: str, path: str = str(ROOT)) -> subprocess.CompletedProcess[str]:
    """Run the command as its script does, which has no folder of the user's on the search path."""
    program = f"import sys; sys.path[:1] = {path.split(':')!r}; from murmuration.__main__ import main; main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments],
        cwd=folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip


def test_a_protocol_in_the_current_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "halfway.py").write_text(PROTOCOL)
    result = murmur(
        tmp_path, "run", "parity", "--runtime", "virtual", "--set", "broker.routing=halfway:Halfway", "--no-analysis",
        "--set", "workload.publications=5", "--out", "run",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


def test_a_protocol_beside_its_scenario_is_found_and_again_by_replay(tmp_path: Path) -> None:
    beside, elsewhere = tmp_path / "beside", tmp_path / "elsewhere"
    beside.mkdir()
    elsewhere.mkdir()
    (beside / "halfway.py").write_text(PROTOCOL)
    (beside / "own.yaml").write_text(SCENARIO)
    played = murmur(elsewhere, "run", str(beside / "own.yaml"), "--keep-inputs", "--no-analysis", "--out", "run")
    assert played.returncode == 0, played.stderr
    replayed = murmur(elsewhere, "replay", "run", "--node", "b1")
    assert replayed.returncode == 0, replayed.stderr


def test_a_protocol_beside_its_sweep_file_is_found(tmp_path: Path) -> None:
    beside, elsewhere = tmp_path / "beside", tmp_path / "elsewhere"
    beside.mkdir()
    elsewhere.mkdir()
    (beside / "halfway.py").write_text(PROTOCOL)
    (beside / "own.yaml").write_text(SCENARIO)
    (beside / "sweep.yaml").write_text("scenario: own.yaml\ngrid: {links.loss: [0.0]}\n")
    (elsewhere / "runs" / "of another").mkdir(parents=True)
    result = murmur(elsewhere, "sweep", str(beside / "sweep.yaml"), "--no-analysis", "--out", ".")
    assert "murmur: .: found runs, and no sweep.json" in result.stderr, "every point has been checked by then"


@pytest.mark.ray
def test_actors_find_a_protocol_beside_its_scenario(tmp_path: Path) -> None:
    beside, elsewhere = tmp_path / "beside", tmp_path / "elsewhere"
    beside.mkdir()
    elsewhere.mkdir()
    (beside / "halfway.py").write_text(PROTOCOL)
    (beside / "own.yaml").write_text(SCENARIO)
    result = murmur(elsewhere, "run", str(beside / "own.yaml"), "--runtime", "ray", "--no-analysis", "--out", "run")
    assert result.returncode == 0, result.stderr
    assert read_manifest(elsewhere / "run").status == "complete"


@pytest.mark.parametrize("name", ["actors", "murmur_pubsub", "routing", "spark_analysis", "workloads"])
@pytest.mark.parametrize("kind", ["package", "module"])
def test_a_module_that_hides_one_of_ours_is_named_in_one_message(tmp_path: Path, name: str, kind: str) -> None:
    hiding = tmp_path / name if kind == "package" else tmp_path / f"{name}.py"
    if kind == "package":
        hiding.mkdir()
        (hiding / "__init__.py").write_text("")
    else:
        hiding.write_text("")
    result = murmur(tmp_path, "run", "parity", path=f"{tmp_path}:{ROOT}")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"murmur: package {name}: found {hiding}, which hides murmur's own; allowed: ")
    assert result.stdout == ""


def test_a_folder_with_the_name_of_one_of_ours_does_no_harm_where_ours_come_first(tmp_path: Path) -> None:
    (tmp_path / "actors").mkdir()
    (tmp_path / "actors" / "__init__.py").write_text("")
    result = murmur(tmp_path, "run", "parity", "--runtime", "virtual", "--no-analysis", "--out", "run")
    assert result.returncode == 0, result.stderr


def test_a_live_run_is_refused_in_a_folder_that_hides_one_of_ours_from_actors(tmp_path: Path) -> None:
    (tmp_path / "actors").mkdir()
    (tmp_path / "actors" / "__init__.py").write_text("")
    result = murmur(tmp_path, "run", "parity", "--runtime", "ray", "--no-analysis", "--out", "run")
    assert result.returncode == 2
    assert result.stderr.startswith(f"murmur: package actors: found {tmp_path / 'actors'}")
    assert not (tmp_path / "run").exists()


def test_an_import_of_the_package_names_what_hides_one_of_ours(tmp_path: Path) -> None:
    (tmp_path / "workloads.py").write_text("")
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import murmuration; murmuration.Cluster"
    result = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1
    assert f"ImportError: package workloads: found {tmp_path / 'workloads.py'}" in result.stderr


def test_a_suite_in_a_project_that_hides_one_of_ours_ends_with_the_message(tmp_path: Path) -> None:
    (tmp_path / "actors").mkdir()
    (tmp_path / "actors" / "__init__.py").write_text("")
    (tmp_path / "test_it.py").write_text("def test_own():\n    pass\n\ndef test_it(cluster):\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    own = subprocess.run([*command, "-k", "own"], cwd=tmp_path, capture_output=True, text=True)
    assert own.returncode == 0, "a suite that does not use murmur is not disturbed"
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2
    assert f"murmur: package actors: found {tmp_path / 'actors'}, which hides murmur's own" in result.stdout
