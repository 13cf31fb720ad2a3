"""One hop of a message between brokers: it is repeated until it is said to have come, and taken once."""

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Send
from reliability.durable.hops import FIRST_US, Hops
from reliability.durable.messages import Caught, HopHeard


def step(tick: int) -> Caught:
    return Caught("s", "c", 0, 0, tick, Event(7, tick, 0, {}), 1, [1], 9, 0, [])


def test_a_message_is_repeated_until_the_neighbour_has_heard_it() -> None:
    hops = Hops()
    first, second = (hops.send("m", step(tick), 0) for tick in (1, 2))
    assert [each.message.hop for each in (first, second)] == [1, 2]  # type: ignore[attr-defined]
    assert hops.repeat(FIRST_US - 1) == []
    hops.heard("m", HopHeard([1, 1]))
    hops.heard("other", HopHeard([2, 2]))
    assert hops.repeat(FIRST_US) == [second]
    assert hops.repeat(3 * FIRST_US - 1) == []
    assert hops.repeat(3 * FIRST_US) == [second], "each time after twice as long"
    hops.link_down("m")
    assert not hops.any_kept
    assert hops.repeat(1 << 40) == []


def test_each_neighbour_is_told_once_of_all_that_came_from_it() -> None:
    hops = Hops()
    assert not hops.any_to_say
    for hop in (1, 2, 3, 7, 2):
        hops.is_new("m", hop)
    hops.is_new("n", 1)
    hops.is_new("gone", 1)
    hops.link_down("gone")
    assert hops.any_to_say
    assert hops.say() == [Send("m", HopHeard([1, 3, 7, 7])), Send("n", HopHeard([1, 1]))]
    assert not hops.any_to_say


def test_what_was_said_to_have_come_is_repeated_no_more_however_much_is_claimed() -> None:
    hops = Hops()
    sent = [hops.send("m", step(tick), 0) for tick in range(1, 9)]
    hops.send("n", step(1), 0)
    hops.heard("m", HopHeard([2, 4, 7, 7, 3]))
    assert hops.repeat(FIRST_US)[:-1] == [sent[0], sent[4], sent[5], sent[7]]
    hops.heard("m", HopHeard([5, 2**63 - 1]))
    hops.heard("m", HopHeard([4, -5, -(2**63), 0]))
    assert hops.repeat(9 * FIRST_US)[:-1] == [sent[0]]
    hops.heard("m", HopHeard([-(2**63), 2**63 - 1, 1, 1]))
    assert [each.to for each in hops.repeat(40 * FIRST_US) if type(each) is Send] == ["n"]


def test_a_message_that_came_is_not_taken_again_until_the_link_is_another_one() -> None:
    hops = Hops()
    message = step(1)._replace(hop=7)
    assert hops.is_new("m", message.hop)
    assert not hops.is_new("m", message.hop)
    assert hops.is_new("n", message.hop)
    hops.link_down("m")
    assert hops.is_new("m", message.hop)
