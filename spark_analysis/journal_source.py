"""Spark data sources over a run's journal: the rows of its segments, and the records of its side files.

Segments are read where they lie: a partition is a handful of files, each mapped to Arrow columns without a
loop over rows. `position` numbers the rows of one writer across its segments, from the sizes of the earlier
files, so that the order in which a node did things can be told inside Spark.

What can be wrong with a file is looked for beforehand (`spark_analysis.journal_check`). A run cut short is not damaged:
the last segment of a writer that was killed has unwritten rows at its end, which readers do not see, and a file
that was just being opened has nothing in it, not even a header.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from murmur_pubsub.journal import RowKind, SideKind, parse_side
from murmur_pubsub.journal_format import HEADER_BYTES, ROW, parse_name
from murmur_pubsub.journal_rows import parse_segment
from murmur_pubsub.journal_store import JournalStore, store_at
from spark_analysis.worker import settle

ROWS_SCHEMA = StructType(
    [
        StructField("time_us", LongType(), False),
        StructField("kind", ShortType(), False),
        StructField("node", IntegerType(), False),
        StructField("source", IntegerType(), False),
        StructField("sequence", LongType(), False),
        StructField("peer", IntegerType(), False),
        StructField("hops", ShortType(), False),
        StructField("bytes", IntegerType(), False),
        StructField("value", LongType(), False),
        StructField("incarnation", IntegerType(), False),
        StructField("position", LongType(), False),
    ]
)
EVENTS_SCHEMA = StructType(
    [
        StructField("source", IntegerType(), False),
        StructField("sequence", LongType(), False),
        StructField("time_us", LongType(), False),
        StructField("attributes", BinaryType(), False),
    ]
)
SUBSCRIPTIONS_SCHEMA = StructType(
    [
        StructField("time_us", LongType(), False),
        StructField("node", IntegerType(), False),
        StructField("subscriber", LongType(), False),
        StructField("filter", StringType(), False),
        StructField("ordinal", LongType(), False),
        StructField("withdrawn", BooleanType(), False),
        StructField("position", LongType(), False),
    ]
)
_PARTITION_BYTES_MAX = 32 << 20
_PARTITION_BYTES_MIN = 1 << 20
_BATCH_RECORDS = 50_000
SMALL_JOURNAL_BYTES = 32 << 20


@dataclass(frozen=True)
class JournalFile:
    """A journal file: `first_position` is the position of its first row or byte in its writer's series."""

    name: str
    size: int
    first_position: int


@dataclass
class FileGroup(InputPartition):
    """Files read by one Spark task."""

    files: tuple[JournalFile, ...]

    def __init__(self, files: Sequence[JournalFile]) -> None:
        super().__init__(None)
        self.files = tuple(files)


def journal_files(store: JournalStore, ending: str) -> list[JournalFile]:
    """The journal files of a store with the ending "seg" or "blob", in order of writer and number.

    A file that was just being opened is left out.
    """
    series: dict[tuple[str, int], list[tuple[int, str, int]]] = {}
    for name, size in store.sizes(ending).items():
        parts = parse_name(name)
        if parts is not None:
            series.setdefault((parts.writer, parts.incarnation), []).append((parts.number, name, size))
    files: list[JournalFile] = []
    for numbered in series.values():
        position = 0
        for order, (_, name, size) in enumerate(sorted(numbered), 1):
            if order == len(numbered) and _was_just_opened(store, name):
                break
            files.append(JournalFile(name, size, position))
            position += (size - HEADER_BYTES) // ROW.size if ending == "seg" else size
    return files


def _was_just_opened(store: JournalStore, name: str) -> bool:
    """Was its writer killed between making the file and writing its header?"""
    return not any(store.read(name, HEADER_BYTES))


def _grouped(files: Sequence[JournalFile]) -> list[FileGroup]:
    """Neighbouring files together, so that each core has some groups and none is large."""
    total = sum(file.size for file in files)
    target = min(_PARTITION_BYTES_MAX, max(_PARTITION_BYTES_MIN, total // (2 * (os.cpu_count() or 1))))
    groups: list[list[JournalFile]] = []
    filled = target
    for file in files:
        if filled >= target:
            groups.append([])
            filled = 0
        groups[-1].append(file)
        filled += file.size
    return [FileGroup(group) for group in groups]


class _RowsReader(DataSourceReader):
    """Rows, of some kinds only if that is what is asked for: the others do not leave the reader.

    The kinds are an option of the source, and no filter that Spark pushes down: one that it pushes for one use of a
    table holds for every other use of the same table (Spark 4.3).
    """

    def __init__(self, place: str, kinds: Sequence[int]) -> None:
        self._place = place
        self._kinds = kinds

    def partitions(self) -> Sequence[InputPartition]:
        return _grouped(journal_files(store_at(self._place), "seg")) or [FileGroup(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FileGroup)
        settle()
        schema = to_arrow_schema(ROWS_SCHEMA)
        store = store_at(self._place)
        for file in partition.files:
            header, rows = parse_segment(store.name_of(file.name), store.read(file.name))
            chosen = np.flatnonzero(np.isin(rows["kind"], self._kinds) if self._kinds else rows["kind"])
            columns = {name: rows[name][chosen] for name in rows.dtype.names or ()}
            columns["incarnation"] = np.full(len(chosen), header.incarnation)
            columns["position"] = file.first_position + chosen
            arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class _SideReader(DataSourceReader):
    """Records of some kinds, in batches; `_values` makes the columns' values of one record."""

    def __init__(self, place: str, schema: StructType) -> None:
        self._place = place
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return _grouped(journal_files(store_at(self._place), "blob")) or [FileGroup(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FileGroup)
        settle()
        gathered: list[tuple[Any, ...]] = []
        store = store_at(self._place)
        for file in partition.files:
            records = parse_side(store.name_of(file.name), store.read(file.name))
            for number, (kind, fields) in enumerate(records):
                values = self._values(kind, fields, file.first_position + number)
                if values is not None:
                    gathered.append(values)
                if len(gathered) == _BATCH_RECORDS:
                    yield self._batch(gathered)
                    gathered = []
        if gathered:
            yield self._batch(gathered)

    def _values(self, kind: SideKind, fields: list[Any], position: int) -> tuple[Any, ...] | None:
        raise NotImplementedError

    def _batch(self, gathered: list[tuple[Any, ...]]) -> pa.RecordBatch:
        schema = to_arrow_schema(self._schema)
        columns = zip(zip(*gathered, strict=True), schema, strict=True)
        return pa.RecordBatch.from_arrays([pa.array(list(each), field.type) for each, field in columns], schema=schema)


class _EventsReader(_SideReader):
    def _values(self, kind: SideKind, fields: list[Any], position: int) -> tuple[Any, ...] | None:
        return tuple(fields) if kind == SideKind.EVENT else None


class _SubscriptionsReader(_SideReader):
    def _values(self, kind: SideKind, fields: list[Any], position: int) -> tuple[Any, ...] | None:
        if kind not in (SideKind.SUBSCRIBE, SideKind.UNSUBSCRIBE):
            return None
        return (*fields, kind == SideKind.UNSUBSCRIBE, position)


class _JournalSource(DataSource):
    @property
    def _place(self) -> str:
        return str(self.options["path"])


class JournalRows(_JournalSource):
    """Format `murmur-rows`: every written row of every segment of a journal (`ROWS_SCHEMA`).

    Option `kinds`: only rows of these, as numbers with commas between.
    """

    @classmethod
    def name(cls) -> str:
        return "murmur-rows"

    def schema(self) -> StructType:
        return ROWS_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        kinds = self.options.get("kinds")
        return _RowsReader(self._place, [int(kind) for kind in kinds.split(",")] if kinds else ())


class JournalEvents(_JournalSource):
    """Format `murmur-events`: the published events (`EVENTS_SCHEMA`; attributes as one msgpack map)."""

    @classmethod
    def name(cls) -> str:
        return "murmur-events"

    def schema(self) -> StructType:
        return EVENTS_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return _EventsReader(self._place, EVENTS_SCHEMA)


class JournalSubscriptions(_JournalSource):
    """Format `murmur-subscriptions`: subscriptions issued and withdrawn (`SUBSCRIPTIONS_SCHEMA`)."""

    @classmethod
    def name(cls) -> str:
        return "murmur-subscriptions"

    def schema(self) -> StructType:
        return SUBSCRIPTIONS_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return _SubscriptionsReader(self._place, SUBSCRIPTIONS_SCHEMA)


@dataclass(frozen=True, slots=True)
class Journal:
    """The tables of the journal at a path or URI; see the schemas above. `kept`: the rows are in Spark's memory.
    `small`: the driver has read it."""

    place: str
    rows: DataFrame
    events: DataFrame
    subscriptions: DataFrame
    kept: bool = False
    small: bool = False

    def of(self, *kinds: RowKind) -> DataFrame:
        """The rows of these kinds."""
        numbers = [int(kind) for kind in kinds]
        if self.kept:
            return self.rows.where(F.col("kind").isin(numbers))
        source = self.rows.sparkSession.read.format("murmur-rows")
        return source.option("kinds", ",".join(map(str, numbers))).load(self.place)


def read_journal_here(spark: SparkSession, place: str) -> Journal:
    """The tables of a small journal, read by this process: each source of Spark's would start processes of Python, and
    that takes longer than reading."""

    def table(reader: DataSourceReader, schema: StructType) -> DataFrame:
        batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
        whole = pa.Table.from_batches(batches, to_arrow_schema(schema)).combine_chunks()  # a chunk becomes a partition
        return spark.createDataFrame(whole, schema)

    return Journal(
        place,
        table(_RowsReader(place, ()), ROWS_SCHEMA),
        table(_EventsReader(place, EVENTS_SCHEMA), EVENTS_SCHEMA),
        table(_SubscriptionsReader(place, SUBSCRIPTIONS_SCHEMA), SUBSCRIPTIONS_SCHEMA),
        kept=True,
        small=True,
    )


def read_journal(spark: SparkSession, place: str) -> Journal:
    """The tables of the journal at a path or URI, not read yet."""
    for source in (JournalRows, JournalEvents, JournalSubscriptions):
        spark.dataSource.register(source)
    rows, events, subscriptions = (
        spark.read.format(f"murmur-{name}").load(place) for name in ("rows", "events", "subscriptions")
    )
    return Journal(place, rows, events, subscriptions)
