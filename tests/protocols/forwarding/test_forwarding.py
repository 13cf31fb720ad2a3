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
from murmur_virtual.virtual_runtime import Simulation
from routing.forwarding import SubscriptionForwarding
from tests.deployments import PARTS, random_filter


def network(brokers: int, rng: random.Random, folder: Path) -> tuple[Simulation, list[LinkPlan]]:
    names = [f"b{number}" for number in range(brokers)]
    writer = JournalWriter(folder, "run", brokers)
    simulation = Simulation(1, writer, {name: number for number, name in enumerate(names)}, journal_hops=False)
    for name in names:
        simulation.add_node(NodeSpec(name, "broker", "murmuration.registry:make_broker", PARTS))
    link = LinkSpec(delay=Delay("uniform", 100, 5_000))
    plans = [LinkPlan(f"b{rng.randrange(number)}", f"b{number}", link) for number in range(1, brokers)]
    for plan in plans:
        simulation.connect(plan)
    return simulation, plans


def router(simulation: Simulation, name: str) -> SubscriptionForwarding:
    return simulation.nodes[name].machine.router  # type: ignore[attr-defined,no-any-return]


def assert_neighbours_agree(simulation: Simulation, plans: list[LinkPlan]) -> None:
    """What a broker has forwarded to a neighbour is what that neighbour holds as received from it."""
    for plan in plans:
        for here, there in ((plan.first, plan.second), (plan.second, plan.first)):
            forwarded = set(router(simulation, here)._forwarded[there])
            assert forwarded == set(router(simulation, there)._received[here]), f"{here} to {there}"


@given(st.integers(0, 2**32), st.integers(2, 8), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_neighbours_agree_whatever_comes_and_goes(seed: int, brokers: int, steps: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        simulation, plans = network(brokers, rng, Path(folder))
        held: list[tuple[str, Subscribe]] = []
        for _ in range(steps):
            if held and rng.random() < 0.4:
                name, command = held.pop(rng.randrange(len(held)))
                simulation.nodes[name].take_input(Unsubscribe(*command), simulation.now_us)
            else:
                name = f"b{rng.randrange(brokers)}"
                command = Subscribe(rng.randrange(5), parse_filter(random_filter(rng)))
                held.append((name, command))
                simulation.nodes[name].take_input(command, simulation.now_us)
            simulation.run(until_us=simulation.now_us + rng.randrange(4_000))
        simulation.run()
        simulation.check_invariants()
        assert_neighbours_agree(simulation, plans)
        for name, command in held:
            simulation.nodes[name].take_input(Unsubscribe(*command), simulation.now_us)
        simulation.run()
        assert all(router(simulation, name).table_size() == 0 for name in simulation.nodes), "nobody wants anything"


@given(st.integers(0, 2**32), st.integers(2, 7))
@settings(max_examples=40, deadline=None)
def test_neighbours_agree_after_a_link_was_away(seed: int, brokers: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        simulation, plans = network(brokers, rng, Path(folder))

        def subscribe_somewhere() -> None:
            name = f"b{rng.randrange(brokers)}"
            simulation.nodes[name].take_input(Subscribe(1, parse_filter(random_filter(rng))), simulation.now_us)

        for _ in range(8):
            subscribe_somewhere()
        simulation.run()
        cut = rng.choice(plans)
        for name, peer in ((cut.first, cut.second), (cut.second, cut.first)):
            del simulation.nodes[name].links[peer]
            simulation.nodes[name].take_input(LinkDown(peer, "cut"), simulation.now_us)
        for _ in range(8):
            subscribe_somewhere()
        simulation.run()
        simulation.connect(cut)
        simulation.run()
        simulation.check_invariants()
        assert_neighbours_agree(simulation, plans)


def test_a_thousand_equal_subscriptions_cost_one_message_a_link(tmp_path: Path) -> None:
    simulation, plans = network(5, random.Random(1), tmp_path)
    for subscriber in range(1_000):
        simulation.nodes["b0"].take_input(Subscribe(subscriber, parse_filter("x > 3")), simulation.now_us)
    assert simulation.run() == len(plans)
    assert sum(router(simulation, name).table_size() for name in simulation.nodes) == len(plans)
