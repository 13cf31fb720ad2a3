"""A disk that fills while a run is played is named, and no protocol is blamed for it."""

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import DiskError
from murmur_pubsub.protocol_error import ProtocolError
from murmuration.hunt.symptoms import tried
from murmuration.hunt.trial import deployment_of
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario

SCENARIO: dict[str, Any] = {
    "name": "full",
    "runtime": "virtual",
    "seed": 1,
    "overlay": {"kind": "chain", "brokers": 3},
    "workload": {"kind": "zipf", "clients": 6, "publications": 2_000, "rate_per_s": 200, "matching_rate": 0.9},
}


def fill_after(files: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for so many files of a journal."""
    allocate, opened = os.posix_fallocate, itertools.count()

    def full(descriptor: int, begin: int, size: int) -> None:
        if next(opened) >= files:
            raise OSError(28, "No space left on device")
        allocate(descriptor, begin, size)

    monkeypatch.setattr(os, "posix_fallocate", full)


@pytest.mark.parametrize("files", [0, 1, 2, 3])
def test_a_disk_that_fills_is_named_and_no_protocol_is_blamed(
    files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_after(files, monkeypatch)
    with pytest.raises(DiskError, match=r"journal/run-0-0000\d\.(seg|blob): No space left on device$") as full:
        execute(check_scenario(SCENARIO, "test"), tmp_path / "run", lambda *_: None)
    assert not isinstance(full.value, ProtocolError)
    assert not list((tmp_path / "run" / "journal").glob("*.begun"))


def test_nor_is_it_for_inputs_that_find_no_room(tmp_path: Path) -> None:
    from murmur_virtual.run import VirtualRun

    (tmp_path / "b1-0.inputs").symlink_to("/dev/full")
    run = VirtualRun(deployment_of(SCENARIO | {"keep_inputs": True}), tmp_path, lambda *_: None)
    with pytest.raises(DiskError, match=r"b1-0.inputs: No space left on device$"):
        run.play()


def test_a_hunt_takes_a_full_disk_for_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    fill_after(1, monkeypatch)
    with pytest.raises(DiskError, match="No space left"):
        tried(SCENARIO)
