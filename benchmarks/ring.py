"""A routing protocol for the hop benchmark: events go round a ring of brokers and are matched at every one."""

import random
from collections.abc import Sequence

from benchmarks.quotes import quote_filters
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Effect, Input, NodeContext, NodeName
from murmur_pubsub.matching import MatchingIndex
from routing.protocol import NoParameters
from routing.router import Hop, Router

HOPS = 100
FILTERS = 200


class RingRouting(Router):
    """The next broker of the ring, `HOPS` times; the header counts. Before each hop the event is matched against
    `FILTERS` filters of neighbours, as subscription forwarding would, and goes on whatever the result."""

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        number = int(context.name[1:])
        brokers = context.parameters["brokers"]
        self._next = f"b{(number + 1) % brokers}"
        self.index = MatchingIndex[int]()
        for key, text in enumerate(quote_filters(FILTERS, random.Random(f"ring/{number}"))):
            self.index.add(key, parse_filter(text), key % 8)
        self.matched = 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        return ()

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        return ()

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        return ()

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        hops = header[0] if header else 0
        if hops == HOPS:
            return ()
        self.matched += len(self.index.destinations(event.attributes))
        return (Hop(self._next, (hops + 1,)),)

    def check_invariants(self) -> None:
        assert self.matched >= 0
