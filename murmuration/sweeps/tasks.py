"""Pieces of work spread over all cores of this host or of a cluster, as Ray tasks: runs of sweeps and of papers."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murmur_pubsub.errors import InputError

if TYPE_CHECKING:
    from actors.sweep_tasks import TaskEnd


@dataclass(frozen=True, slots=True)
class Cores:
    """Where tasks run. Raises `InputError` for less than one worker."""

    workers: int | None = None
    """How many tasks at once (None: one for each core)."""
    address: str | None = None
    """HOST:PORT of a Ray cluster (None: this host alone)."""

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError("--workers", str(self.workers), "1 or more")


def ends_of_tasks(
    function: str,
    work: Iterable[tuple[Any, Any] | None],
    cores: Cores,
    folder: Path,
    begun: Callable[[], None],
    shared: bool = False,
    own_process: bool = False,
) -> "Generator[TaskEnd, None, None]":
    """Apply the function at the dotted path to each piece of work, in a Ray session of its own; the ends as they come.

    `work`: pieces by their keys, and None where there is none before something has come back. `begun` is called when
    Ray is up; `shared`: every host has to see the folder; `own_process`: no two tasks run in the same process. Raises
    `InputError` if there cannot be that many workers or such a cluster, `RunError` if Ray is lost. Closing the iterator
    ends all tasks.
    """
    from actors.joining import hosts_at
    from actors.ray_session import ray_session
    from actors.sweep_tasks import check_workers, tasks_as_they_finish

    if cores.address is not None:
        hosts_at(cores.address, folder, shared=shared)
    with ray_session(cores.workers or 1, cores.address) as session:
        workers = check_workers(cores.workers)
        begun()
        yield from tasks_as_they_finish(session, function, work, workers, own_process)
