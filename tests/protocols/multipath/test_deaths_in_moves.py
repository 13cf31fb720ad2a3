"""A broker of a Δ-move dies at each instant of it and comes back: once all is settled, everybody hears everybody.

The chain and the parameters are those of the test on Ray (`test_live_moves.py`), where the instant varies.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest

from murmur_pubsub.links import Delay, LinkSpec
from tests.protocols.multipath.network import MS, UNEVEN, Network, parameters
from workloads.overlay import Overlay

CHAIN = Overlay(tuple(f"b{n}" for n in range(6)), tuple((f"b{n}", f"b{n + 1}") for n in range(5)))
EVEN = LinkSpec(delay=Delay("constant", 2 * MS))
SLOW = LinkSpec(delay=Delay("uniform", 200, 12 * MS))
SLOW_UNORDERED = LinkSpec(delay=Delay("uniform", 200, 12 * MS), ordered=False)
LINKS = {"even": (EVEN, EVEN), "uneven": (LinkSpec(delay=UNEVEN.delay), UNEVEN), "slow": (SLOW, SLOW_UNORDERED)}


def everybody_hears_everybody(network: Network) -> None:
    network.got.clear()
    wanted = {network.publish(name, x=1): set(network.names) for name in network.names for _ in range(3)}
    network.run_ms(100)
    network.check_deliveries(wanted)


def a_death(
    folder: Path, victim: str, instant_ms: int, away_ms: int, unreached_ms: int, links: str, seed: int = 1
) -> None:
    """b5, which has moved before, is told to move from b2 to b1; a broker dies so long after, for so long."""
    chosen = parameters(
        coordinator="b0", move_grace_us=300 * MS, watch_us=300 * MS, round_us=2_000 * MS, load_exchange_us=10_000 * MS
    )
    network = Network(CHAIN, folder, chosen, *LINKS[links], seed=seed)
    for name in network.names:
        network.subscribe(name, "x = 1")
    network.settle()
    assert network.answer_to(network.order("b5", "move", "b4", "b2")) == ""
    network.settle()
    number = network.order("b5", "move", "b2", "b1")
    network.run_ms(instant_ms)
    network.runtime.crash(victim)
    network.run_ms(away_ms)
    network.restart(victim, unreached_ms)
    network.subscribe(victim, "x = 1")
    network.settle()
    everybody_hears_everybody(network)
    if victim != "b5":
        network.answer_to(number)
    network.run_ms(6_000)
    everybody_hears_everybody(network)
    assert network.answer_to(network.order("b4", "move", "b3", "b1")) == ""  # nobody waits for the other move
    network.settle()
    everybody_hears_everybody(network)
    network.run_ms(2_000)
    network.edges = {
        frozenset((name, peer)) for name, router in network.routers.items() for peer in router.knowledge.network.peers
    }
    assert len(network.edges) == len(CHAIN.edges)
    network.check_from_scratch()


def deaths(folder: Path, victim: str, instants_ms: Iterable[int], away_ms: int, unreached_ms: int, links: str) -> None:
    failed = {}
    for instant_ms in instants_ms:
        (folder / str(instant_ms)).mkdir()
        try:
            a_death(folder / str(instant_ms), victim, instant_ms, away_ms, unreached_ms, links, instant_ms + 1)
        except AssertionError as error:
            failed[instant_ms] = str(error)[:200]
    assert not failed, f"a_death(…, {victim!r}, instant_ms, {away_ms}, {unreached_ms}, {links!r}, instant_ms + 1)"


@pytest.mark.parametrize(("away_ms", "unreached_ms"), [(20, 0), (400, 40), (1_000, 0), (1_600, 40)])
def test_a_mover_that_dies_at_any_instant_and_comes_back_is_found_before_all_is_settled(
    away_ms: int, unreached_ms: int, tmp_path: Path
) -> None:
    deaths(tmp_path, "b5", (*range(0, 66, 3), *range(66, 300, 50)), away_ms, unreached_ms, "even")


@pytest.mark.slow
@pytest.mark.parametrize("links", LINKS)
@pytest.mark.parametrize(("away_ms", "unreached_ms"), [(100, 100), (1_300, 0), (2_500, 40)])
def test_a_mover_that_dies_at_any_instant_whatever_the_delays_and_comes_back_is_found_before_all_is_settled(
    links: str, away_ms: int, unreached_ms: int, tmp_path: Path
) -> None:
    deaths(tmp_path, "b5", range(1, 300, 3), away_ms, unreached_ms, links)
