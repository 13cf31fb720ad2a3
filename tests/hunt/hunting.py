"""A hunt in this process, for tests: chunks one after the other, as the tasks would play them."""

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from actors.sweep_tasks import TaskEnd
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.folder import HuntFolder
from murmuration.hunt.hunt import Hunt, HuntLimits, Work
from murmuration.hunt.shrink_tasks import play_piece

HASTY = "tests.protocols.gryphon.planted_bugs:HastyHorizon"
ENOUGH_S = 1_000.0
"""To make a schedule small until nothing can be left out, on cores that have much else to do."""


def here(work: Work) -> Iterator[TaskEnd]:
    """The ends of these pieces, played here."""
    return played_by(play_piece, work)


def played_by(function: Callable[[Any], Any], work: Iterable[tuple[Any, Any] | None]) -> Iterator[TaskEnd]:
    """The same of any function. One that is none means that all is over: nothing is under way here."""
    for piece in work:
        if piece is None:
            return
        yield TaskEnd(piece[0], function(piece[1]))


def played_at_once(function: Callable[[Any], Any], work: Iterable[tuple[Any, Any] | None]) -> Iterator[TaskEnd]:
    """As tasks on six cores might end: up to six pieces are under way, and any of them is the next to end."""
    rng, pieces = random.Random(5), iter(work)
    under_way: list[tuple[Any, Any]] = []

    def submit() -> None:
        while len(under_way) < 6 and (piece := next(pieces, None)) is not None:
            under_way.append(piece)

    submit()
    while under_way:
        key, piece = under_way.pop(rng.randrange(len(under_way)))
        yield TaskEnd(key, function(piece))
        submit()


def lost(work: Work) -> Iterator[TaskEnd]:
    """No chunk comes back."""
    for piece in work:
        if piece is None:
            return
        yield TaskEnd(piece[0], failure="its process died")


def hunt(folder: Path, schedules: int, *quarries: Quarry, seed: int = 7, **options: Any) -> Hunt:
    """A hunt that ends after so many schedules."""
    wanted = quarries or (Quarry("forwarding", "best_effort"),)
    return Hunt(wanted, HuntFolder(folder), HuntLimits(schedules=schedules), seed=seed, **options)


def silent(*_: object) -> None:
    """Says nothing."""
