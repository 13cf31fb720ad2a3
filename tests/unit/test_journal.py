"""The journal: rows outlive their process, and readers name what is wrong with a file."""

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import msgpack
import pytest

from murmur_pubsub.client import Publication
from murmur_pubsub.errors import DiskError, InputError
from murmur_pubsub.event import Event
from murmur_pubsub.journal import DropReason, JournalWriter, RowKind, SideKind, read_side
from murmur_pubsub.journal_format import (
    HEADER_BYTES,
    MAGIC_ROWS,
    MAGIC_SIDE,
    RECORD,
    ROW,
    SCHEMA_VERSION,
    SegmentHeader,
    read_header,
)
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.recorder import Recorder


def rows_of(folder: Path) -> list[int]:
    """The values of all rows, in the order in which they were written."""
    return [int(value) for path in sorted(folder.glob("*.seg")) for value in read_segment(path)[1]["value"]]


def test_rows_and_records_come_back_in_order_over_many_segments(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "b1", 4, incarnation=2, rows_per_segment=10)
    for number in range(500):
        writer.row(number, RowKind.DELIVER, 4, source=1, sequence=number, hops=3, value=number)
        writer.side(SideKind.EVENT, [number, "x" * (number * 7 % 1_000)])
    writer.close()
    assert rows_of(tmp_path) == list(range(500))
    records = [each for path in sorted(tmp_path.glob("*.blob")) for each in read_side(path)]
    assert [fields[0] for _, fields in records] == list(range(500))
    header, rows = read_segment(sorted(tmp_path.glob("*.seg"))[0])
    assert (header.node, header.incarnation, header.number) == (4, 2, 0)
    assert rows[7].tolist() == (7, 7, 7, 4, 1, -1, 0, 3, RowKind.DELIVER)


def test_an_open_journal_can_be_read(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "b1", 0)
    assert rows_of(tmp_path) == []
    writer.row(1, RowKind.START, 0, value=42)
    writer.side(SideKind.SUBSCRIBE, [1, 0, 5, "x > 3"])
    assert rows_of(tmp_path) == [42]
    assert [fields for _, fields in read_side(next(tmp_path.glob("*.blob")))] == [[1, 0, 5, "x > 3"]]
    writer.close()


def test_a_recorder_counts_the_messages_that_it_journals_as_dropped(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "b1", 0)
    recorder = Recorder(writer, 0, {"b1": 0, "b2": 1})
    recorder.dropped(5, Publication(Event(7, 1, 0, {"x": 1})), "b2", DropReason.LOSS)
    recorder.lost(6, 3, "b2", DropReason.LINK_BROKEN)
    writer.close()
    (segment,) = tmp_path.glob("*.seg")
    rows = read_segment(segment)[1]
    assert recorder.drops == sum(rows["kind"] == RowKind.DROP) == 4


def test_a_recorder_that_has_fallen_silent_writes_nothing_more(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "b1", 0)
    recorder = Recorder(writer, 0, {"b1": 0})
    for number in range(2):
        recorder.plain(number, RowKind.START, value=number)
        recorder.published(number, Event(7, number, number, {"x": 1}))
        recorder.fall_silent()
    writer.close()
    assert len(rows_of(tmp_path)) == 2
    assert len(list(read_side(next(tmp_path.glob("*.blob"))))) == 1


@pytest.mark.parametrize("records", [0, 1])
def test_a_journal_that_is_abandoned_stays_open_and_takes_nothing_more(tmp_path: Path, records: int) -> None:
    """As that of a killed node whose process goes on, with other nodes."""
    writer = JournalWriter(tmp_path, "b1", 0)
    writer.row(1, RowKind.START, 0, value=42)
    for _ in range(records):
        writer.side(SideKind.SUBSCRIBE, [1, 0, 5, "x > 3"])
    writer.abandon()
    opened = [*tmp_path.glob("*.seg"), *tmp_path.glob("*.blob")]
    assert len(opened) == 1 + records
    before = [each.read_bytes() for each in opened]
    with pytest.raises((TypeError, ValueError), match="mmap"):
        writer.row(2, RowKind.START, 0, value=43)
    if records:
        with pytest.raises((TypeError, ValueError), match="mmap"):
            writer.side(SideKind.SUBSCRIBE, [2, 0, 6, "x > 4"])
    assert [each.read_bytes() for each in opened] == before
    assert rows_of(tmp_path) == [42]


def test_rows_survive_a_sigkill_of_their_process(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from murmur_pubsub.journal import *\n"
        "w = JournalWriter(Path(sys.argv[1]), 'b1', 0, rows_per_segment=64)\n"
        "for n in range(1000): w.row(n, RowKind.DELIVER, 0, value=n)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, cwd=Path(__file__).parents[2])
    assert ended.returncode == -signal.SIGKILL
    assert rows_of(tmp_path) == list(range(1000))


def test_a_row_whose_kind_was_not_written_is_not_there(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "b1", 0)
    for number in range(3):
        writer.row(number, RowKind.DELIVER, 0, value=number)
    writer.close()
    path = next(tmp_path.glob("*.seg"))
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + 3 * ROW.size - 2] = 0  # the kind of the last row
    path.write_bytes(data)
    assert rows_of(tmp_path) == [0, 1]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "0 bytes"),
        (b"PK\x03\x04" + b"\0" * 200, "begins with"),
        (b"MURMURsg" + b"\x63\x00" + b"\0" * 200, "schema version 99"),
    ],
)
def test_a_foreign_segment_is_refused_by_name(tmp_path: Path, content: bytes, found: str) -> None:
    path = tmp_path / "b1-0-00000.seg"
    path.write_bytes(content)
    with pytest.raises(InputError, match=found) as caught:
        read_segment(path)
    assert str(path) in caught.value.place
    side = tmp_path / "b1-0-00000.blob"
    side.write_bytes(content)
    with pytest.raises(InputError, match="begins with" if content else found) as caught:
        list(read_side(side))
    assert str(side) in caught.value.place


def test_a_segment_cut_inside_a_row_is_refused_with_the_place(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "b1", 0)
    writer.row(1, RowKind.START, 0)
    writer.row(2, RowKind.STOP, 0)
    writer.close()
    path = next(tmp_path.glob("*.seg"))
    os.truncate(path, HEADER_BYTES + ROW.size + 5)
    with pytest.raises(InputError, match="a row of 5 bytes") as caught:
        read_segment(path)
    assert f"byte {HEADER_BYTES + ROW.size}" in caught.value.place


@pytest.mark.parametrize(("left", "found"), [(60, "bytes more"), (RECORD.size, "bytes more"), (None, "3 bytes more")])
def test_a_damaged_side_file_is_refused_with_the_place(tmp_path: Path, left: int | None, found: str) -> None:
    writer = JournalWriter(tmp_path, "b1", 0)
    writer.side(SideKind.EVENT, [1, 2, 3, b"x" * 50])
    writer.close()
    path = next(tmp_path.glob("*.blob"))
    os.truncate(path, path.stat().st_size - 3 if left is None else HEADER_BYTES + left)
    with pytest.raises(InputError, match=found) as caught:
        list(read_side(path))
    assert f"byte {HEADER_BYTES}" in caught.value.place


def test_a_file_has_its_name_once_its_header_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    allocate = os.posix_fallocate

    def look(descriptor: int, begin: int, size: int) -> None:
        allocate(descriptor, begin, size)
        seen.extend(path.name for ending in ("seg", "blob") for path in tmp_path.glob(f"*.{ending}"))

    monkeypatch.setattr(os, "posix_fallocate", look)
    JournalWriter(tmp_path, "b0", 0).close()
    assert seen == []
    assert [path.name for path in tmp_path.iterdir()] == ["b0-0-00000.seg"]


def test_a_full_disk_is_an_error_and_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = JournalWriter(tmp_path, "b1", 0, rows_per_segment=4)

    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    for number in range(4):
        writer.row(number, RowKind.DELIVER, 0, value=number)
    with pytest.raises(DiskError, match=r"b1-0-00001\.seg: No space left"):
        writer.row(4, RowKind.DELIVER, 0, value=4)
    writer.close()
    assert rows_of(tmp_path) == [0, 1, 2, 3]


def test_the_files_of_a_node_are_small_at_first_and_few_in_the_end(tmp_path: Path) -> None:
    """Thousands of nodes have a journal each, and one node may write gigabytes."""
    writer = JournalWriter(tmp_path, "b1", 0, rows_per_segment=2)
    for number in range(2 + 4 + 8 + 16 + 32 + 32 + 1):
        writer.row(number, RowKind.DELIVER, 0)
    kib = [64, 128, 256, 512, 1_024, 2_048, 4_096, 4_096]
    for size in kib[:-1]:
        writer.side(SideKind.EVENT, exactly(size * 1_024 - HEADER_BYTES))
    writer.side(SideKind.EVENT, exactly(100))
    segments = [read_header("", path.read_bytes(), MAGIC_ROWS) for path in sorted(tmp_path.glob("*.seg"))]
    assert [(each.allocated - HEADER_BYTES) // ROW.size for each in segments] == [2, 4, 8, 16, 32, 32, 32]
    sides = [read_header("", path.read_bytes(), MAGIC_SIDE) for path in sorted(tmp_path.glob("*.blob"))]
    assert [each.allocated for each in sides] == [size * 1_024 for size in kib]
    writer.close()


def exactly(size: int) -> list[bytes]:
    """The fields of a record that takes so many bytes of a side file."""
    beside = RECORD.size + len(msgpack.packb([b"x" * size])) - size
    return [b"x" * (size - beside)]


def test_a_record_that_just_fits_is_in_the_same_side_file_and_one_that_does_not_in_the_next(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "b1", 0)
    room = 64 * 1_024 - HEADER_BYTES
    writer.side(SideKind.EVENT, exactly(1_000))
    writer.side(SideKind.EVENT, exactly(room - 1_000))
    assert len(list(tmp_path.glob("*.blob"))) == 1
    writer.side(SideKind.EVENT, exactly(200_000))
    first, second = sorted(tmp_path.glob("*.blob"))
    assert [len(list(read_side(path))) for path in (first, second)] == [2, 1]
    assert second.stat().st_size == HEADER_BYTES + 200_000, "more than it would have been given, and no more than that"
    writer.close()


def test_where_files_are_memory_rows_are_seen_when_they_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a browser."""
    monkeypatch.setattr(sys, "platform", "emscripten")
    writer = JournalWriter(tmp_path, "b1", 0)
    for number in range(3):
        writer.row(number, RowKind.DELIVER, 0, value=number)
        assert rows_of(tmp_path) == list(range(number))
        writer.show()
        assert rows_of(tmp_path) == list(range(number + 1))
    writer.close()
    assert rows_of(tmp_path) == [0, 1, 2]


def test_a_file_says_its_version_and_the_size_of_its_rows_of_which_a_side_file_has_none() -> None:
    header = SegmentHeader(1, 0, 0)
    assert struct.unpack_from("<8sHH", header.of_segment()) == (b"MURMURsg", SCHEMA_VERSION, ROW.size)
    assert struct.unpack_from("<8sHH", header.of_side_file()) == (b"MURMURbl", SCHEMA_VERSION, 0)
