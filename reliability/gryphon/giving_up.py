"""The branches that a broker does not wait for: given up by an operator, or out of reach for too long.

A branch that cannot be reached acknowledges nothing, and so holds the log of every pubend for ever; the paper says
nothing of brokers that never return. An operator may order such a broker forgotten (`routing.cells.router`), or set
`give_up_after`. Then acknowledgements are accumulated without the branch, until it is there again. What became final
in the meantime its subscribers have lost, and their guarantee begins anew.
"""

from murmur_pubsub.machine import CancelTimer, Effect, SetTimer, TimerKey
from routing.router import StreamRouter


class GivenUp:
    """`branches`: those not waited for at present; the same object always."""

    __slots__ = ("_after_us", "_lost", "_router", "branches")

    def __init__(self, router: StreamRouter, after_ms: int | None) -> None:
        self.branches: dict[str, None] = {}
        self._router = router
        self._after_us = None if after_ms is None else after_ms * 1_000
        self._lost: dict[str, bool] = {}  # branches out of reach; True: for too long

    def ways_changed(self) -> list[Effect]:
        """Look at each branch again; the effects set and cancel timers."""
        effects: list[Effect] = []
        if self._after_us is not None:
            for branch in self._router.branches:
                lost = not self._router.ways(branch)
                if lost and branch not in self._lost:
                    self._lost[branch] = False
                    effects.append(SetTimer(_timer(branch), self._after_us))
                elif not lost and branch in self._lost:
                    del self._lost[branch]
                    effects.append(CancelTimer(_timer(branch)))
        self._count()
        return effects

    def overdue(self, branch: str) -> None:
        """The branch has been out of reach for too long."""
        self._lost[branch] = True
        self._count()

    def _count(self) -> None:
        self.branches.clear()
        self.branches |= self._router.given_up
        self.branches |= {branch: None for branch, too_long in self._lost.items() if too_long}


def _timer(branch: str) -> TimerKey:
    return ("reliability", "give up", branch)
