"""Whoever steers a run while it publishes: how fast emulated time passes, and what is broken beside the plan."""

from typing import Protocol

from murmur_pubsub.faults import Fault


class Steering(Protocol):
    """Asked by a runtime, again and again, from the beginning of publishing until it lets the run end. A runtime asks
    from the thread that plays the run; times count from the start of publishing, in emulated microseconds."""

    @property
    def held(self) -> bool:
        """Shall publishing go on though all is published?"""

    @property
    def waiting(self) -> bool:
        """Is there an order that was not taken?"""

    def pace(self, now_us: int) -> int:
        """Until when the run may go on before the next question; returns when the pace allows it. A virtual runtime
        asks: a live one cannot be held up."""

    def take(self, now_us: int, step: int) -> Fault | None:
        """The next order, as something that takes effect then, as that step of the plan; None: there is none, or it
        could not take effect."""

    def done(self, step: int, failure: str | None) -> None:
        """The order with that step has taken effect, or why not."""

    def let_go(self, now_us: int) -> None:
        """Publishing is over: nothing is taken any more. `now_us`: until when it lasted; 0: as long as the plan did."""
