"""Multipath forwarding that delegates, beside the paper's S2: yield, path length, messages, and the busiest uplink.

The multipath paper's low rate (`murmuration.papers.multipath`): 120 brokers, fanout 35, 60 publications a second, after
240 s in which links are learned; but 60 s are measured and not 600. `python -m benchmarks.delegation [SEEDS]`, one by
default.
"""

import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.table import print_table
from murmur_pubsub.machine import NodeName
from murmuration.papers.multipath.overload import count_sent
from murmuration.papers.multipath.run import MultipathMeasures, MultipathNetwork, MultipathSpec

SECONDS = 60
DATASETS = ("DT1", "DT2")


class DelegationSpec(MultipathSpec):
    """The same with the routing that delegates."""

    def parts(self, coordinator: NodeName | None = None) -> dict[str, Any]:
        """See `MultipathSpec`."""
        return super().parts(coordinator) | {"routing": "multipath_delegation"}


SYSTEMS: dict[str, type[MultipathSpec]] = {"S2": MultipathSpec, "delegation": DelegationSpec}


def measured(spec: MultipathSpec, folder: Path) -> tuple[MultipathMeasures, float]:
    """One run, and the most publications that a broker sent a second."""
    network = MultipathNetwork(spec, folder)
    network.publish_steadily(int(spec.warm_s * spec.warm_rate_per_s), spec.warm_rate_per_s, 1)
    sent: Counter[NodeName] = Counter()
    for name, broker in network.brokers.items():
        count_sent(broker, name, sent)
    network.begin_measuring(spec.seconds)
    network.publish_steadily(int(spec.seconds * spec.rate_per_s), spec.rate_per_s, 2)
    return network.finish(), max(sent.values()) / spec.seconds


def main() -> None:
    """Print the table."""
    seeds = range(1, 1 + (int(sys.argv[1]) if len(sys.argv) > 1 else 1))
    rows = []
    for dataset in DATASETS:
        for system, make in SYSTEMS.items():
            found = []
            for seed in seeds:
                with tempfile.TemporaryDirectory() as folder:
                    found.append(measured(make(dataset, 120, "S2", seconds=SECONDS, seed=seed), Path(folder)))
            yields = [100 * each.system_yield for each, _ in found]
            wrong = [sum(getattr(each, name) for each, _ in found) for name in ("missing", "duplicate", "spurious")]
            rows.append(
                (
                    f"{dataset} {system}",
                    f"{statistics.mean(yields):.1f} %",
                    f"{min(yields):.1f}-{max(yields):.1f}",
                    f"{statistics.mean(each.mean_hops for each, _ in found):.2f}",
                    f"{statistics.mean(each.traffic_per_s for each, _ in found):,.0f}",
                    f"{statistics.mean(busiest for _, busiest in found):.1f}",
                    f"{min(busiest for _, busiest in found):.1f}-{max(busiest for _, busiest in found):.1f}",
                    f"{wrong[0]}, {wrong[1]}, {wrong[2]} of {sum(each.required for each, _ in found):,}",
                )
            )
            print(rows[-1], file=sys.stderr, flush=True)
    headings = ("", "yield", "of", "hops", "sent/s", "busiest uplink/s", "of", "missing, duplicate, spurious")
    print_table(f"120 brokers, fanout 35, {SECONDS} s at 60 publications a second, {len(seeds)} seeds", headings, rows)


if __name__ == "__main__":
    main()
