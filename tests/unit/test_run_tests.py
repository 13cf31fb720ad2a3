"""The script that plays all tests: both halves are played and told of, whatever the other found."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "run_tests.sh"
STUB = """#!/bin/sh
echo "played: $*"
case "$*" in
*"not (ray or spark)"*) exit {others} ;;
*) exit {live} ;;
esac
"""


def played(tmp_path: Path, others: int, live: int, path: str) -> subprocess.CompletedProcess[str]:
    python = tmp_path / "python"
    python.write_text(STUB.format(others=others, live=live))
    python.chmod(0o755)
    command = ["/bin/sh", str(SCRIPT), str(python), "not slow"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": path}, timeout=60)


def without_chrt(tmp_path: Path) -> str:
    """A PATH with all that the script calls but `chrt`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mktemp", "tail", "rm"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


@pytest.mark.parametrize(("others", "live", "code"), [(0, 0, 0), (1, 0, 1), (0, 1, 1), (2, 5, 1)])
@pytest.mark.parametrize("has_chrt", [True, False])
def test_both_halves_are_played_and_either_failure_counts(
    tmp_path: Path, others: int, live: int, code: int, has_chrt: bool
) -> None:
    told = played(tmp_path, others, live, os.environ["PATH"] if has_chrt else without_chrt(tmp_path))
    assert told.returncode == code
    assert "played: -m pytest -q -m not slow and (ray or spark)" in told.stdout
    assert "-m not slow and not (ray or spark)" in told.stdout
