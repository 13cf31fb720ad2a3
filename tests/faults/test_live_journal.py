"""The journal of a live run with nodes that were killed, stalled and never let go: whole, and told when it is not."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from actors.ray_session import RaySession
from murmur_pubsub.journal_format import FileState
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.run_manifest import read_manifest
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from murmuration.zoo.damages import DAMAGES
from spark_analysis.journal_check import find_damage
from spark_analysis.main import judge

SCENARIO: dict[str, Any] = {
    "name": "ends",
    "runtime": "ray",
    "seed": 7,
    "overlay": {"kind": "star", "brokers": 3},
    "workload": {
        "kind": "zipf", "clients": 10, "subscribers_per_actor": 3, "publishers": 10, "publications": 1200,
        "rate_per_s": 300, "attributes": 2, "predicates": 1, "matching_rate": 0.4,
    },
    "failure_detection": {"heartbeat": "150 ms", "timeout": "700 ms", "reconnect": "50 ms"},
    "faults": [
        {"at": "500 ms", "kill": "b1", "for": "700 ms"},
        {"at": "1500 ms", "kill": "c3", "signal": "SIGKILL"},
        {"at": "2 s", "stall": "c4"},
    ],
}  # fmt: skip

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("live_ray")]


@pytest.fixture(scope="module")
def run(live_ray: RaySession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live") / "run"
    return execute(check_scenario(SCENARIO, "test"), folder, lambda *_: None).folder


def test_the_journal_of_a_node_killed_or_stalled_to_the_end_is_sealed_by_the_driver(run: Path) -> None:
    manifest = read_manifest(run)
    assert find_damage(store_at(manifest.journal_at(run)), manifest) == []
    last = {path.name.rpartition("-")[0]: read_segment(path)[0] for path in sorted((run / "journal").glob("*.seg"))}
    dead = {series for series, header in last.items() if header.state is FileState.LAST_OF_DEAD}
    assert dead == {"b1-0", "c3-0", "c4-0"}
    assert all(header.state is FileState.LAST for series, header in last.items() if series not in dead)
    said = json.loads((run / "manifest.json").read_text())
    assert {header.run for header in last.values()} == {int(said["run"], 16)}
    assert said["writers"] == {f"b{number}": 1 for number in range(3)} | {f"c{number}": 1 for number in range(10)} | {
        "b1": 2, "driver": 1, "faults": 1,
    }  # fmt: skip


@pytest.mark.spark
def test_such_a_run_is_judged(run: Path) -> None:
    verdict = judge(run)
    assert verdict["verdict"] == "valid", verdict
    assert (verdict["faults_took_effect"], verdict["faults_failed"]) == (3, 0)


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_of_a_live_run_is_named(run: Path, tmp_path: Path, damage: str) -> None:
    shutil.copytree(run, tmp_path / "run")
    expected = DAMAGES[damage].do(tmp_path / "run")
    verdict = judge(tmp_path / "run")
    assert (verdict["verdict"], verdict["damage"]) == ("unknown", len(expected))
    table = (tmp_path / "run" / "analysis" / "damage.csv").read_text()
    assert all(name in table for name in expected), table
