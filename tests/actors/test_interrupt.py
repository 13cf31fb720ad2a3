"""Ctrl-C in the middle of a live run: actors stopped, the journal readable, and a word on what was kept."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from spark_analysis.main import analyze

ROOT = Path(__file__).parents[2]


@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.slow
def test_an_interrupted_run_leaves_its_journal_and_no_process(tmp_path: Path) -> None:
    run = tmp_path / "run"
    changes = ["workload.publications=100000", "overlay.brokers=3", "workload.clients=4"]
    arguments = ["run", "parity", "--runtime", "ray", "--out", str(run), *(f"--set={change}" for change in changes)]
    process = subprocess.Popen(
        [sys.executable, "-m", "murmuration.commands.main", *arguments],
        cwd=ROOT, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell has it ignored
    )  # fmt: skip
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if "publishing" in line and "publishing 0 " not in line:
            break
    started = psutil.Process(process.pid).children(recursive=True)
    assert len(started) > 7, "seven actors and Ray's own processes"
    process.send_signal(signal.SIGINT)
    said += process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "kept" in said
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(started, timeout=20)
    assert not alive
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    kinds = {int(kind) for path in (run / "journal").glob("*.seg") for kind in read_segment(path)[1]["kind"]}
    assert {RowKind.PUBLISH, RowKind.DELIVER} <= kinds
    verdict = analyze(run)
    assert verdict["published"] > 100
    assert verdict["verdict"] in ("unknown", "invalid")
    assert "cut short" in verdict["reason"]
