"""A folder imports only from the floors below it; and the contract that says so really catches a violation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("pubsub", "routing", "reliability", "workloads", "simulation", "actors", "spark_analysis", "experiments")


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys; from importlinter.cli import lint_imports_command; sys.path.insert(0, '.'); lint_imports_command()"
    )
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"], cwd=root, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(root), "HOME": str(root)},
    )  # fmt: skip


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_floors_hold(copy: Path) -> None:
    result = lint_imports(copy)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("pubsub/event.py", "import routing.router"),
        ("routing/flooding.py", "import reliability.layer"),
        ("simulation/run.py", "import actors.clock"),
        ("actors/clock.py", "import simulation.run"),
        ("workloads/plan.py", "import routing.router"),
        ("spark_analysis/session.py", "import workloads"),
    ],
)
def test_a_planted_violation_is_caught(copy: Path, file: str, line: str) -> None:
    path = copy / file
    path.write_text(path.read_text() + f"\n{line}\n")
    result = lint_imports(copy)
    assert result.returncode != 0, f"{line} in {file} was not noticed"
