"""What a person sees while something long is under way: a count and the time left, on a terminal or in a log."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

_LOG_EVERY_S = 5.0


class RunProgress:
    """Shows the steps of something long; on a terminal as bars, elsewhere as a line every few seconds."""

    def __init__(self, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._progress = Progress(
            TextColumn("{task.description:<18}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=quiet or not sys.stderr.isatty(),
        )
        self._task: TaskID | None = None
        self._shown = ""
        self._done_before = 0
        self._began = self._logged = time.monotonic()

    def __enter__(self) -> "RunProgress":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def step(self, words: str, done: int, total: int) -> None:
        """Something called `words` has got so far; a total of 0 means that it is not known."""
        now = time.monotonic()
        new = words != self._shown
        if new:
            self._shown, self._began, self._logged = words, now, 0.0
            self._done_before = done  # what was there already says nothing of how fast it goes
            self._task = self._progress.add_task(words, completed=done, total=total or None)
        if self._task is not None:
            self._progress.update(self._task, completed=done, total=total or None)
        if self._progress.disable and (new or now - self._logged >= _LOG_EVERY_S):
            self._logged = now
            count = f" {done:,} of {total:,}" if total else ""
            fresh = done - self._done_before
            left = f", {(now - self._began) * (total - done) / fresh:.0f} s left" if fresh > 0 and total else ""
            self._console.print(f"{words}{count}{left}", highlight=False)
