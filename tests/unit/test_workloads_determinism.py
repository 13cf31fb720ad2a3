"""One seed, one plan: whatever the hash seed of the process, and different for another seed."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from workloads import OVERLAYS, WORKLOADS

ROOT = Path(__file__).parents[2]
KINDS: dict[str, dict[str, Any]] = {
    "zipf": {"publications": 60, "publishers": 5, "clients": 3, "categories": 4, "integers": 50},
    "social": {"users": 60, "posts": 50, "users_at": "neighbours"},
    "recorded": {"publications": 80, "subscriptions": 60},
}


def digest(kind: str, seed: int, recording: str) -> str:
    """Everything that a workload over a random tree says."""
    tree, make = OVERLAYS["random"]
    overlay = make(tree(20, 3), seed)
    options, build = WORKLOADS[kind]
    workload = build(overlay, options(**KINDS[kind], **({"path": recording} if kind == "recorded" else {})), seed)
    clients = [
        (each.name, each.broker, each.subscriptions, each.publishers, [repr(one) for one in each.publications])
        for each in workload.clients
    ]
    return hashlib.sha256(repr((overlay, clients, sorted(workload.description.items()))).encode()).hexdigest()


@pytest.fixture
def recording(tmp_path: Path) -> str:
    for number in range(5):
        lines = [f"[symbol,'S{number}'],[close,{day * 37 % 101}],[volume,{day * 11 % 97}]" for day in range(40)]
        (tmp_path / f"S{number}").write_text("\n".join(lines))
    return str(tmp_path)


def test_plans_do_not_depend_on_the_hash_seed(recording: str) -> None:
    program = (
        "import sys; from tests.unit.test_workloads_determinism import KINDS, digest\n"
        "print([digest(kind, 4, sys.argv[1]) for kind in KINDS])"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", program, recording], capture_output=True, text=True, check=True, cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        ).stdout
        for hash_seed in ("1", "2")
    ]  # fmt: skip
    assert printed[0] == printed[1]
    assert len(printed[0]) > 3 * 64


@pytest.mark.parametrize("kind", list(KINDS))
def test_another_seed_is_another_plan(kind: str, recording: str) -> None:
    assert digest(kind, 4, recording) == digest(kind, 4, recording)
    assert digest(kind, 4, recording) != digest(kind, 5, recording)
