"""A folder imports only from the floors below it; and the contract that says so really catches a violation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "murmur_pubsub",
    "murmur_page",
    "routing",
    "reliability",
    "workloads",
    "murmur_virtual",
    "actors",
    "spark_analysis",
    "murmuration",
)
BELOW: dict[str, set[str]] = {
    "murmur_pubsub": set(),
    "murmur_page": {"murmur_pubsub"},
    "routing": {"murmur_pubsub"},
    "reliability": {"routing", "murmur_pubsub"},
    "workloads": {"murmur_pubsub"},
    "murmur_virtual": {"murmur_pubsub"},
    "actors": {"murmur_pubsub"},
    "spark_analysis": {"murmur_page", "murmur_pubsub"},
    "murmuration": set(PACKAGES),
}
"""What each floor may import, written out apart from the contract that is tested."""


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


def test_each_import_that_goes_up_or_sideways_is_caught_and_no_other(copy: Path) -> None:
    """One module for each pair of floors is planted, which does nothing but import the one from the other."""
    pairs = [(importer, imported) for importer in PACKAGES for imported in PACKAGES if importer != imported]
    for importer, imported in pairs:
        (copy / importer / f"planted_{imported}.py").write_text(f"import {imported}\n")
    result = lint_imports(copy)
    assert result.returncode == 1, result.stdout
    reported = {
        (importer, imported)
        for importer, imported in pairs
        if f"{importer}.planted_{imported} -> {imported} " in result.stdout
    }
    assert reported == {(importer, imported) for importer, imported in pairs if imported not in BELOW[importer]}


def test_a_planted_line_in_a_real_module_is_caught(copy: Path) -> None:
    path = copy / "murmur_pubsub" / "event.py"
    path.write_text(path.read_text() + "\nimport routing.router\n")
    result = lint_imports(copy)
    assert result.returncode == 1
    assert "murmur_pubsub.event -> routing.router" in result.stdout
