"""Brokers that are away are bridged for as long as they are, however many in a row Δ reaches over."""

from pathlib import Path

import pytest

from murmur_pubsub.links import Delay, LinkSpec
from routing.multipath.router import NO_WAY
from routing.multipath.view import NoWay
from tests.protocols.multipath.network import CONSTANT, MS, Network, parameters
from workloads.overlay import Overlay

CHAIN = Overlay(tuple(f"b{n}" for n in range(8)), tuple((f"b{n}", f"b{n + 1}") for n in range(7)))


def a_chain(folder: Path, delta: int = 4, datagrams: LinkSpec = CONSTANT, watch_ms: int = 50) -> Network:
    given = parameters(delta=delta, round_us=2_000 * MS, watch_us=watch_ms * MS)
    network = Network(CHAIN, folder, given, datagrams=datagrams)
    for name in network.names:
        network.subscribe(name, "x = 1")
    network.run_ms(60)
    return network


def reached(network: Network, source: str, target: str, count: int = 12) -> int:
    """So many of `count` publications at `source` have reached the target, once each."""
    events = []
    for _ in range(count):
        events.append(network.publish(source, x=1))
        network.run_ms(5)
    network.run_ms(60)
    assert all(network.got.get((target, event), 0) <= 1 for event in events)
    return sum((target, event) in network.got for event in events)


def there_and_back(network: Network) -> tuple[int, int]:
    return reached(network, "b0", "b7"), reached(network, "b7", "b0")


@pytest.mark.parametrize(("delta", "whole"), [(4, True), (3, True), (2, False)])
def test_a_bridge_grows_with_the_gap_as_far_as_delta_reaches(delta: int, whole: bool, tmp_path: Path) -> None:
    network = a_chain(tmp_path, delta)
    network.runtime.crash("b3")
    network.run_ms(500)
    assert there_and_back(network) == (12, 12)
    network.runtime.crash("b4")
    network.run_ms(500)
    assert there_and_back(network) == ((12, 12) if whole else (0, 0))


@pytest.mark.parametrize(("delta", "away"), [(3, ("b3", "b4")), (4, ("b3", "b4")), (4, ("b2", "b3", "b4"))])
def test_brokers_that_die_together_are_bridged_though_nobody_sees_all_of_them_go(
    delta: int, away: tuple[str, ...], tmp_path: Path
) -> None:
    network = a_chain(tmp_path, delta)
    for name in away:
        network.runtime.crash(name)
    network.run_ms(1_000)
    assert there_and_back(network) == (12, 12)
    for name in away:
        network.runtime.restart(name, network.machine(name, 1))
        network.subscribe(name, "x = 1")
    network.run_ms(1_000)
    assert there_and_back(network) == (12, 12)
    network.check_from_scratch()


@pytest.mark.parametrize("dead_ms", [3_000, 3_100, 3_200, 3_300])  # at one of these nobody is asked meanwhile
def test_who_had_not_answered_is_passed_by_though_the_broker_before_it_blinked(dead_ms: int, tmp_path: Path) -> None:
    """A hunt found it: the one behind was asked on, and not taken for away a second time."""
    network = a_chain(tmp_path, watch_ms=400)
    for name in ("b3", "b4"):
        network.runtime.crash(name)
    network.run_ms(dead_ms)
    network.runtime.restart("b3", network.machine("b3", 1))
    network.run_ms(150)  # its links are up after 100 ms
    network.runtime.crash("b3")
    network.run_ms(3_000)
    assert there_and_back(network) == (12, 12)
    network.settle()


def test_a_bridge_is_opened_anew_to_a_broker_that_blinked(tmp_path: Path) -> None:
    network = a_chain(tmp_path)
    network.runtime.crash("b3")
    network.run_ms(500)
    network.runtime.crash("b4")
    network.run_ms(500)
    network.runtime.restart("b4", network.machine("b4", 1))
    network.run_ms(500)
    network.subscribe("b4", "x = 1")
    network.run_ms(100)
    assert there_and_back(network) == (12, 12)
    assert (reached(network, "b0", "b4"), reached(network, "b7", "b4")) == (12, 12)
    assert (reached(network, "b4", "b0"), reached(network, "b4", "b7")) == (12, 12)


def test_a_bridge_of_lossy_datagrams_stands_for_minutes(tmp_path: Path) -> None:
    lossy = LinkSpec(delay=Delay("constant", 1 * MS), loss=0.02, ordered=False)
    network = a_chain(tmp_path, datagrams=lossy)
    network.runtime.crash("b3")
    network.run_ms(500)
    for _ in range(4):
        network.run_ms(30_000)
        assert min(reached(network, "b0", "b7", 40), reached(network, "b7", "b0", 40)) >= 35


def test_a_broker_that_was_restarted_knows_its_edge_to_a_neighbour_that_is_still_away(tmp_path: Path) -> None:
    network = a_chain(tmp_path)
    for name in ("b3", "b4"):
        network.runtime.crash(name)
    network.run_ms(500)
    network.runtime.restart("b4", network.machine("b4", 1))
    network.run_ms(500)
    assert "b3" in network.routers["b4"].knowledge.network.down
    assert network.routers["b7"].knowledge.network.statements["b4"].peers == ("b3", "b5")
    assert there_and_back(network) == (12, 12)


def test_a_word_of_a_broker_that_has_died_since_bridges_nobody_who_is_there(tmp_path: Path) -> None:
    network = a_chain(tmp_path)
    network.runtime.crash("b4")
    network.run_ms(500)
    network.runtime.crash("b5")  # it has said that b4 is away, and can never take it back
    network.run_ms(500)
    network.runtime.restart("b4", network.machine("b4", 1))
    network.run_ms(500)
    network.subscribe("b4", "x = 1")
    network.run_ms(60)
    assert reached(network, "b0", "b4") == 12
    assert reached(network, "b7", "b4") == 12


def test_what_changes_while_a_neighbour_is_away_is_told_over_the_bridge(tmp_path: Path) -> None:
    network = a_chain(tmp_path)
    network.runtime.crash("b3")
    network.run_ms(1)
    network.subscribe("b0", "y = 1")  # b2 does not know yet that nothing passes b3
    network.run_ms(500)
    event = network.publish("b7", y=1)
    network.run_ms(60)
    assert network.got == {("b0", event): 1}


def test_a_publication_that_cannot_be_passed_on_is_journaled_with_the_reason(tmp_path: Path) -> None:
    network = a_chain(tmp_path, delta=2)
    for name in ("b3", "b4"):
        network.runtime.crash(name)
    network.run_ms(1_000)
    network.records.clear()
    event = network.publish("b0", x=1)
    network.run_ms(60)
    ((name, dropped),) = network.records
    assert (name, dropped.topic, dropped.value, dropped.peer) == ("b2", NO_WAY, NoWay.NO_LINK, "b1")
    assert dropped.event is not None
    assert dropped.event.sequence == event
    network.records.clear()
    network.publish("b2", y=1)  # nobody wants it
    network.publish("b7", x=1)
    network.run_ms(60)
    assert [name for name, _ in network.records] == ["b5"]


def test_a_publication_from_a_broker_outside_the_map_is_journaled_with_the_reason(tmp_path: Path) -> None:
    network = a_chain(tmp_path, delta=2)
    taken = network.routers["b5"].next_hops(network.event("b0", x=1), "b0", ())
    assert taken == ()
    network.subscribe("b5", "z = 1")
    ((name, dropped),) = network.records
    assert (name, dropped.topic, dropped.value, dropped.peer) == ("b5", NO_WAY, NoWay.UNKNOWN_SENDER, "b0")


def test_a_broker_that_was_given_another_place_while_it_was_down_joins_there(tmp_path: Path) -> None:
    """Its link to b0 is taken away, and one to b2 made: what it has stored of b0 is no longer so."""
    star = Overlay(("b0", "b1", "b2", "b3"), (("b0", "b1"), ("b0", "b2"), ("b0", "b3")))
    network = Network(star, tmp_path, parameters())
    network.subscribe("b3", "x = 1")
    network.run_ms(60)
    network.runtime.crash("b1")
    network.run_ms(500)
    network.runtime.links.remove("b0", "b1")
    network.connect("b2", "b1")
    network.runtime.restart("b1", network.machine("b1", 1))
    network.run_ms(500)
    assert reached(network, "b1", "b3") == 12
    network.subscribe("b1", "x = 1")
    network.run_ms(60)
    assert reached(network, "b3", "b1") == 12


def test_who_bridges_nobody_any_more_is_waited_for_no_longer(tmp_path: Path) -> None:
    """Nobody would hear of its end: the broker would never settle."""
    network = a_chain(tmp_path)
    router = network.routers["b0"]
    router.membership.unsure["b3"] = None
    assert router.settling
    router.membership.watch()
    assert not router.settling
