"""Publiy section 6: what holds while a Δ-move runs, at the mover and around it."""

from itertools import pairwise
from pathlib import Path

import msgpack

from murmur_pubsub.machine import Persist, Send
from routing.multipath.move_states import MoveState
from routing.multipath.primary_network import PendingMove
from routing.multipath.router import MultipathRouter
from tests.protocols.multipath.network import Network, parameters
from workloads.overlay import Overlay


def chain(folder: Path, brokers: int = 8) -> Network:
    names = tuple(f"b{number}" for number in range(brokers))
    return Network(Overlay(names, tuple(pairwise(names))), folder, parameters(coordinator="b0"))


def moving(folder: Path, broker: str) -> MultipathRouter:
    """That broker's router while b3 is on its way from b4 to b5."""
    network = chain(folder)
    network.order("b3", "move", "b4", "b5")
    router = network.routers[broker]
    while router.moves.state is not MoveState.IN_PROGRESS:
        network.run_ms(1)
    return router


def test_publiy_s6_a_broker_that_does_not_know_whether_it_has_moved_takes_no_order(tmp_path: Path) -> None:
    network = chain(tmp_path)
    network.routers["b3"].knowledge.network.pending = PendingMove(7, "b4", "b5")
    number = network.order("b3", "move", "b2", "b1")
    assert network.answers[number] == "b5 has not said yet whether it has moved there"


def test_publiy_s6_a_move_is_over_two_graces_after_the_last_has_heard_of_it(tmp_path: Path) -> None:
    network = chain(tmp_path)
    number, began_us = network.order("b3", "move", "b4", "b5"), network.runtime.now_us
    assert network.answer_to(number) == ""
    assert network.runtime.now_us - began_us >= 2 * network.parameters.move_grace_us


def test_publiy_s6_links_past_a_mover_are_given_up_when_its_move_begins(tmp_path: Path) -> None:
    network = chain(tmp_path)
    links, moves = network.routers["b1"].knowledge.links, network.routers["b1"].moves
    links.soft, links.candidates = dict.fromkeys(("b3", "b4")), {"b5": None}
    network.order("b3", "move", "b4", "b5")
    while moves.zone is None:
        network.run_ms(1)
    assert moves.state is MoveState.INIT
    assert (list(links.soft), list(links.candidates)) == (["b3"], [])


def test_publiy_s6_no_candidate_leads_past_a_mover(tmp_path: Path) -> None:
    network = chain(tmp_path)
    network.order("b3", "move", "b4", "b5")
    moves = network.routers["b1"].moves
    while moves.zone is None:
        network.run_ms(1)
    assert [peer for peer in ("b0", "b2", "b3", "b4", "b5") if moves.bypasses_mover(peer)] == ["b4", "b5"]


def test_publiy_s6_a_mover_whose_destination_dies_says_nothing_of_the_new_tree_before_it_has_stored_it(
    tmp_path: Path,
) -> None:
    """The destination may not have stored it: if both forgot the link, others would know of one that nobody has."""
    router = moving(tmp_path, "b3")
    known = router.knowledge.network
    assert known.pending is not None
    (stored,) = router.mover.on_away("b5")
    assert isinstance(stored, Persist)
    assert msgpack.unpackb(stored.record)[-1] == [], "no move is pending"
    (report,) = router.mover.on_stored(stored.token)
    assert isinstance(report, Send)
    assert (report.to, report.message.peers) == ("b0", ("b2", "b5"))  # type: ignore[attr-defined]


def test_publiy_s6_the_bridges_over_a_mover_that_was_away_stay_when_it_is_back(tmp_path: Path) -> None:
    """The schedule multipath/end_to_end/backups 2902054: a partition of 600 ms from the mover alone. Nobody waits for
    it any more, so that its neighbour passes it by as any broker that was away."""
    router = moving(tmp_path, "b2")
    router.membership.on_unreachable("b3")
    assert "b5" in router.knowledge.links.soft
    router.check_invariants()
    router.membership.on_link_up("b3")
    assert not router.knowledge.network.is_away("b3")
    assert "b5" in router.knowledge.links.soft
    router.check_invariants()


def test_publiy_s6_soft_links_that_lead_nowhere_by_the_new_map_end_when_somebody_looks(tmp_path: Path) -> None:
    """The schedule multipath/end_to_end/backups 3202923: the first to look was the check of the move itself."""
    router = moving(tmp_path, "b1")
    router.knowledge.links.soft |= dict.fromkeys(("gone", "b0"))
    router.knowledge.map_changed()
    router.moves.check_invariants()
    assert not {"gone", "b0"} & router.knowledge.links.soft.keys()


def test_a_soft_link_to_a_new_neighbour_ends_before_it_is_asked_whether_it_bypasses_the_mover(tmp_path: Path) -> None:
    """A guided hunt found it: the check of the move came first."""
    router = moving(tmp_path, "b2")
    router.knowledge.links.soft["b4"] = None
    assert router.moves.bypasses_mover("b4")
    router.knowledge.network.peers["b4"] = None
    router.knowledge.map_changed()
    router.moves.check_invariants()
    assert "b4" not in router.knowledge.links.soft
