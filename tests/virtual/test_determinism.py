"""A virtual run is a function of scenario and seed, byte for byte, whatever the hash seed."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHANGES = ["links.loss=0.05", "links.duplication=0.02", "links.reordering=0.05", "workload.publications=200"]


def digest_of_run(folder: Path, hash_seed: str, seed: int = 7, more: Sequence[str] = ()) -> dict[str, str]:
    arguments = ["run", "parity", "--no-analysis", "--seed", str(seed), "--out", str(folder)]
    for change in (*CHANGES, *more):
        arguments += ["--set", change]
    subprocess.run(
        [sys.executable, "-m", "murmuration.commands.main", *arguments],
        cwd=ROOT, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )  # fmt: skip
    files = sorted((folder / "journal").iterdir())
    assert files
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_two_hash_seeds_give_identical_journals(tmp_path: Path) -> None:
    assert digest_of_run(tmp_path / "a", "1") == digest_of_run(tmp_path / "b", "4242")


@pytest.mark.parametrize("algorithm", ["push", "combined-pull"])
def test_two_hash_seeds_gossip_alike(algorithm: str, tmp_path: Path) -> None:
    more = [
        "broker.reliability=epidemic", "datagrams.delay=1 ms", "datagrams.loss=0.05",
        "broker.parameters.epidemic.settle=0 s", f"broker.parameters.epidemic.algorithm={algorithm}",
    ]  # fmt: skip
    digests = [digest_of_run(tmp_path / hash_seed, hash_seed, more=more) for hash_seed in ("1", "4242")]
    assert digests[0] == digests[1]


def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    assert digest_of_run(tmp_path / "a", "1") != digest_of_run(tmp_path / "b", "1", seed=8)
