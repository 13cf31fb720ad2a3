"""The parts of durable subscriptions one by one: record, log, client."""

from collections.abc import Sequence
from typing import Any

import msgpack
import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import (
    Deliver,
    Effect,
    LinkDown,
    LinkUp,
    Persist,
    Received,
    Record,
    Send,
    SetTimer,
    Start,
    Stored,
    Subscribe,
    TimerFired,
    Truncate,
    Unsubscribe,
)
from murmur_pubsub.promise import GIVEN_UP
from reliability.durable.catching_up import Holder
from reliability.durable.client import RESUMED_ELSEWHERE, DurableClient
from reliability.durable.keeper import Keeper
from reliability.durable.log import DurableLog
from reliability.durable.messages import (
    CatchUp,
    Caught,
    CaughtUp,
    DurableGivenUp,
    DurableHanded,
    Enlist,
    Enlisted,
    GivenUp,
    Recorded,
    Release,
    Resume,
    ResumedAt,
)
from reliability.durable.parameters import DurableParameters
from reliability.durable.record import DurableRecord
from reliability.gryphon.knowledge import KnowledgeStream
from reliability.gryphon.messages import HandedBack
from reliability.gryphon.pubend import Pubend
from reliability.gryphon.pubend_log import Logged, PubendLog

ALL = parse_filter("x >= 0")


def event(sequence: int, x: int = 1) -> Event:
    return Event(3, sequence, 0, {"x": x})


# ------------------------------------------------------------------------------------------ record and log
def a_log() -> DurableLog:
    log = DurableLog("p", 200)
    log.enlist("c", 1, [(1, ALL)], {0: 9})
    log.enlist("d", 1, [(2, parse_filter("x > 5")), (3, ALL)], {0: 9})
    return log


def kept(log: DurableLog, client: str, after: int = -1, until: int = 1_000) -> list[tuple[int, list[int]]]:
    return [(tick, sorted(subscribers)) for tick, _, subscribers in log.record.after(client, 0, after, until)]


def test_a_message_is_kept_until_every_client_that_it_matched_has_it() -> None:
    log = a_log()
    for tick, x in ((10, 1), (11, 7), (12, -1)):
        log.append(Logged(0, tick, event(tick, x)))
    assert kept(log, "c") == [(10, [1]), (11, [1])]
    assert kept(log, "d") == [(10, [3]), (11, [2, 3])]
    assert kept(log, "c", after=10, until=10) == []
    assert [log.record.keeps(0, tick) for tick in (10, 11, 12)] == [True, True, False]
    log.record.release("c", 0, 11)
    log.record.release("c", 0, 10)
    assert (kept(log, "c"), log.record.keeps(0, 10)) == ([], True)
    log.record.release("d", 0, 10)
    assert [log.record.keeps(0, tick) for tick in (10, 11)] == [False, True]
    log.record.check_invariants()


def test_what_a_client_begins_and_ends_with_it_is_not_owed() -> None:
    log = a_log()
    log.append(Logged(0, 10, event(10)))
    log.enlist("c", 2, [], {0: 10})
    assert kept(log, "c") == []
    log.append(Logged(0, 11, event(11)))
    log.enlist("c", 3, [(1, ALL)], {0: 11})
    log.append(Logged(0, 12, event(12)))
    assert kept(log, "c") == [(12, [1])]
    log.enlist("c", 4, [(1, ALL), (4, ALL)], {0: 12})
    log.append(Logged(0, 13, event(13)))
    assert kept(log, "c") == [(12, [1]), (13, [1, 4])], "more filters change nothing of what was matched before"


def test_what_a_subscriber_withdraws_it_is_not_owed_also_when_the_log_is_read_again() -> None:
    log = DurableLog("p", 200)
    effects = [log.enlist("c", 1, [(1, ALL), (2, ALL), (3, ALL)], {0: 9})[1], log.append(Logged(0, 10, event(10)))[1]]
    effects.append(log.enlist("c", 2, [(2, ALL), (3, parse_filter("x > 5"))], {0: 10})[1])
    effects.append(log.append(Logged(0, 11, event(11)))[1])
    again = DurableLog("p", 200)
    again.recover(records_of(*effects))
    for each in (log, again):
        assert kept(each, "c") == [(10, [2]), (11, [2])]
        each.record.check_invariants()
    log.enlist("c", 3, [(3, parse_filter("x > 5"))], {0: 11})
    assert kept(log, "c") == []
    assert not log.record.keeps(0, 10)


def test_to_withdraw_one_of_two_filters_takes_no_longer_for_each_message_the_more_are_owed() -> None:
    """A publishers' broker that takes seconds for it counts as dead."""
    looked_at = 0

    class Tick(int):
        def __eq__(self, other: object) -> bool:
            nonlocal looked_at
            looked_at += 1
            return int(self) == other

        __hash__ = int.__hash__

    record = DurableRecord()
    record.enlist("c", 1, [(1, ALL), (2, parse_filter("x <= 1000"))], {0: 0})
    for tick in range(1, 2_001):
        record.keep(0, Tick(tick), event(tick, tick), record.match(event(tick, tick)))
    record.enlist("c", 2, [(2, parse_filter("x <= 1000"))], {0: 2_000})
    assert list(record.registrations["c"].owed[0]) == list(range(1, 1_001))
    assert looked_at < 20 * 2_000


def records_of(*effects: Persist) -> list[bytes]:
    return [effect.record for effect in effects]


def test_a_log_that_is_read_again_says_whom_its_messages_are_for_without_matching_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = DurableLog("p", 1)
    records = records_of(log.enlist("c", 1, [(1, ALL)], {0: 9})[1])
    records += records_of(*(log.append(Logged(0, tick, event(tick)))[1] for tick in (10, 11, 12)))
    log.record.release("c", 0, 10)
    (checkpoint,) = log.cut({0: 12})
    assert isinstance(checkpoint, Persist)
    assert log.stored(checkpoint.token) == [Truncate(3)], "the log is cut behind what nobody lacks"
    monkeypatch.setattr("reliability.durable.record.DurableRecord.match", None)
    again = DurableLog("p", 1)
    found = again.recover([*records[2:], checkpoint.record])
    assert [logged.tick for logged in found] == [11, 12]
    assert kept(again, "c") == [(11, [1]), (12, [1])]
    assert again.record.registrations["c"].revision == 1
    again.record.check_invariants()


def test_what_was_given_up_is_known_after_a_restart_until_the_client_has_what_follows() -> None:
    log = DurableLog("p", 1)
    records = records_of(log.enlist("c", 1, [(1, ALL)], {0: 9})[1])
    records += records_of(*(log.append(Logged(0, tick, event(tick)))[1] for tick in (10, 11, 12)))
    log.record.give_up("c", 0, 11)
    assert kept(log, "c") == [(12, [1])]
    (checkpoint,) = log.cut({0: 12})
    assert isinstance(checkpoint, Persist)
    again = DurableLog("p", 1)
    for left in (records, records[2:]):  # cut or not
        again = DurableLog("p", 1)
        again.recover([*left, checkpoint.record])
        again.record.check_invariants()
        assert kept(again, "c") == [(12, [1])]
        assert again.record.registrations["c"].lost[0].flat == [3, 10, 11]
    again.record.release("c", 0, 10)
    assert again.record.registrations["c"].lost[0].tick == 11
    again.record.release("c", 0, 11)
    assert again.record.registrations["c"].lost == {}


SENSELESS = {
    "a filter that is none": ["R", 1, "c", 1, [[1, "x >"]], {0: 9}],
    "too short": ["R", 1, "c"],
    "refusals that are none": ["C", 1, {}, {}, [], []],
    "a checkpoint of an older version": ["C", 1, {}, {}, []],
}


@pytest.mark.parametrize("fields", SENSELESS.values(), ids=SENSELESS)
def test_a_log_with_a_senseless_record_is_refused(fields: Sequence[Any]) -> None:
    with pytest.raises(InputError, match="the stable log of p, record 1"):
        DurableLog("p", 200).recover([msgpack.packb(fields)])


def test_a_log_of_durable_subscriptions_is_none_of_guaranteed_delivery() -> None:
    _, persist = DurableLog("p", 200).enlist("c", 1, [(1, ALL)], {0: 9})
    with pytest.raises(InputError, match="a log that this protocol has written"):
        PubendLog("p", 200).recover([persist.record])


# --------------------------------------------------------------------------------------- publishers' broker
class Publishers:
    """A publishers' broker's keeper, and what it has sent."""

    def __init__(self) -> None:
        self.log = DurableLog("p", 200)
        self.pubend = Pubend(0, KnowledgeStream())
        self.sent: list[Any] = []
        self.keeper = Keeper(self.log, {0: self.pubend}, self.post)

    def post(self, message: Any) -> Sequence[Effect]:
        self.sent.append(message)
        return []

    def enlist(self, revision: int, *ticks: int, subscriber: int = 1, now_us: int = 0) -> list[Any]:
        return self.keeper.enlist(Enlist("p", "s", "c", revision, [subscriber], [ALL], list(ticks), 5, 0, []), now_us)

    def put(self, tick: int) -> None:
        token, _ = self.log.append(Logged(0, tick, event(tick)))
        self.pubend.being_logged(token, tick, Logged(0, tick, event(tick)))
        self.pubend.stored(token)

    def answer(self) -> Any:
        (message,) = self.sent
        self.sent.clear()
        return message


def test_a_client_hears_that_it_is_recorded_when_the_log_has_it() -> None:
    p = Publishers()
    (persist,) = p.enlist(4)
    assert p.enlist(4) == p.enlist(3) == [], "it is on its way, and an older word means nothing"
    (later,) = p.enlist(6, subscriber=2)
    assert p.sent == []
    assert p.keeper.stored(persist.token) == [], "a later revision is on its way"
    assert p.keeper.stored(later.token) == []
    assert p.answer() == Enlisted("s", "c", 6, [0, -1], [0, -1], 5, 0, [])
    assert p.keeper.stored(77) is None
    assert p.log.record.registrations["c"].wanted == [(2, ALL)]


def test_a_client_resumes_from_its_tick_or_from_what_its_publishers_broker_knows_of() -> None:
    p = Publishers()
    p.put(10)
    (persist,) = p.enlist(1)
    p.keeper.stored(persist.token)
    assert p.answer().ticks == [0, 10], "a new subscription begins here"
    for tick in (20, 21, 22):
        p.put(tick)
    for given, begins in ((21, 21), (22, 22), (10, 22), (5_000, 22)):
        p.enlist(1, 0, given)
        assert p.answer().ticks == [0, begins], f"{given}: released ticks are gone, and one never given counts for none"


def test_a_client_is_caught_up_step_by_step_with_what_is_safely_in_the_log() -> None:
    p = Publishers()
    (persist,) = p.enlist(1)
    p.keeper.stored(persist.token)
    p.sent.clear()
    for tick in (20, 21, 22):
        p.put(tick)
    p.log.append(Logged(0, 30, event(30)))  # on its way into the log
    p.keeper.catch_up(CatchUp("p", "s", "c", 0, 5, -1, 2, 9, 0, []), 0)
    assert [(type(each), each.after, each.tick) for each in p.sent] == [(Caught, 5, 20), (Caught, 20, 21)]
    assert p.sent[0] == Caught("s", "c", 0, 5, 20, event(20), 0, [1], 9, 0, []), "it has taken no link yet"
    p.sent.clear()
    p.keeper.catch_up(CatchUp("p", "s", "c", 0, 21, -1, 2, 9, 0, []), 0)
    assert [(type(each), each.after, each.tick) for each in p.sent] == [(Caught, 21, 22), (CaughtUp, 22, 22)]
    p.sent.clear()
    for senseless in (("x", 0, 5), ("c", 8, 5)):
        assert p.keeper.catch_up(CatchUp("p", "s", *senseless, -1, 2, 9, 0, []), 0) == []
    p.keeper.release(Release("p", "s", "c", [0, 9_999, 77, 3], 9, 0, []), 0)
    assert p.log.record.registrations["c"].has == {0: 22}, "nobody has what was never given"


def test_who_speaks_for_a_client_that_is_not_on_record_is_told_so() -> None:
    """The record went with a disk. `Released` would have been the last word of it."""
    p = Publishers()
    unknown = Enlisted("s", "c", -1, [0, -1], [], 9, 0, [])
    p.keeper.release(Release("p", "s", "c", [0, 170], 9, 0, []), 0)
    p.keeper.catch_up(CatchUp("p", "s", "c", 0, 5, -1, 2, 9, 0, []), 0)
    assert p.sent == [unknown, unknown]


def test_a_client_of_which_nothing_is_kept_hears_so_with_the_word_that_it_is_recorded() -> None:
    p = Publishers()
    p.put(10)
    (persist,) = p.enlist(1)
    p.keeper.stored(persist.token)
    assert p.answer().ends == [0, 10]
    p.put(20)
    p.enlist(1, 0, 10)
    assert p.answer().ends == []
    p.enlist(1, 0, 20)
    p.pubend.knowledge.finalize(25)
    assert p.answer().ends == [0, 20]
    p.enlist(1, 0, 20)
    assert p.answer().ends == [0, 25], "the message on 20 is the last for the client, but not of all"


def test_who_asks_for_more_says_what_the_client_has() -> None:
    """A publishers' broker that was restarted may have heard of that, and not have stored it."""
    p = Publishers()
    (persist,) = p.enlist(1)
    p.keeper.stored(persist.token)
    for tick in (20, 21, 22):
        p.put(tick)
    p.keeper.catch_up(CatchUp("p", "s", "c", 0, 22, 21, 2, 9, 0, []), 0)
    assert p.log.record.registrations["c"].has == {0: 21}
    assert list(p.log.record.registrations["c"].owed[0]) == [22]
    p.keeper.catch_up(CatchUp("p", "s", "c", 0, 22, 9_999, 2, 9, 0, []), 0)
    assert p.log.record.registrations["c"].has == {0: 22}, "nobody has what was never given"
    assert not p.log.record.keeps_any


def test_a_log_of_another_broker_is_refused() -> None:
    records = records_of(DurableLog("q", 200).enlist("c", 1, [(1, ALL)], {64: 9})[1])
    p = Publishers()
    p.log.recover(records)
    with pytest.raises(InputError, match="the stable log of p: found how far c is with pubend 64"):
        p.keeper.begin("p", 0)


def test_a_lease_runs_from_the_last_word_of_a_client_or_from_the_message_that_waits_for_it() -> None:
    p = Publishers()
    p.keeper = Keeper(p.log, {0: p.pubend}, p.post, 1_000_000)
    (persist,) = p.enlist(1, now_us=4_000_000)
    p.keeper.stored(persist.token)
    p.answer()
    assert p.keeper.give_up(9_000_000) is None, "nothing waits for it"
    for tick in (20_000, 20_100, 20_900):
        p.put(tick)
    assert p.keeper.give_up(20_500_000) == 21_000_000
    p.keeper.release(Release("p", "s", "c", [0, 19_000], 9, 0, []), 20_600_000)
    p.sent.clear()
    assert p.keeper.give_up(21_599_000) == 21_724_000, "it was heard of; the next look is an eighth of a lease away"
    assert p.keeper.give_up(21_600_000) == 21_900_000
    p.keeper.catch_up(CatchUp("p", "s", "c", 0, 19_000, -1, 5, 9, 0, []), 21_700_000)
    assert [type(each) for each in p.sent] == [GivenUp, Caught, CaughtUp]
    assert p.sent[0] == GivenUp("s", "c", 0, 19_000, 20_100, [3, 20_000, 20_100], 9, 0, [])
    assert p.sent[1].after == 20_100
    p.sent.clear()
    p.keeper.catch_up(CatchUp("p", "s", "c", 0, 20_100, -1, 5, 9, 0, []), 21_700_000)
    assert [type(each) for each in p.sent] == [Caught, CaughtUp], "it has been told"


# ---------------------------------------------------------------------------------------------------- client
class Client:
    """A client's machine on its own."""

    def __init__(self, records: Sequence[bytes] = ()) -> None:
        self.machine = DurableClient("s", DurableParameters())
        self.give(Start(records))

    def give(self, input: Any, now_us: int = 1_000) -> list[Any]:
        return list(self.machine.handle(input, now_us))

    def hand(self, number: int, tick: int, session: int = 1, broker: str = "s") -> list[int]:
        message = DurableHanded(session, number, event(tick), 2, [1], 0, tick)
        return [each.event.sequence for each in self.give(Received(broker, message)) if type(each) is Deliver]

    def record(self) -> Persist:
        (persist,) = self.give(TimerFired(("client", "hand back")))
        assert isinstance(persist, Persist)
        return persist

    def resumed_nothing(self, broker: str) -> None:
        assert self.give(LinkUp(broker, True)) == []

    def resumed(self, broker: str) -> Resume:
        resume = self.give(LinkUp(broker, True))[-1]
        assert isinstance(resume, Send)
        assert resume.to == broker
        assert isinstance(resume.message, Resume)
        return resume.message


def test_a_client_hands_back_what_it_has_recorded() -> None:
    client = Client()
    client.give(Subscribe(1, ALL))
    assert client.resumed("s").ticks == []
    assert client.hand(0, 10) + client.hand(1, 12) == [10, 12]
    persist = client.record()
    assert client.give(Stored(persist.token)) == [Truncate(persist.token), Send("s", HandedBack(1, 1))]


def test_a_client_says_at_another_broker_what_it_has_and_takes_nothing_twice() -> None:
    client = Client()
    client.give(Subscribe(1, ALL))
    client.resumed("s")
    client.hand(0, 10, session=900)
    persist = client.record()
    client.give(LinkDown("s", "test"))
    assert client.give(Stored(persist.token)) == [Truncate(persist.token)], "that session is over"
    assert client.resumed("t").ticks == [0, 10]
    assert client.hand(1, 11, session=900) == [], "from the broker before"
    assert client.give(LinkDown("s", "late")) == []
    assert client.hand(0, 10, session=1, broker="t") + client.hand(1, 12, session=1, broker="t") == [12]


def test_a_client_that_is_started_again_goes_on_from_what_it_had_recorded() -> None:
    client = Client()
    client.give(Subscribe(1, ALL), 7_000)
    client.resumed("s")
    client.hand(0, 10)
    persist = client.record()
    client.hand(1, 12)
    again = Client([persist.record])
    again.give(Subscribe(1, ALL), 20)
    resume = again.resumed("s")
    assert (resume.ticks, resume.revision) == ([0, 10], 7_001), "a clock that goes back makes no revision older"
    assert again.hand(0, 12) == [12]
    with pytest.raises(InputError, match="the stable log of a client"):
        Client([b"\xc1"])


def test_a_client_is_settling_until_all_that_it_wants_is_on_record() -> None:
    client = Client()
    assert not client.machine.settling
    client.give(Subscribe(1, ALL), 50)
    assert client.machine.settling
    assert client.resumed("s").revision == 50
    assert client.give(Subscribe(1, ALL), 60) == [], "it holds that already"
    client.give(Received("s", Recorded(50)))
    assert not client.machine.settling
    for _ in range(2):
        client.give(Unsubscribe(1, ALL), 55)
    assert client.give(TimerFired(("client", "resume")), 60) == [Send("s", Resume(55, [], [], []))]
    assert client.machine.settling


def test_a_client_says_in_one_word_what_its_subscribers_change_within_a_moment() -> None:
    client = Client()
    client.resumed_nothing("s")
    said = [client.give(Subscribe(subscriber, ALL), 50) for subscriber in (1, 2, 3)]
    assert [sum(type(each) is SetTimer for each in effects) for effects in said] == [1, 0, 0]
    assert not any(type(each) is Send and type(each.message) is Resume for effects in said for each in effects)
    (send,) = client.give(TimerFired(("client", "resume")), 55)
    assert (send.message.revision, send.message.subscribers) == (52, [1, 2, 3])
    client.give(Subscribe(4, ALL), 60)
    assert client.resumed("s").subscribers == [1, 2, 3, 4], "a new link says all there is"
    assert client.give(TimerFired(("client", "resume")), 65) == []


def test_a_client_that_is_resumed_at_another_tick_journals_it_and_goes_on_there() -> None:
    client = Client()
    client.give(Subscribe(1, ALL))
    client.resumed("s")
    client.hand(0, 500)
    assert client.give(Received("s", ResumedAt(0, 500, 90))) == [Record(RESUMED_ELSEWHERE, 90)]
    assert client.hand(1, 91) == [91]
    told = client.give(Received("s", DurableGivenUp(1, 2, 0, 99, [3, 92, 95, 4, 7, 7])))
    rows = [(each.topic, each.value, each.event and each.event.id) for each in told if isinstance(each, Record)]
    assert rows == [(RESUMED_ELSEWHERE, 99, None), (GIVEN_UP, 92, (3, 95)), (GIVEN_UP, 7, (4, 7))]


def test_a_client_delivers_to_nobody_what_it_has_withdrawn_and_goes_on_behind_it() -> None:
    """Its brokers may not know yet. What it has not delivered now it would deliver late, if it asked again."""
    client = Client()
    client.give(Subscribe(1, ALL))
    client.resumed("s")
    client.give(Unsubscribe(1, ALL), 50)
    assert client.hand(0, 10) == []
    client.give(Subscribe(1, ALL), 60)
    assert client.hand(1, 12) == [12]
    assert client.resumed("s").ticks == [0, 12]


def test_what_a_client_has_of_a_pubend_is_told_once_and_nothing_of_one_it_has_nothing_of() -> None:
    holder = Holder("c0", {1: 7, 2: 3}, 0)
    holder.heard = {2: 3}
    assert holder.unreleased([0, 1, 2]) == {1: 7}
