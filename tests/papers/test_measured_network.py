"""What a measured network counts, on three brokers in a chain."""

from pathlib import Path

from murmur_pubsub.deployment import LinkPlan
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.links import Delay, LinkSpec
from murmuration.papers.lab.measured_network import MeasuredNetwork
from reliability.best_effort import Forwarded
from routing.forwarding import FilterForwarded

PARTS = {"matching": "naive", "routing": "forwarding", "reliability": "best_effort"}
LINK = LinkSpec(delay=Delay("constant", 1_000))


class Chain(MeasuredNetwork):
    """b0 - b1 - b2; only b2 wants what has x above 5. `full`: brokers that take no event."""

    def __init__(self, folder: Path) -> None:
        super().__init__(["b0", "b1", "b2"], 1, folder, LINK, own_count=False)
        self.full: set[int] = set()
        self.arrivals: list[tuple[int, int, bool]] = []
        for name in self.names:
            self.start(name, PARTS)
        for first, second in (("b0", "b1"), ("b1", "b2")):
            self.runtime.connect(LinkPlan(first, second, LINK))
        self.subscribe("b2", parse_filter("x > 5"))
        self.quiet()

    def takes(self, node: int) -> bool:
        return node not in self.full

    def arrived(self, node: int, event: Event, hops: int, delivered: bool, now_us: int) -> None:
        self.arrivals.append((node, hops, delivered))


def test_messages_are_counted_by_class_and_arrivals_by_what_became_of_them(tmp_path: Path) -> None:
    network = Chain(tmp_path)
    assert network.sent[FilterForwarded] == 2
    encoded = network.count_bytes(Forwarded)
    first, second = network.publish("b0", {"x": 6}), network.publish("b0", {"x": 5})
    network.quiet()
    assert network.sent[Forwarded] == encoded[Forwarded].messages == 2
    assert encoded[Forwarded].bytes > 2 * 10
    assert network.arrivals == [(1, 1, False), (2, 2, True)]
    assert network.oracle.fates[first].hops == 2
    assert (network.oracle.fates[second].required, network.oracle.tally().missing) == (0, 0)
    network.close()


def test_a_broker_that_takes_no_event_loses_it(tmp_path: Path) -> None:
    network = Chain(tmp_path)
    network.full.add(1)
    number = network.publish("b0", {"x": 6})
    network.quiet()
    assert not network.arrivals
    assert network.oracle.fates[number].missing == 1
    network.close()


def test_a_broker_that_starts_again_wants_what_it_wanted_until_it_withdraws_all(tmp_path: Path) -> None:
    network = Chain(tmp_path)
    network.runtime.crash("b2")
    network.start("b2", PARTS)
    network.runtime.run(until_us=network.runtime.now_us + 10_000_000)  # its link comes up again
    network.publish("b0", {"x": 6})
    network.quiet()
    assert network.oracle.tally().made == 1
    network.unsubscribe_all("b2")
    network.quiet()
    network.publish("b0", {"x": 6})
    network.quiet()
    assert network.oracle.tally().required == 1
    assert network.arrivals[-1] == (2, 2, True), "the second event went nowhere"
    network.close()
