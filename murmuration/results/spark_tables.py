"""The tables of a run as Spark frames: the same as pandas has, for journals that do not fit into memory."""

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from murmur_pubsub.event import unpack_attributes
from murmur_pubsub.journal import FaultStage, RowKind
from murmur_pubsub.run_manifest import RunManifest
from murmuration.results.meanings import meanings_of
from murmuration.results.run_tables import RunTables
from spark_analysis.journal_source import read_journal


def spark_tables(spark: SparkSession, manifest: RunManifest, place: str) -> RunTables[DataFrame]:
    """The tables of the journal at that path or URI, not read yet."""
    journal = read_journal(spark, place)
    rows = _rows(spark, manifest, journal.rows)
    published = rows.where(F.col("kind") == RowKind.PUBLISH.name).select(
        F.col("source").alias("publisher"), "sequence", "node"
    )
    events = journal.events.select(
        F.col("source").alias("publisher"), "sequence", F.col("time_us").alias("published_us"),
        F.udf(lambda blob: json.dumps(unpack_attributes(bytes(blob))), "string")("attributes").alias("attributes"),
    )  # fmt: skip
    events = events.join(published, ["publisher", "sequence"], "left")
    return RunTables(
        manifest,
        spark.createDataFrame(
            [(number, node.name, node.role, node.broker) for number, node in enumerate(manifest.nodes)],
            "number int, name string, role string, broker string",
        ),
        rows,
        events.select("publisher", "sequence", "published_us", "node", "attributes"),
        _with_names(spark, manifest, journal.subscriptions, "node").select(
            "time_us", "node", "subscriber", "filter", "withdrawn"
        ),
        _deliveries(rows, events),
        _faults(spark, manifest, rows),
    )


def _with_names(spark: SparkSession, manifest: RunManifest, table: DataFrame, column: str) -> DataFrame:
    """The table with the names of nodes in place of their numbers."""
    names = spark.createDataFrame(list(enumerate(manifest.names)), f"{column} int, name string")
    return table.join(F.broadcast(names), column, "left").drop(column).withColumnRenamed("name", column)


def _rows(spark: SparkSession, manifest: RunManifest, rows: DataFrame) -> DataFrame:
    meanings = spark.createDataFrame(list(meanings_of(manifest)), "kind short, value long, meaning string")
    kinds = spark.createDataFrame([(kind.value, kind.name) for kind in RowKind], "kind short, name string")
    rows = rows.join(F.broadcast(meanings), ["kind", "value"], "left")
    rows = rows.join(F.broadcast(kinds), "kind", "left").drop("kind").withColumnRenamed("name", "kind")
    rows = _with_names(spark, manifest, _with_names(spark, manifest, rows, "node"), "peer")
    return rows.select("time_us", "kind", "node", "source", "sequence", "peer", "hops", "bytes", "value", "meaning")


def _deliveries(rows: DataFrame, events: DataFrame) -> DataFrame:
    made = rows.where(F.col("kind") == RowKind.DELIVER.name).select(
        F.col("source").alias("publisher"), "sequence", F.col("value").alias("subscriber"), "node",
        F.col("time_us").alias("delivered_us"), "hops",
    )  # fmt: skip
    known = events.select("publisher", "sequence", "published_us")
    made = made.join(known, ["publisher", "sequence"], "left")
    made = made.withColumn("delay_us", F.col("delivered_us") - F.col("published_us"))
    return made.select(
        "publisher", "sequence", "subscriber", "node", "published_us", "delivered_us", "delay_us", "hops"
    )


def _faults(spark: SparkSession, manifest: RunManifest, rows: DataFrame) -> DataFrame:
    steps = spark.createDataFrame(
        [
            (step, entry.text, entry.kind.name, list(entry.nodes), entry.time_us)
            for step, entry in enumerate(manifest.faults)
        ],
        "step long, fault string, kind string, nodes array<string>, at_us long",
    )
    seen = rows.where(F.col("kind") == RowKind.FAULT.name).groupBy(F.col("sequence").alias("step"))
    times = seen.agg(
        F.min(F.when(F.col("hops") == int(FaultStage.ORDERED), F.col("time_us"))).alias("ordered_us"),
        F.min(F.when(F.col("hops") == int(FaultStage.IN_EFFECT), F.col("time_us"))).alias("in_effect_us"),
    )
    return steps.join(times, "step", "left").orderBy("step")
