"""What a peer may send that knows the token but not the limits: counted, journaled, dropped, and the node lives on."""

from pathlib import Path
from typing import Any

import msgpack
import pytest

from murmur_pubsub import codec as codec_module
from murmur_pubsub.client import ClientSubscribe, Notification, Publication
from murmur_pubsub.codec import FRAME_BYTES_MAX, FRAME_HEADER, Codec, frame
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import RowKind
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Publish, Send, Subscribe
from murmur_pubsub.message import kind_of
from reliability.best_effort import Forwarded
from tests.actors.net import Net, closed, joined, run, until

BLOB = msgpack.packb({"x": 1})


def publication(source: int = 0, sequence: int = 0, time_us: int = 1) -> list[Any]:
    return [kind_of(Publication), [source, sequence, time_us, BLOB]]


def forwarded(hops: Any = 1, header: Any = ()) -> list[Any]:
    return [kind_of(Forwarded), [0, 0, 1, BLOB], hops, header]


def notification(subscribers: Any = (7,)) -> list[Any]:
    return [kind_of(Notification), [0, 0, 1, BLOB], 1, subscribers]


SUBSCRIBE = [kind_of(ClientSubscribe), 7, parse_filter("x > 0").to_wire()]
BY_A_CLIENT = {
    "source 2**40": publication(source=2**40),
    "source below zero": publication(source=-1),
    "sequence 2**63": publication(sequence=2**63),
    "time below zero": publication(time_us=-5),
    "subscriber 2**64 - 1": [*SUBSCRIBE[:1], 2**64 - 1, SUBSCRIBE[2]],
    "a broker's message": forwarded(),
    "a notification to a broker": notification(),
}
BY_A_BROKER = {
    "hops 2**20": forwarded(hops=2**20),
    "hops that a row holds, and one more would not": forwarded(hops=2**15 - 1),
    "hops below zero": forwarded(hops=-1),
    "a header of texts": forwarded(header=["x"]),
    "a header beyond 64 bits": forwarded(header=[1, 2**63]),
    "a client's subscription": SUBSCRIBE,
    "a client's publication": publication(),
    "a notification to a broker": notification(),
}
TO_A_CLIENT = {
    "subscribers of text": notification(["x"]),
    "a subscriber beyond 64 bits": notification([7, 2**63]),
    "a publication to a client": publication(),
    "a subscription to a client": SUBSCRIBE,
}


@pytest.mark.parametrize(
    ("own", "peer", "odd"),
    [
        *(pytest.param("b0", "c0", odd, id=name) for name, odd in BY_A_CLIENT.items()),
        *(pytest.param("b0", "b1", odd, id=name) for name, odd in BY_A_BROKER.items()),
        *(pytest.param("c0", "b0", odd, id=name) for name, odd in TO_A_CLIENT.items()),
    ],
)
def test_an_odd_message_is_malformed_and_what_comes_after_it_is_taken(
    tmp_path: Path, own: str, peer: str, odd: list[Any]
) -> None:
    after = {"c0": publication(sequence=1), "b1": forwarded(), "b0": notification()}[peer]

    async def scenario() -> None:
        net = Net(tmp_path)
        node = await net.add(own, {peer: LinkSpec()}, "b0" if own == "c0" else None)
        _, writer = await joined(net, peer, to=own)
        writer.write(frame([msgpack.packb(odd), msgpack.packb(after)]))
        await until(lambda: node.counters.received == 1)
        assert node.counters.malformed == 1
        assert net.count(own, RowKind.MALFORMED) == 1
        assert node.failure is None
        assert peer in node.connections

    run(scenario())


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(FRAME_HEADER.pack(FRAME_BYTES_MAX + 1), id="a frame that claims too much"),
        pytest.param(FRAME_HEADER.pack(2) + b"\xc1\xc1", id="no msgpack"),
        pytest.param(FRAME_HEADER.pack(1) + b"\x80", id="no array of messages"),
        pytest.param(
            FRAME_HEADER.pack((1 << 20) + 5) + b"\xdd" + (1 << 20).to_bytes(4, "big") + b"\x80" * (1 << 20),
            id="a million maps in a megabyte",
        ),
    ],
)
def test_a_stream_that_cannot_be_read_costs_its_link_and_no_more(tmp_path: Path, stream: bytes) -> None:
    async def scenario() -> None:
        net = Net(tmp_path)
        node = await net.add("b0", {"c0": LinkSpec()})
        reader, writer = await joined(net, "c0")
        writer.write(stream)
        await closed(reader)
        await until(lambda: not node.connections)
        assert net.count("b0", RowKind.MALFORMED) == 1
        assert net.count("b0", RowKind.REFUSED) == 0
        assert node.failure is None
        again = await joined(net, "c0")
        assert "c0" in node.connections
        again[1].close()

    run(scenario())


def test_a_large_outbox_leaves_in_frames_that_are_small(tmp_path: Path) -> None:
    sizes: list[int] = []

    async def scenario() -> None:
        net = Net(tmp_path)
        node = await net.add("b0", {"b1": LinkSpec()})
        peer = await net.add("b1", {"b0": LinkSpec()})
        await net.dial("b0", "b1")
        await until(lambda: bool(node.connections and peer.connections))
        transport = node.connections["b1"]._transport
        assert transport is not None
        write = transport.write
        transport.write = lambda data: (sizes.append(len(data)), write(data))  # type: ignore[method-assign,assignment,func-returns-value]
        event = Event(0, 0, 1, {"x": "y" * 200})
        node.perform([Send("b1", Forwarded(event, 1, (number,))) for number in range(2_000)], 0)
        node.flush()
        await until(lambda: peer.counters.received == 2_000)

    run(scenario())
    assert sum(sizes) > 400_000
    assert max(sizes) <= 64 * 1024 + FRAME_HEADER.size


def test_an_event_too_large_for_any_link_is_refused_where_it_is_published(tmp_path: Path) -> None:
    from murmur_pubsub.errors import InputError

    async def scenario() -> None:
        net = Net(tmp_path)
        node = await net.add("c0", {"b0": LinkSpec()}, "b0")
        event = Event(3, 17, 1, {"text": "y" * (1 << 20)})
        with pytest.raises(InputError, match=r"publication 3:17: found attributes of 1,048,\d+ bytes"):
            node._recorder.published(1, event)
        node.take_input(Publish(Event(3, 18, 1, {"text": "y" * ((1 << 20) - 100)})))
        assert node.failure is None

    run(scenario())


def test_a_message_too_large_for_any_link_ends_its_sender_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec_module, "MESSAGE_BYTES_MAX", 100_000)

    async def scenario() -> None:
        net = Net(tmp_path)
        node = await net.add("b0", {"b1": LinkSpec()})
        await joined(net, "b1")
        node.take_input(Subscribe(1, parse_filter(f"s = '{'y' * 200_000}'")))
        assert "FilterForwarded to send: found 200," in str(node.failure)

    run(scenario())


def test_a_large_message_arrives_and_one_of_too_many_containers_is_not_sent() -> None:
    from murmur_pubsub.errors import InputError
    from routing.pastry.messages import JoinReply

    codec = Codec((Forwarded, JoinReply))
    large = Forwarded(Event(0, 0, 1, {"text": "y" * 900_000}), 1, [1] * 100_000)
    assert codec.decode(codec.encode(large)) == large
    with pytest.raises(InputError, match="more than 262,143 lists and maps"):
        codec.encode(JoinReply([[]] * 262_144))
