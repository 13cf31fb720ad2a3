"""What one order for all costs in delay: 8 subscribers of 4 pubends, with and without failures, in virtual time.

`python -m benchmarks.total_order [--seconds 20] [--rate 25]`: four publishers' brokers and four subscribers' brokers
around a cell of two, links of 2 to 12 ms and clients' links of 1 ms. Each publisher publishes at that rate, and every
subscriber wants all. With failures, a publishers' broker is killed and is back after 2 s, then a broker of the cell,
then a subscribers' link is cut for 1 s. Delays are of all deliveries; "one order" is whether all that any two
subscribers got came in the same order, by the journal alone.
"""

import argparse
import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.table import print_table
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_format import JournalRow
from murmuration.harness.cluster import Cluster
from spark_analysis.history import read_history
from spark_analysis.plain_judge import judge_run

_PUBLISHERS, _READERS = 4, 8
_CELLS = {
    **{f"p{number}": [f"p{number}"] for number in range(_PUBLISHERS)},
    **{f"s{number}": [f"s{number}"] for number in range(4)},
    "middle": ["m0", "m1"],
}
_OVERLAY = {
    "kind": "cells",
    "cells": _CELLS,
    "links": [[name, "middle"] for name in _CELLS if name != "middle"],
    "redundancy": {"middle": 2},
}
_CLIENTS = {
    **{f"publisher{number}": f"p{number}" for number in range(_PUBLISHERS)},
    **{f"reader{number}": f"s{number % 4}" for number in range(_READERS)},
}
_PUBENDS = {f"p{number}": 1 for number in range(_PUBLISHERS)}
_SETTINGS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("publisher", {}),
    ("total", {}),
    ("total", {"sit": "100 ms", "gct": "100 ms"}),
    ("total", {"sit": "50 ms", "gct": "50 ms"}),
    ("total", {"sit": "20 ms", "gct": "20 ms"}),
)
_FAILURES = {
    3: ("kill", "p1"),
    5: ("restart", "p1"),
    8: ("kill", "m0"),
    11: ("restart", "m0"),
    14: ("cut", "m1", "s2"),
    15: ("heal", "m1", "s2"),
}


def main() -> None:
    """Play them and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rate", type=int, default=25)
    given = parser.parse_args()
    for fails in (False, True):
        rows = [_play(order, more, given.seconds, given.rate, fails) for order, more in _SETTINGS]
        headings = ("order", "sit, gct", "p50 ms", "p99 ms", "longest ms", "messages", "one order", "verdict")
        print_table("With failures" if fails else "Without failures", headings, rows)


def _play(order: str, more: Mapping[str, Any], seconds: int, rate: int, fails: bool) -> Sequence[object]:
    with Cluster.start(
        overlay=_OVERLAY,
        clients=_CLIENTS,
        links={"delay": {"uniform": ["2 ms", "12 ms"]}},
        client_links={"delay": "1 ms"},
        routing="cells",
        reliability="gryphon",
        parameters={"gryphon": {"order": order, "pubends": _PUBENDS, **more}},
    ) as cluster:
        for number in range(_READERS):
            cluster.clients[f"reader{number}"].subscribe("x >= 0")
        cluster.settle()
        _publish(cluster, seconds, rate, _FAILURES if fails else {})
        cluster.drain()
        folder = cluster.folder
    history, judged = read_history(folder / "journal"), judge_run(folder)
    delays = sorted(at_us - history.events[event][0] for (event, _), at_us in judged.pairs.first_us.items())
    is_one_order = _is_one_order(judged.pairs.first_us, history.rows.of(RowKind.DELIVER))
    return (
        order, f"{more.get('sit', '500 ms')}, {more.get('gct', '200 ms')}",
        *(f"{delays[min(len(delays) - 1, int(len(delays) * part))] / 1000:,.1f}" for part in (0.5, 0.99, 1)),
        f"{len(history.rows.of(RowKind.SEND)):,}",
        "yes" if is_one_order else "no", judged.numbers["verdict"],
    )  # fmt: skip


def _publish(cluster: Cluster, seconds: int, rate: int, failures: Mapping[int, Sequence[str]]) -> None:
    """Publishers at that rate each, at moments of their own."""
    rng = random.Random("benchmarks/total_order")
    count = seconds * rate
    moments = sorted(
        (turn * 1_000_000 // rate + rng.randrange(1_000_000 // rate), number)
        for turn, number in itertools.product(range(count), range(_PUBLISHERS))
    )
    steps = sorted((at_s * 1_000_000, step) for at_s, step in failures.items())
    passed_us = 0
    for at_us, number in moments:
        while steps and steps[0][0] <= at_us:
            verb, *names = steps.pop(0)[1]
            getattr(cluster.faults, verb)(*names)
        cluster.advance(f"{at_us - passed_us} us")
        passed_us = at_us
        cluster.clients[f"publisher{number}"].publish({"x": number})


def _is_one_order(first_us: Mapping[Any, int], deliveries: Sequence[JournalRow]) -> bool:
    """Does each pair of subscribers agree on each pair of events that both got? Looked at pair by pair."""
    orders: dict[int, dict[Any, int]] = {}
    for row in deliveries:  # of a subscriber's node in their order
        event = row.source, row.sequence
        if (event, row.value) in first_us:
            orders.setdefault(row.value, {}).setdefault(event, len(orders[row.value]))
    return all(
        [event for event in one if event in other] == [event for event in other if event in one]
        for one, other in itertools.combinations(orders.values(), 2)
    )


if __name__ == "__main__":
    main()
