"""Pieces of work as Ray tasks: what a process keeps between two of them."""

import gc
import weakref

import pytest

from actors.ray_session import RaySession
from actors.sweep_tasks import TaskEnd, tasks_as_they_finish


class Circle:
    """Knows itself, as the machines of a run know each other."""

    def __init__(self) -> None:
        self.me = self


made: "weakref.WeakSet[Circle]" = weakref.WeakSet()


def circles_before(more: int) -> int:
    """Make so many, with a collector that looks as rarely as a run has it look; how many earlier ones are left."""
    gc.set_threshold(100_000, 50, 100)
    before = len(made)
    for _ in range(more):
        made.add(Circle())
    return before


@pytest.mark.ray
def test_a_process_keeps_nothing_of_the_pieces_before(live_ray: RaySession) -> None:
    work = ((number, 50) for number in range(4))
    ends = list(tasks_as_they_finish(live_ray, f"{__name__}:circles_before", work, workers=1))
    assert ends == [TaskEnd(number, 0) for number in range(4)]
