"""The parts of guaranteed delivery one by one: what each must do at its edges."""

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.machine import LinkUp, Received, Send, SetTimer, TimerFired
from reliability.gryphon.curiosity import Curiosity
from reliability.gryphon.gryphon import Gryphon
from reliability.gryphon.knowledge import DataTick, KnowledgeStream
from reliability.gryphon.messages import (
    Accepted,
    Data,
    Submission,
)
from reliability.gryphon.parameters import GryphonParameters
from reliability.gryphon.pubend import Pubend
from reliability.gryphon.pubend_log import PubendLog
from reliability.gryphon.publishing import Publishing
from reliability.gryphon.round_trip import RoundTrip
from reliability.gryphon.subend import Subend
from reliability.gryphon.submissions import Submissions
from tests.protocols.gryphon.bench import Bench


def event(sequence: int, source: int = 3) -> Event:
    return Event(source, sequence, 0, {"x": 1})


def tick(number: int) -> DataTick:
    return DataTick(event(number), 0, 0)


# ---------------------------------------------------------------------------------------------- knowledge
def test_a_full_cache_forgets_its_oldest_message_and_all_before_it() -> None:
    stream = KnowledgeStream(2)
    stream.silence(0, 9)
    for number in (10, 11):
        stream.learn(number, tick(number))
    stream.silence(12, 14)
    assert stream.learn(15, tick(15))
    assert sorted(stream.messages) == [11, 15]
    assert list(stream.known) == [(11, 15)], "a Q below would be taken for silence"


def test_a_full_cache_takes_a_message_between_those_that_it_holds_but_none_before() -> None:
    stream = KnowledgeStream(2)
    for number in (10, 20):
        stream.learn(number, tick(number))
    assert not stream.learn(5, tick(5))
    assert sorted(stream.messages) == [10, 20]
    assert stream.learn(15, tick(15))
    assert sorted(stream.messages) == [15, 20]
    assert stream.ticks(0, 99) == [15, 20]


def test_a_full_subscribers_broker_keeps_what_it_needs_first() -> None:
    stream = KnowledgeStream(2, keeps_oldest=True)
    for number in (10, 20):
        stream.learn(number, tick(number))
    assert not stream.learn(30, tick(30))
    assert 30 not in stream.known
    assert stream.learn(15, tick(15))
    assert sorted(stream.messages) == [10, 15]
    assert 20 not in stream.known, "it will be asked for"


def test_a_full_subscribers_broker_forgets_what_was_consumed_before_anything_else() -> None:
    """Another branch has not acknowledged it, and may ask for it further up."""
    stream = KnowledgeStream(2, keeps_oldest=True)
    for number in (10, 20):
        stream.learn(number, tick(number))
    stream.consumed = 11
    assert stream.learn(30, tick(30))
    assert sorted(stream.messages) == [20, 30]
    assert 10 not in stream.known
    assert not stream.learn(40, tick(40))


def test_a_full_cache_makes_room_for_what_comes_next_too() -> None:
    stream = KnowledgeStream(2)
    assert stream.learn(0, tick(0))
    assert stream.go_on(1, 1, tick(1))
    assert not stream.go_on(2, 2, tick(2))
    assert stream.learn(2, tick(2))
    assert sorted(stream.messages) == [1, 2]


def test_final_never_goes_back() -> None:
    stream = KnowledgeStream()
    stream.finalize(10)
    stream.finalize(5)
    assert stream.final == 10
    assert stream.unknown(5, 12) == [(11, 12)]
    assert [stream.horizon(each) for each in (9, 10, 11, 12)] == [11, 11, 11, 12]
    stream.silence(3, 20)
    assert list(stream.known) == [(11, 20)]
    assert stream.horizon(0) == 21
    assert stream.newest == 20


def test_messages_that_are_final_are_forgotten_one_by_one() -> None:
    stream = KnowledgeStream()
    for number in (5, 6, 7):
        stream.learn(number, tick(number))
    stream.finalize(6)
    assert sorted(stream.messages) == [7]
    assert stream.ticks(0, 99) == [7]
    assert not stream.learn(6, tick(6))


# ---------------------------------------------------------------------------------------------- curiosity
def test_what_is_answered_is_no_longer_asked_for() -> None:
    curiosity = Curiosity()
    curiosity.ask(10, 20)
    assert not curiosity.answer(21, 30)
    assert curiosity.answer(15, 30)
    assert not curiosity.answer(15, 30)
    assert curiosity.ask(10, 20) == [(15, 20)]
    curiosity.grow_old()
    assert curiosity.answer(10, 12), "of either generation"
    assert curiosity
    curiosity.grow_old()
    assert not curiosity


# ------------------------------------------------------------------------------------------------- pubend
def test_messages_of_one_millisecond_get_a_tick_each() -> None:
    pubend = Pubend(0, KnowledgeStream())
    assert pubend.next_tick(5_999) == 5
    pubend.being_logged(1, 5, None)
    assert pubend.next_tick(5_999) == 6
    assert pubend.next_tick(9_000) == 9


def test_a_record_stored_out_of_turn_is_an_error() -> None:
    pubend = Pubend(0, KnowledgeStream())
    pubend.being_logged(1, 5, None)
    pubend.being_logged(2, 6, None)
    with pytest.raises(AssertionError, match="record 2"):
        pubend.stored(2)


def test_an_event_gets_the_tick_of_the_time_at_which_it_is_published() -> None:
    """Also where it is the first that the broker hears since long ago."""
    bench = Bench()
    bench.subscribe("s", 1)
    bench.now_us = 9_000_000
    bench.publish("p", 7, 0)
    assert [each.message.tick for each in bench.sent_by("p", Data)] == [9_000]


def test_a_broker_without_pubends_takes_no_publication() -> None:
    bench = Bench()
    with pytest.raises(InputError, match="broker s: found a publication"):
        bench.publish("s", 7, 0)
    bench.publish("p", 7, 0)


def test_the_mark_of_a_pubend_is_its_first_tick_that_is_free() -> None:
    bench = Bench(pubends={"p": 2})
    bench.publish("p", 6, 0)
    gryphon = bench.brokers["p"].reliability
    assert isinstance(gryphon, Gryphon)
    assert gryphon.marks() == [1_001, 0]


def test_a_subscription_has_not_settled_before_its_pubends_were_heard_of() -> None:
    bench = Bench()
    for name in ("p", "s"):
        bench.crash(name)
    bench.start("s")
    bench.link("m0", "s")
    assert not bench.brokers["s"].settling
    bench.subscribe("s", 1)
    assert bench.brokers["s"].settling
    bench.start("p")
    bench.link("p", "m0")
    assert not bench.brokers["s"].settling


def test_publishers_are_spread_over_the_pubends() -> None:
    bench = Bench(pubends={"p": 2})
    bench.subscribe("s", 1)
    for publisher in (4, 5, 6, 7):
        bench.publish("p", publisher, 0)
    assert [each.message.pubend for each in bench.sent_by("p", Data)] == [0, 1, 0, 1]


# --------------------------------------------------------------------------------------------- publishing
class Publisher:
    """The publishing part of a broker with one pubend; what is persisted is stored when the test says so."""

    def __init__(self) -> None:
        self.part = Publishing("p", PubendLog("p", 200), 100)
        self.part.pubends.append(Pubend(0, KnowledgeStream()))
        self.part.recover([])

    def submit(self, sequence: int, oldest: int = 0) -> list[int]:
        """The tokens of what is logged."""
        effects = self.part.submit("c", Submission(event(sequence), oldest), 5_000)
        return [each.token for each in effects]  # type: ignore[union-attr]


def test_a_publisher_hears_what_is_in_the_log_and_no_more() -> None:
    publisher = Publisher()
    tokens = publisher.submit(0) + publisher.submit(1)
    assert not publisher.part.must_accept
    publisher.part.stored(tokens[0])
    assert publisher.part.must_accept
    assert publisher.part.accept() == [Send("c", Accepted(3, 0))]
    assert not publisher.part.must_accept


def test_a_publication_that_comes_twice_is_logged_once_and_accepted_again() -> None:
    publisher = Publisher()
    tokens = publisher.submit(0)
    assert publisher.submit(0) == []
    assert not publisher.part.must_accept, "it is not in the log yet"
    publisher.part.stored(tokens[0])
    publisher.part.accept()
    assert publisher.submit(0) == []
    assert publisher.part.accept() == [Send("c", Accepted(3, 0))]


def test_a_restarted_broker_accepts_again_what_its_log_holds() -> None:
    bench = Bench()
    bench.publish("p", 7, 0)
    bench.crash("p")
    bench.start("p")
    bench.brokers["p"].handle(LinkUp("c", False), bench.now_us)
    effects = bench.brokers["p"].handle(Received("c", Submission(event(0, 7), 0)), bench.now_us)
    (timer,) = effects
    assert timer == SetTimer(("reliability", "accept"), 50_000)
    told = bench.brokers["p"].handle(TimerFired(("reliability", "accept")), bench.now_us)
    assert told == [Send("c", Accepted(7, 0))]


def test_publishers_of_the_brokers_own_hear_nothing() -> None:
    bench = Bench()
    bench.publish("p", 7, 0)
    bench.pass_time(1_000)
    assert bench.sent_by("p", Accepted) == []
    assert all(key[1] != "accept" for key in bench._timers["p"])


def test_what_a_restarted_client_has_no_more_takes_no_room() -> None:
    last: dict[int, int] = {}
    submissions = Submissions(last)
    for sequence in range(1, 1_001):
        submissions.put(event(sequence), 0, "c")
    submissions.put(event(1_001), 0, "c")  # there is room for no more
    submissions.put(event(1_002), 1_002, "c")  # nor for this, but those before it go
    assert submissions.take() is None
    submissions.put(event(1_002), 1_002, "c")
    found = submissions.take()
    assert found is not None
    assert found[0].sequence == 1_002


# ------------------------------------------------------------------------------------------------- subend
def asked(subend: Subend, knowledge: KnowledgeStream, trip: RoundTrip, now_ms: int) -> tuple[object, object]:
    nacks, again_us = subend.ask(knowledge, trip, now_ms * 1_000)
    return nacks, None if again_us is None else again_us // 1_000


def test_a_subend_looks_again_when_the_first_of_its_gaps_is_due() -> None:
    trip = RoundTrip(500_000, 1, 500_000)
    subend, knowledge = Subend(0, GryphonParameters(gct=100, nrt=500, forgetting=500)), KnowledgeStream()
    assert asked(subend, knowledge, trip, 0) == ([], None)
    knowledge.learn(10, tick(10))
    assert subend.has_gap(knowledge)
    assert asked(subend, knowledge, trip, 0) == ([], 100)
    knowledge.learn(20, tick(20))
    assert asked(subend, knowledge, trip, 100) == ([(0, 9)], 200), "the younger gap is due after its own GCT"
    assert asked(subend, knowledge, trip, 200) == ([(11, 19)], 600)
    knowledge.silence(0, 4)
    assert asked(subend, knowledge, trip, 600) == ([(5, 9)], 700)
    knowledge.silence(5, 19)
    subend.next = 21
    assert asked(subend, knowledge, trip, 700) == ([], None)
    assert not subend.has_gap(knowledge)


def test_what_is_expected_is_asked_for_at_once_and_again_after_nrt() -> None:
    trip = RoundTrip(500_000, 1, 500_000)
    subend, knowledge = Subend(5, GryphonParameters(gct=100, nrt=500, forgetting=500)), KnowledgeStream()
    subend.expect(20)
    assert asked(subend, knowledge, trip, 0) == ([(5, 20)], 500)
    assert asked(subend, knowledge, trip, 499) == ([], 500)
    assert asked(subend, knowledge, trip, 500) == ([(5, 20)], 1_500), "nothing has come: twice as long"
    trip.heard_us = 600_000
    assert asked(subend, knowledge, trip, 1_500) == ([(5, 20)], 2_000)


def test_the_waits_between_nacks_double_up_to_eight_times_nrt_or_nrt_most() -> None:
    for nrt_us, most, waits in (
        (500_000, 1_700, [500, 1_000, 1_700, 1_700]),
        (50_000, 2_000, [50, 100, 200, 400, 400]),
    ):
        trip = RoundTrip(nrt_us, 1, 2_000_000)
        subend, knowledge = Subend(5, GryphonParameters(nrt_most=most)), KnowledgeStream()
        subend.expect(20)
        now_us = 0
        for wait in waits:
            nacks, again_us = subend.ask(knowledge, trip, now_us)
            assert nacks == [(5, 20)]
            assert again_us == now_us + wait * 1_000
            now_us = again_us


def test_a_subscription_begins_at_its_tick_and_later_ones_not_before_it() -> None:
    subend = Subend(10, GryphonParameters())
    subend.begin(1, 20)
    subend.begin(1, 5)  # known already
    subend.begin(2, 15)  # its filter is in effect earlier than one that was made before it
    assert [subend.reach(at) for at in (19, 20, 21)] == [-1, 2, 2]
    subend.next = 40
    subend.begin(3, 30)
    assert [subend.reach(at) for at in (39, 40)] == [2, 3]


def test_gryphon_s3_a_single_tick_that_is_expected_is_a_gap() -> None:
    subend, knowledge = Subend(5, GryphonParameters()), KnowledgeStream()
    subend.expect(4)
    assert not subend.has_gap(knowledge)
    subend.expect(5)
    assert subend.has_gap(knowledge)
