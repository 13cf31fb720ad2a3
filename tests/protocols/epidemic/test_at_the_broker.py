"""Epidemic recovery in its broker: what both parts of the broker say goes out."""

from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Input, LinkUp, NodeContext, Send, Start, Subscribe, Unsubscribe
from murmuration.registry import make_broker
from tests.parameters import parts
from tests.protocols.epidemic.test_pull import losing


def test_routing_and_recovery_both_tell_of_a_filter_that_comes_and_goes() -> None:
    broker = make_broker(NodeContext("me", 1, parts("forwarding", "epidemic")))
    broker.handle(Start(), 0)
    broker.handle(LinkUp("x", True), 0)

    def sent(command: Input) -> list[str]:
        return sorted(type(each.message).__name__ for each in broker.handle(command, 1) if isinstance(each, Send))

    wanted = parse_filter("x = 1")
    assert sent(Subscribe(7, wanted)) == ["FilterForwarded", "PatternsForwarded"]
    assert sent(Unsubscribe(7, wanted)) == ["FilterWithdrawn", "PatternsWithdrawn"]


def test_epidemic_s4_2_publisher_pull_keeps_still_while_it_knows_no_route_to_the_source() -> None:
    station = losing("publisher-pull")
    station.machine._dispatcher.routes.clear()
    station.round()
    assert station.sent == []
    assert station.wake_us is not None, "the event is still missing"
