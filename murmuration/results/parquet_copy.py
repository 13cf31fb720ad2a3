"""A copy of a run's tables as Parquet, for notebooks and other tools."""

import json
from dataclasses import fields
from pathlib import Path

from murmur_pubsub.whole_files import whole_folder
from murmuration.results.load import load_run
from murmuration.results.run_tables import RunTables

_TABLES = [field.name for field in fields(RunTables) if field.name != "manifest"]


def copy_tables(run: Path, with_spark: bool) -> Path:
    """Write each table of `murmuration.load_run` to `RUN/tables/NAME.parquet`, anew; the folder.

    `with_spark`: the active Spark writes them, piece by piece, where the run may be larger than memory. The attributes
    of an event are a JSON text. Raises `DiskError`, and leaves the tables that were there.
    """
    place = run / "tables"
    with whole_folder(place) as draft:
        _write_tables(run, draft, with_spark)
    return place


def _write_tables(run: Path, place: Path, with_spark: bool) -> None:
    if with_spark:
        from pyspark.sql import SparkSession

        from spark_analysis.spark_disk import own_files, spark_disk

        spark = SparkSession.active()
        of_spark = load_run(run, spark)
        with spark_disk(f"{run / 'tables'}, or {own_files(spark)}"):
            for name in _TABLES:
                getattr(of_spark, name).write.parquet(str(place / f"{name}.parquet"))
        return
    tables = load_run(run)
    texts = tables.events["attributes"].map(lambda each: json.dumps(each, ensure_ascii=False))
    for name in _TABLES:
        frame = getattr(tables, name) if name != "events" else tables.events.assign(attributes=texts)
        frame.to_parquet(place / f"{name}.parquet", index=False)
