"""The judge: what every subscriber had to get and might get, against what it got.

It trusts no broker. From the events published and the subscriptions issued it works out the (event,
subscriber) pairs with its own evaluation of the filters (`spark_analysis.evaluation`):

- a subscription lives from its issue to its withdrawal, and each of the two settles at the first SETTLED row
  whose value is not before it: from then on every broker that must know it does;
- a pair is *required* if a matching subscription had settled before the event was published, and was withdrawn more
  than a grace after that, or never. Within a microsecond nobody can tell what came first;
- a pair is *allowed* if a matching subscription had been issued when the event was published, or within a grace after
  that, and had not been withdrawn, with the withdrawal settled a grace ago, when it was published. Where the promise
  is to keep events for later subscribers, it need only have been issued before the delivery. No pair is allowed of an
  event of which its publisher was told that it was refused.

A delivery is of a pair only if it is whole: made by the node where the subscriber is, with the contents and the
publication time of the event (their fingerprint is taken by the runtimes). `missing` counts pairs required and not
delivered, `duplicate` deliveries beyond the first of a pair, and `out_of_order` first deliveries of an event after a
later one of the same publisher to the same subscriber, by the subscriber's own journal; where a total order is
promised, also those after an event that another subscriber got later. Any other delivery is *stray*: `altered`
(other contents), `misplaced` (by another node) or `spurious` (the subscriber may not get it, or the event does not
exist); `spark_analysis.findings` tells which.

Everything here is DataFrame to DataFrame; nothing runs until its caller asks for it. Pairs and deliveries travel once:
to the partition of their publisher and subscriber. There a pair is one row of one hash aggregation in which the
deliveries take part, and the order of each stream is looked at, so there is no join as large as the deliveries and no
second shuffle. Node and fingerprint are part of a pair's key, so that judging them costs nothing more. Subscriptions,
unless they are very many, are sent to wherever events are matched.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from murmur_pubsub.event import fingerprint_of, unpack_attributes
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import NONE, RowKind
from spark_analysis.driver_table import driver_table
from spark_analysis.evaluation import Condition, EventColumns, condition_of
from spark_analysis.fault_windows import NEVER_US
from spark_analysis.journal_source import Journal
from spark_analysis.rules import Rules
from spark_analysis.worker import settle

MATCHES_SCHEMA = StructType(
    [
        StructField("source", IntegerType(), False),
        StructField("sequence", LongType(), False),
        StructField("published_us", LongType(), False),
        StructField("filter_number", IntegerType(), False),
        StructField("fingerprint", IntegerType(), False),
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
        StructField("fingerprint", IntegerType(), False),
        StructField("required_until_us", LongType(), True),
        StructField("allowed_from_us", LongType(), True),
        StructField("alive_from_us", LongType(), True),
        StructField("issued_us", LongType(), True),
        StructField("published_us", LongType(), True),
        StructField("filter_number", IntegerType(), True),
        StructField("copies", LongType(), False),
        StructField("delivered_us", LongType(), True),
        StructField("required", IntegerType(), False),
        StructField("missing", IntegerType(), False),
        StructField("duplicate", LongType(), False),
        StructField("stray", LongType(), False),
        StructField("after", LongType(), True),
        StructField("against", LongType(), True),
        StructField("out_of_order", IntegerType(), False),
    ]
)
"""`required_until_us`: when the subscription that requires the pair was withdrawn (`NEVER_US`: it was not; null: the
pair is not required). `allowed_from_us`: from when on it may be delivered (null: matching subscriptions had been
withdrawn, or the event was refused; `NEVER_US`: they came too late). `alive_from_us`: when the first of those was
issued that had not been withdrawn. `issued_us`: when the first subscription that requires the pair was issued (null:
none does). `stray`: deliveries that are of no pair. `after`: the highest sequence of the publisher that the subscriber
was delivered before this one (null: none). `against`: where a total order is
promised, another subscriber that got the event before one which this subscriber had got by then (null: none)."""
COUNTED = ("missing", "duplicate", "stray", "out_of_order")


_EVENTS_AT_ONCE = 50_000
_MATCHED_HERE_MAX = 5_000_000
"""The most pairs of event and filter that the driver looks at: Spark would start processes of Python to do it."""
_LIVES_SENT_MAX = 500_000
"""The most subscriptions that go to every executor, which costs each some 50 MB; more than that are shuffled."""
_POSITIONS = 1 << 44
"""More rows than one incarnation writes: a place in a node's journal is incarnation * this + position."""
_SETTLED_SCHEMA = StructType([StructField("time_us", LongType(), False), StructField("value", LongType(), False)])
_REFUSED_SCHEMA = StructType([StructField("source", IntegerType(), False), StructField("sequence", LongType(), False)])
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
    """The DELIVER rows with `value` and `bytes` under their meanings, `subscriber` and `fingerprint`."""
    return journal.of(RowKind.DELIVER).withColumnsRenamed({"value": "subscriber", "bytes": "fingerprint"})


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


class Wanted(NamedTuple):
    """What is subscribed in a run. `filters`: their texts, sorted, with how often each occurs. `first_us`, `last_us`:
    when the first and the last subscription was issued or withdrawn (0: there is none)."""

    filters: Mapping[str, int]
    first_us: int
    last_us: int


def what_is_wanted(subscriptions: DataFrame) -> Wanted:
    """The filters of all subscriptions (this one runs a job)."""
    totals = [F.count("*").alias("times"), F.min("time_us").alias("first_us"), F.max("time_us").alias("last_us")]
    rows = subscriptions.groupBy("filter").agg(*totals).collect()
    first_us = min((row["first_us"] for row in rows), default=0)
    last_us = max((row["last_us"] for row in rows), default=0)
    return Wanted(dict(sorted((row["filter"], row["times"]) for row in rows)), first_us, last_us)


# ---------------------------------------------------------------------------------------------- pairs
def matches(events: DataFrame, filters: Sequence[str], here: bool = False) -> DataFrame:
    """All (event, filter) pairs that match (`MATCHES_SCHEMA`); a filter's number is its place in the list.

    `here`: the driver matches, unless they are many. Raises `InputError` for a filter text that cannot be parsed.
    """
    conditions = [condition_of(parse_filter(text, f"filter of a subscription, {text!r:.80}")) for text in filters]
    ordered = events.select("source", "sequence", "time_us", "attributes")
    match = _matcher(conditions)
    if here:
        table = ordered.toArrow()
        if len(table) * len(filters) <= _MATCHED_HERE_MAX:
            found = pa.Table.from_batches(match(iter(table.to_batches())), to_arrow_schema(MATCHES_SCHEMA))
            return events.sparkSession.createDataFrame(found, MATCHES_SCHEMA)
    return ordered.mapInArrow(match, MATCHES_SCHEMA)


def _matcher(
    conditions: Sequence[Condition],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
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
    blobs = events.column("attributes").to_pylist()
    found, numbers = EventColumns([unpack_attributes(blob) for blob in blobs]).match_all(conditions)
    names = ("source", "sequence", "time_us")
    times_us = events.column("time_us").to_pylist()
    fingerprints = np.fromiter(map(fingerprint_of, times_us, blobs), np.int32, len(blobs))
    arrays = [events.column(name).to_numpy()[found] for name in names]
    arrays += [numbers.astype(np.int32), fingerprints[found]]
    table = pa.Table.from_arrays([pa.array(each) for each in arrays], schema=to_arrow_schema(MATCHES_SCHEMA))
    yield from table.to_batches(max_chunksize=200_000)


def outcomes(
    matched: DataFrame,
    lives: DataFrame,
    filters: Sequence[str],
    deliveries: DataFrame,
    rules: Rules,
    many: bool,
    refused: frozenset[tuple[int, int]] = frozenset(),
) -> DataFrame:
    """One row for each (event, subscriber) that matches or was delivered (`OUTCOMES_SCHEMA`); deliveries by another
    node or of other contents have rows of their own.

    `many`: there are more lives than every executor can hold. `refused`: see `given_up.refused_events`.
    """
    numbered = _numbered_filters(lives.sparkSession, filters)
    known = lives.join(F.broadcast(numbered), "filter").drop("filter")
    pairs = _with_refused(matched, refused).join(known if many else F.broadcast(known), "filter_number")
    published = F.col("published_us")
    grace_us = rules.withdrawal_grace_us
    required = (F.col("settled_us") < published) & (
        F.col("withdrawn_us").isNull() | (published < F.col("withdrawn_us") - grace_us)
    )
    ended_us = F.least("withdrawal_settled_us", F.col("withdrawn_us") + rules.recovery_limit_us)  # skips nulls
    alive = (ended_us.isNull() | (published <= ended_us + grace_us)) & ~F.col("refused")
    in_time = F.lit(rules.keeps_events) | (F.col("issued_us") <= published + rules.subscription_grace_us)
    never = F.lit(NEVER_US)
    expected = pairs.select(
        "source", "sequence", "subscriber", "node", "fingerprint", "published_us", "filter_number",
        F.when(required, F.coalesce(F.col("withdrawn_us"), never)).alias("required_until_us"),
        F.when(alive, F.when(in_time, F.greatest("issued_us", published - rules.clocks_us)).otherwise(never)).alias(
            "allowed_from_us"
        ),
        F.when(alive, F.col("issued_us")).alias("alive_from_us"),
        F.when(required, F.col("issued_us")).alias("issued_us"),
        F.lit(0).cast("long").alias("copies"),
        F.lit(None).cast("long").alias("delivered_us"),
        F.lit(None).cast("long").alias("place"),
    )  # fmt: skip
    seen = deliveries.select(
        "source", "sequence", "subscriber", "node", "fingerprint",
        F.lit(None).cast("long").alias("published_us"),
        F.lit(None).cast("int").alias("filter_number"),
        F.lit(None).cast("long").alias("required_until_us"),
        F.lit(None).cast("long").alias("allowed_from_us"),
        F.lit(None).cast("long").alias("alive_from_us"),
        F.lit(None).cast("long").alias("issued_us"),
        F.lit(1).cast("long").alias("copies"),
        F.col("time_us").alias("delivered_us"),
        (F.col("incarnation") * F.lit(_POSITIONS) + F.col("position")).alias("place"),
    )  # fmt: skip
    by_stream = expected.unionByName(seen).repartition("source", "subscriber")
    together = by_stream.groupBy("source", "sequence", "subscriber", "node", "fingerprint").agg(
        F.max("required_until_us").alias("required_until_us"),
        F.min("allowed_from_us").alias("allowed_from_us"),
        F.min("alive_from_us").alias("alive_from_us"),
        F.min("issued_us").alias("issued_us"),
        F.max("published_us").alias("published_us"),
        F.min("filter_number").alias("filter_number"),
        F.sum("copies").alias("copies"),
        F.min("delivered_us").alias("delivered_us"),
        F.min("place").alias("place"),
    )  # fmt: skip
    delivered = F.col("copies") > 0
    known_pair = F.col("published_us").isNotNull()
    allowed = F.coalesce(F.col("allowed_from_us") <= F.col("delivered_us"), F.lit(False))
    again = F.when(known_pair, F.col("copies") - 1).otherwise(0)
    overtaken = F.col("sequence") < F.col("after")
    strays = F.when(known_pair, 1).otherwise(F.col("copies"))
    if rules.total_order:
        first = together.where(delivered & known_pair).select("source", "sequence", "subscriber", "place")
        together = together.join(_disordered(first), ["source", "sequence", "subscriber"], "left")
    else:
        together = together.withColumn("against", F.lit(None).cast("long"))
    disordered = F.col("against").isNotNull()
    judged = (
        together.withColumn("required", F.col("required_until_us").isNotNull().cast("int"))
        .withColumn("missing", ((F.col("required") == 1) & ~delivered).cast("int"))
        .withColumn("duplicate", F.greatest(again, F.lit(0)))
        .withColumn("stray", F.when(delivered & ~allowed, strays).otherwise(0))
        .withColumn("after", _delivered_before())
        .withColumn("out_of_order", F.coalesce(known_pair & delivered & (overtaken | disordered), F.lit(False)))
    )
    return conform(judged, OUTCOMES_SCHEMA)


def _with_refused(matched: DataFrame, refused: frozenset[tuple[int, int]]) -> DataFrame:
    """`refused`: is the event one of those?"""
    if not refused:
        return matched.withColumn("refused", F.lit(False))
    listed = driver_table(matched.sparkSession, sorted(refused), _REFUSED_SCHEMA).withColumn("listed", F.lit(True))
    joined = matched.join(F.broadcast(listed), ["source", "sequence"], "left")
    return joined.withColumn("refused", F.col("listed").isNotNull())


def _numbered_filters(spark: SparkSession, filters: Sequence[str]) -> DataFrame:
    return driver_table(spark, enumerate(filters), _FILTERS_SCHEMA)


def _delivered_before() -> Column:
    """The highest sequence of those whose first delivery came earlier in the subscriber's own journal."""
    stream = Window.partitionBy("source", "subscriber", "node").orderBy("place")
    earlier = stream.rowsBetween(Window.unboundedPreceding, -1)
    of_a_pair = F.col("place").isNotNull() & F.col("published_us").isNotNull()
    return F.max(F.when(of_a_pair, F.col("sequence"))).over(earlier)


def _disordered(first: DataFrame) -> DataFrame:
    """The events that a subscriber got after one which another subscriber got later, with the highest-numbered such
    subscriber (`against`); `first`: the first deliveries, with their place in the subscriber's own journal."""
    others = first.withColumnsRenamed({"subscriber": "other", "place": "other_place"})
    both = first.join(others, ["source", "sequence"]).where("subscriber <> other")
    before = Window.partitionBy("subscriber", "other").orderBy("place").rowsBetween(Window.unboundedPreceding, -1)
    wrong = both.withColumn("latest", F.max("other_place").over(before)).where("other_place < latest")
    return wrong.groupBy("source", "sequence", "subscriber").agg(F.max("other").alias("against"))


def totals_and_wrong(judged: DataFrame) -> tuple[Mapping[str, int], DataFrame]:
    """The sums over all pairs, where `delivered` counts pairs delivered at least once; and the pairs of which something
    is `COUNTED`, kept: their caller unpersists them (this one runs a job). All pairs are made once for both."""
    sums = [F.coalesce(F.sum(name), F.lit(0)).cast("long").alias(name) for name in (*COUNTED, "required")]
    whole = (F.col("copies") > 0) & F.col("published_us").isNotNull()
    seen = Observation()
    observed = judged.observe(seen, *sums, F.count(F.when(whole, 1)).alias("delivered"))
    wrong = observed.where(F.col("missing") + F.col("duplicate") + F.col("stray") + F.col("out_of_order") > 0).persist()
    wrong.count()
    return seen.get, wrong


def judge_pairs(
    journal: Journal,
    lives: DataFrame,
    filters: Mapping[str, int],
    rules: Rules,
    refused: frozenset[tuple[int, int]],
) -> DataFrame:
    """The outcome of every pair of a run. `lives` as `lives_of` gives them, `filters` those of `Wanted`, events as
    `distinct_events` gives them, `refused` as in `outcomes`."""
    texts = list(filters)
    many = sum(filters.values()) > _LIVES_SENT_MAX
    matched = matches(journal.events, texts, journal.small)
    return outcomes(matched, lives, texts, deliveries_of(journal), rules, many, refused)


def lives_of(subscriptions: DataFrame, settled: Sequence[tuple[int, int]]) -> DataFrame:
    """Every subscription of a run with the times of its life (`LIVES_SCHEMA`); `settled`: (time_us, covers_us) of the
    SETTLED rows."""
    rows = driver_table(subscriptions.sparkSession, settled, _SETTLED_SCHEMA)
    return subscription_lives(issued_first(subscriptions), rows)
