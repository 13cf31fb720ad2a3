"""Small tables: what the driver has as one of Spark's, and what a function of Python makes of one of Spark's.

Spark would start processes of Python for either, and that takes longer than the work.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def driver_table(spark: SparkSession, rows: Iterable[tuple[Any, ...]], schema: StructType) -> DataFrame:
    """The rows as a table; they cross as Arrow, and not as a list that has to be taken apart."""
    names = schema.fieldNames()
    listed = [dict(zip(names, row, strict=True)) for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(listed, to_arrow_schema(schema)), schema)


def frame_of(
    table: DataFrame,
    function: Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]],
    schema: StructType,
    here: bool,
) -> pd.DataFrame:
    """What the function makes of the table's frames; `here`: of the whole table, in this process."""
    if here:
        return pd.concat(list(function(iter([table.toPandas()]))))
    return table.mapInPandas(function, schema).toPandas()
