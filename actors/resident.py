"""One incarnation of a node as it lives in an actor: what the driver may ask of a broker or client while it runs.

Imports stay light: every one is paid for by every actor.
"""

import asyncio
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from actors.actor_settings import ActorSettings
from actors.clock import Clock
from actors.connection import Connection
from actors.handshake import Address
from actors.live_node import LiveNode
from actors.log_keeper import LogKeeper
from actors.processes import ProcessPlace
from actors.stable_storage import discard
from murmur_pubsub.deployment import NodeSpec, make_machine
from murmur_pubsub.journal import JournalWriter, RowKind, inputs_file
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Machine, NodeName, Order, Publish, Subscribe, Unsubscribe
from murmur_pubsub.protocol_error import ProtocolError
from murmur_pubsub.recorded_inputs import InputRecorder, added_to
from murmur_pubsub.recorder import Recorder
from murmur_pubsub.script import Player, Script, ScriptedCommand

_BACKLOG = 1_024
"""So many connections may wait until the machine has started: all nodes of a structured overlay join through a few."""
_PUBLISH_BATCH = 64
"""The most events that a publisher that is behind publishes before it lets its links breathe."""


class Listening(NamedTuple):
    """Where a node is reached, and where its process is."""

    host: str
    port: int
    place: ProcessPlace
    zero_ns: int | None
    """See `actors.clock.Clock.zero_ns`."""


class Arrival(NamedTuple):
    """What an incarnation is made from. `zero_ns`: see `actors.clock.Clock`. `not_before_us`: no time that the machine
    is handed lies before that. `disk_lost`: what earlier incarnations have stored is gone."""

    spec: NodeSpec
    script: Script | None
    incarnation: int
    not_before_us: int = 0
    zero_ns: int | None = None
    disk_lost: bool = False


@dataclass(slots=True)
class Household:
    """What the nodes of an actor have in common: once for all of them, as there may be thousands in a run."""

    settings: ActorSettings
    residents: dict[NodeName, "Resident"] = field(default_factory=dict)
    addresses: dict[NodeName, Address] = field(default_factory=dict)
    """Where all nodes of the run are reached."""
    brokers: frozenset[NodeName] = frozenset()
    """Which of them are brokers."""


class Resident:
    """One incarnation of a node of a live run, with a machine, socket, journal and stable log of its own.

    The driver calls `listen`, `attach` (which starts the machine), `dial`, then `subscribe` and `publish` (or
    `catch_up`, after a restart), and at the end `leave` and `stop`; or `crash`. The calls under "faults" carry out what
    a fault plan does to links and pace.
    """

    def __init__(self, arrival: Arrival, household: Household) -> None:
        """Make the node's machine. Raises `ProtocolError` for one that cannot be made."""
        self._spec, script, self._incarnation, not_before_us, zero_ns, self._disk_lost = arrival
        self._household = household
        self._settings = household.settings
        self.clock = Clock(self._settings.origin, self._settings.run.time_dilation, zero_ns)
        self.clock.not_before(not_before_us)
        self._player = None if script is None else Player(script)
        self._machine: Machine | None = self._make_machine()
        self._node: LiveNode | None = None
        self._server: asyncio.Server | None = None
        self._publishing: asyncio.Task[None] | None = None
        self._leaving: list[Connection] = []

    def listen(self, host: str) -> Address:
        """Open the node's socket and journal. Who connects before `attach` waits in the kernel."""
        settings = self._settings
        assert self._machine is not None
        number = settings.numbers[self._spec.name]
        self._writer = JournalWriter(
            Path(settings.journal_folder), self._spec.name, number, self._incarnation, run=settings.run.identifier
        )
        recorder = Recorder(self._writer, number, settings.numbers, settings.run.journal_hops)
        log = Path(settings.storage_folder) / f"{self._spec.name}.sqlite"
        if self._disk_lost:
            discard(log)
        keeper = self._keeper = LogKeeper(log, self._spec.name)
        self._node = LiveNode(self._spec, self._incarnation, self._machine, recorder, settings, self.clock, keeper)
        self._machine = None  # the node has it, and nobody else
        self._node.links.addresses = self._household.addresses
        self._recorder = recorder
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=_BACKLOG)
        bound: Address = self._socket.getsockname()[:2]
        return bound

    def _make_machine(self) -> Machine:
        settings = self._settings
        machine = make_machine(self._spec, settings.run.seed, self._incarnation)
        if not settings.run.keep_inputs:
            return machine
        path = Path(settings.journal_folder) / inputs_file(self._spec.name, self._incarnation)
        return InputRecorder(machine, added_to(path))

    async def attach(self, links: Mapping[NodeName, LinkSpec]) -> None:
        """Learn the node's links; the first time, start the machine, and only then let in who has connected."""
        node = self._running
        node.link_specs.update(links)
        node.brokers = self._household.brokers
        if self._server is None:
            node.links.begin()
            node.start(self._keeper.records())
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(lambda: Connection(node), sock=self._socket, backlog=_BACKLOG)

    async def dial(self, peers: list[NodeName]) -> None:
        """From now on keep the links to these peers up: they are this end's to dial."""
        self._running.links.dial_always(peers)

    # -------------------------------------------------------------------------------------------- faults
    async def crash(self) -> None:
        """Be gone as if the process were, though it goes on: the machine is thrown away, sockets are closed, what was
        not synced is lost, and the journal ends without a seal."""
        if self._publishing is not None:
            self._publishing.cancel()
        if self._server is None:
            self._socket.close()
        else:
            self._server.close()
        self._running.crash()
        self._writer.abandon()
        await self._keeper.abandon()

    async def sever(self, peers: list[NodeName], partitioned: frozenset[NodeName] = frozenset()) -> list[NodeName]:
        """Let nothing pass on the links to the peers, and no datagrams to those `partitioned`; all severed."""
        links = self._running.links
        for peer in peers:
            links.sever(peer)
        links.partition_from(partitioned)
        return list(links.severed)

    async def mend(self, peers: list[NodeName]) -> list[NodeName]:
        """Let the links come up again, and all datagrams pass; those that are still severed."""
        links = self._running.links
        for peer in peers:
            links.mend(peer)
        links.partition_from(frozenset())
        return list(links.severed)

    async def change_link(self, peer: NodeName, spec: LinkSpec) -> LinkSpec | None:
        """The link to the peer is like that from now on; what the model in use says."""
        node = self._running
        node.change_link(peer, spec)
        connection = node.connections.get(peer)
        return node.link_specs[peer] if connection is None or connection.link is None else connection.link.spec

    async def disconnect(self, peer: NodeName) -> None:
        """There is no link to the peer any more."""
        self._running.link_specs.pop(peer, None)
        self._running.links.leave(peer)

    async def order(self, order: Order) -> None:
        """Tell the machine to do something; its answer goes to the journal."""
        self._running.take_input(order)

    async def slow_down(self, work_us: int) -> int:
        """Each message costs this time in addition; 0 ends it."""
        return self._running.slow_down(work_us)

    async def stall(self) -> bool:
        """Do nothing until `resume`, while the others of the actor go on; is it so?"""
        self._running.gate.stall()
        return self._running.gate.stalled

    async def resume(
        self,
        mended: list[NodeName],
        severed: list[NodeName],
        partitioned: frozenset[NodeName],
        links: Mapping[NodeName, LinkSpec],
    ) -> bool:
        """Hear what has become of the links since, and go on; is it so?"""
        node = self._running
        await self.mend(mended)
        await self.sever(severed, partitioned)
        for peer in [peer for peer, spec in links.items() if spec != node.link_specs[peer]]:
            node.change_link(peer, links[peer])
        node.gate.resume()
        return not node.gate.stalled

    # -------------------------------------------------------------------------------------------- script
    async def subscribe(self) -> int:
        """Issue the subscriptions of the script; how many there were."""
        if self._player is None:
            return 0
        return await self._issue_all(self._player.subscriptions())

    async def catch_up(self, base_us: int) -> int:
        """After a restart: issue the subscriptions of the script so far again, and go on with its timed part."""
        if self._player is None:
            return 0
        issued = await self._issue_all(self._player.catch_up(self._running.clock.now_us() - base_us))
        await self.publish(base_us)
        return issued

    async def issue(self, commands: list[ScriptedCommand]) -> int:
        """Carry out commands that come from no script."""
        return await self._issue_all(commands)

    def begin(self) -> None:
        """Publishing is about to begin. Subscriptions come in a burst, and nodes fall behind in it: no delay of an
        event is the longer for that."""
        self._running.forget_lag()

    async def publish(self, base_us: int) -> None:
        """Begin to play the timed part of the script, its times counted from `base_us`; returns at once."""
        if self._player is not None:
            self._publishing = asyncio.get_running_loop().create_task(self._play(self._player, base_us))

    async def status(self) -> dict[str, Any]:
        """Counters, the node's time, whether the script is still being played, and why the node has failed."""
        node = self._running
        counters = node.counters
        playing = self._publishing is not None and not self._publishing.done()
        waiting, settling, now_us = node.says("waiting"), node.says("settling"), node.clock.now_us()
        failure: BaseException | None = node.failure
        if self._publishing is not None and self._publishing.done() and failure is None:
            failure = self._publishing.exception()
        sent, received = node.links.control_counts()
        return {name: getattr(counters, name) for name in counters.__slots__} | {
            "refused": node.entrance.refused,
            "dropped": self._recorder.drops,
            "queued": sum(connection.unsent for connection in node.connections.values()),
            "incarnation": self._incarnation,
            "control_sent": sent,
            "control_received": received,
            "playing": playing,
            "waiting": waiting,
            "settling": settling,
            "settled_until_us": node.says("settled_until_us") if settling else now_us,
            "now_us": now_us,
            "cpu_us": int(time.process_time() * 1e6) // len(self._household.residents),
            "failure": failure,
            "links": [(peer, connection.peer_incarnation) for peer, connection in node.connections.items()],
        }

    async def leave(self) -> None:
        """Take no more notice of links. All nodes leave before any stops, so that none reports its peers as gone."""
        node = self._running
        if self._server is not None:
            self._server.close()
        node.links.end()
        node.gate.abandon()
        self._leaving = list(node.connections.values())
        node.connections.clear()
        for connection in self._leaving:
            connection.pause_reading(True)
        self._recorder.plain(node.clock.now_us(), RowKind.LAG, node.counters.lag_us_max)
        self._recorder.plain(node.clock.now_us(), RowKind.STOP)

    async def stop(self) -> None:
        """Close links and journal; raises `ProtocolError` if the machine's invariants do not hold."""
        for connection in self._leaving:
            connection.close()
        self._keeper.close()
        self._recorder.fall_silent()  # timers still fire, and the other nodes of the actor have yet to stop
        self._writer.close()
        self._running.check_invariants()

    def at_work(self, waited: str) -> tuple[tuple[int, ...], ProtocolError] | None:
        """What the machine is at, asked from another thread (`LiveNode.at_work`)."""
        return None if self._node is None else self._node.at_work(waited)

    @property
    def _running(self) -> LiveNode:
        assert self._node is not None, "listen() comes first"
        return self._node

    async def _play(self, player: Player, base_us: int) -> None:
        node = self._running
        while (due_us := player.next_us) is not None:
            if node.gate.shut:
                await node.gate.passed()
            wait_us = base_us + due_us - node.clock.now_us()
            if wait_us > 0:
                await asyncio.sleep(node.clock.wall_s(wait_us))
                continue
            node.note_lag(-wait_us)
            if self._spec.broker is not None and node.congested(self._spec.broker):
                await asyncio.sleep(0.001)
                continue
            for _ in range(_PUBLISH_BATCH):
                now_us, due_us = node.clock.now_us(), player.next_us
                if due_us is None or due_us + base_us > now_us:
                    break
                self._issue(player.take(now_us), now_us)
            node.flush()
            await asyncio.sleep(0)

    async def _issue_all(self, commands: list[ScriptedCommand]) -> int:
        node = self._running
        for number, scripted in enumerate(commands):
            self._issue(scripted, node.clock.now_us())
            if number % _PUBLISH_BATCH == 0:
                node.flush()
                await asyncio.sleep(0)
        node.flush()
        return len(commands)

    def _issue(self, scripted: ScriptedCommand, now_us: int) -> None:
        """Have the node take the command, whose frames wait for `flush`."""
        node = self._running
        command, ordinal = scripted
        if type(command) is Publish:
            self._recorder.published(now_us, command.event)
            node.counters.published += 1
        else:
            assert isinstance(command, Subscribe | Unsubscribe)
            withdrawn = type(command) is Unsubscribe
            self._recorder.subscription(now_us, command.subscriber, command.filter, withdrawn, ordinal)
        node.take(command)
