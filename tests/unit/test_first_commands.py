"""What a user types first: a scenario or suite to begin with, built-in scenarios shown, names completed and mended."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmuration.commands.init import Starter, begin
from murmuration.runs.run_folder import point_latest
from murmuration.scenario.load import built_in_scenarios

ROOT = Path(__file__).parents[2]


def murmur(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "murmuration", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


def test_a_scenario_to_begin_with_plays_and_is_the_latest_run(tmp_path: Path) -> None:
    assert murmur(tmp_path, "init", "scenario").stdout == "scenario.yaml\nnext: murmur run scenario.yaml\n"
    played = murmur(tmp_path, "run", "scenario.yaml", "--no-analysis")
    assert played.returncode == 0, played.stderr
    assert re.search(r"^emulated: .* in a second of a core$", played.stdout, re.MULTILINE)
    (run,) = [path for path in (tmp_path / "runs").iterdir() if not path.is_symlink()]
    assert (tmp_path / "runs" / "latest").resolve() == run.resolve()


@pytest.mark.spark
@pytest.mark.slow
def test_a_suite_to_begin_with_passes(tmp_path: Path) -> None:
    begin(Starter.SUITE, tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("starter", Starter)
def test_init_overwrites_nothing(starter: Starter, tmp_path: Path) -> None:
    last = begin(starter, tmp_path)[-1]
    last.write_text("mine")
    for path in tmp_path.iterdir():
        if path != last:
            path.unlink()
    with pytest.raises(InputError, match=f"{last}: found a file that is already there"):
        begin(starter, tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_latest_is_left_alone_where_it_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    (tmp_path / "run").mkdir()
    point_latest(tmp_path / "run")
    assert not (tmp_path / "latest").is_symlink()


def test_latest_is_of_no_run_that_was_refused(tmp_path: Path) -> None:
    point_latest(tmp_path / "never-made")
    assert list(tmp_path.iterdir()) == []


def test_show_prints_a_built_in_scenario_as_it_is_written(tmp_path: Path) -> None:
    shown = murmur(tmp_path, "show", "parity")
    assert shown.stdout == built_in_scenarios()["parity"].read_text()


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("run", "pariti"), "parity"),
        (("show", "gryfon"), "gryphon"),
        (("run", "parity", "--set", "broker.routng=flooding"), "routing"),
        (("run", "parity", "--set", "broker.routing=floding"), "flooding"),
        (("run", "parity", "--set", "workload.kind=zip"), "zipf"),
        (("paper", "grifon"), "gryphon"),
        (("init", "suit"), "suite"),
        (("rum",), "run"),
    ],
)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(
    arguments: tuple[str, ...], meant: str, tmp_path: Path
) -> None:
    done = murmur(tmp_path, *arguments)
    assert done.returncode == 2
    assert f"id you mean '{meant}'?" in done.stderr


@pytest.mark.parametrize(
    ("found", "allowed"),
    [("'zebra'", "flooding, forwarding"), ("5", "a whole number from 1 on"), ("'one'", "a number from 1 on")],
)
def test_nothing_is_guessed_where_nothing_is_near(found: str, allowed: str) -> None:
    assert "did you mean" not in str(InputError("a.yaml, line 3, key x", found, allowed))


@pytest.mark.parametrize(
    ("words", "offered"), [("murmur run par", "parity"), ("murmur paper gr", "gryphon"), ("murmur sho", "show")]
)
def test_the_shell_completes_commands_and_names(words: str, offered: str, tmp_path: Path) -> None:
    place = str(len(words.split()) - 1)
    done = murmur(tmp_path, _MURMUR_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place)
    assert done.stdout.split() == [offered], done.stderr
