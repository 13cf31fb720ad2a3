"""The runs of a reproduction: what its folder keeps of them, and how the others are carried out.

`runs.jsonl` in the folder has one line for each finished run: what was to be run and what came out, as JSON. With the
same folder a reproduction goes on where it was. A run whose description has changed since is another run; a line that
cannot be read, of an interrupted write or of another version, counts as not there.

Runs in virtual time are Ray tasks, each in a process of its own, so that a run may measure its process. A live run
starts actors of its own and wants the whole host or cluster: live runs are played by this process, one by one.
"""

import contextlib
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from murmur_pubsub.errors import RunError
from murmur_pubsub.progress import Progress
from murmuration.sweeps.kept_lines import keep_lines, kept_lines
from murmuration.sweeps.tasks import Cores, ends_of_tasks

_Point = TypeVar("_Point", bound=Hashable)
_Result = TypeVar("_Result")
_FAILURES_TOLD = 5


class PaperRuns:
    """The runs of one reproduction in its folder, which exists."""

    def __init__(self, folder: Path, progress: Progress, cores: Cores | None = None) -> None:
        self.folder = folder
        self._progress = progress
        self._cores = cores or Cores()

    def spread(
        self,
        function: Callable[[_Point], _Result],
        points: Iterable[_Point],
        result_type: Callable[[_Point], Any],
    ) -> dict[_Point, _Result]:
        """The function's result for each point, in virtual time. The function is found by its name in its module;
        `result_type`: what a point's result is read back as. Raises `RunError` for runs that failed, once all others
        are done."""
        return self._carry_out("runs", points, result_type, lambda waiting: self._as_tasks(function, waiting))

    def one_by_one(
        self,
        function: Callable[[_Point, str | None], _Result],
        points: Iterable[_Point],
        result_type: Callable[[_Point], Any],
    ) -> dict[_Point, _Result]:
        """The same for live runs; the function is also given the address of the cluster, if there is one."""

        def played(waiting: Sequence[_Point]) -> Iterator[tuple[_Point, _Result]]:
            for point in waiting:
                yield point, function(point, self._cores.address)

        return self._carry_out("live runs", points, result_type, played)

    def _carry_out(
        self,
        words: str,
        points: Iterable[_Point],
        result_type: Callable[[_Point], Any],
        play: Callable[[Sequence[_Point]], Iterator[tuple[_Point, _Result]]],
    ) -> dict[_Point, _Result]:
        """Of each point the result that is kept, or that comes of playing it now; each point is played once."""
        wanted = list(dict.fromkeys(points))
        path = self.folder / "runs.jsonl"
        found = read_kept(path, wanted, result_type)
        waiting = [point for point in wanted if point not in found]
        if waiting:
            self._progress(words, len(found), len(wanted))
            for point, result in play(waiting):
                keep_lines(path, [{"point": to_jsonable_python(point), "result": to_jsonable_python(result)}])
                found[point] = result
                self._progress(words, len(found), len(wanted))
        return {point: found[point] for point in wanted}

    def _as_tasks(
        self, function: Callable[[_Point], _Result], waiting: Sequence[_Point]
    ) -> Iterator[tuple[_Point, _Result]]:
        failures: list[str] = []
        ends = ends_of_tasks(
            f"{function.__module__}:{function.__qualname__}",
            enumerate(waiting),
            self._cores,
            self.folder,
            begun=lambda: None,
            own_process=True,
        )
        with contextlib.closing(ends):
            for end in ends:
                if end.failure is None:
                    yield waiting[end.key], end.result
                else:
                    failures.append(f"{waiting[end.key]}: {end.failure}")
        if failures:
            told = "\n".join(failures[:_FAILURES_TOLD])
            raise RunError(f"{len(failures)} of {len(waiting)} runs failed; the others are kept\n{told}")


def read_kept(path: Path, points: Sequence[_Point], result_type: Callable[[_Point], Any]) -> dict[_Point, Any]:
    """What the file keeps of these points."""
    by_text = {_text(to_jsonable_python(point)): point for point in points}
    found: dict[_Point, Any] = {}
    for kept in kept_lines(path):
        try:
            point = by_text.get(_text(kept["point"]))
            if point is not None:
                found[point] = TypeAdapter(result_type(point)).validate_python(kept["result"])
        except (KeyError, TypeError, ValidationError):
            continue
    return found


def _text(point: Any) -> str:
    """The same for points that are equal, also where one says 60 and the other 60.0."""
    return json.dumps(_plain(point), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
