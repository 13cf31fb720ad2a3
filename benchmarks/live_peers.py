"""Publications a second through one broker of others, in the same run as murmur's: the load of `benchmarks.live`.

    apt-get install mosquitto nats-server
    pip install paho-mqtt==2.2.0 nats-py==2.16.0 pyzmq==27.3.0
    python -m benchmarks.live_peers

Eight publisher processes send quotes as fast as the broker takes them; one subscriber takes what it has asked for. The
others route by topic, which is the quote's symbol here, so that all quotes come to the subscriber: which of them it
wants, by price and volume, it would have to find out itself, and is spared. Clients are in Python everywhere, the
peers' brokers in C or Go. Each message is the event as msgpack, at most once (MQTT's quality of service 0). A peer that
is not installed is left out, and said to be.
"""

import asyncio
import importlib
import importlib.util
import multiprocessing
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack

from actors.ray_session import ray_session
from benchmarks.live import PUBLICATIONS, PUBLISHERS, throughput
from benchmarks.quotes import quote
from benchmarks.table import print_table
from tests.ports import free_port

_IDLE_S = 5.0
"""A subscriber to which nothing has come for so long has got all that it will get."""
_READY_S = 1.0
"""Subscriptions are in effect then."""
_EXPECTED = PUBLISHERS * PUBLICATIONS

Message = tuple[str, bytes]
Call = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Peer:
    """broker: serves at a port, in a block. publish: to the broker at a port, all messages, after it has called what it
    is given. take: calls what it is given for each message that comes, until its process is ended. package: what both
    need of Python; program: what the broker needs of the system."""

    name: str
    package: str
    broker: Callable[[int], Any]
    publish: Callable[[int, Sequence[Message], Call], None]
    take: Callable[[int, Call], None]
    program: str | None = None

    @property
    def lacks(self) -> str | None:
        """What would have to be installed."""
        if importlib.util.find_spec(self.package) is None:
            return f"the package {self.package}"
        return self.program if self.program is not None and shutil.which(self.program) is None else None


# ------------------------------------------------------------------------------------------- MQTT
@contextmanager
def mosquitto(port: int) -> Iterator[None]:
    """Mosquitto without bounds on what waits."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "mosquitto.conf"
        file.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nset_tcp_nodelay true\n"
        )
        with _serving(port, ["mosquitto", "-c", str(file)]):
            yield


def _mqtt_client() -> Any:
    paho: Any = importlib.import_module("paho.mqtt.client")
    return paho.Client(paho.CallbackAPIVersion.VERSION2)


def publish_mqtt(port: int, messages: Sequence[Message], begin: Call) -> None:
    """By paho."""
    client = _mqtt_client()
    client.connect("127.0.0.1", port)
    client.loop_start()
    begin()
    for topic, data in messages:
        last = client.publish(topic, data)
    last.wait_for_publish()
    client.disconnect()
    client.loop_stop()


def take_mqtt(port: int, count: Call) -> None:
    """By paho."""
    client = _mqtt_client()
    client.on_message = lambda *_: count()
    client.connect("127.0.0.1", port)
    client.subscribe("#")
    client.loop_forever()


# ------------------------------------------------------------------------------------------- NATS
@contextmanager
def nats_server(port: int) -> Iterator[None]:
    """A NATS server alone."""
    with _serving(port, ["nats-server", "-a", "127.0.0.1", "-p", str(port)]):
        yield


def publish_nats(port: int, messages: Sequence[Message], begin: Call) -> None:
    """By nats-py."""
    nats: Any = importlib.import_module("nats")

    async def all_of_them() -> None:
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        begin()
        for topic, data in messages:
            await client.publish(topic, data)
        await client.drain()

    asyncio.run(all_of_them())


def take_nats(port: int, count: Call) -> None:
    """By nats-py."""
    nats: Any = importlib.import_module("nats")

    async def taken(_: Any) -> None:
        count()

    async def for_ever() -> None:
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        await client.subscribe(">", cb=taken, pending_msgs_limit=0, pending_bytes_limit=0)
        await asyncio.Event().wait()

    asyncio.run(for_ever())


# ------------------------------------------------------------------------------------------- ZeroMQ
@contextmanager
def zmq_proxy(port: int) -> Iterator[None]:
    """See `benchmarks.zmq_proxy`."""
    with _serving(port, [sys.executable, "-m", "benchmarks.zmq_proxy", str(port)]):
        yield


def publish_zmq(port: int, messages: Sequence[Message], begin: Call) -> None:
    """By pyzmq."""
    zmq: Any = importlib.import_module("zmq")

    context = zmq.Context()
    out = context.socket(zmq.PUB)
    out.set_hwm(0)
    out.connect(f"tcp://127.0.0.1:{port}")
    time.sleep(_READY_S)
    begin()
    for topic, data in messages:
        out.send_multipart((topic.encode(), data))
    out.close(linger=-1)
    context.term()


def take_zmq(port: int, count: Call) -> None:
    """By pyzmq."""
    zmq: Any = importlib.import_module("zmq")

    context = zmq.Context()
    into = context.socket(zmq.SUB)
    into.set_hwm(0)
    into.connect(f"tcp://127.0.0.1:{port + 1}")
    into.subscribe(b"")
    while True:
        into.recv_multipart()
        count()


# ------------------------------------------------------------------------------------------- measuring
PEERS = (
    Peer("Mosquitto, C, MQTT", "paho", mosquitto, publish_mqtt, take_mqtt, "mosquitto"),
    Peer("nats-server, Go", "nats", nats_server, publish_nats, take_nats, "nats-server"),
    Peer("ZeroMQ's proxy, C++", "zmq", zmq_proxy, publish_zmq, take_zmq),
)
_PROCESSES = multiprocessing.get_context("spawn")


@contextmanager
def _serving(port: int, command: Sequence[str]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _until_open(port)
        yield
    finally:
        process.terminate()
        process.wait()


def _until_open(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _take(peer: Peer, port: int, taken: Any) -> None:
    """In a process of its own: how many have come, and when the last did, are in `taken`."""

    def count() -> None:
        taken[0] += 1
        taken[1] = time.monotonic()

    peer.take(port, count)


def _publish(peer: Peer, port: int, number: int, ready: Any, began: Any) -> None:
    """In a process of its own."""
    rng = random.Random(f"benchmark/throughput/{number}")
    quotes = [quote(rng) for _ in range(PUBLICATIONS)]
    messages = [(str(each["symbol"]), msgpack.packb((number, place, each))) for place, each in enumerate(quotes)]

    def begin() -> None:
        ready.wait()
        began[number] = time.monotonic()

    peer.publish(port, messages, begin)


def through(peer: Peer) -> tuple[str, ...]:
    """A row: the publications a second from the first to the last that came, and how many came."""
    port = free_port()
    taken, began = _PROCESSES.Array("d", 2, lock=False), _PROCESSES.Array("d", PUBLISHERS, lock=False)
    ready = _PROCESSES.Barrier(PUBLISHERS)
    with peer.broker(port):
        subscriber = _PROCESSES.Process(target=_take, args=(peer, port, taken))
        subscriber.start()
        publishers = [
            _PROCESSES.Process(target=_publish, args=(peer, port, number, ready, began)) for number in range(PUBLISHERS)
        ]
        try:
            for each in publishers:
                each.start()
            for each in publishers:
                each.join()
            ended = time.monotonic()
            while taken[0] < _EXPECTED and time.monotonic() < max(ended, taken[1]) + _IDLE_S:
                time.sleep(0.05)
        finally:
            for each in [*publishers, subscriber]:
                each.terminate()
                each.join()
    took_s = taken[1] - min(began)
    return peer.name, f"{_EXPECTED:,}", f"{int(taken[0]):,}", f"{taken[0] / took_s:,.0f}"


def main() -> None:
    """Print the table."""
    rows = []
    for peer in PEERS:
        if peer.lacks is None:
            rows.append(through(peer))
        else:
            print(f"{peer.name} is left out: {peer.lacks} is not here")
    with ray_session(16) as session:
        _, published, _, per_s, *_ = throughput(session, 1)
    rows.insert(0, ("murmur, matched by content", str(published), "those wanted", str(per_s)))
    heading = ("one broker", "publications", "came to the subscriber", "publications/s")
    print_table(f"Live: {PUBLISHERS} publishers, one subscriber", heading, rows)


if __name__ == "__main__":
    main()
