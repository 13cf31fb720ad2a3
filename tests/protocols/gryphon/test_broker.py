"""One broker's part as a whole: its timers, and what it makes of each message."""

import random

from murmur_pubsub.client import ClientSubscribe
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import LinkDown, LinkUp, Received, Send
from reliability.gryphon.ack_expected import ACK_EXPECTED_SENT
from reliability.gryphon.messages import (
    AckExpected,
    Acks,
    HandedBack,
    Nack,
    Silence,
    Submission,
)
from reliability.gryphon.streams import NACK_SENT
from tests.protocols.gryphon.bench import Bench, to_nobody, to_s


def event(sequence: int, source: int = 3) -> Event:
    return Event(source, sequence, 0, {"x": 1})


# ---------------------------------------------------------------------------------------------- the broker
def sent_at(bench: Bench, name: str, kind: type, milliseconds: int, to: str) -> list[int]:
    """When the broker sends messages of the class to a neighbour, from now on for so long; nothing arrives."""
    begun_us, times = bench.now_us, []
    while bench.now_us < begun_us + milliseconds * 1_000:
        bench.fire_next(10)
        times += [
            (bench.now_us - begun_us) // 1_000
            for each in bench.bag
            if (each.source, each.to, type(each.message)) == (name, to, kind)
        ]
        bench.bag.clear()
    return times


def until_expected(bench: Bench) -> int:
    """After how many ms does p expect acknowledgements next? Nothing that is sent arrives."""
    begun_us = bench.now_us
    bench.records.clear()
    while not any(row.topic == ACK_EXPECTED_SENT for _, row in bench.records):
        bench.fire_next(10)
        bench.bag.clear()
    return (bench.now_us - begun_us) // 1_000


def test_ack_expected_comes_after_aet_and_then_more_slowly_each_time() -> None:
    bench = Bench(aet=3_000, aet_most=10_000)
    bench.subscribe("s", 1)
    bench.publish("p", 7, 0)
    bench.bag.clear()
    assert [until_expected(bench) for _ in range(4)] == [3_000, 6_000, 10_000, 10_000]
    assert bench.records[-1][1].value == 1_000
    assert {each.message.tick for each in bench.sent_by("p", AckExpected)} == {1_000}


def test_ack_expected_comes_after_aet_again_while_acknowledgements_make_progress() -> None:
    bench = Bench(aet=3_000, aet_most=6_000)
    bench.subscribe("s", 1)
    for number in range(5):
        bench.publish("p", 7, number)
    bench.bag.clear()
    waits = []
    for acknowledged in (-1, 1_000, 1_001, 1_002, 1_002, 1_002):
        bench.stream("p").take_ack("m0", acknowledged)
        waits.append(until_expected(bench))
    assert waits == [3_000, 6_000, 6_000, 3_000, 3_000, 6_000]


def test_the_pubend_repeats_ack_expected_too_until_all_is_acknowledged() -> None:
    bench = Bench(aet=3_000, aet_most=60_000)
    bench.subscribe("s", 1)
    bench.publish("p", 7, 0)
    bench.bag.clear()
    assert sent_at(bench, "p", AckExpected, 8_000, "m0") == [3_000, 4_200, 6_600]
    bench.stream("p").take_ack("m0", 1_000)
    assert sent_at(bench, "p", AckExpected, 30_000, "m0") == []
    assert not bench.brokers["p"].waiting


def test_a_restarted_pubend_expects_acknowledgements_as_soon_as_it_has_a_link() -> None:
    bench = Bench()
    bench.subscribe("s", 1)
    bench.publish("p", 7, 0)
    bench.crash("p")
    bench.start("p")
    begun_us = bench.now_us
    for _ in range(5):
        bench.fire_next(100)
    assert bench.sent_by("p", AckExpected) == []
    assert bench.now_us - begun_us == 500_000
    bench.link("p", "m0")
    assert sent_at(bench, "p", AckExpected, 400, "m0") == [100]


def test_each_threshold_is_the_time_after_which_its_timer_fires() -> None:
    bench = Bench(
        gct=210, dct=1_030, nrt=990, forgetting=440, aet=3_010, sit=470, ack_delay=170, resend=530, give_up_after=7_010
    )
    bench.subscribe("s", 1)
    bench.give("s", LinkUp("c", False))
    bench.give("s", Received("c", ClientSubscribe(5, parse_filter("x >= 0"))))
    bench.give("p", LinkUp("c", False))
    bench.give("p", Received("c", Submission(event(0), 0)))
    bench.deliver_all()
    bench.publish("p", 7, 0)
    bench.bag.clear()
    bench.publish("p", 7, 1)
    bench.deliver_all()
    for _ in range(30):
        bench.fire_next(50)
    bench.unlink("p", "m0")
    bench.unlink("p", "m1")
    first: dict[str, int] = {}
    for name, what, delay_us in bench.timers_set:
        first.setdefault(f"{name} {what}", delay_us // 10)
    assert first["s gap"] == 21_000
    assert first["s dct"] == 103_000
    assert first["s forget"] == 44_000
    assert first["p expect"] == 301_000
    assert first["p silence"] == first["m0 silence"] == 47_000
    assert first["s acks"] == 17_000
    assert first["s sessions"] == 53_000
    assert first["p accept"] == 5_000
    assert first["p give up"] == 701_000


def test_a_single_tick_of_silence_is_told_too() -> None:
    bench = Bench(sit=300)
    bench.subscribe("s", 1, "x = 1")
    bench.publish("p", 7, 0, 1)
    bench.publish("p", 7, 1, 2)
    ostream = bench.stream("p").ostreams["m"]
    assert (ostream.quiet_from, ostream.quiet_to) == (1_001, 1_001)
    told = bench.stream("p").tell_silence()
    assert [each.message for each in told if type(each) is Send] == [Silence(0, 1_001, 1_001, 0, [])]
    assert bench.stream("p").tell_silence() == []
    assert not bench.stream("p").has_silence_to_tell


def test_acknowledgements_gather_for_ack_delay() -> None:
    bench = Bench(ack_delay=200)
    bench.subscribe("s", 1)
    bench.publish("p", 7, 0)
    bench.deliver_all()
    bench.pass_time(100)
    bench.publish("p", 7, 1)
    bench.deliver_all()
    assert sent_at(bench, "s", Acks, 1_000, "m0") == [100]
    assert [each.message.upto for each in bench.sent_by("s", Acks)] == [[0, 1_100]] * 2, "to either of the cell"


def test_a_nack_of_nothing_and_one_of_a_pubend_that_is_not_there_are_ignored() -> None:
    bench = Bench()
    for nack in (Nack(0, 10, 9, 5, []), Nack(99, 1, 10, 5, [])):
        bench.give("m0", Received("s", nack))
    bench.give("m0", Received("s", Acks([99, 5], [])))
    bench.give("m0", Received("p", AckExpected(99, 5, [])))
    bench.give("m0", Received("p", Silence(99, 1, 5, 0, [])))
    assert bench.bag == []
    bench.give("m0", Received("s", Nack(0, 10, 10, 5, [])))
    assert [each.message for each in bench.bag] == [Nack(0, 10, 10, 1_000, [])]
    assert bench.records[-1][1][:3] == (NACK_SENT, 1, "p")


def test_acknowledgements_of_several_pubends_come_in_one_message() -> None:
    bench = Bench(pubends={"p": 3})
    bench.give("p", Received("m0", Acks([0, 1_000, 1, 1_001, 2, 1_002], [])))
    assert [bench.stream("p", number).ostreams["m"].acked for number in range(3)] == [1_000, 1_001, 1_002]


def test_nacks_and_acknowledgements_from_the_wrong_side_are_ignored() -> None:
    bench = Bench()
    bench.subscribe("s", 1)
    bench.publish("p", 7, 0)
    bench.deliver_all()
    for source in ("p", "m1"):
        bench.give("m0", Received(source, Nack(0, 0, 1_000, 5, [])))
        bench.give("m0", Received(source, Acks([0, 1_000], [])))
    assert bench.bag == []
    assert bench.stream("m0").knowledge.final == -1
    assert all(ostream.acked == -1 for ostream in bench.stream("m0").ostreams.values())


def test_a_message_whose_path_does_not_name_its_receiver_is_dropped() -> None:
    bench = Bench()
    bench.give("m0", Received("p", Silence(0, 1, 5, 0, ["p", "m1", "s"])))
    assert bench.bag == []
    assert bench.stream("m0").knowledge.newest == -1


def test_silence_and_nacks_by_a_detour_are_passed_on_and_taken_at_its_end() -> None:
    bench = Bench()
    bench.give("m1", Received("m0", Silence(0, 1, 5, 0, ["m0", "m1", "s"])))
    assert bench.bag == [("m1", "s", Silence(0, 1, 5, 0, ["m0", "m1", "s"]))]
    assert bench.stream("m1").knowledge.newest == -1, "what is silence for s may not be for others"
    bench.deliver_all()
    assert bench.stream("s").knowledge.newest == 5


def test_a_siblings_message_that_passes_is_kept_for_those_who_ask() -> None:
    bench = Bench()
    bench.subscribe("s", 1)
    bench.unlink("m0", "s")
    bench.publish("p", 7, 0)
    bench.deliver_all(unless=to_s)
    assert sorted(bench.stream("m1").knowledge.messages) == [1_000]
    bench.publish("p", 7, 1)
    bench.deliver_all()
    bench.pass_time(1_000)
    assert bench.delivered[1] == [(7, 0), (7, 1)]
    nacks = {(each.source, each.to) for each in bench.sent if type(each.message) is Nack}
    assert nacks == {("s", "m1"), ("m1", "p")}, "the tick was kept; p is asked for the silence before it"


def test_a_full_window_holds_a_subend_back_and_no_gap_is_asked_for() -> None:
    bench = Bench(window=1)
    bench.give("s", LinkUp("c", False))
    bench.give("s", Received("c", ClientSubscribe(5, parse_filter("x >= 0"))))
    for sequence in range(3):
        bench.publish("p", 7, sequence)
        bench.deliver_all()
    subend = bench.stream("s").subend
    assert subend is not None
    assert subend.next == 1_001
    assert bench.brokers["s"].waiting
    bench.pass_time(5_000)
    assert bench.sent_by("s", Nack) == []
    for number in range(3):
        bench.give("s", Received("c", HandedBack(1, number)))
    assert subend.next > 1_002
    assert not bench.brokers["s"].waiting
    bench.give("s", LinkDown("c", "test"))


def test_the_end_of_a_slow_client_frees_its_broker() -> None:
    bench = Bench(window=1)
    bench.subscribe("s", 1)
    bench.give("s", LinkUp("c", False))
    bench.give("s", Received("c", ClientSubscribe(5, parse_filter("x >= 0"))))
    for sequence in range(3):
        bench.publish("p", 7, sequence)
        bench.deliver_all()
    assert bench.delivered[1] == [(7, 0)]
    bench.give("s", LinkDown("c", "test"))
    assert bench.delivered[1] == [(7, 0), (7, 1), (7, 2)]


def test_a_lossy_bench_ends_with_every_invariant_kept() -> None:
    """A draw of what is lost; see also the model test."""
    rng = random.Random("parts")
    bench = Bench(aet=1_000, aet_most=1_000)
    bench.subscribe("s", 1)
    for sequence in range(30):
        bench.publish("p", 7, sequence)
        bench.deliver_all(unless=to_s if rng.random() < 0.5 else to_nobody)
        bench.pass_time(20)
        for broker in bench.brokers.values():
            broker.check_invariants()
    bench.pass_time(10_000)
    assert bench.delivered[1] == [(7, sequence) for sequence in range(30)]
    assert bench.stream("p").knowledge.messages == {}
