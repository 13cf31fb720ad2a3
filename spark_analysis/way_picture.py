"""One event's way as the page draws it."""

from collections.abc import Mapping
from typing import Any

from spark_analysis.event_way import EventWay
from spark_analysis.way_text import way_lines

_HOPS_DRAWN = 400
_LINES_SHOWN = 60


def way_plain(way: EventWay) -> Mapping[str, Any]:
    """Its hops in order, and its lines of text."""
    hops = [
        {"from": message.sender, "to": message.receiver} | ({"lost": message.loss} if message.loss is not None else {})
        for message in way.messages
    ]
    return {
        "t": way.published_us,
        "hops": hops[:_HOPS_DRAWN],
        "lines": [line for line in way_lines(way) if line][:_LINES_SHOWN],
    }
