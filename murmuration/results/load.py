"""A run folder as tables: pandas frames, or Spark's for runs that do not fit into memory."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from murmur_pubsub.run_manifest import read_manifest
from murmuration.results.run_tables import RunTables

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame as SparkFrame
    from pyspark.sql import SparkSession


@overload
def load_run(path: str | Path) -> "RunTables[pd.DataFrame]": ...
@overload
def load_run(path: str | Path, spark: "SparkSession") -> "RunTables[SparkFrame]": ...
def load_run(path: str | Path, spark: "SparkSession | None" = None) -> RunTables[Any]:
    """The tables of a run folder; raises `InputError` for one that cannot be read.

    With a Spark session they are Spark's frames, which are not read before they are used.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    if spark is None:
        from murmuration.results.pandas_tables import pandas_tables

        return pandas_tables(manifest, manifest.journal_at(folder))
    from murmuration.results.spark_tables import spark_tables

    return spark_tables(spark, manifest, manifest.journal_at(folder))
