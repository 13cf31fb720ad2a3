"""A journal is read while it grows: each row once, in order of time, and never one that is not written yet."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from murmur_page.journal_tail import JournalTail, last_row_us
from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import JournalWriter, RowKind


def writer(folder: Path, name: str, incarnation: int = 0) -> JournalWriter:
    return JournalWriter(folder, name, 0, incarnation, rows_per_segment=4)


def times(tail: JournalTail, until_us: int = 1 << 60) -> list[int]:
    return [int(each) for each in tail.until(until_us)["time_us"]]


def test_rows_are_handed_out_once_and_up_to_the_time_asked_for(tmp_path: Path) -> None:
    opened, tail = writer(tmp_path, "b0"), JournalTail(tmp_path)
    assert times(tail) == []
    for time_us in (10, 20, 30):
        opened.row(time_us, RowKind.PUBLISH, 0)
    assert times(tail, 20) == [10, 20]
    assert times(tail, 20) == []
    opened.row(40, RowKind.PUBLISH, 0)
    assert times(tail) == [30, 40]
    assert times(tail) == []


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_written_between_two_looks_is_seen_once(tmp_path: Path, seed: int) -> None:
    """Writers come, grow over many segments, and close in any order while the tail looks on."""
    rng = random.Random(seed)
    tail, now_us = JournalTail(tmp_path), 0
    restarts: Counter[str] = Counter()
    seen: list[int] = []
    written: list[int] = []
    writers: dict[tuple[str, int], JournalWriter] = {}
    for _ in range(60):
        name = f"b{rng.randrange(3)}"
        key = (name, restarts[name])
        if key not in writers:
            writers[key] = writer(tmp_path, *key)
        for _ in range(rng.randrange(12)):
            now_us += rng.randrange(3)
            writers[key].row(now_us, RowKind.SEND, 0, sequence=len(written))
            written.append(len(written))
        if rng.random() < 0.5:
            seen += [int(each) for each in tail.until(now_us - rng.randrange(6))["sequence"]]
        if rng.random() < 0.05:
            writers.pop(key).close()
            restarts[name] += 1
    for each in writers.values():
        each.close()
    seen += [int(each) for each in tail.until()["sequence"]]
    assert sorted(seen) == written, f"seed {seed}"
    assert last_row_us(tmp_path) == now_us


def test_what_is_written_while_the_tail_looks_for_the_next_file_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds no more rows; then the writer fills this file and opens the next; then the tail sees that one."""
    opened, tail, read, waiting = writer(tmp_path, "b0"), JournalTail(tmp_path), os.pread, [20, 30, 40, 50]
    opened.row(10, RowKind.PUBLISH, 0)
    assert times(tail) == [10]

    def read_just_before(descriptor: int, count: int, offset: int) -> bytes:
        data = read(descriptor, count, offset)
        while waiting:
            opened.row(waiting.pop(0), RowKind.PUBLISH, 0)
        return data

    monkeypatch.setattr(os, "pread", read_just_before)
    assert times(tail) + times(tail) == [20, 30, 40, 50]
    assert len(list(tmp_path.iterdir())) > 1, "they went over the end of a file"


def test_rows_of_several_writers_come_in_order_of_time(tmp_path: Path) -> None:
    first, second, tail = writer(tmp_path, "b0"), writer(tmp_path, "b1"), JournalTail(tmp_path)
    for time_us in range(20):
        (first if time_us % 3 else second).row(time_us, RowKind.SEND, 0)
    assert times(tail) == list(range(20))


def test_a_closed_file_that_was_cut_is_read_to_its_end(tmp_path: Path) -> None:
    """A writer cuts its file when it closes it: what a map would fault on is read here."""
    opened, tail = writer(tmp_path, "b0"), JournalTail(tmp_path)
    opened.row(1, RowKind.SEND, 0)
    assert times(tail) == [1]
    opened.row(2, RowKind.SEND, 0)
    opened.close()
    assert times(tail) == [2]
    assert times(tail) == []


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    writer(tmp_path, "b0").close()
    path = tmp_path / "b0-0-00000.seg"
    data = bytearray(path.read_bytes())
    data[8] += 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="schema version"):
        JournalTail(tmp_path).until()
