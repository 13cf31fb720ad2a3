"""The command line: exit code 2 and one message for bad input, and never a traceback."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spark_analysis.plain_judge import judge_plainly

ROOT = Path(__file__).parents[2]


def murmur(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "murmuration.commands.main", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **variables},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "no-such"), "no-such"),
        (("run", "parity", "--set", "overlay.brokers=0"), "overlay.brokers"),
        (("run", "parity", "--set", "broker.routing=x"), "broker.routing"),
        (("run", "parity", "--seed", "many"), "--seed: found 'many'; allowed: a valid integer\n"),
        (("analyze", "/tmp"), "manifest.json"),
        (("report", "/no/such/folder"), "/no/such/folder"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    result = murmur(*arguments)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") <= 3


def test_no_java_is_said_before_anything_runs(tmp_path: Path) -> None:
    result = murmur("run", "parity", "--out", str(tmp_path / "run"), PATH="/nowhere", JAVA_HOME="")
    assert result.returncode == 2
    assert "Java" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()


def test_the_version_is_that_of_the_distribution() -> None:
    result = murmur("--version")
    assert result.returncode == 0
    assert re.fullmatch(r"murmur \d+\.\d+\.\d+\n", result.stdout)


def test_the_bare_command_prints_its_help() -> None:
    result = murmur()
    assert result.returncode == 0
    assert "Usage: murmur" in result.stdout
    assert "Run a scenario" in result.stdout
    assert result.stderr == ""


def test_a_run_without_analysis_names_itself_as_json(tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = murmur("run", "parity", "--no-analysis", "--json", "--seed", "5", "--out", str(run))
    assert json.loads(result.stdout) == {"name": "parity", "runtime": "virtual", "seed": 5, "folder": str(run)}


def test_a_virtual_run_leaves_a_whole_run_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = murmur("run", "parity", "--no-analysis", "--set", "workload.publications=50", "--out", str(run))
    assert result.returncode == 0, result.stderr
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert manifest["scenario"]["workload"]["publications"] == 50
    assert judge_plainly(run / "journal", 1_000_000).counts == (0, 0, 0, 0)
    again = murmur("run", str(run / "scenario.yaml"), "--no-analysis", "--out", str(run))
    assert again.returncode == 2
    assert "already there" in again.stderr


def test_list_and_doctor_tell_what_is_there() -> None:
    assert "forwarding" in murmur("list").stdout
    assert "Java" in murmur("doctor").stdout


def test_doctor_fails_where_something_is_missing() -> None:
    result = murmur("doctor", PATH="/nowhere", JAVA_HOME="")
    assert result.returncode == 1
    assert "openjdk" in result.stdout
