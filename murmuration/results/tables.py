"""A run as tables: `load_run` gives them as pandas frames, or as Spark's for runs that do not fit into memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from murmur_pubsub.run_manifest import RunManifest, read_manifest

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame as SparkFrame
    from pyspark.sql import SparkSession

Frame = TypeVar("Frame")


@dataclass(frozen=True, slots=True)
class RunTables(Generic[Frame]):
    """What the nodes of a run journaled. Nodes, kinds and messages have their names.

    Times are emulated microseconds from the start of the run. docs/reference.md has the columns of each table.
    """

    manifest: RunManifest
    nodes: Frame
    """number, name, role, broker: a row for each node; `broker` is where a client is attached."""
    rows: Frame
    """All rows of the journal: time_us, kind, node, source, sequence, peer, hops, bytes, value, meaning."""
    events: Frame
    """publisher, sequence, published_us, node, attributes: pandas has a dict, Spark a JSON text."""
    subscriptions: Frame
    """time_us, node, subscriber, filter, withdrawn: a row for each subscription and each withdrawal of one."""
    deliveries: Frame
    """publisher, sequence, subscriber, node, published_us, delivered_us, delay_us, hops: a row for each delivery."""
    faults: Frame
    """step, fault, kind, nodes, at_us, ordered_us, in_effect_us: `at_us` counts from the beginning of publishing."""


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
