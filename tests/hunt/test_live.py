"""A schedule in virtual time and live: both are judged, and what differs is told."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from murmuration.hunt.live import Played, differences
from murmuration.hunt.symptoms import tried
from spark_analysis.plain_judge import Judgement
from tests.hunt.test_coverage import CHAIN
from tests.hunt.test_properties import KILL_B1

ROOT = Path(__file__).parents[2]


def judged(**changes: Any) -> Judgement:
    outcome = tried({**CHAIN, **changes}).outcome
    assert outcome is not None
    return outcome.judgement


def played(virtual: Judgement | None, live: Judgement | None, failure: str | None = None) -> list[str]:
    here = Path()
    return list(differences({"virtual": Played(here, virtual, None), "live": Played(here, live, failure)}))


def test_only_what_differs_is_marked() -> None:
    calm, killed = judged(), judged(faults=[{"at": "200 ms", "kill": "b1", "for": "200 ms"}])
    assert not [line for line in played(calm, calm) if "differs" in line or "only" in line]
    marked = [line.split()[0] for line in played(calm, killed) if line.endswith("differs")]
    assert "missing" in marked
    assert "published" not in marked


def test_a_run_that_raised_is_told_instead() -> None:
    assert played(judged(), None, "the actor of b1 died\nand more") == ["live ended early: the actor of b1 died"]


@pytest.mark.ray
@pytest.mark.slow
def test_the_command_plays_both_and_keeps_both(tmp_path: Path) -> None:
    file = tmp_path / "chain.yaml"
    file.write_text(yaml.safe_dump({**CHAIN, "faults": [KILL_B1]}))
    command = [sys.executable, "-m", "murmuration.commands.main", "hunt", "--live", str(file)]
    said = subprocess.run(
        [*command, "--out", str(tmp_path / "both")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    rows = {line.rsplit(maxsplit=2)[0].strip(): line.split()[-2:] for line in said.stdout.splitlines() if line}
    assert rows["verdict"] == ["valid", "valid"], said.stdout
    assert rows["published"] == ["30", "30"]
    assert {path.name for path in (tmp_path / "both").iterdir()} == {"virtual", "live"}
