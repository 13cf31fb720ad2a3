"""A run judged without Spark: from the command line, a program, and the words of a failure."""

import json
from pathlib import Path

import pytest
import typer

import murmuration
from murmur_pubsub.errors import InputError
from murmuration.commands.plain import check_plain, judge_in_python


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> murmuration.Run:
    folder = tmp_path_factory.mktemp("runs") / "lossy"
    return murmuration.run(
        "parity", runtime="virtual", changes={"links.loss": 0.05, "workload.publications": 60}, folder=folder
    )


def test_a_run_that_lost_something_is_told_with_the_command_that_shows_it(
    lossy: murmuration.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        judge_in_python(lossy.folder, False, {})
    said = capsys.readouterr().out
    assert ended.value.exit_code == 1
    event = said.split("missing: event ")[1].split()[0]
    assert f"murmur trace {lossy.folder} {event}\n" in said
    assert said.startswith("invalid: ")


def test_a_program_and_the_json_line_have_the_same_numbers(
    lossy: murmuration.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = lossy.verdict(judge="plain")
    with pytest.raises(typer.Exit):
        judge_in_python(lossy.folder, True, {"seed": 7})
    assert json.loads(capsys.readouterr().out) == {**verdict.numbers, "seed": 7}
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
    judge_in_python(run.folder, False, {})
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
    with pytest.raises(typer.Exit):
        judge_in_python(run.folder, False, {})
    assert capsys.readouterr().out.startswith("unknown: the journal is damaged: ")
