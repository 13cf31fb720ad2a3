"""Every saboteur of the zoo is found under its own name by both judges, and every honest protocol is valid."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmuration.commands.main import main
from murmuration.zoo.entry import Damaged, Honest, Saboteur
from murmuration.zoo.play import play_and_judge, play_in_zoo
from murmuration.zoo.registry import DAMAGED, HONEST, SABOTEURS
from murmuration.zoo.sighting import Sighting, see_on_spark, see_plainly
from murmuration.zoo.tour import ZooEntry, chosen, damage, row_of

ALL: tuple[ZooEntry, ...] = (*SABOTEURS, *DAMAGED, *HONEST)


def some(entries: Sequence[ZooEntry]) -> list[Any]:
    """On Spark each takes seconds: here are one in four, of which the first and each fourth more are not slow; `murmur
    zoo` has all."""
    return [
        pytest.param(each, id=each.name, marks=[pytest.mark.slow] if number % 4 else [])
        for number, each in enumerate(entries[::4])
    ]


every_saboteur = pytest.mark.parametrize("saboteur", [pytest.param(each, id=each.name) for each in SABOTEURS])
every_honest_one = pytest.mark.parametrize("honest", [pytest.param(each, id=each.name) for each in HONEST])


def test_there_are_many_and_each_has_its_own_name() -> None:
    names = [each.name for each in ALL]
    assert len(set(names)) == len(names)
    assert len(SABOTEURS) >= 40


@every_saboteur
def test_a_saboteur_is_found_under_its_own_name(saboteur: Saboteur, tmp_path: Path) -> None:
    row = row_of(saboteur, see_plainly, tmp_path / "run")
    assert row.found, row


@pytest.mark.parametrize("saboteur", [pytest.param(each, id=each.name) for each in SABOTEURS])
def test_without_the_fault_the_same_scenario_is_valid(saboteur: Saboteur, tmp_path: Path) -> None:
    """So what is found is the fault's doing, not the scenario's."""
    [seen] = play_and_judge(saboteur.harmless, tmp_path / "run", see_plainly)
    assert seen.verdict == "valid", seen.reason


@every_honest_one
def test_an_honest_protocol_is_valid(honest: Honest, tmp_path: Path) -> None:
    row = row_of(honest, see_plainly, tmp_path / "run")
    assert row.found, row


@pytest.mark.spark
@pytest.mark.parametrize("saboteur", some(SABOTEURS))
def test_the_judge_on_spark_finds_the_same(spark: Any, saboteur: Saboteur, tmp_path: Path) -> None:
    plain, on_spark = play_and_judge(saboteur.scenario, tmp_path / "run", see_plainly, see_on_spark)
    assert on_spark == plain
    assert on_spark.is_of(saboteur), on_spark


@pytest.mark.spark
@pytest.mark.parametrize("honest", some(HONEST))
def test_the_judge_on_spark_finds_an_honest_protocol_valid(spark: Any, honest: Honest, tmp_path: Path) -> None:
    plain, on_spark = play_and_judge(honest.scenario, tmp_path / "run", see_plainly, see_on_spark)
    assert on_spark == plain
    assert on_spark.verdict == "valid", on_spark


# ----------------------------------------------------------------------------------- the tour can fail too
def test_a_finding_that_names_the_wrong_place_is_not_found() -> None:
    [forgotten] = chosen(["one forgotten"], ALL)
    assert isinstance(forgotten, Saboteur)
    seen = Sighting("invalid", "missing", "1 required deliveries are missing", where="c5")
    assert seen.is_of(forgotten)
    assert not Sighting("invalid", "missing", seen.reason, where="c4, c5").is_of(forgotten)
    assert not Sighting("invalid", "spurious", seen.reason, where="c5").is_of(forgotten)


def test_ones_own_saboteur_is_named_by_its_path() -> None:
    assert chosen([f"{__name__}:OWN"], ALL) == [OWN]
    for wrong in ("no such one", f"{__name__}:every_saboteur"):
        with pytest.raises(InputError, match="zoo"):
            chosen([wrong], ALL)


@pytest.mark.parametrize("finding", ["damage", "unsettled"])
def test_a_damage_is_not_found_where_another_file_is_named(finding: str, tmp_path: Path) -> None:
    assert not row_of(DAMAGED[0], lambda _: Sighting("unknown", finding, "another file"), tmp_path / "run").found


@pytest.mark.parametrize("damaged", [pytest.param(each, id=each.name) for each in DAMAGED])
def test_a_damage_is_found_by_its_file(damaged: Damaged, tmp_path: Path) -> None:
    row = row_of(damaged, see_plainly, tmp_path / "run")
    assert row.found, row


@pytest.mark.spark
@pytest.mark.parametrize("damaged", [pytest.param(each, id=each.name) for each in DAMAGED])
def test_the_judge_on_spark_finds_the_same_damage(spark: Any, damaged: Damaged, tmp_path: Path) -> None:
    files = damage(damaged, tmp_path / "run")
    plain, on_spark = see_plainly(tmp_path / "run"), see_on_spark(tmp_path / "run")
    assert on_spark == plain
    assert files[0] in on_spark.reason


def test_a_damage_that_is_blamed_on_the_protocol_is_not_found(tmp_path: Path) -> None:
    def blame(run: Path) -> Sighting:
        return Sighting("invalid", "missing", "3 required deliveries are missing")

    assert not row_of(DAMAGED[0], blame, tmp_path / "run").found


def test_the_command_prints_the_table_and_fails_if_one_is_not_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for names, code in ((["claims", "copies"], 0), (["claims", f"{__name__}:OWN"], 1), (["no such one"], 2)):
        out = tmp_path / names[-1].replace(":", "-")
        monkeypatch.setattr("sys.argv", ["murmur", "zoo", "--plain", "--out", str(out), *names])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert (stopped.value.code or 0) == code
    printed = capsys.readouterr().out
    assert "1 of 1 saboteurs found, 1 of 1 honest ones valid" in printed
    assert "1 of 2 saboteurs found" in printed
    assert re.search("not found *$", printed, re.MULTILINE)
    assert (tmp_path / "copies" / "claims" / "manifest.json").exists()


def test_a_run_that_is_there_is_played_over_by_nobody_and_its_name_taken_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for names, code in ((["copies", "copies"], 0), (["claims"], 0), (["one forgotten", "copies"], 2)):
        monkeypatch.setattr("sys.argv", ["murmur", "zoo", "--plain", "--out", str(tmp_path), *names])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert (stopped.value.code or 0) == code
    told = capsys.readouterr()
    assert told.out.count("1 of 1 ") == 2
    assert f"--out {tmp_path}: found a run that is already there (copies); allowed: a new folder" in told.err
    assert not (tmp_path / "one-forgotten").exists()


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["murmur", "zoo", "--plain", "--json", "one forgotten"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    [row] = json.loads(capsys.readouterr().out)["rows"]
    assert (row["name"], row["finding"], row["found"]) == ("one forgotten", "missing", True)


def test_runs_of_the_zoo_are_small(tmp_path: Path) -> None:
    manifest = json.loads((play_in_zoo(HONEST[0].scenario, tmp_path / "run") / "manifest.json").read_text())
    assert manifest["workload"]["publications"] <= 400


def test_the_document_lists_every_saboteur_and_its_example_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = (Path(__file__).parents[2] / "docs" / "zoo.md").read_text()
    assert [each.name for each in SABOTEURS if f"\n {each.name} " not in document] == []
    [example] = re.findall(r"```python\n(.*?)```", document, flags=re.DOTALL)
    (tmp_path / "snob.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    [snob] = chosen(["snob:SNOB"], ALL)
    row = row_of(snob, see_plainly, tmp_path / "run")
    assert row.found
    assert row.names in document


OWN = Saboteur("own", "does nothing wrong", "missing", "c2")
