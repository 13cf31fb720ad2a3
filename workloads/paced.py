"""Publishers at a steady pace and subscribers of one publisher each: for looking at one stream through a failure.

Events are {publisher: its number, n: a count, x: a number from 0 to 1, padding}; a subscriber wants those of one
publisher with x below a share. Publishers may pause, as those do whose broker is away; visitors are subscribers that
come and go while others publish.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import EVENT_BYTES_MAX
from murmur_pubsub.script import Change
from workloads.limits import CLIENTS_MAX, PUBLICATIONS_MAX, positive_rate
from workloads.overlay import Overlay
from workloads.plan import ClientPlan, TimedPublication, Workload

_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class PacedOptions:
    """Steady publishers, and subscribers of one publisher each, for watching one stream through a failure."""

    publishers: Mapping[str, int]
    """How many there are at each of these brokers, one client each."""
    subscribers: Mapping[str, int]
    """How many there are at each of these brokers, one client each; they take the publishers in turn."""
    rate_per_s: float = 25.0
    """Publications a second of each publisher."""
    seconds: float = 30.0
    """How long they publish."""
    share: float = 1.0
    """Share of its publisher's events that a subscriber wants."""
    pauses: tuple[tuple[float, float], ...] = ()
    """`[from, to]` in seconds without publications."""
    padding: int = 0
    """Bytes that each event carries besides."""
    visits: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """At each of these brokers, `[from, to]` in seconds of each visitor, numbered after the subscribers."""

    def __post_init__(self) -> None:
        for name, at in (("publishers", self.publishers), ("subscribers", self.subscribers)):
            for broker, count in at.items():
                if count < 1:
                    raise InputError(f"workload.{name}.{broker}", str(count), "at least 1")
            if sum(at.values()) > CLIENTS_MAX:
                raise InputError(f"workload.{name}", f"{sum(at.values()):,} of them", f"at most {CLIENTS_MAX:,}")
        if not self.publishers:
            raise InputError("workload.publishers", "none", "at least one broker with publishers")
        positive_rate(self.rate_per_s)
        if not 0 < self.seconds < math.inf:
            raise InputError("workload.seconds", str(self.seconds), "a time above zero")
        publications = self.rate_per_s * self.seconds * sum(self.publishers.values())
        if publications > PUBLICATIONS_MAX:
            found = f"{self.seconds:g}, which makes {publications:.3g} publications"
            raise InputError("workload.seconds", found, f"at most {PUBLICATIONS_MAX:,} publications")
        if not 0 < self.share <= 1:
            raise InputError("workload.share", str(self.share), "a number above 0, at most 1")
        if not 0 <= self.padding <= EVENT_BYTES_MAX:
            raise InputError("workload.padding", str(self.padding), f"0 to {EVENT_BYTES_MAX:,} bytes")
        for begin, end in self.pauses:
            if not 0 <= begin < end:
                raise InputError("workload.pauses", f"[{begin}, {end}]", "[from, to] with from before to")
        for broker, stays in self.visits.items():
            for begin, end in stays:
                if not 0 <= begin < end:
                    found = f"[{begin}, {end}]"
                    raise InputError(f"workload.visits.{broker}", found, "[from, to] with from before to")


@dataclass(frozen=True, slots=True)
class PacedPublications:
    """One publisher's events, made anew whenever they are walked."""

    options: PacedOptions
    seed: int
    publisher: int
    publishers: int

    @property
    def count(self) -> int:
        """How many there are."""
        numbers, paused = self._numbers, 0
        behind = 0
        for begin_us, end_us in sorted(self._pauses_us):
            first = max(behind, bisect_left(numbers, begin_us, key=self._time_us))
            behind = max(first, bisect_left(numbers, end_us, key=self._time_us))
            paused += behind - first
        return len(numbers) - paused

    @property
    def _numbers(self) -> range:
        return range(int(self.options.seconds * self.options.rate_per_s))

    @property
    def _pauses_us(self) -> list[tuple[float, float]]:
        return [(begin * 1e6, end * 1e6) for begin, end in self.options.pauses]

    def _time_us(self, number: int) -> float:
        return (number + self.publisher / self.publishers) * (1e6 / self.options.rate_per_s)

    def __iter__(self) -> Iterator[TimedPublication]:
        options = self.options
        rng = random.Random(f"{self.seed}/publisher/{self.publisher}")
        pauses = self._pauses_us
        for number in self._numbers:
            time_us = self._time_us(number)
            x = round(rng.random(), _DECIMALS)
            if any(begin <= time_us < end for begin, end in pauses):
                continue
            event = {"publisher": self.publisher, "n": number, "x": x}
            yield int(time_us), self.publisher, event | ({"padding": "." * options.padding} if options.padding else {})


def build_paced(overlay: Overlay, options: PacedOptions, seed: int) -> Workload:
    """The workload over the overlay; raises `InputError` for brokers that take no clients."""
    for name in ("publishers", "subscribers", "visits"):
        for broker in getattr(options, name):
            if broker not in overlay.client_brokers:
                allowed = f"brokers that take clients: {', '.join(overlay.client_brokers[:10])}"
                raise InputError(f"workload.{name}.{broker}", "no such broker", allowed)
    homes = [broker for broker, count in options.publishers.items() for _ in range(count)]
    clients = []
    expected = 0
    for publisher, home in enumerate(homes):
        publications = PacedPublications(options, seed, publisher, len(homes))
        expected += publications.count
        clients.append(ClientPlan(f"c{publisher}", home, (), (publisher,), publications))
    for broker, count in options.subscribers.items():
        for _ in range(count):
            subscriber = len(clients) - len(homes)
            wanted = _wanted(options, subscriber, len(homes))
            clients.append(ClientPlan(f"c{len(clients)}", broker, ((subscriber, wanted),), (), ()))
    for broker, stays in options.visits.items():
        for begin, end in stays:
            subscriber = len(clients) - len(homes)
            wanted = _wanted(options, subscriber, len(homes))
            comes: Change = (int(begin * 1e6), "subscribe", subscriber, wanted)
            goes: Change = (int(end * 1e6), "unsubscribe", subscriber, wanted)
            clients.append(ClientPlan(f"c{len(clients)}", broker, (), (), (), (comes, goes)))
    description: dict[str, float | int | str] = {
        "kind": "paced", "seed": seed, "publishers": len(homes), "subscribers": len(clients) - len(homes),
        "publications": expected, "rate of each": options.rate_per_s, "share wanted": options.share,
    }  # fmt: skip
    return Workload(overlay, tuple(clients), description, expected)


def _wanted(options: PacedOptions, subscriber: int, publishers: int) -> str:
    wanted = f"publisher = {subscriber % publishers}"
    return wanted if options.share == 1 else f"{wanted} AND x < {options.share}"
