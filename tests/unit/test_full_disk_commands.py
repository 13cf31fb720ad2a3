"""What commands promise when there is no room: what is there, by its name, and nothing else."""

import functools
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def murmur(room: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command where no file may become larger than this."""
    return subprocess.run(
        [sys.executable, "-m", "murmuration.commands.main", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
        preexec_fn=functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room, room)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("room", "file"),
    [(10, "manifest.json"), (100_000, "journal/run-0-00000.seg")],
    ids=["no room at all", "none for a journal"],
)
def test_nothing_is_promised_of_a_run_that_journaled_nothing(room: int, file: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = murmur(room, "run", "parity", "--no-analysis", "--out", str(run))
    told = f"murmur: {run / file}: File too large\nnothing was journaled in {run}\n"
    assert (done.returncode, done.stderr[-len(told) :]) == (1, told)
    assert not [path for path in (run / "journal").iterdir() if path.suffix == ".seg"]
