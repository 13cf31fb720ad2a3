"""The publishers' end reminds of what was not acknowledged: whom, when, and what a broker of clients does about it."""

from collections.abc import Iterator
from typing import Any

import pytest

from murmur_pubsub.filter import EVERYTHING
from murmur_pubsub.machine import Effect, Send
from reliability.durable.keeper import Keeper
from reliability.durable.messages import CatchUp, Caught, Enlist, Enlisted, Release, Released, Resume
from reliability.durable.record import DurableRecord
from reliability.end_to_end.holders import Holders
from reliability.end_to_end.messages import Reminder
from reliability.end_to_end.parameters import EndToEndParameters
from reliability.end_to_end.reminders import Reminders
from reliability.gryphon.knowledge import KnowledgeStream
from reliability.gryphon.pubend import Pubend
from reliability.gryphon.sessions import Sessions
from tests.protocols.durable.test_parts import event
from tests.protocols.durable.test_whole import both_subscribe, numbers, publish
from tests.protocols.end_to_end.test_parts import caught
from tests.protocols.end_to_end.test_whole import Nowhere, a_cluster, judged

NOWHERE = f"tests.protocols.end_to_end.test_whole:{Nowhere.__name__}"
S = 1_000_000


def straight(message: Any) -> list[Effect]:
    return [Send(message.to, message)]


class Keeps(Keeper):
    """Keeps what the test says: (client, pubend, tick)."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, int, int]] = []

    def kept_for(self, since_us: int, until: int = 2**62) -> Iterator[tuple[str, int, int]]:
        return iter([each for each in self.kept if each[2] <= until])

    def kept_for_one(self, client: str, until: int = 2**62) -> Iterator[tuple[int, int]]:
        return ((pubend, tick) for each, pubend, tick in self.kept if each == client)


class Reminding:
    """A publishers' broker that looks whom to remind every 250 ms."""

    def __init__(self) -> None:
        self.keeper = Keeps()
        self.reminders = Reminders(self.keeper, ["b1", "b2"], EndToEndParameters(), straight)
        self.now_us = 0

    def until(self, seconds: float) -> list[tuple[float, str, list[str], list[int]]]:
        """(seconds, broker, clients, ticks) of what is sent up to then."""
        sent = []
        while self.now_us < seconds * S:
            self.now_us += S // 4
            for effect in self.reminders.look(0, self.now_us):
                assert type(effect) is Send
                message: Any = effect.message
                sent.append((self.now_us / S, effect.to, message.clients, message.ticks))
        return sent


def test_a_broker_is_reminded_after_a_rest_and_then_ever_more_seldom_until_it_says_something() -> None:
    bench = Reminding()
    bench.reminders.heard("c1", "b1", 0)
    bench.keeper.kept = [("c1", 0, 500)]
    assert [each[0] for each in bench.until(14)] == [1.5, 1.75, 2.25, 3.25, 5.25, 9.25, 13.25]
    bench.reminders.heard("c1", "b1", 14 * S)
    bench.keeper.kept.append(("c1", 0, 14_200))
    assert [(each[0], each[3]) for each in bench.until(15.5)] == [(15.0, [500]), (15.25, [14_200])]


def test_a_broker_hears_of_all_its_clients_in_one_word_and_where_the_client_is_now() -> None:
    bench = Reminding()
    for client, broker in (("c1", "b1"), ("c2", "b2"), ("c3", "b1"), ("c2", "b1")):
        bench.reminders.heard(client, broker, 0)
    bench.keeper.kept = [("c1", 0, 0), ("c2", 0, 5), ("c3", 0, 7)]
    assert bench.until(1.25) == [(1.0, "b1", ["c1"], [0]), (1.25, "b1", ["c1", "c2", "c3"], [0, 5, 7])]


def test_all_brokers_are_asked_where_it_is_not_known_who_is_where() -> None:
    bench = Reminding()
    bench.keeper.kept = [("c1", 0, 0), ("c2", 0, 0)]
    assert bench.until(1) == [(1.0, "b1", [], []), (1.0, "b2", [], [])]
    bench.reminders.heard("c1", "b1", 0)
    assert bench.until(1.25) == [(1.25, "b1", [], []), (1.25, "b2", [], [])], "c2 may be anywhere still"
    assert bench.until(1.5) == [(1.5, "b1", ["c1"], [0])]


def test_brokers_that_say_nothing_are_asked_again_when_all_was_lost_until_they_ask_by_themselves() -> None:
    bench = Reminding()
    pubend = Pubend(3, KnowledgeStream())
    assert bench.reminders.all_is_lost([pubend], 0) == [Send(to, Reminder(to, 3, [], [])) for to in ("b1", "b2")]
    assert bench.until(1.25) == [(at, to, [], []) for at in (1.0, 1.25) for to in ("b1", "b2")]
    bench.reminders.heard("c1", "b1", 0)
    assert bench.until(40) == [(at, "b2", [], []) for at in (1.75, 2.75, 4.75, 8.75, 12.75, 16.75, 20.75, 24.75, 28.75)]
    assert not bench.reminders.asks_all


def test_who_is_on_record_again_hears_at_once_that_something_is_kept() -> None:
    bench = Reminding()
    bench.keeper.kept = [("c1", 0, 3), ("c2", 0, 4)]
    assert bench.reminders.with_recorded("c2", "b2") == [Send("b2", Reminder("b2", 0, ["c2"], [4]))]


def test_a_message_counts_as_kept_for_one_that_is_there_as_long_as_it_is_young_or_the_client_was_heard_of() -> None:
    record = DurableRecord()
    record.enlist("c1", 1, [(1, EVERYTHING)], {0: 0})
    keeper = Keeper(type("Log", (), {"record": record})(), {}, straight)
    assert not keeper.owes(0), "nothing is kept"
    record.keep(0, 5_000, event(1), {"c1": [1]})
    record.keep(0, 6_000, event(2), {"c1": [1]})
    assert keeper.owes(5 * S)
    assert not keeper.owes(5 * S + 1), "it was heard of at 0 s, when the broker began"
    assert [*keeper.kept_for(0, 5_999)] == [("c1", 0, 5_000)]
    assert [*keeper.kept_for(0, 4_999)] == []
    assert [*keeper.kept_for_one("c1")] == [(0, 6_000)]
    assert [*keeper.kept_for_one("nobody")] == []


# ------------------------------------------------------------------------------------------- at a broker of clients
def of_own(roots: list[str]) -> Holders:
    """b0, whose own subscribers are on record at all of these."""
    holders = Holders("b0", roots, Sessions(0, 5), EndToEndParameters(), straight)
    holders.resume("b0", Resume(1, [1], [EVERYTHING], []), 0)
    for number in range(len(roots)):
        holders.enlisted(Enlisted("b0", "b0", 1, [number, 0], [], 0, 0, []), 1_000)
    return holders


def messages(effects: Any) -> list[Any]:
    return [each.message for each in effects if type(each) is Send]


def test_who_lacks_what_it_is_reminded_of_asks_and_who_has_it_says_so() -> None:
    holders = of_own(["b1"])
    (asked,) = messages(holders.remind(Reminder("b0", 0, ["b0"], [7]), 2_000))
    assert (type(asked), asked.after) == (CatchUp, 0)
    assert messages(holders.remind(Reminder("b0", 0, ["b0"], [7]), 3_000)) == [], "it has asked"
    holders.step(caught(0, 7)._replace(client="b0"), 4_000)
    (said,) = messages(holders.remind(Reminder("b0", 0, ["b0"], [7]), 5_000))
    assert (type(said), said.ticks) == (Release, [0, 7])
    assert messages(holders.remind(Reminder("b0", 0, ["gone"], [7]), 6_000)) == []


@pytest.mark.parametrize("answers", [True, False])
def test_who_gets_an_answer_with_a_hole_asks_again_soon_and_who_gets_none_ever_more_seldom(answers: bool) -> None:
    """Where a fifth of all messages was lost, the same one was lost five times, and came 3 s late for the last time."""
    holders = of_own(["b1"])
    holders.remind(Reminder("b0", 0, ["b0"], [9]), 100_000)
    asked_us, waits_us = 100_000, []
    for _ in range(8):
        now_us, asked = asked_us, list[Any]()
        if answers:
            holders.step(caught(5, 9)._replace(client="b0", asked=now_us // 1_000), now_us + 10_000)
        while not asked:
            now_us = holders.due_us
            asked = messages(holders.look(now_us))
        assert [(type(each), each.after) for each in asked] == [(CatchUp, 0)]
        waits_us.append(now_us - asked_us)
        asked_us = now_us
    assert (max(waits_us[2:]) < 100_000) is answers
    assert (waits_us[-1] == 4 * S) is not answers


def test_a_word_to_all_is_answered_for_every_client_and_of_that_pubend_alone() -> None:
    holders = of_own(["b1", "b2"])
    (asked,) = messages(holders.remind(Reminder("b0", 1, [], []), 2_000))
    assert (asked.to, asked.pubend) == ("b2", 1)


def test_a_broker_tells_one_word_at_a_time_and_again_ever_more_seldom() -> None:
    holders = Holders("b0", ["b1"], Sessions(0, 5), EndToEndParameters(), straight)
    told: list[tuple[int, int]] = []
    for revision in range(1, 9):
        told += [(0, each.revision) for each in messages(holders.resume("b0", Resume(revision, [], [], []), 0))]
    for now_us in range(0, 20 * S, 50_000):
        told += [(now_us // 1_000, each.revision) for each in messages(holders.look(now_us))]
    assert told == [
        (0, 1),
        *((at, 8) for at in (500, 1_000, 1_500, 2_000, 2_500, 3_000, 4_000, 6_000, 10_000, 14_000, 18_000)),
    ]
    (newest,) = messages(holders.enlisted(Enlisted("b0", "b0", 7, [0, 3], [], 0, 0, []), 20 * S))
    assert (type(newest), newest.revision) == (Enlist, 8), "an answer to an older one is followed by the newest"


def test_an_acknowledgement_waits_for_the_answer_to_the_one_before() -> None:
    holders = of_own(["b1"])
    holders.step(caught(0, 1)._replace(client="b0"), S)
    (first,) = messages(holders.look(S + 200_000))
    for tick in range(1, 9):
        holders.step(caught(tick, tick + 1)._replace(client="b0"), S + 201_000)
    assert messages(holders.look(S + 202_000)) == []
    holders.released(Released("b0", "b0", first.ticks, 0, 0, []), S + 203_000)
    assert [each.ticks for each in messages(holders.look(S + 403_000))] == [[0, 9]]


# ----------------------------------------------------------------------------------------------------- as a whole
@pytest.mark.parametrize("restarts", [False, True])
def test_the_last_event_that_routing_lost_comes_within_a_rest_though_nothing_follows_it(restarts: bool) -> None:
    """Of a broker that was restarted too: it does not know who is where, and no question is due for half a minute."""
    with a_cluster(NOWHERE) as cluster:
        both_subscribe(cluster)
        cluster.advance("20 s")
        publish(cluster, 0, 1)
        if restarts:
            cluster.faults.kill("b0")
            cluster.faults.restart("b0")
        cluster.advance("900 ms")
        assert numbers(cluster, "bob") == numbers(cluster, "carol") == []
        cluster.advance("600 ms")
        assert numbers(cluster, "bob") == numbers(cluster, "carol") == [0]
        judged(cluster)


def test_nothing_is_asked_at_rest_before_half_a_minute() -> None:
    holders = of_own(["b1"])
    holders.step(Caught("b0", "b0", 0, 0, 1, caught(0, 1).event, 0, [], 0, 0, []), 2_000)
    holders.released(Released("b0", "b0", [0, 1], 0, 0, []), 2_000)
    asked = [now_us for now_us in range(0, 70 * S, 50_000) if messages(holders.look(now_us))]
    assert asked[0] == 30_050_000
