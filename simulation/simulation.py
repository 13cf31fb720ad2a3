"""The virtual network: nodes, links and one event queue.

A run is a function of its deployment: time stands still while a machine works, entries of equal time are taken
in the order in which they were made, and all randomness comes from the deployment's seed. Ways of use: play a
whole deployment (`simulation.run`), or build a network by hand and step it, as tests and benchmarks do.
"""

import gc
import random
from collections.abc import Callable, Sequence

from pubsub.codec import Codec
from pubsub.deployment import LinkPlan, NodeSpec, make_machine
from pubsub.journal import JournalWriter, RowKind
from pubsub.links import Link, LinkSpec
from pubsub.machine import LinkUp, Machine, NodeName, Start
from pubsub.recorder import Recorder
from simulation.event_queue import EventQueue
from simulation.simulated_node import (
    CALL,
    CONTROL_MESSAGE,
    STORED,
    TIMER,
    SimulatedNode,
)

_NEVER_US = 1 << 62
_COLLECTOR_THRESHOLDS = (100_000, 50, 100)


class Simulation:
    """Nodes on one event queue. `now_us` is the time of the entry being processed.

    `default_link`: what carries messages between nodes without a link of their own (None: they are dropped
    as unreachable); all pairs share it, so it must be one that `only_delays`.
    `in_flight`: messages on their way, by kind: EVENT_MESSAGE and CONTROL_MESSAGE.
    """

    def __init__(
        self,
        seed: int,
        writer: JournalWriter,
        numbers: dict[NodeName, int],
        default_link: LinkSpec | None = None,
        journal_hops: bool = True,
    ) -> None:
        self.seed = seed
        self.datagrams = None if default_link is None else Link(default_link, random.Random(f"{seed}/datagrams"))
        self.nodes: dict[NodeName, SimulatedNode] = {}
        self.in_flight = [0, 0]
        self.deliveries = 0
        self.now_us = 0
        self.processed = 0
        self._writer = writer
        self._numbers = numbers
        self._journal_hops = journal_hops
        self._queue = EventQueue()
        self.push = self._queue.push
        self._codecs: dict[tuple[type, ...], Codec] = {}
        # Machines make no cycles to speak of, and there are many of them: the collector may look more rarely.
        gc.set_threshold(*_COLLECTOR_THRESHOLDS)

    def codec(self, message_types: Sequence[type]) -> Codec:
        """The codec for these messages, one for all nodes that speak them."""
        key = tuple(message_types)
        if key not in self._codecs:
            self._codecs[key] = Codec(key)
        return self._codecs[key]

    def add_node(self, spec: NodeSpec, machine: Machine | None = None) -> SimulatedNode:
        """Add a node (made by its factory unless a machine is given) and start it."""
        recorder = Recorder(self._writer, self._numbers[spec.name], self._numbers, self._journal_hops)
        node = SimulatedNode(self, spec, machine or make_machine(spec, self.seed), recorder)
        self.nodes[spec.name] = node
        recorder.plain(self.now_us, RowKind.START)
        node.take_input(Start(()), self.now_us)
        return node

    def connect(self, plan: LinkPlan) -> None:
        """Bring the link up in both directions and tell both ends."""
        ends = (self.nodes[plan.first], self.nodes[plan.second])
        for node, peer in (ends, ends[::-1]):
            rng = random.Random(f"{self.seed}/{node.spec.name}/link/{peer.spec.name}")
            node.links[peer.spec.name] = (Link(plan.spec, rng), peer)
        for node, peer in (ends, ends[::-1]):
            node.take_input(LinkUp(peer.spec.name, peer.spec.role == "broker"), self.now_us)

    def call_at(self, time_us: int, action: Callable[[int], None]) -> None:
        """Have `action(now_us)` called at the given time."""
        self.push(time_us, None, CALL, action, None)

    @property
    def next_us(self) -> int | None:
        """When the next entry is due; None if nothing will ever happen again."""
        return self._queue.peek_us()

    def run(self, until_us: int | None = None, stop: Callable[[], bool] | None = None, steps: int | None = None) -> int:
        """Process entries up to and including `until_us` (None: all), until `stop()` holds after an entry, or
        for at most `steps` entries; returns how many were processed. Raises whatever a machine raises."""
        queue = self._queue
        pop = queue.pop
        limit_us = _NEVER_US if until_us is None else until_us
        limit = _NEVER_US if steps is None else steps
        done = 0
        while done < limit:
            entry = pop()
            if entry is None:
                self.now_us = self.now_us if until_us is None else until_us
                break
            now_us, number, node, kind, payload, source = entry
            if now_us > limit_us:
                queue.unpop()
                self.now_us = limit_us
                break
            self.now_us = now_us
            done += 1
            if kind <= CONTROL_MESSAGE:
                node.receive(source, kind, payload, now_us)
            elif kind == TIMER:
                node.fire(payload, number, now_us)
            elif kind == CALL:
                payload(now_us)
            elif kind == STORED:
                node.take_input(payload, now_us)
            else:
                node.resume(now_us)
            if stop is not None and stop():
                break
        self.processed += done
        return done

    def check_invariants(self) -> None:
        """Every machine's invariants."""
        for node in self.nodes.values():
            node.machine.check_invariants()
