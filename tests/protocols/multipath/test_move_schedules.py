"""Publiy section 6: moves at random times on random trees, with brokers that die and come back in the middle.

A failing test prints the seed; `python -m tests.protocols.multipath.test_move_schedules SEED` plays it again.
"""

import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from routing.multipath.move_states import MoveState
from tests.protocols.multipath.move_schedules import Run, Schedule, draw


def moves_alone(seed: int, folder: Path, moves: int = 30, begin: Callable[[Schedule, Path], Run] = Run) -> Run:
    """Moves that follow each other at random gaps, under traffic: nothing is lost or comes twice."""
    run = begin(draw(seed), folder)
    while moves:
        moves -= run.order_a_move() is not None
        run.traffic(run.rng.choice((4, 40, 100, 250, 400)))
    run.settle_moves()
    run.network.run_ms(800)
    run.network.check_deliveries(run.wanted)
    assert run.tree_as_stated() == run.network.edges
    run.network.check_from_scratch()
    return run


def moves_and_deaths(seed: int, folder: Path, moves: int = 10, begin: Callable[[Schedule, Path], Run] = Run) -> Run:
    """A broker dies in the middle of each move and comes back. Then every order is answered, all brokers agree on one
    tree, nothing is lost on it, and the coordinator waits for nobody."""
    run = begin(draw(seed), folder)
    network, rng = run.network, run.rng
    for _ in range(moves):
        move = run.begin_a_move()
        assert move is not None
        run.traffic(rng.choice((1, 2, 3, 5, 8, 12, 20, 30, 60, 100)), 1)
        victim = rng.choice((*move, "b0", rng.choice(network.names), rng.choice(network.names)))
        run.kill(victim)
        run.traffic(rng.choice((10, 100, 500, 1000)), 10)
        run.restart(victim)
        run.traffic(rng.choice((1, 30)), 10)
        run.settle_moves()
        network.run_ms(3_500)
        run.check_agreement()
    return run


def moves_and_deaths_of_two(seed: int, folder: Path, moves: int = 10) -> Run:
    """The same with two brokers of the move that die together, and come back one after the other. Others learn where a
    little later."""
    run = Run(draw(seed), folder)
    network, rng = run.network, run.rng
    for _ in range(moves):
        move = run.begin_a_move()
        assert move is not None
        victims = rng.sample(move, 2)
        run.traffic(rng.choice((1, 2, 3, 5, 8, 12, 20, 30, 60, 100)), 1)
        for victim in victims:
            run.kill(victim)
            run.traffic(rng.choice((1, 1, 1, 10)), 1)
        run.traffic(rng.choice((10, 100, 500, 1000)), 10)
        for victim in rng.sample(victims, 2):
            run.restart(victim, rng.choice((0, 20, 200)))
            run.traffic(rng.choice((1, 10, 200)), 1)
        run.settle_moves()
        network.run_ms(3_500)
        run.check_agreement()
    made, tries = run.made, 50
    while run.made == made and tries:  # of those in which two died perhaps none was made: the next one goes on
        tries -= 1
        run.order_a_move()
        run.settle_moves()
    assert run.made > made
    network.run_ms(3_500)
    run.check_agreement()
    return run


def moves_that_end_with_deaths(seed: int, folder: Path, who: Sequence[int] = (0, 1), moves: int = 3) -> None:
    """On a small tree two of a mover, the neighbour that it left and its destination die together, within milliseconds
    after the mover has made its move: nobody else tells of it then. When both are back all agree. `who`: which two."""
    rng = random.Random(f"{seed}/a move ends with deaths")
    run = Run(draw(seed, rng.randrange(6, 13)), folder)
    network = run.network
    for _ in range(moves):
        move = run.begin_a_move(tries=50)
        if move is None:  # few brokers of so small a tree can go anywhere
            return
        mover, neighbour, _ = move
        victims = [move[each] for each in who]
        tries = 600
        while neighbour in network.routers[mover].knowledge.network.peers and tries:
            network.run_ms(1)
            tries -= 1
        network.run_ms(rng.choice((0, 0, 1, 1, 2, 3, 5, 8)))
        for victim in victims:
            run.kill(victim)
        network.run_ms(rng.choice((10, 100, 500, 1000)))
        for victim in rng.sample(victims, 2):
            run.restart(victim, rng.choice((0, 20, 200)))
            network.run_ms(rng.choice((1, 10, 200)))
        run.settle_moves()
        network.run_ms(3_500)
        run.check_agreement()


def mover_leaves(seed: int, folder: Path, state: MoveState) -> None:
    """A mover dies in the middle of its move, and the coordinator with it: soon no broker is in that move any more."""
    run = Run(draw(seed), folder)
    network = run.network
    move = run.begin_a_move()
    while move is None or move[0] == "b0":
        move = run.begin_a_move()
    mover = move[0]
    moved, tries = network.routers[mover].moves, 300
    while moved.state is not state and tries:
        network.run_ms(1)
        tries -= 1
    assert moved.state is state, f"the move of {mover} never came to {state}"
    for name in (mover, "b0"):
        run.kill(name)
    network.run_ms(6 * network.parameters.move_grace_us // 1_000)
    there = {name: router for name, router in network.routers.items() if name not in run.down}
    moving = [name for name, router in there.items() if router.moves.zone is not None]
    assert not moving, f"{moving} still are in the move of {mover}, which has been dead for six graces"


@pytest.mark.parametrize("seed", [24, 27, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(28, 44))])
def test_publiy_s6_moves_at_random_times_lose_and_repeat_nothing(seed: int, tmp_path: Path) -> None:
    assert moves_alone(seed, tmp_path).made >= 10


@pytest.mark.parametrize(
    "seed", [0, 32, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (6, 14, *range(33, 70)))]
)
def test_publiy_s6_a_move_survives_a_broker_that_dies_in_its_middle(seed: int, tmp_path: Path) -> None:
    assert moves_and_deaths(seed, tmp_path).made


@pytest.mark.parametrize(
    "seed", [5, 30, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (*range(6, 24), 39, 42, 45, 53, 69, 118))]
)
def test_a_move_survives_two_of_its_brokers_that_die_together(seed: int, tmp_path: Path) -> None:
    moves_and_deaths_of_two(seed, tmp_path)


@pytest.mark.parametrize("seed", [40, 48, 173, 314, 393, 484])
def test_a_move_survives_its_mover_and_the_neighbour_that_it_left(seed: int, tmp_path: Path) -> None:
    moves_that_end_with_deaths(seed, tmp_path)


@pytest.mark.parametrize(("seed", "who"), [(0, (0, 2)), (189, (1, 2))])
def test_a_move_survives_its_destination_and_one_more(seed: int, who: tuple[int, int], tmp_path: Path) -> None:
    moves_that_end_with_deaths(seed, tmp_path, who)


@pytest.mark.parametrize("state", [MoveState.INIT, MoveState.IN_PROGRESS])
@pytest.mark.parametrize("seed", range(4))
def test_publiy_s6_a_mover_that_stays_away_is_waited_for_by_nobody(seed: int, state: MoveState, tmp_path: Path) -> None:
    """Its neighbours see that it is gone, and undo the move or bring it to its end, without a coordinator. That takes
    two graces, and not the ten after which a broker asks a mover of which it has heard nothing."""
    mover_leaves(seed, tmp_path, state)


def test_schedules_are_drawn_from_their_seed_alone() -> None:
    random.seed(1)
    assert draw(5) == draw(5)
    assert draw(5) != draw(6)


if __name__ == "__main__":
    for play in (moves_alone, moves_and_deaths, moves_and_deaths_of_two):
        print(play.__name__, play(int(sys.argv[1]), Path(tempfile.mkdtemp())).made)
