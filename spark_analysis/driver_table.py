"""Small tables that the driver has, as Spark's."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def driver_table(spark: SparkSession, rows: Iterable[tuple[Any, ...]], schema: StructType) -> DataFrame:
    """The rows as a table.

    They cross as Arrow: Spark would start processes of Python to take a list of tuples apart.
    """
    names = schema.fieldNames()
    listed = [dict(zip(names, row, strict=True)) for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(listed, to_arrow_schema(schema)), schema)
