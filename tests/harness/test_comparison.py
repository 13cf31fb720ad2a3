"""Runs side by side: what they differ in, and delays over what all of them delivered."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from murmur_pubsub.errors import InputError
from murmur_pubsub.run_manifest import read_manifest, write_manifest
from murmuration.commands.main import application
from murmuration.results.comparison import compare
from spark_analysis.verdict import COUNTS, Facts, decide
from tests.spark.run_folder import RunFolder

VALID = decide(Facts("complete", {**dict.fromkeys(COUNTS, 0), "required": 2, "delivered": 2, "published": 2}))


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """The same two events: delivered after 0.5 and 9 ms in the first run; the second loses the far one."""
    folders = []
    for name, far in (("whole", True), ("lossy", False)):
        built = RunFolder(tmp_path / name)
        for sequence in range(2):
            built.publish("c0", 1_000, 0, sequence, {"a": sequence})
        built.hop("b0", "b1", 1_100, 1_900 if far else None, 0, 1, size=70)
        built.deliver("c0", 1_500, 0, 0, subscriber=1)
        if far:
            built.deliver("c1", 10_000, 0, 1, subscriber=2, hops=1)
        folders.append(built.finish())
    (tmp_path / "whole" / "analysis").mkdir()
    (tmp_path / "whole" / "analysis" / "verdict.json").write_text(json.dumps(VALID))
    return folders


def values(runs: list[Path]) -> dict[str, tuple[Any, ...]]:
    return {line.what: line.values for line in compare(runs)}


def test_delays_are_given_also_for_what_all_delivered(runs: list[Path]) -> None:
    found = values(runs)
    assert found["delivered"] == (2, 1)
    assert found["delivered by all of them"] == (1, 1)
    assert found["delay, longest"] == (9_000, 500)
    assert found["delay of what all delivered, longest"] == (500, 500)
    assert found["hops of a delivery, mean"] == (0.5, 0.0)
    assert (found["messages"], found["bytes"], found["messages a delivery"]) == ((1, 1), (70, 70), (0.5, 1.0))


def test_a_verdict_is_shown_where_there_is_one(runs: list[Path]) -> None:
    assert values(runs)["verdict"] == ("valid", None)


def test_only_the_keys_that_differ_are_listed(runs: list[Path]) -> None:
    other = read_manifest(runs[1])
    scenario = {"name": "built", "links": {"loss": 0.5}, "faults": [{"at": "1 s", "kill": "b0"}]}
    write_manifest(runs[1], replace(other, seed=9, scenario=scenario))
    scenario_lines = {line.what: line.values for line in compare(runs) if line.unit == "scenario"}
    assert scenario_lines == {
        "links.loss": (None, 0.5), "faults": (None, '[{"at": "1 s", "kill": "b0"}]'), "seed": (1, 9),
    }  # fmt: skip


def test_a_run_without_deliveries_has_no_delays(tmp_path: Path, runs: list[Path]) -> None:
    empty = RunFolder(tmp_path / "empty").finish()
    found = values([runs[0], empty])
    assert found["delay, median"] == (500, None)
    assert found["messages a delivery"] == (0.5, None)


def test_one_run_and_a_folder_that_is_none_are_refused(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found 1 run folders; allowed: two or more"):
        compare(runs[:1])
    with pytest.raises(InputError, match="no such folder"):
        compare([*runs, tmp_path / "nowhere"])


def test_the_command_prints_a_table_or_lines_of_json(runs: list[Path]) -> None:
    arguments = ["compare", *map(str, runs)]
    table = CliRunner().invoke(application, arguments).output
    assert "delay of what all delivered, longest" in table
    lines = CliRunner().invoke(application, [*arguments, "--json"]).output.splitlines()
    found = {line["what"]: line["values"] for line in map(json.loads, lines)}
    assert list(found["delivered"].values()) == [2, 1]
