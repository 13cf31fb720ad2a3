"""The first look at a journal: each file is read once, for what is wrong with it and for what its rows come to.

Of the rows it tells how many there are of each kind and from when to when, and the few about the course of the run. So
no query has to pass over all rows for these: most of a large journal goes into Spark's tables only as far as it is of
the kind that a table needs. The driver looks at a small journal, Spark's tasks at a large one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from pyspark.sql import SparkSession

from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import parse_segment
from murmur_pubsub.journal_store import JournalStore, store_at
from spark_analysis.journal_check import Content, Damage, damage_in
from spark_analysis.worker import settle

_OF_THE_COURSE = (RowKind.SETTLED, RowKind.PHASE, RowKind.FAULT, RowKind.ANSWER)
_TASKS = 64


class Kind(NamedTuple):
    """The rows of a kind: how many, the first and the last time."""

    rows: int
    first_us: int
    last_us: int


class CourseRow(NamedTuple):
    """A row about the course of a run; see `murmur_pubsub.journal.RowKind` for what its numbers mean."""

    kind: int
    time_us: int
    sequence: int
    hops: int
    value: int


@dataclass(slots=True)
class FirstLook:
    """What was seen of some files. `course`: in the order of the files."""

    damages: list[Damage] = field(default_factory=list)
    kinds: dict[int, Kind] = field(default_factory=dict)
    course: list[CourseRow] = field(default_factory=list)

    def take(self, name: str, data: bytes) -> None:
        """Count the rows of a segment that nothing is wrong with."""
        rows = parse_segment(name, data)[1]
        times_us, kinds = rows["time_us"], rows["kind"]
        for kind, count in enumerate(np.bincount(kinds).tolist()):
            if kind and count:  # rows that were not written are of no kind
                of_kind = times_us[kinds == kind]
                self._count(kind, Kind(count, int(of_kind.min()), int(of_kind.max())))
        told = rows[np.isin(kinds, _OF_THE_COURSE)]
        self.course += map(CourseRow._make, told[list(CourseRow._fields)].tolist())

    def add(self, other: "FirstLook") -> None:
        """Take in what was seen of other files."""
        self.damages += other.damages
        self.course += other.course
        for kind, counted in other.kinds.items():
            self._count(kind, counted)

    def _count(self, kind: int, counted: Kind) -> None:
        known = self.kinds.get(kind, Kind(0, counted.first_us, counted.last_us))
        first_us, last_us = min(known.first_us, counted.first_us), max(known.last_us, counted.last_us)
        self.kinds[kind] = Kind(known.rows + counted.rows, first_us, last_us)


def look_first(store: JournalStore, contents: Iterable[Content]) -> FirstLook:
    """Look at these files in this process."""
    seen = FirstLook()
    for content in contents:
        data = store.read(content.file)
        damage = damage_in(content, data)
        if damage is not None:
            seen.damages.append(damage)
        elif content.file.endswith(".seg"):
            seen.take(store.name_of(content.file), data)
    return seen


def look_first_in_spark(spark: SparkSession, place: str, contents: Sequence[Content]) -> FirstLook:
    """The same of many files, by Spark's tasks."""

    def look(some: Iterable[Content]) -> Iterator[FirstLook]:
        settle()
        yield look_first(store_at(place), some)

    tasks = min(len(contents), _TASKS) or 1
    seen = FirstLook()
    for part in spark.sparkContext.parallelize(contents, tasks).mapPartitions(look).collect():
        seen.add(part)
    return seen
