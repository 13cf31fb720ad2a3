"""Words of witnesses that datagrams lose, drawn: chains with a broker that is away, and a link that is cut and healed.

To a broker behind a bridge a witness's word goes by datagrams, of which half are lost here until shortly after the link
is back. After some more `watch`es everybody passes by the broker that is away, and no other one.
"""

import itertools
import random
from pathlib import Path

import pytest

from murmur_pubsub.machine import Effect, Input, Send
from routing.multipath.messages import BrokerAway
from tests.protocols.multipath.network import Network, parameters
from workloads.overlay import Overlay


class LosesWords(Network):
    """A network that loses half of the words of witnesses that go by datagrams, while `lost_by` has numbers."""

    lost_by: random.Random | None = None

    def is_lost(self, sender: str, input: Input, effect: Effect) -> bool:
        if self.lost_by is None or not isinstance(effect, Send) or not isinstance(effect.message, BrokerAway):
            return False
        return frozenset((sender, effect.to)) not in self.linked and self.lost_by.random() < 0.5


def words_are_lost(seed: int, folder: Path) -> None:
    """A broker of a chain dies, a link beyond it is cut and healed, and words about that are lost."""
    rng = random.Random(f"{seed}/words are lost")
    names = tuple(f"b{number}" for number in range(rng.randrange(4, 8)))
    chain = Overlay(names, tuple(itertools.pairwise(names)))
    network = LosesWords(chain, folder, parameters(delta=rng.choice((3, 4)), strategy=rng.choice(("S1", "S2"))))
    for name in names:
        network.subscribe(name, "x = 1")
    network.run_ms(100)
    away = rng.randrange(1, len(names) - 2)
    network.runtime.crash(names[away])
    network.run_ms(500)
    network.lost_by = rng
    first = rng.randrange(away + 1, len(names) - 1)
    network.runtime.cut(names[first], names[first + 1])
    network.run_ms(rng.choice((20, 100, 400)))
    network.runtime.heal(names[first], names[first + 1])
    network.run_ms(rng.choice((20, 100, 400)))
    network.lost_by = None
    network.run_ms(1_000)
    there = {name for name in names if name != names[away]}
    events = {network.publish(name, x=1): there for name in sorted(there)}
    network.run_ms(500)
    network.check_deliveries(events)


@pytest.mark.parametrize("seed", [15, 25, 48, 136])
def test_a_word_that_is_lost_is_told_again(tmp_path: Path, seed: int) -> None:
    words_are_lost(seed, tmp_path)
