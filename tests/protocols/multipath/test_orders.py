"""The coordinator of moves, and the orders that it decides on, one by one."""

from pathlib import Path

import pytest

from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Answer, LinkUp, NodeContext, Order
from routing.multipath.coordinator import Coordinator
from routing.multipath.messages import (
    MoveGranted,
    MovePermission,
    MoveRuns,
)
from routing.multipath.primary_network import Statement
from routing.multipath.router import MultipathRouter
from routing.multipath.watch import PATIENCE
from tests.protocols.multipath.network import STAR, Network, parameters

WANTED = parse_filter("x = 1")


# ------------------------------------------------------------------------------------------------- the coordinator
def a_coordinator(ready: bool = True, term: int = 0, epoch: int = 0) -> Coordinator:
    coordinator = Coordinator(2, term, epoch, ready)
    for number in range(9):
        peers = tuple(f"b{each}" for each in (number - 1, number + 1) if 0 <= each < 9)
        coordinator.learn(f"b{number}", Statement(0, 1, peers))
    return coordinator


FIRST = MovePermission("b1", 0, "b2", "b3")
SECOND = MovePermission("b4", 0, "b3", "b2")


def test_who_asks_again_is_told_the_same() -> None:
    coordinator = a_coordinator()
    assert coordinator.ask(FIRST) == coordinator.ask(FIRST) == [("b1", MoveGranted(1, "b3", ""))]
    assert coordinator.ask(SECOND) == coordinator.ask(SECOND) == [("b4", MoveGranted(0, "b2", ""))]
    assert coordinator.finish(1) == [("b4", MoveGranted(2, "b2", ""))]


def test_a_mover_that_was_restarted_waits_for_its_former_move() -> None:
    coordinator = a_coordinator()
    coordinator.ask(FIRST)
    again = FIRST._replace(epoch=1)
    assert coordinator.ask(again) == [("b1", MoveGranted(0, "b3", ""))]
    assert coordinator.ask(FIRST._replace(epoch=2)) == [("b1", MoveGranted(0, "b3", ""))]
    assert [each.epoch for each in coordinator.waiting] == [2]
    assert coordinator.finish(1) == [("b1", MoveGranted(2, "b3", ""))]


def test_a_move_of_which_nobody_knows_is_over() -> None:
    coordinator = a_coordinator()
    coordinator.ask(FIRST)
    asked = [coordinator.look_around() for _ in range(2 * PATIENCE)]
    assert asked == [[("b1", 1)]] * PATIENCE + [[("b3", 1)]] * PATIENCE
    coordinator.hear(MoveRuns(1, "b1", ("b2", "b3")))
    assert coordinator.look_around() == [("b1", 1)]
    for _ in range(2 * PATIENCE):
        coordinator.look_around()
    assert coordinator.active == {}


def test_a_coordinator_that_takes_over_hears_what_runs_before_it_grants() -> None:
    coordinator = a_coordinator(ready=False, term=1, epoch=2)
    assert coordinator.ask(FIRST) == [("b1", MoveGranted(0, "b3", ""))]
    coordinator.hear(MoveRuns(7, "b4", ("b3", "b2")))
    coordinator.ready = True
    assert coordinator.grant() == []
    ((_, granted),) = coordinator.finish(7)
    assert granted.number > a_coordinator(term=1, epoch=1)._last > a_coordinator(epoch=5)._last


def test_a_coordinator_gives_no_number_that_another_of_its_term_has_given() -> None:
    """Two brokers that are ordered to host it at about the same time begin the same term."""
    other, coordinator = (a_coordinator(term=1) for _ in range(2))
    ((_, first),) = other.ask(FIRST)
    coordinator.hear(MoveRuns(first.number, "b1", ("b2", "b3")))
    coordinator.ask(SECOND)
    ((_, second),) = coordinator.finish(first.number)
    assert second.number > first.number


def test_a_coordinator_whose_reports_were_lost_asks_for_them_before_it_decides(tmp_path: Path) -> None:
    """Schedule of two deaths 42: it refused every move, since it knew of nobody's neighbours."""
    network = Network(STAR, tmp_path, parameters(coordinator="b0"))
    desk = network.routers["b0"].desk
    desk.coordinator = Coordinator(2, 0, 0, ready=True)
    assert network.answer_to(network.order("b3", "move", "b1", "b0")) == ""


def test_a_coordinator_waits_for_no_report_of_who_is_dead() -> None:
    coordinator = Coordinator(2, 0, 0, ready=True)
    coordinator.learn("b1", Statement(0, 1, ("b0", "b2")))
    coordinator.learn("b2", Statement(0, 1, ("b1", "b3")))
    assert coordinator.ask(FIRST) == [("b1", MoveGranted(0, "b3", ""))]
    asked = []
    while not (granted := coordinator.grant()):
        asked.append(coordinator.look_for())
    assert asked == [["b0", "b3"]] * 10
    assert granted == [("b1", MoveGranted(1, "b3", ""))]


def test_a_broker_whose_report_has_come_late_is_asked_as_often_when_it_is_back() -> None:
    coordinator = Coordinator(2, 0, 0, ready=True)
    coordinator.learn("b1", Statement(0, 1, ("b0", "b2")))
    coordinator.learn("b2", Statement(0, 1, ("b1", "b3")))
    coordinator.learn("b3", Statement(0, 1, ("b2",)))
    coordinator.ask(FIRST)
    for _ in range(9):
        coordinator.look_for()
    coordinator.learn("b0", Statement(0, 1, ("b1",)))
    ((_, granted),) = coordinator.grant()
    coordinator.finish(granted.number)
    coordinator.forget("b0")  # it has left, and joined in its old place again; its report is lost
    coordinator.ask(FIRST._replace(epoch=1))
    asked = 0
    while not coordinator.grant():
        asked += coordinator.look_for() == ["b0"]
    assert asked == 10


# ------------------------------------------------------------------------------------------------------- orders
def test_an_order_with_other_arguments_than_declared_is_refused() -> None:
    router = MultipathRouter(NodeContext("b0", 1), parameters())
    assert router.handle(Order(3, "move", ("b1",)), 0) == (Answer(3, "move with 1 arguments, not 2"),)


@pytest.mark.parametrize(
    ("broker", "verb", "arguments", "refusal"),
    [
        ("b4", "depart", (), ""),
        ("b2", "depart", (), "b2 has 2 primary neighbours; Δ-moves make it an edge broker"),
        ("b3", "depart", (), "b3 hosts the coordinator; order another broker to do that"),
        ("b4", "coordinator", (), ""),
    ],
)
def test_orders_are_answered(broker: str, verb: str, arguments: tuple[str, ...], refusal: str, tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters(coordinator="b3"))
    assert network.answer_to(network.order(broker, verb, *arguments)) == refusal


@pytest.mark.parametrize("away", [False, True])
def test_a_departure_is_answered_when_the_neighbour_knows_or_is_away(away: bool, tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters())
    number = network.order("b4", "depart")
    assert network.routers["b4"].waiting
    if away:
        network.runtime.crash("b2")
    assert network.answer_to(number) == ""
    assert not network.routers["b4"].waiting
    network.runtime.links.remove("b2", "b4")  # in the same instant
    if away:
        network.restart("b2")
    network.run_ms(500)
    assert "b4" not in network.routers["b2"].knowledge.network.peers or away
    assert network.routers["b4"].knowledge.network.peers == {}


def test_a_broker_does_not_leave_while_its_only_neighbour_is_away(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters())
    network.runtime.crash("b2")
    network.run_ms(400)
    assert network.answers[network.order("b4", "depart")] == "b2, its only neighbour, is away"


def test_a_broker_that_has_left_takes_no_more_orders_and_stays_away_until_it_is_restarted(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters())
    network.order("b4", "depart")
    network.run_ms(20)
    assert "b4" not in network.routers["b2"].knowledge.network.peers
    assert network.answers[network.order("b4", "coordinator")] == "b4 has left the overlay"
    for name, peer in (("b4", "b2"), ("b2", "b4")):
        network.runtime.nodes[name].take_input(LinkUp(peer, True), network.runtime.now_us)
    network.run_ms(20)
    assert "b4" not in network.routers["b2"].knowledge.network.peers
    network.runtime.crash("b4")
    network.run_ms(400)
    network.runtime.restart("b4", network.machine("b4", 1))
    network.run_ms(400)
    assert "b4" in network.routers["b2"].knowledge.network.peers
    network.check_from_scratch()


def test_without_a_coordinator_no_broker_moves_until_one_is_named(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters())
    move = ("b4", "move", "b2", "b0")
    assert network.answers[network.order(*move)] == "no broker hosts the coordinator of moves"
    network.order("b3", "coordinator")
    network.run_ms(200)
    number = network.order(*move)
    assert network.answers[network.order(*move)] == "b4 has been told to go to b0 already"
    network.run_ms(600)
    assert network.answers[number] == ""
    network.edges = network.edges - {frozenset(("b4", "b2"))} | {frozenset(("b4", "b0"))}
    network.check_from_scratch()


def test_a_coordinator_that_stays_away_is_asked_so_often_and_another_one_can_be_named(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters(coordinator="b3"))
    network.runtime.crash("b3")
    number = network.order("b4", "move", "b2", "b0")
    network.run_ms(2_000)
    assert network.answers[number] == "the coordinator does not answer"
    number = network.order("b4", "move", "b2", "b0")
    network.order("b1", "coordinator")
    network.run_ms(1_000)
    assert network.answers[number] == ""


def test_a_coordinator_that_was_restarted_knows_the_overlay_again(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters(coordinator="b3"))
    network.runtime.crash("b3")
    network.run_ms(400)
    network.runtime.restart("b3", network.machine("b3", 1))
    network.run_ms(400)
    number = network.order("b4", "move", "b2", "b0")
    network.run_ms(1_000)
    assert network.answers[number] == ""
    coordinator = network.routers["b3"].desk.coordinator
    assert coordinator is not None
    assert coordinator.active == {}


def test_confirmations_that_take_longer_than_the_graces_delay_a_move_and_do_not_stop_it(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters(coordinator="b3"))
    network.runtime.slow("b1", 200_000)
    number = network.order("b4", "move", "b2", "b0")
    network.run_ms(2_000)
    assert number not in network.answers
    network.runtime.slow("b1", 0)
    network.run_ms(3_000)
    assert network.answers[number] == ""
    assert all(router.moves.zone is None for router in network.routers.values())
    network.edges = network.edges - {frozenset(("b4", "b2"))} | {frozenset(("b4", "b0"))}
    network.check_from_scratch()


def test_a_mover_says_which_destination_has_not_answered(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters(coordinator="b3"))
    mover = network.routers["b4"].mover
    mover.order(Order(7, "move", ("b2", "b0")))
    mover.on_granted(MoveGranted(1, "b0", ""))
    mover.now_us += 60_000_000
    refusals = [each.refusal for each in mover.on_timer("again", 0) if isinstance(each, Answer)]
    assert refusals == ["b0 does not answer, or knows of other brokers"]
