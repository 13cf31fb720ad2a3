"""The files of `murmur init protocol` are those of the chapter, and its suite passes with the judge on Spark."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from murmuration.commands.init import Starter, begin

ROOT = Path(__file__).parents[2]
CHAPTER = (ROOT / "docs" / "making-it-reliable.md").read_text()
CHAPTER = CHAPTER[CHAPTER.index("$ murmur init protocol") :]
FILES = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", CHAPTER, flags=re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    begin(Starter.PROTOCOL, tmp_path)
    return tmp_path


def test_init_writes_the_files_that_are_printed(folder: Path) -> None:
    assert {path.name: path.read_text() for path in folder.iterdir()} == FILES


@pytest.mark.spark
@pytest.mark.slow
def test_the_printed_suite_passes_in_its_own_folder(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, env=None, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout
