"""The bytes of a journal's files: how a row lies in a segment, and what the header of every file says.

A header binds its file: it names run, writer, incarnation and number and, once the file is closed, how many bytes are
in use and their checksum. That is the seal. The checksum rolls: it begins with that of the file before it in the
series, so no file can be put in another's place. The header ends with a checksum of itself.

The last segment of a series says so, and says how many side files belong to it, how large they are and their checksum.
How many rows there are follows from the bytes in use.
"""

import re
import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from murmur_pubsub.errors import InputError

SCHEMA_VERSION = 3

ROW = struct.Struct("<qqqiiiihBx")
"""A `JournalRow`; its kind is written last."""


class JournalRow(NamedTuple):
    """A row of a segment."""

    time_us: int
    sequence: int
    value: int
    node: int
    source: int
    peer: int
    bytes: int
    hops: int
    kind: int


KIND_AT = ROW.size - 2
"""Where in a row its kind is: a byte, which is zero while the row is not written."""

RECORD = struct.Struct("<IB")
"""Before each record of a side file: its length without these bytes, and its kind (written last)."""

HEADER_BYTES = 128
MAGIC_ROWS = b"MURMURsg"
MAGIC_SIDE = b"MURMURbl"
_HEADER = struct.Struct("<8sHHiiiQqqIIqiB")
_CHECKSUM = struct.Struct("<I")
_CHECKSUM_AT = HEADER_BYTES - _CHECKSUM.size


class FileState(IntEnum):
    """How far a file has come."""

    OPEN = 0  # its writer may still be writing, or was killed
    SEALED = 1  # closed, and the next of its series was opened before that
    LAST = 2  # closed as the last of its series
    LAST_OF_DEAD = 3  # the same, but the driver closed it for a writer that was gone


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """What a segment or side file says of itself.

    `node`, `incarnation` and `number`: the writer, and the file's number in the series; `run`: the run's identifier;
    `allocated`: its size while it is open. Of a closed file: `used` bytes count, the header among them, and `checksum`
    is of those after the header. `side_files`, `side_bytes`, `side_checksum`: all side files of the series, said by its
    last segment.
    """

    node: int
    incarnation: int
    number: int
    run: int = 0
    allocated: int = 0
    state: FileState = FileState.OPEN
    used: int = 0
    checksum: int = 0
    side_files: int = 0
    side_bytes: int = 0
    side_checksum: int = 0

    def of_segment(self) -> bytes:
        """The beginning of a file of rows."""
        return self._packed(MAGIC_ROWS, ROW.size)

    def of_side_file(self) -> bytes:
        """The beginning of a file of records."""
        return self._packed(MAGIC_SIDE, 0)

    def _packed(self, magic: bytes, row_bytes: int) -> bytes:
        packed = _HEADER.pack(
            magic, SCHEMA_VERSION, row_bytes, self.node, self.incarnation, self.number, self.run, self.allocated,
            self.used, self.checksum, self.side_checksum, self.side_bytes, self.side_files, self.state,
        ).ljust(_CHECKSUM_AT, b"\0")  # fmt: skip
        return packed + _CHECKSUM.pack(zlib.crc32(packed))


def read_header(place: str, data: bytes, magic: bytes) -> SegmentHeader:
    """The header at the beginning of `data`; raises `InputError` for a file that is none of that kind and version.

    The header's own checksum is not looked at: a reader may come while the writer puts the seal there.
    """
    if len(data) < HEADER_BYTES:
        raise InputError(place, f"{len(data)} bytes", f"a journal file of at least {HEADER_BYTES} bytes")
    found, version, row_size = _HEADER.unpack_from(data)[:3]
    if found != magic:
        raise InputError(place, f"a file that begins with {found!r}", f"a journal file ({magic!r})")
    if version != SCHEMA_VERSION:
        raise InputError(place, f"schema version {version}", f"schema version {SCHEMA_VERSION}")
    if magic == MAGIC_ROWS and row_size != ROW.size:
        raise InputError(place, f"rows of {row_size} bytes", f"rows of {ROW.size} bytes")
    return _unpacked(data)


def sound_header(data: bytes) -> SegmentHeader | None:
    """The header at the beginning of `data`, if it is as it was written."""
    if len(data) < HEADER_BYTES or zlib.crc32(data[:_CHECKSUM_AT]) != _CHECKSUM.unpack_from(data, _CHECKSUM_AT)[0]:
        return None
    return _unpacked(data)


def schema_version(data: bytes) -> int | None:
    """The schema version of a journal file that begins so; None if it is no journal file."""
    if len(data) < _HEADER.size or data[:8] not in (MAGIC_ROWS, MAGIC_SIDE):
        return None
    return int(_HEADER.unpack_from(data)[1])


def _unpacked(data: bytes) -> SegmentHeader:
    (_, _, _, node, incarnation, number, run, allocated,
     used, checksum, side_checksum, side_bytes, side_files, state) = _HEADER.unpack_from(data)  # fmt: skip
    return SegmentHeader(
        node, incarnation, number, run, allocated, FileState(state) if state in _STATES else FileState.OPEN,
        used, checksum, side_files, side_bytes, side_checksum,
    )  # fmt: skip


_STATES = frozenset(FileState)


_NAME = re.compile(r"(.+)-(0|[1-9]\d*)-(\d{5,})\.(seg|blob)")


class FileName(NamedTuple):
    """The parts of a journal file's name; ending "seg" or "blob"."""

    writer: str
    incarnation: int
    number: int
    ending: str

    def __str__(self) -> str:
        return f"{self.writer}-{self.incarnation}-{self.number:05d}.{self.ending}"


def parse_name(name: str) -> FileName | None:
    """The parts of that name; None if no writer gives it to a file."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    parts = FileName(found[1], int(found[2]), int(found[3]), found[4])
    return parts if str(parts) == name else None
