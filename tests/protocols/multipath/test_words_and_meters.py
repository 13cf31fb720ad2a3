"""What one broker keeps of words that were said to it, and of what it has measured, at their edges."""

import pytest

from murmur_pubsub.machine import Send
from routing.multipath.load import Loads
from routing.multipath.messages import BrokerAway, LinkClaimed, LoadExchange, WordTaken
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.primary_network import PrimaryNetwork, Statement


def a_network() -> PrimaryNetwork:
    """At b0, whose neighbours are b1 and b2; no link leads to b2, and behind b1 is b3."""
    network = PrimaryNetwork("b0", 2, 0)
    network.up = {"b1": None}
    network.set_peers(["b1", "b2"])
    network.learn("b1", Statement(0, 1, ("b0", "b3")))
    return network


@pytest.mark.parametrize(
    ("taken", "again"),
    [((0, 6), True), ((0, 7), False), ((0, 8), False), ((1, 1), False)],
    ids=["an earlier word", "that word", "a later word", "a later life of the witness"],
)
def test_a_word_goes_again_to_a_broker_without_a_link_until_it_has_taken_it(
    taken: tuple[int, int], again: bool
) -> None:
    network = a_network()
    network.spread_away(BrokerAway("b3", "b1", 0, 7, 1, True, 0), "b1")
    network.word_taken("b2", WordTaken("b3", "b1", *taken))
    word = Send("b2", BrokerAway("b3", "b1", 0, 7, 2, True, 0))
    assert network.untaken_words() == ([word] if again else [])


def test_a_word_is_not_said_again_to_who_is_a_neighbour_no_more() -> None:
    network = a_network()
    network.spread_away(BrokerAway("b3", "b1", 0, 7, 1, True, 0), "b1")
    network.set_peers(["b1"])
    assert network.untaken_words() == []


def test_a_word_that_has_gone_as_far_as_it_should_is_passed_on_no_more() -> None:
    assert a_network().spread_away(BrokerAway("b3", "b1", 0, 7, 2, True, 0), "b1") == []


@pytest.mark.parametrize(("life", "away"), [(1, False), (2, True), (3, True)])
def test_a_broker_is_away_only_by_words_of_its_last_life_or_a_later_one(life: int, away: bool) -> None:
    network = a_network()
    network.learn("b3", Statement(2, 1, ("b1",)))
    network.heard_away(BrokerAway("b3", "b1", 0, 7, 1, True, life))
    assert network.is_away("b3") is away


def test_a_witness_says_each_word_under_a_greater_number() -> None:
    network = a_network()
    words = [each.message for away in (True, False) for each in network.witness("b1", away) if isinstance(each, Send)]
    assert sorted({word.version for word in words if isinstance(word, BrokerAway)}) == [1, 2]


def test_a_broker_that_is_away_takes_no_word_of_others_back_and_so_they_are_forgotten() -> None:
    network = a_network()
    network.heard_away(BrokerAway("b3", "b1", 0, 7, 1, True, 0))
    network.heard_away(BrokerAway("b1", "b2", 0, 8, 1, True, 0))
    assert not network.is_away("b3")


def test_what_is_said_of_a_link_is_newer_each_time_it_is_outdated() -> None:
    network = a_network()
    for number in (1, 2):
        network.outdate("b1")
        assert network.claim("b1") == LinkClaimed(number, True)


def test_a_statement_goes_farther_only_if_it_is_heard_over_fewer_hops() -> None:
    network = a_network()
    assert [network.is_nearer("b3", hops) for hops in (3, 2, 2, 1)] == [False, True, False, True]
    network.learn("b3", Statement(0, 2, ("b1",)))
    assert network.is_nearer("b3", 2), "a new word has not been heard yet"


def test_loads_are_told_of_the_other_side_only_and_as_far_as_they_go() -> None:
    """And the time that an answer was held is not part of the round trip."""
    mom = MasterOverlayMap("b0", 2, {"b0": ("b1", "b2"), "b1": ("b0", "b3"), "b2": ("b0",), "b3": ("b1",)})
    loads = Loads()
    loads.take("b1", LoadExchange(50, 100, 30, [["b1", 5, 0], ["b3", 6, 70], ["b2", 9, 80], ["b0", 9, 1]]), mom, 200)
    assert (loads.rates, loads.round_trips_us) == ({"b1": 5, "b3": 6}, {"b1": 70, "b3": 70})
    assert loads.exchange("b2", 4, mom, 260) == LoadExchange(260, 0, 0, [["b0", 4, 0], ["b1", 5, 70]])
    assert loads.exchange("b1", 4, mom, 260) == LoadExchange(260, 50, 60, [["b0", 4, 0]])
