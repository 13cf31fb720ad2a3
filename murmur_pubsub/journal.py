"""The journal: what every node leaves behind, in a form that survives the kill of its process.

A journal is a series of segment files in a run's `journal/` folder. A segment (`<name>-<incarnation>-<n>.seg`)
is a header and fixed-width rows in a shared memory map: a row is in the page cache as soon as it is written,
so it outlives a SIGKILL, and it costs no system call. The row's kind is its last field and zero means
"not written": a kill in the middle of a row leaves a row that readers do not see. The space of a segment is
allocated before it is mapped, so a full disk is a `DiskError` when a segment is opened, never a SIGBUS later.

Things of variable size (the attributes of an event, the text of a filter) go to side files of the same name
with the ending `.blob`, as records `u32 length, u8 kind, msgpack array`; the kind is written last here too.

A file is sealed when it is closed: its header then says how much of it counts, with a checksum
(`murmur_pubsub.journal_format`). A writer that is killed leaves its files open; readers take them as they lie.

The schema is this module and `murmur_pubsub.journal_format`, whose `SCHEMA_VERSION` changes when a field does.
Times are emulated microseconds.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import msgpack

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal_format import (
    HEADER_BYTES,
    KIND_AT,
    MAGIC_ROWS,
    MAGIC_SIDE,
    RECORD,
    ROW,
    FileName,
    FileState,
    SegmentHeader,
    read_header,
)
from murmur_pubsub.journal_space import space_for

RUN_WRITER = "run"
"""The writer of a whole virtual run, in its driver's name."""
FAULTS_WRITER = "faults"
"""The writer of the faults of a live run. Its number follows the driver's, as no two writers have the same."""

_ROW_BYTES = ROW.size

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
    DELIVER = 10  # source, sequence, hops, bytes: fingerprint of the event, value: subscriber number
    DROP = 11  # source, sequence, peer, hops, value: DropReason
    SETTLED = 12  # value: every (un)subscription issued up to that time has settled
    PHASE = 13  # value: Phase that begins
    FAULT = 14  # sequence: step of the plan, peer: its other node or host, value: FaultKind, hops: FaultStage
    MALFORMED = 15  # peer: it sent a frame or message that cannot be understood, or that is not for it to send
    REFUSED = 16  # hops: Refusal, value: how many connections were, for that reason, since the last such row
    LAG = 17  # value: how many microseconds the node is behind emulated time
    PROTOCOL = 18  # source, sequence, peer, bytes: topic, value (effect Record)
    PAUSE = 19  # peer: the link whose queue is full; value: 1 input is paused, 0 it goes on
    DUPLICATE = 20  # source, sequence, peer, hops: the link model sent a second copy
    ANSWER = 21  # sequence: number of the order, value: 0 carried out, 1 refused; the reason is in the side file


class DropReason(IntEnum):
    """Why a message did not reach its peer."""

    LOSS = 1  # the link model lost it
    OVERFLOW = 2  # the queue of the link was full
    UNREACHABLE = 3  # a datagram to a node that is not there, or for which the deployment has no datagrams
    LINK_BROKEN = 4  # the link broke or was cut, or a partition is between
    NODE_DOWN = 5  # the node that was to take it was down (virtual runs)


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

    ORDERED = 0  # the fault injector begins to carry it out
    IN_EFFECT = 1  # it was seen to be in force


class Phase(IntEnum):
    """The course of a run."""

    STARTING = 1  # nodes start, links come up
    SUBSCRIBING = 2  # subscriptions are issued, and settle
    PUBLISHING = 3  # events are published, faults come
    DRAINING = 4  # what is on its way arrives
    STOPPED = 5  # nodes leave


class SideKind(IntEnum):
    """Records of the side files."""

    EVENT = 1  # [source, sequence, time_us, blob]
    SUBSCRIBE = 2  # [time_us, node, subscriber, filter text, ordinal]
    UNSUBSCRIBE = 3  # the same
    ANSWER = 4  # [time_us, node, number of the order, why it was refused, or ""]


def inputs_file(name: str, incarnation: int) -> str:
    """The file with the inputs of a node's incarnation, beside its journal (`murmur_pubsub.recorded_inputs`)."""
    return f"{name}-{incarnation}.inputs"


class _OpenFile:
    """A file of stated size while it is written. `pack` makes its first bytes of its header."""

    def __init__(self, path: Path, header: SegmentHeader, pack: Callable[[SegmentHeader], bytes]) -> None:
        self.size = header.allocated
        self._space = space_for(path, self.size, pack(header))
        self.map = self._space.map
        self.used = HEADER_BYTES
        self._header = header
        self._pack = pack

    def show(self) -> None:
        """Have readers see what was written."""
        self._space.show(self.used)

    def abandon(self) -> None:
        """Close it as it is, in the way of a process that ends: somebody else has to seal it."""
        self._space.abandon()

    def seal(self, state: FileState, former: int, side_files: int = 0, side_bytes: int = 0, side: int = 0) -> int:
        """Say in the header what the file holds, cut it to that and close it; its checksum, begun from `former`."""
        with memoryview(self.map) as whole, whole[HEADER_BYTES : self.used] as body:
            checksum = zlib.crc32(body, former)
        header = replace(self._header, state=state, used=self.used, checksum=checksum)
        self.map[:HEADER_BYTES] = self._pack(
            replace(header, side_files=side_files, side_bytes=side_bytes, side_checksum=side)
        )
        self._space.close(self.used)
        return checksum


class JournalWriter:
    """Appends rows and side records for one incarnation of one node (or for a whole virtual run).

    `folder` must exist; `rows_per_segment` is the size of the first segment, later ones grow up to 16 times
    that; `run` is the run's identifier. Raises `DiskError` when the disk is full; what was written stays readable.
    """

    def __init__(
        self, folder: Path, name: str, node: int, incarnation: int = 0, rows_per_segment: int = 8_192, run: int = 0
    ) -> None:
        self._folder = folder
        self._name = name
        self._node = node
        self._incarnation = incarnation
        self._run = run
        self._rows_per_segment = rows_per_segment
        self._rows_max = rows_per_segment * 16
        self._segment_number = 0
        self._blob_number = 0
        self._checksum = self._side_checksum = self._side_bytes = 0
        self._pack_row = ROW.pack_into
        self._pack_side = msgpack.Packer().pack
        self._segment = self._open_segment()
        self._blob: _OpenFile | None = None

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
        # `struct` stores field after field in this order, and a kill falls between two stores: a row with its kind, one
        # byte that cannot be torn, is whole.
        self._pack_row(segment.map, segment.used, time_us, sequence, value, node, source, peer, size, hops, kind)
        segment.used += _ROW_BYTES

    def side(self, kind: int, fields: Sequence[Any]) -> None:
        """Append one record, of a `SideKind`, to the side file."""
        body = self._pack_side(fields)
        need = RECORD.size + len(body)
        blob = self._blob
        if blob is None or blob.used + need > blob.size:
            blob = self._next_blob(need)
        start = blob.used
        # The body first, then length and kind: a record whose kind a reader sees is whole.
        blob.map[start + RECORD.size : start + need] = body
        RECORD.pack_into(blob.map, start, len(body), kind)
        blob.used += need

    def show(self) -> None:
        """Have readers see all rows so far, where they do not anyway (`murmur_pubsub.journal_space`)."""
        self._segment.show()

    def close(self) -> None:
        """Seal the open files as the last of the series. The writer cannot be used afterwards."""
        # The side files first: the last segment's seal has their number, size and checksum.
        if self._blob is not None:
            self._close_blob(self._blob, FileState.LAST)
        self._segment.seal(FileState.LAST, self._checksum, self._blob_number, self._side_bytes, self._side_checksum)

    def abandon(self) -> None:
        """Leave the open files as a process does that is killed. The writer cannot be used afterwards."""
        self._segment.abandon()
        if self._blob is not None:
            self._blob.abandon()

    def _next_segment(self) -> _OpenFile:
        # The new one first: if the disk is full this raises, and the former one is still open and whole.
        following = self._open_segment()
        self._checksum = self._segment.seal(FileState.SEALED, self._checksum)
        self._segment = following
        return following

    def _open_segment(self) -> _OpenFile:
        size = HEADER_BYTES + ROW.size * self._rows_per_segment
        opened = self._open("seg", self._segment_number, size, SegmentHeader.of_segment)
        self._segment_number += 1
        self._rows_per_segment = min(self._rows_per_segment * 2, self._rows_max)
        return opened

    def _next_blob(self, need: int) -> _OpenFile:
        size = max(HEADER_BYTES + need, min(65_536 << self._blob_number, 4 << 20))
        following = self._open("blob", self._blob_number, size, SegmentHeader.of_side_file)
        if self._blob is not None:
            self._close_blob(self._blob, FileState.SEALED)
        self._blob = following
        self._blob_number += 1
        return following

    def _close_blob(self, blob: _OpenFile, state: FileState) -> None:
        self._side_checksum = blob.seal(state, self._side_checksum)
        self._side_bytes += blob.used

    def _open(self, ending: str, number: int, size: int, pack: Callable[[SegmentHeader], bytes]) -> _OpenFile:
        header = SegmentHeader(self._node, self._incarnation, number, self._run, allocated=size)
        name = FileName(self._name, self._incarnation, number, ending)
        return _OpenFile(self._folder / str(name), header, pack)


def written_rows(path: str, data: bytes) -> tuple[SegmentHeader, memoryview]:
    """Header and rows (of `ROW.size` bytes each) of one segment, as far as they were written.

    Raises `InputError` for a file that is no segment, of another schema version, or cut inside a row.
    """
    header = read_header(path, data, MAGIC_ROWS)
    over = (len(data) - HEADER_BYTES) % ROW.size
    if over:
        found = f"a row of {over} bytes (the file is truncated)"
        raise InputError(f"{path}, byte {len(data) - over}", found, f"whole rows of {ROW.size} bytes")
    rows = memoryview(data)[HEADER_BYTES:]
    unwritten = data[HEADER_BYTES + KIND_AT :: ROW.size].find(0)
    return header, rows if unwritten < 0 else rows[: unwritten * ROW.size]


def read_side(path: Path) -> Iterator[tuple[SideKind, list[Any]]]:
    """`parse_side` of a file."""
    return parse_side(str(path), path.read_bytes())


def parse_side(path: str, data: bytes) -> Iterator[tuple[SideKind, list[Any]]]:
    """The records of one side file in order; raises `InputError` for a file that is none or is damaged."""
    read_header(path, data, MAGIC_SIDE)
    position = HEADER_BYTES
    while position + RECORD.size <= len(data):
        length, kind = RECORD.unpack_from(data, position)
        if kind == 0:
            return
        end = position + RECORD.size + length
        try:
            if end > len(data):
                raise ValueError(f"it needs {end - len(data)} bytes more than the file has")
            fields = msgpack.unpackb(data[position + RECORD.size : end])
            yield SideKind(kind), fields
        except ValueError as error:
            raise InputError(f"{path}, byte {position}", f"a damaged record ({error})", "whole records") from error
        position = end
