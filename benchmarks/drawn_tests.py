"""Tests that draw what they do from a seed, and say what is wrong: for promises that schedules seldom meet.

`python -m benchmarks.drawn_tests NAME SEED` plays one and exits with 1 if it finds something wrong.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from routing.multipath.move_states import MoveState
from tests.protocols.epidemic import mended_trees
from tests.protocols.multipath.test_lost_words import words_are_lost
from tests.protocols.multipath.test_move_schedules import mover_leaves, moves_alone, moves_that_end_with_deaths
from tests.protocols.structured_chaos import Chaos, changing_filters
from tests.protocols.vinifera.test_later_profiles import changing_profiles
from tests.protocols.vinifera.test_overlay import two_move_to_one_identifier
from tests.protocols.vinifera.test_overtaken import (
    events_beside_moves,
    events_of_two_that_jump,
    moves_beside_heartbeats,
)

DRAWN: Mapping[str, Callable[[int, Path], object]] = {
    "mended trees": mended_trees.play,
    "moves": moves_alone,
    "moves that end with two deaths": moves_that_end_with_deaths,
    "movers that leave": lambda seed, folder: mover_leaves(seed, folder, MoveState.INIT),
    "moves to a destination that dies": lambda seed, folder: moves_that_end_with_deaths(seed, folder, (1, 2)),
    "witnesses' words that are lost": words_are_lost,
    "chaos of scribe": lambda seed, _: Chaos("scribe", seed).play(),
    "chaos of rpf, crowded": lambda seed, _: Chaos("rpf", seed, crowded=True).play(),
    "two nodes that move to one identifier": two_move_to_one_identifier,
    "moves beside heartbeats": moves_beside_heartbeats,
    "events beside moves": events_beside_moves,
    "events of two that jump": lambda seed, folder: events_of_two_that_jump(seed, folder, "tree"),
    "changing profiles": changing_profiles,
    "changing filters of irbr": lambda seed, _: changing_filters(seed),
}


def wrong_in(name: str, seed: int) -> str:
    """What that test finds wrong with that seed, in a line; nothing if it passes."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            DRAWN[name](seed, Path(folder))
        except Exception as error:  # whatever a protocol raises is a finding
            said = str(error).strip().partition("\n")[0]
            return f"{type(error).__name__}: {said}"
    return ""


if __name__ == "__main__":
    sys.exit(wrong_in(sys.argv[1], int(sys.argv[2])) or 0)
