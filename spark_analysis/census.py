"""How many rows of each kind a journal has, and from when to when; and what was published and delivered a second."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import functions as F

from murmur_pubsub.journal import RowKind
from spark_analysis.first_look import Kind
from spark_analysis.journal_source import Journal

_NAMES = {int(kind): kind.name.lower() for kind in RowKind}


@dataclass(frozen=True, slots=True)
class Census:
    """The rows of a journal. `publishing`: when it began and ended, as far as the run got."""

    kinds: Mapping[int, Kind]
    publishing: tuple[int, int]

    @property
    def first_us(self) -> int:
        """The first time in the journal."""
        return min((kind.first_us for kind in self.kinds.values()), default=0)

    @property
    def last_us(self) -> int:
        """The last time in the journal."""
        return max((kind.last_us for kind in self.kinds.values()), default=0)

    def rows_by_kind(self) -> pd.DataFrame:
        """kind, rows: how many rows of each kind there are, by the names of `murmur_pubsub.journal.RowKind`."""
        rows: Counter[str] = Counter()
        for number, kind in self.kinds.items():
            rows[_NAMES.get(number, "unknown")] += kind.rows
        return pd.DataFrame(sorted(rows.items()), columns=["kind", "rows"])

    def rates(self, journal: Journal) -> pd.DataFrame:
        """One row: begin_us and end_us of publishing, publications and deliveries between, and both for each emulated
        second (this one runs a job)."""
        begin_us, end_us = self.publishing
        seconds = max(1, end_us - begin_us) / 1_000_000
        rows = journal.of(RowKind.PUBLISH, RowKind.DELIVER)
        within = rows.where((F.col("time_us") >= begin_us) & (F.col("time_us") < end_us))
        found = {row["kind"]: row["count"] for row in within.groupBy("kind").count().collect()}
        named = (("publications", RowKind.PUBLISH), ("deliveries", RowKind.DELIVER))
        counts = {name: found.get(int(kind), 0) for name, kind in named}
        rates = {f"{name}_per_second": count / seconds for name, count in counts.items()}
        return pd.DataFrame([{"begin_us": begin_us, "end_us": end_us, **counts, **rates}])


def census_of(kinds: Mapping[int, Kind], begin_us: int | None, end_us: int | None) -> Census:
    """Publishing went on from `begin_us` until before `end_us` (None: from the first row, until the last)."""
    whole = Census(kinds, (0, 0))
    begins = whole.first_us if begin_us is None else begin_us
    ends = max(whole.last_us, begins) + 1 if end_us is None else end_us
    return Census(kinds, (begins, ends))
