"""What a mover and the neighbour that it left may do wrong when both have died at the end of the move, and are back.

Each was found by `test_move_schedules.moves_that_end_with_deaths`, with the seed that stands at the test.
"""

from pathlib import Path

import pytest

from murmur_pubsub.machine import Send
from routing.multipath.messages import LinkClaimed, Neighbours, OriginSubscriptions
from routing.multipath.primary_network import PendingMove, Statement
from routing.multipath.router import MultipathRouter
from tests.protocols.multipath.network import MS, STAR, Network, parameters


def router_of(name: str, folder: Path) -> MultipathRouter:
    return Network(STAR, folder, parameters(watch_us=60_000 * MS)).routers[name]


def told_of_a_circle(
    folder: Path, by_link: bool = True, named: tuple[str, ...] = ("b4", "b0"), heard_before: bool = False
) -> MultipathRouter:
    """b0, whose neighbour b4 has been away (a neighbour by link, or by a move), hears of b2, which names these as its
    neighbours, that b4 is back as a neighbour of b2. It may have heard that of b4 before."""
    router = router_of("b0", folder)
    network = router.knowledge.network
    if by_link:
        network.up["b4"] = None
    network.set_peers(["b2", "b4"])
    if heard_before:
        network.learn("b4", Statement(0, 1, ("b0",)))
    network.down["b4"] = network.last_life("b4")
    network.learn("b2", Statement(0, 9, named))
    if heard_before:
        router.membership.on_neighbours("b4", Neighbours("b4", 1, 1, 1, ("b2", "b0")))
    router.membership.on_neighbours("b2", Neighbours("b4", 1, 1, 2, ("b2",)))
    return router


@pytest.mark.parametrize(("named", "kept"), [(("b4", "b0"), ["b2"]), (("b4",), ["b2", "b4"])])
def test_a_broker_closes_no_circle_with_a_source_that_has_moved_away(
    named: tuple[str, ...], kept: list[str], tmp_path: Path
) -> None:
    """Seed 173: the mover told the neighbour that it had left of its destination, a neighbour of both. Without the link
    to the mover that was no circle, and the neighbour gave up the only other link that it had."""
    assert list(told_of_a_circle(tmp_path, named=named).knowledge.network.peers) == kept


def test_a_circle_is_seen_though_the_neighbour_itself_has_told_that_it_is_back(tmp_path: Path) -> None:
    """Hunt of multipath/end_to_end/backups, seed 61: events went round for ever, and each link doubled some."""
    assert list(told_of_a_circle(tmp_path, heard_before=True).knowledge.network.peers) == ["b2"]


def test_a_neighbour_by_a_move_closes_no_circle(tmp_path: Path) -> None:
    """With three deaths, seed 163: the mover was back where it had been, in doubt, and its destination took the new
    link for one that had been taken away."""
    assert list(told_of_a_circle(tmp_path, by_link=False).knowledge.network.peers) == ["b2", "b4"]


def test_a_link_that_comes_up_though_a_circle_was_closed_is_no_join(tmp_path: Path) -> None:
    """Seeds 40 and 48: the neighbour took it for one, and counted it as high as the move that had ended it. So both
    took it for a link of the tree, and there was a circle."""
    router = told_of_a_circle(tmp_path)
    assert list(router.knowledge.network.peers) == ["b2"]
    answer = router.membership.on_link_up("b4")
    assert [each.message for each in answer if isinstance(each, Send)] == [LinkClaimed(1, False)]
    assert list(router.knowledge.network.peers) == ["b2"]


def test_who_learns_from_others_that_a_broker_is_its_neighbour_sees_it_with_its_next_word(tmp_path: Path) -> None:
    """The destination and the neighbour, seed 189: the destination was back and had met the mover over a bridge, before
    it was told that the mover is its neighbour. It took it for away ever after."""
    router = router_of("b0", tmp_path)
    network = router.knowledge.network
    network.met["b4"] = 0
    router.membership.on_neighbours("b1", Neighbours("b0", 0, 9, 2, ("b1", "b2", "b4")))
    assert (list(network.peers), list(network.down)) == (["b1", "b2", "b4"], ["b4"])
    router.membership.meet("b4", 0)
    assert not network.down


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
