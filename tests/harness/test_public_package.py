"""`import murmuration` is cheap, and its names do what the pages say."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import murmuration
from spark_analysis.main import analyze
from spark_analysis.plain_judge import judge_run

SCENARIO: dict[str, Any] = {
    "name": "small",
    "runtime": "virtual",
    "overlay": {"kind": "chain", "brokers": 3},
    "workload": {"kind": "zipf", "clients": 3, "publications": 40, "rate_per_s": 400},
    "links": {"delay": "1 ms"},
    "faults": [{"at": "50 ms", "kill": "b1", "for": "10 ms"}],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> murmuration.Run:
    return murmuration.run(SCENARIO, folder=tmp_path_factory.mktemp("runs") / "small")


def imported_by(statement: str) -> set[str]:
    """The modules that the statement imports in a new process, without those of Python itself."""
    program = f"import sys; {statement}; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    return {name for name in said if name.partition(".")[0] not in sys.stdlib_module_names}


def test_importing_the_package_imports_nothing_else() -> None:
    assert imported_by("import murmuration") - imported_by("pass") == {"murmuration"}


def test_the_plugin_costs_a_suite_that_does_not_use_it_nothing() -> None:
    own = imported_by("import murmuration.harness.pytest_plugin") - imported_by("import pytest")
    assert not [name for name in own if not name.startswith("murmuration")]
    assert "murmuration.harness.cluster" not in own


def test_every_public_name_is_there() -> None:
    assert dir(murmuration) == sorted(murmuration.__all__)
    for name in murmuration.__all__:
        assert getattr(murmuration, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Clustr'"):
        getattr(murmuration, "Clustr")  # noqa: B009


def test_the_package_is_a_command() -> None:
    said = subprocess.run([sys.executable, "-m", "murmuration", "run", "no/such"], capture_output=True, text=True)
    assert said.returncode == 2
    assert said.stderr.startswith("murmur: no/such: found")


def test_a_scenario_of_a_program_is_played_with_its_changes(tmp_path: Path) -> None:
    changed = murmuration.run(SCENARIO, seed=7, changes={"workload.publications": 10}, folder=str(tmp_path / "run"))
    tables = murmuration.load_run(changed.folder)
    assert (tables.manifest.seed, len(tables.events)) == (7, 10)
    assert SCENARIO["workload"]["publications"] == 40, "what was given stays as it was"


def test_a_built_in_scenario_is_played_by_its_name(tmp_path: Path) -> None:
    played = murmuration.run(
        "parity", runtime="virtual", changes={"workload.publications": 10}, folder=tmp_path / "run"
    )
    assert murmuration.load_run(played.folder).manifest.name == "parity"


def test_a_scenario_that_cannot_be_played_is_refused(tmp_path: Path) -> None:
    with pytest.raises(murmuration.InputError, match="the scenario, key drian: found an unknown key"):
        murmuration.run(SCENARIO | {"drian": {}}, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_tables_of_a_run_have_names_in_place_of_numbers(run: murmuration.Run) -> None:
    tables = murmuration.load_run(str(run.folder))
    assert list(tables.nodes["name"]) == ["b0", "b1", "b2", "c0", "c1", "c2", "driver"]
    assert set(tables.rows["kind"]) >= {"START", "PUBLISH", "SEND", "RECEIVE", "DELIVER", "FAULT"}
    assert set(tables.rows.loc[tables.rows["kind"] == "SEND", "meaning"]) >= {"Publication", "Forwarded"}
    assert all(isinstance(attributes, dict) and "a0" in attributes for attributes in tables.events["attributes"])
    assert set(tables.events["node"]) <= {"c0", "c1", "c2"}
    assert set(tables.subscriptions["node"]) == {"c0", "c1", "c2"}


def test_the_table_of_deliveries_is_what_the_judge_counts(run: murmuration.Run) -> None:
    deliveries = murmuration.load_run(run.folder).deliveries
    assert len(deliveries) == judge_run(run.folder).numbers["delivered"]
    assert (deliveries["delay_us"] == deliveries["delivered_us"] - deliveries["published_us"]).all()
    assert deliveries["delay_us"].max() > 0


def test_the_table_of_faults_says_when_each_took_effect(run: murmuration.Run) -> None:
    tables = murmuration.load_run(run.folder)
    assert list(tables.faults["fault"]) == ["kill b1", "restart b1"]
    phases = tables.rows[tables.rows["meaning"] == "PUBLISHING"]
    begun_us = int(phases["time_us"].iloc[0])
    assert list(tables.faults["in_effect_us"] - begun_us) == list(tables.faults["at_us"]) == [50_000, 60_000]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(murmuration.InputError, match="a folder without manifest"):
        murmuration.load_run(tmp_path)


@pytest.mark.spark
def test_spark_has_the_same_tables(run: murmuration.Run, spark: Any) -> None:
    for_pandas, for_spark = murmuration.load_run(run.folder), murmuration.load_run(run.folder, spark)
    for name, keys in (
        ("nodes", ["number"]),
        ("rows", ["time_us", "kind", "node", "source", "sequence", "peer", "value"]),
        ("subscriptions", ["subscriber"]),
        ("deliveries", ["publisher", "sequence", "subscriber"]),
        ("faults", ["step"]),
    ):
        expected, found = getattr(for_pandas, name), getattr(for_spark, name).toPandas()
        assert list(found) == list(expected)
        expected, found = (plain_text(frame).sort_values(keys, ignore_index=True) for frame in (expected, found))
        pd.testing.assert_frame_equal(found, expected)
    assert for_spark.events.count() == len(for_pandas.events)
    assert all(row["attributes"].startswith('{"a0": ') for row in for_spark.events.collect())


@pytest.mark.spark
def test_the_reference_describes_every_column_of_every_table(run: murmuration.Run, spark: Any) -> None:
    assert analyze(run.folder)["published"] == SCENARIO["workload"]["publications"]
    text = (Path(__file__).parents[2] / "docs/reference.md").read_text()
    journaled, analysed = text[text.index("## Tables") : text.index("## Verdict")].split("`murmur analyze` writes")
    tables = murmuration.load_run(run.folder)
    for name in ("nodes", "rows", "events", "subscriptions", "deliveries", "faults"):
        assert set(getattr(tables, name)) <= described(journaled, name), name
    for path in (run.folder / "analysis").glob("*.csv"):
        assert set(pd.read_csv(path)) <= described(analysed, path.stem), path.stem


def described(section: str, table: str) -> set[str]:
    """What stands in backticks in the row of that table."""
    (row,) = (line for line in section.splitlines() if line.startswith("|") and f"`{table}`" in line.split("|")[1])
    return set(re.findall(r"`(\w+)`", row))


def plain_text(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with every value as text, and nothing where there is none."""
    return frame.astype(object).where(frame.notna(), None).map(lambda value: None if value is None else str(value))
