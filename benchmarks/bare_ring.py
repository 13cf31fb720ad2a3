"""The bare ring that live brokers are compared with: Ray actors, TCP links, msgpack frames, and nothing else.

A message is a hop count, 100 bytes and the time it was sent; no events, matching, codec, journal or counters. Times are
those at which a batch of messages is taken, as in the rows of a live node's journal. The nodes tell them, for the
driver sees a run's end late.
"""

import asyncio
import math
import struct
import time
from typing import Any

import msgpack
import ray

from benchmarks.ring import HOPS

_LENGTH = struct.Struct("<I")
_PAYLOAD = b"x" * 100
_BATCH = 20
_ROUNDS = 5


class BareNode:
    """One actor of the ring."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.received = 0
        self.latency_s = 0.0
        self.began_s, self.ended_s = math.inf, 0.0

    async def begin(self) -> None:
        """Count from zero."""
        self._begin()

    async def listen(self) -> int:
        node = self
        server = await asyncio.get_running_loop().create_server(lambda: _BareLink(node), "127.0.0.1", 0)
        self._server = server
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def dial(self, port: int) -> None:
        self._transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, "127.0.0.1", port)

    async def inject(self, count: int) -> None:
        now = time.time()
        self.began_s = min(self.began_s, now)
        self.pass_on([(HOPS, _PAYLOAD, now) for _ in range(count)])

    async def counts(self) -> tuple[int, float, float, float]:
        return self.received, self.latency_s, self.began_s, self.ended_s

    def pass_on(self, messages: list[Any]) -> None:
        """Count the messages and send on those with hops left."""
        now = self.ended_s = time.time()
        onward = []
        for hops, payload, sent in messages:
            self.received += 1
            self.latency_s += now - sent
            if hops > 0:
                onward.append((hops - 1, payload, now))
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
    """(hops a second, mean hop latency in milliseconds) for so many messages of `HOPS` hops, in the median round: one
    takes a fraction of a second."""
    nodes = [ray.remote(num_cpus=0)(BareNode).remote() for _ in range(actors)]
    ports = ray.get([node.listen.remote() for node in nodes])
    ray.get([node.dial.remote(ports[(number + 1) % actors]) for number, node in enumerate(nodes)])
    rounds = sorted(_round(nodes, messages) for _ in range(_ROUNDS))
    for node in nodes:
        ray.kill(node)
    return rounds[_ROUNDS // 2]


def _round(nodes: list[Any], messages: int) -> tuple[float, float]:
    ray.get([node.begin.remote() for node in nodes])
    for number in range(messages // _BATCH):
        nodes[number % len(nodes)].inject.remote(_BATCH)
    expected = messages // _BATCH * _BATCH * (HOPS + 1)
    received = 0
    while received < expected:
        time.sleep(0.2)
        counts = ray.get([node.counts.remote() for node in nodes])
        received = sum(count for count, *_ in counts)
    seconds = max(ended_s for *_, ended_s in counts) - min(began_s for _, _, began_s, _ in counts)
    return expected / seconds, sum(latency_s for _, latency_s, *_ in counts) / expected * 1e3
