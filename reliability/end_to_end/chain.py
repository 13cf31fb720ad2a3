"""How far a client is with a pubend, at the client's broker: a chain of steps, of which each names the one before.

Theory of operation. Each step says: of what follows the tick `after`, the first message for the client is on `tick`
(`Caught`), or there is none up to `tick` (`CaughtUp`), or all up to `tick` was given up (`GivenUp`). The publishers'
broker never makes such a word untrue: what is put on a tick later comes later, and a withdrawal only takes messages
away. So steps may be lost, come twice or in any order, by routing or straight: one is taken when `after` is not ahead
of the chain and `tick` is. What is taken is right, and nothing is left out or taken twice.
"""

from reliability.durable.messages import CatchUpStep, Caught, CaughtUp

_FIRST = 10
"""Messages that are asked for at first; twice as many each time that all have come."""


class Chain:
    """`tick`: up to there all was taken. `due_us`: when to ask what follows. `left`: so many messages are still to come
    of those that were asked for (0: nothing is asked for)."""

    __slots__ = ("_ahead", "_limit", "_most", "due_us", "held_up", "left", "silent", "tick")

    def __init__(self, tick: int, limit: int, due_us: int) -> None:
        self.tick = tick
        self.due_us = due_us
        self.left = 0
        self.silent = 0
        """How often it was asked since there was news."""
        self.held_up = False
        """Would it have gone on or been asked, had its client had room?"""
        self._most = min(_FIRST, limit)
        self._limit = limit
        self._ahead: dict[int, CatchUpStep] = {}

    @property
    def has_gap(self) -> bool:
        """Is something here that does not follow yet?"""
        return bool(self._ahead)

    def put(self, step: CatchUpStep) -> None:
        """A step has come; of two with the same tick the one that reaches back farther is kept."""
        held = self._ahead.get(step.tick)
        if step.tick <= self.tick:
            if type(step) is CaughtUp and step.after <= self.tick:
                self.left = 0
        elif held is None or step.after < held.after or (type(step) is Caught and type(held) is not Caught):
            if len(self._ahead) < 2 * self._limit or step.after <= self.tick:
                self._ahead[step.tick] = step

    def following(self) -> CatchUpStep | None:
        """The step that goes on from `tick`, if it is here."""
        if not self._ahead:
            return None
        for tick in [each for each in self._ahead if each <= self.tick]:
            del self._ahead[tick]
        fitting = [tick for tick, step in self._ahead.items() if step.after <= self.tick]
        return self._ahead[min(fitting)] if fitting else None

    def go_on(self, step: CatchUpStep) -> None:
        """The step was taken."""
        self.tick = step.tick
        del self._ahead[step.tick]
        self.silent = 0
        if type(step) is CaughtUp:
            self.left = 0
        elif self.left and type(step) is Caught:
            self.left -= 1
            if not self.left:
                self._most = min(2 * self._most, self._limit)
                self.due_us = 0  # there may be more

    def ask(self, room: int) -> int:
        """For how many messages to ask now, of a client that has room for so many."""
        if self.left:  # it was asked before, and not all has come
            self._most = min(_FIRST, self._limit)
        self.left = min(self._most, room)
        self.silent += 1
        return self.left

    def check_invariants(self) -> None:
        assert self.left >= 0
        assert all(tick == step.tick for tick, step in self._ahead.items())
