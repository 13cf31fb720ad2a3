"""Messages of an event in IRBR that enters ranges at members, beside IRBR and RPF with direct ways back.

The network, subscriptions and events of the IRBR paper's publish chart (`murmuration.papers.irbr`): 1,024 nodes, 256
subscriptions, 40 events of random publishers. The same events are published again and again, with a round of probes in
between: at first no member has been probed, and each pass lets the nodes on the way find the next ones. Also what the
probing of members costs: probes of a node and round. `python -m benchmarks.members [SEEDS]`, one by default.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.table import print_table
from murmuration.papers.irbr.run import PROBE_TIMEOUT_US, PROBE_US, PastryNetwork
from murmuration.papers.irbr.workload import Generator, Rates
from reliability.best_effort import Forwarded
from routing.pastry.messages import Ping

NODES = 1_024
SUBSCRIPTIONS = 256
EVENTS = 40
PASSES = 6
RATES = (0.01, 0.1, 0.5)


def passes(routing: str, rate: float, seed: int, folder: Path) -> Iterator[tuple[float, float, float]]:
    """Of each pass: interested nodes but the publisher, messages of an event, probes of a node in the next round."""
    generator = Generator(Rates(matching=rate), seed)
    network = PastryNetwork(routing, NODES, seed, folder, PROBE_US)
    for _ in range(SUBSCRIPTIONS):
        network.subscribe(network.rng.choice(network.names), generator.filter())
        network.quiet()
    planned = [(network.rng.choice(network.names), generator.event()) for _ in range(EVENTS)]
    for _ in range(PASSES):
        network.sent.clear()
        interested = 0
        for publisher, event in planned:
            number = network.publish(publisher, event)
            network.quiet()
            interested += (network.oracle.fates[number].wanted & ~(1 << network.numbers[publisher])).bit_count()
        messages = network.sent[Forwarded]
        began = (network.runtime.now_us // PROBE_US + 1) * PROBE_US
        network.runtime.run(until_us=began - 1)
        network.sent.clear()
        network.runtime.run(until_us=began + PROBE_TIMEOUT_US + 1)
        yield interested / EVENTS, messages / EVENTS, network.sent[Ping] / NODES
    tally = network.oracle.tally()
    assert (tally.missing, tally.duplicate, tally.spurious) == (0, 0, 0)
    network.close()


def main() -> None:
    """Print the table."""
    seeds = range(1, 1 + (int(sys.argv[1]) if len(sys.argv) > 1 else 1))
    rows = []
    for rate in RATES:
        for routing in ("irbr", "rpf", "irbr_members"):
            found = []
            for seed in seeds:
                with tempfile.TemporaryDirectory() as folder:
                    found.append(list(passes(routing, rate, seed, Path(folder))))
            last = [each[-1] for each in found]
            spread = [messages / interested for interested, messages, _ in last]
            rows.append(
                (
                    f"{rate:.0%} {routing}",
                    f"{statistics.mean(interested for interested, _, _ in last):.1f}",
                    *(f"{statistics.mean(each[number][1] for each in found):.1f}" for number in range(PASSES)),
                    f"{statistics.mean(spread):.2f}",
                    f"{min(spread):.2f}-{max(spread):.2f}",
                    f"{statistics.mean(probes for _, _, probes in last):.1f}",
                )
            )
    headings = ("matching", "interested", *(f"pass {number + 1}" for number in range(PASSES)))
    more = ("a delivery", "spread", "probes a node")
    print_table(f"messages an event, {NODES:,} nodes, {len(seeds)} seeds", (*headings, *more), rows)


if __name__ == "__main__":
    main()
