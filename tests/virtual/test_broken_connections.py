"""Nothing of a connection reaches a machine that was told that it is down, though datagrams pass beside it."""

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, settings

from murmur_pubsub.deployment import Deployment, LinkPlan, NodeSpec, make_machine
from murmur_pubsub.faults import FailureDetection
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Input, LinkDown, LinkUp, Machine, NodeName, Received, Send
from murmur_pubsub.recorded_inputs import read_inputs
from murmur_virtual.run import play_virtual
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.hunt.trial import deployment_of
from reliability.epidemic.messages import EPIDEMIC_MESSAGES, EventsRequested, PushDigest
from tests.schedules import examples, schedules

DETECTION = FailureDetection(heartbeat_us=100_000, timeout_us=300_000, reconnect_us=20_000)
Message = tuple[object, ...]
DATAGRAM, BY_LINK = EventsRequested([1]), PushDigest("b", 1, [1])


class Listener(Machine):
    """Sends nothing, keeps what it hears of its peer."""

    def __init__(self) -> None:
        self.message_types = EPIDEMIC_MESSAGES
        self.heard: list[object] = []

    def handle(self, input: Input, now_us: int) -> tuple[()]:
        if isinstance(input, LinkUp | LinkDown):
            self.heard.append(type(input))
        elif isinstance(input, Received):
            self.heard.append(input.message)
        return ()

    def check_invariants(self) -> None:
        pass


def linked(folder: Path, link_us: int, datagram_us: int) -> tuple[VirtualRuntime, dict[str, Listener]]:
    """Two brokers, a and b, with a link and datagrams of these delays."""
    datagrams = LinkSpec(delay=Delay("constant", datagram_us), ordered=False)
    runtime = VirtualRuntime(1, JournalWriter(folder, "run", 2), {"a": 0, "b": 1}, datagrams, detection=DETECTION)
    machines = {name: Listener() for name in "ab"}
    for name, machine in machines.items():
        runtime.add_node(NodeSpec(name, "broker", ""), machine)
    runtime.connect(LinkPlan("a", "b", LinkSpec(delay=Delay("constant", link_us))))
    return runtime, machines


def send(runtime: VirtualRuntime, name: NodeName, to: NodeName, *messages: Message) -> None:
    runtime.nodes[name].perform([Send(to, message) for message in messages], runtime.now_us)


@pytest.mark.parametrize("slow", [False, True])
def test_what_a_stalled_node_writes_into_a_connection_that_its_peer_has_closed_is_lost(
    slow: bool, tmp_path: Path
) -> None:
    """A protocol of a reader raised: it was handed a message of a neighbour that it knew to be gone."""
    runtime, machines = linked(tmp_path, 2_000, 500)
    if slow:
        runtime.slow("a", 1_000)
    runtime.stall("b")
    b = runtime.nodes["b"]
    b.must_wait(lambda now_us: send(runtime, "b", "a", BY_LINK, DATAGRAM))  # before it finds the connection closed
    runtime.run(until_us=400_000)
    assert machines["a"].heard == [LinkUp, LinkDown]
    send(runtime, "a", "b", BY_LINK)  # there is no link: it is a datagram
    runtime.run(until_us=500_000)
    runtime.resume("b")
    runtime.run(until_us=600_000)
    send(runtime, "b", "a", BY_LINK)
    runtime.run()
    assert machines["a"].heard == [LinkUp, LinkDown, DATAGRAM, LinkUp, BY_LINK]
    assert machines["b"].heard == [LinkUp, LinkDown, BY_LINK, LinkUp]
    assert not any(runtime.in_flight)


def test_what_a_lost_host_had_sent_by_a_slow_link_does_not_come_after_it_was_given_up(tmp_path: Path) -> None:
    runtime, machines = linked(tmp_path, 400_000, 350_000)
    send(runtime, "b", "a", BY_LINK, DATAGRAM)
    runtime.crash("b", silently=True)
    runtime.run()
    assert machines["a"].heard == [LinkUp, LinkDown, DATAGRAM]


@pytest.mark.parametrize("datagrams_us", [150_000, 250_000])
def test_a_datagram_does_not_share_the_fate_of_what_a_cut_has_broken(datagrams_us: int, tmp_path: Path) -> None:
    """Live it has a connection of its own, which a cut does not touch."""
    runtime, machines = linked(tmp_path, 200_000, datagrams_us)
    send(runtime, "b", "a", BY_LINK, DATAGRAM)
    runtime.cut("a", "b")
    runtime.heal("a", "b")
    runtime.run()
    assert machines["a"].heard == [LinkUp, LinkDown, LinkUp, DATAGRAM]


def test_a_datagram_does_not_pass_a_partition_though_a_link_comes_up_before_it_is_there(tmp_path: Path) -> None:
    runtime, machines = linked(tmp_path, 200_000, 1_000_000)
    send(runtime, "b", "a", BY_LINK, DATAGRAM)
    runtime.links.partition([["a"], ["b"]])
    runtime.links.unite()
    runtime.run()
    assert machines["a"].heard == [LinkUp, LinkDown, LinkUp]


def strays(deployment: Deployment, folder: Path) -> list[tuple[NodeName, int, Received]]:
    """What brokers got from brokers to which they knew of no link, of protocols that send no such datagrams."""
    found: list[tuple[NodeName, int, Received]] = []
    brokers = {spec.name: spec for spec in deployment.nodes if spec.role == "broker"}
    for file in sorted(folder.glob("*.inputs")):
        name = file.stem.rsplit("-", 1)[0]
        if name not in brokers:
            continue
        message_types = make_machine(brokers[name], deployment.settings.seed).message_types
        links: dict[NodeName, None] = {}
        for each in read_inputs(file.name, file.read_bytes(), message_types):
            taken = each.input
            if isinstance(taken, LinkUp):
                links[taken.peer] = None
            elif isinstance(taken, LinkDown):
                links.pop(taken.peer, None)
            elif isinstance(taken, Received) and taken.source in brokers and taken.source not in links:
                found.append((name, each.time_us, taken))
    return found


@examples(20, 200)
def test_brokers_that_talk_by_links_hear_nothing_between_link_down_and_link_up(examples: int) -> None:
    broker = {"routing": "forwarding", "reliability": "best_effort"}

    def holds(data: dict[str, Any]) -> None:
        note(data)
        deployment = deployment_of(data)
        kept = dataclasses.replace(deployment.settings, keep_inputs=True)
        deployment = dataclasses.replace(deployment, settings=kept)
        with tempfile.TemporaryDirectory() as folder:
            play_virtual(deployment, Path(folder), lambda *_: None)
            assert strays(deployment, Path(folder)) == []

    kinds = ("stall", "stall", "slow", "kill", "cut", "partition", "rewire")
    drawn = schedules(broker, kinds, brokers_max=4, more={"datagrams": {"delay": "1 ms"}})
    settings(max_examples=examples)(given(drawn)(holds))()
