"""When gossip rounds take place.

Every dispatcher has a period of its own, begun at a random time. Nothing is timed while there is nothing to gossip
about, so that a quiet system is quiet; a round due in the middle of a period takes place at its end. With an adaptive
interval (section 5) each round without a sign of loss doubles the interval, up to a bound, and a sign of loss brings it
back to the shortest.
"""

import random


class GossipInterval:
    """`current_us`: the interval in force."""

    def __init__(self, shortest_us: int, longest_us: int, rng: random.Random) -> None:
        self._shortest_us = shortest_us
        self._longest_us = longest_us
        self._begun_us = rng.randrange(shortest_us)
        self._sign = False
        self.current_us = shortest_us

    def delay_us(self, now_us: int) -> int:
        """From now to the end of the period."""
        return self.current_us - (now_us - self._begun_us) % self.current_us

    def sign_of_loss(self) -> bool:
        """Something was lost, asked for or recovered; True if the interval is shorter from now on."""
        self._sign = True
        if self.current_us == self._shortest_us:
            return False
        self.current_us = self._shortest_us
        return True

    def round_over(self, now_us: int) -> None:
        """Choose the interval to the next round, which is counted from now."""
        if not self._sign and self.current_us < self._longest_us:
            self.current_us = min(2 * self.current_us, self._longest_us)
            self._begun_us = now_us
        self._sign = False
