"""The bare ring that live brokers are compared with: Ray actors, TCP links, msgpack frames, and nothing else.

A message is a hop count, 100 bytes and the time it was sent; no events, matching, codec, journal or counters.
"""

import asyncio
import struct
import time
from typing import Any

import msgpack
import ray

from benchmarks.ring import HOPS

_LENGTH = struct.Struct("<I")
_PAYLOAD = b"x" * 100
_BATCH = 20


class BareNode:
    """One actor of the ring."""

    def __init__(self) -> None:
        self.received = 0
        self.latency_s = 0.0

    async def listen(self) -> int:
        node = self
        server = await asyncio.get_running_loop().create_server(lambda: _BareLink(node), "127.0.0.1", 0)
        self._server = server
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def dial(self, port: int) -> None:
        self._transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, "127.0.0.1", port)

    async def inject(self, count: int) -> None:
        self.pass_on([(HOPS, _PAYLOAD, time.time()) for _ in range(count)])

    async def counts(self) -> tuple[int, float]:
        return self.received, self.latency_s

    def pass_on(self, messages: list[Any]) -> None:
        """Count the messages and send on those with hops left."""
        now = time.time()
        onward = []
        for hops, payload, sent in messages:
            self.received += 1
            self.latency_s += now - sent
            if hops > 0:
                onward.append((hops - 1, payload, time.time()))
        if onward:
            body = msgpack.packb(onward)
            self._transport.write(_LENGTH.pack(len(body)) + body)


class _BareLink(asyncio.Protocol):
    def __init__(self, node: BareNode) -> None:
        self._node = node
        self._buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        messages = []
        while len(self._buffer) >= 4:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if len(self._buffer) < 4 + length:
                break
            messages += msgpack.unpackb(self._buffer[4 : 4 + length])
            del self._buffer[: 4 + length]
        if messages:
            self._node.pass_on(messages)


def run_bare_ring(actors: int, messages: int) -> tuple[float, float]:
    """(hops a second, mean hop latency in milliseconds) for so many messages of `HOPS` hops."""
    nodes = [ray.remote(num_cpus=0)(BareNode).remote() for _ in range(actors)]
    ports = ray.get([node.listen.remote() for node in nodes])
    ray.get([node.dial.remote(ports[(number + 1) % actors]) for number, node in enumerate(nodes)])
    began = time.perf_counter()
    for number in range(messages // _BATCH):
        nodes[number % actors].inject.remote(_BATCH)
    expected = messages // _BATCH * _BATCH * (HOPS + 1)
    while sum(count for count, _ in ray.get([node.counts.remote() for node in nodes])) < expected:
        time.sleep(0.2)
    seconds = time.perf_counter() - began
    total_latency_s = sum(latency for _, latency in ray.get([node.counts.remote() for node in nodes]))
    for node in nodes:
        ray.kill(node)
    return expected / seconds, total_latency_s / expected * 1e3
