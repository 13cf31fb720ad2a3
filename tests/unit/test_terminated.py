"""SIGTERM, as `kill` and service managers send it, ends a command as Ctrl-C does."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("arguments", "step", "kept"),
    [
        (["churn", "--nodes", "20000", "--seeds", "100"], "generating churn", ["murmur: interrupted"]),
        (["sweep", "many.yaml", "--plain"], "checking points", ["murmur: interrupted"]),
        (["zoo", "--plain", "--out", "zoo"], "judging", ["murmur: interrupted", "finished runs are kept in zoo"]),
        (["zoo", "--plain"], "judging", ["murmur: interrupted", "nothing was kept"]),
    ],
    ids=["churn", "sweep", "zoo", "zoo without a folder"],
)
def test_a_command_that_is_interrupted_says_so(
    arguments: list[str], step: str, kept: list[str], tmp_path: Path
) -> None:
    points = ", ".join(str(number / 10_000) for number in range(1_000))
    (tmp_path / "many.yaml").write_text(f"scenario: parity\ngrid: {{links.loss: [{points}]}}\n")
    command = [sys.executable, "-m", "murmuration.commands.main", *arguments]
    begun = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell has it ignored
    )  # fmt: skip
    try:
        assert begun.stderr is not None
        assert begun.stderr.readline().startswith(step)
        begun.send_signal(signal.SIGINT)
        said = begun.communicate(timeout=120)[1].splitlines()
    finally:
        begun.kill()
    assert (begun.returncode, said[-len(kept) :]) == (130, kept)
