"""The schedules in tests/hunt/findings, which broke a promise once, break it again when the mend is taken out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks.planted_bugs import PLANTED_BUGS

FINDINGS = Path(__file__).parent / "findings"
WITHOUT_THE_MEND = {
    "gryphon_800171": ("a full receive cache keeps what was consumed", "missing"),
    "multipath_900287": ("a dead neighbour whose link went stays a neighbour", "duplicate"),
    "multipath_1007672": ("a broker behind a bridge does not pass on that it is back", "missing"),
}
"""The bug to be planted, and the symptom."""
_PLAY = """
import json, sys
from benchmarks.planted_bugs import PLANTED_BUGS, planted
planted(next(bug for bug in PLANTED_BUGS if bug.name == sys.argv[1]))
from murmuration.hunt.symptoms import tried
symptom = tried(json.load(sys.stdin)).symptom
print(symptom and symptom.kind)
"""


def test_each_saved_finding_is_played_without_its_mend() -> None:
    saved = {path.name for path in FINDINGS.iterdir() if (path / "scenario.yaml").exists()}
    assert saved == set(WITHOUT_THE_MEND)
    assert {bug for bug, _ in WITHOUT_THE_MEND.values()} <= {bug.name for bug in PLANTED_BUGS}


@pytest.mark.slow  # each in a process that has not imported the protocol yet
@pytest.mark.parametrize("finding", WITHOUT_THE_MEND)
def test_a_saved_finding_is_found_again_without_the_mend(finding: str) -> None:
    bug, symptom = WITHOUT_THE_MEND[finding]
    keys = yaml.safe_load((FINDINGS / finding / "scenario.yaml").read_text())
    played = subprocess.run(
        [sys.executable, "-c", _PLAY, bug], input=json.dumps(keys), capture_output=True, text=True, check=True
    )
    assert played.stdout.strip() == symptom
