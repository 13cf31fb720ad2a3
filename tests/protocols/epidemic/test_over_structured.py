"""Epidemic push over Pastry's routings: no event twice or unwanted, and more of them when some get lost."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter_parser import parse_filter
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import load_scenario
from reliability.epidemic.parameters import ALGORITHMS
from tests.protocols.structured import StructuredNetwork

ROUTINGS = ("irbr", "rpf", "scribe")
FILTERS = ("x > 2", "x > 5", "x BETWEEN 3 AND 6", "y > 0", "x > 2 AND y > 0", "x = 3")


def network_of(routing: str, algorithm: str, loss: float, seed: int = 1) -> StructuredNetwork:
    return StructuredNetwork(
        routing=routing, reliability="epidemic", loss=loss, seed=seed,
        parameters={"epidemic": {"algorithm": algorithm, "interval": "50 ms", "rest_after": "2 s"}},
    )  # fmt: skip


def delivered(network: StructuredNetwork, seed: int, events: int, faults: int = 0) -> tuple[int, int]:
    """Subscriptions of random nodes, events of random nodes, crashes and restarts: how many deliveries were due to
    nodes that were there all the time, and how many were made. None is made twice or to an uninterested node."""
    rng = random.Random(seed)
    wanted: dict[str, list[str]] = {}
    for name in rng.sample(network.up, len(network.up) * 2 // 3):
        wanted[name] = rng.sample(FILTERS, 2)
        for text in wanted[name]:
            network.subscribe(name, text)
    network.rounds(2)
    disturbed: set[str] = set()
    published: dict[int, dict[str, Any]] = {}
    spared = network.up[0]
    for number in range(events):
        if faults and number % (events // faults) == 1:
            name = rng.choice([name for name in network.up if name != spared])
            disturbed.add(name)
            network.crash(name)
            if rng.random() < 0.5:
                network.start(name, network.pastry(name).own, [spared])
                for text in wanted.get(name, ()):
                    network.subscribe(name, text)
        attributes = {"x": rng.randrange(10), "y": rng.randrange(2)}
        publisher = rng.choice([name for name in network.up if name not in disturbed])
        published[network.publish(publisher, attributes)] = attributes
        network.runtime.run(until_us=network.runtime.now_us + 20_000)
    network.rounds(4)
    due = made = 0
    for event, attributes in published.items():
        interested = {
            name for name, texts in wanted.items() if any(parse_filter(text).matches(attributes) for text in texts)
        }
        got = network.got(event)
        assert set(got) <= interested, "a node got what it does not want"
        assert all(count == 1 for count in got.values()), "twice"
        due += len(interested - disturbed)
        made += len(got.keys() - disturbed)
    return due, made


@pytest.mark.parametrize("routing", ROUTINGS)
def test_push_finds_again_most_of_what_is_lost(routing: str) -> None:
    rates = {}
    for algorithm in ("none", "push"):
        network = network_of(routing, algorithm, loss=0.1)
        network.build(random.Random(3).sample(range(256), 24))
        due, made = delivered(network, 5, 100)
        rates[algorithm] = made / due
        network.close()
    assert rates["none"] < 0.9
    assert rates["push"] > 1 - (1 - rates["none"]) / 2, "at least half of it"


@pytest.mark.parametrize("routing", ROUTINGS)
@given(seed=st.integers(0, 2**32), nodes=st.integers(2, 16), faults=st.integers(0, 4), loss=st.sampled_from((0.0, 0.1)))
@settings(max_examples=15, deadline=None)
def test_nothing_comes_twice_or_unwanted_whatever_fails(
    routing: str, seed: int, nodes: int, faults: int, loss: float
) -> None:
    note(f"replay: network_of({routing!r}, 'push', {loss}, {seed}) of {nodes} nodes, {faults} faults")
    network = network_of(routing, "push", loss, seed)
    network.build(random.Random(seed).sample(range(256), nodes))
    due, made = delivered(network, seed, 40, min(faults, nodes - 1))
    if not loss and not faults:
        assert due == made
    network.close()


def test_that_a_peer_of_datagrams_is_gone_is_the_routings_alone() -> None:
    network = network_of("irbr", "push", 0.0)
    network.build([3, 77, 130])
    network.subscribe("n2", "x > 5")
    network.rounds(1)
    network.crash("n1")
    network.runtime.run(until_us=network.runtime.now_us + 5_000)
    assert "n1" not in {peer.name for _, peer in network.pastry("n0").table.cells()}, "the routing has heard of it"
    event = network.publish("n0", {"x": 6})
    network.quiet()
    assert network.got(event) == {"n2": 1}
    network.close()


@pytest.mark.parametrize("algorithm", [each for each in ALGORITHMS if each.endswith("pull")])
def test_pulls_are_refused_since_sources_cannot_count(algorithm: str) -> None:
    changes = ["broker.reliability=epidemic", f"broker.parameters.epidemic.algorithm={algorithm}"]
    with pytest.raises(InputError, match="push or none: pulls find losses by numbers"):
        build(load_scenario(Path("irbr"), changes))


def test_gryphon_is_refused_since_it_needs_streams() -> None:
    with pytest.raises(InputError, match="a routing that carries streams"):
        build(load_scenario(Path("irbr"), ["broker.reliability=gryphon"]))
