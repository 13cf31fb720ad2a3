"""A judge that can fail, and a command line that fails with it; tests/zoo has all that it finds out."""

import json
from pathlib import Path
from typing import Any

import pytest

from murmuration.commands.main import main
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from spark_analysis.main import analyze

pytestmark = pytest.mark.spark


def test_the_same_run_without_the_fault_is_valid(spark: Any, tmp_path: Path) -> None:
    run = execute(
        load_scenario(Path("parity"), ["workload.publications=200"]), tmp_path / "run", lambda *_: None
    ).folder
    verdict = analyze(run)
    assert verdict["verdict"] == "valid"
    assert verdict["required"] > 1_000


def test_the_command_line_fails_when_the_verdict_does(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = ["broker.reliability=murmuration.zoo.losing:Losing", "workload.publications=100", "workload.publishers=1"]
    run = execute(load_scenario(Path("parity"), fault), tmp_path / "run", lambda *_: None).folder
    for arguments, code in ((["analyze", str(run), "--json"], 1), (["analyze", str(tmp_path)], 2)):
        monkeypatch.setattr("sys.argv", ["murmur", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == code
    printed = json.loads(capsys.readouterr().out)
    assert printed["verdict"] == "invalid"
    assert printed["missing"] > 0
