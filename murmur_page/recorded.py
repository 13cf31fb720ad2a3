"""A run that is over, or as far as it has come, as the data of a page: its head and a bounded number of frames."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from murmur_page.counted_rows import counted_rows
from murmur_page.frame import Frame, KeptFrames
from murmur_page.head import head_of
from murmur_page.journal_tail import NEVER_US, JournalTail, last_row_us
from murmur_page.observer import Observer
from murmur_pubsub.errors import InputError
from murmur_pubsub.run_manifest import RunManifest, read_manifest
from murmur_pubsub.verdict_file import read_verdict

_FRAMES_MAX, _FRAMES_MAX_IN_FILE = 600, 400
_FRAMES_MIN = 60
_CHANGES_MAX, _CHANGES_MAX_IN_FILE = 60_000, 24_000
"""About how many numbers of links and brokers all frames together may hold."""


def frames_max(manifest: RunManifest, in_file: bool = False) -> int:
    """How many frames are kept of a run of that size; `in_file`: in a file that is to be small."""
    brokers = len(manifest.brokers)
    frames, changes = (_FRAMES_MAX_IN_FILE, _CHANGES_MAX_IN_FILE) if in_file else (_FRAMES_MAX, _CHANGES_MAX)
    return max(_FRAMES_MIN, min(frames, changes // (3 * max(1, brokers))))


def journal_folder(run: Path, manifest: RunManifest) -> Path:
    """Where the journal lies; raises `InputError` if it is not in a folder here."""
    if manifest.journal is not None:
        raise InputError(str(run), f"a journal at {manifest.journal}", "a run whose journal is in its own folder")
    return run / "journal"


def frames_of(run: Path, manifest: RunManifest, most: int) -> list[Frame]:
    """The frames of all that is in the journal now, at most so many."""
    folder = journal_folder(run, manifest)
    last_us = last_row_us(folder)
    kept = KeptFrames(most)
    for frame in _frames(folder, manifest, max(1, -(-last_us // most)), last_us):
        kept.add(frame)
    return kept.frames


def recorded(run: Path, in_file: bool = True) -> dict[str, Any]:
    """The data of a page about the run, which is a file or served; raises `InputError` for a folder that is none, or
    whose journal is damaged."""
    manifest = read_manifest(run)
    frames = frames_of(run, manifest, frames_max(manifest, in_file))
    return {"head": head_of(run, manifest), "frames": [frame.plain() for frame in frames]} | judged(run)


def judged(run: Path) -> dict[str, Any]:
    """The verdict, if the run has been judged."""
    verdict = read_verdict(run)
    return {} if verdict is None else {"verdict": verdict}


def _frames(folder: Path, manifest: RunManifest, width_us: int, last_us: int) -> Iterator[Frame]:
    tail, observer = JournalTail(folder), Observer(manifest)
    try:
        for begin_us in range(-1, last_us, width_us):
            end_us = min(begin_us + width_us, last_us)
            rows = tail.until(NEVER_US if end_us == last_us else end_us)
            frame = observer.frame(counted_rows(rows, len(manifest.nodes)), begin_us, end_us)
            if not frame.empty or end_us == last_us:
                yield frame
    finally:
        tail.close()
