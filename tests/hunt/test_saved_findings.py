"""The schedules in tests/hunt/findings, which broke a promise once, break it again when the mend is taken out."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.planted_bugs import PLANTED_BUGS, changed_source

FINDINGS = Path(__file__).parent / "findings"
WITHOUT_THE_MEND = {
    "gryphon_800171": ("a full receive cache keeps what was consumed", "missing"),
    "multipath_900287": ("a dead neighbour whose link went stays a neighbour", "duplicate"),
    "multipath_1007672": ("a broker behind a bridge does not pass on that it is back", "missing"),
    "multipath_move_and_kill": ("a neighbour by a move that was restarted is told nothing", "missing"),
    "gryphon_cut_and_kill": ("what was answered counts as asked for still", "missing"),
    "gryphon_stall_and_kill": ("what is ahead waits for a client that is gone", "property: forgets what is over"),
    "end_to_end_stall_and_kill": (
        "what is ahead waits for a client of another broker",
        "property: forgets what is over",
    ),
    "end_to_end_partition": ("what was withdrawn stays in the log", "property: forgets what is over"),
    "gryphon_loss_and_kill": ("the log is cut at its checkpoint, needed or not", "missing"),
    "rpf_stall_and_partition": ("who was only held up is not told again what is wanted there", "duplicate"),
}
"""The bug to be planted, and how the symptom begins."""
_PLAY = """
import json, sys
from benchmarks.planted_bugs import PLANTED_BUGS, planted
planted(next(bug for bug in PLANTED_BUGS if bug.name == sys.argv[1]))
from murmuration.hunt.symptoms import tried
for keys in json.load(sys.stdin):
    symptom = tried(keys).symptom
    print(symptom and symptom.kind)
"""


def test_each_planted_bug_stands_in_for_a_line_that_is_there_once() -> None:
    for bug in PLANTED_BUGS:
        assert changed_source(bug), bug.name


def test_each_saved_finding_is_played_without_its_mend() -> None:
    saved = {path.name for path in FINDINGS.iterdir() if (path / "scenario.yaml").exists()}
    assert saved == set(WITHOUT_THE_MEND)
    assert {bug for bug, _ in WITHOUT_THE_MEND.values()} <= {bug.name for bug in PLANTED_BUGS}


def played(bug: str, *schedules: dict[str, Any]) -> list[str]:
    """The symptom of each schedule with the bug, in a process that has not imported the protocol yet."""
    command = [sys.executable, "-c", _PLAY, bug]
    said = subprocess.run(command, input=json.dumps(schedules), capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("finding", WITHOUT_THE_MEND)
def test_a_saved_finding_is_found_again_without_the_mend_and_neither_of_two_faults_is_enough(finding: str) -> None:
    bug, symptom = WITHOUT_THE_MEND[finding]
    keys = yaml.safe_load((FINDINGS / finding / "scenario.yaml").read_text())
    alone = [{**keys, "faults": [fault]} for fault in keys["faults"]] if len(keys["faults"]) == 2 else []
    shown, *shown_alone = played(bug, keys, *alone)
    assert shown.startswith(symptom)
    assert shown_alone == ["None" for _ in alone]
