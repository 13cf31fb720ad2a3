"""What is said again, stored or forgotten in joins, moves and departures, message by message."""

from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import NodeContext, Order, Persist, Received, Send, Start, TimerFired
from routing.multipath.messages import (
    Departed,
    LinkClaimed,
    MapRequested,
    MoveFinished,
    MoveGranted,
    MoveSettled,
    Neighbours,
    OriginSubscriptions,
    SubscriptionChanged,
)
from routing.multipath.move_states import MoveState
from routing.multipath.primary_network import PendingMove, PrimaryNetwork
from routing.multipath.router import MultipathRouter
from routing.multipath.subscription_tables import MasterSubscriptionTable
from tests.protocols.multipath.network import MS, STAR, Network, parameters

WANTED = [parse_filter(f"x = {value}") for value in range(3)]


def a_network(folder: Path) -> Network:
    return Network(STAR, folder, parameters(coordinator="b2", watch_us=60_000 * MS, move_grace_us=60_000 * MS))


def a_mover(folder: Path) -> MultipathRouter:
    """b3, which has been granted its move from b1 to b0, and has asked b0 for its map."""
    router = a_network(folder).routers["b3"]
    router.handle(Order(0, "move", ("b1", "b0")), 1)
    sent = router.handle(Received("b2", MoveGranted(1, "b0", "")), 2)
    assert Send("b0", MapRequested(1)) in sent
    return router


def test_a_request_for_the_map_goes_to_the_destination_again(tmp_path: Path) -> None:
    router = a_mover(tmp_path)
    again = router.handle(TimerFired(("routing", "again")), 3)
    assert [each for each in again if isinstance(each, Send)] == [Send("b0", MapRequested(1))]


def test_a_grant_that_comes_twice_does_not_end_the_move(tmp_path: Path) -> None:
    router = a_mover(tmp_path)
    assert not router.handle(Received("b2", MoveGranted(1, "b0", "")), 3)
    other = router.handle(Received("b2", MoveGranted(2, "b0", "")), 4)
    assert list(other) == [Send("b2", MoveFinished(2))], "a number that this broker does not move by"
    assert router.moves.state is MoveState.PREPARATION


def test_a_farewell_is_said_again_until_the_neighbour_answers(tmp_path: Path) -> None:
    router = a_network(tmp_path).routers["b4"]
    farewell = Send("b2", Departed("b4", 0))
    assert farewell in router.handle(Order(0, "depart", ()), 1)
    for _ in range(2):
        assert farewell in router.handle(TimerFired(("routing", "watch")), 2)
    router.handle(Received("b2", LinkClaimed(0, False)), 3)
    assert farewell not in router.handle(TimerFired(("routing", "watch")), 4)


def test_a_former_neighbour_that_a_move_makes_one_again_has_no_link_from_before(tmp_path: Path) -> None:
    """Who has a link is not watched: its end would be told."""
    network = a_network(tmp_path).routers["b0"].knowledge.network
    assert "b1" in network.linked
    network.set_peers(["b2"])
    network.up.pop("b1")
    network.set_peers(["b2", "b1"])
    assert network.unlinked == ["b1"]


def test_a_neighbour_that_does_not_name_this_broker_is_told_at_once_what_that_knows(tmp_path: Path) -> None:
    router = a_network(tmp_path).routers["b0"]
    claim = Send("b1", LinkClaimed(0, True))
    assert claim in router.handle(Received("b1", Neighbours("b1", 0, 9, 1, ("b3",))), 1)
    assert claim not in router.handle(Received("b2", Neighbours("b1", 0, 10, 3, ("b3",))), 2), "others' hearsay"


def test_a_move_that_was_not_made_is_in_doubt_no_more_after_a_restart(tmp_path: Path) -> None:
    router = a_network(tmp_path).routers["b3"]
    router.knowledge.network.pending = PendingMove(7, "b1", "b0")
    stored = router.handle(Received("b0", MoveSettled(7, False)), 1)
    (record,) = (each for each in stored if isinstance(each, Persist))
    restored = MultipathRouter(NodeContext("b3", 1, {}, 1), parameters())
    restored.handle(Start([record.record]), 2)
    assert restored.knowledge.network.pending is None
    assert list(restored.knowledge.network.peers) == ["b1"]


def test_changes_that_have_overtaken_others_are_taken_in_their_order(tmp_path: Path) -> None:
    router = a_network(tmp_path).routers["b0"]
    table = router.knowledge.mst
    changes = [SubscriptionChanged("b1", 0, number, ("b1",), True, WANTED[number - 1]) for number in (1, 2, 3)]
    for change, held in ((changes[2], 0), (changes[1], 0), (changes[0], 3)):
        router.handle(Received("b1", change), 1)
        assert len(table.filters_of("b1")) == held
    assert table.versions["b1"] == (0, 3)


def test_an_origin_that_is_back_under_its_name_has_been_moved_by_no_move() -> None:
    table = MasterSubscriptionTable()
    table.note_origin("b9", (0, 1), ("b1", "b9"))
    table.moved["b9"] = 7
    table.forget("b9")
    table.note_origin("b9", (1, 1), ("b2", "b9"))
    assert "b9" not in table.moved


@pytest.mark.parametrize("name", ["uplink_messages_per_s", "uplink_bytes_per_s"])
def test_an_uplink_carries_one_a_second_at_least(name: str) -> None:
    assert getattr(parameters(**{name: 1}), name) == 1
    with pytest.raises(InputError, match=name):
        parameters(**{name: 0})


def test_of_two_records_in_the_log_the_last_one_holds() -> None:
    """A broker may die before the log is cut behind its last record."""
    network = PrimaryNetwork("b0", 2, 0)
    records = []
    for peers in (["b1"], ["b1", "b2"]):
        network.set_peers(peers)
        records.append(network.record().record)
    back = PrimaryNetwork("b0", 2, 1)
    assert back.restore(records)
    assert back.stored.peers == ("b1", "b2")


def test_a_broker_without_a_link_is_told_all_tables_unless_a_move_has_just_made_it_a_neighbour(tmp_path: Path) -> None:
    """Then it knows itself what the move has left behind."""
    router = a_network(tmp_path).routers["b0"]
    router.spread.on_table("b1", OriginSubscriptions("b9", 0, 1, ("b8", "b9"), 0, ()))
    told = [each.message for each in router.spread.tell_all("b3", 2) if isinstance(each, Send)]
    assert "b9" in [each.origin for each in told if isinstance(each, OriginSubscriptions)]
    told = [each.message for each in router.spread.tell_all("b3", 1, move=5) if isinstance(each, Send)]
    assert "b9" not in [each.origin for each in told if isinstance(each, OriginSubscriptions)]
