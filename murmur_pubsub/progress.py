"""How anything that takes long tells how far it is: runs, sweeps, papers, the gathering of journals, the analysis."""

from collections.abc import Mapping
from typing import Protocol

from murmur_pubsub.journal import Phase

PHASE_STEPS: Mapping[Phase, str] = {
    Phase.STARTING: "starting actors",
    Phase.SUBSCRIBING: "subscribing",
    Phase.PUBLISHING: "publishing",
    Phase.DRAINING: "draining",
    Phase.STOPPED: "stopping",
}
"""What a run is doing in a phase."""


class Progress(Protocol):
    """Called now and then."""

    def __call__(self, step: str, done: int, total: int, /) -> None:
        """`step`: what is being done, in words. `done`: how much of it is, of `total` (0: not known)."""
