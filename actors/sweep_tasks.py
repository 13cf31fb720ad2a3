"""A plain function of many pieces of work, as Ray tasks on all hosts of a cluster.

As many tasks are under way at any time as there are workers: the next is submitted before a result is handed on, so
that the caller may take its time over a result. Nothing is tried twice: a task whose process died is reported, and its
piece of work can be done again by a caller that knows what it left behind.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from actors.ray_session import RaySession, words_of
from actors.search_path import extend_search_path, own_search_path
from murmur_pubsub.deployment import object_at
from murmur_pubsub.errors import InputError

_LOOK_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """How one piece of work ended: with a result, or with a failure in words."""

    key: Any
    result: Any = None
    failure: str | None = None


def check_workers(workers: int | None) -> int:
    """How many tasks may run at once, by default one for each core of the cluster; Ray must be initialised.

    Raises `InputError` for more than there are cores.
    """
    cores = int(ray.cluster_resources().get("CPU", 0))
    if workers is not None and not 1 <= workers <= cores:
        raise InputError("--workers", str(workers), f"1 to {cores}, the cores there are")
    return workers or cores


def tasks_as_they_finish(
    session: RaySession,
    function: str,
    work: Iterable[tuple[Any, Any] | None],
    workers: int,
    own_process: bool = False,
) -> Iterator[TaskEnd]:
    """Apply the function at the dotted path ("module:name") to every piece of work; the ends in the order in which
    they come. `work`: pieces by their keys, each asked for when it can be submitted; None is no piece, but there may be
    one when another has ended. `own_process`: a process does one piece and ends, so that a piece may measure its
    process. Raises `RunError` if Ray is lost. What is under way when the caller takes no more ends with the session: to
    cancel it is to risk that Ray aborts this process, if a result comes meanwhile."""
    calls_max = 1 if own_process else 0  # 0: a process goes on to the next piece
    options = {"num_cpus": 1, "max_retries": 0, "max_calls": calls_max, "scheduling_strategy": "SPREAD"}
    remote = ray.remote(**options)(_apply)
    pieces = iter(work)
    under_way: dict[Any, Any] = {}
    search_path = own_search_path()

    def submit() -> None:
        while len(under_way) < workers:
            following = next(pieces, None)
            if following is None:
                return
            key, piece = following
            under_way[remote.remote(function, piece, search_path)] = key

    submit()
    while under_way:
        ready, _ = ray.wait(list(under_way), num_returns=1, timeout=_LOOK_EVERY_S)
        session.check()
        if not ready:
            continue
        (finished,) = ready
        key = under_way.pop(finished)
        submit()
        try:
            yield TaskEnd(key, ray.get(finished))
        except ray.exceptions.RayError as error:
            yield TaskEnd(key, failure=words_of(error))
        submit()  # what the result has brought


def _apply(function: str, work: Any, search_path: Sequence[str]) -> Any:
    extend_search_path(search_path)
    return object_at(function, "sweep")(work)
