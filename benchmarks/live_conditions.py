"""What links and faults do to events, live beside virtual time: `python -m benchmarks.live_conditions [CONDITION ...]`.

A chain of three brokers with two clients each, of whom one publishes 20 events a second, for six seconds. The table has
deliveries at other brokers than the publisher's: how many, messages that links lost and copied, how often a broker
began to wait for room, and delays. What is drawn (losses, copies) comes out otherwise live, where a microsecond decides
which message it is for. Live, delays have some milliseconds more, of this computer's cores.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table import print_table
from murmur_pubsub.journal import RowKind
from murmuration.hunt.live import Played, play_both
from spark_analysis.history import read_history

_SOON: dict[str, Any] = {"at": "1 s", "for": "3 s"}
CONDITIONS: dict[str, dict[str, Any]] = {
    "delay": {"links": {"delay": "5 ms"}},
    "exponential delay": {"links": {"delay": {"exponential": "20 ms"}}},
    "loss": {"links": {"delay": "5 ms", "loss": 0.2}},
    "duplication": {"links": {"delay": "5 ms", "duplication": 0.3}},
    "reordering": {"links": {"delay": "5 ms", "reordering": 0.2, "reordering_by": "60 ms"}},
    "3 kB a second": {"links": {"delay": "5 ms", "bytes_per_s": 3_000}},
    "45 messages a second, room for 5": {"links": {"delay": "5 ms", "messages_per_s": 45, "queue_messages": 5}},
    "40 messages a second, the rest dropped": {
        "links": {"delay": "5 ms", "messages_per_s": 40, "queue_messages": 5, "on_overflow": "drop"}
    },
    "clients take 40 a second, room for 5": {
        "client_links": {"delay": "1 ms", "messages_per_s": 40, "queue_messages": 5}
    },
    "stall": {"faults": [{**_SOON, "stall": "b1"}]},
    "slow": {"faults": [{**_SOON, "slow": "b1", "work": "20 ms"}]},
    "bandwidth": {"faults": [{**_SOON, "link": ["b0", "b1"], "messages_per_s": 20}]},
}
HEADINGS = ("condition", "runtime", "judged", "deliveries", "lost", "copied", "waits", "p50 ms", "p90 ms", "most ms")


def scenario_of(condition: str) -> dict[str, Any]:
    """The scenario in which all is as in `delay` but for this condition."""
    return {
        "name": "conditions",
        "runtime": "virtual",
        "seed": 1,
        "overlay": {"kind": "chain", "brokers": 3},
        "workload": {
            "kind": "zipf", "clients": 6, "publishers": 3, "publications": 360, "rate_per_s": 60, "attributes": 1,
            "predicates": 1, "matching_rate": 0.9, "subscribers_per_actor": 1,
        },
        "broker": {"routing": "forwarding", "reliability": "best_effort"},
        "drain": {"limit": "25 s"},
        "links": {"delay": "5 ms"},
        **CONDITIONS[condition],
    }  # fmt: skip


def line(played: Played) -> Sequence[str]:
    """Counts and delays of a run."""
    history = read_history(played.folder / "journal")
    published_us = {event: time_us for event, (time_us, _) in history.events.items()}
    beyond = [row for row in history.rows.of(RowKind.DELIVER) if row.hops > 0]
    delays_ms = [(row.time_us - published_us[row.source, row.sequence]) / 1_000 for row in beyond]
    lost, copied = (sum(1 for _ in history.rows.of(kind)) for kind in (RowKind.DROP, RowKind.DUPLICATE))
    waits = sum(row.value == 1 for row in history.rows.of(RowKind.PAUSE))
    delays = (*np.quantile(delays_ms, (0.5, 0.9)), max(delays_ms))
    return (
        played.verdict,
        *(f"{count:,}" for count in (len(beyond), lost, copied, waits)),
        *(f"{delay:,.0f}" for delay in delays),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("conditions", nargs="*", metavar="CONDITION", choices=[*CONDITIONS, []], default=[])
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, condition in enumerate(parser.parse_args().conditions or CONDITIONS):
            both = play_both(scenario_of(condition), Path(scratch) / str(number), lambda *_: None)
            rows += [(condition, runtime, *line(played)) for runtime, played in both.items()]
    print_table("a chain of three brokers, 60 events a second", HEADINGS, rows)


if __name__ == "__main__":
    main()
