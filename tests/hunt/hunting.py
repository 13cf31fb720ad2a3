"""A hunt in this process, for tests: chunks one after the other, as the tasks would play them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actors.sweep_tasks import TaskEnd
from murmuration.hunt.chunk import Quarry, play_chunk
from murmuration.hunt.folder import HuntFolder
from murmuration.hunt.hunt import Hunt, HuntLimits, Work

HASTY = "tests.protocols.gryphon.planted_bugs:HastyHorizon"


def here(work: Work) -> Iterator[TaskEnd]:
    """The ends of these chunks, played here."""
    for key in work:
        yield TaskEnd(key, play_chunk(work[key]))


def lost(work: Work) -> Iterator[TaskEnd]:
    """No chunk comes back."""
    for key in work:
        yield TaskEnd(key, failure="its process died")


def hunt(folder: Path, schedules: int, *quarries: Quarry, **options: Any) -> Hunt:
    """A hunt that ends after so many schedules."""
    wanted = quarries or (Quarry("forwarding", "best_effort"),)
    return Hunt(wanted, HuntFolder(folder), HuntLimits(schedules=schedules), seed=7, **options)


def silent(*_: object) -> None:
    """Says nothing."""
