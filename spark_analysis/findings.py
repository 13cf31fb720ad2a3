"""What is wrong, finding by finding, with what a reader needs to look for its cause.

A stray delivery is told apart here: the event's contents and the subscriber's node are looked up for the few rows that
are wrong. Where the run had faults, the rows of the journal about an event are gathered beside its findings, so that
`spark_analysis.excuses` can see where its way ended.
"""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from murmur_pubsub.event import fingerprint_of, unpack_attributes
from murmur_pubsub.journal import RowKind
from spark_analysis.changing_overlay import AnyExcuses
from spark_analysis.connections import Connections
from spark_analysis.driver_table import frame_of
from spark_analysis.excuses import NEVER_OUT, Case, Excuse
from spark_analysis.fault_windows import NEVER_US
from spark_analysis.given_up import REFUSED_AND_DELIVERED
from spark_analysis.journal_source import Journal
from spark_analysis.passages import PASSAGE_KINDS, HopRow, Passage, passage_of
from spark_analysis.verdict import tell_conjured

FINDINGS = ("missing", "duplicate", "spurious", "out_of_order", "misplaced", "altered")
FINDINGS_SCHEMA = StructType(
    [
        StructField("finding", StringType(), False),
        StructField("event", StringType(), False),
        StructField("source", LongType(), False),
        StructField("sequence", LongType(), False),
        StructField("attributes", StringType(), True),
        StructField("subscriber", LongType(), False),
        StructField("client", StringType(), False),
        StructField("published_us", LongType(), True),
        StructField("delivered_us", LongType(), True),
        StructField("count", LongType(), False),
        StructField("detail", StringType(), False),
        StructField("explanation", StringType(), True),
        StructField("by_tables", LongType(), False),
    ]
)
"""`count`: the copies too many of a duplicate, the copies of a stray delivery, else 1. `explanation`: the fault that
excuses the finding. `by_tables`: 1 if that is because it had disturbed tables."""
_EVENT = ["source", "sequence"]
_HOP = ("time_us", "kind", "node", "peer", "value")


@dataclass(frozen=True, slots=True)
class Readers:
    """What findings are told with. `names`: of the nodes by number; `explainer`: None if no fault could excuse
    anything; `hops`: are messages that arrive journaled? `clocks_us`: see `rules.Rules`. `excuses`: may anything be
    excused? `refused`: see `given_up.refused_events`."""

    filters: Sequence[str]
    names: Sequence[str]
    explainer: AnyExcuses | Connections | None
    hops: bool
    clocks_us: int
    excuses: bool = True
    refused: frozenset[tuple[int, int]] = frozenset()


def findings(
    wrong: DataFrame, judged: DataFrame, journal: Journal, lives: DataFrame, readers: Readers, here: bool
) -> DataFrame | pa.Table:
    """One row for each finding (`FINDINGS_SCHEMA`). `wrong`: pairs of which something is counted, among those `judged`
    (`judge.OUTCOMES_SCHEMA`); `lives`: `judge.LIVES_SCHEMA`; events as `judge.distinct_events` gives them. `here`: they
    are few, and told by the driver (this one runs a job)."""
    times = journal.events.select(*_EVENT, F.col("time_us").alias("event_us"), "attributes")
    homes = lives.groupBy("subscriber").agg(F.min("node").alias("home"))
    together = wrong.join(times, _EVENT, "left").join(homes, "subscriber", "left")
    together = together.join(_publishers(journal, wrong), _EVENT, "left")
    if isinstance(readers.explainer, Connections):
        together = _with_what_overtook(together, judged)
    elif readers.explainer is not None:
        together = together.join(_passages(journal, wrong), _EVENT, "left")
        if any(window.reorders for window in readers.explainer.windows):
            overtaking = wrong.where("out_of_order > 0 AND after > sequence").select(
                "source", F.col("after").alias("sequence")
            )
            later = _passages(journal, overtaking).withColumnsRenamed({"sequence": "after", "rows": "later_rows"})
            together = together.join(later, ["source", "after"], "left")
    if here:
        told = frame_of(together, _describer(readers), FINDINGS_SCHEMA, here)
        return pa.Table.from_pandas(told, to_arrow_schema(FINDINGS_SCHEMA), preserve_index=False)
    return together.mapInPandas(_describer(readers), FINDINGS_SCHEMA)


def _with_what_overtook(together: DataFrame, judged: DataFrame) -> DataFrame:
    """`overtaken_us`: when the subscriber first got a later event of the publisher."""
    streams = together.select("source", "subscriber").distinct()
    later = Window.partitionBy("source", "subscriber").orderBy(F.desc("sequence"))
    overtaking = judged.join(streams, ["source", "subscriber"], "left_semi").select(
        *_EVENT, "subscriber", "node", "fingerprint",
        F.min("delivered_us").over(later.rangeBetween(Window.unboundedPreceding, -1)).alias("overtaken_us"),
    )  # fmt: skip
    return together.join(overtaking, [*_EVENT, "subscriber", "node", "fingerprint"], "left")


def _publishers(journal: Journal, wrong: DataFrame) -> DataFrame:
    """`publisher`: the node where each event was published of which something is wrong."""
    out = journal.of(RowKind.PUBLISH).join(wrong.select(*_EVENT).distinct(), _EVENT, "left_semi")
    return out.groupBy(*_EVENT).agg(F.max("node").alias("publisher"))


def _passages(journal: Journal, wrong: DataFrame) -> DataFrame:
    """`rows`: those about the way of each event of which something is wrong, field after field in one flat array, which
    reaches Python without an object for each row."""
    fields = [F.col(name).cast("long") for name in _HOP]
    about = journal.of(*PASSAGE_KINDS).join(wrong.select(*_EVENT).distinct(), _EVENT, "left_semi")
    return about.groupBy(*_EVENT).agg(F.flatten(F.collect_list(F.array(*fields))).alias("rows"))


def _describer(readers: Readers) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    columns = [field.name for field in FINDINGS_SCHEMA]

    def describe(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            passages: dict[tuple[int, int], Passage] = {}
            rows = [row for pair in frame.to_dict("records") for row in _rows_of(pair, readers, passages)]
            described = pd.DataFrame(rows, columns=columns)
            for name in ("published_us", "delivered_us"):
                described[name] = described[name].astype("Int64")
            yield described

    return describe


def _rows_of(
    pair: Mapping[Hashable, Any], readers: Readers, passages: dict[tuple[int, int], Passage]
) -> Iterator[list[Any]]:
    """The findings about one pair; missing values of `pair` are NaN, as pandas has them. `passages`: made so far."""
    source, sequence, client = pair["source"], pair["sequence"], _name(readers.names, pair["node"])
    published = not pd.isna(pair["event_us"])
    blob = bytes(pair["attributes"]) if published else b""
    wanted = None if pd.isna(pair["filter_number"]) else readers.filters[int(pair["filter_number"])]
    described: list[tuple[str, int, str, bool]] = []
    if pair["out_of_order"]:
        described.append(("out_of_order", 1, _why_out_of_order(pair), False))
    if pair["missing"]:
        described.append(("missing", 1, f"wanted by {wanted}", False))
    if pair["duplicate"]:
        described.append(("duplicate", int(pair["duplicate"]), f"delivered {int(pair['copies'])} times", False))
    if pair["stray"]:
        finding, detail = "spurious", "never published"
        foretold = published and wanted is not None and pair["delivered_us"] < pair["event_us"] - readers.clocks_us
        alive = bool(pair["alive_from_us"] <= pair["delivered_us"])  # NaN, where none was, is not
        early = wanted is not None and not foretold and alive
        if published and fingerprint_of(int(pair["event_us"]), blob) != pair["fingerprint"]:
            finding, detail = "altered", "its contents or its publication time are not those of the event"
        elif published and not pd.isna(pair["home"]) and pair["home"] != pair["node"]:
            finding, detail = "misplaced", f"delivered by {client}, not by {_name(readers.names, int(pair['home']))}"
        elif published and (source, sequence) in readers.refused:
            detail = REFUSED_AND_DELIVERED
        elif published:
            detail = _why_spurious(wanted, early, foretold)
        described.append((finding, int(pair["stray"]), detail, early and finding == "spurious"))
    for finding, count, detail, early in described:
        excuse: Excuse | None = None
        excusable = published and readers.excuses and not pd.isna(pair["home"])
        if excusable and pd.isna(pair["publisher"]):
            excuse = NEVER_OUT
        elif excusable and readers.explainer is not None:
            case = Case(
                finding, _name(readers.names, int(pair["publisher"])), client, int(pair["event_us"]),
                _maybe(pair["delivered_us"]), _maybe(pair.get("overtaken_us")), _withdrawn(pair["required_until_us"]),
                early, _maybe(pair["issued_us"]), (source, sequence),
                _later(pair, readers, passages) if finding == "out_of_order" else None,
            )  # fmt: skip
            passage = _passage((source, sequence), pair.get("rows"), readers, passages)
            excuse = readers.explainer.explain(case, passage)
        yield [
            finding, f"{source}:{sequence}", source, sequence,
            json.dumps(unpack_attributes(blob), ensure_ascii=False, sort_keys=True) if published else None,
            pair["subscriber"], client, _maybe(pair["event_us"]), _maybe(pair["delivered_us"]),
            count, detail, None if excuse is None else excuse.text, int(excuse is not None and excuse.by_tables),
        ]  # fmt: skip


def _later(pair: Mapping[Hashable, Any], readers: Readers, passages: dict[tuple[int, int], Passage]) -> Passage | None:
    """The way of the event that had been delivered before it, where that was asked for."""
    rows = pair.get("later_rows")
    if rows is None or isinstance(rows, float):
        return None
    return _passage((pair["source"], int(pair["after"])), rows, readers, passages)


def _passage(event: tuple[int, int], flat: Any, readers: Readers, passages: dict[tuple[int, int], Passage]) -> Passage:
    """The way of the event that these rows tell, if it was not made yet."""
    if event not in passages:
        passages[event] = passage_of(_hop_rows(flat), readers.names, readers.hops)
    return passages[event]


def _hop_rows(flat: Any) -> list[HopRow]:
    """The rows of `_passages` again."""
    if flat is None or isinstance(flat, float):
        return []
    return [tuple(row) for row in np.reshape(flat, (-1, len(_HOP))).tolist()]


def _name(names: Sequence[str], node: int) -> str:
    return names[node] if 0 <= node < len(names) else f"node {node}"


def _maybe(number: Any) -> int | None:
    return None if number is None or pd.isna(number) else int(number)


def _withdrawn(until_us: Any) -> int | None:
    found = _maybe(until_us)
    return None if found == NEVER_US else found


def _why_out_of_order(pair: Mapping[Hashable, Any]) -> str:
    after, against = _maybe(pair["after"]), _maybe(pair["against"])
    if after is not None and after > pair["sequence"]:
        return f"delivered after {pair['source']}:{after}"
    return f"delivered after an event that subscriber {against} got later than this one"


def _why_spurious(wanted: str | None, early: bool, foretold: bool) -> str:
    if wanted is None:
        return "no subscription of this subscriber matches"
    if foretold:
        return f"delivered before it was published: {wanted}"
    return f"published before the subscription: {wanted}" if early else f"not subscribed to by then: {wanted}"


def conjured(journal: Journal, names: Sequence[str]) -> str | None:
    """A node that had an event which it neither published nor received, if there is one: then the journal does not show
    the ways of events, and nothing can be excused by them (this one runs a job)."""
    carried = journal.of(RowKind.PUBLISH, RowKind.SEND, RowKind.RECEIVE, RowKind.DELIVER).where("sequence >= 0")
    came = F.max(F.col("kind").isin(int(RowKind.PUBLISH), int(RowKind.RECEIVE)))
    nodes = carried.groupBy(*_EVENT, "node").agg(came.alias("came")).where("NOT came")
    first = nodes.orderBy(*_EVENT, "node").first()
    return None if first is None else tell_conjured(names[first["node"]], first["source"], first["sequence"])
