"""To the tick and to the timer: where silence ends, when a nack was sent, when a subscribers' broker looks back."""

from murmur_pubsub.machine import Persist, Send
from reliability.gryphon.knowledge import KnowledgeStream
from reliability.gryphon.messages import Nack, Silence
from reliability.gryphon.pubend import Pubend
from reliability.gryphon.pubend_log import PubendLog
from reliability.gryphon.publishing import Publishing
from tests.protocols.gryphon.bench import Bench


def test_gryphon_s2_silence_goes_up_to_the_tick_before_the_present_one() -> None:
    publishing, pubend = Publishing("p", PubendLog("p", 10), 10), Pubend(0, KnowledgeStream())
    publishing.pubends.append(pubend)
    (persist,) = publishing.log_silence(pubend, 5_999)
    assert isinstance(persist, Persist)
    assert pubend.last == 4, "tick 5 may still get a message"
    publishing.stored(persist.token)
    assert publishing.log_silence(pubend, 5_999) == [], "that is in the log"


def test_gryphon_s3_a_nack_of_the_first_millisecond_says_when_it_was_sent_too() -> None:
    """0 would say that what answers it is no answer."""
    sent = [each.message for each in Bench().stream("s").ask([(0, 9)], 999) if isinstance(each, Send)]
    assert [each.asked for each in sent if isinstance(each, Nack)] == [1]


def test_gryphon_s3_messages_that_come_do_not_put_off_the_look_back() -> None:
    bench = Bench(dct=1_000)
    bench.subscribe("s", 1)
    looks = [each for each in bench.timers_set if each[:2] == ("s", "dct")]
    assert looks == [("s", "dct", 1_000_000)]
    for number in range(3):
        bench.publish("p", 2, number)
        bench.deliver_all()
        bench.pass_time(100)
    assert bench.delivered[1] == [(2, 0), (2, 1), (2, 2)]
    assert [each for each in bench.timers_set if each[:2] == ("s", "dct")] == looks
    bench.pass_time(800)
    assert bench.timers_set[-1] == ("s", "dct", 2_000_000), "nothing new since: twice as far away"
    bench.publish("p", 2, 3)
    bench.deliver_all()
    assert ("s", "dct", 1_000_000) in bench.timers_set[len(looks) + 1 :], "something new: as soon as at first"


def test_gryphon_s3_silence_that_fills_a_gap_is_told_at_once() -> None:
    """A branch that was served beyond it may be waiting for just that; only silence at the end can wait."""
    stream = Bench().stream("m0")
    (branch,) = (each for each in stream.ostreams if each == "s")
    stream.ostreams[branch].quiet_from = stream.ostreams[branch].quiet_to = 30
    sent = [each.message for each in stream.be_silent(10, 19) if isinstance(each, Send) and each.to == "s"]
    assert sent == [Silence(0, 10, 19, 0, [])]
    assert not [each for each in stream.be_silent(31, 39) if isinstance(each, Send) and each.to == "s"]
