"""Runs in which brokers are short of something: of time for each publication that comes to them, or of uplink.

Of these runs only sums are kept, and what tells where the shortage was: how much each broker was asked to send.
"""

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from murmur_pubsub.event import Event
from murmur_pubsub.machine import NodeName
from murmuration.papers.lab.process_meter import ProcessMeter
from murmuration.papers.multipath.run import MultipathNetwork, MultipathSpec
from reliability.broker import Broker
from routing.router import Hop


@dataclass(frozen=True, slots=True)
class OverloadSpec(MultipathSpec):
    """The same, and `work_us`: what each message that a broker takes from another one costs it, from the time on when
    measuring begins. What has come and was not taken waits, however much it is."""

    work_us: int = 0


@dataclass(slots=True)
class OverloadMeasures:
    """What came out in the seconds measured. asked: publications a second that each broker was asked to send, most
    first. path: hops of all deliveries."""

    spec: OverloadSpec
    published: int = 0
    required: int = 0
    deliveries: int = 0
    pure_forwards: int = 0
    path: int = 0
    soft_links: float = 0.0
    asked: list[float] = field(default_factory=list)
    cpu_s: float = 0.0

    @property
    def mean_hops(self) -> float:
        """Of the deliveries."""
        return self.path / max(1, self.deliveries)

    @property
    def share(self) -> float:
        """Of the deliveries that had to be made."""
        return self.deliveries / max(1, self.required)

    @property
    def system_yield(self) -> float:
        """Deliveries over all publications that arrived."""
        return self.deliveries / max(1, self.deliveries + self.pure_forwards)


def count_sent(broker: Broker, name: NodeName, sent: Counter[NodeName]) -> None:
    """Count from now on the publications that the broker is asked to send, each copy of them."""
    plain = broker.next_hops

    def counted(event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        hops = plain(event, came_from, header)
        sent[name] += len(hops)
        return hops

    broker.next_hops = counted  # type: ignore[method-assign]


def measure_overload(spec: OverloadSpec) -> OverloadMeasures:
    """Learn links, then be short of what the spec says; the time is this process's (give it one of its own)."""
    spent = ProcessMeter()
    sent: Counter[NodeName] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        network = MultipathNetwork(spec, Path(folder))
        network.learn()
        for name, broker in network.brokers.items():
            count_sent(broker, name, sent)
            network.runtime.slow(name, spec.work_us)
        found = network.measure()
    return OverloadMeasures(
        spec, found.published, found.required, found.deliveries, found.pure_forwards,
        sum(length * count for length, count in enumerate(found.hops)), found.soft_links,
        [round(count / spec.seconds, 2) for _, count in sent.most_common()], spent.cpu_s,
    )  # fmt: skip
