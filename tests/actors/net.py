"""A few live nodes in one asyncio loop, without Ray; and sockets that speak to them byte by byte."""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np

from actors.actor_settings import ActorSettings
from actors.clock import Clock, Origin
from actors.connection import Connection
from actors.handshake import Dialler, Party, Purpose
from actors.live_node import LiveNode
from actors.log_keeper import LogKeeper
from murmur_pubsub.codec import FRAME_HEADER
from murmur_pubsub.deployment import NodeSpec, RunSettings, make_machine
from murmur_pubsub.journal import JournalWriter, Refusal, RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Machine
from murmur_pubsub.recorder import Recorder
from tests.deployments import PARTS

TOKEN = "the token of this run"
NUMBERS = {"b0": 0, "b1": 1, "c0": 2, "c1": 3}


class Net:
    """A few live nodes with their journals; everything happens in the running loop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes: dict[str, LiveNode] = {}
        self.ports: dict[str, int] = {}
        self.writers: list[JournalWriter] = []
        self.origin = Origin(time.time_ns())

    async def add(
        self,
        name: str,
        links: dict[str, LinkSpec],
        broker: str | None = None,
        incarnation: int = 0,
        machine: Machine | None = None,
        not_before_us: int = 0,
        keeper: LogKeeper | None = None,
        **options: Any,
    ) -> LiveNode:
        role, parameters = ("broker", dict(PARTS)) if broker is None else ("client", {"broker": broker})
        spec = NodeSpec(name, role, f"murmuration.registry:make_{role}", parameters, broker)  # type: ignore[arg-type]
        writer = JournalWriter(self.folder, name, NUMBERS[name], incarnation)
        self.writers.append(writer)
        recorder = Recorder(writer, NUMBERS[name], NUMBERS)
        run = RunSettings(1, **options)
        settings = ActorSettings(run, TOKEN, str(self.folder), str(self.folder), NUMBERS, self.origin, "127.0.0.1")
        machine = machine or make_machine(spec, 1)
        clock = Clock(self.origin, run.time_dilation)
        clock.not_before(not_before_us)
        node = LiveNode(spec, incarnation, machine, recorder, settings, clock, keeper)
        node.link_specs.update(links)
        node.brokers = frozenset({"b0", "b1"})
        node.start()
        listening = socket.create_server(("127.0.0.1", 0))  # as actors do
        await asyncio.get_running_loop().create_server(lambda: Connection(node), sock=listening)
        self.ports[name] = listening.getsockname()[1]
        self.nodes[name] = node
        return node

    async def dial(self, name: str, peer: str) -> None:
        node, (host, port) = self.nodes[name], self.address(peer)
        await asyncio.get_running_loop().create_connection(lambda: Connection(node, peer, (host, port)), host, port)

    def address(self, name: str) -> tuple[str, int]:
        return "127.0.0.1", self.ports[name]

    def rows(self, name: str) -> np.ndarray:
        return np.concatenate([read_segment(path)[1] for path in sorted(self.folder.glob(f"{name}-*.seg"))])

    def count(self, name: str, kind: RowKind) -> int:
        return int((self.rows(name)["kind"] == kind).sum())

    def refusals(self, name: str) -> dict[Refusal, int]:
        """How many connections were refused, by reason, as the journal has it."""
        rows = self.rows(name)[self.rows(name)["kind"] == RowKind.REFUSED]
        counts = {reason: int(rows[rows["hops"] == reason]["value"].sum()) for reason in Refusal}
        return {reason: count for reason, count in counts.items() if count}


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that happens on the loop; fails after ten seconds."""
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.005)


Raw = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect_raw(net: Net, first: bytes = b"", to: str = "b0") -> Raw:
    """A connection that has said nothing but `first`."""
    reader, writer = await asyncio.open_connection(*net.address(to))
    writer.write(first)
    return reader, writer


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The body of the next frame."""
    (size,) = FRAME_HEADER.unpack(await reader.readexactly(FRAME_HEADER.size))
    return await reader.readexactly(size)


async def joined(net: Net, name: str, token: str | None = None, to: str = "b0", incarnation: int = 0) -> Raw:
    """A connection that has proven to be the node's, and was welcome."""
    handshake = Dialler(Party(name, incarnation), token or TOKEN, to, Purpose.LINK, net.address(to))
    reader, writer = await connect_raw(net, handshake.hello(), to)
    while handshake.peer is None:
        writer.write(handshake.take(await read_frame(reader)) or b"")
    return reader, writer


async def closed(reader: asyncio.StreamReader) -> bytes:
    """What still came until the other side closed the connection, or broke it off."""
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Play it to its end."""
    asyncio.run(scenario)
