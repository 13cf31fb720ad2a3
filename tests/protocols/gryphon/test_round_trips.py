"""NRT is estimated from round trips (the paper's reference [7]), and what loss costs then."""

from typing import Any

import pytest

from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Received
from reliability.gryphon.messages import AckExpected, Data, Nack, Silence
from reliability.gryphon.round_trip import RoundTrip
from tests.protocols.gryphon.bench import Bench, Parcel, to_nobody, to_s
from tests.protocols.gryphon.cuts import CellNetwork, chain


def measured(*took_us: int) -> RoundTrip:
    """An estimate after nacks that took so long to be answered."""
    trip = RoundTrip(1_000_000, 10_000, 2_000_000)
    for took in took_us:
        trip.measured(took)
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


def one_lost(**parameters: Any) -> Bench:
    """A bench where s lacks the second of three messages, which m0 has, and t the same, which m0 lacks too."""
    bench = Bench(gct=100, **parameters)
    bench.subscribe("s", 1)
    bench.subscribe("t", 2)
    for sequence in range(3):
        bench.publish("p", 7, sequence)
        bench.deliver_all(unless=to_s if sequence == 1 else to_nobody)
        bench.pass_time(10)
    return bench


def test_a_broker_measures_how_long_after_its_nack_the_answer_comes() -> None:
    bench = one_lost(nrt_least=20)
    while not bench.bag:
        bench.fire_next(10)
    (nack,) = bench.bag
    assert nack.message == Nack(0, 1_001, 1_010, bench.now_us // 1_000, [])
    bench.now_us += 40_000
    bench.deliver_all()
    assert bench.delivered[1] == [(7, 0), (7, 1), (7, 2)]
    (answer,) = [each.message for each in bench.sent_by("m0", Data) if each.message.answer]
    assert answer.answer == nack.message.asked
    assert bench.stream("s").round_trip.nrt_us == 40_000 + 4 * 20_000


def test_an_answer_by_way_of_a_broker_that_had_to_ask_is_measured_by_each() -> None:
    bench = one_lost(nrt_least=1)
    for name in ("m0", "m1"):
        bench.crash(name)
        bench.start(name)
        for peer in bench.peers(name):
            if peer in bench.brokers:
                bench.link(name, peer)
    while not bench.bag:
        bench.fire_next(10)
    for _ in range(4):  # the nack from s to m0, and on to p; the answer to m0, and on to s
        bench.now_us += 10_000
        bench.deliver(bench.bag[0])
    assert bench.delivered[1] == [(7, 0), (7, 1), (7, 2)]
    assert bench.stream("m0").round_trip.nrt_us == 3 * 20_000
    assert bench.stream("s").round_trip.nrt_us == 3 * 40_000


def test_an_answer_to_a_nack_of_the_future_is_not_measured() -> None:
    """It was another life of this broker that asked, by another clock."""
    bench = Bench()
    bench.give("s", Received("m0", Silence(0, 0, 5, bench.now_us // 1_000 + 1, [])))
    assert bench.stream("s").round_trip.nrt_us == 1_000_000
    assert bench.stream("s").round_trip.heard_us == bench.now_us
    bench.give("s", Received("m0", Silence(0, 0, 5, bench.now_us // 1_000, [])))
    assert bench.stream("s").round_trip.nrt_us == 50_000


def test_curiosity_is_forgotten_when_the_answer_is_overdue() -> None:
    bench = Bench(nrt=1_000, forgetting=400, nrt_least=1)
    for nrt_us, remembered_ms in ((1_000_000, 400), (100_000, 50)):
        stream = bench.stream("m0")
        stream.round_trip.nrt_us = nrt_us
        bench.give("m0", Received("s", Nack(0, 1, 10, 5, [])))
        begun_us = bench.now_us
        while stream.curious:
            bench.fire_next(10)
        assert (bench.now_us - begun_us) // 1_000 == 2 * remembered_ms
        bench.bag.clear()


def last_after_s(network: CellNetwork, events: int) -> float:
    """Publish so many events, one every 20 ms: how long after the last one was everything at b5?"""
    network.publish(events)
    published_us = network.runtime.now_us
    network.wait(["b5"], for_log=False)
    assert network.lacks("b5") == 0
    return (network.runtime.now_us - published_us) / 1e6


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_loss_of_30_percent_on_each_of_five_links_costs_seconds(seed: int) -> None:
    """All parameters are the defaults. With an NRT of 1 s, twice as long each time, it took 89 to 103 s."""
    link = LinkSpec(delay=Delay("constant", 2_000), loss=0.3)
    network = CellNetwork(chain(6), seed, link, pubends=1, subscribers=("b5",))
    assert last_after_s(network, 200) < 10
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
        bench.give("m0", Received("p", Silence(0, 0, tick, 0, [])))
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
