"""What a mover and the neighbour that it left may do wrong when both have died at the end of the move, and are back.

Each was found by `test_move_schedules.moves_that_end_with_deaths`, with the seed that stands at the test.
"""

from pathlib import Path

import pytest

from murmur_pubsub.machine import Send
from routing.multipath.messages import Neighbours, OriginSubscriptions
from routing.multipath.primary_network import PendingMove, Statement
from routing.multipath.router import MultipathRouter
from tests.protocols.multipath.network import MS, Network, parameters
from workloads.overlay import Overlay

TREE = Overlay(("b0", "b1", "b2", "b3", "b4"), (("b0", "b1"), ("b0", "b2"), ("b1", "b3"), ("b2", "b4")))


def router_of(name: str, folder: Path) -> MultipathRouter:
    return Network(TREE, folder, parameters(watch_us=60_000 * MS)).routers[name]


def test_who_joins_over_a_link_of_its_last_life_claims_it_no_more_than_it_did(tmp_path: Path) -> None:
    """Seed 48: the former neighbour counted its link to the mover once more, and so as high as the move that had ended
    it. Both took it for a link of the tree, and there was a circle."""
    router = router_of("b2", tmp_path)
    network = router.knowledge.network
    network.unseen = {"b0": None, "b4": None}
    network.set_peers(["b4"])
    claims = {name: network.claim(name).move for name in ("b0", "b4")}
    router.membership.on_link_up("b0")
    assert list(network.peers) == ["b0"]
    assert network.claim("b0").move == claims["b0"]
    assert network.claim("b4").move == claims["b4"] + 1, "what others say of the link that is given up is older"


@pytest.mark.parametrize(("named", "kept"), [(("b4", "b0"), ["b2"]), (("b4",), ["b2", "b4"])])
def test_a_broker_closes_no_circle_with_a_source_that_has_moved_away(
    named: tuple[str, ...], kept: list[str], tmp_path: Path
) -> None:
    """Seed 173: the mover told the neighbour that it had left of its destination, a neighbour of both. Without the link
    to the mover that was no circle, and the neighbour gave up the only other link that it had."""
    router = router_of("b0", tmp_path)
    network = router.knowledge.network
    network.set_peers(["b2", "b4"])
    network.down["b4"] = None
    network.learn("b2", Statement(0, 9, named))
    router.membership.on_neighbours("b2", Neighbours("b4", 1, 1, 2, ("b2",)))
    assert list(network.peers) == kept


def test_a_way_that_does_not_fit_the_map_is_asked_about(tmp_path: Path) -> None:
    """Seed 484: the map had been looked at, and a way that is none in it came later. Nobody was asked ever after."""
    router = router_of("b0", tmp_path)
    router.membership.watch()
    router.membership.watching = False
    assert not router.membership.must_watch
    router.spread.on_table("b1", OriginSubscriptions("b4", 0, 0, ("b1", "b3", "b4"), 7, ()))
    assert router.knowledge.mst.ppaths["b4"] == ("b1", "b3", "b4")
    assert router.membership.must_watch
    router.membership.watch()
    assert router.membership.watching
    router.spread.on_table("b2", OriginSubscriptions("b4", 0, 0, ("b2", "b4"), 0, ()))
    router.membership.watch()
    assert not router.membership.watching


def test_a_mover_in_doubt_tells_its_old_neighbour_no_way_that_its_destination_tells(tmp_path: Path) -> None:
    """Seed 484: the destination tells its tables when the move is made. Then the old neighbour, which had forgotten
    all, took a way over the mover and the destination for the way, and told everybody."""
    router = router_of("b0", tmp_path)
    router.knowledge.network.pending = PendingMove(7, "b1", "b4")
    table = OriginSubscriptions("b9", 0, 1, ("b4", "b9"), 7, ())
    told = [each.to for each in router.spread.on_table("b4", table) if isinstance(each, Send)]
    assert "b2" in told
    assert "b1" not in told
    router.knowledge.network.pending = None
    told = [each.to for each in router.spread.on_table("b2", table._replace(version=2)) if isinstance(each, Send)]
    assert "b1" in told
