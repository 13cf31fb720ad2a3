"""How long a nack takes to be answered, estimated from those that were: after that, and a margin, it is repeated.

Theory of operation. The paper takes the nack repetition threshold (NRT) from round trips, as TCP does (its reference
[7]: Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988): the mean of what was measured and four times its mean
deviation, each a running one. A nack carries its time, and an answer that of the nack (the timestamps of RFC 7323). So
the answer to a nack that was repeated is measured too: on lossy links nearly all are, and on slow ones nacks would
otherwise be repeated ever more often.
"""

from reliability.gryphon.parameters import GryphonParameters

_MEAN_GAIN = 1 / 8
_DEVIATION_GAIN = 1 / 4
_DEVIATIONS = 4
_DOUBLINGS_MAX = 8


def doubled(wait_us: int, often: int, most_us: int) -> int:
    """The wait, doubled so often (after eight times no more), and at most `most_us`."""
    return min(wait_us << min(often, _DOUBLINGS_MAX), most_us)


class RoundTrip:
    """The estimate of one broker for one stream."""

    __slots__ = ("_least_us", "_mean_and_deviation_us", "heard_us", "most_us", "nrt_us")

    def __init__(self, first_us: int, least_us: int, most_us: int) -> None:
        self.nrt_us = first_us
        """The nack repetition threshold at present: the first one until something was measured."""
        self.heard_us = -1
        """When something of the stream came last."""
        self.most_us = most_us
        """The longest that is ever waited."""
        self._least_us = least_us
        self._mean_and_deviation_us: tuple[float, float] | None = None

    @classmethod
    def of(cls, parameters: GryphonParameters) -> "RoundTrip":
        """One with these thresholds, before anything was measured."""
        return cls(1_000 * parameters.nrt, 1_000 * parameters.nrt_least, 1_000 * parameters.nrt_most)

    def answered(self, asked: int, now_us: int) -> None:
        """An answer has come to what was asked at that time in ms (0, or a time to come: of no known question)."""
        if 0 < asked <= now_us // 1_000:
            self.measured(now_us - asked * 1_000)

    def measured(self, took_us: int) -> None:
        """An answer has come so long after its nack was sent."""
        if self._mean_and_deviation_us is None:
            mean_us, deviation_us = float(took_us), took_us / 2
        else:
            mean_us, deviation_us = self._mean_and_deviation_us
            error_us = took_us - mean_us
            mean_us += _MEAN_GAIN * error_us
            deviation_us += _DEVIATION_GAIN * (abs(error_us) - deviation_us)
        self._mean_and_deviation_us = mean_us, deviation_us
        self.nrt_us = min(max(int(mean_us + _DEVIATIONS * deviation_us), self._least_us), self.most_us)
