"""The Ray actor around a node: what the driver may ask of a broker or client while it runs.

Ray starts, names, watches and kills these actors and carries the calls below; events never travel in actor
calls. Imports stay light: every one is paid for by every actor.
"""

import asyncio
import gc
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.clock import Clock
from actors.connection import Connection
from actors.live_node import LiveNode
from pubsub.deployment import NodeSpec, make_machine
from pubsub.journal import JournalWriter, RowKind
from pubsub.links import LinkSpec
from pubsub.machine import NodeName, Publish, Subscribe, Unsubscribe
from pubsub.recorder import Recorder
from pubsub.script import Player, Script

Address = tuple[str, int]
_PUBLISH_BATCH = 64
"""So many events a publisher that is behind may publish before it lets its links breathe."""


@dataclass(frozen=True, slots=True)
class ActorSettings:
    """What all actors of a run share. `origin_wall_ns` is emulated time zero; `host` the address to listen on."""

    seed: int
    token: str
    journal_folder: str
    numbers: Mapping[NodeName, int]
    origin_wall_ns: int
    time_dilation: float
    journal_hops: bool
    host: str


class NodeActor:
    """One node of a live run. The driver calls `listen`, `attach`, then `subscribe`, `publish`, `leave`, `stop`."""

    def __init__(self, spec: NodeSpec, settings: ActorSettings, script: Script | None, incarnation: int) -> None:
        self._spec = spec
        self._settings = settings
        self._player = None if script is None else Player(script)
        self._incarnation = incarnation
        self._machine = make_machine(spec, settings.seed)
        self._node: LiveNode | None = None
        self._publishing: asyncio.Task[None] | None = None
        self._leaving: list[Connection] = []
        # What the imports made lives as long as the actor: the collector need not walk it again and again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)

    async def listen(self) -> Address:
        """Open the node's socket and journal and start its machine; where peers can reach it."""
        settings = self._settings
        self._writer = JournalWriter(
            Path(settings.journal_folder), self._spec.name, settings.numbers[self._spec.name], self._incarnation
        )
        recorder = Recorder(self._writer, settings.numbers[self._spec.name], settings.numbers, settings.journal_hops)
        clock = Clock(settings.origin_wall_ns, settings.time_dilation)
        node = self._node = LiveNode(self._spec, self._machine, recorder, clock, settings.token, settings.seed)
        node.incarnation = self._incarnation
        self._recorder = recorder
        node.start()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(node, None), settings.host, 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    async def attach(
        self, links: Mapping[NodeName, LinkSpec], brokers: frozenset[NodeName], dial: Mapping[NodeName, Address]
    ) -> None:
        """Learn the node's links and dial those that are this end's to dial."""
        node = self._running
        node.link_specs.update(links)
        node.brokers |= brokers
        loop = asyncio.get_running_loop()
        for peer, (host, port) in dial.items():
            await loop.create_connection(lambda peer=peer: Connection(node, peer), host, port)  # type: ignore[misc]

    async def linked(self) -> bool:
        """Are all links up?"""
        node = self._running
        return node.connections.keys() == node.link_specs.keys()

    async def subscribe(self) -> int:
        """Issue the subscriptions of the script; how many there were."""
        if self._player is None:
            return 0
        commands = self._player.subscriptions()
        for number, command in enumerate(commands):
            self._issue(command)
            if number % _PUBLISH_BATCH == 0:
                await asyncio.sleep(0)
        return len(commands)

    async def publish(self, base_us: int) -> None:
        """Begin to play the timed part of the script, its times counted from `base_us`; returns at once."""
        if self._player is not None:
            self._publishing = asyncio.get_running_loop().create_task(self._play(self._player, base_us))

    async def status(self) -> dict[str, Any]:
        """Counters, whether the script is still being played, and the traceback of a machine that failed."""
        node = self._running
        counters = node.counters
        playing = self._publishing is not None and not self._publishing.done()
        failure = node.failure
        if self._publishing is not None and self._publishing.done() and self._publishing.exception() is not None:
            failure = failure or repr(self._publishing.exception())
        return {name: getattr(counters, name) for name in counters.__slots__} | {
            "playing": playing,
            "failure": failure,
            "pid": os.getpid(),
        }

    async def leave(self) -> None:
        """Take no more notice of links. All nodes leave before any stops, so that none mourns the others."""
        node = self._running
        self._leaving = list(node.connections.values())
        node.connections.clear()
        for connection in self._leaving:
            connection.pause_reading(True)
        self._recorder.plain(node.clock.now_us(), RowKind.LAG, node.counters.lag_us_max)
        self._recorder.plain(node.clock.now_us(), RowKind.STOP)

    async def stop(self) -> None:
        """Close links, socket and journal; raises AssertionError if the machine's invariants do not hold."""
        self._server.close()
        for connection in self._leaving:
            connection.close()
        self._writer.close()
        self._machine.check_invariants()

    @property
    def _running(self) -> LiveNode:
        assert self._node is not None, "listen() comes first"
        return self._node

    async def _play(self, player: Player, base_us: int) -> None:
        node = self._running
        while (due_us := player.next_us) is not None:
            wait_us = base_us + due_us - node.clock.now_us()
            if wait_us > 0:
                await asyncio.sleep(node.clock.wall_s(wait_us))
                continue
            node.note_lag(-wait_us)
            if self._spec.broker is not None and node.congested(self._spec.broker):
                await asyncio.sleep(0.001)
                continue
            for _ in range(_PUBLISH_BATCH):
                if player.next_us is None or player.next_us + base_us > node.clock.now_us():
                    break
                self._issue(player.take(node.clock.now_us()))
            await asyncio.sleep(0)

    def _issue(self, command: Subscribe | Unsubscribe | Publish) -> None:
        node = self._running
        if type(command) is Publish:
            self._recorder.published(command.event.time_us, command.event)
            node.counters.published += 1
        else:
            assert isinstance(command, Subscribe | Unsubscribe)
            now_us = node.clock.now_us()
            self._recorder.subscription(now_us, command.subscriber, command.filter, type(command) is Unsubscribe)
        node.take_input(command)
