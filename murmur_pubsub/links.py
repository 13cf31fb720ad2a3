"""The link model: what a link between two nodes does to messages. One model for both runtimes.

A link is directed, from one node to one peer, and its state lives with the sender. A message of some bytes
queues behind what the bandwidth has not yet carried, may be lost, gets a delay drawn from a distribution,
may overtake (reordering) or be sent twice (duplication). Without reordering a link is first in, first out
whatever the delays, as a TCP connection is. Control messages (see `murmur_pubsub.message`) are never lost,
duplicated or reordered; delay, bandwidth and order hold for them as for all.

The model is told the time and given the randomness; it only computes. The queue is bounded:
`on_overflow="drop"` refuses what does not fit; with "slow" the link reports itself `congested`, the runtime
stops taking input that would fill it further, and only at `HARD_LIMIT_FACTOR` times the bound is a message
refused, so that a cycle of full links cannot stand still for ever.
"""

import dataclasses
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import DropReason

HARD_LIMIT_FACTOR = 8
DelayKind = Literal["constant", "uniform", "exponential", "normal"]


@dataclass(frozen=True, slots=True)
class Delay:
    """A distribution of delays in microseconds.

    constant: always `low_us`. uniform: between `low_us` and `high_us`. exponential: `low_us` plus an
    exponential of mean `high_us`. normal: mean `low_us`, deviation `high_us`, never below zero.
    """

    kind: DelayKind = "constant"
    low_us: int = 0
    high_us: int = 0

    def __post_init__(self) -> None:
        if self.low_us < 0 or self.high_us < 0:
            raise InputError("link delay", f"{self.low_us} and {self.high_us}", "delays that are not negative")
        if self.kind == "uniform" and self.high_us < self.low_us:
            found = f"uniform from {self.low_us} us to {self.high_us} us"
            raise InputError("link delay", found, "[low, high], low at most high")

    def sampler(self, rng: random.Random) -> Callable[[], int]:
        """A function that draws one delay in microseconds."""
        low_us, high_us = self.low_us, self.high_us
        if self.kind == "constant":
            return lambda: low_us
        if self.kind == "uniform":
            span, uniform = high_us - low_us + 1, rng.random
            return lambda: low_us + int(span * uniform())
        if self.kind == "exponential":
            return lambda: low_us + int(rng.expovariate(1.0) * high_us)
        return lambda: max(0, int(rng.gauss(low_us, high_us)))


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """What a link is like.

    bytes_per_s, messages_per_s: bandwidth caps (None: unlimited). loss, duplication, reordering:
    probabilities in [0, 1] for each message that is not control. reordering_us: how far a reordered message
    falls behind, at most. ordered: False makes every message take its own delay, as datagrams do.
    queue_messages: how many messages may wait for the link.
    """

    delay: Delay = Delay()
    bytes_per_s: int | None = None
    messages_per_s: int | None = None
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    reordering_us: int = 10_000
    ordered: bool = True
    queue_messages: int = 10_000
    on_overflow: Literal["slow", "drop"] = "slow"

    def __post_init__(self) -> None:
        for name in ("loss", "duplication", "reordering"):
            probability = getattr(self, name)
            if not 0.0 <= probability <= 1.0:
                raise InputError(f"link {name}", str(probability), "a probability from 0 to 1")
        for name in ("bytes_per_s", "messages_per_s", "queue_messages"):
            amount = getattr(self, name)
            if amount is not None and amount < 1:
                raise InputError(f"link {name}", str(amount), "at least 1")
        if self.reordering_us < 0:
            raise InputError("link reordering_us", str(self.reordering_us), "a time that is not negative")

    @property
    def perfect(self) -> bool:
        """True if every message passes at once and unharmed, so that no computation is needed."""
        return self.only_delays and self.delay == Delay()

    @property
    def only_delays(self) -> bool:
        """True if a message's fate is one draw from the distribution of delays, whatever went before it."""
        plain = LinkSpec(self.delay, ordered=False, queue_messages=self.queue_messages, on_overflow=self.on_overflow)
        return dataclasses.replace(self, ordered=self.ordered and self.delay.kind != "constant") == plain


class Transmission(NamedTuple):
    """The fate of one message: when its copies arrive (none: dropped for the reason), in emulated time."""

    arrivals_us: tuple[int, ...]
    drop: DropReason | None = None


_new = tuple.__new__
"""Makes a transmission in half the time of its own constructor."""


def _is_harmless(spec: LinkSpec) -> bool:
    """Does every message pass, once, and without waiting for others?"""
    limited = spec.bytes_per_s is not None or spec.messages_per_s is not None
    return not (limited or spec.loss or spec.duplication or spec.reordering)


class Link:
    """One direction of a link; `transmit` is called by the sender in order of time.

    `draw_us()` draws a delay: all there is to do for a link of which `only_delays` holds. `departures_us`: of what
    waits for bandwidth, or has since the queue was looked at.
    """

    __slots__ = (
        "_busy_until_ns",
        "_harmless",
        "_last_arrival_us",
        "_rng",
        "departures_us",
        "draw_us",
        "only_delays",
        "perfect",
        "spec",
    )

    def __init__(self, spec: LinkSpec, rng: random.Random) -> None:
        self.spec = spec
        self.perfect = spec.perfect
        self.only_delays = spec.only_delays
        self._harmless = _is_harmless(spec)
        self._rng = rng
        self.draw_us = spec.delay.sampler(rng)
        self._busy_until_ns = 0
        self._last_arrival_us = 0
        self.departures_us: deque[int] = deque()

    def change(self, spec: LinkSpec, now_us: int) -> None:
        """Be as `spec` says from now on. What is on its way stays ahead of what comes, on an ordered link."""
        if self.spec.ordered and self.only_delays:
            self._last_arrival_us = now_us + self.spec.delay.low_us  # constant, or the link would not be ordered
        self.spec = spec
        self.perfect = self.only_delays = False
        self._harmless = _is_harmless(spec)
        self.draw_us = spec.delay.sampler(self._rng)

    def clear_us(self, now_us: int) -> int:
        """When everything sent so far has arrived (on a link that keeps order)."""
        return max(now_us + self.draw_us(), self._last_arrival_us)

    def transmit(self, size: int, now_us: int, control: bool = False) -> Transmission:
        """Send `size` bytes at `now_us`."""
        if self.only_delays:
            return Transmission((now_us + self.draw_us(),))
        spec = self.spec
        if self._harmless:
            arrival_us = now_us + self.draw_us()
            if spec.ordered or control:
                self._last_arrival_us = arrival_us = max(arrival_us, self._last_arrival_us)
            return _new(Transmission, ((arrival_us,), None))
        departure_us = now_us
        if spec.bytes_per_s is not None or spec.messages_per_s is not None:
            waiting = self.waiting(now_us)
            limit = spec.queue_messages * (1 if spec.on_overflow == "drop" else HARD_LIMIT_FACTOR)
            if waiting >= limit and not control:
                return Transmission((), DropReason.OVERFLOW)
            self._busy_until_ns = max(now_us * 1_000, self._busy_until_ns) + self._carrying_ns(size)
            departure_us = self._busy_until_ns // 1_000
            self.departures_us.append(departure_us)
        rng = self._rng
        if spec.loss and not control and rng.random() < spec.loss:
            return Transmission((), DropReason.LOSS)
        arrival_us = departure_us + self.draw_us()
        if spec.reordering and not control and rng.random() < spec.reordering:
            arrival_us += int(rng.random() * spec.reordering_us)
        elif spec.ordered or control:
            self._last_arrival_us = arrival_us = max(arrival_us, self._last_arrival_us)
        if spec.duplication and not control and rng.random() < spec.duplication:
            return Transmission((arrival_us, arrival_us + self.draw_us()))
        return _new(Transmission, ((arrival_us,), None))

    def waiting(self, now_us: int) -> int:
        """How many messages wait for bandwidth."""
        departures_us = self.departures_us
        while departures_us and departures_us[0] <= now_us:
            departures_us.popleft()
        return len(departures_us)

    def congested_until_us(self, now_us: int) -> int | None:
        """When a full queue will be half empty again; None if the queue is not full or overflow drops."""
        if self.spec.on_overflow == "drop" or self.waiting(now_us) < self.spec.queue_messages:
            return None
        return self.departures_us[-max(1, self.spec.queue_messages // 2)]

    def _carrying_ns(self, size: int) -> int:
        """Of a fast link that is less than a microsecond, and must not be nothing."""
        carrying_ns = 0
        if self.spec.bytes_per_s is not None:
            carrying_ns = size * 1_000_000_000 // self.spec.bytes_per_s
        if self.spec.messages_per_s is not None:
            carrying_ns = max(carrying_ns, 1_000_000_000 // self.spec.messages_per_s)
        return carrying_ns
