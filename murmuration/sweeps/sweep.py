"""`murmur sweep`: many runs of one scenario, played as Ray tasks or one by one, and judged as they finish.

Each point in virtual time is a task on any core of any host. A live run starts actors of its own and wants the whole
host or cluster: live points are played by this process, one after another, when all tasks have ended. Spark judges in
one session of this process while tasks go on: a session for each point would cost more than most runs. The judge in
plain Python judges where the point was played. A point is done when its record is written. Its run is removed then,
unless its verdict is not `valid` or all are to be kept.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.json_file import check_keys, taken_apart
from murmur_pubsub.progress import Progress
from murmur_pubsub.run_manifest import read_manifest
from murmur_pubsub.verdict_file import TOLD_COUNTS, TableVerdict
from murmuration.sweeps.folder import RECORDED, SweepFolder, play_point
from murmuration.sweeps.plan import SweepPlan, SweepPoint, plain
from murmuration.sweeps.tasks import Cores, ends_of_tasks
from spark_analysis.key_figures import KEY_FIGURES

_PLAY = "murmuration.sweeps.folder:play_point"
_End = tuple[SweepPoint, Mapping[str, Any] | None, str | None]
"""A point, what plain Python judged if it did, and why there is no run of it if there is none."""


@dataclass(frozen=True, slots=True)
class _Record:
    """What has to stand in the record of a judged point, beside its verdict and what says which point it is."""

    judge: Literal["spark", "plain"]
    figures: Mapping[str, float | None]
    wall_seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How a sweep is carried out. `judge` None only plays; `keep_runs` keeps the journal of every run."""

    cores: Cores = field(default_factory=Cores)
    judge: Literal["spark", "plain"] | None = "spark"
    keep_runs: bool = False


@dataclass(frozen=True, slots=True)
class SweepEnd:
    """`kept`: points that were done before; `failed`: (point, why) of those that could not be played."""

    kept: int
    done: int
    failed: Sequence[tuple[SweepPoint, str]]


class SweepRun:
    """One sweep in its folder, begun or gone on with."""

    def __init__(self, plan: SweepPlan, folder: Path, options: SweepOptions) -> None:
        self._plan = plan
        self._folder = SweepFolder(folder)
        self._options = options

    def run(self, progress: Progress) -> SweepEnd:
        """Do what is missing; raises `InputError` before anything starts, `RunError` if Ray is lost."""
        with self._folder.opened(self._plan), contextlib.ExitStack() as stack:
            open_points = [point for point in self._plan.points if not self._is_done(point)]
            kept = len(self._plan.points) - len(open_points)
            if not open_points:
                return SweepEnd(kept, 0, ())
            if self._options.judge == "spark":
                from spark_analysis.session import start_session

                progress("starting Spark", 0, 0)
                stack.callback(start_session(small=True).stop)
            failed: list[tuple[SweepPoint, str]] = []
            done = 0
            for point, judged, failure in self._ends(open_points, stack, progress):
                if failure is not None:
                    failed.append((point, failure))
                elif self._options.judge is not None:
                    self._record(point, self._judged_by_spark(point) if judged is None else judged)
                done += failure is None
                progress("points", done + len(failed), len(open_points))
            return SweepEnd(kept, done, failed)

    def table(self) -> pd.DataFrame:
        """One row for each judged point: its number, parameters, seed, verdict, counts and figures."""
        table = pd.DataFrame([row for point in self._plan.points if (row := self._row(point)) is not None])
        for key in self._plan.keys:
            if table[key].dtype == object:  # of several kinds, such as null beside numbers
                table[key] = table[key].map(plain)
        return table

    def _is_done(self, point: SweepPoint) -> bool:
        if self._row(point) is not None:
            return True
        return self._options.judge is None and self._folder.is_played(point)

    def _row(self, point: SweepPoint) -> dict[str, Any] | None:
        """Of the table, if the point was judged."""
        record = self._folder.record(point)
        if record is None:
            return None
        path = self._folder.path(point)
        with taken_apart(path, RECORDED):
            check_keys(_Record, record, path)
            check_keys(TableVerdict, record["verdict"], path)
            return _row(point, record)

    def _ends(self, points: Sequence[SweepPoint], stack: contextlib.ExitStack, progress: Progress) -> Iterator[_End]:
        """Each point once there is a whole run of it, and if plain Python judges once that has."""
        plainly = self._options.judge == "plain"
        waiting = {point.number: point for point in points if plainly or not self._folder.is_played(point)}
        for point in points:
            if point.number not in waiting:
                yield point, None, None
        work = {number: self._folder.work(point, plainly) for number, point in waiting.items()}
        tasks = {number: each for number, each in work.items() if not waiting[number].live}
        if tasks:
            progress("starting Ray", 0, 0)
            begun = functools.partial(progress, "points", len(points) - len(waiting), len(points))
            ends = ends_of_tasks(_PLAY, tasks.items(), self._options.cores, self._folder.runs, begun, shared=True)
            for end in stack.enter_context(contextlib.closing(ends)):
                yield waiting[end.key], end.result, end.failure
        for number, point in waiting.items():
            if point.live:
                try:
                    yield point, play_point(work[number], progress, self._options.cores.address), None
                except (InputError, RunError) as error:
                    yield point, None, str(error)

    def _judged_by_spark(self, point: SweepPoint) -> Mapping[str, Any]:
        from spark_analysis.main import judge_and_measure

        verdict, figures = judge_and_measure(self._folder.runs / self._folder.name(point))
        return {"judge": "spark", "verdict": verdict, "figures": figures}

    def _record(self, point: SweepPoint, judged: Mapping[str, Any]) -> None:
        manifest = read_manifest(self._folder.runs / self._folder.name(point))
        record = {
            "point": point.number,
            "parameters": dict(point.parameters),
            "seed": point.seed,
            **judged,
            "wall_seconds": dict(manifest.wall_seconds),
        }
        self._folder.write_record(point, record)
        if judged["verdict"]["verdict"] == "valid" and not self._options.keep_runs:
            self._folder.forget_run(point)


def _row(point: SweepPoint, record: dict[str, Any]) -> dict[str, Any]:
    """A point and its record as a row of the table; times in microseconds, parameters that are no plain values as
    text."""
    verdict = record["verdict"]
    figures = {name: None if (found := record["figures"][name]) is None else float(found) for name in KEY_FIGURES}
    required, published = verdict["required"], verdict["published"]
    messages, sent_bytes = figures["messages"], figures["message_bytes"]
    parameters = {
        key: value if isinstance(value, int | float | str) else plain(value) for key, value in point.parameters.items()
    }
    return (
        {"point": point.number}
        | parameters
        | {"seed": point.seed, "verdict": verdict["verdict"], "judge": record["judge"]}
        | {name: verdict[name] for name in TOLD_COUNTS}
        | {
            "delivery_rate": (required - verdict["missing"]) / required if required else None,
            "delay_p50_us": figures["delay_p50_us"],
            "delay_p99_us": figures["delay_p99_us"],
            "hops": figures["hops"],
            "yield": figures["yield"],
            "messages_per_publication": None if messages is None or not published else messages / published,
            "bytes_per_publication": None if sent_bytes is None or not published else sent_bytes / published,
            "wall_s": float(sum(record["wall_seconds"].values())),
            "reason": verdict["reason"],
        }
    )
