"""Reads a journal while it is being written, or long after: each row once, in the order of emulated time.

A segment may still grow: its writer has allocated it whole, and a row that is not written yet has kind zero. Files are
read and not mapped, because a writer that closes a file cuts it, and a map of what was cut off ends the process that
looks at it.
"""

import os
from pathlib import Path

import numpy as np

from murmur_pubsub.journal_format import HEADER_BYTES, MAGIC_ROWS, ROW, FileName, parse_name, read_header
from murmur_pubsub.journal_rows import ROW_TYPE

_ROWS_AT_ONCE, _ROWS_AT_LEAST = 4_096, 128
"""How many rows are asked for at once: the more, the more there were the time before."""
_NO_ROWS = np.empty(0, dtype=ROW_TYPE)
NEVER_US = (1 << 63) - 1


class _Series:
    """The segments of one incarnation of one writer, as far as they were read."""

    def __init__(self, folder: Path, first: FileName) -> None:
        self._folder = folder
        self._name = first
        self._descriptor: int | None = None
        self._offset = HEADER_BYTES
        self._at_once = _ROWS_AT_ONCE
        self._read = _NO_ROWS
        """Rows that were read and not yet asked for."""

    def until(self, time_us: int) -> list[np.ndarray]:
        """The rows up to that time that have not been handed out, in pieces."""
        pieces = []
        while len(self._read) or self._read_on():
            later = np.flatnonzero(self._read["time_us"] > time_us)
            end = int(later[0]) if len(later) else len(self._read)
            if end:
                pieces.append(self._read[:end])
            self._read = self._read[end:]
            if len(self._read):
                break
        return pieces

    def last_us(self) -> int:
        """The latest time in all rows that are left, which are read and forgotten."""
        latest_us = 0
        while len(self._read) or self._read_on():
            latest_us = max(latest_us, int(self._read["time_us"].max()))
            self._read = _NO_ROWS
        return latest_us

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _read_on(self) -> bool:
        """Take some more rows from the file, or from the next one of the series; False: there are none yet."""
        while True:
            if self._descriptor is None and not self._open():
                return False
            assert self._descriptor is not None
            data = os.pread(self._descriptor, self._at_once * ROW.size, self._offset)
            rows = np.frombuffer(data, dtype=ROW_TYPE, count=len(data) // ROW.size)
            unwritten = np.flatnonzero(rows["kind"] == 0)
            if len(unwritten):
                rows = rows[: unwritten[0]]
            self._at_once = min(_ROWS_AT_ONCE, max(_ROWS_AT_LEAST, 4 * len(rows)))
            if len(rows):
                self._offset += len(rows) * ROW.size
                self._read = rows
                return True
            following = self._name._replace(number=self._name.number + 1)
            # A writer opens the next file before it closes one, so what this one holds when the next is there is all.
            if not (self._folder / str(following)).exists() or not self._is_read():
                return False
            self.close()
            self._name, self._offset = following, HEADER_BYTES

    def _is_read(self) -> bool:
        """Is nothing left of this file, now that the next one is there?"""
        assert self._descriptor is not None
        data = os.pread(self._descriptor, ROW.size, self._offset)
        return len(data) < ROW.size or not data[-2]

    def _open(self) -> bool:
        path = self._folder / str(self._name)
        descriptor = os.open(path, os.O_RDONLY)
        header = os.pread(descriptor, HEADER_BYTES, 0)
        if not any(header):  # it was just made
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        read_header(str(path), header, MAGIC_ROWS)
        return True


class JournalTail:
    """All writers of the journal in a folder. Raises `InputError` for a file that is no segment of this version."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._series: dict[tuple[str, int], _Series] = {}

    def until(self, time_us: int = NEVER_US) -> np.ndarray:
        """The rows (dtype `ROW_TYPE`) up to that emulated time that were not handed out before, in order of time."""
        self._look_for_writers()
        pieces = [piece for series in self._series.values() for piece in series.until(time_us)]
        if not pieces:
            return _NO_ROWS
        if len(pieces) == 1:
            return pieces[0]
        rows = np.concatenate(pieces)
        return rows[np.argsort(rows["time_us"], kind="stable")]

    def last_us(self) -> int:
        """The latest time in all rows that were not handed out; they never will be."""
        self._look_for_writers()
        return max((series.last_us() for series in self._series.values()), default=0)

    def close(self) -> None:
        """Let go of all files."""
        for series in self._series.values():
            series.close()

    def _look_for_writers(self) -> None:
        for entry in os.scandir(self._folder):
            parts = parse_name(entry.name) if entry.name.endswith("-00000.seg") else None
            if parts is not None and (parts.writer, parts.incarnation) not in self._series:
                self._series[parts.writer, parts.incarnation] = _Series(self._folder, parts)


def last_row_us(folder: Path) -> int:
    """The emulated time of the latest row of the journal there (0: it has none)."""
    tail = JournalTail(folder)
    try:
        return tail.last_us()
    finally:
        tail.close()
