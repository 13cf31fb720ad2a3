"""A virtual run is a function of scenario and seed, byte for byte, whatever the hash seed."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHANGES = ["links.loss=0.05", "links.duplication=0.02", "links.reordering=0.05", "workload.publications=200"]


def digest_of_run(folder: Path, hash_seed: str, seed: int = 7) -> dict[str, str]:
    arguments = ["run", "parity", "--no-analysis", "--seed", str(seed), "--out", str(folder)]
    for change in CHANGES:
        arguments += ["--set", change]
    subprocess.run(
        [sys.executable, "-m", "experiments.command_line", *arguments],
        cwd=ROOT, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )  # fmt: skip
    files = sorted((folder / "journal").iterdir())
    assert files
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_two_hash_seeds_give_identical_journals(tmp_path: Path) -> None:
    assert digest_of_run(tmp_path / "a", "1") == digest_of_run(tmp_path / "b", "4242")


def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    assert digest_of_run(tmp_path / "a", "1") != digest_of_run(tmp_path / "b", "1", seed=8)
