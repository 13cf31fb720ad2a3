"""Live nodes in one asyncio loop, without Ray: links, malformed frames, back-pressure, faults, datagrams."""

import asyncio
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import msgpack
import pytest

from murmur_pubsub.client import ClientMachine, Notification, Publication
from murmur_pubsub.codec import Codec, frame
from murmur_pubsub.errors import DiskError
from murmur_pubsub.event import Event
from murmur_pubsub.faults import FailureDetection
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import DropReason, RowKind
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Effect, Input, LinkDown, Persist, Publish, Send, Subscribe
from murmur_pubsub.message import kind_of
from murmur_pubsub.run_manifest import LATE_US
from reliability.best_effort import Forwarded
from reliability.broker import Broker
from reliability.epidemic.messages import EventsRequested, PushDigest
from tests.actors.net import Net, closed, joined, run, until
from tests.deployments import PARTS


async def chain(folder: Path, between: LinkSpec | None = None, last: LinkSpec | None = None) -> Net:
    """c0 - b0 - b1 - c1, all links up."""
    between, last, plain = between or LinkSpec(), last or LinkSpec(), LinkSpec()
    net = Net(folder)
    await net.add("b0", {"b1": between, "c0": plain})
    await net.add("b1", {"b0": between, "c1": last})
    await net.add("c0", {"b0": plain}, "b0")
    await net.add("c1", {"b1": last}, "b1")
    for name, peer in (("b0", "b1"), ("c0", "b0"), ("c1", "b1")):
        await net.dial(name, peer)
    await until(lambda: all(node.connections.keys() == node.link_specs.keys() for node in net.nodes.values()))
    return net


def publish(net: Net, count: int) -> None:
    for number in range(count):
        net.nodes["c0"].take_input(Publish(Event(0, number, net.nodes["c0"].clock.now_us(), {"x": number})))


async def subscribed(net: Net) -> None:
    net.nodes["c1"].take_input(Subscribe(7, parse_filter("x >= 0")))
    await until(lambda: net.nodes["b0"].counters.control_received >= 1)


def test_neither_end_of_a_link_keeps_a_frame_until_the_one_before_is_acknowledged(tmp_path: Path) -> None:
    """Or a broker's second notification within 40 ms waits for its client to acknowledge the first."""

    async def scenario() -> None:
        net = await chain(tmp_path)
        ends = [end for node in net.nodes.values() for end in node.connections.values()]
        assert len(ends) == 6
        sockets = [end._transport.get_extra_info("socket") for end in ends if end._transport is not None]
        assert [each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0 for each in sockets] == [True] * 6

    run(scenario())


def test_an_event_passes_the_chain(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        await subscribed(net)
        publish(net, 50)
        await until(lambda: net.nodes["c1"].counters.delivered == 50)
        delivered = net.rows("c1")[net.rows("c1")["kind"] == RowKind.DELIVER]
        assert delivered["sequence"].tolist() == list(range(50))
        assert set(delivered["hops"].tolist()) == {1}
        assert set(delivered["value"].tolist()) == {7}

    run(scenario())


def test_a_link_with_delay_takes_its_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path, LinkSpec(delay=Delay("constant", 30_000)))
        await subscribed(net)
        publish(net, 5)
        await until(lambda: net.nodes["c1"].counters.delivered == 5)
        sent = net.rows("b0")[(net.rows("b0")["kind"] == RowKind.SEND) & (net.rows("b0")["sequence"] >= 0)]
        got = net.rows("b1")[(net.rows("b1")["kind"] == RowKind.RECEIVE) & (net.rows("b1")["sequence"] >= 0)]
        took = got["time_us"] - sent["time_us"]
        assert (took >= 30_000).all()

    run(scenario())


def test_a_malformed_message_is_counted_and_the_broker_lives_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = Net(tmp_path)
        broker = await net.add("b0", {"c0": LinkSpec()})
        _, writer = await joined(net, "c0")
        await until(lambda: "c0" in broker.connections)
        codec = Codec(broker.machine.message_types)
        good = codec.encode(Publication(Event(0, 0, 1, {"x": 1})))
        bad_blob = msgpack.packb([3, [0, 1, 1, b"\xc1"]])
        writer.write(frame([msgpack.packb([250, 1]), msgpack.packb("text"), bad_blob, good]))
        await until(lambda: broker.counters.received == 1)
        assert broker.counters.malformed == 3
        assert net.count("b0", RowKind.MALFORMED) == 3
        assert broker.failure is None
        assert "c0" in broker.connections

    run(scenario())


def test_a_stream_that_is_no_frame_cuts_the_link(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = Net(tmp_path)
        broker = await net.add("b0", {"c0": LinkSpec()})
        reader, writer = await joined(net, "c0")
        await until(lambda: "c0" in broker.connections)
        writer.write(b"\xff\xff\xff\xff")
        await closed(reader)
        await until(lambda: "c0" not in broker.connections)
        assert net.count("b0", RowKind.MALFORMED) == 1
        assert net.count("b0", RowKind.LINK_DOWN) == 1
        assert broker.failure is None

    run(scenario())


def test_a_slow_subscriber_slows_the_publisher_and_nothing_is_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path, last=LinkSpec(messages_per_s=2_000, queue_messages=20, on_overflow="slow"))
        await subscribed(net)
        publish(net, 600)
        await until(lambda: net.nodes["c1"].counters.delivered == 600)
        assert net.count("b1", RowKind.PAUSE) >= 2, "the full queue paused the broker's input, and it went on"
        assert net.count("b1", RowKind.DROP) == 0

    run(scenario())


def test_a_queue_that_timers_fill_again_while_it_is_waited_for_is_looked_at_again(tmp_path: Path) -> None:
    """Or the broker takes nothing any more from anybody: its own messages had filled the queue when it looked."""

    async def scenario() -> None:
        net = await chain(tmp_path, last=LinkSpec(messages_per_s=500, queue_messages=4, on_overflow="slow"))
        await subscribed(net)
        broker = net.nodes["b1"]

        def send(number: int) -> None:
            broker.perform([Send("c1", Notification(Event(9, number, 0, {"x": 1}), 1, [7]))], broker.clock.now_us())

        for number in range(8):
            send(number)
        assert net.count("b1", RowKind.PAUSE) == 1
        publish(net, 20)
        for number in range(8, 28):
            send(number)
            await asyncio.sleep(0.002)
        await until(lambda: net.nodes["c1"].counters.delivered == 48)

    run(scenario())


def test_a_link_made_while_input_is_paused_is_not_read_until_it_goes_on(tmp_path: Path) -> None:
    """Or a client that comes back to a congested broker is never slowed down, and all that it sends is kept."""

    async def scenario() -> None:
        net = Net(tmp_path)
        slows = LinkSpec(queue_messages=4, on_overflow="slow")
        broker = await net.add("b0", {"b1": slows, "c0": LinkSpec(), "c1": LinkSpec()})
        await net.add("b1", {"b0": LinkSpec()})
        for name in ("c0", "c1"):
            await net.add(name, {"b0": LinkSpec()}, "b0")
        for name in ("b1", "c0"):
            await net.dial(name, "b0")
        await until(lambda: broker.connections.keys() == {"b1", "c0"})
        broker.connections["b1"].pause_writing()
        broker.perform([Send("b1", Forwarded(Event(9, number, 0, {}), 1, ())) for number in range(5)], 0)
        assert not broker.connections["c0"].listens
        await net.dial("c1", "b0")
        await until(lambda: "c1" in broker.connections)
        assert not broker.connections["c1"].listens
        broker.connections["b1"].resume_writing()
        assert broker.connections["c0"].listens
        assert broker.connections["c1"].listens

    run(scenario())


def test_a_slow_subscriber_of_a_link_that_drops_loses_what_the_journal_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path, last=LinkSpec(messages_per_s=2_000, queue_messages=20, on_overflow="drop"))
        await subscribed(net)
        publish(net, 600)
        await until(lambda: net.nodes["b1"].counters.received >= 600)
        dropped = net.rows("b1")[net.rows("b1")["kind"] == RowKind.DROP]
        assert len(dropped) > 0
        assert set(dropped["value"].tolist()) == {int(DropReason.OVERFLOW)}
        await until(lambda: net.nodes["c1"].counters.delivered == 600 - len(dropped))

    run(scenario())


def test_a_machine_that_raises_is_a_failure_the_driver_sees(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        net.nodes["b0"].take_input("no input at all")  # type: ignore[arg-type]
        assert "the protocol of b0 (incarnation 0) raised KeyError: <class 'str'>" in str(net.nodes["b0"].failure)
        await until(lambda: not net.nodes["c0"].connections)

    run(scenario())


def test_an_effect_that_cannot_be_carried_out_is_a_failure_by_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        node = net.nodes["b0"]
        node.machine.handle = lambda *_: (Persist(1, b"record"),)  # type: ignore[method-assign]
        node.take_input(Publish(Event(0, 0, 0, {})))
        assert "does not carry out Persist" in str(node.failure)

    run(scenario())


def test_a_client_understands_only_its_broker() -> None:
    codec = Codec(ClientMachine.message_types)
    assert {each.__name__ for each in codec.encoders} == {
        "ClientSubscribe",
        "ClientUnsubscribe",
        "Publication",
        "Notification",
    }


QUICK = FailureDetection(heartbeat_us=50_000, timeout_us=200_000, reconnect_us=20_000)


async def pair(
    folder: Path, default_link: LinkSpec | None = None, links: bool = True, spec: LinkSpec | None = None
) -> Net:
    """b0 and b1, which keep the link between them up by themselves (or have none)."""
    net = Net(folder)
    for name, peer in (("b0", "b1"), ("b1", "b0")):
        await net.add(name, {peer: spec or LinkSpec()} if links else {}, detection=QUICK, default_link=default_link)
    for node in net.nodes.values():
        node.links.addresses.update({name: ("127.0.0.1", port) for name, port in net.ports.items()})
        node.links.begin()
    if links:
        net.nodes["b0"].links.dial_always(["b1"])
        await until(lambda: all(node.connections for node in net.nodes.values()))
    return net


def end(net: Net) -> None:
    for node in net.nodes.values():
        node.links.end()


def test_a_peer_that_says_nothing_is_given_up_and_dialled_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await pair(tmp_path)
        first = net.nodes["b1"].connections["b0"]
        first.beat = lambda: None  # type: ignore[method-assign]
        await until(lambda: net.count("b0", RowKind.LINK_DOWN) == 1)
        await until(lambda: net.nodes["b1"].connections.get("b0", first) is not first)
        await until(lambda: net.count("b0", RowKind.LINK_UP) == 2)  # its end is up before or after the other
        end(net)

    run(scenario())


def test_heartbeats_keep_a_quiet_link_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await pair(tmp_path)
        await asyncio.sleep(3 * QUICK.timeout_us / 1e6)  # the one thing shown is that nothing happens meanwhile
        assert net.count("b0", RowKind.LINK_DOWN) == net.count("b1", RowKind.LINK_DOWN) == 0
        end(net)

    run(scenario())


def test_a_node_that_was_held_up_does_not_blame_its_peers(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await pair(tmp_path)
        time.sleep(3 * QUICK.timeout_us / 1e6)  # the whole loop stands still, as a stopped process does
        await asyncio.sleep(4 * QUICK.heartbeat_us / 1e6)
        assert net.count("b0", RowKind.LINK_DOWN) == net.count("b1", RowKind.LINK_DOWN) == 0
        end(net)

    run(scenario())


def test_nothing_passes_a_severed_link_and_it_comes_up_when_mended(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await pair(tmp_path)
        for name, peer in (("b0", "b1"), ("b1", "b0")):
            net.nodes[name].links.sever(peer)
        received = net.nodes["b1"].counters.received
        net.nodes["b0"].take_input(Subscribe(1, parse_filter("x > 1")))
        assert net.count("b0", RowKind.DROP) == 1
        await until(lambda: not net.nodes["b0"].connections and not net.nodes["b1"].connections)
        assert net.nodes["b1"].counters.received == received
        for name, peer in (("b0", "b1"), ("b1", "b0")):
            net.nodes[name].links.mend(peer)
        await until(lambda: net.nodes["b1"].counters.received == received + 1)  # the subscription is told again
        end(net)

    run(scenario())


def test_a_link_that_is_mended_in_the_turn_in_which_a_dial_has_ended_comes_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await pair(tmp_path, links=False)
        links = net.nodes["b0"].links
        for name, peer in (("b0", "b1"), ("b1", "b0")):
            net.nodes[name].link_specs[peer] = LinkSpec()
        others = asyncio.all_tasks()
        links.dial_always(["b1"])
        (dial,) = asyncio.all_tasks() - others
        links.sever("b1")
        while not dial.done():
            await asyncio.sleep(0)
        links.mend("b1")
        await until(lambda: "b1" in net.nodes["b0"].connections)
        end(net)

    run(scenario())


def test_a_link_that_goes_and_comes_in_one_turn_is_dialled(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await pair(tmp_path)
        node = net.nodes["b0"]
        node.links.sever("b1")
        await until(lambda: not node.connections)
        node.links.mend("b1")
        node.links.leave("b1")
        node.links.dial_always(["b1"])
        await until(lambda: "b1" in node.connections)
        end(net)

    run(scenario())


def test_datagrams_reach_a_node_without_a_link(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await pair(tmp_path, default_link=LinkSpec(), links=False)
        events = [Event(0, number, 1, {"x": number}) for number in range(3)]
        for event in events:
            net.nodes["b0"].perform((Send("b1", Forwarded(event, 1, ())),), 0)
        await until(lambda: net.nodes["b1"].counters.received == 3)
        assert net.count("b0", RowKind.LINK_UP) == 0
        end(net)

    run(scenario())


def test_who_asks_hears_when_a_peer_of_its_datagrams_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision 0010."""
    monkeypatch.setattr(Broker, "hears_resets", True)
    lost: list[str] = []
    handle = Broker.handle

    def noting(self: Broker, input: Input, now_us: int) -> Sequence[Effect]:
        if isinstance(input, LinkDown):
            lost.append(input.peer)
        return handle(self, input, now_us)

    monkeypatch.setattr(Broker, "handle", noting)

    async def scenario() -> None:
        net = await pair(tmp_path, default_link=LinkSpec(), links=False)
        net.nodes["b0"].perform((Send("b1", Forwarded(Event(0, 0, 1, {"x": 1}), 1, ())),), 0)
        await until(lambda: net.nodes["b1"].counters.received == 1)
        net.nodes["b1"].links.end()
        await until(lambda: "b1" in lost)
        end(net)

    run(scenario())


def test_who_sends_a_datagram_again_as_soon_as_one_was_lost_keeps_the_dial_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = Net(tmp_path)
        node = await net.add("b0", {}, default_link=LinkSpec())
        message = Send("c0", Forwarded(Event(0, 0, 1, {"x": 1}), 1, ()))
        with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))  # and does not listen
            node.links.addresses["c0"] = deaf.getsockname()
            node.perform([message], 0)
            (first,) = asyncio.all_tasks() - {asyncio.current_task()}

            def again(input: Input, now_us: int) -> Sequence[Effect]:
                node.links.addresses["c0"] = silent.getsockname()
                return [message]

            node.machine.handle = again  # type: ignore[method-assign]
            node._hears_resets = True
            await asyncio.wait([first])
            await asyncio.sleep(0)
            assert len(node.links._carrying) == 1
            end(net)

    run(scenario())


def test_datagrams_to_an_unknown_node_are_drops_and_to_the_other_side_of_a_partition_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await pair(tmp_path, default_link=LinkSpec(), links=False)
        node = net.nodes["b0"]
        message = Forwarded(Event(0, 0, 1, {"x": 1}), 1, ())
        node.links.addresses["c0"] = ("127.0.0.1", 1)
        node.perform((Send("c0", message),), 0)
        await until(lambda: net.count("b0", RowKind.DROP) == 1)
        node.links.partition_from(frozenset({"b1"}))
        node.perform((Send("b1", message),), 0)
        dropped = net.rows("b0")[net.rows("b0")["kind"] == RowKind.DROP]["value"].tolist()
        assert dropped == [DropReason.UNREACHABLE, DropReason.LINK_BROKEN]
        end(net)

    run(scenario())


def test_what_is_on_its_way_when_a_partition_begins_is_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await pair(tmp_path, default_link=LinkSpec(), links=False)
        sender, links = net.nodes["b0"], net.nodes["b1"].links

        def send(number: int) -> None:
            sender.perform((Send("b1", Forwarded(Event(0, number, 1, {"x": 1}), 1, ())),), 0)
            sender.flush()

        send(0)
        await until(lambda: net.nodes["b1"].counters.received == 1)
        (incoming,) = links._incoming
        links.partition_from(frozenset({"b0"}))
        before_us = incoming.heard_us
        send(1)
        await until(lambda: incoming.heard_us > before_us)
        links.partition_from(frozenset())
        send(2)
        await until(lambda: net.nodes["b1"].counters.received == 2)
        rows = net.rows("b1")
        assert rows[rows["kind"] == RowKind.RECEIVE]["sequence"].tolist() == [0, 2]
        end(net)

    run(scenario())


def test_messages_that_are_always_datagrams_do_not_take_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARTS, "reliability", "epidemic")

    async def scenario() -> None:
        net = await pair(tmp_path, default_link=LinkSpec(), spec=LinkSpec(loss=1.0))
        await until(lambda: "b1" in net.nodes["b0"].connections)
        net.nodes["b0"].perform((Send("b1", PushDigest("b0", 1, [1, 2])), Send("b1", EventsRequested([1, 2]))), 0)
        await until(lambda: net.nodes["b1"].counters.received == 1)
        received = net.rows("b1")[net.rows("b1")["kind"] == RowKind.RECEIVE]["value"].tolist()
        assert received == [kind_of(EventsRequested)]
        end(net)

    run(scenario())


def test_what_was_late_before_publishing_is_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        net = await chain(tmp_path)
        node = net.nodes["b0"]
        node.note_lag(80_000_000)
        node.forget_lag()
        assert node.counters.lag_us_max == node.counters.late == node.counters.due == 0
        for lag_us in (LATE_US, LATE_US + 1, 3_000_000):
            node.note_lag(lag_us)
        assert node.counters.lag_us_max == 3_000_000
        assert (node.counters.due, node.counters.late) == (3, 2)

    run(scenario())


def test_a_node_whose_disk_is_full_blames_no_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    async def scenario() -> None:
        net = await chain(tmp_path)
        monkeypatch.setattr(os, "posix_fallocate", full)
        publish(net, 10_000)  # more rows than the first file has room for
        failure = net.nodes["c0"].failure
        assert isinstance(failure, DiskError)
        assert str(failure).endswith("c0-0-00001.seg: No space left on device")

    run(scenario())
