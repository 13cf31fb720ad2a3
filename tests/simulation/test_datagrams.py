"""Messages that are always datagrams: beside the link to a neighbour, if the deployment has datagrams."""

import weakref
from pathlib import Path

import pytest

from murmur_pubsub.deployment import LinkPlan, NodeSpec
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import LinkDown, Received, Send
from murmur_virtual.virtual_runtime import Simulation
from murmuration.deployment.build_deployment import deploy
from murmuration.scenario.load import check_scenario
from reliability.epidemic.messages import EPIDEMIC_MESSAGES, EventsRequested, PushDigest


class Listener:
    """Sends nothing, keeps what it gets."""

    def __init__(self, hears_resets: bool = False) -> None:
        self.message_types = EPIDEMIC_MESSAGES
        self.hears_resets = hears_resets
        self.got: list[object] = []
        self.lost: list[str] = []

    def handle(self, input: object, now_us: int) -> tuple[()]:
        if isinstance(input, Received):
            self.got.append(input.message)
        elif isinstance(input, LinkDown):
            self.lost.append(input.peer)
        return ()

    def check_invariants(self) -> None:
        pass


@pytest.mark.parametrize("has_datagrams", [False, True])
def test_a_datagram_does_not_share_the_fate_of_the_link_to_a_neighbour(has_datagrams: bool, tmp_path: Path) -> None:
    beside = LinkSpec(delay=Delay("constant", 500), ordered=False) if has_datagrams else None
    simulation = Simulation(1, JournalWriter(tmp_path, "run", 2), {"a": 0, "b": 1}, beside)
    machines = {name: Listener() for name in "ab"}
    for name, machine in machines.items():
        simulation.add_node(NodeSpec(name, "broker", ""), machine)
    simulation.connect(LinkPlan("a", "b", LinkSpec(delay=Delay("constant", 2_000), loss=1.0)))
    simulation.run(until_us=10)
    simulation.nodes["a"].perform([Send("b", EventsRequested([1, 2])), Send("b", PushDigest("a", 1, [1, 2]))], 10)
    simulation.run(until_us=600)
    assert machines["b"].got == ([EventsRequested([1, 2])] if has_datagrams else [])
    simulation.run()
    assert machines["b"].got == ([EventsRequested([1, 2])] if has_datagrams else [])


@pytest.mark.parametrize("hears", [True, False])
def test_who_asks_hears_when_a_peer_of_its_datagrams_is_killed(hears: bool, tmp_path: Path) -> None:
    """Decision 0010."""
    datagrams = LinkSpec(delay=Delay("constant", 500), ordered=False)
    simulation = Simulation(1, JournalWriter(tmp_path, "run", 3), {"a": 0, "b": 1, "c": 2}, datagrams)
    machines = {name: Listener(hears) for name in "abc"}
    for name, machine in machines.items():
        simulation.add_node(NodeSpec(name, "broker", ""), machine)
    simulation.nodes["a"].perform([Send("b", EventsRequested([1])), Send("c", EventsRequested([1]))], 0)
    simulation.run(until_us=1_000)
    simulation.crash("b")
    simulation.crash("c", silently=True)
    simulation.run(until_us=3_000)
    assert machines["a"].lost == (["b"] if hears else [])
    simulation.nodes["a"].perform([Send("b", EventsRequested([2]))], 3_000)
    simulation.run(until_us=5_000)
    assert machines["a"].lost == (["b", "b"] if hears else []), "nobody listens there any more"


def test_who_has_started_again_hears_only_of_those_it_has_sent_to_since(tmp_path: Path) -> None:
    datagrams = LinkSpec(delay=Delay("constant", 500), ordered=False)
    simulation = Simulation(1, JournalWriter(tmp_path, "run", 3), {"a": 0, "b": 1, "c": 2}, datagrams)
    for name in "abc":
        simulation.add_node(NodeSpec(name, "broker", ""), Listener(True))
    simulation.nodes["a"].perform([Send("b", EventsRequested([1])), Send("c", EventsRequested([1]))], 0)
    simulation.run(until_us=1_000)
    simulation.crash("a")
    again = Listener(True)
    simulation.restart("a", again)
    simulation.nodes["a"].perform([Send("c", EventsRequested([2]))], 1_000)
    simulation.crash("b")
    simulation.crash("c")
    simulation.run(until_us=3_000)
    assert again.lost == ["c"]


def test_former_incarnations_do_not_fill_the_memory(tmp_path: Path) -> None:
    simulation = Simulation(1, JournalWriter(tmp_path, "run", 1), {"a": 0})
    made: list[weakref.ref[Listener]] = []

    def listener() -> Listener:
        machine = Listener()
        machine.got.append(machine)  # as a machine's parts know each other
        made.append(weakref.ref(machine))
        return machine

    simulation.add_node(NodeSpec("a", "broker", ""), listener())
    for _ in range(3_500):
        simulation.crash("a")
        simulation.restart("a", listener())
    assert sum(machine() is not None for machine in made) <= 1_001


def test_datagrams_of_a_scenario_have_no_order() -> None:
    loaded = check_scenario(
        {
            "overlay": {"kind": "chain", "brokers": 2},
            "workload": {"kind": "by_hand"},
            "datagrams": {"delay": {"uniform": ["1 ms", "9 ms"]}, "loss": 0.5},
        },
        "test",
    )
    overlay = loaded.build_overlay()
    beside = deploy(loaded, overlay, loaded.build_workload(overlay)).default_link
    assert beside is not None
    assert (beside.ordered, beside.loss) == (False, 0.5)
