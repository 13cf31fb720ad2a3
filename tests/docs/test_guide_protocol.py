"""The guide's protocol, by the guide alone: its files in a folder of their own, and the commands that it prints."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from spark_analysis.plain_judge import judge_plainly

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide.md").read_text()
CHAPTER = GUIDE[GUIDE.index("## A protocol of your own") :]
FILES = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", CHAPTER, flags=re.DOTALL))
COMMANDS = dict(re.findall(r"^\$ (murmur run parity .*hop_acks:HOP_ACKS.*)\n(.*)$", CHAPTER, flags=re.MULTILINE))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    done = murmur("murmur init protocol hop_acks", tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path / "hop_acks"


def murmur(command: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "murmuration", *shlex.split(command)[1:], *more]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_init_writes_the_files_that_are_printed(folder: Path) -> None:
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        name: text for name, text in FILES.items() if name != "halfway.py"
    }


def test_the_printed_run_loses_nothing_on_lossy_links(folder: Path) -> None:
    command, said = next((each, said) for each, said in COMMANDS.items() if "attempts=50" in each)
    done = murmur(command, folder, "--no-analysis", "--out", "run")
    assert done.returncode == 0, done.stderr
    verdict = judge_plainly(folder / "run" / "journal", 1_000_000)
    assert verdict.counts[:3] == (0, 0, 0)
    assert said.startswith("valid: 0 missing, 0 duplicate, 0 spurious")


def test_the_printed_mistake_is_refused_as_the_guide_says(folder: Path) -> None:
    command, said = next((each, said) for each, said in COMMANDS.items() if "atempts=50" in each)
    done = murmur(command, folder)
    assert done.returncode == 2
    assert said.split(": ", 1)[1] in " ".join(done.stderr.split())


@pytest.mark.spark
def test_the_printed_suite_passes_in_its_own_folder(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, env=None, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout
    lines = {name: len(FILES[name].splitlines()) for name in ("hop_acks.py", "test_hop_acks.py")}
    print(f"{lines}: three parameters, two faults, and nothing to know that is not in the guide")
