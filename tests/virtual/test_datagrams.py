"""Messages that are always datagrams: beside the link to a neighbour, if the deployment has datagrams."""

import weakref
from pathlib import Path

import pytest

from murmur_pubsub.deployment import LinkPlan, NodeSpec
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Input, LinkDown, Machine, Received, Send
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration import Cluster
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import check_scenario
from reliability.epidemic.messages import EPIDEMIC_MESSAGES, EventsRequested, PushDigest


class Listener(Machine):
    """Sends nothing, keeps what it gets."""

    def __init__(self, hears_resets: bool = False) -> None:
        self.message_types = EPIDEMIC_MESSAGES
        self._hears_resets = hears_resets
        self.got: list[object] = []
        self.lost: list[str] = []

    @property
    def hears_resets(self) -> bool:
        return self._hears_resets

    def handle(self, input: Input, now_us: int) -> tuple[()]:
        if isinstance(input, Received):
            self.got.append(input.message)
        elif isinstance(input, LinkDown):
            self.lost.append(input.peer)
        return ()

    def check_invariants(self) -> None:
        pass


def linked(folder: Path, beside: LinkSpec | None, link: LinkSpec) -> tuple[VirtualRuntime, dict[str, Listener]]:
    """Two brokers, a and b, with a link and datagrams like these, after 10 us."""
    runtime = VirtualRuntime(1, JournalWriter(folder, "run", 2), {"a": 0, "b": 1}, beside)
    machines = {name: Listener() for name in "ab"}
    for name, machine in machines.items():
        runtime.add_node(NodeSpec(name, "broker", ""), machine)
    runtime.connect(LinkPlan("a", "b", link))
    runtime.run(until_us=10)
    return runtime, machines


@pytest.mark.parametrize("has_datagrams", [False, True])
def test_a_datagram_does_not_share_the_fate_of_the_link_to_a_neighbour(has_datagrams: bool, tmp_path: Path) -> None:
    beside = LinkSpec(delay=Delay("constant", 500), ordered=False) if has_datagrams else None
    runtime, machines = linked(tmp_path, beside, LinkSpec(delay=Delay("constant", 2_000), loss=1.0))
    runtime.nodes["a"].perform([Send("b", EventsRequested([1, 2])), Send("b", PushDigest("a", 1, [1, 2]))], 10)
    runtime.run(until_us=600)
    assert machines["b"].got == ([EventsRequested([1, 2])] if has_datagrams else [])
    runtime.run()
    assert machines["b"].got == ([EventsRequested([1, 2])] if has_datagrams else [])


@pytest.mark.parametrize("hears", [True, False])
def test_who_asks_hears_when_a_peer_of_its_datagrams_is_killed(hears: bool, tmp_path: Path) -> None:
    """Decision 0010."""
    datagrams = LinkSpec(delay=Delay("constant", 500), ordered=False)
    runtime = VirtualRuntime(1, JournalWriter(tmp_path, "run", 3), {"a": 0, "b": 1, "c": 2}, datagrams)
    machines = {name: Listener(hears) for name in "abc"}
    for name, machine in machines.items():
        runtime.add_node(NodeSpec(name, "broker", ""), machine)
    runtime.nodes["a"].perform([Send("b", EventsRequested([1])), Send("c", EventsRequested([1]))], 0)
    runtime.run(until_us=1_000)
    runtime.crash("b")
    runtime.crash("c", silently=True)
    runtime.run(until_us=3_000)
    assert machines["a"].lost == (["b"] if hears else [])
    runtime.nodes["a"].perform([Send("b", EventsRequested([2]))], 3_000)
    runtime.run(until_us=5_000)
    assert machines["a"].lost == (["b", "b"] if hears else []), "no process listens there any more"


def test_who_has_started_again_hears_only_of_those_it_has_sent_to_since(tmp_path: Path) -> None:
    datagrams = LinkSpec(delay=Delay("constant", 500), ordered=False)
    runtime = VirtualRuntime(1, JournalWriter(tmp_path, "run", 3), {"a": 0, "b": 1, "c": 2}, datagrams)
    for name in "abc":
        runtime.add_node(NodeSpec(name, "broker", ""), Listener(True))
    runtime.nodes["a"].perform([Send("b", EventsRequested([1])), Send("c", EventsRequested([1]))], 0)
    runtime.run(until_us=1_000)
    runtime.crash("a")
    again = Listener(True)
    runtime.restart("a", again)
    runtime.nodes["a"].perform([Send("c", EventsRequested([2]))], 1_000)
    runtime.crash("b")
    runtime.crash("c")
    runtime.run(until_us=3_000)
    assert again.lost == ["c"]


def test_former_incarnations_do_not_fill_the_memory(tmp_path: Path) -> None:
    runtime = VirtualRuntime(1, JournalWriter(tmp_path, "run", 1), {"a": 0})
    made: list[weakref.ref[Listener]] = []

    def listener() -> Listener:
        machine = Listener()
        machine.got.append(machine)  # as a machine's parts know each other
        made.append(weakref.ref(machine))
        return machine

    runtime.add_node(NodeSpec("a", "broker", ""), listener())
    for _ in range(3_500):
        runtime.crash("a")
        runtime.restart("a", listener())
    assert sum(machine() is not None for machine in made) <= 1_001


@pytest.mark.parametrize("hindered", ["slow", "stalled"])
def test_a_datagram_that_waits_at_a_hindered_node_does_not_pass_a_partition(hindered: str, tmp_path: Path) -> None:
    """A live node's connections are closed with what it has not read. `benchmarks.schedules` found it: irbr 1200090."""
    datagrams = LinkSpec(delay=Delay("constant", 500))
    runtime = VirtualRuntime(1, JournalWriter(tmp_path, "run", 3), {"a": 0, "b": 1, "c": 2}, datagrams)
    machines = {name: Listener() for name in "abc"}
    for name, machine in machines.items():
        runtime.add_node(NodeSpec(name, "broker", ""), machine)
    runtime.slow("b", 2_000)
    runtime.nodes["c"].perform([Send("b", EventsRequested([number])) for number in range(2)], 0)
    runtime.nodes["a"].perform([Send("b", EventsRequested([2]))], 0)
    runtime.run(until_us=1_000)
    if hindered == "stalled":
        runtime.stall("b")
    runtime.links.partition([["a"], ["b", "c"]])
    runtime.run(until_us=2_000)
    runtime.links.unite()
    if hindered == "stalled":
        runtime.resume("b")
    runtime.nodes["a"].perform([Send("b", EventsRequested([3]))], 2_000)
    runtime.run()
    assert machines["b"].got == [EventsRequested([0]), EventsRequested([1]), EventsRequested([3])]
    assert not any(runtime.in_flight)


@pytest.mark.parametrize("until_us", [4_000, 5_000])
def test_what_comes_to_a_stalled_node_after_a_partition_is_taken_when_it_goes_on(until_us: int, tmp_path: Path) -> None:
    """A guided hunt found it: by the step with which a planned stall ends, what had come meanwhile was older than the
    partition."""
    runtime = VirtualRuntime(1, JournalWriter(tmp_path, "run", 2), {"a": 0, "b": 1}, LinkSpec(Delay("constant", 500)))
    machines = {name: Listener() for name in "ab"}
    for name, machine in machines.items():
        runtime.add_node(NodeSpec(name, "broker", ""), machine)
    runtime.call_at(5_000, lambda now_us: runtime.resume("b"))  # as a plan of faults is known from the begin
    runtime.links.partition([["a"], ["b"]])
    runtime.run(until_us=1_000)
    runtime.links.unite()
    runtime.stall("b")
    runtime.nodes["a"].perform([Send("b", EventsRequested([0]))], 1_000)
    runtime.run(until_us=until_us)
    assert machines["b"].got == ([EventsRequested([0])] if until_us == 5_000 else [])
    assert not any(runtime.in_flight)


def test_datagrams_of_a_scenario_have_no_order() -> None:
    loaded = check_scenario(
        {
            "overlay": {"kind": "chain", "brokers": 2},
            "workload": {"kind": "by_hand"},
            "datagrams": {"delay": {"uniform": ["1 ms", "9 ms"]}, "loss": 0.5},
        },
        "test",
    )
    beside = build(loaded).deployment.settings.default_link
    assert beside is not None
    assert (beside.ordered, beside.loss) == (False, 0.5)


def test_a_cut_keeps_back_what_goes_by_the_link_and_no_datagram(tmp_path: Path) -> None:
    """Live the two have a connection each; the three brokers of a redundant end talk so whatever their links do."""
    beside, link = LinkSpec(delay=Delay("constant", 500), ordered=False), LinkSpec(delay=Delay("constant", 2_000))
    runtime, machines = linked(tmp_path, beside, link)
    runtime.cut("a", "b")
    runtime.nodes["a"].perform([Send("b", EventsRequested([1, 2])), Send("b", PushDigest("a", 1, [1, 2]))], 10)
    runtime.run(until_us=5_000)
    assert machines["b"].got == [EventsRequested([1, 2])]


def test_two_brokers_whose_link_is_cut_while_one_is_down_talk_beside_it_when_it_is_back() -> None:
    """The schedules multipath/end_to_end/backups 2902606, 2906267 and 2907235: nothing reached the one that had been
    up, not even datagrams, until the link was healed."""
    with Cluster.start(
        overlay={"kind": "chain", "brokers": 2},
        clients={"alice": "b0", "bob": "b1"},
        routing="forwarding",
        reliability="end_to_end",
        parameters={"end_to_end": {"pubends": ["b0"]}},
        datagrams={"delay": "1 ms"},
        failure_detection={"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
    ) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.kill("b1")
        cluster.advance("50 ms")
        cluster.faults.cut("b0", "b1")
        cluster.advance("50 ms")
        cluster.clients["alice"].publish({"x": 1})
        cluster.faults.restart("b1")
        cluster.advance("10 s")
        assert len(cluster.clients["bob"].deliveries()) == 1
