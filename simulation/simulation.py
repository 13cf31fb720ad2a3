"""The virtual network: nodes, links and one event queue.

A run is a function of its deployment: time stands still while a machine works, entries of equal time are taken
in the order in which they were made, and all randomness comes from the deployment's seed. Ways of use: play a
whole deployment (`simulation.run`), or build a network by hand and step it, as tests and benchmarks do.
"""

import random
from collections.abc import Callable

from pubsub.deployment import LinkPlan, NodeSpec, make_machine
from pubsub.journal import JournalWriter, RowKind
from pubsub.links import Link, LinkSpec
from pubsub.machine import LinkUp, Machine, NodeName, Start
from pubsub.recorder import Recorder
from simulation.event_queue import EventQueue
from simulation.simulated_node import (
    CALL,
    CONTROL_MESSAGE,
    EVENT_MESSAGE,
    RESUME,
    STORED,
    TIMER,
    SimulatedNode,
)


class Simulation:
    """Nodes on one event queue. `now_us` is the time of the entry being processed.

    `default_link`: what carries messages between nodes without a link of their own (None: they are dropped
    as unreachable). `in_flight`: messages on their way, by kind: EVENT_MESSAGE and CONTROL_MESSAGE.
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
        self.default_link = default_link
        self.nodes: dict[NodeName, SimulatedNode] = {}
        self.in_flight = [0, 0]
        self.deliveries = 0
        self.now_us = 0
        self.processed = 0
        self._writer = writer
        self._numbers = numbers
        self._journal_hops = journal_hops
        self._queue = EventQueue()
        self._next_number = 0

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

    def push(self, time_us: int, node: SimulatedNode | None, kind: int, payload: object, source: object) -> int:
        """Put an entry on the queue; returns its number."""
        self._next_number = number = self._next_number + 1
        self._queue.push((time_us, number, node, kind, payload, source))
        return number

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
        done = 0
        while steps is None or done < steps:
            if until_us is not None:
                next_us = queue.peek_us()
                if next_us is None or next_us > until_us:
                    self.now_us = max(self.now_us, until_us)
                    break
            entry = queue.pop()
            if entry is None:
                break
            now_us, number, node, kind, payload, source = entry
            self.now_us = now_us
            done += 1
            if kind == EVENT_MESSAGE or kind == CONTROL_MESSAGE:
                node.receive(source, kind, payload, now_us)
            elif kind == TIMER:
                node.fire(payload, number, now_us)
            elif kind == CALL:
                payload(now_us)
            elif kind == STORED:
                node.take_input(payload, now_us)
            elif kind == RESUME:
                node.resume(now_us)
            if stop is not None and stop():
                break
        self.processed += done
        return done

    def check_invariants(self) -> None:
        """Every machine's invariants."""
        for node in self.nodes.values():
            node.machine.check_invariants()
