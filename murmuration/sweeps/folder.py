"""The folder of a sweep: what of it is done, so that a sweep that was cut short goes on where it stopped.

`sweep.json` says which runs the sweep is made of; `runs/0007` is a run that was played to its end, `points/0007.json`
one that was judged. Both appear whole or not at all: they are made under another name and then renamed.
"""

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.json_file import read_json, taken_apart
from murmur_pubsub.progress import Progress
from murmur_pubsub.whole_files import DRAFT, whole
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from murmuration.sweeps.plan import SweepPlan, SweepPoint
from murmuration.version import own_version

RECORDED = "a point as the sweep wrote it, or no such file"
_BEGUN = "the sweep that was begun there, or a new folder (--out)"


class SweepFolder:
    """The folder of one sweep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.points = folder / "points"

    @contextmanager
    def opened(self, plan: SweepPlan) -> Iterator[None]:
        """The folder, for this sweep and this process alone; raises `InputError` if it cannot be had."""
        with held_folder(self.folder, (self.runs, self.points), "sweep"):
            self._claim(plan)
            yield

    def name(self, point: SweepPoint) -> str:
        """By which a point's files are found."""
        return f"{point.number:04d}"

    def path(self, point: SweepPoint) -> Path:
        """Where what is known of a judged point is kept."""
        return self.points / f"{self.name(point)}.json"

    def is_played(self, point: SweepPoint) -> bool:
        """Is there a whole run of the point?"""
        return (self.runs / self.name(point)).is_dir()

    def record(self, point: SweepPoint) -> dict[str, Any] | None:
        """What was written of a judged point, or None; raises `InputError` for a file that is none."""
        try:
            return read_json(self.path(point), RECORDED)
        except FileNotFoundError:
            return None

    def write_record(self, point: SweepPoint, record: dict[str, Any]) -> None:
        """Keep what is known of a judged point."""
        write_whole(self.path(point), json.dumps(record, indent=1) + "\n")

    def forget_run(self, point: SweepPoint) -> None:
        """Remove the run of a point."""
        _discard(self.runs / self.name(point))

    def work(self, point: SweepPoint, judged: bool = False) -> dict[str, Any]:
        """What `play_point` is to do for this point; `judged`: and the judge in plain Python after it."""
        run = str(self.runs / self.name(point))
        return {"scenario": dict(point.scenario), "point": str(point), "run": run, "judged": judged}

    def _claim(self, plan: SweepPlan) -> None:
        """See that the folder is this sweep's, or make it so, and clear away what was not finished."""
        known = {
            "format": "murmur-sweep",
            "schema_version": 1,
            "version": own_version(),
            "name": plan.name,
            "points": [{"number": point.number, "point": str(point), "digest": point.digest} for point in plan.points],
        }
        path = self.folder / "sweep.json"
        if path.exists():
            there = read_json(path, _BEGUN)
            with taken_apart(path, _BEGUN):
                found = _difference(there, known)
            if found is not None:
                raise InputError(str(path), found, _BEGUN)
        else:
            write_whole(path, json.dumps(known, indent=1) + "\n")
        if not (self.folder / "sweep.yaml").exists():
            write_whole(self.folder / "sweep.yaml", plan.text)
        for left in [*self.runs.glob(".*"), *self.points.glob(".*")]:
            _discard(left)


@contextmanager
def held_folder(folder: Path, rooms: Sequence[Path], what: str) -> Iterator[None]:
    """The folder and those in it, made if need be, for this process alone; raises `InputError` if it cannot be had, or
    has other things in it and no `sweep.json`, if `what` is a sweep: what is written would go over them."""
    try:
        others = [] if (folder / f"{what}.json").exists() else _begun_by_others(folder)
        if others:
            found = f"{', '.join(others[:3])}{', …' if others[3:] else ''}, and no {what}.json"
            raise InputError(str(folder), found, f"the folder of a {what}, or a new one (--out)")
        for each in (folder, *rooms):
            each.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise InputError(str(folder), str(error), "a folder that can be written (--out)") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(str(folder), f"a {what} that is writing in it", f"one {what} at a time") from None
        yield


def play_point(
    work: dict[str, Any], progress: Progress = lambda *_: None, address: str | None = None
) -> dict[str, Any] | None:
    """Play one run, unless it is there already; if asked, what the judge in plain Python says of it and measures.

    The function that runs as a task, on any host that sees the folder. A live run is played on the cluster at the
    address, or on this host.
    """
    run = Path(work["run"])
    if not run.is_dir():
        draft = run.with_name(f"{DRAFT}{run.name}-{secrets.token_hex(4)}")
        execute(check_scenario(work["scenario"], work["point"]), draft, progress, address)
        try:
            draft.rename(run)
        except OSError:
            if not run.is_dir():
                raise
            shutil.rmtree(draft)  # a task of a sweep that was killed was still there, and has played the same run
    if not work["judged"]:
        return None
    from spark_analysis.key_figures import judge_and_measure

    verdict, figures = judge_and_measure(run)
    return {"judge": "plain", "verdict": verdict, "figures": figures}


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there whole, on the disk, or as it was before; raises `DiskError`."""
    with whole(path) as draft, draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _begun_by_others(folder: Path) -> list[str]:
    """What is in the folder, other than what is there before the file that says whose it is."""
    there = sorted(folder.iterdir()) if folder.exists() else ()
    return [
        each.name
        for each in there
        if each.name != "lock" and not each.name.startswith(DRAFT) and not (each.is_dir() and not any(each.iterdir()))
    ]


def _discard(path: Path) -> None:
    """Remove a file or folder. A folder goes under another name first: it must not be taken for whole meanwhile."""
    if path.is_dir():
        discarded = path.with_name(f".discarded-{path.name}-{secrets.token_hex(4)}")
        path.rename(discarded)
        shutil.rmtree(discarded, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _difference(there: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """In words, what is another sweep about the one that is there."""
    if there == wanted:
        return None
    if there.get("version") != wanted["version"]:
        return f"a sweep of murmur {there.get('version')}, this is {wanted['version']}"
    before, now = there.get("points", []), wanted["points"]
    for old, new in zip(before, now, strict=False):
        if old != new:
            what = f"{old['point']}, now {new['point']}" if old["point"] != new["point"] else f"{old['point']}"
            other = "another point" if old["point"] != new["point"] else "another scenario at the point"
            return f"a sweep with {other} {old['number']}: {what}"
    return f"a sweep of {len(before)} points named {there.get('name')}, now {len(now)} named {wanted['name']}"
