"""Runs with delegation, which is ours, and without: yield, path length, messages, and the busiest uplink."""

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_pubsub.machine import NodeName
from murmuration.papers.lab.process_meter import ProcessMeter
from murmuration.papers.multipath.overload import count_sent
from murmuration.papers.multipath.run import MultipathNetwork, MultipathSpec


@dataclass(frozen=True, slots=True)
class RoutedSpec(MultipathSpec):
    """The same with that routing."""

    routing: str = "multipath"

    def parts(self, coordinator: NodeName | None = None) -> dict[str, Any]:
        """See `MultipathSpec`."""
        return MultipathSpec.parts(self, coordinator) | {"routing": self.routing}


@dataclass(frozen=True, slots=True)
class DelegationRun:
    """What came out of one. busiest_per_s: publications that one broker sent, at most. wrong: missing, duplicate and
    spurious deliveries."""

    spec: RoutedSpec
    system_yield: float
    mean_hops: float
    sent_per_s: float
    busiest_per_s: float
    required: int
    wrong: tuple[int, int, int]
    cpu_s: float


def measure_delegation(spec: RoutedSpec) -> DelegationRun:
    """Learn links, then count; the time is this process's (give it one of its own)."""
    spent = ProcessMeter()
    with tempfile.TemporaryDirectory() as folder:
        network = MultipathNetwork(spec, Path(folder))
        network.learn()
        sent: Counter[NodeName] = Counter()
        for name, broker in network.brokers.items():
            count_sent(broker, name, sent)
        found = network.measure()
    return DelegationRun(
        spec, found.system_yield, found.mean_hops, found.traffic_per_s, max(sent.values()) / spec.seconds,
        found.required, (found.missing, found.duplicate, found.spurious), spent.cpu_s,
    )  # fmt: skip
