"""A hunt finds what is planted, writes it down, can be resumed, and says what it lost."""

import errno
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from murmur_pubsub.errors import InputError, RunError
from murmuration.commands.main import application
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.folder import HuntFolder
from murmuration.hunt.hunt import Ends, Hunt, HuntLimits
from murmuration.hunt.shrink_tasks import FoundSchedules, play_piece
from murmuration.hunt.symptoms import tried
from tests.hunt.hunting import ENOUGH_S, HASTY, here, hunt, lost, played_at_once, silent
from tests.hunt.test_coverage import CHAIN
from tests.hunt.test_properties import RESTLESS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_planted_bug_is_found_shrunk_and_saved_as_a_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murmuration.hunt.hunt._SHRINK_S", ENOUGH_S)
    found = hunt(tmp_path, 20, Quarry("cells", HASTY), seed=4)
    found.run(here, silent)
    findings = found.found.all
    assert len({each.cause for each in findings}) == len(findings) <= 2, "13 schedules show it in one way or another"
    finding = max(findings, key=lambda each: int(each.record["schedules"]))
    assert finding.record["schedules"] > 1
    before, after = finding.record["before"], finding.record["after"]
    assert after["brokers"] <= 5
    assert after["faults"] <= 3
    assert sum(after.values()) < sum(before.values())
    again = tried(yaml.safe_load((finding.folder / "scenario.yaml").read_text()))
    assert again.symptom is not None
    assert again.symptom.kind == "missing"
    assert "Data" in (finding.folder / "trace.txt").read_text()
    assert "<svg" in (finding.folder / "trace.svg").read_text()

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(finding.folder / "test_finding.py")]
    tested = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert tested.returncode == 1
    assert "required deliveries are missing" in tested.stdout


@pytest.mark.slow
def test_what_is_found_on_many_cores_is_what_is_found_on_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murmuration.hunt.hunt._SHRINK_S", ENOUGH_S)
    quarry = Quarry("forwarding", RESTLESS["reliability"], scenario={**CHAIN, "broker": RESTLESS})

    def found(folder: Path, ends: Ends) -> list[tuple[str, int]]:
        hunted = hunt(folder, 20, quarry, guided=False)
        hunted.run(ends, silent)
        findings = hunted.found.all
        return [((each.folder / "scenario.yaml").read_text(), each.record["schedules"]) for each in findings]

    one = found(tmp_path / "one", here)
    assert sum(count for _, count in one) > 3, "more than are shrunk"
    assert found(tmp_path / "many", partial(played_at_once, play_piece)) == one


def test_a_hunt_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    first = hunt(tmp_path, 20)
    first.run(here, silent)
    with (tmp_path / "corpus.jsonl").open("a") as file:
        file.write('{"pair": "forwarding/best_eff')  # it was killed while it wrote
    second = hunt(tmp_path, 30)
    second.run(here, silent)
    assert second.state.schedules == 30
    assert second.state.chunks == 2, "a chunk that was played is not played again"
    assert second.places > first.places > 0
    third = hunt(tmp_path, 30)
    third.run(here, silent)
    assert (third.state.schedules, third.places) == (30, second.places), "nothing is left to do, and nothing was lost"


def test_what_a_killed_hunt_had_found_is_of_the_findings_of_the_one_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("murmuration.hunt.hunt._SHRINK_S", 0.5)
    quarry = Quarry("forwarding", RESTLESS["reliability"], scenario={**CHAIN, "broker": RESTLESS})
    whole, killed, resumed = (hunt(tmp_path / name, 20, quarry, guided=False) for name in ("whole", "cut", "cut"))
    whole.run(here, silent)
    assert len(whole.found.origins) > 3, "more than are shrunk"

    def kill(_: FoundSchedules) -> NoReturn:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(FoundSchedules, "keep_what_is_over", kill)
        patched.setattr(FoundSchedules, "keep_all", lambda _: None)
        with pytest.raises(SystemExit):
            killed.run(here, silent)
    assert not killed.found.all
    resumed.run(here, silent)
    assert (resumed.state.schedules, resumed.state.chunks) == (20, 1), "no schedule is played again"
    assert resumed.found.origins == whole.found.origins
    third = hunt(tmp_path / "cut", 20, quarry, guided=False)
    third.run(here, silent)
    assert third.found.origins == whole.found.origins
    assert sum(each.record["schedules"] for each in third.found.all) == len(whole.found.origins), "each counts once"


def test_a_hunt_that_is_gone_on_with_has_its_whole_time_again(tmp_path: Path) -> None:
    again = Hunt([small_quarry()], HuntFolder(tmp_path), HuntLimits(seconds=10), seed=7)
    again.state.seconds = 100
    assert not again._over(9.9)
    assert again._over(10.0)


def test_chunks_whose_process_dies_are_told_and_too_many_end_the_hunt(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="10 chunks in a row were lost, the last one so: its process died"):
        hunt(tmp_path, 1_000).run(lost, silent)
    went_on = hunt(tmp_path, 20)
    went_on.run(here, silent)
    assert (len(went_on.state.lost), went_on.state.schedules) == (10, 20)


def test_a_full_disk_ends_a_hunt_which_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("murmuration.sweeps.kept_lines.os.fsync", full)
        with pytest.raises(RunError, match=r"hunt.json: No space left on device"):
            hunt(tmp_path, 20, small_quarry()).run(here, silent)
    again = hunt(tmp_path, 20, small_quarry())
    again.run(here, silent)
    assert again.state.schedules == 20
    assert again.places > 0


def small_quarry() -> Quarry:
    """Whose schedules take little time."""
    return Quarry("forwarding", "best_effort", scenario=CHAIN)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"version": "0.0.1"}, "a corpus of murmur 0.0.1"),
        ({"schema_version": 99}, "a corpus of schema 99"),
        ({"seed": 8}, "a hunt with seed 8"),
        ({"quarries": [{"pair": "irbr/best_effort"}]}, "a hunt over irbr/best_effort"),
    ],
)
def test_the_folder_of_another_hunt_is_refused(tmp_path: Path, changes: dict[str, object], told: str) -> None:
    hunt(tmp_path, 1).run(here, silent)
    path = tmp_path / "hunt.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(InputError, match=told):
        hunt(tmp_path, 2).run(here, silent)


def test_two_hunts_do_not_write_in_one_folder(tmp_path: Path) -> None:
    def meanwhile(*_: object) -> None:
        with pytest.raises(InputError, match="a hunt that is writing in it"):
            hunt(tmp_path, 2).run(here, silent)
        meanwhile_ran.append(True)

    meanwhile_ran: list[bool] = []
    hunt(tmp_path, 1).run(here, meanwhile)
    assert meanwhile_ran


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--minutes: found no limit; allowed: --minutes or --schedules"),
        (["--minutes", "0"], "--minutes: found 0; allowed: a time above zero"),
        (["--minutes", "inf"], "--minutes: found inf; allowed: a time above zero"),
        (["--why", "a.yaml", "--live", "b.yaml"], "--why: found --live beside it; allowed: one of the two"),
        (["--schedules", "0"], "--schedules: found 0; allowed: 1 or more"),
        (["--schedules", "1", "--workers", "0"], "--workers: found 0; allowed: 1 or more"),
        (["--schedules", "1", "--routing", "forwardin"], "broker.routing: found 'forwardin'"),
        (["--schedules", "1", "--routing", "flooding", "--reliability", "gryphon"], "no two that can be played"),
        (["--schedules", "1", "--variant", "backup"], "(did you mean 'backups'?); allowed: backups, crossed, replaced"),
        (["--schedules", "1", "--reliability", "gryphon", "--variant", "backups"], "no two that can be played"),
        (["--schedules", "1", "--routing", "irbr", "--variant", "replaced"], "replaced with irbr"),
        (["parity", "--schedules", "1", "--routing", "flooding"], "a scenario names its protocols"),
        (["parity", "--schedules", "1", "--variant", "backups"], "a scenario names its protocols"),
        (["none.yaml", "--schedules", "1"], "none.yaml"),
        (["--schedules", "1", "--out", "/proc/nowhere"], "a folder that can be written (--out)"),
    ],
)
def test_what_cannot_be_hunted_is_told(arguments: list[str], told: str) -> None:
    with pytest.raises(InputError) as refused:
        application(["hunt", *arguments], standalone_mode=False)
    assert told in str(refused.value)


@pytest.mark.ray
@pytest.mark.slow
def test_the_command_hunts_on_all_cores_over_a_scenario(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "murmuration.commands.main", "hunt", "parity", "--schedules", "45"]
    said = subprocess.run(
        [*command, "--out", str(tmp_path / "hunt"), "--json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert said.returncode in (0, 1), said.stderr
    told = json.loads(said.stdout)
    assert told["schedules"] == 45
    assert sum(told["places"].values()) > 0
    assert "<svg" in (tmp_path / "hunt" / "curve.svg").read_text()
