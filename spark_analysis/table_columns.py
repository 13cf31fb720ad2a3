"""The tables that an analysis writes: what a row is, and what each column means.

`AnalysisFolder` writes no table with other columns, and the reference is made of these. Times are emulated microseconds
from the start of the run.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """What a row is for, and the columns in their order with what they mean ("": the name says it)."""

    row: str
    columns: Mapping[str, str]


_DELAYS = Table("the run", {"count": "", "p50_us": "", "p90_us": "", "p99_us": "", "max_us": ""})
_DELAYS_CDF = Table(
    "a distinct delay, of four digits",
    {"delay_us": "", "count": "", "max_us": "the longest that is told by these digits", "share": "of those up to it"},
)
TABLES: Mapping[str, Table] = {
    "findings": Table(
        "a finding",
        {
            "finding": "a count of the verdict: `missing`, `duplicate`, …",
            "event": "`publisher:sequence`",
            "source": "the publisher",
            "sequence": "",
            "attributes": "of the event",
            "subscriber": "",
            "client": "the subscriber's",
            "published_us": "",
            "delivered_us": "",
            "count": "the copies too many of a duplicate, the copies of a stray delivery, else 1",
            "detail": "",
            "explanation": "the fault that excuses it, if one does",
            "by_tables": "1 if it is excused because tables were disturbed, else 0",
        },
    ),
    "faults": Table(
        "a fault",
        {
            "step": "of the plan",
            "fault": "in words",
            "at_us": "from the beginning of publishing",
            "from_us": "when it was in effect",
            "until_us": "when it was repaired",
            "outcome": "whether it took effect",
            "seen": "by what that was seen",
            "recovery_us": "from the repair until nothing was lost or late any more",
        },
    ),
    "phases": Table("a phase of the run", {"phase": "its name", "begin_us": ""}),
    "rates": Table(
        "the run",
        {
            "begin_us": "of publishing",
            "end_us": "of publishing",
            "publications": "",
            "deliveries": "",
            "publications_per_second": "",
            "deliveries_per_second": "",
        },
    ),
    "rows_by_kind": Table("a kind of journal row", {"kind": "its name", "rows": ""}),
    "traffic": Table(
        "a stretch of time",
        {
            "bucket_us": "its beginning",
            "published": "events",
            "delivered": "deliveries",
            "sent": "messages",
            "received": "messages",
            "dropped": "messages",
            "bytes": "of the messages sent",
        },
    ),
    "messages_by_kind": Table(
        "a kind of message", {"message_kind": "its number", "name": "", "sent": "", "bytes": "", "received": ""}
    ),
    "drops": Table("a reason for a drop", {"reason": "its name", "messages": ""}),
    "lag": Table(
        "a node of a live run",
        {"node": "its number", "name": "", "lag_us_max": "behind emulated time, since publishing began"},
    ),
    "protocol_records": Table(
        "a topic of what protocols record", {"topic": "its number", "rows": "", "value_sum": "", "value_max": ""}
    ),
    "delivery_rate": Table(
        "a stretch of time", {"bucket_us": "its beginning", "required": "", "made": "", "delivery_rate": ""}
    ),
    "delivery_delay_cdf": _DELAYS_CDF,
    "delivery_delay": _DELAYS,
    "hop_latency_cdf": _DELAYS_CDF,
    "hop_latency": _DELAYS,
    "hop_count_cdf": Table("a number of hops", {"hops": "", "count": "of deliveries", "share": "of those up to it"}),
    "brokers": Table(
        "a broker",
        {
            "node": "its number",
            "name": "",
            "sent": "messages",
            "bytes": "of them",
            "received": "messages",
            "events": "that it had",
            "copies": "of them",
            "pure_forwarder": "how many of the events only passed it: neither published nor wanted there",
            "interested": "how many of the events were delivered there",
            "copies_unwanted": "copies of events that were not",
            "load": "share of all published events that it had",
            "traffic_share": "of the bytes that brokers sent",
        },
    ),
    "load_cdf": Table("a load", {"load": "", "count": "of brokers", "share": "of those up to it"}),
    "forwarding": Table(
        "the run",
        {
            "broker_deliveries": "sum of `interested`",
            "pure_forwarders": "sum of `pure_forwarder`",
            "yield": "share of the first in both together",
            "receptions": "sum of `copies`",
            "traffic_overhead": "share of `copies_unwanted` in them",
        },
    ),
    "damage": Table("a damaged file; only if the journal is damaged", {"file": "", "what": "is wrong with it"}),
}


def check_columns(name: str, columns: Sequence[str]) -> None:
    """Raise ValueError if the table has other columns than are told of it."""
    told = list(TABLES[name].columns)
    if list(columns) != told:
        raise ValueError(f"the table {name} has the columns {list(columns)}; spark_analysis.table_columns tells {told}")
