"""What the first look at a journal tells of its rows and its damages, beside what the rows say one by one."""

import gc
import shutil
from collections import Counter
from pathlib import Path

import pytest

from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_format import HEADER_BYTES
from murmur_pubsub.journal_rows import read_rows, read_segment
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.run_manifest import read_manifest
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from murmuration.zoo.damages import flip_bit
from murmuration.zoo.split_run import split_by_node
from spark_analysis.census import census_of
from spark_analysis.course import course_of
from spark_analysis.first_look import FirstLook, Kind, look_first
from spark_analysis.journal_check import Damage, find_damage, survey
from spark_analysis.worker import settle

SETTINGS = (
    "workload.publications=200", "overlay.brokers=4", "workload.clients=10", "workload.subscribers_per_actor=5",
    "faults=[{at: 300 ms, kill: b1, for: 300 ms}]",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose nodes have files of their own, with a kill."""
    folder = tmp_path_factory.mktemp("played")
    whole = execute(load_scenario(Path("parity"), [*SETTINGS, "seed=3"]), folder / "whole", lambda *_: None).folder
    return split_by_node(whole, folder / "split")


def seen_of(run: Path) -> FirstLook:
    """What is seen of all files."""
    manifest = read_manifest(run)
    store = store_at(manifest.journal_at(run))
    return look_first(store, survey(store, manifest).contents)


def test_kinds_are_counted_as_row_by_row(run: Path) -> None:
    rows = read_rows(run / "journal")
    counts = Counter(rows["kind"].tolist())
    seen = seen_of(run)
    assert seen.damages == []
    assert {kind: counted.rows for kind, counted in seen.kinds.items()} == counts
    assert len(counts) > 8
    for kind, counted in seen.kinds.items():
        times_us = sorted(rows["time_us"][rows["kind"] == kind].tolist())
        assert (counted.first_us, counted.last_us) == (times_us[0], times_us[-1])


def test_the_course_is_told_whole(run: Path) -> None:
    rows = read_rows(run / "journal")
    course = course_of(seen_of(run).course)
    told = rows[rows["kind"] == RowKind.SETTLED]
    assert sorted(course.settled) == sorted(zip(told["time_us"].tolist(), told["value"].tolist(), strict=True))
    assert course.settled
    assert list(course.phases) == ["starting", "subscribing", "publishing", "draining", "stopped"]
    faults = rows[rows["kind"] == RowKind.FAULT]
    assert course.fault_times == {
        (int(row["sequence"]), int(row["hops"])): int(row["time_us"]) for row in faults
    }  # fmt: skip
    assert course.fault_times


def test_what_is_seen_of_files_apart_adds_up(run: Path) -> None:
    manifest = read_manifest(run)
    store = store_at(manifest.journal_at(run))
    contents = survey(store, manifest).contents
    together = FirstLook()
    for content in contents:
        together.add(look_first(store, [content]))
    assert together == look_first(store, contents)
    assert len(contents) > 10


def test_publishing_goes_from_the_first_row_to_the_last_where_phases_are_not_told() -> None:
    kinds = {1: Kind(3, 50, 70), 2: Kind(1, 20, 20)}
    assert census_of(kinds, None, None).publishing == (20, 71)
    assert census_of(kinds, 30, None).publishing == (30, 71)
    assert census_of(kinds, 30, 60).publishing == (30, 60)
    assert census_of({}, 30, None).publishing == (30, 31)


def test_a_damaged_file_is_named_and_not_counted(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    file = "b2-0-00000.seg"
    flip_bit(copy / "journal" / file, 8 * (HEADER_BYTES + 3))
    seen = seen_of(copy)
    manifest = read_manifest(copy)
    found = find_damage(store_at(manifest.journal_at(copy)), manifest)
    assert seen.damages == found == [Damage(file, "was changed after it was sealed")]
    counts = [sum(kind.rows for kind in each.kinds.values()) for each in (seen, seen_of(run))]
    assert counts[0] == counts[1] - len(read_segment(run / "journal" / file)[1])


def test_nothing_is_set_aside_from_the_collector_of_a_process_that_is_not_sparks() -> None:
    before = gc.get_freeze_count()
    settle()
    assert gc.get_freeze_count() == before
