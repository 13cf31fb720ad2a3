"""One run of the epidemic paper's experiments on the virtual runtime, measured in process.

Every dispatcher subscribes `subscribed` of the patterns and publishes at `rate_per_s`; an event matches `matched` of
the patterns, drawn at random: what events may say is one of `CONTENTS` contents, each of which matches so many
patterns, and a pattern is the filter that lists its contents. Dispatchers deliver to themselves. What each event had to
reach is known when it is made, so that missing, duplicate and spurious deliveries are counted against that and not
against what the dispatchers say; a dispatcher's own events pass no link and are left out.

Publishing goes on for `warm_s` before and for `tail_s` after the stretch whose events are measured. In the first,
caches fill; links lose nothing for its first `learn_s`, so that the first number of every source and pattern is learnt,
which would take the longer the more they lose. In the second there are later events for a loss to be seen by, and time
to recover it: the last losses of a source and pattern, which no pull can see, are not part of the figures.
"""

import dataclasses
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from murmur_pubsub.deployment import LinkPlan, NodeSpec
from murmur_pubsub.event import Event
from murmur_pubsub.faults import FailureDetection
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Deliver, Effect, Input, NodeContext, NodeName, Publish, Send, Subscribe
from murmur_virtual.virtual_node import CONTROL_MESSAGE
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.registry import ROUTINGS
from reliability.broker import Broker
from reliability.epidemic.epidemic import Epidemic
from reliability.epidemic.messages import (
    EPIDEMIC_MESSAGES,
    EventRecovered,
    EventsRequested,
    PublisherPull,
    PushDigest,
    RandomPull,
    SubscriberPull,
    TaggedEvent,
)
from reliability.epidemic.parameters import Algorithm, CacheAt, Discard, EpidemicParameters
from workloads.overlay import Tree, balanced

_DELAY = Delay("constant", 1_000)
"""1 ms between dispatchers, and out of band."""
_NOTICED = FailureDetection(heartbeat_us=500, timeout_us=1_000, reconnect_us=1_000)
"""A broken link is noticed at once: in the evaluation reconfiguration is what it is about, not its detection."""
_SETTLE_US = 200_000
CONTENTS = 300
GOSSIP = (PushDigest, SubscriberPull, PublisherPull, RandomPull)


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What to run. loss: of every link. lossy_replies: requests and recovered events are lost with the same
    probability (once each), else never. reconfigured_every_s: a link breaks so often and another joins the two halves
    repair_s later (None: never). learn_s, warm_s, measured_s, tail_s: see the module. The others as in
    `EpidemicParameters`."""

    algorithm: Algorithm
    dispatchers: int = 100
    patterns: int = 70
    subscribed: int = 2
    matched: int = 3
    rate_per_s: float = 50.0
    loss: float = 0.1
    lossy_replies: bool = False
    reconfigured_every_s: float | None = None
    repair_s: float = 0.1
    degree: int = 4
    routing: str = "forwarding"
    interval_s: float = 0.03
    buffer: int = 1_500
    p_forward: float = 0.9
    p_source: float = 0.5
    fanout: int = 4
    cache: CacheAt = "interested"
    discard: Discard = "oldest"
    adaptive: bool = False
    learn_s: float = 1.5
    warm_s: float = 3.0
    measured_s: float = 1.0
    tail_s: float = 4.0
    seed: int = 1

    def parameters(self) -> EpidemicParameters:
        """Of every dispatcher."""
        interval_us = int(self.interval_s * 1e6)
        return EpidemicParameters(
            algorithm=self.algorithm, interval_us=interval_us, interval_max_us=16 * interval_us, buffer=self.buffer,
            p_forward=self.p_forward, p_source=self.p_source, fanout=self.fanout, cache=self.cache,
            discard=self.discard, adaptive=self.adaptive, settle_us=0, remember=max(50_000, self.buffer),
        )  # fmt: skip


@dataclass(slots=True)
class Measures:
    """What came out. Messages are counted over the measured stretch; `bytes` are those of the encoded messages.
    `over_time`: for each tenth of a second of publishing, deliveries made and deliveries due. `delays_ms`: the sum of
    all delays of deliveries."""

    spec: RunSpec
    published: int = 0
    due: int = 0
    delivered: int = 0
    duplicate: int = 0
    spurious: int = 0
    recovered: int = 0
    event_messages: int = 0
    gossip_messages: int = 0
    requests: int = 0
    replies: int = 0
    event_bytes: int = 0
    gossip_bytes: int = 0
    reply_bytes: int = 0
    breaks: int = 0
    delay_us: int = 0
    over_time: list[tuple[int, int]] = field(default_factory=list)
    wall_s: float = 0.0
    memory_mb: float = 0.0

    @property
    def rate(self) -> float:
        """Deliveries made of those due."""
        return self.delivered / max(1, self.due)

    @property
    def gossip_per_event(self) -> float:
        """Gossip messages for each event message."""
        return self.gossip_messages / max(1, self.event_messages)

    @property
    def gossip_per_dispatcher(self) -> float:
        """Gossip messages that a dispatcher sends in a second."""
        return self.gossip_messages / self.spec.dispatchers / self.spec.measured_s


class _Probe:
    """What the dispatchers of a run report to."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.wanted: list[int] = []
        self.duplicate = self.spurious = self.recovered = 0
        self.counting = False
        self.counts: dict[type, int] = dict.fromkeys(EPIDEMIC_MESSAGES, 0)
        self.bytes: dict[type, int] = dict.fromkeys(EPIDEMIC_MESSAGES, 0)
        self.encoded: dict[type, int] = dict.fromkeys(EPIDEMIC_MESSAGES, 0)
        self.delay_us: list[int] = []

    def delivered(self, event: Event, dispatcher: int, now_us: int) -> None:
        index, bit = event.sequence, 1 << dispatcher
        if self.got[index] & bit:
            self.duplicate += 1
        elif not self.wanted[index] & bit and dispatcher != event.source:
            self.spurious += 1
        elif dispatcher != event.source:
            self.delay_us[index] += now_us - event.time_us
        self.got[index] |= bit


class _MeteredBroker(Broker):
    """A broker that tells a probe what it sends and delivers."""

    def __init__(self, context: NodeContext, spec: RunSpec, probe: _Probe, number: int) -> None:
        parameters = spec.parameters()
        routing = ROUTINGS[spec.routing]
        router = routing.make(context, routing.parameters())
        super().__init__("bitset", router, lambda services: Epidemic(context, parameters, services))
        self._probe = probe
        self._number = number

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        probe = self._probe
        effects = super().handle(input, now_us)
        for effect in effects:
            if type(effect) is Send:
                if probe.counting and type(effect.message) in probe.counts:
                    probe.counts[type(effect.message)] += 1
            elif type(effect) is Deliver:
                probe.delivered(effect.event, self._number, now_us)
        return effects


class DispatcherNetwork:
    """Dispatchers with their subscriptions on the virtual runtime, settled and ready to publish."""

    def __init__(self, spec: RunSpec, folder: Path) -> None:
        self.spec = spec
        self.measures = Measures(spec)
        self._probe = _Probe()
        self._rng = random.Random(f"{spec.seed}/epidemic workload")
        overlay = balanced(Tree(spec.dispatchers, spec.degree), spec.seed)
        self._names = overlay.brokers
        self._edges = [tuple(edge) for edge in overlay.edges]
        self._link = LinkSpec(delay=_DELAY, loss=spec.loss)
        beside = LinkSpec(delay=_DELAY, loss=spec.loss if spec.lossy_replies else 0.0, ordered=False)
        numbers = {name: number for number, name in enumerate(self._names)}
        self._writer = JournalWriter(folder, "run", len(numbers))
        self.runtime = VirtualRuntime(spec.seed, self._writer, numbers, beside, journal_hops=False, detection=_NOTICED)
        for name, number in numbers.items():
            broker = _MeteredBroker(NodeContext(name, spec.seed), spec, self._probe, number)
            self.runtime.add_node(NodeSpec(name, "broker", ""), broker)
        self._contents = [self._rng.sample(range(spec.patterns), spec.matched) for _ in range(CONTENTS)]
        self._wanted_by = self._subscribe()
        for first, second in overlay.edges:
            self.runtime.connect(LinkPlan(first, second, LinkSpec(delay=_DELAY)))
        self.runtime.run(stop=lambda: not self.runtime.in_flight[CONTROL_MESSAGE])
        self.runtime.run(until_us=self.runtime.now_us + _SETTLE_US)
        self._meter_bytes()

    def _subscribe(self) -> list[int]:
        """Each content's subscribers, as bits."""
        spec, subscribers = self.spec, [0] * self.spec.patterns
        listed: list[list[str]] = [[] for _ in range(spec.patterns)]
        for content, patterns in enumerate(self._contents):
            for pattern in patterns:
                listed[pattern].append(str(content))
        for number, name in enumerate(self._names):
            for pattern in self._rng.sample(range(spec.patterns), spec.subscribed):
                subscribers[pattern] |= 1 << number
                wanted = parse_filter(f"content IN ({', '.join(listed[pattern])})")
                self.runtime.nodes[name].take_input(Subscribe(number, wanted), 0)
        wanted_by = []
        for patterns in self._contents:
            wanted_by.append(0)
            for pattern in patterns:
                wanted_by[-1] |= subscribers[pattern]
        return wanted_by

    def _meter_bytes(self) -> None:
        probe = self._probe
        codec = self.runtime.codec(self.runtime.nodes[self._names[0]].machine.message_types)
        for message_type in (*GOSSIP, TaggedEvent, EventRecovered):

            def encode(message: object, plain=codec.encoders[message_type], kind=message_type) -> bytes:  # type: ignore[no-untyped-def]
                data: bytes = plain(message)
                if probe.counting:
                    probe.bytes[kind] += len(data)
                    probe.encoded[kind] += 1
                return data

            codec.encoders[message_type] = encode

    # -------------------------------------------------------------------------------------------- publishing
    def _publish_from(self, number: int, until_us: int) -> None:
        runtime, spec, rng = self.runtime, self.spec, self._rng
        node, probe, wanted_by = runtime.nodes[self._names[number]], self._probe, self._wanted_by
        bit = 1 << number

        def act(now_us: int) -> None:
            content = rng.randrange(CONTENTS)
            event = Event(number, len(probe.wanted), now_us, {"content": content})
            probe.wanted.append(wanted_by[content] & ~bit)
            probe.got.append(0)
            probe.delay_us.append(0)
            self._times_us.append(now_us)
            node.take_input(Publish(event), now_us)
            following_us = now_us + 1 + int(rng.expovariate(spec.rate_per_s) * 1e6)
            if following_us < until_us:
                runtime.call_at(following_us, act)

        first_us = runtime.now_us + 1 + int(rng.expovariate(spec.rate_per_s) * 1e6)
        if first_us < until_us:
            runtime.call_at(first_us, act)

    def run(self) -> Measures:
        """Publish, measure and count."""
        spec, runtime, probe = self.spec, self.runtime, self._probe
        self._times_us: list[int] = []
        begin_us = runtime.now_us
        from_us = begin_us + int(spec.warm_s * 1e6)
        to_us = from_us + int(spec.measured_s * 1e6)
        end_us = to_us + int(spec.tail_s * 1e6)
        for number in range(spec.dispatchers):
            self._publish_from(number, end_us)
        runtime.run(until_us=begin_us + int(spec.learn_s * 1e6))
        for first, second in self._edges:
            runtime.links.change(first, second, self._link)
        if spec.reconfigured_every_s is not None:
            self._break_links(end_us)
        runtime.run(until_us=from_us)
        probe.counting = True
        runtime.run(until_us=to_us)
        probe.counting = False
        runtime.run(until_us=end_us)
        runtime.check_invariants()
        self._count(begin_us, from_us, to_us)
        self._writer.close()
        return self.measures

    def _count(self, begin_us: int, from_us: int, to_us: int) -> None:
        measures, probe = self.measures, self._probe
        buckets: dict[int, list[int]] = {}
        for index, time_us in enumerate(self._times_us):
            wanted = probe.wanted[index]
            due, made = wanted.bit_count(), (wanted & probe.got[index]).bit_count()
            bucket = buckets.setdefault((time_us - begin_us) // 100_000, [0, 0])
            bucket[0] += made
            bucket[1] += due
            if from_us <= time_us < to_us:
                measures.published += 1
                measures.due += due
                measures.delivered += made
                measures.delay_us += probe.delay_us[index]
        measures.over_time = [(buckets[at][0], buckets[at][1]) for at in sorted(buckets)]
        measures.duplicate, measures.spurious = probe.duplicate, probe.spurious
        measures.event_messages = probe.counts[TaggedEvent]
        measures.gossip_messages = sum(probe.counts[kind] for kind in GOSSIP)
        measures.requests, measures.replies = probe.counts[EventsRequested], probe.counts[EventRecovered]
        measures.event_bytes = self._bytes(TaggedEvent)
        measures.gossip_bytes = sum(self._bytes(kind) for kind in GOSSIP)
        measures.reply_bytes = self._bytes(EventRecovered)

    def _bytes(self, kind: type) -> int:
        """A message that goes to several peers is encoded once and counts for each."""
        probe = self._probe
        return probe.bytes[kind] * probe.counts[kind] // max(1, probe.encoded[kind])

    # ------------------------------------------------------------------------------------------ reconfiguration
    def _break_links(self, until_us: int) -> None:
        runtime, spec = self.runtime, self.spec
        assert spec.reconfigured_every_s is not None
        every_us, repair_us = int(spec.reconfigured_every_s * 1e6), int(spec.repair_s * 1e6)
        rng = random.Random(f"{spec.seed}/reconfiguration")

        def break_one(now_us: int) -> None:
            first, second = self._edges.pop(rng.randrange(len(self._edges)))
            runtime.cut(first, second)
            self.measures.breaks += 1
            runtime.call_at(now_us + repair_us, lambda now_us: self._join(first, second, rng))
            if now_us + every_us < until_us:
                runtime.call_at(now_us + every_us, break_one)

        runtime.call_at(runtime.now_us + every_us, break_one)

    def _join(self, first: NodeName, second: NodeName, rng: random.Random) -> None:
        """A link between any two dispatchers of the two halves that have fewer links than the degree."""
        neighbours: dict[NodeName, list[NodeName]] = {name: [] for name in self._names}
        for here, there in self._edges:
            neighbours[here].append(there)
            neighbours[there].append(here)
        chosen = []
        for start in (first, second):
            half = [start]
            for name in half:
                half += [peer for peer in neighbours[name] if peer not in half]
            chosen.append(rng.choice([name for name in half if len(neighbours[name]) < self.spec.degree]))
        self._edges.append((chosen[0], chosen[1]))
        self.runtime.connect(LinkPlan(chosen[0], chosen[1], self._link))


def measure(spec: RunSpec) -> Measures:
    """Run and measure; wall time and memory are this process's (give it one of its own)."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        measures = DispatcherNetwork(spec, Path(folder)).run()
    measures.wall_s = time.perf_counter() - began
    measures.memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return measures


def described(measures: Measures) -> dict[str, object]:
    """Plain data, as it is kept on disk."""
    return dataclasses.asdict(measures)
