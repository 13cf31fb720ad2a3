"""The wheel, installed as a user installs it, beside projects whose folders have names of every kind.

The wheel is built with the setuptools that is here, and installed into a new virtual environment without its
dependencies: a `.pth` file lends it those of this environment, so that nothing is downloaded. What such a file adds
comes after the environment's own packages, and an editable installation in the lending environment is not active there.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from spark_analysis.plain_judge import judge_run

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

SUITE = """
import pytest

@pytest.fixture
def overlay():
    return {"kind": "chain", "brokers": 3}

@pytest.fixture
def protocol():
    return {"routing": "own_protocol:Own"}

def test_every_event_arrives(cluster, clients, faults):
    clients["c2"].subscribe("price > 1")
    cluster.settle()
    clients["c0"].publish({"price": 1}, {"price": 2})
    cluster.wait_for(lambda: len(clients["c2"].deliveries()) == 1)
    faults.cut("b0", "b1")
"""
JUDGED = """

def test_the_judge_agrees(cluster, clients, verdict):
    clients["c2"].subscribe("price > 1")
    cluster.settle()
    clients["c0"].publish({"price": 2})
    verdict().assert_valid()
"""
OWN = """
from routing.flooding import Flooding

class Own(Flooding):
    pass
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of a virtual environment that has the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    for typed in ROOT.glob("*/py.typed"):
        shutil.copytree(typed.parent, folder / "tree" / typed.parent.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "tree" / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index"]
    built = [*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", str(folder), str(folder / "tree")]
    subprocess.run(built, check=True)
    (wheel,) = folder.glob("murmuration-*.whl")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", *offline, str(wheel)], check=True)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def project(folder: Path, *names: str) -> Path:
    """A project with packages of these names, a protocol and a suite."""
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("")
    (folder / "own_protocol.py").write_text(OWN)
    (folder / "test_own_protocol.py").write_text(SUITE)
    return folder


def run(environment: Path, folder: Path, command: str, *arguments: str, path: str = "") -> str:
    """What the command of the environment says, started in the folder of a project; with its exit code."""
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "HOME", "PATH") if name in os.environ}
    done = subprocess.run(
        [environment / command, *arguments],
        cwd=folder, capture_output=True, text=True, env=kept | ({"PYTHONPATH": path} if path else {}),
    )  # fmt: skip
    return f"{done.stdout}{done.stderr}exit code {done.returncode}"


PYTEST = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_a_run_and_a_suite_are_played_beside_packages_with_common_names(environment: Path, tmp_path: Path) -> None:
    folder = project(tmp_path, "experiments", "simulation", "pubsub")
    played = run(
        environment, folder, "murmur", "run", "parity", "--runtime", "virtual", "--set",
        "broker.routing=own_protocol:Own", "--set", "workload.publications=20", "--no-analysis", "--out", "run",
    )  # fmt: skip
    assert played.endswith("exit code 0"), played
    assert judge_run(folder / "run").numbers["verdict"] == "valid"
    for path in ("", "."):
        suite = run(environment, folder, *PYTEST, path=path)
        assert "1 passed" in suite, suite


def test_the_installed_package_has_its_names_its_types_and_its_scenarios(environment: Path, tmp_path: Path) -> None:
    program = "import murmuration, routing; print(murmuration.__version__, murmuration.Cluster, routing.__path__)"
    said = run(environment, tmp_path, "python", "-c", program)
    assert said.endswith("exit code 0"), said
    assert str(environment.parent) in said
    assert "parity" in run(environment, tmp_path, "murmur", "list")
    for package in ("murmuration", "murmur_pubsub", "routing"):
        (typed,) = environment.parent.glob(f"lib/python*/site-packages/{package}/py.typed")
        assert typed.is_file()


@pytest.mark.parametrize("name", ["actors", "workloads"])
def test_a_project_that_hides_a_package_of_ours_is_told_so(environment: Path, tmp_path: Path, name: str) -> None:
    folder = project(tmp_path, name)
    message = f"murmur: package {name}: found {folder / name}, which hides murmur's own; allowed: "
    said = run(environment, folder, "murmur", "run", "parity", path=".")
    assert said.startswith(message), said
    assert said.count("\n") == 1
    assert said.endswith("exit code 2")
    suite = run(environment, folder, *PYTEST)
    assert message in suite, suite
    assert suite.endswith("exit code 2")
    own = run(environment, folder, *PYTEST, "--collect-only")
    assert "1 test collected" in own, "what does not use murmur is not disturbed"


@pytest.mark.spark
def test_a_suite_of_an_installed_package_is_judged_by_spark(environment: Path, tmp_path: Path) -> None:
    folder = project(tmp_path, "experiments", "pubsub")
    (folder / "test_own_protocol.py").write_text(SUITE + JUDGED)
    suite = run(environment, folder, *PYTEST)
    assert "2 passed" in suite, suite
