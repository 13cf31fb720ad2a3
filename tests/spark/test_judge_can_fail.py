"""A judge that can fail: brokers with a planted fault are found out, event and subscriber named."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments.command_line import main
from experiments.driver import execute
from experiments.scenario import load_scenario
from spark_analysis.main import analyze
from spark_analysis.plain_judge import judge as plain_judge

pytestmark = pytest.mark.spark

CASES = [
    ("broker.reliability=tests.saboteurs:Losing", "missing"),
    ("broker.reliability=tests.saboteurs:Doubling", "duplicate"),
    ("broker.reliability=tests.saboteurs:Swapping", "out_of_order"),
    ("broker.reliability=tests.saboteurs:Generous", "spurious"),
    ("broker.routing=tests.saboteurs:Mismatching", "missing"),
]


@pytest.mark.parametrize(("fault", "finding"), CASES, ids=[fault.rpartition(":")[2] for fault, _ in CASES])
def test_a_faulty_broker_is_found_out(spark: Any, tmp_path: Path, fault: str, finding: str) -> None:
    overrides = [
        "workload.publications=600",
        "overlay.brokers=5",
        "workload.clients=5",
        "workload.subscribers_per_actor=10",
    ]
    run = execute(load_scenario(Path("parity"), [fault, *overrides]), tmp_path / "run", lambda *_: None).folder
    verdict = analyze(run)
    expected = plain_judge(run / "journal", 1_000_000)
    assert verdict["verdict"] == "invalid"
    assert verdict[finding] > 0
    found = pd.read_csv(run / "analysis" / "findings.csv")
    for kind, pairs in (
        ("missing", expected.missing),
        ("duplicate", expected.duplicate),
        ("spurious", expected.spurious),
        ("out_of_order", expected.out_of_order),
    ):
        listed = found[found["finding"] == kind]
        named = {((row.source, row.sequence), row.subscriber) for row in listed.itertuples()}
        assert named == set(pairs), kind
        assert (verdict[kind] > 0) == bool(pairs)


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
    fault = ["broker.reliability=tests.saboteurs:Losing", "workload.publications=100", "workload.publishers=1"]
    run = execute(load_scenario(Path("parity"), fault), tmp_path / "run", lambda *_: None).folder
    for arguments, code in ((["analyze", str(run), "--json"], 1), (["analyze", str(tmp_path)], 2)):
        monkeypatch.setattr("sys.argv", ["murmur", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == code
    printed = json.loads(capsys.readouterr().out)
    assert printed["verdict"] == "invalid"
    assert printed["missing"] > 0
