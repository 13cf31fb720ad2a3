"""SIGTERM, as `kill` and service managers send it, ends a command as Ctrl-C does."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_run_that_is_terminated_says_what_is_kept(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-m", "murmuration.commands.main", "run", "parity", "--runtime", "virtual", "--plain"]
    begun = subprocess.Popen(
        [*command, "--out", str(run), "--set", "workload.publications=200000"],
        cwd=ROOT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert begun.stderr is not None
    said = ""
    for line in begun.stderr:
        said += line
        if "publishing" in line and "publishing 0 " not in line:
            break
    begun.terminate()
    said += begun.communicate(timeout=120)[1]
    assert begun.returncode == 130, said
    assert said.splitlines()[-1] == f"what was journaled is kept: `murmur analyze {run}` reads it"
    assert json.loads((run / "manifest.json").read_text())["status"] == "interrupted"
