"""The journal: what every node leaves behind, in a form that survives the kill of its process.

A journal is a series of segment files in a run's `journal/` folder. A segment (`<name>-<incarnation>-<n>.seg`)
is a header and fixed-width rows in a shared memory map: a row is in the page cache as soon as it is written,
so it outlives a SIGKILL, and it costs no system call. The row's kind is its last field and zero means
"not written": a kill in the middle of a row leaves a row that readers do not see. The space of a segment is
allocated before it is mapped, so a full disk is an `OSError` when a segment is opened, never a SIGBUS later.

Things of variable size (the attributes of an event, the text of a filter) go to side files of the same name
with the ending `.blob`, as records `u32 length, u8 kind, msgpack array`; the kind is written last here too.

The schema is this module; `SCHEMA_VERSION` changes when a field does. Times are emulated microseconds.
"""

import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from pubsub.errors import InputError

SCHEMA_VERSION = 2

ROW = struct.Struct("<qqqiiiihBx")
"""time_us, sequence, value, node, source, peer, bytes, hops, kind (written last)."""

ROW_TYPE = np.dtype(
    {
        "names": ["time_us", "sequence", "value", "node", "source", "peer", "bytes", "hops", "kind"],
        "formats": ["<i8", "<i8", "<i8", "<i4", "<i4", "<i4", "<i4", "<i2", "u1"],
        "offsets": [0, 8, 16, 24, 28, 32, 36, 40, 42],
        "itemsize": ROW.size,
    }
)

_ROW_BYTES = ROW.size

_HEADER = struct.Struct("<8sHHiiiq")
"""magic, schema version, row size, node, incarnation, number, reserved."""
_MAGIC_ROWS = b"MURMURsg"
_MAGIC_BLOB = b"MURMURbl"
HEADER_BYTES = 64
_RECORD = struct.Struct("<IB")

NONE = -1
"""Stands in a row for 'no node, no publisher, no sequence number'."""


class RowKind(IntEnum):
    """What a row says; the comment names the fields in use besides time_us and node."""

    START = 1  # value: incarnation
    STOP = 2  # value: 0 clean
    LINK_UP = 3  # peer
    LINK_DOWN = 4  # peer
    SUBSCRIBE = 5  # source: subscriber number, sequence: ordinal in the script; the filter is in the side file
    UNSUBSCRIBE = 6  # the same
    PUBLISH = 7  # source, sequence, value: subscriber-visible size in bytes of the attributes
    SEND = 8  # source, sequence (of the event carried, if any), peer, hops, bytes, value: message kind
    RECEIVE = 9  # source, sequence, peer, hops, value: message kind
    DELIVER = 10  # source, sequence, hops, value: subscriber number
    DROP = 11  # source, sequence, peer, hops, value: DropReason
    SETTLED = 12  # value: every (un)subscription issued up to that time has settled
    PHASE = 13  # value: Phase that begins
    FAULT = 14  # sequence: step of the plan, peer: its other node or machine, value: FaultKind, hops: FaultStage
    MALFORMED = 15  # peer: it sent a frame or message that cannot be understood, or that is not for it to send
    REFUSED = 16  # hops: Refusal, value: how many connections were, for that reason, since the last such row
    LAG = 17  # value: how many microseconds the node is behind emulated time
    PROTOCOL = 18  # source, sequence, peer, bytes: topic, value (effect Record)
    PAUSE = 19  # peer: the link whose queue is full; value: 1 input is paused, 0 it goes on
    DUPLICATE = 20  # source, sequence, peer, hops: the link model sent a second copy


class DropReason(IntEnum):
    """Why a message did not reach its peer."""

    LOSS = 1
    OVERFLOW = 2
    UNREACHABLE = 3
    LINK_BROKEN = 4
    NODE_DOWN = 5


class Refusal(IntEnum):
    """Why a connection never became one of a peer."""

    TOO_LARGE = 1  # it sent more than a greeting
    NO_GREETING = 2  # it sent something else, or a greeting of another version
    NO_PROOF = 3  # it does not know the run's token
    TOO_SLOW = 4  # it had not proven itself in time
    LEFT = 5  # it was closed before it had
    TOO_MANY = 6  # it had waited longest when there were too many
    NO_LINK = 7  # it knows the token, but there is no link between the two nodes


class FaultStage(IntEnum):
    """A fault has two rows, so that what happened between order and effect is not misread."""

    ORDERED = 0
    IN_EFFECT = 1


class Phase(IntEnum):
    """The course of a run."""

    STARTING = 1
    SUBSCRIBING = 2
    PUBLISHING = 3
    DRAINING = 4
    STOPPED = 5


class SideKind(IntEnum):
    """Records of the side files."""

    EVENT = 1  # [source, sequence, time_us, blob]
    SUBSCRIBE = 2  # [time_us, node, subscriber, filter text, ordinal]
    UNSUBSCRIBE = 3  # the same


def inputs_file(name: str, incarnation: int) -> str:
    """The name of the file with the inputs of a node's incarnation, beside its journal (`pubsub.kept_inputs`)."""
    return f"{name}-{incarnation}.inputs"


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """Who wrote a segment or side file: node and incarnation, and its number in the series."""

    node: int
    incarnation: int
    number: int

    def of_segment(self) -> bytes:
        """The beginning of a file of rows."""
        return self._packed(_MAGIC_ROWS, ROW.size)

    def of_side_file(self) -> bytes:
        """The beginning of a file of records."""
        return self._packed(_MAGIC_BLOB, 0)

    def _packed(self, magic: bytes, row_bytes: int) -> bytes:
        packed = _HEADER.pack(magic, SCHEMA_VERSION, row_bytes, self.node, self.incarnation, self.number, 0)
        return packed.ljust(HEADER_BYTES, b"\0")


class _MappedFile:
    """A file of stated size, allocated on disk and mapped; cut to what was used when it is closed."""

    def __init__(self, path: Path, size: int, header: bytes) -> None:
        self.path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.posix_fallocate(descriptor, 0, size)
            self.map = mmap.mmap(descriptor, size)
        except OSError:
            os.unlink(path)
            raise
        finally:
            os.close(descriptor)
        self.size = size
        self.map[: len(header)] = header
        self.used = HEADER_BYTES

    def close(self) -> None:
        self.map.close()
        os.truncate(self.path, self.used)


class JournalWriter:
    """Appends rows and side records for one incarnation of one node (or for a whole virtual run).

    `folder` must exist; `rows_per_segment` is the size of the first segment, later ones grow up to 16 times
    that. Raises OSError when the disk is full; what was written stays readable.
    """

    def __init__(self, folder: Path, name: str, node: int, incarnation: int = 0, rows_per_segment: int = 8_192) -> None:
        self._folder = folder
        self._name = name
        self._node = node
        self._incarnation = incarnation
        self._rows_per_segment = rows_per_segment
        self._rows_max = rows_per_segment * 16
        self._segment_number = 0
        self._blob_number = 0
        self._pack_row = ROW.pack_into
        self._pack_side = msgpack.Packer().pack
        self._segment = self._open_segment()
        self._blob: _MappedFile | None = None

    def row(
        self,
        time_us: int,
        kind: int,
        node: int,
        source: int = NONE,
        sequence: int = NONE,
        peer: int = NONE,
        hops: int = 0,
        size: int = 0,
        value: int = 0,
    ) -> None:
        """Append one row; the fields are those of `ROW`, their use those of `RowKind`."""
        segment = self._segment
        if segment.used + _ROW_BYTES > segment.size:
            segment = self._next_segment()
        self._pack_row(segment.map, segment.used, time_us, sequence, value, node, source, peer, size, hops, kind)
        segment.used += _ROW_BYTES

    def side(self, kind: SideKind, fields: Sequence[Any]) -> None:
        """Append one record to the side file."""
        body = self._pack_side(fields)
        need = _RECORD.size + len(body)
        blob = self._blob
        if blob is None or blob.used + need > blob.size:
            blob = self._next_blob(need)
        start = blob.used
        blob.map[start + _RECORD.size : start + need] = body
        _RECORD.pack_into(blob.map, start, len(body), kind)
        blob.used += need

    def close(self) -> None:
        """Cut the open files to what is used. The writer cannot be used afterwards."""
        self._segment.close()
        if self._blob is not None:
            self._blob.close()

    def _next_segment(self) -> _MappedFile:
        following = self._open_segment()
        self._segment.close()
        self._segment = following
        return following

    def _open_segment(self) -> _MappedFile:
        path = self._folder / f"{self._name}-{self._incarnation}-{self._segment_number:05d}.seg"
        size = HEADER_BYTES + ROW.size * self._rows_per_segment
        header = SegmentHeader(self._node, self._incarnation, self._segment_number)
        opened = _MappedFile(path, size, header.of_segment())
        self._segment_number += 1
        self._rows_per_segment = min(self._rows_per_segment * 2, self._rows_max)
        return opened

    def _next_blob(self, need: int) -> _MappedFile:
        path = self._folder / f"{self._name}-{self._incarnation}-{self._blob_number:05d}.blob"
        size = max(HEADER_BYTES + need, min(65_536 << self._blob_number, 4 << 20))
        header = SegmentHeader(self._node, self._incarnation, self._blob_number)
        following = _MappedFile(path, size, header.of_side_file())
        if self._blob is not None:
            self._blob.close()
        self._blob = following
        self._blob_number += 1
        return following


def read_segment(path: Path) -> tuple[SegmentHeader, np.ndarray]:
    """`parse_segment` of a file."""
    return parse_segment(str(path), path.read_bytes())


def parse_segment(path: str, data: bytes) -> tuple[SegmentHeader, np.ndarray]:
    """Header and rows (dtype `ROW_TYPE`) of one segment, as far as they were written.

    Raises `InputError` for a file that is no segment, of another schema version, or cut inside a row.
    """
    header = check_segment(path, data, len(data))
    rows = np.frombuffer(data, dtype=ROW_TYPE, offset=HEADER_BYTES)
    unwritten = np.flatnonzero(rows["kind"] == 0)
    if len(unwritten):
        rows = rows[: unwritten[0]]
    return header, rows


def check_segment(path: str, beginning: bytes, size: int) -> SegmentHeader:
    """The header of a segment of that size, which `beginning` holds; raises as `parse_segment` does."""
    header = _read_header(path, beginning, _MAGIC_ROWS)
    body = size - HEADER_BYTES
    if body % ROW.size:
        raise InputError(
            f"{path}, byte {HEADER_BYTES + body - body % ROW.size}",
            f"a row of {body % ROW.size} bytes (the file is truncated)",
            f"whole rows of {ROW.size} bytes",
        )
    return header


def read_side(path: Path) -> Iterator[tuple[SideKind, list[Any]]]:
    """`parse_side` of a file."""
    return parse_side(str(path), path.read_bytes())


def parse_side(path: str, data: bytes) -> Iterator[tuple[SideKind, list[Any]]]:
    """The records of one side file in order; raises `InputError` for a file that is none or is damaged."""
    _read_header(path, data, _MAGIC_BLOB)
    position = HEADER_BYTES
    while position + _RECORD.size <= len(data):
        length, kind = _RECORD.unpack_from(data, position)
        if kind == 0:
            return
        end = position + _RECORD.size + length
        try:
            if end > len(data):
                raise ValueError(f"it needs {end - len(data)} bytes more than the file has")
            fields = msgpack.unpackb(data[position + _RECORD.size : end])
            yield SideKind(kind), fields
        except ValueError as error:
            raise InputError(f"{path}, byte {position}", f"a damaged record ({error})", "whole records") from error
        position = end


def _read_header(path: str, data: bytes, magic: bytes) -> SegmentHeader:
    if len(data) < HEADER_BYTES:
        raise InputError(path, f"{len(data)} bytes", f"a journal file of at least {HEADER_BYTES} bytes")
    found, version, row_size, node, incarnation, number, _ = _HEADER.unpack_from(data)
    if found != magic:
        raise InputError(path, f"a file that begins with {found!r}", f"a journal file ({magic!r})")
    if version != SCHEMA_VERSION:
        raise InputError(path, f"schema version {version}", f"schema version {SCHEMA_VERSION}")
    if magic == _MAGIC_ROWS and row_size != ROW.size:
        raise InputError(path, f"rows of {row_size} bytes", f"rows of {ROW.size} bytes")
    return SegmentHeader(node, incarnation, number)
