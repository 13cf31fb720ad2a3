"""The examples in README and guide run, and say what the text says they do."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import load_scenario
from spark_analysis.plain_judge import judge_plainly

ROOT = Path(__file__).parents[2]


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL)


def test_the_scenario_of_the_readme_is_valid(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(blocks("README.md", "yaml")[0])
    loaded = load_scenario(tmp_path / "small.yaml")
    assert len(build(loaded).workload.clients) == 16


def test_the_protocol_of_the_guide_runs_and_loses_what_the_guide_says(tmp_path: Path) -> None:
    (tmp_path / "halfway.py").write_text(next(text for text in blocks("docs/guide.md", "python") if "Halfway" in text))
    run = tmp_path / "run"
    guide = (ROOT / "docs/guide.md").read_text()
    printed = re.search(r"^\$ (murmur run .*halfway:Halfway)$", guide, flags=re.MULTILINE)
    assert printed is not None
    command, *arguments = printed[1].split()
    subprocess.run(
        [Path(sys.executable).with_name(command), *arguments, "--no-analysis", "--out", run],
        cwd=tmp_path, check=True, capture_output=True, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    verdict = judge_plainly(run / "journal", 1_000_000)
    said = re.search(r"halfway:Halfway\ninvalid: ([\d,]+) missing", guide)
    assert said is not None
    assert len(verdict.missing) == int(said[1].replace(",", ""))
    assert verdict.counts[1:] == (0, 0, 0)


@pytest.mark.spark
@pytest.mark.slow
def test_the_program_of_the_guide_runs(tmp_path: Path) -> None:
    program = next(text for text in blocks("docs/guide.md", "python") if "import murmuration" in text)
    said = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert said.stdout.endswith("required deliveries are missing\n")


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
