"""What epidemic recovery costs one dispatcher: time for each gossip message and event, and memory, as the cache and the
patterns grow.

Times are processor time, the best of five stretches. Memory is what Python's allocator says that one dispatcher's state
has added. The tables show growth: no column may grow faster than the events or the patterns do.
"""

import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any, cast

from benchmarks.table import print_table
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Deliver, Effect, LinkUp, NodeContext, NodeName, Received
from reliability.epidemic.epidemic import Epidemic
from reliability.epidemic.messages import (
    EventsRequested,
    PatternsForwarded,
    PublisherPull,
    PushDigest,
    SubscriberPull,
    TaggedEvent,
    signature,
)
from reliability.epidemic.parameters import EpidemicParameters
from reliability.layer import BrokerServices
from routing.router import Hop

CACHED = (500, 1_500, 5_000, 15_000)
PATTERNS = (70, 700, 7_000)
_MATCHED = 3
_ASKED = 20
_STRETCHES = 5


class _Services:
    """A broker with one neighbour beyond, that wants everything here and there."""

    gossip_router = None

    def next_hops(self, event: Event, came_from: NodeName | None, header: Any) -> list[Hop]:
        """See `reliability.layer.BrokerServices`."""
        return [Hop("y")]

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        return False

    def notify(self, event: Event, hops: int) -> list[Effect]:
        """See `reliability.layer.BrokerServices`."""
        return [Deliver(event, hops, [0])]


class Station:
    """A dispatcher that knows `patterns` and has `cached` events of 50 sources. An event matches three neighbouring
    patterns of the circle of all, and one in 35 of the patterns is held here."""

    def __init__(self, algorithm: Any, cached: int, patterns: int) -> None:
        self.cached = cached
        parameters = EpidemicParameters(algorithm=algorithm, buffer=cached, remember=cached, p_forward=1.0, settle_us=0)
        self.machine = Epidemic(NodeContext("me", 1), parameters, cast(BrokerServices, _Services()))
        for peer in ("x", "y"):
            self.machine.handle(LinkUp(peer, True), 0)
        self.patterns = [_pattern(number, patterns) for number in range(patterns)]
        self.signatures = [signature(each) for each in self.patterns]
        self.machine.handle(Received("x", PatternsForwarded(self.patterns[::2])), 0)
        self.machine.handle(Received("y", PatternsForwarded(self.patterns[1::2])), 0)
        for number in range(0, patterns, 35):
            self.machine.subscribe(self.patterns[number], 0)
        self.numbers: dict[tuple[int, int], int] = {}
        self.next = 0
        for _ in range(cached):
            self.take(self.event())

    def event(self) -> TaggedEvent:
        """The next one; pattern p of source s has numbers without gaps."""
        number, self.next = self.next, self.next + 1
        source, count = number % 50, len(self.patterns)
        content = number * 7 % count
        numbers: list[int] = []
        for at in range(_MATCHED):
            pattern = (content + at) % count
            self.numbers[source, pattern] = self.numbers.get((source, pattern), 0) + 1
            numbers += (self.signatures[pattern], self.numbers[source, pattern])
        event = Event(source, number // 50, 0, {"content": content})
        return TaggedEvent(event, 3, (), f"s{source}", 0, numbers, (f"s{source}", "x"))

    def take(self, message: Any) -> None:
        """A message from the neighbour x."""
        self.machine.handle(Received("x", message), 0)


def _pattern(number: int, patterns: int) -> Filter:
    contents = ", ".join(str((number - at) % patterns) for at in range(_MATCHED))
    return parse_filter(f"content IN ({contents})")


def microseconds(action: Callable[[], object], calls: int) -> float:
    """Processor time of a call."""
    best = float("inf")
    for _ in range(_STRETCHES):
        began = time.process_time_ns()
        for _ in range(calls):
            action()
        best = min(best, (time.process_time_ns() - began) / calls / 1e3)
    return best


def push_times(cached: int, patterns: int) -> list[str]:
    """Handling a digest of which nothing is missing, for each of its entries, and a request; a round."""
    station = Station("push", cached, patterns)
    here = station.machine
    wanted = station.signatures[0]
    ids = [number for sequence in range(max(1, cached // 50)) for number in (0, sequence)]
    digest = PushDigest("far", wanted, ids)
    request = EventsRequested([number for at in range(_ASKED) for number in (at, station.next // 50 - 1)])
    events = [station.event() for _ in range(2_000)]
    feed = iter(events * _STRETCHES)
    return [
        f"{microseconds(lambda: station.take(digest), 200) / (len(ids) // 2):.2f}",
        f"{microseconds(lambda: station.take(request), 200) / _ASKED:.2f}",
        f"{microseconds(lambda: station.take(next(feed)), 400):.1f}",
        f"{microseconds(lambda: here.publish(_published(station), 0), 400):.1f}",
    ]


def _published(station: Station) -> Event:
    station.next += 1
    return Event(1_000, station.next, 0, {"content": station.next % len(station.patterns)})


def pull_times(cached: int, patterns: int) -> list[str]:
    """Handling digests of twenty entries that are not here."""
    station = Station("combined-pull", cached, patterns)
    here = station.machine
    wanted = station.signatures[0]
    missing = [["s0", 0, *range(10**6, 10**6 + _ASKED)]]
    towards_subscribers = SubscriberPull("far", wanted, missing)
    towards_publisher = PublisherPull("far", "s0", [[0, wanted, *range(10**6, 10**6 + _ASKED)]], ["y", "s0"])
    feed = iter([station.event() for _ in range(400 * _STRETCHES)])
    return [
        f"{microseconds(lambda: station.take(towards_subscribers), 200):.1f}",
        f"{microseconds(lambda: station.take(towards_publisher), 200):.1f}",
        f"{microseconds(lambda: station.take(next(feed)), 400):.1f}",
        f"{microseconds(lambda: here.publish(_published(station), 0), 400):.1f}",
    ]


def kilobytes(algorithm: str, cached: int, patterns: int) -> int:
    """What one dispatcher's state takes: cache, received identifiers, tags' counts, numbers expected, patterns."""
    gc.collect()
    tracemalloc.start()
    station = Station(algorithm, cached, patterns)
    station.numbers.clear()
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken // 1024


def main() -> None:
    """Print the tables."""
    settings = [(cached, 70) for cached in CACHED] + [(1_500, patterns) for patterns in PATTERNS[1:]]
    print_table(
        "Push at one dispatcher: microseconds",
        ("events cached", "patterns", "digest, an entry", "request, an event", "event arrives", "event published"),
        [(cached, patterns, *push_times(cached, patterns)) for cached, patterns in settings],
    )
    print_table(
        f"Combined pull at one dispatcher: microseconds; digests have {_ASKED} entries",
        ("events cached", "patterns", "subscriber digest", "publisher digest", "event arrives", "event published"),
        [(cached, patterns, *pull_times(cached, patterns)) for cached, patterns in settings],
    )
    print_table(
        "Memory of one dispatcher: kB, events and patterns themselves included",
        ("events cached", "patterns", "push", "combined-pull", "combined, bytes an event"),
        [
            (cached, patterns, kilobytes("push", cached, patterns), both, f"{both * 1024 / cached:,.0f}")
            for cached, patterns in settings
            for both in (kilobytes("combined-pull", cached, patterns),)
        ],
    )


if __name__ == "__main__":
    main()
