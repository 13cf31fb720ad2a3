"""How long a nack takes to be answered, estimated from those that were: after that, and a margin, it is repeated.

Theory of operation. The paper takes the nack repetition threshold (NRT) from round trips, as TCP does (its reference
[7]: Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988): the mean of what was measured and four times its mean
deviation, each a running one. One nack is timed at a time. One that is repeated is timed no more, since nobody knows
which of the two is answered (Karn). An answer to what is known already shows that a nack was repeated too early: the
threshold is twice as long then, until another round trip is measured. So where links are slow and not lossy, nacks do
not make them slower.
"""

from murmur_pubsub.intervals import Interval

_MEAN_GAIN = 1 / 8
_DEVIATION_GAIN = 1 / 4
_DEVIATIONS = 4


class RoundTrip:
    """The estimate of one broker for one stream. `heard_us`: when something of the stream came last."""

    __slots__ = ("_deviation_us", "_least_us", "_mean_us", "_most_us", "_timed", "heard_us", "nrt_us")

    def __init__(self, first_us: int, least_us: int, most_us: int) -> None:
        self.nrt_us = first_us
        """The nack repetition threshold at present: the first one until something was measured."""
        self.heard_us = -1
        self._least_us = least_us
        self._most_us = most_us
        self._mean_us: float | None = None
        self._deviation_us = 0.0
        self._timed: tuple[Interval, int] | None = None

    def asked(self, first: int, last: int, now_us: int) -> None:
        """The ticks are asked for."""
        if self._timed is None:
            self._timed = (first, last), now_us
        elif first <= self._timed[0][1] and self._timed[0][0] <= last:
            self._timed = None

    def heard(self, first: int, last: int, now_us: int) -> None:
        """The ticks are known."""
        self.heard_us = now_us
        if self._timed is not None and first <= self._timed[0][0] <= last:
            self._measured(now_us - self._timed[1])
            self._timed = None

    def heard_again(self, now_us: int) -> None:
        """An answer has come to what was known already."""
        self.heard_us = now_us
        self.nrt_us = min(2 * self.nrt_us, self._most_us)

    def _measured(self, took_us: int) -> None:
        if self._mean_us is None:
            self._mean_us, self._deviation_us = took_us, took_us / 2
        else:
            error_us = took_us - self._mean_us
            self._mean_us += _MEAN_GAIN * error_us
            self._deviation_us += _DEVIATION_GAIN * (abs(error_us) - self._deviation_us)
        estimate_us = int(self._mean_us + _DEVIATIONS * self._deviation_us)
        self.nrt_us = min(max(estimate_us, self._least_us), self._most_us)
