"""Processes that connect without the run's token: what they cost, what they learn, and what the journal says."""

import asyncio
import resource
from pathlib import Path
from typing import Any

import msgpack
import pytest

from actors import entrance
from actors.connection import Connection
from actors.handshake import Dialler, Party, Purpose
from murmur_pubsub.codec import FRAME_HEADER, frame
from murmur_pubsub.journal import Refusal, RowKind
from murmur_pubsub.links import LinkSpec
from tests.actors.net import TOKEN, Net, closed, connect_raw, joined, read_frame, run, until

EMPTY_MAPS = b"\xdd" + (1 << 20).to_bytes(4, "big") + b"\x80" * (1 << 20)


def claims(size: int) -> bytes:
    """The header of a frame of that size."""
    return FRAME_HEADER.pack(size)


def framed(*fields: Any) -> bytes:
    body: bytes = msgpack.packb(fields)
    return claims(len(body)) + body


def hello(name: str = "b1", at: tuple[str, int] = ("127.0.0.1", 1)) -> bytes:
    return Dialler(Party(name, 0), "a guess", "b0", Purpose.LINK, at).hello()


async def broker(folder: Path) -> Net:
    """b0, which has links to b1 and c0."""
    net = Net(folder)
    await net.add("b0", {"b1": LinkSpec(), "c0": LinkSpec()})
    return net


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrance, "HANDSHAKE_S", 0.05)


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", Refusal.TOO_LARGE),
        (b"\xff" * 64, Refusal.TOO_LARGE),
        (claims(60 << 20), Refusal.TOO_LARGE),
        (claims(len(EMPTY_MAPS)) + EMPTY_MAPS, Refusal.TOO_LARGE),
        (claims(1021), Refusal.TOO_LARGE),
        (claims(1000) + b"\x91" * 1000, Refusal.NO_GREETING),
        (claims(5) + b"\xdd\xff\xff\xff\xff", Refusal.NO_GREETING),
        (frame([]), Refusal.NO_GREETING),
        (frame([]) * 1000, Refusal.NO_GREETING),
        (frame([msgpack.packb([0, 2, TOKEN, "b1", 0, 0])]), Refusal.NO_GREETING),
        (hello() + claims(60 << 20), Refusal.TOO_LARGE),
        (hello() + b"garbage", Refusal.TOO_LARGE),
        (hello() + hello(), Refusal.NO_GREETING),
        (hello() + framed(2, b"\0\0"), Refusal.NO_PROOF),
    ],
    ids=[
        "HTTP", "ones", "half a frame", "a bomb", "a byte too much", "nested lists", "a huge list", "empty frame",
        "empty frames", "version 2", "hello and half a frame", "hello and garbage", "hello twice", "hello and no proof",
    ],
)  # fmt: skip
@pytest.mark.parametrize("cut", [1, 3, 1 << 30], ids=["byte by byte", "cut in the header", "at once"])
def test_a_stranger_is_turned_away_for_a_reason_however_its_bytes_are_cut(
    tmp_path: Path, first: bytes, reason: Refusal, cut: int
) -> None:
    async def scenario() -> None:
        net = await broker(tmp_path)
        connection = Connection(net.nodes["b0"])
        transport = _Wire(connection)
        for begin in range(0, len(first), cut):
            if transport.aborted:
                break
            connection.data_received(first[begin : begin + cut])
            assert len(connection._early) <= 1024
        assert transport.aborted
        assert net.refusals("b0") == {reason: 1}
        assert net.count("b0", RowKind.LINK_UP) == 0

    run(scenario())


class _Wire(asyncio.Transport):
    """A transport on which the other side's bytes come as the test says."""

    def __init__(self, connection: Connection) -> None:
        super().__init__({"sockname": ("127.0.0.1", 4711)})
        self.aborted = False
        self.written = b""
        connection.connection_made(self)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: Any) -> None:
        self.written += data

    def abort(self) -> None:
        self.aborted = True


def test_a_stranger_on_a_real_socket_is_told_nothing_but_a_name_and_a_nonce(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await broker(tmp_path)
        reader, writer = await connect_raw(net, hello())
        kind, _, name, incarnation, nonce, proof = msgpack.unpackb(await read_frame(reader))
        assert (kind, name, incarnation, len(nonce), len(proof)) == (1, "b0", 0, 16, 32)
        writer.write(framed(2, b"\0"))
        assert await closed(reader) == b""
        assert net.refusals("b0") == {Refusal.NO_PROOF: 1}

    run(scenario())


def test_one_that_says_nothing_is_turned_away_in_time(tmp_path: Path, impatient: None) -> None:
    async def scenario() -> None:
        net = await broker(tmp_path)
        silent, slow = await connect_raw(net), await connect_raw(net, hello()[:7])
        assert await closed(silent[0]) == await closed(slow[0]) == b""
        await until(lambda: net.nodes["b0"].entrance.refused == 2)
        net.nodes["b0"].links.end()
        assert net.refusals("b0") == {Refusal.TOO_SLOW: 2}

    run(scenario())


def test_a_node_that_was_held_up_gives_waiting_peers_another_chance(tmp_path: Path, impatient: None) -> None:
    async def scenario() -> None:
        net = await broker(tmp_path)
        connection = Connection(net.nodes["b0"])
        _Wire(connection)
        door = net.nodes["b0"].entrance
        door._too_slow(connection, asyncio.get_running_loop().time() - 2)
        assert net.refusals("b0") == {}
        await until(lambda: net.refusals("b0") == {Refusal.TOO_SLOW: 1})

    run(scenario())


def test_one_that_leaves_before_it_has_proven_anything_is_counted(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await broker(tmp_path)
        _, writer = await connect_raw(net)
        await until(lambda: bool(net.nodes["b0"].entrance._half_open))
        writer.close()
        await until(lambda: net.refusals("b0") == {Refusal.LEFT: 1})

    run(scenario())


def test_silent_strangers_do_not_keep_a_peer_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrance, "HALF_OPEN_MAX", 8)

    async def scenario() -> None:
        net = await broker(tmp_path)
        door = net.nodes["b0"].entrance
        strangers = [await connect_raw(net) for _ in range(20)]
        await until(lambda: net.nodes["b0"].entrance.refused == 12)
        assert len(door._half_open) == 8
        await asyncio.wait_for(joined(net, "c0"), 5)
        assert "c0" in net.nodes["b0"].connections
        assert [await closed(reader) for reader, _ in strangers[:13]] == [b""] * 13, "the oldest went"
        net.nodes["b0"].links.end()
        assert net.refusals("b0") == {Refusal.TOO_MANY: 13, Refusal.LEFT: 7}

    run(scenario())


def test_strangers_that_take_every_descriptor_do_not_keep_a_peer_out_for_good(tmp_path: Path) -> None:
    async def scenario(limit: int) -> None:
        net = await broker(tmp_path)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # it says that it is out of descriptors
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
        try:
            strangers = []
            while True:
                try:
                    strangers.append(await connect_raw(net))
                except OSError:
                    break
            for _, writer in strangers[:3]:
                writer.close()  # the peer of this test needs a descriptor in this process, too
            async with asyncio.timeout(10):
                while "c0" not in net.nodes["b0"].connections:
                    try:
                        await joined(net, "c0")
                    except OSError:  # a stranger that had waited to be let in has taken the descriptor
                        await asyncio.sleep(0.05)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert "c0" in net.nodes["b0"].connections

    run(scenario(200))


def test_a_flood_of_strangers_adds_up_in_a_few_rows(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await broker(tmp_path)
        for number in range(300):
            connection = Connection(net.nodes["b0"])
            _Wire(connection)
            connection.data_received(b"\xff" * 8 if number % 3 else frame([]))
        assert net.refusals("b0") == {Refusal.TOO_LARGE: 1, Refusal.NO_GREETING: 1}, "the first of each at once"
        net.nodes["b0"].links.end()
        assert net.refusals("b0") == {Refusal.TOO_LARGE: 200, Refusal.NO_GREETING: 100}
        assert net.count("b0", RowKind.REFUSED) == 4
        assert net.nodes["b0"].entrance.refused == 300

    run(scenario())


def test_what_was_gathered_is_written_without_waiting_for_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance, "_GATHER_S", 0.02)

    async def scenario() -> None:
        net = await broker(tmp_path)
        for _ in range(10):
            _, writer = await connect_raw(net, b"\xff" * 8)
            writer.close()
        await until(lambda: net.refusals("b0") == {Refusal.TOO_LARGE: 10})

    run(scenario())


def test_one_that_knows_the_token_but_has_no_link_here_is_turned_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await broker(tmp_path)
        with pytest.raises(asyncio.IncompleteReadError):
            await joined(net, "nobody")
        assert net.refusals("b0") == {Refusal.NO_LINK: 1}

    run(scenario())


def test_a_stranger_on_a_dead_brokers_port_gets_nothing_that_it_can_use(tmp_path: Path) -> None:
    """It answers the hello with what the broker's next incarnation answers to it, at its new port: and says everything
    again later, to both."""

    async def scenario() -> None:
        net = Net(tmp_path)
        dialling = await net.add("b0", {"b1": LinkSpec()})
        await net.add("b1", {"b0": LinkSpec()}, incarnation=1)
        heard: list[bytes] = []

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await read_frame(reader))
            there, onward = await connect_raw(net, claims(len(heard[-1])) + heard[-1], "b1")
            answer = await read_frame(there)
            writer.write(claims(len(answer)) + answer)
            heard.append(await closed(reader))
            onward.close()
            writer.close()

        trap = await asyncio.start_server(relay, "127.0.0.1", 0)
        host, port = trap.sockets[0].getsockname()
        await asyncio.get_running_loop().create_connection(lambda: Connection(dialling, "b1", (host, port)), host, port)
        await until(lambda: len(heard) == 2)
        assert TOKEN.encode() not in heard[0]
        assert heard[1] == b"", "the dialler broke off, and proved nothing"
        assert net.refusals("b0") == {Refusal.NO_PROOF: 1}
        for to in ("b0", "b1"):
            reader, writer = await connect_raw(net, claims(len(heard[0])) + heard[0], to)
            answer = msgpack.unpackb(await read_frame(reader))
            writer.write(framed(2, answer[-1]))
            assert await closed(reader) == b""
        assert not any(node.connections for node in net.nodes.values())
        assert net.count("b0", RowKind.LINK_UP) == net.count("b1", RowKind.LINK_UP) == 0
        trap.close()

    run(scenario())
