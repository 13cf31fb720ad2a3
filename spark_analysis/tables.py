"""The tables of an analysis on disk: each as one Parquet and one CSV file under `RUN/analysis/`.

They are small (a row for each stretch of time, broker or distinct delay), so they pass through the driver.
Findings can be many: all of them go to Parquet, written by Spark as a folder, and the first of each kind to
CSV.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import dataset, parquet
from pyspark.sql import DataFrame

from murmur_pubsub.errors import InputError
from murmur_pubsub.json_file import check_keys, read_json, taken_apart
from murmur_pubsub.verdict_file import read_verdict, written_anew
from murmur_pubsub.whole_files import new_folder, written_to
from spark_analysis.findings_file import read_findings
from spark_analysis.given_up import REFUSED_AND_DELIVERED
from spark_analysis.metrics import bucket_width_us
from spark_analysis.spark_disk import own_files, spark_disk
from spark_analysis.table_columns import TABLES, check_columns
from spark_analysis.verdict import RefusedDelivered

FINDINGS_IN_CSV_MAX = 10_000
_ANALYSED = "a run that `murmur analyze` has been through"
SMALL_TABLES = tuple(name for name in TABLES if name not in ("findings", "faults", "damage"))
"""Those of metrics."""


@dataclass(frozen=True, slots=True)
class _Summary:
    """What has to stand in the summary of the tables."""

    bucket_us: int
    first_us: int
    last_us: int

    def __post_init__(self) -> None:
        wanted_us = bucket_width_us(self.first_us, self.last_us)
        if self.bucket_us != wanted_us:
            raise InputError("bucket_us", f"{self.bucket_us!r:.60}", f"{wanted_us}, of a run that ends then")


@dataclass(slots=True)
class FindingsFound:
    """How many findings of each kind there are and are explained (copies too many, for duplicates); `by_tables`: how
    many of them because tables were disturbed. `refused`: see `verdict.Facts`."""

    counts: Counter[str]
    explained: Counter[str]
    by_tables: int
    refused: RefusedDelivered | None = None


class AnalysisFolder:
    """`RUN/analysis`, written anew by every analysis and read by reports. It is there whole or as it was before; what
    writes raises `DiskError`."""

    def __init__(self, run: Path) -> None:
        self.folder = run / "analysis"
        self.draft: Path | None = None
        """Where a new one is written."""

    @contextmanager
    def anew(self) -> Iterator[Path]:
        """Write a new one in the block, beside the one before, whose place it takes in the end; where it is written."""
        with new_folder(self.folder) as draft:
            self.draft = draft
            yield draft

    def write(self, name: str, table: DataFrame) -> pd.DataFrame:
        """Run the table's job and write its two files; what was written."""
        frame = table.toPandas()
        self.write_frame(name, frame)
        return frame

    def write_frame(self, name: str, frame: pd.DataFrame) -> None:
        """The same for a table that no job makes."""
        check_columns(name, list(frame.columns))
        with self._place(f"{name}.parquet") as place:
            frame.to_parquet(place, index=False)
        self._write_csv(name, frame)

    def write_findings(self, table: DataFrame | pa.Table) -> FindingsFound:
        """All findings to Parquet, to CSV the first `FINDINGS_IN_CSV_MAX` of each kind by publication; how many there
        are. A table of pyarrow's is one that the driver has."""
        with self._place("findings.parquet") as path:
            if isinstance(table, pa.Table):
                check_columns("findings", table.column_names)
                path.mkdir()
                parquet.write_table(table, path / "findings.parquet")
            else:
                check_columns("findings", table.columns)
                place = self.folder / "findings.parquet"
                with spark_disk(f"{place}, or {own_files(table.sparkSession)}"):
                    table.write.parquet(str(path))
        order = ["published_us", "source", "sequence", "subscriber", "finding"]
        found = FindingsFound(Counter(), Counter(), 0)
        first = pd.DataFrame()
        for batch in dataset.dataset(path, format="parquet").to_batches():  # there may be more than memory holds
            findings = batch.to_pandas(types_mapper=_nullable)
            excused = findings[findings["explanation"].notna()]
            for counter, rows in ((found.counts, findings), (found.explained, excused)):
                for kind, count in rows.groupby("finding")["count"].sum().items():
                    counter[str(kind)] += int(count)
            found.by_tables += int(excused["by_tables"].sum())
            found.refused = _with_refused(found.refused, findings)
            together = pd.concat([first, findings]) if len(first) else findings
            first = together.sort_values(order).groupby("finding").head(FINDINGS_IN_CSV_MAX)
        self._write_csv("findings", first)
        return found

    def write_json(self, name: str, document: dict[str, Any]) -> None:
        """A small document beside the tables."""
        with self._place(f"{name}.json") as place:
            place.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def read(self, name: str) -> pd.DataFrame:
        """A table as it was written; raises `InputError` if the run has not been analysed."""
        path = self.folder / f"{name}.parquet"
        if not path.exists():
            raise InputError(str(path), "no such table", _ANALYSED)
        with taken_apart(path, _ANALYSED):
            table = pd.read_parquet(path)
            check_columns(name, list(table.columns))
        return table

    def read_findings(self) -> pd.DataFrame:
        """The findings that went to CSV."""
        path = self.folder / "findings.csv"
        if not path.exists():
            raise InputError(str(path), "no such table", _ANALYSED)
        return read_findings(path)

    def verdict(self) -> dict[str, Any]:
        """What was judged; raises `InputError` if the run has not been analysed."""
        verdict = read_verdict(self.folder.parent)
        if verdict is None:
            raise InputError(str(self.folder / "verdict.json"), "no such file", _ANALYSED)
        return verdict

    def summary(self) -> dict[str, Any]:
        """What the tables of metrics go by; raises as `verdict`."""
        path = self.folder / "summary.json"
        try:
            summary = read_json(path, _ANALYSED)
        except FileNotFoundError:
            raise InputError(str(path), "no such file", _ANALYSED) from None
        check_keys(_Summary, summary, path, written_anew(self.folder.parent))
        return summary

    def _write_csv(self, name: str, frame: pd.DataFrame) -> None:
        with self._place(f"{name}.csv") as place:
            frame.to_csv(place, index=False)

    @contextmanager
    def _place(self, name: str) -> Iterator[Path]:
        """Where that file of the new analysis is written in the block."""
        assert self.draft is not None
        with written_to(self.folder / name):
            yield self.draft / name


def _with_refused(so_far: RefusedDelivered | None, findings: pd.DataFrame) -> RefusedDelivered | None:
    """With those of these findings that are about refused events, and are not excused."""
    rows = findings[(findings["detail"] == REFUSED_AND_DELIVERED) & findings["explanation"].isna()]
    if rows.empty:
        return so_far
    events = rows[["published_us", "source", "sequence"]].itertuples(index=False, name=None)
    here = RefusedDelivered(int(rows["count"].sum()), *min(tuple(map(int, event)) for event in events))
    if so_far is None:
        return here
    return min(so_far, here, key=lambda each: each[1:])._replace(deliveries=so_far.deliveries + here.deliveries)


def _nullable(kind: pa.DataType) -> Any:
    """Whole numbers stay whole though some are missing."""
    return pd.Int64Dtype() if pa.types.is_integer(kind) else None
