"""NRT is estimated from round trips (the paper's reference [7]), and what loss costs then."""

import pytest

from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Received
from reliability.gryphon.messages import AckExpected, Silence
from reliability.gryphon.round_trip import RoundTrip
from tests.protocols.gryphon.bench import Bench, Parcel, to_nobody, to_s
from tests.protocols.gryphon.cuts import CellNetwork, chain


def measured(*took_us: int) -> RoundTrip:
    """An estimate after nacks that took so long to be answered."""
    trip = RoundTrip(1_000_000, 10_000, 2_000_000)
    now_us = 0
    for took in took_us:
        trip.asked(10, 20, now_us)
        trip.heard(10, 10, now_us + took)
        now_us += took + 1_000
    return trip


def test_nrt_is_the_first_one_until_something_was_measured() -> None:
    assert measured().nrt_us == 1_000_000


def test_nrt_is_the_mean_and_four_times_the_mean_deviation() -> None:
    assert measured(20_000).nrt_us == 20_000 + 4 * 10_000
    # mean 20 + (60 - 20) / 8 = 25 ms; deviation 10 + (40 - 10) / 4 = 17.5 ms
    assert measured(20_000, 60_000).nrt_us == 25_000 + 4 * 17_500


def test_nrt_stays_between_the_least_and_the_most() -> None:
    assert measured(*[1_000] * 50).nrt_us == 10_000
    assert measured(9_000_000).nrt_us == 2_000_000


def test_a_nack_that_is_repeated_is_not_timed() -> None:
    trip = measured()
    trip.asked(10, 20, 0)
    trip.asked(15, 30, 50_000)
    trip.heard(10, 20, 60_000)
    assert trip.nrt_us == 1_000_000
    trip.asked(10, 20, 70_000)
    trip.asked(21, 30, 71_000)  # another range: the first one is timed still
    trip.heard(21, 30, 75_000)
    assert trip.nrt_us == 1_000_000
    trip.heard(10, 20, 90_000)
    assert trip.nrt_us == 20_000 + 4 * 10_000


def test_an_answer_to_what_is_known_makes_nrt_twice_as_long() -> None:
    trip = measured(20_000)
    trip.heard_again(0)
    assert trip.nrt_us == 120_000
    for _ in range(10):
        trip.heard_again(0)
    assert trip.nrt_us == 2_000_000


def test_a_broker_repeats_a_nack_as_soon_as_its_round_trips_say() -> None:
    bench = Bench(gct=100, nrt_least=20)
    bench.subscribe("s", 1)
    for sequence in range(3):
        bench.publish("p", 7, sequence)
        bench.deliver_all(unless=to_s if sequence == 1 else to_nobody)
        bench.pass_time(10)
    bench.pass_time(200)
    assert bench.delivered[1] == [(7, 0), (7, 1), (7, 2)]
    stream = bench.stream("s")
    assert stream.round_trip.nrt_us == 20_000, "on the bench an answer takes no time"


def last_after_s(network: CellNetwork, events: int) -> float:
    """Publish so many events, one every 20 ms: how long after the last one was everything at b5?"""
    network.publish(events)
    published_us = network.runtime.now_us
    network.wait(["b5"], for_log=False)
    assert network.lacks("b5") == 0
    return (network.runtime.now_us - published_us) / 1e6


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_loss_of_30_percent_on_each_of_five_links_costs_seconds(seed: int) -> None:
    """All parameters are the defaults. With an NRT of 1 s, twice as long each time, it took 60 to 144 s."""
    link = LinkSpec(delay=Delay("constant", 2_000), loss=0.3)
    network = CellNetwork(chain(6), seed, link, pubends=1, subscribers=("b5",))
    assert last_after_s(network, 200) < 20
    assert network.in_order("b5")
    network.wait(["b5"])
    assert network.kept() == 0


def test_ack_expected_is_repeated_on_the_way_until_it_is_answered_but_not_for_ever() -> None:
    """After ack_delay and NRT, and twice that; from AET on the pubend's own repetition does it."""
    for lost, times in ((True, [0, 1_200, 3_600]), (False, [0])):
        bench = Bench()
        bench.subscribe("s", 1)
        bench.publish("p", 7, 0)
        bench.bag.clear()
        tick = bench.now_us // 1_000
        bench.crash("p")
        begun_us, told_ms = bench.now_us, []
        bench.give("m0", Received("p", AckExpected(0, tick, [])))
        bench.give("m0", Received("p", Silence(0, 0, tick, False, [])))
        for _ in range(200):
            told_ms += [(bench.now_us - begun_us) // 1_000] * len([each for each in bench.bag if is_reminder(each)])
            bench.deliver_all(unless=to_subscribers if lost else to_nobody)
            bench.fire_next(100)
        assert told_ms == times


def to_subscribers(parcel: Parcel) -> bool:
    """Does it go to a subscribers' broker?"""
    return parcel.to in ("s", "t")


def is_reminder(parcel: Parcel) -> bool:
    """Is it an AckExpected for s?"""
    return parcel.to == "s" and type(parcel.message) is AckExpected
