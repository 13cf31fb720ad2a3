"""A Spark streaming source over a journal that grows: what the running judge asks of it.

The offset is how far each file was read, in bytes. What is not written yet is told from zeros: a row's or a record's
kind is written last. Spark's planner asks how far files have come; its tasks read what lies between two offsets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, ShortType, StructField, StructType

from murmur_pubsub.journal import RowKind, SideKind
from murmur_pubsub.journal_format import HEADER_BYTES, RECORD, ROW, parse_name
from murmur_pubsub.journal_rows import ROW_TYPE
from spark_analysis.running_judge import JournalBatch, SubscriptionRecord

LIVE_SCHEMA = StructType(
    [
        StructField("kind", ShortType(), False),
        StructField("time_us", LongType(), False),
        StructField("node", IntegerType(), False),
        StructField("source", LongType(), False),
        StructField("sequence", LongType(), False),
        StructField("value", LongType(), False),
        StructField("content", BinaryType(), True),
    ]
)
"""The kinds are those of rows: PUBLISH with its packed attributes, SUBSCRIBE and UNSUBSCRIBE with subscriber, ordinal
and filter as text, DELIVER with its subscriber, SETTLED with what it covers. A row of kind 0 has the newest time among
all rows of a stretch, whatever their kinds."""
_ROWS_AT_ONCE = 65_536
_TASKS = 2
_NEWEST = 0
_KINDS = (RowKind.DELIVER, RowKind.SETTLED)
_SIDE_KINDS = {
    SideKind.EVENT: RowKind.PUBLISH, SideKind.SUBSCRIBE: RowKind.SUBSCRIBE, SideKind.UNSUBSCRIBE: RowKind.UNSUBSCRIBE,
}  # fmt: skip
Offset = dict[str, int]


@dataclass
class Stretches(InputPartition):
    """What one task reads: names of files, and from which byte to which."""

    files: tuple[tuple[str, int, int], ...]

    def __init__(self, files: Sequence[tuple[str, int, int]]) -> None:
        super().__init__(None)
        self.files = tuple(files)


class GrowingJournal(DataSourceStreamReader):
    """Reads the journal in a folder of this host."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._known: Offset = {}

    def initialOffset(self) -> Offset:
        """Nothing was read."""
        return {}

    def latestOffset(self, start: Any = None, limit: Any = None) -> Offset:
        """How far all files have come."""
        names = sorted(path.name for path in self._folder.iterdir() if parse_name(path.name) is not None)
        for name in names:
            begin = self._known.get(name, HEADER_BYTES)
            ended = _rows_end if name.endswith(".seg") else _records_end
            self._known[name] = ended(self._folder / name, begin)
        return dict(self._known)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """What lies between the two."""
        fresh = [(name, start.get(name, HEADER_BYTES), to) for name, to in end.items()]
        fresh = [each for each in fresh if each[2] > each[1]]
        return [Stretches(fresh[number::_TASKS]) for number in range(_TASKS) if fresh[number::_TASKS]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of these stretches that the running judge asks for."""
        assert isinstance(partition, Stretches)
        for name, begin, end in partition.files:
            path = self._folder / name
            yield _rows(path, begin, end) if name.endswith(".seg") else _records(path, begin, end)


class LiveJournal(DataSource):
    """Format `murmur-live`: rows of a journal as they are written (`LIVE_SCHEMA`)."""

    @classmethod
    def name(cls) -> str:
        """See `pyspark.sql.datasource.DataSource`."""
        return "murmur-live"

    def schema(self) -> StructType:
        """See `pyspark.sql.datasource.DataSource`."""
        return LIVE_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """See `pyspark.sql.datasource.DataSource`."""
        return GrowingJournal(self.options["path"])


def batch_of(table: pa.Table) -> JournalBatch:
    """A micro-batch with the columns of `LIVE_SCHEMA`, as the running judge takes it."""
    columns = {
        name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names if name != "content"
    }
    kinds = columns["kind"]

    def of(kind: int, *names: str) -> Iterator[tuple[int, ...]]:
        chosen = np.flatnonzero(kinds == kind)
        return zip(*(columns[name][chosen].tolist() for name in names), strict=True)

    def contents(kind: int) -> list[bytes]:
        found: list[bytes] = table.column("content").take(pa.array(np.flatnonzero(kinds == kind))).to_pylist()
        return found

    subscriptions = [
        SubscriptionRecord(time_us, node, subscriber, wanted.decode(), ordinal, kind == RowKind.UNSUBSCRIBE)
        for kind in (RowKind.SUBSCRIBE, RowKind.UNSUBSCRIBE)
        for (time_us, node, subscriber, ordinal), wanted in zip(
            of(kind, "time_us", "node", "source", "sequence"), contents(kind), strict=True
        )
    ]
    published = zip(of(RowKind.PUBLISH, "source", "sequence", "time_us"), contents(RowKind.PUBLISH), strict=True)
    return JournalBatch(
        subscriptions,
        [(covers, time_us) for covers, time_us in of(RowKind.SETTLED, "value", "time_us")],
        [(source, sequence, time_us, blob) for (source, sequence, time_us), blob in published],
        [(a, b, c, d) for a, b, c, d in of(RowKind.DELIVER, "source", "sequence", "value", "time_us")],
        int(columns["time_us"].max(initial=0)),
    )


def _rows_end(path: Path, begin: int) -> int:
    while True:
        rows = np.fromfile(path, ROW_TYPE, _ROWS_AT_ONCE, offset=begin)
        unwritten = np.flatnonzero(rows["kind"] == 0)
        written = int(unwritten[0]) if len(unwritten) else len(rows)
        begin += written * ROW.size
        if written < _ROWS_AT_ONCE:
            return begin


def _records_end(path: Path, begin: int) -> int:
    with path.open("rb") as file:
        while True:
            file.seek(begin)
            head = file.read(RECORD.size)
            if len(head) < RECORD.size:
                return begin
            length, kind = RECORD.unpack(head)
            if not kind:
                return begin
            begin += RECORD.size + length


def _rows(path: Path, begin: int, end: int) -> pa.RecordBatch:
    rows = np.fromfile(path, ROW_TYPE, (end - begin) // ROW.size, offset=begin)
    chosen = rows[np.isin(rows["kind"], _KINDS)]
    columns = {name: chosen[name].tolist() for name in ("kind", "time_us", "node", "source", "sequence", "value")}
    columns["kind"].append(_NEWEST)
    columns["time_us"].append(int(rows["time_us"].max()))
    for name in ("node", "source", "sequence", "value"):
        columns[name].append(0)
    return _batch([*columns.values(), [None] * (len(chosen) + 1)])


def _records(path: Path, begin: int, end: int) -> pa.RecordBatch:
    with path.open("rb") as file:
        file.seek(begin)
        data = file.read(end - begin)
    found: list[tuple[Any, ...]] = []
    at = 0
    while at < len(data):
        length, kind = RECORD.unpack_from(data, at)
        at += RECORD.size + length
        if kind not in _SIDE_KINDS:
            continue
        fields = msgpack.unpackb(data[at - length : at])
        if kind == SideKind.EVENT:
            source, sequence, time_us, blob = fields
            found.append((_SIDE_KINDS[SideKind(kind)], time_us, 0, source, sequence, 0, blob))
        else:
            time_us, node, subscriber, wanted, ordinal = fields
            found.append((_SIDE_KINDS[SideKind(kind)], time_us, node, subscriber, ordinal, 0, wanted.encode()))
    return _batch([list(column) for column in zip(*found, strict=True)] if found else [[]] * len(LIVE_SCHEMA))


def _batch(columns: Sequence[list[Any]]) -> pa.RecordBatch:
    schema = to_arrow_schema(LIVE_SCHEMA)
    arrays = [pa.array(list(column), each.type) for column, each in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
