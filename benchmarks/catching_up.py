"""How fast one subscriber catches up with what it missed, and what the others notice of that, in virtual time.

`python -m benchmarks.catching_up [--missed 16000] [--rate 200]`: three brokers in a chain with links of 2 ms. One of
three durable subscribers is away while so many events are published at that rate, and comes back while publishing goes
on. Virtual time has no cost of a core: what is measured is the protocol, and beside it what the run took of a core.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from murmuration.harness.cluster import Cluster, Delivery
from spark_analysis.history import read_history
from spark_analysis.plain_judge import judge_run

_BEFORE_S = 5
_AFTER_S = 10


def main() -> None:
    """Play it and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missed", type=int, default=16_000)
    parser.add_argument("--rate", type=int, default=200)
    given = parser.parse_args()
    began = time.process_time()
    with Cluster.start(
        overlay={"kind": "chain", "brokers": 3},
        clients={"publisher": "b0", "away": "b2", "beside": "b2", "between": "b1"},
        links={"delay": "2 ms"},
        client_links={"delay": "1 ms"},
        routing="cells",
        reliability="durable",
    ) as cluster:
        readers = ("away", "beside", "between")
        for name in readers:
            cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        _publish(cluster, given.rate * _BEFORE_S, given.rate)
        cluster.faults.disconnect("away", "b2")
        _publish(cluster, given.missed, given.rate)
        back_us = cluster.now_us
        cluster.faults.connect("away", "b2")
        _publish(cluster, given.rate * _AFTER_S, given.rate)
        cluster.drain()
        got = {name: cluster.clients[name].deliveries() for name in readers}
    took_s = time.process_time() - began
    late = [each.delivered_us for each in got["away"] if each.delivered_us >= back_us]
    caught_up_us = late[given.missed - 1]
    per_s = given.missed * 1_000_000 / (caught_up_us - back_us)
    print(f"{given.missed:,} events in {(caught_up_us - back_us) / 1e6:.3f} s: {per_s:,.0f} a second, ", end="")
    print(f"{per_s / given.rate:.0f} times the live rate; the run took {took_s:.1f} s of a core")
    published = _published(cluster.folder)
    for name in readers[1:]:
        before = _p99_us([each for each in got[name] if each.delivered_us < back_us], published)
        during = _p99_us([each for each in got[name] if back_us <= each.delivered_us <= caught_up_us], published)
        print(f"p99 of {name}: {before / 1000:.1f} ms before, {during / 1000:.1f} ms meanwhile")
    print(f"verdict: {judge_run(cluster.folder).numbers['verdict']}")


def _publish(cluster: Cluster, count: int, rate: int) -> None:
    for number in range(count):
        cluster.clients["publisher"].publish({"x": number})
        cluster.advance(f"{1_000_000 // rate} us")


def _published(folder: Path) -> Mapping[tuple[int, int], int]:
    return {event: at_us for event, (at_us, _) in read_history(folder / "journal").events.items()}


def _p99_us(deliveries: Sequence[Delivery], published: Mapping[tuple[int, int], int]) -> int:
    delays = sorted(each.delivered_us - published[each.publisher, each.sequence] for each in deliveries)
    return delays[len(delays) * 99 // 100 - 1] if delays else 0


if __name__ == "__main__":
    main()
