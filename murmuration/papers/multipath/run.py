"""One run of the multipath paper's experiments on the virtual runtime, measured in process.

Brokers deliver to their own subscribers, as the paper's did (no last mile). A publication that arrives at a broker
with a matching local subscriber is a delivery, at any other broker it is a pure forwarding; what is published at a
broker for its own subscribers passes no link and counts as neither. What each publication had to reach is worked out
beforehand with `Filter.matches`, so that missing and duplicate deliveries are counted against an oracle.
"""

import functools
import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from murmur_pubsub.codec import Encoded
from murmur_pubsub.deployment import LinkPlan
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import NodeName
from murmur_virtual.virtual_node import CONTROL_MESSAGE, EVENT_MESSAGE
from murmuration.papers.lab.measured_network import MeasuredNetwork
from murmuration.papers.lab.process_meter import ProcessMeter
from murmuration.papers.lab.real_data import find_real
from reliability.best_effort import Forwarded
from routing.multipath.messages import LoadExchange
from routing.multipath.parameters import MultipathParameters, Strategy
from routing.multipath.router import MultipathRouter
from workloads.multipath_datasets import Dataset, covering_dataset, social_dataset, zipf_dataset
from workloads.overlay import Overlay, Tree, balanced

LINK = LinkSpec(delay=Delay("constant", 1_000))
"""1 ms between brokers, as injected in the paper's footnote 4."""
CANDIDATES = 10
"""maxlinks - fanout, which the paper does not print."""


@dataclass(frozen=True, slots=True)
class MultipathSpec:
    """What to run. warm_s: seconds of publishing at `warm_rate_per_s` first, in which links are learned and nothing
    is measured. seconds: measured. uplink_messages_per_s, uplink_bytes_per_s: cap of each broker's uplink, all links
    together, at which `queue_messages` may wait. payload_bytes: of each publication. check: wait until
    everything has arrived, and count only then (not where the system is overloaded)."""

    dataset: str
    brokers: int
    strategy: Strategy
    fanout: int = 35
    rate_per_s: float = 60.0
    seconds: float = 600.0
    warm_s: float = 240.0
    warm_rate_per_s: float = 60.0
    round_s: float = 20.0
    uplink_messages_per_s: int | None = None
    uplink_bytes_per_s: int | None = None
    queue_messages: int = 1_000
    payload_bytes: int = 1_000
    check: bool = True
    seed: int = 1

    def parts(self, coordinator: NodeName | None = None) -> dict[str, Any]:
        """Of every broker; `coordinator`: that which hosts the coordinator of moves."""
        multipath = MultipathParameters(
            strategy=self.strategy, fanout=self.fanout, maxlinks=self.fanout + CANDIDATES,
            round_us=int(self.round_s * 1e6), load_exchange_us=int(self.round_s * 5e5),
            uplink_messages_per_s=self.uplink_messages_per_s, uplink_bytes_per_s=self.uplink_bytes_per_s,
            coordinator=coordinator,
        )  # fmt: skip
        return {
            "matching": "bitset", "routing": "multipath", "routing_parameters": multipath, "reliability": "best_effort",
        }  # fmt: skip

    @property
    def uplink(self) -> LinkSpec | None:
        """The cap as a link, if there is one."""
        if self.uplink_messages_per_s is None and self.uplink_bytes_per_s is None:
            return None
        return LinkSpec(
            messages_per_s=self.uplink_messages_per_s, bytes_per_s=self.uplink_bytes_per_s,
            queue_messages=self.queue_messages, on_overflow="drop",
        )  # fmt: skip


@dataclass(slots=True)
class MultipathMeasures:
    """What came out. hops: deliveries by path length. delays_us: publishing broker's number * brokers + subscribing
    broker's to (sum, count). traffic:
    publications sent between brokers in each second."""

    spec: MultipathSpec
    published: int = 0
    deliveries: int = 0
    pure_forwards: int = 0
    hops: list[int] = field(default_factory=lambda: [0] * 64)
    delays_us: dict[int, list[int]] = field(default_factory=dict)
    traffic: list[int] = field(default_factory=list)
    missing: int = 0
    duplicate: int = 0
    spurious: int = 0
    required: int = 0
    load_bytes: int = 0
    publication_bytes: int = 0
    soft_links: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    memory_mb: float = 0.0
    dataset: dict[str, float | int | str] = field(default_factory=dict)

    @property
    def system_yield(self) -> float:
        """Deliveries over all publications sent between brokers."""
        sent = self.deliveries + self.pure_forwards
        return self.deliveries / sent if sent else 0.0

    @property
    def mean_hops(self) -> float:
        """Of the deliveries."""
        return sum(length * count for length, count in enumerate(self.hops)) / max(1, self.deliveries)

    @property
    def mean_delay_ms(self) -> float:
        """Of the deliveries."""
        total = sum(total for total, _ in self.delays_us.values())
        return total / 1e3 / max(1, sum(count for _, count in self.delays_us.values()))

    @property
    def traffic_per_s(self) -> float:
        """Publications sent between brokers a second, over the measured time."""
        return (self.deliveries + self.pure_forwards) / self.spec.seconds


class MultipathNetwork(MeasuredNetwork):
    """Brokers with one dataset's subscriptions, settled and ready to publish."""

    def __init__(self, spec: MultipathSpec, folder: Path, coordinator: NodeName | None = None) -> None:
        self.spec = spec
        self.overlay = balanced(Tree(spec.brokers, 3), spec.seed)
        super().__init__(self.overlay.brokers, spec.seed, folder, LINK, own_count=False)
        self.dataset = make_dataset(spec.dataset, self.overlay, spec.seed)
        self.measures = MultipathMeasures(spec, dataset=dict(self.dataset.description))
        self.routers: dict[NodeName, MultipathRouter] = {}
        self._wanted_by: dict[int, int] = {}
        self._measured_from: int | None = None
        self._begins_us = 0
        self._ends_us = math.inf
        self._load: Mapping[type, Encoded] = {}
        for name in self.names:
            self.start(name, spec.parts(coordinator), spec.uplink)
            router = self.brokers[name].router
            assert isinstance(router, MultipathRouter)
            self.routers[name] = router
        # Before there are links: each table then travels as a whole, and not filter by filter.
        for subscriber, (name, text) in enumerate(self.dataset.subscriptions):
            self.subscribe(name, parse_filter(text), subscriber)
        for first, second in self.overlay.edges:
            self.runtime.connect(LinkPlan(first, second, LINK))
        self.runtime.run(until_us=1)
        self.runtime.run(stop=lambda: not self.runtime.in_flight[CONTROL_MESSAGE])

    def learn(self) -> None:
        """Publish at the rate and for the time in which links are learned, if there is any."""
        if self.spec.warm_s:
            self.publish_steadily(int(self.spec.warm_s * self.spec.warm_rate_per_s), self.spec.warm_rate_per_s, 1)

    def measure(self) -> MultipathMeasures:
        """Publish at the rate and for the time that are measured, and say what came out."""
        self.begin_measuring(self.spec.seconds)
        self.publish_steadily(int(self.spec.seconds * self.spec.rate_per_s), self.spec.rate_per_s, 2)
        return self.finish()

    def publish_steadily(self, count: int, rate_per_s: float, salt: int) -> None:
        """Publish so many contents of the dataset at this rate, beginning now, and run to the last one's time."""
        runtime, contents = self.runtime, self.dataset.contents
        drawn = self.dataset.draw(count, self.spec.seed * 1_000 + salt)
        base_us = runtime.now_us
        payload = "p" * self.spec.payload_bytes

        def act(number: int, now_us: int) -> None:
            content = drawn[number]
            name, attributes, _ = contents[content]
            if content not in self._wanted_by:
                self._wanted_by[content] = self.wanting(attributes)
            attributes = {**attributes, "payload": payload}
            if not self.measures.publication_bytes:
                event = Event(self.numbers[name], len(self.oracle.fates), now_us, attributes)
                self.measures.publication_bytes = len(self.codec.encode(Forwarded(event, 1, ())))
            self.publish(name, attributes, self._wanted_by[content])
            if number + 1 < count:
                at_us = base_us + int((number + 1) * 1e6 / rate_per_s)
                runtime.call_at(at_us, functools.partial(act, number + 1))

        runtime.call_at(base_us, functools.partial(act, 0))
        runtime.run(until_us=base_us + int(count * 1e6 / rate_per_s))

    def begin_measuring(self, seconds: float) -> None:
        """What is published from now on counts, up to `seconds` later where the system is overloaded."""
        self._measured_from = len(self.oracle.fates)
        self._begins_us = self.runtime.now_us
        self._load = self.count_bytes(LoadExchange)
        if not self.spec.check:
            self._ends_us = self.runtime.now_us + seconds * 1e6

    def arrived(self, node: int, event: Event, hops: int, delivered: bool, now_us: int) -> None:
        """Count the delivery, or the pure forwarding."""
        if self._measured_from is None or event.sequence < self._measured_from or now_us > self._ends_us:
            return
        measures = self.measures
        second = (now_us - self._begins_us) // 1_000_000
        measures.traffic += [0] * (second + 1 - len(measures.traffic))
        measures.traffic[second] += 1
        if not delivered:
            measures.pure_forwards += 1
            return
        measures.deliveries += 1
        measures.hops[min(hops, 63)] += 1
        sums = measures.delays_us.setdefault(event.source * measures.spec.brokers + node, [0, 0])
        sums[0] += now_us - event.time_us
        sums[1] += 1

    def finish(self) -> MultipathMeasures:
        """Let everything arrive, and count: all publications, the warm-up's too, or in an overloaded system those that
        were measured."""
        measures, runtime, fates = self.measures, self.runtime, list(self.oracle.fates.values())
        if self.spec.check:
            until_us = runtime.now_us + 10_000_000
            runtime.run(until_us=until_us, stop=lambda: not runtime.in_flight[EVENT_MESSAGE])
        measured = fates[self._measured_from :]
        tally = self.oracle.tally(fates if self.spec.check else measured)
        measures.required, measures.missing, measures.spurious = tally.required, tally.missing, tally.spurious
        measures.duplicate = self.oracle.tally().duplicate
        measures.published = len(measured)
        measures.load_bytes = self._load[LoadExchange].bytes
        links = [len(router.knowledge.links.soft) for router in self.routers.values()]
        measures.soft_links = sum(links) / len(links)
        self.close()
        return measures


@functools.lru_cache(maxsize=2)
def make_dataset(name: str, overlay: Overlay, seed: int) -> Dataset:
    """The dataset of that name over the overlay; DT-FB from recorded data where that is at hand."""
    if name == "DT-C":
        return covering_dataset(overlay, seed)
    if name == "DT-FB":
        graph, wall = find_real("facebook_combined.txt"), find_real("facebook_wall_2007-08-09_edges.tsv")
        return social_dataset(overlay, seed, graph, wall)
    return zipf_dataset(name, overlay, seed)


def measure_multipath(spec: MultipathSpec) -> MultipathMeasures:
    """Run and measure; time and memory are this process's (give it one of its own)."""
    spent = ProcessMeter()
    with tempfile.TemporaryDirectory() as folder:
        network = MultipathNetwork(spec, Path(folder))
        network.learn()
        measures = network.measure()
    measures.wall_s, measures.cpu_s, measures.memory_mb = spent.wall_s, spent.cpu_s, spent.memory_mb
    return measures
