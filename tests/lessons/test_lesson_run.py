"""A run that a page carries on, and that an error ends, is marked as any other run."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import DiskError, InputError, RunError
from murmur_pubsub.run_manifest import read_manifest
from murmuration.lessons.lesson_run import LessonRun
from tests.hunt.test_coverage import CHAIN
from tests.no_room import BEFORE_IT_STARTS, leave_no_room_for

_KILL = {"kill": "b1"}


@pytest.mark.parametrize("carry_on", ["advance", "order", "play on"])
def test_what_an_error_ends_is_marked_as_interrupted_and_stays_so(carry_on: str, tmp_path: Path) -> None:
    begun = LessonRun(CHAIN, tmp_path / "begun").inputs
    run = LessonRun(CHAIN, tmp_path / "run", inputs_max=begun)
    run.hands.held = True
    ways: dict[str, Callable[[], Any]] = {
        "advance": lambda: run.advance(1_000_000),
        "order": lambda: [run.order(_KILL), run.order({"restart": "b1"}), run.order(_KILL)],
        "play on": run.play_on,
    }
    with pytest.raises(RunError, match="It floods"):
        ways[carry_on]()
    assert run.advance(1_000_000) == []
    run.play_on()
    with pytest.raises(InputError, match="an order after the end of publishing"):
        run.order(_KILL)
    assert (run.over, read_manifest(run.folder).status) == (True, "interrupted")


def test_so_is_what_does_not_even_begin(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="It floods"):
        LessonRun(CHAIN, tmp_path / "run", inputs_max=0)
    assert read_manifest(tmp_path / "run").status == "interrupted"


def test_what_is_played_to_its_end_is_complete(tmp_path: Path) -> None:
    run = LessonRun(CHAIN, tmp_path / "run")
    run.play_on()
    assert (run.over, read_manifest(run.folder).status) == (True, "complete")


@pytest.mark.parametrize("name", BEFORE_IT_STARTS)
def test_what_finds_no_room_before_it_begins_leaves_no_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_no_room_for(name, monkeypatch)
    with pytest.raises(DiskError, match=name):
        LessonRun(CHAIN, tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_what_finds_no_room_for_its_journal_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DiskError, match="journal"):
        LessonRun(CHAIN, tmp_path / "run")
    assert read_manifest(tmp_path / "run").status == "interrupted"
