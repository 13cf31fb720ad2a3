"""The virtual network: nodes, links and one event queue.

A run is a function of its deployment: time stands still while a machine works, entries of equal time are taken
in the order in which they were made, and all randomness comes from the deployment's seed. Ways of use: play a
whole deployment (`murmur_virtual.run`), or build a network by hand and step it, as tests and benchmarks do.
"""

import functools
import gc
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from murmur_pubsub.codec import Codec
from murmur_pubsub.contract import ContractError
from murmur_pubsub.deployment import LinkPlan, NodeSpec, make_machine
from murmur_pubsub.faults import DEFAULT_DETECTION, FailureDetection
from murmur_pubsub.journal import JournalWriter, inputs_file
from murmur_pubsub.links import Link, LinkSpec
from murmur_pubsub.machine import Machine, NodeName
from murmur_pubsub.protocol_error import ProtocolError
from murmur_pubsub.recorded_inputs import InputRecorder, added_to
from murmur_pubsub.recorder import Recorder
from murmur_virtual.event_queue import EventQueue, QueueEntry
from murmur_virtual.storage import VirtualStorage
from murmur_virtual.virtual_links import VirtualLinks
from murmur_virtual.virtual_node import (
    CALL,
    CONTROL_MESSAGE,
    NEVER_US,
    STORED,
    TIMER,
    VirtualNode,
)

_DEPTH_MAX = 100_000
"""So often may messages and timers follow from each other at one instant, and once more for each node."""
_IN_FLIGHT_MAX = 2_000_000
"""Messages; some 500 MB."""
_COLLECTOR_THRESHOLDS = (1_000_000, 5, 100)
_LEFT_MIN = 1_000
"""What so many nodes have left is collected: a machine's parts know each other. Of former incarnations in a run, or as
many as it has nodes: under churn they would add up to more than the network itself. Of the runs before, when another
begins: a process of thousands of runs would keep them all."""


class VirtualRuntime:
    """Nodes on one event queue: the `VirtualNetwork` of its nodes and links, whose fields are described there.
    `now_us` is the time of the entry being processed.

    `default_link`: what carries messages between nodes without a link of their own (None: they are dropped
    as unreachable); all pairs share it, so it must be one that `only_delays`.
    `inputs_folder`: where the nodes' inputs are kept (None: they are not). `run_folder`: what a `ProtocolError` names.
    `recorder`: makes what journals the rows of a node.
    """

    _added = 0
    """Nodes of all runs in this process, since what they had left was collected."""

    def __init__(
        self,
        seed: int,
        writer: JournalWriter,
        numbers: dict[NodeName, int],
        default_link: LinkSpec | None = None,
        journal_hops: bool = True,
        detection: FailureDetection = DEFAULT_DETECTION,
        sync_us: int = 2_000,
        inputs_folder: Path | None = None,
        run_folder: Path | None = None,
        recorder: Callable[..., Recorder] = Recorder,
    ) -> None:
        self.seed = seed
        self._recorder = recorder
        self._inputs_folder = inputs_folder
        self._run_folder = run_folder
        self.sync_us = sync_us
        self.links = VirtualLinks(self, detection)
        self.datagrams = None if default_link is None else Link(default_link, random.Random(f"{seed}/datagrams"))
        self.nodes: dict[NodeName, VirtualNode] = {}
        self.clients: set[NodeName] = set()
        self.addressed_by: defaultdict[NodeName, dict[NodeName, None]] = defaultdict(dict)
        self._places: dict[NodeName, int] = {}
        """The order in which nodes were added."""
        self.in_flight = [0, 0]
        self.busy: dict[NodeName, None] = {}
        self.deliveries = 0
        self.overdue: str | None = None
        self._restarts = 0
        self._found_settling: VirtualNode | None = None
        self.now_us = 0
        self.processed = 0
        self._newest = self._depth = 0
        self._instant_us = -1
        self._writer = writer
        self.numbers = numbers
        self._journal_hops = journal_hops
        self.queue = EventQueue()
        self._push = self.queue.push
        self._codecs: dict[tuple[type, ...], Codec] = {}
        # Machines make no cycles to speak of while they run, and there are many of them: the collector may look rarely.
        gc.set_threshold(*_COLLECTOR_THRESHOLDS)
        if VirtualRuntime._added >= _LEFT_MIN:
            VirtualRuntime._added = 0
            gc.collect()

    def codec(self, message_types: Sequence[type]) -> Codec:
        """The codec for these messages, one for all nodes that speak them."""
        key = tuple(message_types)
        if key not in self._codecs:
            self._codecs[key] = Codec(key)
        return self._codecs[key]

    def add_node(self, spec: NodeSpec, machine: Machine | None = None) -> VirtualNode:
        """Add a node (made by its factory unless a machine is given) and start it."""
        node = self._add(spec, machine or self._made(spec, 0), VirtualStorage(), 0)
        node.start(self.now_us)
        return node

    def add_nodes(self, specs: Iterable[NodeSpec]) -> None:
        """Add these nodes, and start them when all are there: what one sends as it starts reaches the others."""
        for node in [self._add(spec, self._made(spec, 0), VirtualStorage(), 0) for spec in specs]:
            node.start(self.now_us)

    def connect(self, plan: LinkPlan) -> None:
        """Bring the link up in both directions and tell both ends; when both are there, if one is not yet."""
        self.links.add(plan)

    # ------------------------------------------------------------------------------------------- faults
    def crash(self, name: NodeName, silently: bool = False) -> None:
        """The node's process is gone, with all that was not synced to its storage; silently: its host is, so
        that its peers have to find out by missing heartbeats."""
        self.nodes[name].crash(self.now_us)
        self.links.node_died(name, silently)
        if self.datagrams is not None and not silently:
            for hearing in sorted(self.addressed_by[name], key=self._places.__getitem__):
                delay_us = self.datagrams.draw_us()
                self.call_at(self.now_us + delay_us, functools.partial(self.nodes[hearing].reset_by, name))

    def restart(self, name: NodeName, machine: Machine | None = None) -> VirtualNode:
        """Start the next incarnation of a node that is down, from what it had stored; its links come up again."""
        before = self.nodes[name]
        if not before.down:
            raise ValueError(f"{name} is not down")
        incarnation = before.incarnation + 1
        machine = machine or self._made(before.spec, incarnation)
        node = self._add(before.spec, machine, before.storage, incarnation)
        node.start(self.now_us)
        self._restarts += 1
        if self._restarts >= max(_LEFT_MIN, len(self.nodes)):
            self._restarts = 0
            gc.collect()
        self.links.node_is_back(name)
        return node

    def stall(self, name: NodeName) -> None:
        """The node stops doing anything, and is not told."""
        self.nodes[name].stall()
        self.links.node_stalled(name)

    def resume(self, name: NodeName) -> None:
        """A stalled node goes on with what has come in the meantime."""
        self.nodes[name].go_on(self.now_us)
        self.links.node_is_back(name)

    def slow(self, name: NodeName, work_us: int) -> None:
        """Each message costs the node this time in addition; 0 ends it."""
        self.nodes[name].slow_down(work_us, self.now_us)

    def cut(self, first: NodeName, second: NodeName) -> None:
        """Nothing passes the link between the two any more."""
        self.links.cut(first, second)

    def heal(self, first: NodeName, second: NodeName) -> None:
        """The link between the two may come up again."""
        self.links.heal(first, second)

    def divided(self, first: NodeName, second: NodeName) -> bool:
        """Does a partition keep datagrams between the two from passing?"""
        groups = self.links.groups
        return groups is not None and groups[first] != groups[second]

    def in_run(self, error: ProtocolError) -> ProtocolError:
        """The same error, with the run in which it happened."""
        keeps_inputs = self._inputs_folder is not None
        return error if self._run_folder is None else error.in_run(self._run_folder, keeps_inputs)

    def _made(self, spec: NodeSpec, incarnation: int) -> Machine:
        try:
            return make_machine(spec, self.seed, incarnation)
        except ProtocolError as error:
            raise self.in_run(error) from error

    def _add(self, spec: NodeSpec, machine: Machine, storage: VirtualStorage, incarnation: int) -> VirtualNode:
        if spec.role == "client":
            self.clients.add(spec.name)
        recorder = self._recorder(self._writer, self.numbers[spec.name], self.numbers, self._journal_hops)
        if self._inputs_folder is not None:
            path = self._inputs_folder / inputs_file(spec.name, incarnation)
            machine = InputRecorder(machine, added_to(path))
        VirtualRuntime._added += 1
        node = VirtualNode(self, spec, machine, recorder, storage, incarnation)
        if incarnation:
            self.nodes[spec.name].forget_addressed()
        self._places.setdefault(spec.name, len(self._places))
        self.nodes[spec.name] = node
        return node

    # ------------------------------------------------------------------------------------------ the queue

    def call_at(self, time_us: int, action: Callable[[int], None]) -> None:
        """Have `action(now_us)` called at the given time."""
        self._push(time_us, None, CALL, action, None)

    @property
    def waiting(self) -> bool:
        """Does a machine wait for something that it will ask for again?"""
        return any(node.says("waiting") for node in self.nodes.values() if not node.down)

    @property
    def settling(self) -> bool:
        """Does a machine know of a subscription that is not in effect everywhere?"""
        return self.settled_until_us(self.now_us) is None

    def settled_until_us(self, asked_us: int) -> int | None:
        """Up to when all that was asked for is in effect, as the machines know; None if that does not reach up to
        `asked_us`."""
        found = self._found_settling  # asked after each entry: mostly it is the same machine still
        if found is not None and not found.down and found.settled_until_us < asked_us:
            return None
        least_us = self.now_us
        for node in self.nodes.values():
            if not node.down and (until_us := node.settled_until_us) < least_us:
                if until_us < asked_us:
                    self._found_settling = node
                    return None
                least_us = until_us
        self._found_settling = None
        return least_us

    @property
    def next_us(self) -> int | None:
        """When the next entry is due; None if nothing will ever happen again."""
        return self.queue.peek_us()

    def run(self, until_us: int | None = None, stop: Callable[[], bool] | None = None, steps: int | None = None) -> int:
        """Process entries up to and including `until_us` (None: all), until `stop()` holds after an entry, or
        for at most `steps` entries; returns how many were processed. Raises `ProtocolError`, also for what would never
        end: entries that follow from each other while time stands still, or more messages than memory holds."""
        queue = self.queue
        pop = queue.pop
        newest = self._newest
        entry: QueueEntry | None = None
        limit_us = NEVER_US if until_us is None else until_us
        limit = NEVER_US if steps is None else steps
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
            if number > newest:
                # The first entry that was made after the last such look. As long as time stands still, each of them was
                # made by what the one before it led to: that many messages have answered messages.
                self._depth = self._depth + 1 if now_us == self._instant_us else 0
                self._instant_us = now_us
                self._newest = newest = queue.pushed
                if self._depth > _DEPTH_MAX + len(self.nodes):
                    self._refuse(entry, f"answers to answers without an end ({self._depth:,} at one instant)")
            if kind <= CONTROL_MESSAGE:
                node.receive(source, kind, payload, now_us)
            elif kind == TIMER:
                node.fire(payload, number, now_us)
            elif kind == CALL:
                payload(now_us)
            elif kind == STORED:
                node.stored(payload, now_us)
            else:
                node.resume(now_us)
            if stop is not None and stop():
                break
        self.processed += done
        if entry is not None and self.in_flight[0] + self.in_flight[1] > _IN_FLIGHT_MAX:
            self._refuse(entry, f"more than anybody takes ({sum(self.in_flight):,} messages are on their way)")
        return done

    def _refuse(self, entry: QueueEntry, found: str) -> None:
        """Raise `ProtocolError` about the node that the entry is for, if it is for one."""
        now_us, _, node, kind, payload, source = entry
        if node is not None:
            node.refuse(kind, payload, source, now_us, ContractError(found, "effects that come to an end"))

    def check_invariants(self) -> None:
        """The invariants of every machine that runs; raises `ProtocolError`."""
        for node in self.nodes.values():
            if not node.down:
                node.check_invariants()
