"""Nodes that move while their heartbeats are on their way, over links on which messages overtake each other."""

import random
from pathlib import Path

import pytest

from murmur_pubsub.links import Delay
from routing.smallworld.rendezvous import RendezvousRouter
from routing.smallworld.ring import RING_SIZE
from tests.protocols.structured import StructuredNetwork, Tap

NODES = 20
LONGEST_US = 15_000


def moves_beside_heartbeats(seed: int, _: Path) -> None:
    """Nodes move just after they have sent their heartbeats. When all has arrived, those that they told know it."""
    rng = random.Random(f"{seed}/moves beside heartbeats")
    network = StructuredNetwork("vinifera", 3, delay=Delay("uniform", 500, LONGEST_US), seed=seed, base=256)
    network.build(rng.sample(range(RING_SIZE >> 8), NODES))
    network.rounds(6)
    runtime = network.runtime
    for mover in rng.choices(network.up, k=10):
        tap, router = runtime.nodes[mover].machine, router_of(network, mover)
        assert isinstance(tap, Tap)
        before = tap.sent["Beat"]
        while tap.sent["Beat"] == before:
            runtime.run(until_us=runtime.now_us + 1_000)
        runtime.run(until_us=runtime.now_us + rng.randrange(LONGEST_US))
        effects = router._after(router.overlay.move(rng.randrange(RING_SIZE), 0))
        told = list(router.overlay.contacts)
        runtime.nodes[mover].perform(effects, runtime.now_us)
        network.quiet()
        for name in told:
            contact = router_of(network, name).overlay.contacts.get(mover)
            believed = contact and contact.identifier
            assert believed in (None, router.overlay.me.identifier), f"seed {seed}: {name} takes {mover} back"
    network.close()


def router_of(network: StructuredNetwork, name: str) -> RendezvousRouter:
    router = network.router(name)
    assert isinstance(router, RendezvousRouter)
    return router


@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_moves_beside_its_heartbeats_is_where_it_moved(tmp_path: Path, seed: int) -> None:
    moves_beside_heartbeats(seed, tmp_path)
