"""What a broker does for its clients, over subscription forwarding and best effort; and what its parts hear of it."""

from collections.abc import Sequence
from typing import Any

import pytest

from murmur_pubsub.client import ClientSubscribe, ClientUnsubscribe
from murmur_pubsub.contract import ContractError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import (
    Deliver,
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    Publish,
    Received,
    Record,
    Send,
    SetTimer,
    Subscribe,
    TimerFired,
    Unsubscribe,
)
from reliability.best_effort import BestEffort
from reliability.broker import Broker
from routing.flooding import Flooding
from routing.forwarding import FilterForwarded, FilterWithdrawn, SubscriptionForwarding
from routing.protocol import NoParameters

LOW, HIGH = parse_filter("x > 3"), parse_filter("x > 5")


@pytest.fixture
def broker() -> Broker:
    """With a neighbour and two clients."""
    context = NodeContext("b0", 1)
    made = Broker(
        "bitset",
        SubscriptionForwarding(context, NoParameters()),
        lambda services: BestEffort(context, NoParameters(), services),
    )
    made.handle(LinkUp("b1", True), 0)
    for client in ("c0", "c1"):
        made.handle(LinkUp(client, False), 0)
    return made


def told(broker: Broker, source: str, subscriber: int, text: str) -> list[Effect]:
    return list(broker.handle(Received(source, ClientSubscribe(subscriber, parse_filter(text))), 1))


def test_what_only_a_client_that_is_gone_had_wanted_is_withdrawn(broker: Broker) -> None:
    assert told(broker, "c0", 1, "x > 3") == [Send("b1", FilterForwarded(LOW))]
    assert told(broker, "c1", 2, "x > 5") == []
    assert list(broker.handle(LinkDown("c0", "closed"), 2)) == [
        Send("b1", FilterForwarded(HIGH)),
        Send("b1", FilterWithdrawn(LOW)),
    ]
    assert list(broker.handle(LinkDown("c1", "closed"), 3)) == [Send("b1", FilterWithdrawn(HIGH))]
    assert not broker.has_subscribers


class Hearing:
    """Remembers what it is told."""

    heard: list[Any]

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self.heard.append(input)
        return ()


class Router(Hearing, Flooding):
    """It remarks on each event."""

    orders = {"jump": ("to",)}

    def __init__(self) -> None:
        super().__init__(CONTEXT, NoParameters())
        self.heard = []
        self.remarks: list[Record] = []

    def take_remarks(self) -> Sequence[Record]:
        remarks, self.remarks = self.remarks, []
        return remarks


class Reliability(Hearing, BestEffort):
    """It delivers what is published, and has a timer set when the broker's own subscribers change."""

    orders = {"rest": ()}

    def own_changed(self, wanted: Sequence[tuple[int, Filter]], now_us: int) -> Sequence[Effect]:
        self.heard.append([(subscriber, str(each)) for subscriber, each in wanted])
        return [SetTimer(("reliability",), now_us)]


CONTEXT = NodeContext("b0", 1)
LISTENING = Event(0, 0, 5, {"x": 9})


@pytest.fixture
def parts() -> tuple[Broker, Router, Any]:
    """A broker, and its parts."""

    def make(services: Any) -> Any:
        made = Reliability(CONTEXT, NoParameters(), services)
        made.heard = []
        return made

    router = Router()
    made = Broker("bitset", router, make)
    return made, router, made.reliability


Parts = tuple[Broker, Router, Any]


@pytest.mark.parametrize("name", ["settling", "waiting"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("below", [False, True])
def test_a_broker_waits_and_settles_as_long_as_one_of_its_parts_does(
    parts: Parts, name: str, own: bool, below: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, router, reliability = parts
    monkeypatch.setattr(type(router), name, below)
    monkeypatch.setattr(type(reliability), name, own)
    assert getattr(broker, name) is (own or below)


@pytest.mark.parametrize("name", ["settling", "waiting"])
@pytest.mark.parametrize("part", [1, 2])
def test_a_part_that_says_neither_true_nor_false_is_found_whichever_it_is(
    parts: Parts, name: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(parts[part]), name, "perhaps")
    with pytest.raises(ContractError, match=f"'perhaps' as `{name}`"):
        getattr(parts[0], name)


@pytest.mark.parametrize("part", ["local", "router", "reliability"])
def test_each_part_is_asked_whether_it_contradicts_itself(
    parts: Parts, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contradicts() -> None:
        raise AssertionError(part)

    parts[0].check_invariants()
    monkeypatch.setattr(getattr(parts[0], part), "check_invariants", contradicts)
    with pytest.raises(AssertionError, match=part):
        parts[0].check_invariants()


def test_a_broker_takes_the_orders_of_both_its_parts(parts: Parts) -> None:
    assert parts[0].orders == {"jump": ("to",), "rest": ()}


def test_what_the_router_remarks_follows_what_came_of_the_input(parts: Parts) -> None:
    broker, router, _ = parts
    broker.handle(Subscribe(3, LOW), 5)
    assert list(broker.handle(Publish(LISTENING), 6)) == [Deliver(LISTENING, 0, [3])]
    router.remarks = [Record(1, 2)]
    assert list(broker.handle(Publish(LISTENING), 6)) == [Deliver(LISTENING, 0, [3]), Record(1, 2)]


def test_both_parts_hear_of_neighbours_and_the_router_alone_of_peers_of_datagrams(parts: Parts) -> None:
    broker, router, reliability = parts
    up, down = LinkUp("b1", True), LinkDown("b1", "closed")
    for each in (up, down, down):
        broker.handle(each, 5)
    assert router.heard == [up, down, down]
    assert reliability.heard == [up, down], "at the second it was no neighbour any more"


def test_only_the_router_hears_of_a_client_that_has_gone_before(parts: Parts) -> None:
    broker, router, reliability = parts
    down = LinkDown("c0", "closed")
    broker.handle(LinkUp("c0", False), 5)
    broker.handle(down, 6)
    assert router.heard == []
    broker.handle(down, 7)
    assert router.heard == [down]
    assert reliability.heard == []


def test_timers_go_to_the_part_that_is_named_first_in_their_keys(parts: Parts) -> None:
    broker, router, reliability = parts
    above, below = TimerFired(("reliability", "routing")), TimerFired(("routing", "reliability"))
    broker.handle(above, 5)
    broker.handle(below, 5)
    assert (router.heard, reliability.heard) == ([below], [above])


def test_who_wants_to_know_the_brokers_own_subscribers_is_told_all_of_them_at_each_change(parts: Parts) -> None:
    broker, _, reliability = parts
    assert list(broker.handle(Subscribe(3, LOW), 5)) == [SetTimer(("reliability",), 5)]
    broker.handle(Subscribe(4, HIGH), 6)
    assert list(broker.handle(Unsubscribe(3, LOW), 7)) == [SetTimer(("reliability",), 7)]
    broker.handle(LinkUp("c0", False), 8)
    broker.handle(Received("c0", ClientSubscribe(9, LOW)), 9)
    assert reliability.heard == [[(3, "x > 3")], [(3, "x > 3"), (4, "x > 5")], [(4, "x > 5")]], "of clients' nothing"


def test_a_subscription_counts_from_the_time_at_which_it_has_come(parts: Parts) -> None:
    broker, _, _ = parts
    broker.handle(Subscribe(3, LOW), 5)
    assert broker.notify(LISTENING, 0, until=4) == []
    assert broker.notify(LISTENING, 0, until=5) == [Deliver(LISTENING, 0, [3])]
    assert broker.subscribers(LISTENING, 4) == {}


def test_what_a_client_says_before_its_link_is_up_or_once_it_is_gone_is_not_heard(parts: Parts) -> None:
    broker, _, _ = parts
    wants = Received("c0", ClientSubscribe(9, LOW))
    withdraws = Received("c0", ClientUnsubscribe(9, LOW))
    broker.handle(wants, 5)
    assert not broker.has_subscribers
    broker.handle(LinkUp("c0", False), 6)
    broker.handle(wants, 7)
    assert broker.has_subscribers
    broker.handle(withdraws, 8)
    assert not broker.has_subscribers
