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

import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from murmur_pubsub.codec import Encoded
from murmur_pubsub.deployment import LinkPlan
from murmur_pubsub.faults import FailureDetection
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import NodeName
from murmur_virtual.virtual_node import CONTROL_MESSAGE
from murmuration.papers.epidemic.reconfiguration import joining_edge
from murmuration.papers.lab.measured_network import MeasuredNetwork
from murmuration.papers.lab.oracle import EventFate
from murmuration.papers.lab.process_meter import ProcessMeter
from reliability.epidemic.messages import (
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
class EpidemicSpec:
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

    def parts(self) -> dict[str, Any]:
        """Of every dispatcher."""
        interval_us = int(self.interval_s * 1e6)
        epidemic = EpidemicParameters(
            algorithm=self.algorithm, interval_us=interval_us, interval_max_us=16 * interval_us, buffer=self.buffer,
            p_forward=self.p_forward, p_source=self.p_source, fanout=self.fanout, cache=self.cache,
            discard=self.discard, adaptive=self.adaptive, settle_us=0, remember=max(50_000, self.buffer),
        )  # fmt: skip
        return {
            "matching": "bitset", "routing": self.routing, "reliability": "epidemic",
            "reliability_parameters": epidemic,
        }  # fmt: skip


@dataclass(slots=True)
class EpidemicMeasures:
    """What came out. Messages are counted over the measured stretch; `bytes` are those of the encoded messages.
    `over_time`: for each tenth of a second of publishing, deliveries made and deliveries due. `delay_us`: the sum of
    all delays of deliveries."""

    spec: EpidemicSpec
    published: int = 0
    due: int = 0
    delivered: int = 0
    duplicate: int = 0
    spurious: int = 0
    event_messages: int = 0
    gossip_messages: int = 0
    requests: int = 0
    replies: int = 0
    event_bytes: int = 0
    gossip_bytes: int = 0
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


class DispatcherNetwork(MeasuredNetwork):
    """Dispatchers with their subscriptions on a tree, settled and ready to publish."""

    def __init__(self, spec: EpidemicSpec, folder: Path) -> None:
        self.spec = spec
        overlay = balanced(Tree(spec.dispatchers, spec.degree), spec.seed)
        beside = LinkSpec(delay=_DELAY, loss=spec.loss if spec.lossy_replies else 0.0, ordered=False)
        super().__init__(overlay.brokers, spec.seed, folder, beside, own_count=False, detection=_NOTICED)
        self._rng = random.Random(f"{spec.seed}/epidemic workload")
        self._edges = list(overlay.edges)
        self._link = LinkSpec(delay=_DELAY, loss=spec.loss)
        self._breaks = 0
        for name in self.names:
            self.start(name, spec.parts())
        contents = [self._rng.sample(range(spec.patterns), spec.matched) for _ in range(CONTENTS)]
        self._subscribe(contents)
        self._wanted_by = [self.wanting({"content": content}) for content in range(CONTENTS)]
        for first, second in overlay.edges:
            self.runtime.connect(LinkPlan(first, second, LinkSpec(delay=_DELAY)))
        self.runtime.run(stop=lambda: not self.runtime.in_flight[CONTROL_MESSAGE])
        self.runtime.run(until_us=self.runtime.now_us + _SETTLE_US)

    def _subscribe(self, contents: Sequence[Sequence[int]]) -> None:
        spec = self.spec
        listed: list[list[str]] = [[] for _ in range(spec.patterns)]
        for content, patterns in enumerate(contents):
            for pattern in patterns:
                listed[pattern].append(str(content))
        for name in self.names:
            for pattern in self._rng.sample(range(spec.patterns), spec.subscribed):
                self.subscribe(name, parse_filter(f"content IN ({', '.join(listed[pattern])})"))

    # -------------------------------------------------------------------------------------------- publishing
    def _publish_from(self, name: NodeName, until_us: int) -> None:
        def act(now_us: int) -> None:
            content = self._rng.randrange(CONTENTS)
            self.publish(name, {"content": content}, self._wanted_by[content])
            schedule(now_us)

        def schedule(now_us: int) -> None:
            at_us = now_us + 1 + int(self._rng.expovariate(self.spec.rate_per_s) * 1e6)
            if at_us < until_us:
                self.runtime.call_at(at_us, act)

        schedule(self.runtime.now_us)

    def run(self) -> EpidemicMeasures:
        """Publish, measure and count."""
        spec, runtime, measures = self.spec, self.runtime, EpidemicMeasures(self.spec)
        begin_us = runtime.now_us
        from_us = begin_us + int(spec.warm_s * 1e6)
        to_us = from_us + int(spec.measured_s * 1e6)
        end_us = to_us + int(spec.tail_s * 1e6)
        for name in self.names:
            self._publish_from(name, end_us)
        runtime.run(until_us=begin_us + int(spec.learn_s * 1e6))
        for first, second in self._edges:
            runtime.links.change(first, second, self._link)
        if spec.reconfigured_every_s is not None:
            self._break_links(end_us)
        runtime.run(until_us=from_us)
        self.sent.clear()
        encoded = self.count_bytes(*GOSSIP, TaggedEvent)
        runtime.run(until_us=to_us)
        self._count_messages(measures, encoded)
        runtime.run(until_us=end_us)
        runtime.check_invariants()
        self._count_deliveries(measures, begin_us, from_us, to_us)
        measures.breaks = self._breaks
        self.close()
        return measures

    def _count_messages(self, measures: EpidemicMeasures, encoded: Mapping[type, Encoded]) -> None:
        def all_bytes(kind: type) -> int:
            """A message that goes to several peers is encoded once and counts for each."""
            return encoded[kind].bytes * self.sent[kind] // max(1, encoded[kind].messages)

        measures.event_messages = self.sent[TaggedEvent]
        measures.gossip_messages = sum(self.sent[kind] for kind in GOSSIP)
        measures.requests, measures.replies = self.sent[EventsRequested], self.sent[EventRecovered]
        measures.event_bytes = all_bytes(TaggedEvent)
        measures.gossip_bytes = sum(map(all_bytes, GOSSIP))

    def _count_deliveries(self, measures: EpidemicMeasures, begin_us: int, from_us: int, to_us: int) -> None:
        fates = self.oracle.fates.values()
        tenths: dict[int, list[EventFate]] = {}
        for fate in fates:
            tenths.setdefault((fate.at_us - begin_us) // 100_000, []).append(fate)
        parts = [self.oracle.tally(tenths[at]) for at in sorted(tenths)]
        measures.over_time = [(part.made, part.required) for part in parts]
        measured = self.oracle.tally(fate for fate in fates if from_us <= fate.at_us < to_us)
        measures.published, measures.due, measures.delivered = measured.events, measured.required, measured.made
        measures.delay_us = measured.delay_us
        whole = self.oracle.tally()
        measures.duplicate, measures.spurious = whole.duplicate, whole.spurious

    # ------------------------------------------------------------------------------------------ reconfiguration
    def _break_links(self, until_us: int) -> None:
        runtime, spec = self.runtime, self.spec
        assert spec.reconfigured_every_s is not None
        every_us, repair_us = int(spec.reconfigured_every_s * 1e6), int(spec.repair_s * 1e6)
        rng = random.Random(f"{spec.seed}/reconfiguration")

        def break_one(now_us: int) -> None:
            first, second = self._edges.pop(rng.randrange(len(self._edges)))
            runtime.cut(first, second)
            self._breaks += 1
            runtime.call_at(now_us + repair_us, lambda now_us: self._join(first, second, rng))
            if now_us + every_us < until_us:
                runtime.call_at(now_us + every_us, break_one)

        runtime.call_at(runtime.now_us + every_us, break_one)

    def _join(self, first: NodeName, second: NodeName, rng: random.Random) -> None:
        joined = joining_edge(self.names, self._edges, (first, second), self.spec.degree, rng)
        self._edges.append(joined)
        self.runtime.connect(LinkPlan(*joined, self._link))


def measure_dispatchers(spec: EpidemicSpec) -> EpidemicMeasures:
    """Run and measure; time and memory are this process's (give it one of its own)."""
    spent = ProcessMeter()
    with tempfile.TemporaryDirectory() as folder:
        measures = DispatcherNetwork(spec, Path(folder)).run()
    measures.wall_s, measures.memory_mb = spent.wall_s, spent.memory_mb
    return measures
