"""Seals what a killed node left open, in its place: done by the driver that killed it, once the process is gone.

A killed writer leaves at most two open files of each kind: the next one is opened before the one that is full is
sealed. They are as large as they were allocated, and written from the beginning without a gap.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import JournalWriter, parse_side
from murmur_pubsub.journal_format import (
    HEADER_BYTES,
    KIND_AT,
    MAGIC_ROWS,
    MAGIC_SIDE,
    RECORD,
    ROW,
    FileState,
    SegmentHeader,
    read_header,
)


def seal_series(folder: Path, writer: str, incarnation: int) -> None:
    """Seal every file of the series; one that is damaged, and what comes after it, is left open.

    The writer's process must be gone. A file in which there is not even a header is removed.
    """
    side_files, segments = (_files(folder, f"{writer}-{incarnation}", ending) for ending in ("blob", "seg"))
    try:
        sides = _seal(side_files, MAGIC_SIDE, {})
        totals = {"side_files": len(sides), "side_bytes": sum(each.used for each in sides)}
        _seal(segments, MAGIC_ROWS, totals | {"side_checksum": sides[-1].checksum if sides else 0})
    except InputError:
        return


def seal_unheard(folder: Path, writer: str, node: int, incarnation: int, run: int) -> None:
    """Seal the series of a writer of which nobody knows whether it had begun one. If not, there is an empty one from
    now on: a series that is not there would be taken for one that was lost."""
    folder.mkdir(parents=True, exist_ok=True)
    seal_series(folder, writer, incarnation)
    if not _files(folder, f"{writer}-{incarnation}", "seg"):
        JournalWriter(folder, writer, node, incarnation, run=run).close()


def bytes_written(place: str, data: bytes) -> int:
    """How many bytes of an open file are in use, its header among them.

    Raises `InputError` for a file that is none or has a gap, or in which a record is damaged.
    """
    if data[:8] == MAGIC_SIDE:
        for _ in parse_side(place, data):
            pass
        return _end_of_records(data)
    read_header(place, data, MAGIC_ROWS)
    body = (len(data) - HEADER_BYTES) // ROW.size
    kinds = data[HEADER_BYTES + KIND_AT : HEADER_BYTES + body * ROW.size : ROW.size]
    rows = body if 0 not in kinds else kinds.index(0)
    if kinds[rows:].strip(b"\0"):
        raise InputError(f"{place}, row {rows}", "a row that was not written, and later ones that were", "no gap")
    return HEADER_BYTES + rows * ROW.size


def _end_of_records(data: bytes) -> int:
    position = HEADER_BYTES
    while position + RECORD.size <= len(data):
        length, kind = RECORD.unpack_from(data, position)
        if kind == 0:
            break
        position += RECORD.size + length
    return position


def _files(folder: Path, series: str, ending: str) -> list[Path]:
    """The files of the series in order, without one that was just being opened."""
    pattern = re.compile(rf"{re.escape(series)}-(\d+)\.{ending}")
    found = [(int(name[1]), path) for path in folder.iterdir() if (name := pattern.fullmatch(path.name))]
    paths = [path for _, path in sorted(found)]
    if paths and not any(_beginning(paths[-1])):
        paths.pop().unlink()
    return paths


def _beginning(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(HEADER_BYTES)


def _seal(paths: Sequence[Path], magic: bytes, totals: Mapping[str, int]) -> list[SegmentHeader]:
    """The headers of the files, all sealed; `totals`: what the last of segments says of the side files."""
    headers: list[SegmentHeader] = []
    for path in paths:
        header = read_header(str(path), _beginning(path), magic)
        if header.state is FileState.OPEN:
            data = path.read_bytes()
            used = bytes_written(str(path), data)
            checksum = zlib.crc32(memoryview(data)[HEADER_BYTES:used], headers[-1].checksum if headers else 0)
            header = replace(header, state=FileState.SEALED, used=used, checksum=checksum)
            if path is paths[-1]:
                header = replace(header, state=FileState.LAST_OF_DEAD, **totals)
            with path.open("r+b") as opened:
                opened.write(header.of_segment() if magic == MAGIC_ROWS else header.of_side_file())
                opened.truncate(used)
        elif path.stat().st_size > header.used:
            with path.open("r+b") as opened:  # its writer was killed between sealing and cutting it
                opened.truncate(header.used)
        headers.append(header)
    return headers
