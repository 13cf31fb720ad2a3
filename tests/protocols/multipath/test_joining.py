"""Of two brokers that a new link joins, one gives up its dead neighbours: which of them, message by message.

b4 – b2 – b0 – b1 – b3 is a chain. With Δ = 3 neither of b3 and b4 has the other in its map.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.machine import LinkDown, LinkUp, NodeContext, Received, Send, Start, TimerFired
from routing.multipath.messages import JoinDoubted, JoinRefused, JoinSettled, Neighbours
from routing.multipath.primary_network import PrimaryNetwork
from routing.multipath.router import MultipathRouter
from tests.protocols.multipath.network import MS, STAR, Network, parameters

WATCH = TimerFired(("routing", "watch"))


def router_of(name: str, folder: Path, *dead: str) -> MultipathRouter:
    """The broker, with these neighbours away."""
    router = Network(STAR, folder, parameters(delta=3, watch_us=60_000 * MS)).routers[name]
    for peer in dead:
        router.handle(LinkDown(peer, "silent"), 1)
    return router


def joining(effects: Sequence[Any]) -> list[Send]:
    return [each for each in effects if isinstance(each, Send) and isinstance(each.message, JoinDoubted | JoinSettled)]


def peers(router: MultipathRouter) -> list[str]:
    return list(router.knowledge.network.peers)


@pytest.mark.parametrize(("joined", "left"), [(True, ["b3"]), (False, ["b2", "b3"])])
def test_a_broker_whose_neighbours_are_away_asks_until_it_is_told_whether_it_has_joined(
    joined: bool, left: list[str], tmp_path: Path
) -> None:
    router = router_of("b4", tmp_path, "b2")
    asked = [Send("b3", JoinDoubted())]
    assert joining(router.handle(LinkUp("b3", True), 2)) == asked
    for number in (3, 4):
        assert joining(router.handle(WATCH, number)) == asked
    router.handle(Received("b1", JoinSettled(True)), 5)
    assert peers(router) == ["b2", "b3"], "b1 was not asked"
    router.handle(Received("b3", JoinSettled(joined)), 6)
    assert peers(router) == left
    assert not joining(router.handle(WATCH, 7))
    router.handle(Received("b3", JoinSettled(True)), 8)
    assert peers(router) == left, "the question is answered"


@pytest.mark.parametrize(
    ("name", "dead", "joins"), [("b4", (), "b3"), ("b4", ("b2",), "b1"), ("b1", ("b0", "b3"), "b2")]
)
def test_nobody_is_asked_by_a_broker_with_a_neighbour_or_of_one_in_the_map(
    name: str, dead: tuple[str, ...], joins: str, tmp_path: Path
) -> None:
    router = router_of(name, tmp_path, *dead)
    assert not joining(router.handle(LinkUp(joins, True), 2))


def test_what_is_answered_late_takes_no_neighbour_that_is_back(tmp_path: Path) -> None:
    router = router_of("b4", tmp_path, "b2")
    router.handle(LinkUp("b3", True), 2)
    router.handle(LinkUp("b2", True), 3)
    assert not joining(router.handle(WATCH, 4))
    router.handle(Received("b3", JoinSettled(True)), 5)
    assert peers(router) == ["b2", "b3"]


@pytest.mark.parametrize(
    ("name", "dead", "asks", "answer"),
    [("b3", (), "b4", True), ("b3", ("b1",), "b4", True), ("b4", ("b2",), "b3", None), ("b4", (), "b3", True)],
)
def test_who_has_a_neighbour_says_that_the_other_has_joined_and_of_two_without_one_the_earlier_by_name(
    name: str, dead: tuple[str, ...], asks: str, answer: bool | None, tmp_path: Path
) -> None:
    router = router_of(name, tmp_path, *dead)
    doubted = Received(asks, JoinDoubted())
    assert not joining(router.handle(doubted, 2)), "it is no neighbour"
    router.handle(LinkUp(asks, True), 3)
    expected = [] if answer is None else [Send(asks, JoinSettled(answer))]
    assert joining(router.handle(doubted, 4)) == expected


def test_who_has_no_other_neighbour_has_taken_none_from_the_one_that_asks(tmp_path: Path) -> None:
    router = router_of("b3", tmp_path)
    assert joining(router.handle(Received("b1", JoinDoubted()), 2)) == [Send("b1", JoinSettled(False))]


def test_a_neighbour_that_is_back_was_given_up_by_mistake_and_the_other_hears(tmp_path: Path) -> None:
    router = router_of("b4", tmp_path, "b2")
    router.handle(LinkUp("b3", True), 2)
    router.handle(Received("b3", JoinSettled(True)), 3)
    assert not joining(router.handle(Received("b3", JoinDoubted()), 4)), "that cannot be told yet"
    assert joining(router.handle(LinkUp("b2", True), 5)) == [Send("b3", JoinSettled(True))]
    assert peers(router) == ["b3", "b2"]
    assert joining(router.handle(Received("b3", JoinDoubted()), 6)) == [Send("b3", JoinSettled(True))]


def test_who_is_behind_a_neighbour_that_is_given_up_hears_it(tmp_path: Path) -> None:
    """To those farther away than Δ by now the word of this broker would not come otherwise."""
    router = router_of("b4", tmp_path, "b2")
    router.handle(LinkUp("b3", True), 2)
    told = router.handle(Received("b3", JoinSettled(True)), 3)
    words = [each.message for each in told if isinstance(each, Send) and each.to == "b0"]
    assert [word.peers for word in words if isinstance(word, Neighbours)] == [("b3",)]


def test_a_broker_that_was_known_elsewhere_has_its_tables_told_with_a_later_number(tmp_path: Path) -> None:
    """Whoever has them by the old way takes the new one."""
    router = router_of("b4", tmp_path, "b2")
    table = router.knowledge.mst
    assert (table.ppaths["b1"], table.moved.get("b1", 0)) == (("b2", "b0", "b1"), 0)
    router.handle(LinkUp("b1", True), 2)
    assert (table.ppaths["b1"], table.moved["b1"]) == (("b1",), 1)


def test_neighbours_of_the_last_incarnation_are_given_up_once(tmp_path: Path) -> None:
    router = MultipathRouter(NodeContext("b4", 1, {}, 1), parameters(delta=3))
    known = PrimaryNetwork("b4", 3, 0)
    known.up["b2"] = None
    known.set_peers(["b2"])
    router.handle(Start([known.record().record]), 1)
    assert peers(router) == ["b2"]
    router.handle(LinkUp("b3", True), 2)
    assert peers(router) == ["b3"]
    for number, newcomer in enumerate(("b2", "b9")):
        router.handle(LinkUp(newcomer, True), 3 + number)
    assert peers(router) == ["b3", "b2", "b9"]


def test_who_was_refused_or_is_away_is_not_asked_on_and_gives_up_nobody(tmp_path: Path) -> None:
    router = router_of("b4", tmp_path, "b2")
    router.handle(LinkUp("b3", True), 2)
    router.handle(LinkDown("b3", "silent"), 3)
    assert not joining(router.handle(WATCH, 4))
    router.handle(LinkUp("b3", True), 5)
    assert joining(router.handle(WATCH, 6))
    router.handle(Received("b3", JoinRefused(2)), 6)
    assert not joining(router.handle(WATCH, 6))
    router.handle(Received("b3", JoinSettled(True)), 7)
    assert peers(router) == ["b2"]
