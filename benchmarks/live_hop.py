"""Where a live hop's time goes: one node of the benchmark's ring in this process, fed frames without a socket.

`python -m benchmarks.live_hop` prints microseconds of a core for each message, of a batch of 250: of the whole hop, of
its parts one by one, and of a hop of the bare ring. System calls, Ray, and the cold caches of many processes come on
top.
"""

import asyncio
import gc
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgpack

from actors.actor_settings import ActorSettings
from actors.clock import Clock, origin_now
from actors.connection import Connection
from actors.live_node import LiveNode
from benchmarks.bare_ring import BareNode
from benchmarks.live import RING_PARTS
from benchmarks.quotes import quote
from benchmarks.ring import HOPS, RingRouting
from benchmarks.table import print_table
from murmur_pubsub.codec import Codec, FrameReader, frame
from murmur_pubsub.deployment import NodeSpec, RunSettings, make_machine
from murmur_pubsub.event import Event, unpack_attributes
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Received, Send
from murmur_pubsub.recorder import Recorder
from murmuration.registry import BROKER_FACTORY
from reliability.best_effort import Forwarded
from reliability.broker import Broker

_BATCH = 250
_MESSAGES = 4_000
_ROUNDS = 25
_NUMBERS = {"b0": 0, "b1": 1, "b2": 2}


class _Sink(asyncio.Transport):
    """Takes what is written."""

    def write(self, data: Any) -> None:
        pass


def _node(folder: Path) -> tuple[LiveNode, Recorder, Connection]:
    """The middle one of three brokers, its recorder, and its link with the first."""
    spec = NodeSpec("b1", "broker", BROKER_FACTORY, {**RING_PARTS, "brokers": 3})
    recorder = Recorder(JournalWriter(folder, "b1", 1), 1, _NUMBERS)
    origin = origin_now()
    settings = ActorSettings(RunSettings(1), "", str(folder), str(folder), _NUMBERS, origin, None)
    node = LiveNode(spec, 0, make_machine(spec, 1), recorder, settings, Clock(origin, 1.0))
    node.brokers = frozenset(_NUMBERS)
    links = []
    for name in ("b0", "b2"):
        node.link_specs[name] = LinkSpec()
        link = Connection(node, name)
        link._transport, link.writable = _Sink(), True
        node.link_made(link)
        links.append(link)
    return node, recorder, links[0]


def _least_us(rounds: Callable[[], None]) -> float:
    """Microseconds of a core a message, in the quickest of some rounds over all messages."""
    least_s = float("inf")
    for _ in range(_ROUNDS):
        began = time.process_time()
        rounds()
        least_s = min(least_s, time.process_time() - began)
    return least_s / _MESSAGES * 1e6


def _each(action: Callable[[Any], object], items: Sequence[Any]) -> float:
    def one_by_one() -> None:
        for item in items:
            action(item)

    return _least_us(one_by_one)


def _bare_us() -> float:
    node = BareNode()
    node._transport = _Sink()
    body = msgpack.packb([(HOPS, b"x" * 100, time.time())] * _BATCH)

    def hop() -> None:
        for _ in range(_MESSAGES // _BATCH):
            node.pass_on(msgpack.unpackb(body))

    return _least_us(hop)


async def _measure(folder: Path) -> list[tuple[str, float]]:
    node, recorder, link = _node(folder)
    machine = node.machine
    assert isinstance(machine, Broker)
    assert isinstance(machine.router, RingRouting)
    rng = random.Random("benchmark/live hop")
    codec = Codec(machine.message_types)
    messages = [Forwarded(Event(0, number, 0, quote(rng)), 5, (4,)) for number in range(_MESSAGES)]
    packed = [codec.encode(each) for each in messages]
    data = [frame(packed[first : first + _BATCH]) for first in range(0, _MESSAGES, _BATCH)]
    bodies = [msgpack.unpackb(each) for each in packed]
    arrived = [codec.decode(each) for each in packed]
    blobs = [each.event.blob for each in arrived]
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # as in an actor
    reader = FrameReader()

    def hop() -> None:
        for each in data:
            node.take_messages(link, reader.feed(each))

    def forget() -> None:
        for each in arrived:
            each.event._attributes = None

    def handle() -> None:
        forget()
        for each in arrived:
            machine.handle(Received("b0", each), 0)

    def carry_out() -> None:
        for each in arrived:
            node.perform((Send("b2", each),), 0)
        node.flush()

    handled_us = _least_us(handle) - _least_us(forget)
    attributes_us = _each(unpack_attributes, blobs)
    matched_us = _each(machine.router.index.destinations, [each.event.attributes for each in arrived])
    encoded_us, sent_us = _each(codec.encode, arrived), _each(lambda each: recorder.sent(0, each, "b2", 90), arrived)
    parts = [
        ("the frame is unpacked", _each(reader.feed, data)),
        ("its arrays become messages", _each(codec.from_body, bodies)),
        ("a row: received", _each(lambda each: recorder.received(0, each, "b0"), arrived)),
        ("the event's attributes are unpacked", attributes_us),
        ("200 filters are matched", matched_us),
        ("the machine, but for those two", handled_us - attributes_us - matched_us),
        ("the message is packed", encoded_us),
        ("a row: sent", sent_us),
        ("it is carried out, but for those two", _least_us(carry_out) - encoded_us - sent_us),
    ]
    whole_us = _least_us(hop)
    rest_us = whole_us - sum(part_us for _, part_us in parts)
    return [("a hop of the bare ring", _bare_us()), ("a live hop", whole_us), *parts, ("the loop around them", rest_us)]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(_measure(Path(folder)))
    cells = [(name, f"{part_us:.2f}") for name, part_us in rows]
    print_table("A live hop, microseconds of a core a message", ("", "µs"), cells)


if __name__ == "__main__":
    main()
