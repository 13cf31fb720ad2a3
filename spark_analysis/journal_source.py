"""Spark data sources over a run's journal: the rows of its segments, and the records of its side files.

Segments are read where they lie: a partition is a handful of files, each mapped to Arrow columns without a
loop over rows. `position` numbers the rows of one writer across its segments, from the sizes of the earlier
files, so that the order in which a node did things can be told inside Spark.

Everything that can be wrong with a file is looked for by `check_journal`, in the driver and before Spark
starts, so that a damaged run ends in an `InputError` that names the file. A run cut short is not damaged: the
last segment of a writer that was killed has unwritten rows at its end, which readers do not see, and a file
that was just being opened has nothing in it, not even a header.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
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

from pubsub.errors import InputError
from pubsub.journal import HEADER_BYTES, ROW, RowKind, SideKind, check_segment, parse_segment, parse_side
from pubsub.journal_store import JournalStore, store_at

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
_PARTITION_BYTES_MAX = 16 << 20
_PARTITION_BYTES_MIN = 1 << 20
_BATCH_RECORDS = 50_000
SMALL_JOURNAL_BYTES = 32 << 20
_CHECK_TASKS = 64
_NAME = re.compile(r"(?P<series>.+-\d+)-(?P<number>\d+)\.(?:seg|blob)")


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

    A file that was just being opened is left out. Raises `InputError` for a file whose name is no journal
    file's, or that follows a missing one.
    """
    series: dict[str, list[tuple[int, str, int]]] = {}
    for name, size in store.sizes(ending).items():
        parts = _NAME.fullmatch(name)
        if parts is None:
            raise InputError(store.name_of(name), "a file of that name", f"<node>-<incarnation>-<number>.{ending}")
        series.setdefault(parts["series"], []).append((int(parts["number"]), name, size))
    files: list[JournalFile] = []
    for name_of_series, numbered in series.items():
        position = 0
        for expected, (number, name, size) in enumerate(sorted(numbered)):
            if number != expected:
                allowed = f"number {expected} of {name_of_series} first"
                raise InputError(store.name_of(name), f"number {number}", allowed)
            if expected == len(numbered) - 1 and _was_just_opened(store, name, size):
                break
            files.append(JournalFile(name, size, position))
            position += (size - HEADER_BYTES) // ROW.size if ending == "seg" else size
    return files


def check_journal(store: JournalStore) -> int:
    """The size of the journal in bytes; raises `InputError`, naming the file, if one cannot be read to its end.

    The records of a journal above `SMALL_JOURNAL_BYTES` are not looked at: `check_side_files` does that in Spark.
    """
    segments = journal_files(store, "seg")
    if not segments:
        raise InputError(store.place, "no segment (*.seg)", "the journal of a run")
    for file in segments:
        check_segment(store.name_of(file.name), store.read(file.name, HEADER_BYTES), file.size)
    side_files = journal_files(store, "blob")
    size = sum(file.size for file in (*segments, *side_files))
    if size <= SMALL_JOURNAL_BYTES:
        for file in side_files:
            _check_records(store, file.name)
    return size


def check_side_files(spark: SparkSession, place: str, journal_bytes: int) -> None:
    """Raise `InputError` for a side file of a large journal that cannot be read to its end."""
    if journal_bytes <= SMALL_JOURNAL_BYTES:
        return

    def troubles(names: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        store = store_at(place)
        for name in names:
            try:
                _check_records(store, name)
            except InputError as error:
                yield error.place, error.found, error.allowed

    names = [file.name for file in journal_files(store_at(place), "blob")]
    found = spark.sparkContext.parallelize(names, min(len(names), _CHECK_TASKS) or 1).mapPartitions(troubles).collect()
    if found:
        raise InputError(*min(found))


def _check_records(store: JournalStore, name: str) -> None:
    for _ in parse_side(store.name_of(name), store.read(name)):
        pass


def _was_just_opened(store: JournalStore, name: str, size: int) -> bool:
    """Was its writer killed between making the file and writing its header?"""
    return size == 0 or (size > HEADER_BYTES and not any(store.read(name, HEADER_BYTES)))


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
        if kind == SideKind.EVENT:
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
    """The tables of the journal at a path or URI; see the schemas above. `kept`: the rows are in Spark's memory."""

    place: str
    rows: DataFrame
    events: DataFrame
    subscriptions: DataFrame
    kept: bool = False

    def of(self, *kinds: RowKind) -> DataFrame:
        """The rows of these kinds."""
        numbers = [int(kind) for kind in kinds]
        if self.kept:
            return self.rows.where(F.col("kind").isin(numbers))
        source = self.rows.sparkSession.read.format("murmur-rows")
        return source.option("kinds", ",".join(map(str, numbers))).load(self.place)


def read_journal(spark: SparkSession, place: str) -> Journal:
    """The tables of the journal at a path or URI, not read yet; `check_journal` says beforehand what is wrong there."""
    for source in (JournalRows, JournalEvents, JournalSubscriptions):
        spark.dataSource.register(source)
    rows, events, subscriptions = (
        spark.read.format(f"murmur-{name}").load(place) for name in ("rows", "events", "subscriptions")
    )
    return Journal(place, rows, events, subscriptions)
