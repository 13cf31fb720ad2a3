"""A run judged without Spark: from the command line, a program, and the words of a failure."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import murmuration
from murmur_pubsub.errors import InputError
from murmuration.commands.main import application
from murmuration.commands.plain import check_plain, judge_in_python
from murmuration.harness.cluster import Cluster
from murmuration.results.verdict import verdict_of


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> murmuration.Run:
    folder = tmp_path_factory.mktemp("runs") / "lossy"
    return murmuration.run(
        "parity", runtime="virtual", changes={"links.loss": 0.05, "workload.publications": 60}, folder=folder
    )


def test_a_run_that_lost_something_is_told_with_the_command_that_shows_it(
    lossy: murmuration.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not judge_in_python(lossy.folder, False, {})
    said = capsys.readouterr().out
    event = said.split("missing: event ")[1].split()[0]
    assert f"murmur trace {lossy.folder} {event}\n" in said
    assert said.startswith("invalid: ")


def test_a_program_and_the_json_line_have_the_same_numbers(
    lossy: murmuration.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = lossy.verdict(judge="plain")
    assert not judge_in_python(lossy.folder, True, {"seed": 7})
    assert json.loads(capsys.readouterr().out) == {**verdict.numbers, "judge": "plain", "seed": 7}
    assert verdict.judge == "plain"
    assert verdict.missing > 0
    with pytest.raises(AssertionError, match=r"required deliveries are missing\nmissing: event \d+:\d+ for subscriber"):
        verdict.assert_valid()


def test_a_valid_run_lists_no_findings_that_its_protocols_do_not_owe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {
        "links.loss": 0.1, "broker.reliability": "epidemic", "broker.parameters.epidemic.algorithm": "none",
        "datagrams": {"delay": "1 ms"}, "workload.publications": 40,
    }  # fmt: skip
    run = murmuration.run("parity", runtime="virtual", changes=changes, folder=tmp_path / "run")
    assert judge_in_python(run.folder, False, {})
    said = capsys.readouterr().out
    assert said.startswith("valid: ")
    assert not said.startswith("valid: 0 missing")
    assert "murmur trace" not in said


def test_what_only_spark_can_use_is_refused() -> None:
    with pytest.raises(InputError, match="--executor-memory: found 3g, beside --plain"):
        check_plain(None, "3g")


def test_damage_is_told_as_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = {"workload.publications": 20}
    run = murmuration.run("parity", runtime="virtual", changes=changes, folder=tmp_path / "run")
    next((run.folder / "journal").glob("*.seg")).unlink()
    assert not judge_in_python(run.folder, False, {})
    assert capsys.readouterr().out.startswith("unknown: the journal is damaged: ")


def test_several_runs_are_judged_by_one_command(
    lossy: murmuration.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = murmuration.run(
        "parity", runtime="virtual", changes={"workload.publications": 20}, folder=tmp_path / "right"
    )
    command = ["analyze", str(right.folder), str(lossy.folder), "--plain"]
    assert application([*command, "--json"], standalone_mode=False) == 1, "one of them is not valid"
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["folder"], line["verdict"]) for line in lines] == [
        (str(right.folder), "valid"), (str(lossy.folder), "invalid")
    ]  # fmt: skip
    assert application(command, standalone_mode=False) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if line.endswith(":")] == [
        f"{right.folder}:", f"{lossy.folder}:"
    ]  # fmt: skip
    with pytest.raises(InputError, match="nowhere"):
        application([*command, "nowhere"], standalone_mode=False)
    assert not capsys.readouterr().out, "no run is judged before the others were looked at"


def test_one_spark_judges_several_runs(
    lossy: murmuration.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from spark_analysis import main

    seen: list[str] = []

    @contextlib.contextmanager
    def begin(master: str | None, journal_bytes: int, executor_memory: str | None) -> Iterator[None]:
        seen.append(f"begins for {journal_bytes} bytes at {master}")
        yield
        seen.append("ends")

    def analyze(run: Path, *_: object) -> dict[str, str]:
        seen.append(run.name)
        return {"verdict": "valid"}

    monkeypatch.setattr(main, "spark_session", begin)
    monkeypatch.setattr(main, "analyze", analyze)
    small = murmuration.run(
        "parity", runtime="virtual", changes={"workload.publications": 1}, folder=tmp_path / "small"
    )
    largest = sum(path.stat().st_size for path in (lossy.folder / "journal").iterdir())
    command = ["analyze", str(lossy.folder), str(small.folder), "--json", "--master", "spark://here:7077"]
    assert application(command, standalone_mode=False) in (0, None)
    assert seen == [f"begins for {largest} bytes at spark://here:7077", "lossy", "small", "ends"]
    assert [json.loads(line)["judge"] for line in capsys.readouterr().out.splitlines()] == ["spark", "spark"]


def test_a_copy_of_the_tables_says_what_the_tables_say(
    lossy: murmuration.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert application(["analyze", str(lossy.folder), "--plain", "--parquet"], standalone_mode=False) == 1
    assert f"tables: {lossy.folder / 'tables'}" in capsys.readouterr().out
    tables = murmuration.load_run(lossy.folder)
    for name in ("nodes", "rows", "subscriptions", "deliveries"):
        copied = pd.read_parquet(lossy.folder / "tables" / f"{name}.parquet")
        assert copied.to_json() == getattr(tables, name).to_json(), name
    events = pd.read_parquet(lossy.folder / "tables" / "events.parquet")
    assert [json.loads(each) for each in events["attributes"]] == list(tables.events["attributes"])
    assert len(events) == 60
    assert pd.read_parquet(lossy.folder / "tables" / "faults.parquet").empty


def test_a_small_run_is_judged_in_plain_python_where_nobody_says_who_judges(
    lossy: murmuration.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from murmuration.results import verdict

    assert lossy.verdict(judge="auto").judge == "plain"
    rows = len(murmuration.load_run(lossy.folder).rows)
    monkeypatch.setattr(verdict, "PLAIN_ROWS_MAX", rows - 1)
    assert verdict.judge_for(lossy.folder) == "spark"
    monkeypatch.setattr(verdict, "PLAIN_ROWS_MAX", rows)
    assert verdict.judge_for(lossy.folder) == "plain"


def test_a_run_in_which_nothing_is_owed_fails_a_suite_with_the_judge_s_reason(tmp_path: Path) -> None:
    with Cluster.start({"kind": "chain", "brokers": 2}, {"alice": "b0"}, folder=tmp_path / "run"):
        pass
    verdict = verdict_of(tmp_path / "run", "plain")
    with pytest.raises(AssertionError) as failed:
        verdict.assert_valid()
    assert str(failed.value) == f"unknown: {verdict.reason}\nrun folder: {tmp_path / 'run'}"
