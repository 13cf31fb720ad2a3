"""Publiy section 6: Δ-moves on whole networks, one by one, overlapping and interrupted."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import WireError
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import NodeName, Received, Send, TimerFired
from routing.multipath.delta_move import END, IN_PROGRESS, INIT, UNDONE
from routing.multipath.messages import Departed, MoveAsked, MoveFinished, MovePhase, MoveRuns
from routing.multipath.move_states import MoveState, MoveStep
from routing.multipath.mover import MOVE_REFUSED
from routing.multipath.overlay_maps import MasterOverlayMap
from tests.protocols.multipath.network import CONSTANT, UNEVEN, Network, parameters, topics_by_broker
from workloads.overlay import Overlay, Tree, random_tree


def a_move(network: Network, rng: random.Random) -> tuple[NodeName, NodeName, NodeName] | None:
    """Some move that is possible in the tree as it is."""
    mover = rng.choice(network.names)
    mom = MasterOverlayMap(mover, network.parameters.delta, network.adjacency())
    neighbour = rng.choice(network.adjacency()[mover])
    behind = [peer for peer in mom.brokers if peer != neighbour and mom.first_hop(peer) == neighbour]
    behind = [peer for peer in behind if len(network.adjacency()[peer]) < 4]
    return (mover, neighbour, rng.choice(behind)) if behind else None


@pytest.mark.parametrize(
    ("strategy", "datagrams", "moves", "seed"),
    [
        ("S2", UNEVEN, 20, 1),
        pytest.param("S2", UNEVEN, 200, 1, marks=pytest.mark.slow),
        pytest.param("S1", UNEVEN, 200, 2, marks=pytest.mark.slow),
        pytest.param("S2", CONSTANT, 200, 3, marks=pytest.mark.slow),
        pytest.param("S0", UNEVEN, 200, 4, marks=pytest.mark.slow),
        pytest.param("SH", UNEVEN, 200, 5, marks=pytest.mark.slow),
    ],
)
def test_publiy_s6_random_moves_under_traffic_lose_and_repeat_nothing(
    strategy: str, datagrams: LinkSpec, moves: int, seed: int, tmp_path: Path
) -> None:
    # At this uplink SH takes S1 for two choices of nine.
    chosen = parameters(strategy=strategy, fanout=9, maxlinks=14, coordinator="b0", delta=4, uplink_messages_per_s=150)
    network = Network(random_tree(Tree(30, 3), seed), tmp_path, chosen, datagrams=datagrams, seed=seed)
    rng = random.Random(seed)
    holders = topics_by_broker(network, rng, share=0.25)
    wanted = {}
    made = 0
    while made < moves:
        move = a_move(network, rng)
        if move is None:
            continue
        mover, neighbour, destination = move
        network.order(mover, "move", neighbour, destination)
        network.edges = network.edges - {frozenset((mover, neighbour))} | {frozenset((mover, destination))}
        made += 1
        for _ in range(60):
            topic = rng.randrange(8)
            wanted[network.publish(rng.choice(network.names), topic=topic)] = holders[topic]
            network.run_ms(3)
        network.run_ms(140)  # its own graces are over
        if made % 10 == 0:
            network.check_from_scratch()
    network.run_ms(300)
    network.check_deliveries(wanted)
    network.check_from_scratch()


def test_publiy_s6_the_coordinator_makes_an_overlapping_move_wait(tmp_path: Path) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(30)), tuple((f"b{n}", f"b{n + 1}") for n in range(29)))
    network = Network(overlay, tmp_path, parameters(delta=2, coordinator="b0"))
    coordinator = network.routers["b0"].desk.coordinator
    assert coordinator is not None
    network.order("b3", "move", "b4", "b5")
    network.order("b8", "move", "b7", "b6")
    network.order("b25", "move", "b26", "b27")
    network.run_ms(2)
    assert sorted(move.heart[0] for move in coordinator.active.values()) == ["b25", "b3"]
    assert [each.mover for each in coordinator.waiting] == ["b8"]
    network.run_ms(300)
    assert not coordinator.waiting
    network.run_ms(300)
    assert not coordinator.active
    network.edges -= {frozenset(("b3", "b4")), frozenset(("b8", "b7")), frozenset(("b25", "b26"))}
    network.edges |= {frozenset(("b3", "b5")), frozenset(("b8", "b6")), frozenset(("b25", "b27"))}
    network.check_from_scratch()


@pytest.mark.parametrize(
    ("neighbour", "destination", "message"),
    [
        ("b5", "b4", r"Δ-move of b9: found to leave b5; allowed: a primary neighbour \(b8, b10\)"),
        ("b8", "b2", r"found to go to b2; allowed: a broker within 4 hops behind b8 \(b7, b6, b5\)"),
        ("b8", "b11", "found to go to b11; allowed: a broker within 4 hops behind b8"),
        ("b8", "b8", "found to go to b8; allowed: a broker within 4 hops behind b8"),
    ],
)
def test_publiy_s6_a_move_outside_the_neighbourhood_is_refused(
    neighbour: str, destination: str, message: str, tmp_path: Path
) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(15)), tuple((f"b{n}", f"b{n + 1}") for n in range(14)))
    network = Network(overlay, tmp_path, parameters(coordinator="b0"))
    number = network.order("b9", "move", neighbour, destination)
    assert re.search(message, network.answers[number])
    assert [(name, *record) for name, record in network.records] == [("b9", MOVE_REFUSED, 0, destination, None)]


def phase_at_b3(network: Network, move: int, phase: int, name: str = "b3") -> None:
    """b2 passes on a phase of b0's move from b1 to b2, to b3 (or another broker), which hears of it first."""
    announced = MovePhase(move, phase, "b0", ("b1", "b2"), (), (), ())
    network.runtime.nodes[name].take_input(Received("b2", announced), network.runtime.now_us)


def state_of(network: Network, name: NodeName) -> MoveState:
    return network.routers[name].moves.state


@pytest.mark.parametrize(
    "senseless",
    [
        MovePhase(1, INIT, "b3", ("b2", "b1"), (), (), ()),
        MovePhase(1, UNDONE, "b3", ("b2", "b1"), (), (), ()),
        MovePhase(1, INIT, "b0", (), (), (), ()),
        Departed("b3", 5),
    ],
)
def test_what_only_b3_could_say_of_itself_is_refused_and_changes_nothing(senseless: Any, tmp_path: Path) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(5)), tuple((f"b{n}", f"b{n + 1}") for n in range(4)))
    network = Network(overlay, tmp_path, parameters())
    with pytest.raises(WireError):
        network.routers["b3"].handle(Received("b2", senseless), network.runtime.now_us)
    network.subscribe("b3", "x = 1")
    network.check_from_scratch()


def test_a_destination_whose_disk_is_slow_has_nothing_to_pass_on_yet(tmp_path: Path) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(5)), tuple((f"b{n}", f"b{n + 1}") for n in range(4)))
    network = Network(overlay, tmp_path, parameters())
    announced = MovePhase(1, IN_PROGRESS, "b0", ("b1", "b2"), (), (), ())
    b2, now_us = network.routers["b2"], network.runtime.now_us
    b2.handle(Received("b0", announced), now_us)
    sent = b2.handle(TimerFired(("routing", "stale", 1)), now_us)
    assert not [each for each in sent if isinstance(each, Send) and each.message == announced]
    assert b2.moves.state is MoveState.INIT


def test_a_destination_that_has_to_bring_a_move_to_its_end_says_that_it_runs(tmp_path: Path) -> None:
    """The coordinator asks it when the mover is silent. If it took the move for over, another one might begin."""
    overlay = Overlay(tuple(f"b{n}" for n in range(5)), tuple((f"b{n}", f"b{n + 1}") for n in range(4)))
    network = Network(overlay, tmp_path, parameters())
    announced = MovePhase(1, IN_PROGRESS, "b0", ("b1", "b2"), (), (), ())
    b2, now_us, asked = network.routers["b2"], network.runtime.now_us, MoveAsked(1)
    over, runs = Send("b4", MoveFinished(1)), Send("b4", MoveRuns(1, "b0", ("b1", "b2")))
    assert b2.moves.on_asked("b4", asked) == [over], "it has not heard of it"
    b2.handle(Received("b0", announced._replace(phase=INIT)), now_us)
    assert b2.moves.on_asked("b4", asked) == [over], "nothing is changed yet"
    b2.handle(Received("b0", announced), now_us)
    zone = b2.moves.zone
    assert zone is not None
    assert zone.coming is not None
    assert b2.moves.on_asked("b4", asked) == [runs], "its disk is about to have the new neighbour"
    assert zone.held is not None
    b2.moves.on_stored(zone.held)
    assert (b2.moves.state, bool(zone.awaited)) == (MoveState.IN_PROGRESS, True)
    assert b2.moves.on_asked("b4", asked) == [runs], "others have not confirmed the new tree"
    zone.awaited.clear()
    assert b2.moves.on_asked("b4", asked) == [over]


def test_a_mover_that_asks_after_a_move_that_is_past_and_was_not_made_is_told_so(tmp_path: Path) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(5)), tuple((f"b{n}", f"b{n + 1}") for n in range(4)))
    network = Network(overlay, tmp_path, parameters())
    phase_at_b3(network, 1, INIT)
    moves = network.routers["b3"].moves
    for step in (MoveStep.M_INPROG, MoveStep.M_END, MoveStep.GRACE_OVER):
        assert not moves.is_made(2, "b0")
        moves.take(step)
        assert not moves.is_made(1, "b0")
        moves.check_invariants()


def test_a_broker_that_missed_the_end_of_a_move_takes_part_in_the_next_one(tmp_path: Path) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(5)), tuple((f"b{n}", f"b{n + 1}") for n in range(4)))
    network = Network(overlay, tmp_path, parameters())
    moves = network.routers["b3"].moves
    for number in (1, 2):
        phase_at_b3(network, number, INIT)
        assert moves.zone is not None
        assert moves.zone.move == number


def test_a_broker_that_hears_no_more_of_a_move_asks_the_mover_and_forgets_it(tmp_path: Path) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(5)), tuple((f"b{n}", f"b{n + 1}") for n in range(4)))
    network = Network(overlay, tmp_path, parameters())
    phase_at_b3(network, 1, INIT)
    phase_at_b3(network, 1, INIT)  # again: it is confirmed again
    phase_at_b3(network, 1, END)  # but nobody has told it of the new tree
    assert state_of(network, "b3") is MoveState.INIT
    network.run_ms(900)
    assert state_of(network, "b3") is MoveState.OUTSIDE
    network.check_from_scratch()


def test_a_broker_asks_a_mover_that_is_gone_only_so_often(tmp_path: Path) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(7)), tuple((f"b{n}", f"b{n + 1}") for n in range(6)))
    network = Network(overlay, tmp_path, parameters(delta=2))
    phase_at_b3(network, 1, INIT, "b6")
    network.runtime.crash("b0")  # farther away than anybody tells
    network.run_ms(2_300)
    assert state_of(network, "b6") is MoveState.INIT
    network.run_ms(200)
    assert state_of(network, "b6") is MoveState.OUTSIDE
