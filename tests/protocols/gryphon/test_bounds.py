"""Brokers that do not return: what they may cost, and how they are given up."""

from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Answer, Effect, LinkDown, LinkUp, Order, Publish, Received, Send, TimerFired
from murmur_pubsub.promise import PUBLISHERS_WAIT
from murmuration.harness.cluster import Cluster
from reliability.gryphon.client import GryphonClient
from reliability.gryphon.declaration import GRYPHON
from reliability.gryphon.gryphon import Gryphon
from reliability.gryphon.messages import Accepted, AckExpected, Submission
from reliability.gryphon.parameters import GryphonParameters
from reliability.gryphon.submissions import Submissions
from tests.deployments import played, reliability_at
from tests.parameters import parameters_of
from tests.protocols.gryphon.bench import Bench, Parcel, to_nobody, to_s
from tests.protocols.gryphon.cuts import CellNetwork, chain, one_cell

HALF = one_cell(2, ("s", "t"))


def ordered(bench: Bench, name: str, *arguments: str) -> list[Answer]:
    """What the broker answers to an order to forget."""
    bench.answers.clear()
    bench.give(name, Order(5, "forget", arguments))
    return bench.answers


# --------------------------------------------------------------------------------------------- forgetting
def test_a_broker_that_is_forgotten_holds_nothing_up() -> None:
    network = CellNetwork(HALF)
    network.publish(2)
    network.advance(3_000)
    network.runtime.crash("s")
    network.publish(4)
    network.advance(20_000)
    assert network.kept() == 4 * network.pubends
    assert network.runtime.waiting
    network.give("t", Order(1, "forget", ("s",)))  # whichever broker is told
    network.advance(7_000)
    assert network.kept() == 0
    assert not network.runtime.waiting
    network.publish(3)
    network.wait(["t"])
    assert network.lacks("t") == network.kept() == 0


def test_a_broker_whose_receive_cache_is_full_serves_its_own_subscribers() -> None:
    """It is full of what a broker out of its reach has not acknowledged, which asks further up for it later."""
    settings: dict[str, Any] = {
        "overlay": {"kind": "chain", "brokers": 3}, "clients": {"alice": "b0", "bob": "b1", "carol": "b2"},
        "routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"receive_cache": 5}},
    }  # fmt: skip
    with Cluster.start(**settings) as cluster:
        for name in ("bob", "carol"):
            cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.cut("b1", "b2")
        for number in range(20):
            cluster.clients["alice"].publish({"x": number})
            cluster.advance("10 ms")
        cluster.advance("5 s")
        assert [event.attributes["x"] for event in cluster.clients["bob"].deliveries()] == list(range(20))
        cluster.faults.heal("b1", "b2")
        cluster.advance("20 s")
        assert [event.attributes["x"] for event in cluster.clients["carol"].deliveries()] == list(range(20))


def test_a_broker_that_restarts_hears_that_another_was_forgotten() -> None:
    """Else it would wait for its acknowledgements, where it is the only broker of its cell that is left."""
    network = CellNetwork(HALF)
    for name in ("s", "m0"):
        network.runtime.crash(name)
    network.give("p", Order(1, "forget", ("s",)))
    network.restart("m0")
    network.advance(100)
    network.runtime.crash("m1")
    network.publish(3)
    network.wait(["t"])
    assert network.lacks("t") == network.kept() == 0


def test_where_all_are_forgotten_nothing_is_kept() -> None:
    for plan in (HALF, chain(3)):
        network = CellNetwork(plan)
        for name in network.subscribers:
            network.runtime.crash(name)
            network.give("p", Order(1, "forget", (name,)))
        network.publish(3)
        network.wait([])
        assert network.kept() == 0


def test_a_cell_is_given_up_when_those_behind_it_that_have_subscribers_are() -> None:
    bench = Bench()
    bench.crash("s")
    bench.crash("t")
    ordered(bench, "p", "s")
    assert dict(bench.stream("m0")._given_up) == {"s": None}
    assert not bench.stream("p")._given_up
    ordered(bench, "p", "t")
    assert dict(bench.stream("p")._given_up) == {"m": None}


@pytest.mark.parametrize("is_restarted", [True, False], ids=["restarted", "cut off only"])
def test_a_forgotten_broker_that_returns_gets_what_is_published_from_then_on(is_restarted: bool) -> None:
    bench = Bench()
    bench.subscribe("s", 1)
    bench.subscribe("t", 2)
    if is_restarted:
        bench.crash("s")
    else:
        bench.unlink("m0", "s")
        bench.unlink("m1", "s")
    bench.publish("p", 7, 0)
    bench.deliver_all()
    ordered(bench, "p", "s")
    bench.pass_time(1_000)
    assert bench.stream("p").knowledge.messages == {}
    if is_restarted:
        bench.start("s")
    for peer in ("m0", "m1"):
        bench.link(peer, "s")
    if is_restarted:
        bench.subscribe("s", 1)
    assert not bench.stream("m0")._given_up
    bench.publish("p", 7, 1)
    bench.pass_time(10_000)
    assert bench.delivered == {1: [(7, 1)], 2: [(7, 0), (7, 1)]}
    assert bench.stream("p").knowledge.messages == {}


def test_a_forgotten_root_is_not_waited_for_by_subscriptions() -> None:
    bench = Bench()
    bench.crash("p")
    bench.subscribe("s", 1)
    assert bench.brokers["s"].settling
    ordered(bench, "m0", "p")
    assert not bench.brokers["s"].settling


def test_a_restarted_root_filters_though_a_forgotten_broker_cannot_confirm() -> None:
    bench = Bench()
    bench.subscribe("t", 2, "x = 2")
    bench.crash("s")
    ordered(bench, "t", "s")
    bench.crash("p")
    bench.start("p")
    for peer in bench.peers("p"):
        bench.link("p", peer)
    bench.publish("p", 7, 0, 1)
    assert bench.bag == [], "nobody wants it"


def test_an_order_to_forget_says_what_became_of_it() -> None:
    bench = Bench()
    assert ordered(bench, "p", "s") == [Answer(5)]
    assert ordered(bench, "p", "p") == [Answer(5, "'p' is not another broker of the overlay")]
    assert ordered(bench, "p", "nobody") == [Answer(5, "'nobody' is not another broker of the overlay")]


def test_a_scenario_may_have_a_broker_forgotten(tmp_path: Path) -> None:
    """The run ends then, though the broker never returns, and the log is empty."""
    scenario = {
        "name": "forget",
        "runtime": "virtual",
        "overlay": {
            "kind": "cells",
            "cells": {"p": ["p1"], "m": ["b1", "b2"], "s1": ["s1"], "s2": ["s2"]},
            "links": [["p", "m"], ["m", "s1"], ["m", "s2"]],
        },
        "workload": {
            "kind": "paced", "publishers": {"p1": 1}, "subscribers": {"s1": 1, "s2": 1}, "rate_per_s": 40, "seconds": 4,
        },
        "broker": {"routing": "cells", "reliability": "gryphon"},
        "drain": {"limit": "300 s"},
        "faults": [{"at": "1 s", "kill": "s1"}, {"at": "2 s", "forget": "b2", "broker": "s1"}],
    }  # fmt: skip
    run = played(scenario, tmp_path)
    assert run.runtime.now_us < 20_000_000
    gryphon = reliability_at(run, "p1")
    assert isinstance(gryphon, Gryphon)
    assert gryphon.messages_kept == 0


# ------------------------------------------------------------------------------------- a bound on the time
def test_a_branch_that_is_out_of_reach_for_give_up_after_holds_nothing_up_any_more() -> None:
    bench = Bench(give_up_after=10_000, aet=60_000, aet_most=60_000)
    bench.subscribe("s", 1)
    bench.subscribe("t", 2)
    bench.unlink("m0", "s")
    bench.pass_time(11_000)
    bench.publish("p", 7, 0)  # m1 has a link to s, and m0 a way by it
    bench.pass_time(2_000)
    assert bench.stream("p").knowledge.messages == {}
    bench.unlink("m1", "s")
    bench.publish("p", 7, 1)
    bench.pass_time(9_900)
    assert len(bench.stream("p").knowledge.messages) == 1
    bench.pass_time(1_100)
    assert bench.stream("p").knowledge.messages == {}
    bench.link("m1", "s")
    bench.publish("p", 7, 2)
    tick = bench.now_us // 1_000
    bench.deliver_all(unless=to_s)
    bench.pass_time(1_000, unless=to_s)
    assert tick in bench.stream("p").knowledge.messages, "it is waited for again"
    bench.pass_time(70_000)
    assert bench.delivered == {1: [(7, 0), (7, 2)], 2: [(7, 0), (7, 1), (7, 2)]}


def test_a_branch_that_returns_in_time_is_waited_for() -> None:
    bench = Bench(give_up_after=10_000)
    bench.subscribe("s", 1)
    for _ in range(3):
        for peer in ("m0", "m1"):
            bench.unlink(peer, "s")
        bench.pass_time(9_000)
        for peer in ("m0", "m1"):
            bench.link(peer, "s")
        bench.pass_time(500)
    assert not bench.stream("m0")._given_up
    bench.publish("p", 7, 0)
    bench.pass_time(1_000)
    assert bench.delivered[1] == [(7, 0)]


# ------------------------------------------------------------------------------------- a bound on the log
def waits(bench: Bench) -> list[int]:
    """The rows of the journal that say when publishers had to wait (1) and no more (0)."""
    return [row.value for _, row in bench.records if row.topic == PUBLISHERS_WAIT]


def test_a_full_log_makes_publishers_wait_and_loses_nothing() -> None:
    bench = Bench(log_most=10)
    bench.subscribe("s", 1)
    for peer in ("m0", "m1"):
        bench.unlink(peer, "s")
    for sequence in range(10):
        bench.publish("p", 7, sequence)
    assert waits(bench) == [1], "the log is full"
    for sequence in range(10, 35):
        bench.publish("p", 7, sequence)
    bench.pass_time(5_000)
    assert len(bench.stream("p").knowledge.messages) == 10
    assert len(bench.logs["p"]) <= 12
    assert waits(bench) == [1]
    for peer in ("m0", "m1"):
        bench.link(peer, "s")
    bench.pass_time(60_000)
    assert bench.delivered[1] == [(7, sequence) for sequence in range(35)]
    assert waits(bench) == [1, 0, 1, 0, 1, 0]


def test_a_publisher_goes_on_when_half_of_the_log_is_acknowledged() -> None:
    bench = Bench(log_most=10, aet=60_000, aet_most=60_000)
    bench.subscribe("s", 1)
    for sequence in range(12):
        bench.publish("p", 7, sequence)
        bench.deliver_all(unless=to_s if sequence >= 4 else to_nobody)
    bench.pass_time(1_500, unless=to_s)
    assert len(bench.stream("p").knowledge.messages) == 6
    assert waits(bench) == [1], "4 of 10 are acknowledged"
    bench.pass_time(60_000)
    assert waits(bench) == [1, 0]
    assert bench.delivered[1] == [(7, sequence) for sequence in range(12)]


def test_a_log_that_is_full_when_its_broker_restarts_is_still_full() -> None:
    bench = Bench(log_most=10)
    bench.subscribe("s", 1)
    bench.unlink("m0", "s")
    bench.unlink("m1", "s")
    for sequence in range(10):
        bench.publish("p", 7, sequence)
    bench.crash("p")
    bench.start("p")
    bench.publish("p", 7, 10)
    assert len(bench.stream("p").knowledge.messages) == 10
    assert waits(bench) == [1, 1], "in either life"


def event(sequence: int, source: int = 3) -> Event:
    return Event(source, sequence, 0, {"x": 1})


def test_submissions_are_taken_in_order_and_publishers_take_turns() -> None:
    last: dict[int, int] = {}
    submissions = Submissions(last)
    for source in (3, 4):
        for sequence in (1, 0, 2):
            submissions.put(event(sequence, source), 0, f"c{source}")
    taken = []
    while (found := submissions.take()) is not None:
        taken.append((tuple(found[0].id), found[1]))
        last[found[0].source] = found[0].sequence
    assert taken == [
        ((3, 0), "c3"), ((4, 0), "c4"), ((3, 1), "c3"), ((4, 1), "c4"), ((3, 2), "c3"), ((4, 2), "c4"),
    ]  # fmt: skip
    assert submissions.is_old(event(2))
    assert not submissions.is_old(event(3))


def test_a_number_that_never_comes_is_not_waited_for() -> None:
    """The client was restarted: it has nothing below 5. What it had submitted of that is not taken either."""
    last = {3: 1}
    submissions = Submissions(last)
    submissions.put(event(3), 2, "c")
    assert submissions.take() is None
    submissions.put(event(5), 5, "c")
    found = submissions.take()
    assert found is not None
    assert found[0].sequence == 5
    last[3] = 5
    assert submissions.take() is None


def test_what_is_behind_a_gap_goes_with_its_clients_link() -> None:
    """Over the next link it comes again, or its client was killed with what is missing: nobody knows, and both end."""
    last: dict[int, int] = {}
    submissions = Submissions(last)
    for sequence in (0, 1, 3, 4):
        submissions.put(event(sequence), 0, "c")
    submissions.put(event(1, 4), 0, "d")
    submissions.client_gone("c")
    submissions.put(event(2), 0, "c")
    taken = []
    while (found := submissions.take()) is not None:
        taken.append(tuple(found[0].id))
        last[found[0].source] = found[0].sequence
    assert taken == [(3, 0), (3, 1), (3, 2)]
    submissions.put(event(0, 4), 0, "d")
    assert submissions.take() is not None
    last[4] = 0
    assert submissions.take() is not None, "what another client has submitted waits on"


# ------------------------------------------------------------------------------------------------- clients
class Client:
    """A client's machine, and what it has submitted since the last look."""

    def __init__(self, **parameters: Any) -> None:
        self.machine = GryphonClient("p", GryphonParameters(**parameters))
        self.effects: list[Effect] = []
        self.give(LinkUp("p", True))

    def give(self, input: Any) -> None:
        self.effects += self.machine.handle(input, 0)

    def submitted(self) -> list[tuple[int, int]]:
        """(sequence, oldest) of each submission."""
        effects, self.effects = self.effects, []
        found = [each.message for each in effects if type(each) is Send and type(each.message) is Submission]
        return [(each.event.sequence, each.oldest) for each in found]

    def publish(self, first: int, last: int) -> None:
        for sequence in range(first, last + 1):
            self.give(Publish(event(sequence)))


def test_a_client_keeps_what_is_beyond_its_window_until_earlier_publications_are_accepted() -> None:
    client = Client(window=150)
    client.publish(0, 299)
    assert client.submitted() == [(sequence, 0) for sequence in range(150)]
    client.give(Received("p", Accepted(3, 39)))
    assert client.submitted() == [], "110 are on their way, and of what had to wait 100 may be"
    client.give(Received("p", Accepted(3, 59)))
    client.give(Received("p", Accepted(3, 99)))
    assert client.submitted() == [(sequence, 60 if sequence < 160 else 100) for sequence in range(150, 200)]
    assert client.machine.waiting
    client.give(Received("p", Accepted(3, 199)))
    client.submitted()
    client.give(Received("p", Accepted(3, 299)))
    assert not client.machine.waiting
    client.publish(300, 300)
    assert client.submitted() == [(300, 300)]


def test_a_client_submits_again_what_was_not_accepted_over_each_new_link() -> None:
    client = Client()
    client.publish(0, 4)
    client.submitted()
    client.give(Received("p", Accepted(3, 1)))
    client.give(LinkDown("p", "test"))
    client.publish(5, 5)
    assert client.submitted() == []
    client.give(LinkUp("p", True))
    assert client.submitted() == [(sequence, 2) for sequence in (2, 3, 4, 5)]
    client.give(Received("p", Accepted(9, 1)))  # of a publisher that it has nothing of
    assert client.submitted() == []


def test_a_client_sends_nothing_before_what_had_to_wait() -> None:
    client = Client()
    client.give(LinkDown("p", "test"))
    client.publish(0, 100)
    client.give(LinkUp("p", True))
    assert client.submitted() == [(sequence, 0) for sequence in range(100)]
    client.publish(101, 101)
    assert client.submitted() == []
    client.give(Received("p", Accepted(3, 1)))
    assert client.submitted() == [(100, 2), (101, 2)]


def test_a_client_repeats_only_when_nothing_was_accepted_for_a_while() -> None:
    client = Client()
    client.publish(0, 2)
    client.submitted()
    client.give(Received("p", Accepted(3, 0)))
    client.give(TimerFired(("client", "resend")))
    assert client.submitted() == []
    client.give(TimerFired(("client", "resend")))
    assert client.submitted() == [(1, 1), (2, 1)]


@pytest.mark.parametrize(("name", "value"), [("log_most", 0), ("give_up_after", "0 s")])
def test_a_bound_of_nothing_is_refused(name: str, value: object) -> None:
    with pytest.raises(Exception, match=name):
        parameters_of(GRYPHON, {name: value})


# --------------------------------------------------------------------- an acknowledgement that one broker lacks
def test_a_broker_of_a_cell_that_lacks_an_acknowledgement_asks_for_it_when_its_stream_is_at_rest() -> None:
    """The other broker of the cell has it, and by that one the pubend, which expects nothing any more."""
    bench = Bench()
    bench.subscribe("s", 1)
    keepers: set[str] = set()

    def acknowledged_to_a_keeper(parcel: Parcel) -> bool:
        return parcel.to in keepers and parcel.source == "s"

    for number in range(3):
        bench.publish("p", 7, number)
        bench.deliver_all()
    keepers |= {name for name in ("m0", "m1") if bench.stream(name).knowledge.messages}
    assert len(keepers) == 1
    (keeper,) = keepers
    bench.pass_time(5_000, acknowledged_to_a_keeper)
    assert bench.stream("p").knowledge.last_message == -1
    assert len(bench.stream(keeper).knowledge.messages) == 3
    assert bench.waits(keeper)
    bench.pass_time(13_000)
    assert not bench.stream(keeper).knowledge.messages
    assert not bench.waits(keeper)
    assert not bench.sent_by("p", AckExpected)
    assert len(bench.sent_by(keeper, AckExpected)) == 1


def test_a_broker_that_asks_in_vain_waits_twice_as_long_each_time() -> None:
    bench = Bench(aet=1_000, aet_most=1_000)
    bench.subscribe("s", 1)
    bench.publish("p", 7, 0)
    bench.deliver_all()
    (keeper,) = (name for name in ("m0", "m1") if bench.stream(name).knowledge.messages)
    bench.crash("p")
    bench.pass_time(40_000, lambda parcel: parcel.source == "s")
    waits = [delay_us // 1_000 for name, what, delay_us in bench.timers_set if (name, what) == (keeper, "kept")]
    assert waits == [1_000, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]
    assert bench.waits(keeper)
    for peer in ("s", "t", "m1" if keeper == "m0" else "m0"):
        bench.unlink(keeper, peer)
    assert not bench.waits(keeper), "nobody is there who could be asked"
