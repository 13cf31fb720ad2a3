"""A broker's own subscribers: who gets an event, from when on, and what is left when a client goes."""

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from routing.local_subscriptions import LocalSubscriptions

LOW, HIGH = parse_filter("x > 1"), parse_filter("x > 5")
EVENT = Event(0, 1, 0, {"x": 9})


@pytest.fixture
def local() -> LocalSubscriptions:
    return LocalSubscriptions("bitset")


def test_a_subscription_that_counts_from_later_on_gets_no_earlier_event(local: LocalSubscriptions) -> None:
    local.add(("c0", 1), LOW)
    local.begin(("c0", 1), LOW, 3)
    local.add(("c0", 2), LOW)
    local.begin(("c0", 2), LOW, 7)
    assert local.subscribers(EVENT) == {"c0": [1, 2]}
    assert [local.subscribers(EVENT, until) for until in (2, 3, 6, 7)] == [{}, {"c0": [1]}, {"c0": [1]}, {"c0": [1, 2]}]


def test_a_second_subscription_to_the_same_filter_counts_as_the_first(local: LocalSubscriptions) -> None:
    local.add(("c0", 1), LOW)
    local.begin(("c0", 1), LOW, 3)
    assert not local.add(("c0", 1), LOW)
    local.begin(("c0", 1), LOW, 9)
    assert local.subscribers(EVENT, 4) == {"c0": [1]}
    assert not local.remove(("c0", 1), LOW)
    assert local.remove(("c0", 1), LOW)
    local.check_invariants()


def test_a_client_that_goes_leaves_the_filters_that_others_hold(local: LocalSubscriptions) -> None:
    assert local.add(("c0", 1), LOW)
    local.add(("c0", 1), LOW)
    assert local.add(("c0", 2), HIGH)
    assert not local.add((None, 3), LOW)
    assert local.remove_client("c0") == [HIGH]
    assert local.subscribers(EVENT) == {None: [3]}
    assert local.remove_client("c0") == []
    assert len(local) == 1
    local.check_invariants()


def test_a_subscriber_gets_an_event_once_however_many_of_its_filters_match(local: LocalSubscriptions) -> None:
    for owner, wanted in ((("c0", 1), LOW), (("c0", 1), HIGH), (("c1", 2), HIGH), ((None, 3), LOW)):
        assert local.add(owner, wanted) == (owner[1] == 1)
        local.begin(owner, wanted, 0)
    assert local.subscribers(EVENT) == {"c0": [1], None: [3], "c1": [2]}
    assert local.subscribers(Event(0, 2, 0, {"x": 3})) == {"c0": [1], None: [3]}
    assert local.subscribers(Event(0, 3, 0, {"x": 0})) == {}


def test_one_that_has_another_filter_for_longer_gets_what_that_one_matches(local: LocalSubscriptions) -> None:
    for since, wanted in ((3, LOW), (7, HIGH)):
        local.add(("c0", 1), wanted)
        local.begin(("c0", 1), wanted, since)
    assert [local.subscribers(EVENT, until) for until in (2, 3, 7)] == [{}, {"c0": [1]}, {"c0": [1]}]
    assert local.remove(("c0", 1), LOW)
    assert [local.subscribers(EVENT, until) for until in (6, 7)] == [{}, {"c0": [1]}]
    local.add(("c0", 1), LOW)
    local.begin(("c0", 1), LOW, 9)
    assert [local.subscribers(Event(0, 2, 0, {"x": 3}), until) for until in (8, 9)] == [{}, {"c0": [1]}]


def test_one_of_several_that_hold_a_filter_withdraws_it_for_itself(local: LocalSubscriptions) -> None:
    for subscriber in (1, 2):
        local.add(("c0", subscriber), LOW)
    assert not local.remove(("c0", 2), LOW)
    assert local.subscribers(EVENT) == {"c0": [1]}
    assert local.remove(("c0", 1), LOW)
    assert local.subscribers(EVENT) == {}


def test_what_nobody_holds_cannot_be_withdrawn(local: LocalSubscriptions) -> None:
    assert not local.remove(("c0", 1), LOW)
    local.add(("c0", 1), LOW)
    assert not local.remove(("c0", 2), LOW)
    assert not local.remove(("c1", 1), LOW)
    assert local.subscribers(EVENT) == {"c0": [1]}


def test_what_a_client_holds_is_told_filter_by_filter(local: LocalSubscriptions) -> None:
    for owner, wanted in ((("c0", 1), LOW), (("c1", 2), LOW), (("c0", 1), HIGH), ((None, 3), HIGH)):
        local.add(owner, wanted)
    assert local.of_client("c0") == [(1, LOW), (1, HIGH)]
    assert local.of_client(None) == [(3, HIGH)]
    assert local.of_client("c9") == []
    assert len(local) == 2
