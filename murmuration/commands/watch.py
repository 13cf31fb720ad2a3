"""What `--watch` adds to a run: its live page, on which hands may be laid, until it is interrupted."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from murmuration.live.background import page_server
from murmuration.runs.hands import Hands

_INTERRUPTED = 130
"""The exit code of a run that was interrupted."""
_LOOK_S = 0.2
"""So long an interrupt may take at most to be seen."""


@contextlib.contextmanager
def watching(folder: Path) -> Iterator[Callable[[Hands], None]]:
    """Serve the run that is played in the block; what is given takes its hands, once its folder is there. A virtual
    run waits for a page to let its time pass. When the run has ended by itself, the page stays until an interrupt."""
    begun = False
    with page_server(folder) as server:

        def watched(hands: Hands) -> None:
            nonlocal begun
            begun = True
            hands.paused = hands.runtime == "virtual"
            server.let_steer(folder, hands)
            waits = "; its time stands still until the page lets it pass" if hands.paused else ""
            print(f"{server.link(folder)}\n(the live page{waits})", file=sys.stderr, flush=True)

        try:
            yield watched
        except BaseException as error:
            _stay(begun and getattr(error, "exit_code", _INTERRUPTED) != _INTERRUPTED)
            raise
        else:
            _stay(begun)


def _stay(begun: bool) -> None:
    if begun:
        with contextlib.suppress(KeyboardInterrupt):
            print("(the live page stays until Ctrl-C)", file=sys.stderr, flush=True)
            while True:  # not signal.pause(): an interrupt just before it would be waited for a second time
                time.sleep(_LOOK_S)
