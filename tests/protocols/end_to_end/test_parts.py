"""The parts of exactly once over any overlay, one by one: a chain of steps, and the log that two parts share."""

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import msgpack
import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, Persist, Record, Send, Truncate
from murmur_pubsub.promise import GIVEN_UP, Limits
from murmur_virtual.storage import VirtualStorage
from reliability.durable.messages import (
    CatchUp,
    CatchUpStep,
    Caught,
    CaughtUp,
    DurableGivenUp,
    DurableHanded,
    Enlist,
    Enlisted,
    GivenUp,
    Release,
    Released,
    Resume,
)
from reliability.end_to_end.chain import Chain
from reliability.end_to_end.holders import Holders
from reliability.end_to_end.parameters import EndToEndParameters, entrances
from reliability.gryphon.messages import HandedBack
from reliability.gryphon.sessions import Sessions
from reliability.shared_log import SharedLog


def caught(after: int, tick: int) -> Caught:
    return Caught("b0", "c0", 0, after, tick, Event(1, tick, 0, {"x": 1}), 0, [1], 0, 0, [])


def caught_up(after: int, tick: int) -> CaughtUp:
    return CaughtUp("b0", "c0", 0, after, tick, 0, 0, [])


def taken(chain: Chain, *steps: CatchUpStep) -> list[int]:
    """The ticks of the messages that are taken as the steps come."""
    found = []
    for step in steps:
        chain.put(step)
        while (here := chain.following()) is not None:
            chain.go_on(here)
            if type(here) is Caught:
                found.append(here.tick)
        chain.check_invariants()
    return found


def test_a_chain_takes_each_message_once_and_in_order_however_its_steps_come() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        ticks = sorted(rng.sample(range(1, 100), 12))
        right: list[CatchUpStep] = [caught(after, tick) for after, tick in zip([0, *ticks], ticks, strict=False)]
        # After whichever tick an answer begins, between two messages: what it says is true.
        asked = [caught(rng.randrange(after, tick), tick) for after, tick in zip([0, *ticks], ticks, strict=False)]
        steps = [*right, *right, *asked, caught_up(ticks[-1], ticks[-1] + 5)]
        rng.shuffle(steps)
        chain = Chain(0, 50, 0)
        assert taken(chain, *steps) == ticks
        assert not chain.has_gap


def test_a_step_whose_predecessor_was_withdrawn_is_replaced_by_one_that_reaches_back_farther() -> None:
    chain = Chain(0, 10, 0)
    assert taken(chain, caught(5, 9)) == []
    assert chain.has_gap
    assert taken(chain, caught(0, 9)) == [9], "there is nothing on tick 5 any more"


def test_an_answer_that_there_is_nothing_ends_the_question_and_goes_on_over_silence() -> None:
    chain = Chain(3, 10, 0)
    assert chain.ask(100) == 10
    assert taken(chain, caught_up(3, 3)) == []
    assert not chain.left
    chain.ask(100)
    taken(chain, caught_up(3, 7))
    assert (chain.tick, chain.left) == (7, 0)


def test_when_all_that_was_asked_for_has_come_more_is_asked_for_at_once_and_twice_as_much() -> None:
    chain = Chain(0, 100, 9_999)
    assert chain.ask(100) == 10
    assert taken(chain, *(caught(tick, tick + 1) for tick in range(10))) == list(range(1, 11))
    assert chain.due_us == 0
    assert chain.ask(100) == 20
    assert chain.ask(100) == 10, "what was not answered is asked for in small parts"


def holders_with(sessions: Sessions, parameters: EndToEndParameters | None = None) -> Holders:
    """Those of b0, for a pubend of b1."""
    return Holders("b0", ["b1"], sessions, parameters or EndToEndParameters(), lambda sent: [Send(sent.to, sent)])


def holding(client: str, sessions: Sessions, parameters: EndToEndParameters | None = None) -> Holders:
    """The same once the client, which wants everything, is on record there."""
    holders = holders_with(sessions, parameters)
    holders.resume(client, Resume(1, [1], [Filter({})], []), 0)
    holders.enlisted(Enlisted("b0", client, 1, [0, 0], [], 0, 0, []), 1_000)
    return holders


def test_a_client_that_has_room_again_is_caught_up_at_once() -> None:
    """Schedules multipath/end_to_end 1703725 and 1703831 found events that came after their subscription had ended: a
    pubend that had met a full window was asked again only after a rest of a second."""
    sessions = Sessions(0, 2)
    sessions.begin("c0")
    holders = holding("c0", sessions, EndToEndParameters(window=2, catch_up=1))
    sent = [each for tick in range(8) for each in holders.step(caught(tick, tick + 1), 2_000)]

    def messages(to: str) -> list[Any]:
        return [each.message for each in sent if type(each) is Send and each.to == to]

    def hand_back(time_us: int) -> Sequence[Effect]:
        """The client has all that it was handed."""
        done = sessions.handed_back("c0", HandedBack(1, messages("c0")[-1].number))
        holders.has("c0", done, time_us)
        return holders.go_on("c0", time_us)

    assert [each.tick for each in messages("c0")] == [1, 2]
    sent = [*hand_back(3_000)]
    assert [each.tick for each in messages("c0")] == [3, 4], "what was kept here goes first"
    sent = [*hand_back(4_000)]
    asked = [(each.after, each.most) for each in messages("b1") if type(each) is CatchUp]
    assert asked == [(4, 1)], "what came to a full window is asked for"


def test_a_holder_checks_its_chains() -> None:
    sessions = Sessions(0, 5)
    sessions.begin("c0")
    holders = holding("c0", sessions)
    holders.check_invariants()
    holders.of["c0"].chains[0].left = -1
    with pytest.raises(AssertionError):
        holders.check_invariants()


def test_an_answer_for_an_earlier_stay_of_a_client_here_says_nothing_of_this_one() -> None:
    """The schedule cells/durable 2704438: a client came back a moment later with more than it had had. The late answer
    sent it back to where it had been, and it got three events twice."""
    sessions = Sessions(0, 5)
    holders = holders_with(sessions)
    sessions.begin("c0")
    holders.resume("c0", Resume(1, [1], [Filter({})], [0, 5]), 1_000_000)
    sessions.begin("c0")
    del holders.of["c0"]
    holders.resume("c0", Resume(1, [1], [Filter({})], [0, 9]), 1_200_000)
    assert holders.enlisted(Enlisted("b0", "c0", 1, [0, 5], [], 1_000, 0, []), 1_201_000) == []
    assert holders.of["c0"].has == {0: 9}
    holders.enlisted(Enlisted("b0", "c0", 1, [0, 9], [], 1_200, 0, []), 1_202_000)
    assert not holders.of["c0"].unlisted


def test_a_client_hears_what_was_given_up_in_its_turn_and_again_until_it_says_so() -> None:
    """Schedule 2900785: no client said that it had heard the word. If no event came after it, the publishers' broker
    waited for the client for ever."""
    sessions = Sessions(0, 5)
    sessions.begin("c0")
    holders = holding("c0", sessions)

    def told(effects: Sequence[Effect]) -> list[type]:
        return [type(each.message) for each in effects if type(each) is Send and each.to == "c0"]

    handed = holders.step(caught(0, 1), 2_000)
    assert told(handed) == [DurableHanded]
    assert told(holders.step(GivenUp("b0", "c0", 0, 1, 5, [1, 2, 5], 0, 0, []), 3_000)) == [DurableGivenUp]
    assert told([*sessions.repeat(), *sessions.repeat()]) == [DurableHanded, DurableGivenUp]
    holders.has("c0", sessions.handed_back("c0", HandedBack(1, 1)), 4_000)
    assert (holders.of["c0"].unreleased, told([*sessions.repeat(), *sessions.repeat()])) == ({0: 5}, [])


def test_a_publishers_broker_that_has_lost_its_disk_is_told_again_who_wants_what() -> None:
    """Schedule multipath/end_to_end/backups 2900129: of a pubend whose two logs were lost with their disks the other
    brokers' clients got nothing ever after."""
    holders = holders_with(Sessions(0, 5))
    holders.resume("b0", Resume(7, [1], [Filter({})], []), 0)
    holders.enlisted(Enlisted("b0", "b0", 7, [0, 3], [], 0, 0, []), 1_000)
    unknown = Enlisted("b0", "b0", -1, [0, -1], [], 0, 0, [])
    (again,) = (each.message for each in holders.enlisted(unknown, 2_000) if type(each) is Send)
    assert isinstance(again, Enlist)
    assert (again.revision, again.ticks, holders.settling) == (7, [0, 3], True)
    begun = holders.enlisted(Enlisted("b0", "b0", 7, [0, -1], [], 0, 0, []), 3_000)
    assert [each.to for each in begun if type(each) is Send] == ["b1"], "it asks for what follows"
    assert (holders.settling, holders.of["b0"].chains[0].tick) == (False, -1)


def test_a_broker_that_stands_in_no_more_tells_itself_again_what_its_client_has() -> None:
    """The schedule multipath/end_to_end/backups 3207870: it served nobody when it told itself, and its own word needs
    no message. So it waited for ever to hear that it had heard."""
    told: list[object] = []

    def to_itself(message: object) -> list[Effect]:
        told.append(message)
        return []

    holders = Holders("b0", ["b0"], Sessions(0, 5), EndToEndParameters(), to_itself)
    holders.resume("b0", Resume(1, [1], [Filter({})], []), 0)
    holders.enlisted(Enlisted("b0", "b0", 1, [0, 0], [], 0, 0, []), 1_000)
    holders.step(GivenUp("b0", "b0", 0, 0, 9, [], 0, 0, []), 2_000)

    def told_to(until_us: int) -> int:
        """How often it tells what its client has, up to that time."""
        told.clear()
        for now_us in range(until_us - 10_000_000, until_us, 100_000):
            holders.look(now_us)
        return sum(isinstance(each, Release) for each in told)

    assert told_to(10_000_000) > 3
    holders.released(Released("b0", "b0", [0, 9], 0, 0, []), 10_000_000)
    assert told_to(20_000_000) == 0


def test_the_first_word_of_a_client_holds_whatever_its_number() -> None:
    holders = holders_with(Sessions(0, 5))
    assert [each.to for each in holders.resume("c0", Resume(0, [1], [Filter({})], []), 0)] == ["b1"]  # type: ignore[union-attr]
    assert holders.resume("c0", Resume(0, [1], [Filter({})], []), 0) == []


def test_a_brokers_own_subscribers_hear_what_was_given_up_and_have_it() -> None:
    holders = holding("b0", Sessions(0, 5))
    effects = holders.step(GivenUp("b0", "b0", 0, 0, 5, [1, 2, 5], 0, 0, []), 3_000)
    assert [each for each in effects if type(each) is Record] == [Record(GIVEN_UP, 2, event=Event(1, 5, 0, {}))]
    assert holders.of["b0"].unreleased == {0: 5}


class Disk:
    """A node's storage under a shared log; the parts' records are as each part would find them after a restart."""

    def __init__(self) -> None:
        self.storage = VirtualStorage()
        self.log = SharedLog("b0")
        self.on_way: list[Persist] = []

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if type(effect) is Persist:
                assert not self.on_way or effect.token > self.on_way[-1].token
                assert effect.token > self.storage.last_token
                self.on_way.append(effect)
            elif type(effect) is Truncate:
                self.storage.truncate(effect.before)

    def sync(self) -> tuple[bool, int] | None:
        """One record more is safe; whose it is, and its own token."""
        record = self.on_way.pop(0)
        self.storage.keep(*record)
        whose, effects = self.log.stored(record.token)
        self.carry_out(effects)
        return whose

    def restart(self) -> tuple[list[bytes], list[bytes]]:
        self.on_way.clear()
        self.log = SharedLog("b0")
        return self.log.recover(self.storage.records())


def test_two_parts_share_a_log_and_each_finds_what_it_needs_whenever_the_node_crashes() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        disk = Disk()
        own = {True: 0, False: 0}
        safe = {True: 0, False: 0}  # the last of each part's tokens that is safe
        needed = 1  # the first of the reliability part's tokens that it needs
        for _ in range(120):
            match rng.choice(("router", "above", "above", "above", "sync", "sync", "sync", "cut", "crash")):
                case "router" | "above" as part:
                    is_routers = part == "router"
                    own[is_routers] += 1
                    record = Persist(own[is_routers], msgpack.packb([part, own[is_routers]]))
                    disk.carry_out(disk.log.put([record], is_routers))
                case "sync" if disk.on_way:
                    whose = disk.sync()
                    if whose is not None:
                        safe[whose[0]] = whose[1]
                        if whose[0]:  # as all routers do: each record says all
                            disk.carry_out(disk.log.put([Truncate(whose[1])], True))
                case "cut" if safe[False]:
                    needed = rng.randint(needed, safe[False])
                    disk.carry_out(disk.log.put([Truncate(needed)], False))
                case "crash" if rng.random() < 0.2:
                    routers, others = disk.restart()
                    own = dict(safe)
                    assert [msgpack.unpackb(each)[1] for each in others][-(safe[False] - needed + 1) :] == (
                        list(range(needed, safe[False] + 1))
                    )
                    assert (msgpack.unpackb(routers[-1])[1] if routers else 0) == safe[True]


def test_a_shared_log_is_cut_though_its_router_has_nothing_new_to_store() -> None:
    disk = Disk()
    disk.carry_out(disk.log.put([Persist(1, b"router")], True))
    disk.sync()
    disk.carry_out(disk.log.put([Truncate(1)], True))
    for token in range(1, 1_001):
        disk.carry_out(disk.log.put([Persist(token, b"event")], False))
        disk.sync()
        if token % 10 == 0:
            disk.carry_out(disk.log.put([Truncate(token)], False))
            while disk.on_way:
                disk.sync()
    assert len(disk.storage) < 25
    assert disk.restart()[0][-1] == b"router"


def test_a_log_of_other_protocols_is_refused_with_its_first_record_that_is_none_of_theirs() -> None:
    own, foreign = msgpack.packb([1, True, 1, b"router"]), msgpack.packb(["C", 3, {}, {}])
    for number, records in ((1, [foreign]), (2, [own, foreign, foreign])):
        with pytest.raises(InputError, match="a log of these two protocols") as found:
            SharedLog("b0").recover(records)
        assert found.value.place == f"the stable log of b0, record {number}"


def test_a_lease_is_promised_as_long_as_stated_or_without_an_end() -> None:
    others = Limits(waits_above=100_000, told_again_us=8_000_000)
    assert EndToEndParameters(lease=60_000).limits == dataclasses.replace(others, lease_us=60_000_000)
    assert EndToEndParameters().limits == others


def test_senseless_parameters_are_refused_by_name() -> None:
    for place, value in (("rest", 5_000), ("gap", 0), ("lease", 1_000)):
        with pytest.raises(InputError) as found:
            dataclasses.replace(EndToEndParameters(), **{place: value})  # type: ignore[arg-type]
        assert found.value.place == place
    with pytest.raises(InputError, match="take clients"):
        entrances(EndToEndParameters(pubends=["b9"]), ["b0", "b1"])
    assert entrances(EndToEndParameters(pubends=["b1"]), ["b0", "b1"]) == ["b1"]
    assert entrances(EndToEndParameters(), ["b0", "b1"]) == ["b0", "b1"]
