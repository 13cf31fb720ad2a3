"""What the sections of the guaranteed-delivery paper say, one test each, on brokers on a bench."""

import itertools
from typing import Any

import msgpack
import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.machine import Publish, Received
from reliability.gryphon.curiosity import Curiosity
from reliability.gryphon.declaration import GRYPHON
from reliability.gryphon.knowledge import DataTick, KnowledgeStream
from reliability.gryphon.messages import AckExpected, Acks, Data, Nack, Silence
from tests.parameters import parameters_of
from tests.protocols.gryphon.bench import Bench, to_s


def message(sequence: int = 0) -> DataTick:
    return DataTick(Event(1, sequence, 0, {"x": 1}), 0, 0)


def published(count: int, **parameters: Any) -> Bench:
    """A bench whose subscribers at s and t have had `count` events."""
    bench = Bench(**parameters)
    bench.subscribe("s", 1)
    bench.subscribe("t", 2)
    for sequence in range(count):
        bench.publish("p", 7, sequence)
        bench.deliver_all()
        bench.pass_time(10)
    return bench


def nacked(bench: Bench, name: str) -> int:
    """How many ticks a broker has asked for."""
    return sum(each.message.last - each.message.first + 1 for each in bench.sent_by(name, Nack))


# --------------------------------------------------------------------------------- 2: the model of streams
def test_gryphon_s2_knowledge_accumulates_in_any_order() -> None:
    forward, backward = KnowledgeStream(), KnowledgeStream()
    steps = [(0, 4, 5), (6, 8, 9), (10, 12, 13)]
    for stream, order in ((forward, steps), (backward, [*reversed(steps), *steps])):
        for first, last, tick in order:
            stream.silence(first, last)
            stream.learn(tick, message(tick))
    assert list(forward.known) == list(backward.known) == [(0, 13)]
    assert forward.messages == backward.messages
    assert forward.horizon(0) == 14


def test_gryphon_s2_two_messages_on_a_tick_are_a_contradiction() -> None:
    stream = KnowledgeStream()
    stream.learn(5, message(1))
    assert not stream.learn(5, message(1))
    with pytest.raises(ValueError, match="tick 5 holds"):
        stream.learn(5, message(2))


def test_gryphon_s2_final_ticks_are_forgotten_and_stay_known() -> None:
    stream = KnowledgeStream()
    stream.learn(5, message())
    stream.finalize(6)
    assert stream.messages == {}
    assert stream.horizon(0) == 7
    assert not stream.learn(5, message())


def test_gryphon_s2_curiosity_is_forgotten_after_two_rounds() -> None:
    curiosity = Curiosity()
    assert curiosity.ask(1, 10) == [(1, 10)]
    assert curiosity.ask(5, 15) == [(11, 15)]
    curiosity.grow_old()
    assert curiosity.ask(1, 15) == []
    curiosity.grow_old()
    assert curiosity.ask(1, 15) == [(1, 15)]


def test_gryphon_s2_a_message_is_logged_before_it_is_sent() -> None:
    bench = Bench()
    bench.subscribe("s", 1)
    bench.hold_storage = True
    bench.publish("p", 7, 0)
    assert bench.sent_by("p", Data) == []
    bench.store("p")
    assert len(bench.sent_by("p", Data)) == 1


def test_gryphon_s2_a_crash_between_log_and_send_loses_nothing() -> None:
    bench = Bench(aet=500)
    bench.subscribe("s", 1)
    bench.hold_storage = True
    bench.publish("p", 7, 0)
    (persist,) = bench.held["p"]
    bench.logs["p"][persist.token] = persist.record  # on the disk, and the broker dies before it hears of it
    bench.crash("p")
    bench.hold_storage = False
    bench.start("p")
    for peer in bench.peers("p"):
        bench.link("p", peer)
    bench.pass_time(5_000)
    assert bench.delivered[1] == [(7, 0)]


def test_gryphon_s2_a_tick_is_never_used_again() -> None:
    bench = published(3)
    before = bench.stream("p").pubend
    assert before is not None
    last = before.last
    bench.crash("p")
    bench.start("p")
    for peer in bench.peers("p"):
        bench.link("p", peer)
    bench.publish("p", 7, 3)
    after = bench.stream("p").pubend
    assert after is not None
    assert after.last_message > last
    bench.pass_time(3_000)
    assert bench.delivered[1] == [(7, sequence) for sequence in range(4)]


# ------------------------------------------------------------------------------- 3: the protocol on the tree
def test_gryphon_s3_a_filtered_message_is_silence_below() -> None:
    bench = Bench()
    bench.subscribe("s", 1, "x = 1")
    bench.subscribe("t", 2, "x = 2")
    for sequence, x in enumerate([2, 2, 1, 2]):
        bench.publish("p", 7, sequence, x)
        bench.deliver_all()
    assert bench.delivered == {1: [(7, 2)], 2: [(7, 0), (7, 1), (7, 3)]}
    (data,) = [each.message for each in bench.sent if each.to == "s" and type(each.message) is Data]
    assert data.start <= data.tick - 2, "the two before it are told as silence with it"
    assert bench.stream("s").knowledge.newest == data.tick


def test_gryphon_s3_silence_is_told_when_it_has_waited_for_sit() -> None:
    bench = Bench(sit=300)
    bench.subscribe("t", 2, "x = 2")
    bench.subscribe("s", 1, "x = 1")
    bench.publish("p", 7, 0, 2)
    bench.deliver_all()
    tick = bench.stream("t").knowledge.newest
    assert bench.stream("s").knowledge.newest < tick
    bench.pass_time(1_000)
    assert bench.stream("s").knowledge.newest >= tick


def test_gryphon_s3_a_gap_holds_up_nothing_on_the_way() -> None:
    bench = published(1)
    bench.publish("p", 7, 1)
    bench.bag.clear()
    bench.pass_time(5)
    bench.publish("p", 7, 2)
    bench.deliver_all()
    assert bench.stream("s").knowledge.newest == bench.stream("p").knowledge.newest
    assert bench.delivered[1] == [(7, 0)], "but a subscriber gets them in order"


def test_gryphon_s3_a_gap_is_asked_for_after_gct_and_not_before() -> None:
    bench = published(1, gct=200)
    bench.publish("p", 7, 1)
    bench.bag.clear()
    bench.pass_time(5)
    bench.publish("p", 7, 2)
    bench.deliver_all()
    bench.pass_time(190)
    assert bench.sent_by("s", Nack) == []
    bench.pass_time(20)
    assert nacked(bench, "s") > 0
    assert bench.delivered[1] == [(7, sequence) for sequence in range(3)]


def waits_between_nacks(bench: Bench, lost: tuple[type, ...]) -> list[int]:
    """s lacks a message, every message of those classes is lost: how many 100 ms lie between the nacks of s?"""
    bench.publish("p", 7, 1)
    bench.bag.clear()
    bench.publish("p", 7, 2)
    bench.deliver_all()
    times = []
    for at in range(80):
        before = len(bench.sent_by("s", Nack))
        bench.pass_time(100, unless=lambda parcel: type(parcel.message) in lost)
        if at % 4 == 0:
            bench.publish("p", 7, 3 + at)
            bench.deliver_all(unless=lambda parcel: type(parcel.message) in lost)
        if len(bench.sent_by("s", Nack)) > before:
            times.append(bench.now_us)
    return [(later - earlier) // 100_000 for earlier, later in itertools.pairwise(times)]


def test_gryphon_s3_a_nack_is_repeated_after_nrt_and_more_slowly_while_nothing_comes() -> None:
    bench = published(1, gct=100, nrt=500, nrt_most=2_000, aet=60_000, aet_most=60_000)
    assert waits_between_nacks(bench, lost=(Nack, Data, Silence))[:5] == [5, 10, 20, 20, 20]


def test_gryphon_s3_a_nack_is_repeated_after_nrt_each_time_while_later_messages_come() -> None:
    """What is missing was lost: the pubend can be reached."""
    bench = published(1, gct=100, nrt=500, nrt_most=2_000, aet=60_000, aet_most=60_000)
    assert waits_between_nacks(bench, lost=(Nack,))[:5] == [5, 5, 5, 5, 5]


def test_gryphon_s3_a_large_range_is_asked_for_in_parts() -> None:
    bench = published(1, nack_chunk=50)
    for sequence in range(1, 15):
        bench.publish("p", 7, sequence)
        bench.bag.clear()
        bench.pass_time(20, unless=lambda parcel: True)
    bench.publish("p", 7, 15)
    bench.deliver_all()
    bench.pass_time(300)
    nacks = [each.message for each in bench.sent_by("s", Nack)]
    assert len(nacks) >= 5
    assert all(each.last - each.first < 50 for each in nacks)
    assert bench.delivered[1] == [(7, sequence) for sequence in range(16)]


def test_gryphon_s3_a_finite_dct_asks_though_nothing_later_has_come() -> None:
    for dct, asked in ((1_000, True), (None, False)):
        bench = published(1, aet=60_000, aet_most=60_000, dct=dct)
        bench.pass_time(1_000)
        bench.publish("p", 7, 1)
        bench.bag.clear()
        bench.pass_time(4_000, unless=lambda parcel: type(parcel.message) is Silence and not parcel.message.answer)
        assert (len(bench.sent_by("s", Nack)) > 0) == asked
        assert (bench.delivered[1] == [(7, 0), (7, 1)]) == asked


def test_gryphon_s3_ack_expected_makes_brokers_curious_that_lack_something() -> None:
    bench = published(1, aet=1_000, sit=900)
    bench.publish("p", 7, 1)
    bench.bag.clear()
    bench.pass_time(1_500, unless=lambda parcel: type(parcel.message) is Silence and not parcel.message.answer)
    assert len(bench.sent_by("p", AckExpected)) >= 1
    assert bench.delivered == {1: [(7, 0), (7, 1)], 2: [(7, 0), (7, 1)]}


def test_gryphon_s3_a_late_branch_keeps_the_log() -> None:
    bench = published(1, checkpoint=1)
    bench.pass_time(2_000)
    p = bench.stream("p")
    assert p.pubend is not None
    assert p.knowledge.final >= p.pubend.last_message
    bench.publish("p", 7, 1)
    tick = p.pubend.last_message
    bench.deliver_all(unless=lambda parcel: parcel.to == "t")
    bench.pass_time(500, unless=lambda parcel: parcel.to == "t")
    assert p.knowledge.final < tick
    assert tick in p.knowledge.messages
    bench.pass_time(8_000)
    assert p.knowledge.final >= tick


def test_gryphon_s3_the_log_is_cut_when_all_have_acknowledged() -> None:
    bench = published(50, checkpoint=10)
    bench.pass_time(3_000)
    kinds = [msgpack.unpackb(record, strict_map_key=False)[0] for record in bench.logs["p"].values()]
    assert len(kinds) < 30
    assert "C" in kinds
    bench.crash("p")
    bench.start("p")
    for peer in bench.peers("p"):
        bench.link("p", peer)
    bench.give("p", Publish(Event(7, 49, bench.now_us, {"x": 1})))  # its own publisher: numbers are not its business
    bench.publish("p", 7, 50)
    bench.pass_time(3_000)
    assert bench.delivered[1][-1] == (7, 50)


# ------------------------------------------------------------------------- 4: the protocol under failures
def test_gryphon_s4_nack_consolidation() -> None:
    bench = published(1)
    for sequence in (1, 2, 3):
        bench.publish("p", 7, sequence)
        bench.bag.clear()
        bench.pass_time(20)
    bench.unlink("p", "m0")
    bench.unlink("m0", "s")
    bench.unlink("m0", "t")
    bench.publish("p", 7, 4)
    bench.deliver_all()
    bench.pass_time(400)
    asked = [nacked(bench, name) for name in ("s", "t", "m1")]
    assert asked[0] == asked[1] > 0
    assert asked[2] <= 0.6 * (asked[0] + asked[1])
    assert bench.delivered == {1: [(7, sequence) for sequence in range(5)], 2: [(7, sequence) for sequence in range(5)]}


def test_gryphon_s4_what_was_answered_and_forgotten_is_asked_for_again_at_once() -> None:
    bench = published(1, cache=1)
    for sequence in (1, 2):
        bench.publish("p", 7, sequence)
        bench.deliver_all(unless=to_s)
        bench.pass_time(10, unless=to_s)
    lacks = Received("s", Nack(0, 1_001, 1_010, 1, []))
    bench.give("m0", lacks)
    bench.give("m0", lacks)
    assert nacked(bench, "m0") == 10, "p was asked, and has not answered yet"
    bench.deliver_all(unless=to_s)
    assert 1_010 not in bench.stream("m0").knowledge.messages, "the cache is full of a later message"
    bench.give("m0", lacks)
    assert nacked(bench, "m0") == 11, "silence takes no room: only the message was dropped"
    bench.deliver_all()
    assert bench.delivered[1] == [(7, 0), (7, 1)]


def test_gryphon_s4_an_answer_goes_only_to_the_branches_that_asked() -> None:
    bench = published(1)
    bench.publish("p", 7, 1)
    bench.deliver_all(unless=lambda parcel: parcel.to == "s")
    bench.pass_time(5)
    bench.publish("p", 7, 2)
    bench.deliver_all()
    before = len([each for each in bench.sent if each.to == "t"])
    bench.pass_time(300)
    assert bench.delivered[1] == [(7, sequence) for sequence in range(3)]
    after = [each for each in bench.sent[before:] if each.to == "t" and getattr(each.message, "answer", False)]
    assert after == []
    assert bench.sent_by("m0", Nack) == [], "the cell's broker had it in its cache"


def test_gryphon_s4_an_intermediate_broker_recovers_from_nothing() -> None:
    bench = published(3)
    bench.crash("m0")
    bench.publish("p", 7, 3)
    bench.deliver_all()
    bench.start("m0")
    for peer in bench.peers("m0"):
        bench.link("m0", peer)
    assert bench.sent_by("m0", Nack) == [], "it asks for nothing until it is asked"
    bench.publish("p", 7, 4)
    bench.deliver_all()
    bench.pass_time(3_000)
    assert bench.delivered[1] == bench.delivered[2] == [(7, sequence) for sequence in range(5)]


def test_gryphon_s4_a_restarted_broker_acknowledges_nothing_for_others() -> None:
    bench = published(2)
    bench.crash("m0")
    bench.start("m0")
    for peer in bench.peers("m0"):
        bench.link("m0", peer)
    acks_before = len(bench.sent_by("m0", Acks))
    bench.publish("p", 7, 2)
    bench.deliver_all(unless=lambda parcel: parcel.to == "t" or parcel.source == "t")
    bench.pass_time(900, unless=lambda parcel: parcel.to == "t" or parcel.source == "t")
    tick = bench.stream("p").knowledge.ticks(0, 1 << 40)[-1]
    told = [each.message.upto[1] for each in bench.sent_by("m0", Acks)[acks_before:]]
    assert all(upto < tick for upto in told)
    assert bench.stream("p").knowledge.final < tick


def test_gryphon_s4_a_broker_without_a_way_hands_over_to_its_sibling() -> None:
    bench = published(1)
    bench.unlink("m0", "s")
    bench.publish("p", 7, 1)
    bench.deliver_all()
    assert bench.delivered[1] == bench.delivered[2] == [(7, 0), (7, 1)]
    aside = [each for each in bench.sent_by("m0", Data) if each.to == "m1"]
    assert [each.message.route for each in aside] == [["m0", "m1", "s"]]
    assert [each.message.hops for each in bench.sent_by("m1", Data)] == [3], "each link counts"


def test_gryphon_s4_pubends_share_the_links_of_a_bundle() -> None:
    bench = Bench(pubends={"p": 4})
    bench.subscribe("s", 1)
    for publisher in range(4):
        bench.publish("p", publisher, 0)
    bench.deliver_all()
    ways = [each.to for each in bench.sent_by("p", Data)]
    assert ways.count("m0") == ways.count("m1") == 2


# ----------------------------------------------------------------- subscriptions: from which tick they count
def test_gryphon_a_subscription_counts_from_a_tick_on() -> None:
    bench = published(3)
    bench.subscribe("s", 9)
    bench.publish("p", 7, 3)
    bench.deliver_all()
    assert bench.delivered[9] == [(7, 3)]


def test_gryphon_a_broker_that_does_not_know_the_filters_filters_nothing() -> None:
    bench = Bench()
    bench.subscribe("s", 1, "x = 1")
    bench.publish("p", 7, 0, 1)
    bench.deliver_all()
    bench.crash("m0")
    bench.crash("m1")
    bench.start("m0")
    bench.link("p", "m0")  # the way up is there before any filter has come from below
    bench.publish("p", 7, 1, 1)
    bench.deliver_all()
    bench.link("m0", "s")
    bench.link("m0", "t")
    bench.publish("p", 7, 2, 1)
    bench.deliver_all()
    bench.pass_time(3_000)
    assert bench.delivered[1] == [(7, 0), (7, 1), (7, 2)]


# ------------------------------------------------------------------------------------------- bad input
def test_gryphon_a_foreign_log_is_refused() -> None:
    bench = Bench()
    bench.logs["p"] = {1: msgpack.packb(["X", 1])}
    bench.crash("p")
    with pytest.raises(InputError, match="the stable log of p, record 1"):
        bench.start("p")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"gct": "2 s"}, "gct"),
        ({"nrt": "0 s"}, "nrt"),
        ({"nrt": 1_000}, "nrt"),
        ({"nrt": "1500 us"}, "nrt"),
        ({"forgetting": "5 s"}, "forgetting"),
        ({"dct": "400 ms"}, "dct"),
        ({"aet": "100 ms"}, "ack_delay"),
        ({"patience": 3}, "patience"),
        ({"pubends": {"p": 0}}, "pubends.p"),
        ({"pubends": "p"}, "pubends"),
        ({"pubends": {"p": ["quotes"], "q": ["trades", "quotes"]}}, "pubends.q"),
    ],
)
def test_gryphon_thresholds_that_contradict_each_other_are_refused(given: dict[str, object], place: str) -> None:
    with pytest.raises(InputError) as caught:
        parameters_of(GRYPHON, given)
    assert caught.value.place == f"broker.parameters.gryphon.{place}"
