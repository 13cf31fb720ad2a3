"""Every registered pair of protocols that promises something, and random schedules that fit it."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tests.schedules import schedules

PAIRS = [
    ("flooding", "best_effort"),
    ("forwarding", "best_effort"),
    ("multipath", "best_effort"),
    ("multipath_delegation", "best_effort"),
    ("cells", "best_effort"),
    ("forwarding", "epidemic"),
    ("flooding", "epidemic"),
    ("cells", "gryphon"),
    ("cells", "durable"),
    ("multipath", "end_to_end"),
    ("irbr", "best_effort"),
    ("irbr_members", "best_effort"),
    ("scribe", "best_effort"),
    ("rpf", "best_effort"),
    ("vinifera", "best_effort"),
    ("vinifera_even", "best_effort"),
    ("ferry", "best_effort"),
]
STRUCTURED = ("irbr", "irbr_members", "scribe", "rpf", "vinifera", "vinifera_even", "ferry")
_DATAGRAMS = {"datagrams": {"delay": "1 ms"}}


def schedules_of(routing: str, reliability: str) -> st.SearchStrategy[dict[str, Any]]:
    """Random schedules for that pair."""
    parts = {"routing": routing, "reliability": reliability, "matching": "bitset"}
    needs_datagrams = routing in (*STRUCTURED, "multipath", "multipath_delegation") or reliability in (
        "epidemic",
        "end_to_end",
    )
    more: Mapping[str, Any] = _DATAGRAMS if needs_datagrams else {}
    overlays: tuple[str, ...] = ("structured",) if routing in STRUCTURED else ("chain", "star", "random")
    if routing == "cells":
        overlays = ("chain", "random", "cells")
    return schedules(parts, more=more, overlays=overlays)
