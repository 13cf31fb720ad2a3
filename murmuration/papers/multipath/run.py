"""One run of the multipath paper's experiments on the virtual runtime, measured in process.

Brokers deliver to their own subscribers, as the paper's did (no last mile). A publication that arrives at a broker
with a matching local subscriber is a delivery, at any other broker it is a pure forwarding; what is published at a
broker for its own subscribers passes no link and counts as neither. What each publication had to reach is worked out
beforehand with `Filter.matches`, so that missing and duplicate deliveries are counted against an oracle.
"""

import functools
import gc
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from murmur_pubsub.deployment import LinkPlan, NodeSpec
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Deliver, Effect, Input, NodeContext, NodeName, Publish, Subscribe
from murmur_virtual.virtual_node import CONTROL_MESSAGE, EVENT_MESSAGE
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.papers.lab.real_data import find_real
from reliability.best_effort import BestEffort, Forwarded
from reliability.broker import Broker
from reliability.layer import BrokerServices
from routing.multipath.messages import LoadExchange
from routing.multipath.parameters import MultipathParameters, Strategy
from routing.multipath.router import MultipathRouter
from routing.protocol import NoParameters
from workloads.multipath_datasets import Dataset, covering_dataset, social_dataset, zipf_dataset
from workloads.overlay import Overlay, Tree, balanced

LINK = LinkSpec(delay=Delay("constant", 1_000))
"""1 ms between brokers, as injected in the paper's footnote 4."""
_NEVER = 1 << 62
CANDIDATES = 10
"""maxlinks - fanout, which the paper does not print."""


@dataclass(frozen=True, slots=True)
class RunSpec:
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
class Measures:
    """What came out. hops: deliveries by path length. delays_us: publishing broker's number * brokers + subscribing
    broker's to (sum, count). traffic:
    publications sent between brokers in each second."""

    spec: RunSpec
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


class Probe:
    """What the brokers of a run report to. `measured_from`: the first publication that counts."""

    def __init__(self, measures: Measures) -> None:
        self.measures = measures
        self.measured_from = _NEVER
        self.ends_us: float = float("inf")
        self.begins_us = 0
        self.origin: list[int] = []
        self.got: dict[int, int] = {}
        self.duplicate = 0

    def arrived(self, broker: int, event: Event, hops: int, matched: bool, now_us: int) -> None:
        """A publication has come to a broker over a link."""
        index = event.sequence
        if matched:
            got, bit = self.got.get(index, 0), 1 << broker
            if got & bit:
                self.duplicate += 1
            self.got[index] = got | bit
        if index < self.measured_from or now_us > self.ends_us:
            return
        measures = self.measures
        second = (now_us - self.begins_us) // 1_000_000
        traffic = measures.traffic
        while len(traffic) <= second:
            traffic.append(0)
        traffic[second] += 1
        if not matched:
            measures.pure_forwards += 1
            return
        measures.deliveries += 1
        measures.hops[min(hops, 63)] += 1
        pair = self.origin[index] * measures.spec.brokers + broker
        sums = measures.delays_us.get(pair)
        if sums is None:
            sums = measures.delays_us[pair] = [0, 0]
        sums[0] += now_us - event.time_us
        sums[1] += 1


class MeteredBestEffort(BestEffort):
    """Best effort that tells a probe of every publication that arrives."""

    def __init__(self, context: NodeContext, services: BrokerServices, probe: Probe, number: int) -> None:
        super().__init__(context, NoParameters(), services)
        self._probe = probe
        self._number = number
        self._now_us = 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `reliability.layer.Reliability`."""
        self._now_us = now_us
        return super().handle(input, now_us)

    def _pass_on(self, event: Event, hops: int, came_from: NodeName | None, header: Sequence[int]) -> list[Effect]:
        effects = super()._pass_on(event, hops, came_from, header)
        if came_from is not None:
            matched = bool(effects) and type(effects[0]) is Deliver
            self._probe.arrived(self._number, event, hops, matched, self._now_us)
        return effects


class MultipathNetwork:
    """Brokers with one dataset's subscriptions, on the virtual runtime, settled and ready to publish."""

    def __init__(self, spec: RunSpec, folder: Path) -> None:
        self.spec = spec
        self.measures = Measures(spec)
        self.probe = Probe(self.measures)
        self.overlay = balanced(Tree(spec.brokers, 3), spec.seed)
        self.dataset = make_dataset(spec.dataset, self.overlay, spec.seed)
        self.measures.dataset = dict(self.dataset.description)
        self.numbers = {name: number for number, name in enumerate(self.overlay.brokers)}
        self.writer = JournalWriter(folder, "run", len(self.numbers))
        self.runtime = VirtualRuntime(spec.seed, self.writer, self.numbers, LINK, journal_hops=False)
        self.routers: dict[NodeName, MultipathRouter] = {}
        self._contents: list[int] = []
        self._add_brokers()
        self._settle()

    def parameters(self) -> MultipathParameters:
        """Of every broker."""
        spec = self.spec
        return MultipathParameters(
            strategy=spec.strategy, fanout=spec.fanout, maxlinks=spec.fanout + CANDIDATES,
            round_us=int(spec.round_s * 1e6), load_exchange_us=int(spec.round_s * 5e5),
            uplink_messages_per_s=spec.uplink_messages_per_s, uplink_bytes_per_s=spec.uplink_bytes_per_s,
        )  # fmt: skip

    def _add_brokers(self) -> None:
        parameters = self.parameters()
        for name, number in self.numbers.items():
            context = NodeContext(name, self.spec.seed)
            router = self.routers[name] = MultipathRouter(context, parameters)
            reliability = functools.partial(MeteredBestEffort, context, probe=self.probe, number=number)
            broker = Broker("bitset", router, reliability)
            self.runtime.add_node(NodeSpec(name, "broker", "", uplink=self.spec.uplink), broker)
        # Before there are links: each table then travels as a whole, and not filter by filter.
        for subscriber, (name, text) in enumerate(self.dataset.subscriptions):
            self.runtime.nodes[name].take_input(Subscribe(subscriber, parse_filter(text)), 0)
        for first, second in self.overlay.edges:
            self.runtime.connect(LinkPlan(first, second, LINK))

    def _settle(self) -> None:
        runtime = self.runtime
        runtime.run(until_us=1)
        runtime.run(stop=lambda: not runtime.in_flight[CONTROL_MESSAGE])
        codec = runtime.codec(runtime.nodes[self.overlay.brokers[0]].machine.message_types)
        plain = codec.encoders[LoadExchange]

        def counted(message: LoadExchange) -> bytes:
            data = plain(message)
            self.measures.load_bytes += len(data)
            return data

        codec.encoders[LoadExchange] = counted

    def publish(self, count: int, rate_per_s: float, salt: int) -> None:
        """Publish so many at a steady rate, beginning now, and run to the last one's time."""
        runtime = self.runtime
        first = len(self._contents)
        drawn = self.dataset.draw(count, self.spec.seed * 1_000 + salt)
        self._contents += drawn
        contents = self.dataset.contents
        self.probe.origin += [self.numbers[contents[content][0]] for content in drawn]
        base_us = runtime.now_us
        payload = "p" * self.spec.payload_bytes

        def act(number: int, now_us: int) -> None:
            name, attributes, _ = contents[drawn[number]]
            event = Event(self.numbers[name], first + number, now_us, {**attributes, "payload": payload})
            if not self.measures.publication_bytes:
                codec = runtime.codec(runtime.nodes[name].machine.message_types)
                self.measures.publication_bytes = len(codec.encode(Forwarded(event, 1, ())))
            runtime.nodes[name].take_input(Publish(event), now_us)
            if number + 1 < count:
                at_us = base_us + int((number + 1) * 1e6 / rate_per_s)
                runtime.call_at(at_us, functools.partial(act, number + 1))

        runtime.call_at(base_us, functools.partial(act, 0))
        runtime.run(until_us=base_us + int(count * 1e6 / rate_per_s))

    def begin_measuring(self, seconds: float) -> None:
        """What is published from now on counts, up to `seconds` later where the system is overloaded."""
        self.probe.measured_from = len(self._contents)
        self.probe.begins_us = self.runtime.now_us
        self.measures.load_bytes = 0
        if not self.spec.check:
            self.probe.ends_us = self.runtime.now_us + int(seconds * 1e6)

    def finish(self) -> Measures:
        """Let everything arrive, and count."""
        measures = self.measures
        if self.spec.check:
            self.runtime.run(
                until_us=self.runtime.now_us + 10_000_000,
                stop=lambda: not self.runtime.in_flight[EVENT_MESSAGE],
            )
        self._compare()
        measures.published = len(self._contents) - self.probe.measured_from
        measures.duplicate = self.probe.duplicate
        links = [len(router.knowledge.links.soft) for router in self.routers.values()]
        measures.soft_links = sum(links) / len(links)
        self.writer.close()
        return measures

    def _compare(self) -> None:
        """Required, missing and spurious deliveries by what the filters say: of all publications, warm-up included; in
        an overloaded system of the measured ones."""
        wanted = {text: parse_filter(text) for _, text in self.dataset.subscriptions}
        holders: dict[str, int] = dict.fromkeys(wanted, 0)
        for broker, text in self.dataset.subscriptions:
            holders[text] |= 1 << self.numbers[broker]
        expected = {}
        for content in dict.fromkeys(self._contents):
            broker, attributes, _ = self.dataset.contents[content]
            reach = 0
            for text, each in wanted.items():
                if each.matches(attributes):
                    reach |= holders[text]
            expected[content] = reach & ~(1 << self.numbers[broker])
        first = 0 if self.spec.check else self.probe.measured_from
        for index in range(first, len(self._contents)):
            wants, got = expected[self._contents[index]], self.probe.got.get(index, 0)
            self.measures.required += wants.bit_count()
            self.measures.missing += (wants & ~got).bit_count()
            self.measures.spurious += (got & ~wants).bit_count()


@functools.lru_cache(maxsize=2)
def make_dataset(name: str, overlay: Overlay, seed: int) -> Dataset:
    """The dataset of that name over the overlay; DT-FB from recorded data where that is at hand."""
    if name == "DT-C":
        return covering_dataset(overlay, seed)
    if name == "DT-FB":
        graph, wall = find_real("facebook_combined.txt"), find_real("facebook_wall_2007-08-09_edges.tsv")
        return social_dataset(overlay, seed, graph, wall)
    return zipf_dataset(name, overlay, seed)


def measure(spec: RunSpec) -> Measures:
    """Run and measure; time and memory are this process's (give it one of its own)."""
    began, began_cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        network = MultipathNetwork(spec, Path(folder))
        if spec.warm_s:
            network.publish(int(spec.warm_s * spec.warm_rate_per_s), spec.warm_rate_per_s, 1)
        network.begin_measuring(spec.seconds)
        network.publish(int(spec.seconds * spec.rate_per_s), spec.rate_per_s, 2)
        measures = network.finish()
    measures.wall_s = time.perf_counter() - began
    measures.cpu_s = time.process_time() - began_cpu
    measures.memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    del network
    gc.collect()
    return measures
