"""The connections of a live node with its peers: dialling, heartbeats, links cut by a fault, datagrams.

Of the two ends of a link one has the duty to dial, and tries again for as long as the link is down. Heartbeats find
a peer that is gone without a word: one from which nothing came for the timeout loses its connection. A node that was
itself held up (its process stopped, or starved of a core) does not take its own absence for its peers'.
"""

import asyncio
import random
from collections.abc import Mapping

from actors.connection import Connection, ConnectionOwner
from actors.handshake import Address, Purpose
from murmur_pubsub.deployment import RunSettings
from murmur_pubsub.journal import DropReason
from murmur_pubsub.links import Link
from murmur_pubsub.machine import NodeName


class LiveLinks:
    """The connections of one node beside what they carry. `connections` are the links that are up, which the node
    keeps; `addresses` are those of all nodes of the run."""

    def __init__(
        self, owner: ConnectionOwner, connections: Mapping[NodeName, Connection], settings: RunSettings
    ) -> None:
        self.addresses: dict[NodeName, Address] = {}
        self.severed: dict[NodeName, None] = {}
        self._owner = owner
        self._connections = connections
        self._seed = settings.seed
        self._detection = settings.detection
        self._default_link = settings.default_link
        self._dialled_always: dict[NodeName, None] = {}
        self._partitioned: frozenset[NodeName] = frozenset()
        self._dialling: dict[NodeName, asyncio.Task[None]] = {}
        """The last dial of each peer, which may have ended."""
        self._datagrams: dict[NodeName, Connection] = {}
        self._carrying: set[asyncio.Task[None]] = set()
        self._incoming: dict[Connection, None] = {}
        self._beating: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Start the heartbeats."""
        self._beating = self._loop.create_task(self._beat())

    def end(self) -> None:
        """Dial no more, let no peer in any more, close what carried datagrams."""
        self._owner.entrance.end()
        self._dialled_always.clear()
        tasks = [*self._dialling.values(), *self._carrying]
        for task in (*tasks, *([self._beating] if self._beating else ())):
            task.cancel()
        for connection in (*self._datagrams.values(), *self._incoming):
            connection.close()

    def abandon(self) -> None:
        """Break everything off, as if the process were gone: what is buffered is lost, and nothing is dialled again."""
        self._owner.entrance.abandon()
        self._dialled_always.clear()
        for task in (*self._dialling.values(), *self._carrying, *([self._beating] if self._beating else ())):
            task.cancel()
        for connection in (*self._connections.values(), *self._datagrams.values(), *self._incoming):
            connection.abort()

    # ------------------------------------------------------------------------------------------- links
    def dial_always(self, peers: list[NodeName]) -> None:
        """From now on dial these peers whenever the link to them is down."""
        self._dialled_always |= dict.fromkeys(peers)
        for peer in peers:
            self.dial(peer)

    def dial(self, peer: NodeName) -> None:
        """Dial the peer, if this node keeps the link up and nothing forbids it."""
        former = self._dialling.get(peer)
        if peer in self._dialled_always and peer not in self.severed and (former is None or former.done()):
            self._dialling[peer] = self._loop.create_task(self._dial(peer))

    def sever(self, peer: NodeName) -> None:
        """Let nothing pass between this node and the peer's link until `mend`."""
        self.severed[peer] = None
        connection = self._connections.get(peer)
        if connection is not None:
            connection.severed = True

    def mend(self, peer: NodeName) -> None:
        """The link may come up again; what there was of it is broken."""
        self.severed.pop(peer, None)
        connection = self._connections.get(peer)
        if connection is not None:
            connection.abort()
        else:
            self.dial(peer)

    def leave(self, peer: NodeName) -> None:
        """There is no link to the peer any more."""
        self._dialled_always.pop(peer, None)
        self.severed.pop(peer, None)
        if peer in self._dialling:
            self._dialling.pop(peer).cancel()
        connection = self._connections.get(peer)
        if connection is not None:
            self._owner.connection_lost(connection, "disconnected")
            connection.abort()

    async def _dial(self, peer: NodeName) -> None:
        detection, clock = self._detection, self._owner.clock
        while peer not in self._connections and peer not in self.severed:
            await self._owner.gate.passed()
            if peer not in self.addresses:  # it has not been there yet
                await asyncio.sleep(clock.wall_s(detection.reconnect_us))
                continue
            host, port = address = self.addresses[peer]
            connection = Connection(self._owner, peer, address)
            try:
                async with asyncio.timeout(max(1.0, clock.wall_s(detection.timeout_us))):
                    await self._loop.create_connection(lambda: connection, host, port)  # noqa: B023
                    await connection.settled
            except (OSError, TimeoutError):
                await self._owner.gate.passed()
                connection.abort()
            except asyncio.CancelledError:
                connection.abort()  # it might still become a link
                raise
            if peer not in self._connections:
                await asyncio.sleep(clock.wall_s(detection.reconnect_us))

    async def _beat(self) -> None:
        clock, detection = self._owner.clock, self._detection
        due_us = clock.now_us()
        while True:
            due_us = max(due_us + detection.heartbeat_us, clock.now_us())
            await asyncio.sleep(clock.wall_s(due_us - clock.now_us()))
            await self._owner.gate.passed()
            now_us = clock.now_us()
            held_up_us = now_us - due_us
            for connection in list(self._connections.values()):
                connection.beat()
                if held_up_us > detection.heartbeat_us or not connection.listens:
                    connection.heard_us = now_us
                elif now_us - connection.heard_us > detection.timeout_us:
                    self._owner.connection_lost(connection, "no heartbeat")
                    connection.abort()

    # --------------------------------------------------------------------------------------- datagrams
    def partition_from(self, others: frozenset[NodeName]) -> None:
        """Exchange no datagrams with these nodes: a partition is between. Those that are on their way are lost."""
        self._partitioned = others
        for connection in self._incoming:
            connection.severed = connection.peer in others

    @property
    def has_datagrams(self) -> bool:
        """Are there datagrams in this deployment?"""
        return self._default_link is not None

    def datagram_connection(self, to: NodeName) -> Connection | DropReason:
        """What carries datagrams to the node, or why there is nothing."""
        if to in self._partitioned:
            return DropReason.LINK_BROKEN
        if self._default_link is None or to not in self.addresses:
            return DropReason.UNREACHABLE
        if to not in self._datagrams:
            connection = self._datagrams[to] = Connection(self._owner, to, self.addresses[to], Purpose.DATAGRAMS)
            rng = random.Random(f"{self._seed}/{self._owner.party.name}/datagrams/{to}/{self._owner.party.incarnation}")
            connection.link = Link(self._default_link, rng)
            task = self._loop.create_task(self._carry(to, connection))
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)
        return self._datagrams[to]

    def datagrams_lost(self, connection: Connection) -> int:
        """The connection is gone; how many datagrams with it."""
        self._incoming.pop(connection, None)
        if connection.peer is None or self._datagrams.get(connection.peer) is not connection:
            return 0
        del self._datagrams[connection.peer]
        return connection.unsent

    def admits_datagrams(self, connection: Connection) -> bool:
        """May the connection carry datagrams? If this node has dialled it: yes; else unless a partition is between."""
        if connection.dialled:
            return True
        if connection.peer in self._partitioned:
            return False
        self._incoming[connection] = None
        return True

    def control_counts(self) -> tuple[int, int]:
        """Control messages sent and received over the connections there are."""
        connections = [*self._connections.values(), *self._datagrams.values(), *self._incoming]
        sent = sum(connection.control_sent for connection in connections)
        return sent, sum(connection.control_received for connection in connections)

    async def _carry(self, to: NodeName, connection: Connection) -> None:
        host, port = self.addresses[to]
        try:
            async with asyncio.timeout(max(1.0, self._owner.clock.wall_s(self._detection.timeout_us))):
                await self._loop.create_connection(lambda: connection, host, port)
                await connection.settled
        except (OSError, TimeoutError):
            await self._owner.gate.passed()
            if connection.made:
                connection.abort()
            else:
                self._owner.connection_lost(connection, "unreachable")
