"""The metrics of the papers, each a transform from journal tables to one small table with a stated schema.

Names are the papers': delivery rate (hit ratio), delivery delay, hop latency, hop count CDF, pure forwarders,
yield, traffic overhead, load CDF. Quantiles are taken from counts of whole microseconds, never estimated: a
group-by is the cheapest thing Spark does. Delays keep four digits (25,347 us counts as 25,340), so that their
distinct values, and with them the tables, stay few; the largest is kept exactly.

An event is *received* by a broker once for each RECEIVE row and *reaches* it once however many copies come.
A broker that an event reached from another broker, and whose clients of that time (or itself) were not delivered
the event, is a *pure forwarder* of it; the broker of the publisher's own client is not counted, as it had no
choice. *Yield* is the share of the brokers reached that were no pure forwarders; *traffic overhead* the
share of received copies that went to brokers without interest, publishers' own brokers included.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from murmur_pubsub.journal import NONE, DropReason, RowKind
from murmur_pubsub.run_manifest import RunManifest
from spark_analysis.driver_table import driver_table
from spark_analysis.fault_windows import NEVER_US
from spark_analysis.stays import Stay

DELAY_QUANTILES = (("p50", 0.50), ("p90", 0.90), ("p99", 0.99))
BUCKETS_MAX = 120
_NODES = StructType(
    [
        StructField("node", IntegerType(), False),
        StructField("name", StringType(), False),
        StructField("role", StringType(), False),
    ]
)
_HOMES = StructType(
    [
        StructField("node", IntegerType(), False),
        StructField("home", IntegerType(), False),
        StructField("from_us", LongType(), False),
        StructField("until_us", LongType(), False),
    ]
)


def _is(kind: RowKind) -> Column:
    return F.col("kind") == int(kind)


def nodes_table(spark: SparkSession, manifest: RunManifest) -> DataFrame:
    """node, name, role."""
    rows = [(number, node.name, node.role) for number, node in enumerate(manifest.nodes)]
    return driver_table(spark, rows, _NODES)


def homes_table(spark: SparkSession, manifest: RunManifest, stays: Mapping[str, Sequence[Stay]]) -> DataFrame:
    """node, home, from_us, until_us: the broker that a broker or client stands for, from then until before then."""
    numbers = manifest.numbers
    rows = [(numbers[name], numbers[name], 0, NEVER_US) for name in manifest.brokers]
    rows += [(numbers[client], numbers[stay[0]], *stay[1:]) for client, each in stays.items() for stay in each]
    return driver_table(spark, rows, _HOMES)


def bucket_width_us(first_us: int, last_us: int) -> int:
    """The width of time buckets: 1, 2 or 5 times a power of ten, from 1 ms; at most `BUCKETS_MAX` of them."""
    width = 1_000
    for factor in _one_two_five():
        width = factor * 1_000
        if (last_us - first_us) // width < BUCKETS_MAX:
            break
    return width


def _one_two_five() -> list[int]:
    return [step * 10**power for power in range(13) for step in (1, 2, 5)]


def bucket(time_us: Column, width_us: int) -> Column:
    """The begin of the bucket a time falls into."""
    return (F.floor(time_us / F.lit(width_us)) * width_us).cast("long")


# --------------------------------------------------------------------------------------------- traffic
def activity(rows: DataFrame, width_us: int) -> DataFrame:
    """kind, node, detail, bucket_us, rows, bytes: the counts from which the tables of traffic are added up.

    `detail` is the message kind of a SEND or RECEIVE and the reason of a DROP, else -1.
    """
    counted = (
        RowKind.PUBLISH,
        RowKind.SEND,
        RowKind.RECEIVE,
        RowKind.DELIVER,
        RowKind.DROP,
        RowKind.DUPLICATE,
    )
    detailed = F.col("kind").isin(int(RowKind.SEND), int(RowKind.RECEIVE), int(RowKind.DROP))
    return (
        rows.where(F.col("kind").isin(*map(int, counted)))
        .groupBy(
            "kind",
            "node",
            F.when(detailed, F.col("value")).otherwise(F.lit(NONE)).alias("detail"),
            bucket(F.col("time_us"), width_us).alias("bucket_us"),
        )
        .agg(F.count(F.lit(1)).alias("rows"), F.sum("bytes").cast("long").alias("bytes"))
    )


def _rows_of(kind: RowKind) -> Column:
    return F.coalesce(F.sum(F.when(_is(kind), F.col("rows"))), F.lit(0)).cast("long")


def traffic_by_bucket(counts: DataFrame) -> DataFrame:
    """bucket_us, published, delivered, sent, received, dropped, bytes: what happened in each bucket."""
    return (
        counts.groupBy("bucket_us")
        .agg(
            _rows_of(RowKind.PUBLISH).alias("published"),
            _rows_of(RowKind.DELIVER).alias("delivered"),
            _rows_of(RowKind.SEND).alias("sent"),
            _rows_of(RowKind.RECEIVE).alias("received"),
            _rows_of(RowKind.DROP).alias("dropped"),
            F.coalesce(F.sum(F.when(_is(RowKind.SEND), F.col("bytes"))), F.lit(0)).cast("long").alias("bytes"),
        )
        .orderBy("bucket_us")
    )


def messages_by_kind(counts: DataFrame, names: Mapping[int, str]) -> DataFrame:
    """message_kind, name, sent, bytes, received: the messages put on links and taken from them, by kind."""
    named = F.lit(None).cast("string")
    if names:
        named = F.create_map(*[F.lit(each) for pair in sorted(names.items()) for each in pair])[
            F.col("detail").cast("int")
        ]
    return (
        counts.where(_is(RowKind.SEND) | _is(RowKind.RECEIVE))
        .groupBy(
            F.col("detail").alias("message_kind"),
            F.coalesce(named, F.concat(F.lit("kind "), F.col("detail"))).alias("name"),
        )
        .agg(
            _rows_of(RowKind.SEND).alias("sent"),
            F.coalesce(F.sum(F.when(_is(RowKind.SEND), F.col("bytes"))), F.lit(0)).cast("long").alias("bytes"),
            _rows_of(RowKind.RECEIVE).alias("received"),
        )
        .orderBy(F.desc("bytes"), "message_kind")
    )


def drops(counts: DataFrame) -> DataFrame:
    """reason, messages: messages that did not reach their peer."""
    names = F.create_map(*[F.lit(each) for reason in DropReason for each in (int(reason), reason.name.lower())])
    return (
        counts.where(_is(RowKind.DROP))
        .groupBy(F.coalesce(names[F.col("detail").cast("int")], F.lit("unknown")).alias("reason"))
        .agg(F.sum("rows").alias("messages"))
        .orderBy(F.desc("messages"), "reason")
    )


def lag(rows: DataFrame, nodes: DataFrame, begin_us: int) -> DataFrame:
    """node, name, lag_us_max: how far each node fell behind emulated time since publishing began."""
    return (
        rows.where(_is(RowKind.LAG) & (F.col("time_us") >= begin_us))
        .groupBy("node")
        .agg(F.max("value").alias("lag_us_max"))
        .join(F.broadcast(nodes.select("node", "name")), "node", "left")
        .select("node", "name", "lag_us_max")
        .orderBy(F.desc("lag_us_max"), "node")
    )


def protocol_records(rows: DataFrame) -> DataFrame:
    """topic, rows, value_sum, value_max: what the protocol itself recorded; topics are the protocol's own."""
    return (
        rows.where(_is(RowKind.PROTOCOL))
        .groupBy(F.col("bytes").alias("topic"))
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.sum("value").alias("value_sum"),
            F.max("value").alias("value_max"),
        )
        .orderBy("topic")
    )


# ------------------------------------------------------------------------------------------ deliveries
def delivery_rate(outcomes: DataFrame, width_us: int) -> DataFrame:
    """bucket_us, required, made, delivery_rate: of the required pairs by time of publication, those made."""
    made = F.col("required") - F.col("missing")
    return (
        outcomes.where(F.col("required") == 1)
        .groupBy(bucket(F.col("published_us"), width_us).alias("bucket_us"))
        .agg(F.sum("required").alias("required"), F.sum(made).alias("made"))
        .withColumn("delivery_rate", F.col("made") / F.col("required"))
        .orderBy("bucket_us")
    )


def delay_counts(outcomes: DataFrame) -> DataFrame:
    """delay_us (four digits kept), count, max_us: from publication to first delivery of pairs that match."""
    wanted = outcomes.where(F.col("delivered_us").isNotNull() & F.col("published_us").isNotNull())
    return _counted(wanted.select((F.col("delivered_us") - F.col("published_us")).alias("delay_us")))


def hop_latency_counts(rows: DataFrame, nodes: DataFrame) -> DataFrame:
    """delay_us (four digits kept), count, max_us: from SEND to RECEIVE of an event over a link between brokers.

    Only where an event crossed a link in one direction just once: then the two rows belong together.
    """
    sent = _is(RowKind.SEND)
    crossings = (
        rows.where((sent | _is(RowKind.RECEIVE)) & (F.col("sequence") != NONE))
        .groupBy(
            "source",
            "sequence",
            F.when(sent, F.col("node")).otherwise(F.col("peer")).alias("sender"),
            F.when(sent, F.col("peer")).otherwise(F.col("node")).alias("receiver"),
        )
        .agg(
            F.count(F.when(sent, 1)).alias("sends"),
            F.count(F.lit(1)).alias("ends"),
            F.max(F.when(sent, F.col("time_us"))).alias("sent_us"),
            F.max(F.when(~sent, F.col("time_us"))).alias("received_us"),
        )
        .where("sends = 1 AND ends = 2")
    )
    brokers = nodes.where(F.col("role") == "broker")
    for end in ("sender", "receiver"):
        crossings = crossings.join(F.broadcast(brokers.select(F.col("node").alias(end))), end, "left_semi")
    return _counted(crossings.select((F.col("received_us") - F.col("sent_us")).alias("delay_us")))


def _counted(delays: DataFrame) -> DataFrame:
    exact = F.greatest(F.col("delay_us"), F.lit(0))
    digits = F.length(exact.cast("string"))
    unit = F.when(digits <= 4, F.lit(1)).otherwise(F.pow(F.lit(10), digits - 4)).cast("long")
    return (
        delays.groupBy((exact - F.pmod(exact, unit)).cast("long").alias("delay_us"))
        .agg(F.count(F.lit(1)).alias("count"), F.max("delay_us").alias("max_us"))
        .orderBy("delay_us")
    )


def cumulative(counts: DataFrame, value: str) -> DataFrame:
    """The counts with `share`: the part of all that is no larger than the value (a CDF)."""
    up_to = Window.orderBy(value).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    everything = Window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return counts.withColumn("share", F.sum("count").over(up_to) / F.sum("count").over(everything)).orderBy(value)


def quantiles(shares: DataFrame) -> DataFrame:
    """One row: count, p50_us, p90_us, p99_us, max_us of a delay CDF (nulls when it is empty)."""
    return shares.agg(
        F.coalesce(F.sum("count"), F.lit(0)).alias("count"),
        *[
            F.min(F.when(F.col("share") >= part, F.col("delay_us"))).alias(f"{name}_us")
            for name, part in DELAY_QUANTILES
        ],
        F.max("max_us").alias("max_us"),
    )


def hop_counts(deliveries: DataFrame) -> DataFrame:
    """hops, count: deliveries by the number of brokers passed after the first."""
    return deliveries.groupBy(F.col("hops").cast("int").alias("hops")).agg(F.count(F.lit(1)).alias("count"))


# --------------------------------------------------------------------------------------------- brokers
def reached(rows: DataFrame, nodes: DataFrame, homes: DataFrame) -> DataFrame:
    """One row for each event and broker it reached: source, sequence, broker, copies, entered, interested; `nodes` and
    `homes` as `nodes_table` and `homes_table` give them.

    copies: RECEIVE rows; entered: the event came from a client of that broker; interested: 1 if the broker or
    one of its clients was delivered the event.
    """
    received = _is(RowKind.RECEIVE)
    own = nodes.select("node", "role").join(homes, "node")  # several rows of a client that moved, else one of a node
    peers = nodes.select(F.col("node").alias("peer"), F.col("role").alias("peer_role"))
    seen = (
        rows.where((received & (F.col("sequence") != NONE)) | _is(RowKind.DELIVER))
        .select("kind", "node", "peer", "source", "sequence", "time_us")
        .join(F.broadcast(own), "node")
        .where("time_us >= from_us AND time_us < until_us")
        .join(F.broadcast(peers), "peer", "left")
    )
    return (
        seen.where((F.col("role") == "broker") | ~received)
        .groupBy("source", "sequence", F.col("home").alias("broker"))
        .agg(
            F.count(F.when(received, 1)).alias("copies"),
            F.coalesce(F.max(F.when(received, (F.col("peer_role") == "client").cast("int"))), F.lit(0)).alias(
                "entered"
            ),
            F.max((~received).cast("int")).alias("interested"),
        )
        .where("copies > 0")
    )


def brokers(reached_brokers: DataFrame, counts: DataFrame, nodes: DataFrame, published: int) -> DataFrame:
    """One row for each broker: what it sent and received, the events that reached it, its load.

    Columns: node, name, sent, bytes, received, events, copies, pure_forwarder, interested, load (the share of
    all published events that reached it) and traffic_share (its share of the bytes that brokers sent).
    """
    pure = (F.col("interested") == 0) & (F.col("entered") == 0)
    events = reached_brokers.groupBy(F.col("broker").alias("node")).agg(
        F.count(F.lit(1)).alias("events"),
        F.sum("copies").alias("copies"),
        F.count(F.when(pure, 1)).alias("pure_forwarder"),
        F.sum("interested").cast("long").alias("interested"),
        F.sum(F.when(F.col("interested") == 0, F.col("copies")).otherwise(0)).alias("copies_unwanted"),
    )
    messages = counts.groupBy("node").agg(
        _rows_of(RowKind.SEND).alias("sent"),
        F.coalesce(F.sum(F.when(_is(RowKind.SEND), F.col("bytes"))), F.lit(0)).cast("long").alias("bytes"),
        _rows_of(RowKind.RECEIVE).alias("received"),
    )
    everything = Window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return (
        nodes.where(F.col("role") == "broker")
        .select("node", "name")
        .join(messages, "node", "left")
        .join(events, "node", "left")
        .fillna(0)
        .withColumn("load", F.col("events") / F.lit(max(1, published)))
        .withColumn("traffic_share", F.col("bytes") / F.greatest(F.sum("bytes").over(everything), F.lit(1)))
        .orderBy("node")
    )


def load_shares(brokers_table: DataFrame) -> DataFrame:
    """load, share: the part of the brokers whose load is no larger."""
    return cumulative(brokers_table.groupBy("load").agg(F.count(F.lit(1)).alias("count")), "load")


def forwarding(brokers_table: DataFrame) -> DataFrame:
    """One row: broker_deliveries, pure_forwarders, yield, receptions, traffic_overhead (nulls: none)."""
    return brokers_table.agg(
        F.sum("interested").alias("broker_deliveries"),
        F.sum("pure_forwarder").alias("pure_forwarders"),
        (F.sum("interested") / F.nullif(F.sum("interested") + F.sum("pure_forwarder"), F.lit(0))).alias("yield"),
        F.sum("copies").alias("receptions"),
        (F.sum("copies_unwanted") / F.nullif(F.sum("copies"), F.lit(0))).alias("traffic_overhead"),
    )
