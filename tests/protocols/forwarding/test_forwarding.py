"""Subscription forwarding: what neighbours agree on once the network has settled, and what covering saves."""

import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.deployment import LinkPlan, NodeSpec
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import LinkDown, Subscribe, Unsubscribe
from murmur_virtual.virtual_runtime import VirtualRuntime
from routing.forwarding import SubscriptionForwarding
from tests.deployments import PARTS, random_filter


def network(brokers: int, rng: random.Random, folder: Path) -> tuple[VirtualRuntime, list[LinkPlan]]:
    names = [f"b{number}" for number in range(brokers)]
    writer = JournalWriter(folder, "run", brokers)
    runtime = VirtualRuntime(1, writer, {name: number for number, name in enumerate(names)}, journal_hops=False)
    for name in names:
        runtime.add_node(NodeSpec(name, "broker", "murmuration.registry:make_broker", PARTS))
    link = LinkSpec(delay=Delay("uniform", 100, 5_000))
    plans = [LinkPlan(f"b{rng.randrange(number)}", f"b{number}", link) for number in range(1, brokers)]
    for plan in plans:
        runtime.connect(plan)
    return runtime, plans


def router(runtime: VirtualRuntime, name: str) -> SubscriptionForwarding:
    return runtime.nodes[name].machine.router  # type: ignore[attr-defined,no-any-return]


def assert_neighbours_agree(runtime: VirtualRuntime, plans: list[LinkPlan]) -> None:
    """What a broker has forwarded to a neighbour is what that neighbour holds as received from it."""
    for plan in plans:
        for here, there in ((plan.first, plan.second), (plan.second, plan.first)):
            forwarded = set(router(runtime, here)._forwarded[there])
            assert forwarded == set(router(runtime, there)._received[here]), f"{here} to {there}"


@given(st.integers(0, 2**32), st.integers(2, 8), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_neighbours_agree_whatever_comes_and_goes(seed: int, brokers: int, steps: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        runtime, plans = network(brokers, rng, Path(folder))
        held: list[tuple[str, Subscribe]] = []
        for _ in range(steps):
            if held and rng.random() < 0.4:
                name, command = held.pop(rng.randrange(len(held)))
                runtime.nodes[name].take_input(Unsubscribe(*command), runtime.now_us)
            else:
                name = f"b{rng.randrange(brokers)}"
                command = Subscribe(rng.randrange(5), parse_filter(random_filter(rng)))
                held.append((name, command))
                runtime.nodes[name].take_input(command, runtime.now_us)
            runtime.run(until_us=runtime.now_us + rng.randrange(4_000))
        runtime.run()
        runtime.check_invariants()
        assert_neighbours_agree(runtime, plans)
        for name, command in held:
            runtime.nodes[name].take_input(Unsubscribe(*command), runtime.now_us)
        runtime.run()
        assert all(router(runtime, name).table_size() == 0 for name in runtime.nodes), "no broker wants anything"


@given(st.integers(0, 2**32), st.integers(2, 7))
@settings(max_examples=40, deadline=None)
def test_neighbours_agree_after_a_link_was_away(seed: int, brokers: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        runtime, plans = network(brokers, rng, Path(folder))

        def subscribe_somewhere() -> None:
            name = f"b{rng.randrange(brokers)}"
            runtime.nodes[name].take_input(Subscribe(1, parse_filter(random_filter(rng))), runtime.now_us)

        for _ in range(8):
            subscribe_somewhere()
        runtime.run()
        cut = rng.choice(plans)
        for name, peer in ((cut.first, cut.second), (cut.second, cut.first)):
            del runtime.nodes[name].links[peer]
            runtime.nodes[name].take_input(LinkDown(peer, "cut"), runtime.now_us)
        for _ in range(8):
            subscribe_somewhere()
        runtime.run()
        runtime.connect(cut)
        runtime.run()
        runtime.check_invariants()
        assert_neighbours_agree(runtime, plans)


def test_a_thousand_equal_subscriptions_cost_one_message_a_link(tmp_path: Path) -> None:
    runtime, plans = network(5, random.Random(1), tmp_path)
    for subscriber in range(1_000):
        runtime.nodes["b0"].take_input(Subscribe(subscriber, parse_filter("x > 3")), runtime.now_us)
    assert runtime.run() == len(plans)
    assert sum(router(runtime, name).table_size() for name in runtime.nodes) == len(plans)
