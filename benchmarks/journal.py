"""Journal rows a second: written by a node against a bare `pack_into`, and read by Spark against plain numpy."""

import tempfile
from pathlib import Path

import numpy as np
from pyspark.sql import functions as F

from benchmarks.table import print_table
from benchmarks.timing import seconds
from murmur_pubsub.journal import JournalWriter, RowKind
from murmur_pubsub.journal_format import ROW
from murmur_pubsub.journal_rows import read_segment
from spark_analysis.journal_source import read_journal
from spark_analysis.session import spark_session

NODES = 10
ROWS_A_NODE = 200_000
_ROUNDS = 3


def write_journal(folder: Path) -> None:
    """One writer after the other, as every node does on its own."""
    for node in range(NODES):
        writer = JournalWriter(folder, f"b{node}", node)
        for number in range(ROWS_A_NODE):
            writer.row(number, RowKind.SEND, node, 1, number, 2, 3, 100, 16)
        writer.close()


def pack_bare() -> None:
    """The same rows packed into one row's memory over and over: no file, no bounds, no segments."""
    row = bytearray(ROW.size)
    pack_into = ROW.pack_into
    for node in range(NODES):
        for number in range(ROWS_A_NODE):
            pack_into(row, 0, number, number, 16, node, 1, 2, 100, 3, RowKind.SEND)


def count_with_numpy(folder: Path) -> int:
    """Rows by node, one segment after the other on one core."""
    counts = np.zeros(NODES, np.int64)
    for path in sorted(folder.glob("*.seg")):
        counts += np.bincount(read_segment(path)[1]["node"], minlength=NODES)
    return int(counts.sum())


def measure(folder: Path) -> list[tuple[object, ...]]:
    """Rows of the table; Spark's session starts before its clock does."""
    rows = NODES * ROWS_A_NODE
    timed = [("packed bare", seconds(pack_bare)), ("written (JournalWriter)", seconds(lambda: write_journal(folder)))]
    timed.append(("counted by node, numpy", min(seconds(lambda: count_with_numpy(folder)) for _ in range(_ROUNDS))))
    with spark_session(journal_bytes=rows * ROW.size) as spark:
        table = read_journal(spark, str(folder)).rows

        def count_with_spark() -> None:
            counted = table.groupBy("node").agg(F.count(F.lit(1)).alias("rows"), F.max("position")).collect()
            assert sum(row["rows"] for row in counted) == rows

        timed.append(("counted by node, Spark, cold", seconds(count_with_spark)))
        timed.append(("counted by node, Spark, warm", min(seconds(count_with_spark) for _ in range(_ROUNDS))))
    base_s = {"packed": timed[0][1], "written": timed[0][1], "counted": timed[2][1]}
    return [
        (what, f"{taken_s:.2f}", f"{rows / taken_s:,.0f}", f"{taken_s / base_s[what.split()[0]]:.1f}")
        for what, taken_s in timed
    ]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        print_table(
            f"The journal: {NODES * ROWS_A_NODE:,} rows of {ROW.size} bytes",
            ("rows", "seconds", "rows/s", "times the baseline"),
            measure(Path(folder)),
        )


if __name__ == "__main__":
    main()
