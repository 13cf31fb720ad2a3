"""A publishers' broker whose log is full refuses publications: decided once, and the publisher knows."""

from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.journal import RowKind
from murmur_pubsub.machine import Effect, Persist, Send
from murmur_pubsub.promise import REFUSED
from murmuration.harness.cluster import Cluster
from reliability.durable.log import DurableLog
from reliability.durable.messages import Decided
from reliability.durable.parameters import DurableParameters
from reliability.durable.refusing import RefusingPublishing
from reliability.gryphon.knowledge import KnowledgeStream
from reliability.gryphon.messages import Accepted, Submission
from reliability.gryphon.pubend import Pubend
from spark_analysis.history import read_history
from tests.protocols.durable.planted_bugs import ForgetsRefusals
from tests.protocols.durable.test_whole import a_cluster, both_subscribe, judged, numbers, publish


class Publishers:
    """The publishing part of a broker whose log takes two messages, and nobody to acknowledge them."""

    def __init__(self, records: list[bytes] | None = None) -> None:
        self.records = list(records or [])
        self.unsafe: list[int] = []
        self.log = DurableLog("p", 200)
        self.part = RefusingPublishing("p", self.log, 100, 2)
        self.part.pubends.append(Pubend(0, KnowledgeStream()))
        self.part.recover(self.records)

    def submit(self, sequence: int, oldest: int) -> None:
        self.took(self.part.submit("c", Submission(Event(3, sequence, 0, {"x": 1}), oldest), 0))

    def took(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert isinstance(effect, Persist)
            self.records.append(effect.record)
            self.unsafe.append(effect.token)

    def store(self) -> None:
        for token in self.unsafe:
            self.part.stored(token)
        self.unsafe.clear()

    def accepts(self) -> list[Any]:
        told = []
        for effect in self.part.accept():
            assert isinstance(effect, Send)
            told.append(effect.message)
        return told


def full() -> Publishers:
    p = Publishers()
    for sequence in range(4):
        p.submit(sequence, 0)
    return p


def test_what_is_refused_is_told_when_all_before_it_is_safe() -> None:
    p = full()
    assert p.accepts() == []
    p.store()
    assert p.accepts() == [Decided(3, 3, [2, 3])]
    p.submit(2, 2)
    assert p.accepts() == [Decided(3, 3, [2, 3])], "its publisher has not heard: it is told again"
    assert p.unsafe == [], "and not taken now"
    p.log.cut({0: 5_000})
    p.submit(4, 4)
    p.store()
    assert p.accepts() == [Accepted(3, 4)], "it has heard"


def test_what_a_publisher_has_heard_of_is_kept_no_more() -> None:
    p = full()
    assert [*p.log.refused] == [3]
    p.submit(5, 5)
    assert [each for each in p.log.refused.get(3, ()) if each < 5] == []
    p.submit(6, 7)
    assert 3 not in p.log.refused, "a publisher of whose events none is refused has no place in the log's checkpoint"


def test_a_refusal_is_not_taken_for_an_acceptance_by_who_restarts() -> None:
    p = full()
    p.store()
    p.log.cut({0: 5_000})
    p.submit(4, 2)  # there is room again, and the publisher has not heard yet
    p.store()
    again = Publishers(p.records)
    again.submit(2, 2)
    assert again.accepts() == [Decided(3, 4, [2, 3])]


def test_what_nothing_logged_says_is_decided_anew() -> None:
    p = full()
    p.store()
    again = Publishers(p.records[:1])
    again.submit(1, 1)
    again.store()
    assert again.accepts() == [Accepted(3, 1)]


def refuses(reliability: Any = "durable") -> Any:
    """A cluster whose publishers' brokers keep 20 messages and refuse what is more."""
    return a_cluster(reliability=reliability, parameters={"durable": {"refuse_above": 20, "checkpoint": 5}})


def refused(cluster: Cluster) -> list[int]:
    rows = read_history(cluster.folder / "journal").rows.of(RowKind.PROTOCOL)
    return [row.sequence for row in rows if row.bytes == REFUSED]


def fill(cluster: Cluster) -> None:
    """Bob is away while 40 events are published, and back for 10 more."""
    both_subscribe(cluster)
    cluster.faults.disconnect("bob", "b2")
    publish(cluster, 0, 40)
    cluster.advance("1 s")
    cluster.faults.connect("bob", "b1")
    cluster.advance("2 s")
    publish(cluster, 40, 10)
    cluster.drain()


def test_the_publisher_is_told_and_nobody_gets_what_was_refused() -> None:
    with refuses() as cluster:
        fill(cluster)
        assert numbers(cluster, "bob") == numbers(cluster, "carol") == [*range(20), *range(40, 50)]
        judgement = judged(cluster)
        assert refused(cluster) == list(range(20, 40))
    assert judgement.numbers["explained"] == 40
    assert {excuse.text for excuse in judgement.excused.values()} == {"its publisher was told that it was refused"}


@pytest.mark.parametrize("broken", ["its link", "its broker"])
def test_a_publisher_whose_link_breaks_meanwhile_learns_of_each_event_once(broken: str) -> None:
    with refuses() as cluster:
        both_subscribe(cluster)
        cluster.faults.disconnect("bob", "b2")
        publish(cluster, 0, 22)
        if broken == "its link":
            cluster.faults.cut("alice", "b0")
        else:
            cluster.faults.kill("b0")
        publish(cluster, 22, 5)
        if broken == "its link":
            cluster.faults.heal("alice", "b0")
        else:
            cluster.faults.restart("b0")
        publish(cluster, 27, 5)
        cluster.advance("1 s")
        cluster.faults.connect("bob", "b1")
        cluster.drain()
        got = numbers(cluster, "bob")
        assert got == numbers(cluster, "carol")
        judged(cluster)
        assert sorted([*got, *refused(cluster)]) == list(range(32))
        assert len(refused(cluster)) > 5


def test_a_judge_sees_refusals_of_which_no_publisher_is_told() -> None:
    with refuses(f"{ForgetsRefusals.__module__}:{ForgetsRefusals.__name__}") as cluster:
        fill(cluster)
        with pytest.raises(AssertionError, match="are missing without a fault"):
            judged(cluster)


def test_bounds_that_cannot_both_hold_are_refused() -> None:
    for given in ({"refuse_above": 20, "drop_above": 20}, {"refuse_above": 21, "log_most": 20}):
        with pytest.raises(InputError, match="above drop_above, and at most log_most"):
            DurableParameters(**given)  # type: ignore[arg-type]
