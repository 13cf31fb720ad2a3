"""The examples of README and docs run, and say what the text says they do."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import load_scenario

ROOT = Path(__file__).parents[2]


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL)


def test_the_scenario_of_the_readme_is_valid(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(blocks("README.md", "yaml")[0])
    loaded = load_scenario(tmp_path / "small.yaml")
    assert len(build(loaded).workload.clients) == 16


def suite(runtime: str) -> subprocess.CompletedProcess[str]:
    """Run the example suite as a user would, from its own folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
    return subprocess.run(
        [*command, f"--murmur-runtime={runtime}"], cwd=ROOT / "docs" / "examples", capture_output=True, text=True
    )


@pytest.mark.spark
@pytest.mark.slow
def test_the_example_suite_tests_a_users_own_protocol() -> None:
    text = (ROOT / "docs/examples/test_own_protocol.py").read_text()
    assert len(text.splitlines()) < 60
    result = suite("virtual")
    assert result.returncode == 0, result.stdout
    assert "3 passed" in result.stdout


@pytest.mark.spark
@pytest.mark.ray
@pytest.mark.slow
def test_the_example_suite_runs_on_live_actors() -> None:
    result = suite("ray")
    assert result.returncode == 0, result.stdout
    assert "3 passed" in result.stdout
