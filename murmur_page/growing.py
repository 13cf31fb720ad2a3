"""A run that goes on: new frames at each look, and all that was kept so far for whoever joins."""

from pathlib import Path
from typing import Any

import numpy as np

from murmur_page.counted_rows import counted_rows
from murmur_page.frame import Frame, KeptFrames
from murmur_page.head import head_of
from murmur_page.journal_tail import JournalTail
from murmur_page.observer import Observer
from murmur_page.recorded import frames_max, journal_folder
from murmur_pubsub.run_manifest import read_manifest

_FINEST_US = 100_000
"""No frame is narrower than that, so that a run of which much is read at once has not too many."""


class GrowingRun:
    """Follows the run in a folder. Raises `InputError` for a folder that is none, or whose journal is damaged."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.manifest = read_manifest(run)
        self._tail = JournalTail(journal_folder(run, self.manifest))
        self._observer = Observer(self.manifest)
        self._kept = KeptFrames(frames_max(self.manifest))
        self._end_us = -1

    @property
    def over(self) -> bool:
        """Has the run ended, as its manifest says?"""
        return self.manifest.status != "running"

    def look(self) -> list[dict[str, Any]]:
        """The frames of what has been written since the last look."""
        rows = self._tail.until()
        # Read after the rows: a fault is entered before its row is written, so that its row finds it there.
        self.manifest = self._observer.manifest = read_manifest(self.run)
        if not len(rows):
            return []
        plain = []
        for frame in self._frames(rows):
            if not frame.empty:
                plain.append(frame.plain())
                self._kept.add(frame)
        return plain

    def snapshot(self) -> dict[str, Any]:
        """The data of a page that joins now."""
        return {"head": head_of(self.run, self.manifest), "frames": [frame.plain() for frame in self._kept.frames]}

    def close(self) -> None:
        """Let go of the journal."""
        self._tail.close()

    def _frames(self, rows: np.ndarray) -> list[Frame]:
        """Frames about as wide as those that are kept. Rows that come late are in the first."""
        last_us = int(rows["time_us"][-1])
        first_us = max(self._end_us, int(rows["time_us"][0]) - 1)
        finest_us = (last_us - first_us) // frames_max(self.manifest)
        width_us = max(_FINEST_US, self._kept.width_us, finest_us)
        frames, begin = [], 0
        while begin < len(rows):
            end_us = min(last_us, max(int(rows["time_us"][begin]), first_us) + width_us)
            end = int(np.searchsorted(rows["time_us"], end_us, "right"))
            end_us = max(end_us, self._end_us + 1)
            counted = counted_rows(rows[begin:end], len(self.manifest.nodes))
            frames.append(self._observer.frame(counted, self._end_us, end_us))
            self._end_us, first_us, begin = end_us, end_us, end
        return frames
