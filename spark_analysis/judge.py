"""The judge: what every subscriber had to get and might get, against what it got.

It trusts no broker. From the events published and the subscriptions issued it works out the (event,
subscriber) pairs with its own evaluation of the filters (`spark_analysis.evaluation`):

- a subscription lives from its issue to its withdrawal, and each of the two settles at the first SETTLED row
  whose value is not before it: from then on every broker that must know it does;
- a pair is *required* if a matching subscription had settled when the event was published, and was not
  withdrawn until a grace after that;
- a pair is *allowed* if a matching subscription had been issued when the event was delivered, and had not
  been withdrawn, with the withdrawal settled a grace ago, when it was published.

`missing` counts pairs required and not delivered, `spurious` pairs delivered and not allowed (the event may
not even exist), `duplicate` deliveries beyond the first of a pair, and `out_of_order` first deliveries of an
event after a later one of the same publisher to the same subscriber, by the subscriber's own journal.

Everything here is DataFrame to DataFrame; nothing runs until its caller asks for it. Pairs and deliveries travel once:
to the partition of their publisher and subscriber. There a pair is one row of one hash aggregation in which the
deliveries take part, and the order of each stream is looked at, so there is no join as large as the deliveries and no
second shuffle. Subscriptions, unless they are very many, are sent to wherever events are matched.
"""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from pubsub.event import unpack_attributes
from pubsub.filter_parser import parse_filter
from pubsub.journal import NONE, RowKind
from spark_analysis.connections import Connections
from spark_analysis.evaluation import Condition, EventColumns, condition_of
from spark_analysis.fault_windows import Explainer
from spark_analysis.journal_source import Journal

MATCHES_SCHEMA = StructType(
    [
        StructField("source", IntegerType(), False),
        StructField("sequence", LongType(), False),
        StructField("published_us", LongType(), False),
        StructField("filter_number", IntegerType(), False),
    ]
)
LIVES_SCHEMA = StructType(
    [
        StructField("node", IntegerType(), False),
        StructField("subscriber", LongType(), False),
        StructField("filter", StringType(), False),
        StructField("issued_us", LongType(), False),
        StructField("settled_us", LongType(), True),
        StructField("withdrawn_us", LongType(), True),
        StructField("withdrawal_settled_us", LongType(), True),
    ]
)
OUTCOMES_SCHEMA = StructType(
    [
        StructField("source", IntegerType(), False),
        StructField("sequence", LongType(), False),
        StructField("subscriber", LongType(), False),
        StructField("node", IntegerType(), False),
        StructField("required", IntegerType(), False),
        StructField("allowed_from_us", LongType(), True),
        StructField("published_us", LongType(), True),
        StructField("filter_number", IntegerType(), True),
        StructField("copies", LongType(), False),
        StructField("delivered_us", LongType(), True),
        StructField("missing", IntegerType(), False),
        StructField("duplicate", LongType(), False),
        StructField("spurious", IntegerType(), False),
        StructField("after", LongType(), True),
        StructField("out_of_order", IntegerType(), False),
    ]
)
"""`after`: the highest sequence of the publisher that the subscriber was delivered before this one (null: none)."""
FINDINGS_SCHEMA = StructType(
    [
        StructField("finding", StringType(), False),
        StructField("event", StringType(), False),
        StructField("source", IntegerType(), False),
        StructField("sequence", LongType(), False),
        StructField("attributes", StringType(), True),
        StructField("subscriber", LongType(), False),
        StructField("client", StringType(), False),
        StructField("published_us", LongType(), True),
        StructField("delivered_us", LongType(), True),
        StructField("count", LongType(), False),
        StructField("detail", StringType(), False),
        StructField("explanation", StringType(), True),
    ]
)
FINDINGS = ("missing", "duplicate", "spurious", "out_of_order")
_EVENTS_AT_ONCE = 50_000
_LIVES_SENT_MAX = 500_000
"""So many subscriptions go to every executor, which costs each some 50 MB; more than that are shuffled."""
_POSITIONS = 1 << 44
"""More rows than one incarnation writes: a place in a node's journal is incarnation * this + position."""
_FILTERS_SCHEMA = StructType(
    [StructField("filter_number", IntegerType(), False), StructField("filter", StringType(), False)]
)


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame's columns in the order and types of the schema."""
    return frame.select(*[F.col(field.name).cast(field.dataType).alias(field.name) for field in schema])


# ---------------------------------------------------------------------------------------- subscriptions
def distinct_events(events: DataFrame) -> DataFrame:
    """One row for each event: its first publication, should a number have been used twice."""
    return events.groupBy("source", "sequence").agg(
        F.min("time_us").alias("time_us"), F.min_by("attributes", "time_us").alias("attributes")
    )


def deliveries_of(journal: Journal) -> DataFrame:
    """The DELIVER rows with `value` under its meaning, `subscriber`."""
    return journal.of(RowKind.DELIVER).withColumnRenamed("value", "subscriber")


def issued_first(subscriptions: DataFrame) -> DataFrame:
    """Without those that a client issued again after a restart: they are known by their place in its script."""
    same = Window.partitionBy("node", "ordinal").orderBy("time_us", "position")
    first = subscriptions.withColumn("time", F.row_number().over(same))
    return first.where((F.col("time") == 1) | (F.col("ordinal") == NONE)).drop("time", "ordinal")


def subscription_lives(subscriptions: DataFrame, settled: DataFrame) -> DataFrame:
    """Each subscription with the times of its life (`LIVES_SCHEMA`); null: that has not happened.

    A subscriber may hold filters of one text several times; a withdrawal ends the one issued first of those held,
    and nothing if none is held.
    """
    history = Window.partitionBy("subscriber", "filter").orderBy("time_us", "position")
    until_now = history.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = history.rowsBetween(Window.unboundedPreceding, -1)
    balanced = subscriptions.withColumn("balance", F.sum(F.when(F.col("withdrawn"), -1).otherwise(1)).over(until_now))
    # A balance lower than ever before, and than nothing held, is a withdrawal of what was not held.
    lowest = F.least(F.coalesce(F.min("balance").over(before), F.lit(0)), F.lit(0))
    counted = balanced.withColumn("lowest", lowest).where(~F.col("withdrawn") | (F.col("balance") >= F.col("lowest")))
    same_kind = Window.partitionBy("subscriber", "filter", "withdrawn").orderBy("time_us", "position")
    numbered = counted.withColumn("number", F.row_number().over(same_kind))
    ends = numbered.where("withdrawn").select("subscriber", "filter", "number", F.col("time_us").alias("withdrawn_us"))
    begun = numbered.where(~F.col("withdrawn")).withColumnRenamed("time_us", "issued_us")
    begun = begun.drop("withdrawn", "position", "balance", "lowest")
    lives = begun.join(ends, ["subscriber", "filter", "number"], "left").drop("number")
    settling = settling_times(subscriptions.select("time_us").distinct(), settled)
    issued = settling.withColumnsRenamed({"time_us": "issued_us"})
    ended = settling.withColumnsRenamed({"time_us": "withdrawn_us", "settled_us": "withdrawal_settled_us"})
    return conform(lives.join(issued, "issued_us").join(ended, "withdrawn_us", "left"), LIVES_SCHEMA)


def settling_times(times: DataFrame, settled: DataFrame) -> DataFrame:
    """For each `time_us`, the smallest time of a SETTLED row whose value is no earlier (null: none)."""
    covered = settled.select(
        F.col("value").alias("covers_us"),
        F.col("time_us").alias("settled_us"),
        F.lit(None).cast("long").alias("time_us"),
    )
    asked = times.select(F.col("time_us").alias("covers_us"), F.lit(None).cast("long").alias("settled_us"), "time_us")
    from_the_last = Window.orderBy(F.desc("covers_us")).rangeBetween(Window.unboundedPreceding, Window.currentRow)
    filled = covered.unionByName(asked).withColumn("settled_us", F.min("settled_us").over(from_the_last))
    return filled.where(F.col("time_us").isNotNull()).select("time_us", "settled_us")


def count_filters(subscriptions: DataFrame) -> dict[str, int]:
    """The texts of the filters of all subscriptions, sorted, with how often each occurs (this one runs a job)."""
    return dict(sorted((row["filter"], row["count"]) for row in subscriptions.groupBy("filter").count().collect()))


# ---------------------------------------------------------------------------------------------- pairs
def matches(events: DataFrame, filters: Sequence[str]) -> DataFrame:
    """All (event, filter) pairs that match (`MATCHES_SCHEMA`); a filter's number is its place in the list.

    Raises `InputError` for a filter text that cannot be parsed.
    """
    conditions = [condition_of(parse_filter(text, f"filter of a subscription, {text!r:.80}")) for text in filters]
    ordered = events.select("source", "sequence", "time_us", "attributes")
    return ordered.mapInArrow(_matcher(conditions), MATCHES_SCHEMA)


def _matcher(
    conditions: Sequence[Condition],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(len(each) for each in waiting) >= _EVENTS_AT_ONCE:
                yield from _match_batch(pa.Table.from_batches(waiting), conditions)
                waiting = []
        if waiting:
            yield from _match_batch(pa.Table.from_batches(waiting), conditions)

    return match


def _match_batch(events: pa.Table, conditions: Sequence[Condition]) -> Iterator[pa.RecordBatch]:
    columns = EventColumns([unpack_attributes(blob) for blob in events.column("attributes").to_pylist()])
    found, numbers = columns.match_all(conditions)
    names = ("source", "sequence", "time_us")
    arrays = [events.column(name).to_numpy()[found] for name in names] + [numbers.astype(np.int32)]
    table = pa.Table.from_arrays([pa.array(each) for each in arrays], schema=to_arrow_schema(MATCHES_SCHEMA))
    yield from table.to_batches(max_chunksize=200_000)


def outcomes(
    matched: DataFrame,
    lives: DataFrame,
    filters: Sequence[str],
    deliveries: DataFrame,
    grace_us: int,
    many: bool,
) -> DataFrame:
    """One row for each (event, subscriber) that matches or was delivered (`OUTCOMES_SCHEMA`).

    `many`: there are more lives than every executor can hold.
    """
    numbered = _numbered_filters(lives.sparkSession, filters)
    known = lives.join(F.broadcast(numbered), "filter").drop("filter")
    pairs = matched.join(known if many else F.broadcast(known), "filter_number")
    published = F.col("published_us")
    required = (F.col("settled_us") <= published) & (
        F.col("withdrawn_us").isNull() | (published <= F.col("withdrawn_us") - grace_us)
    )
    alive = F.col("withdrawal_settled_us").isNull() | (published <= F.col("withdrawal_settled_us") + grace_us)
    expected = pairs.select(
        "source", "sequence", "subscriber", "node", "published_us", "filter_number",
        F.coalesce(required, F.lit(False)).cast("int").alias("required"),
        F.when(alive, F.col("issued_us")).alias("allowed_from_us"),
        F.lit(0).cast("long").alias("copies"),
        F.lit(None).cast("long").alias("delivered_us"),
        F.lit(None).cast("long").alias("place"),
    )  # fmt: skip
    seen = deliveries.select(
        "source", "sequence", "subscriber", "node",
        F.lit(None).cast("long").alias("published_us"),
        F.lit(None).cast("int").alias("filter_number"),
        F.lit(0).alias("required"),
        F.lit(None).cast("long").alias("allowed_from_us"),
        F.lit(1).cast("long").alias("copies"),
        F.col("time_us").alias("delivered_us"),
        (F.col("incarnation") * F.lit(_POSITIONS) + F.col("position")).alias("place"),
    )  # fmt: skip
    by_stream = expected.unionByName(seen).repartition("source", "subscriber")
    together = by_stream.groupBy("source", "sequence", "subscriber").agg(
        F.max("node").alias("node"),
        F.max("required").alias("required"),
        F.min("allowed_from_us").alias("allowed_from_us"),
        F.max("published_us").alias("published_us"),
        F.min("filter_number").alias("filter_number"),
        F.sum("copies").alias("copies"),
        F.min("delivered_us").alias("delivered_us"),
        F.min("place").alias("place"),
    )  # fmt: skip
    delivered = F.col("copies") > 0
    allowed = F.coalesce(F.col("allowed_from_us") <= F.col("delivered_us"), F.lit(False))
    judged = (
        together.withColumn("missing", ((F.col("required") == 1) & ~delivered).cast("int"))
        .withColumn("duplicate", F.greatest(F.col("copies") - 1, F.lit(0)))
        .withColumn("spurious", (delivered & ~allowed).cast("int"))
        .withColumn("after", _delivered_before())
        .withColumn("out_of_order", F.coalesce(delivered & (F.col("sequence") < F.col("after")), F.lit(False)))
    )
    return conform(judged, OUTCOMES_SCHEMA)


def _numbered_filters(spark: SparkSession, filters: Sequence[str]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(filters)), _FILTERS_SCHEMA)


def _delivered_before() -> Column:
    """The highest sequence of those whose first delivery came earlier in the subscriber's own journal."""
    earlier = Window.partitionBy("source", "subscriber").orderBy("place").rowsBetween(Window.unboundedPreceding, -1)
    return F.max(F.when(F.col("place").isNotNull(), F.col("sequence"))).over(earlier)


def out_of_order(judged: DataFrame) -> DataFrame:
    """First deliveries that come after a later event of their publisher: with `after`, the highest before."""
    late = judged.where(F.col("out_of_order") == 1)
    return late.select("source", "sequence", "subscriber", "node", "after", "delivered_us")


# ------------------------------------------------------------------------------------------- findings
def findings(
    judged: DataFrame,
    late: DataFrame,
    events: DataFrame,
    filters: Sequence[str],
    clients: Sequence[str],
    explainer: Explainer | Connections,
    publishers: Mapping[int, str],
) -> DataFrame:
    """One row for each finding (`FINDINGS_SCHEMA`), with what a reader needs to look for its cause.

    `clients` are the names of the nodes by number, `publishers` those where each publisher is; `count` is the copies
    too many of a duplicate, else 1; `explanation` the fault that explains the finding, or null.
    """
    wrong = judged.where((F.col("missing") + F.col("duplicate") + F.col("spurious")) > 0)
    pairs = wrong.withColumn("after", F.lit(None).cast("long"))
    overtaken = late.select(
        *[
            F.col(field.name) if field.name in late.columns else F.lit(None).cast(field.dataType).alias(field.name)
            for field in OUTCOMES_SCHEMA
        ]
    )
    times = events.select("source", "sequence", F.col("time_us").alias("event_us"), "attributes")
    together = pairs.unionByName(overtaken).join(times, ["source", "sequence"], "left")
    if explainer.looks_at_order:
        together = _with_what_overtook(together, judged)
    return together.mapInPandas(_describer(filters, clients, explainer, publishers), FINDINGS_SCHEMA)


def _with_what_overtook(together: DataFrame, judged: DataFrame) -> DataFrame:
    """`overtaken_us`: when the subscriber first got a later event of the publisher."""
    streams = together.select("source", "subscriber").distinct()
    later = Window.partitionBy("source", "subscriber").orderBy(F.desc("sequence"))
    overtaking = judged.join(streams, ["source", "subscriber"], "left_semi").select(
        "source", "sequence", "subscriber",
        F.min("delivered_us").over(later.rowsBetween(Window.unboundedPreceding, -1)).alias("overtaken_us"),
    )  # fmt: skip
    return together.join(overtaking, ["source", "sequence", "subscriber"], "left")


def _describer(
    filters: Sequence[str], clients: Sequence[str], explainer: Explainer | Connections, publishers: Mapping[int, str]
) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    names = [field.name for field in FINDINGS_SCHEMA]

    def describe(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            rows = []
            for pair in frame.to_dict("records"):
                overtaken_us = None if pd.isna(pair.get("overtaken_us")) else int(pair["overtaken_us"])
                for row in _rows_of(pair, filters, clients):
                    finding, publisher, client, published_us = row[0], publishers.get(row[2]), row[6], row[7]
                    why = None
                    if published_us is not None:
                        why = explainer.explain(finding, publisher, client, published_us, overtaken_us)
                    rows.append([*row, why])
            described = pd.DataFrame(rows, columns=names)
            for name in ("published_us", "delivered_us"):
                described[name] = described[name].astype("Int64")
            yield described

    return describe


def _rows_of(pair: Mapping[Hashable, Any], filters: Sequence[str], clients: Sequence[str]) -> Iterator[list[Any]]:
    """The findings about one pair; missing values of `pair` are NaN, as pandas has them."""
    source, sequence, node = pair["source"], pair["sequence"], pair["node"]
    published = not pd.isna(pair["event_us"])
    blob = pair["attributes"]
    described: dict[str, tuple[int, str]] = {}
    if not pd.isna(pair["after"]):
        described["out_of_order"] = (1, f"delivered after {source}:{int(pair['after'])}")
    else:
        wanted = None if pd.isna(pair["filter_number"]) else filters[int(pair["filter_number"])]
        if pair["missing"]:
            described["missing"] = (1, f"wanted by {wanted}")
        if pair["duplicate"]:
            described["duplicate"] = (int(pair["duplicate"]), f"delivered {int(pair['copies'])} times")
        if pair["spurious"]:
            described["spurious"] = (1, _why_spurious(published, wanted, pair["allowed_from_us"]))
    for finding, (count, detail) in described.items():
        yield [
            finding, f"{source}:{sequence}", source, sequence,
            json.dumps(unpack_attributes(bytes(blob)), ensure_ascii=False, sort_keys=True) if published else None,
            pair["subscriber"], clients[node] if 0 <= node < len(clients) else f"node {node}",
            pair["event_us"] if published else None,
            None if pd.isna(pair["delivered_us"]) else pair["delivered_us"],
            count, detail,
        ]  # fmt: skip


def _why_spurious(published: bool, wanted: str | None, allowed_from_us: float) -> str:
    if not published:
        return "never published"
    if wanted is None:
        return "no subscription of this subscriber matches"
    return f"withdrawn before: {wanted}" if pd.isna(allowed_from_us) else f"not yet subscribed: {wanted}"


# -------------------------------------------------------------------------------------------- verdict
def totals(judged: DataFrame) -> DataFrame:
    """One row: the sums over all pairs. `delivered` counts pairs delivered at least once."""
    sums = [
        F.coalesce(F.sum(name), F.lit(0)).cast("long").alias(name)
        for name in ("missing", "duplicate", "spurious", "out_of_order", "required")
    ]
    return judged.agg(*sums, F.count(F.when(F.col("copies") > 0, 1)).alias("delivered"))


def verdict(
    status: str, missing: int, duplicate: int, spurious: int, out_of_order: int,
    required: int, delivered: int, published: int,
    explained: Mapping[str, int] = MappingProxyType({}), faults: Mapping[str, int] = MappingProxyType({}),
    guarantee: str = "best_effort",
) -> dict[str, int | str]:  # fmt: skip
    """The three-valued verdict with its numbers and, in `reason`, why it is what it is.

    What was delivered and should not have been is wrong in any run. That something is missing is known only
    for a complete run, and a run in which nothing was required shows nothing. `explained` says how many findings of
    each kind a fault explains and the run's guarantee allows; `faults` how many "bit", were "idle" or "failed": a run
    whose faults did not take effect is not what it claims to be. With the guarantee "at_most_once" deliveries may be
    missing and late: how many is the result of such a run, and no fault of it.
    """
    allowed = {finding: explained.get(finding, 0) for finding in FINDINGS}
    reason = "every required delivery was made, once, in order, and no other"
    if any(allowed.values()):
        listed = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in allowed.items() if count)
        reason = f"a fault explains each of {listed}; every other delivery was made, once, in order"
    if guarantee == "at_most_once" and (missing or out_of_order):
        allowed |= {"missing": missing, "out_of_order": out_of_order}
        reason = f"{missing:,} missing and {out_of_order:,} out of order, as may be; nothing twice, and nothing else"
    broken = {"bit": 0, "idle": 0, "failed": 0} | dict(faults)
    if duplicate > allowed["duplicate"] or spurious or out_of_order > allowed["out_of_order"]:
        outcome, reason = "invalid", "deliveries were duplicated, spurious or out of order"
    elif status != "complete":
        outcome, reason = "unknown", f"the run was cut short (its status is {status})"
    elif broken["failed"]:
        outcome, reason = "invalid", f"{broken['failed']} faults did not take effect (see the table of faults)"
    elif not published:
        outcome, reason = "unknown", "nothing was published"
    elif missing > allowed["missing"]:
        left = missing - allowed["missing"]
        outcome = "invalid"
        reason = (
            f"{left:,} required deliveries are missing without a fault that explains it"
            if faults
            else "required deliveries are missing"
        )
    elif not required:
        outcome, reason = "unknown", "no delivery was required: no settled subscription matches a publication"
    else:
        outcome = "valid"
    return {
        "missing": missing, "duplicate": duplicate, "spurious": spurious, "out_of_order": out_of_order,
        "required": required, "delivered": delivered, "published": published,
        "explained": sum(explained.get(finding, 0) for finding in FINDINGS),
        "faults_bit": broken["bit"], "faults_idle": broken["idle"],
        "faults_failed": broken["failed"],
        "verdict": outcome, "reason": reason,
    }  # fmt: skip


def judge(journal: Journal, filters: Mapping[str, int], grace_us: int) -> DataFrame:
    """The outcome of every pair of a run; `filters` as `count_filters` gives them, events as `distinct_events` does."""
    lives = subscription_lives(issued_first(journal.subscriptions), journal.of(RowKind.SETTLED))
    texts = list(filters)
    many = sum(filters.values()) > _LIVES_SENT_MAX
    return outcomes(matches(journal.events, texts), lives, texts, deliveries_of(journal), grace_us, many)
