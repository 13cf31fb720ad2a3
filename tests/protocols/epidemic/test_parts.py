"""The parts of epidemic recovery against plain models, and parameters that are refused."""

import random
from collections import Counter, deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import EventId
from murmur_pubsub.machine import NodeName, Send
from murmur_pubsub.message import kind_of
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import check_scenario
from reliability.epidemic.cache import CachedEvent, EventCache
from reliability.epidemic.interval import GossipInterval
from reliability.epidemic.loss_detection import LossDetector, LostBuffer
from reliability.epidemic.messages import EPIDEMIC_MESSAGES, PatternsForwarded, signature
from reliability.epidemic.parameters import ALGORITHMS, EpidemicParameters
from reliability.epidemic.received import ReceivedEvents
from reliability.epidemic.subscription_table import SubscriptionTable
from tests.protocols.epidemic.station import an_event, pattern


# ------------------------------------------------------------------------------------------------ cache (section 5)
def cached(sequence: int, patterns: tuple[int, ...] = ()) -> CachedEvent:
    numbers = [number for each in patterns for number in (each, sequence)]
    return CachedEvent(an_event(1, sequence), 0, "s", 0, numbers, [*patterns])


def kept(cache: EventCache, count: int) -> list[int]:
    cache.check_invariants()
    return [sequence for sequence in range(count) if EventId(1, sequence) in cache]


def test_epidemic_s5_the_oldest_event_is_discarded_first() -> None:
    cache = EventCache(3, "oldest", random.Random(1))
    for sequence in range(5):
        cache.add(cached(sequence), interested=sequence % 2 == 0)
    assert kept(cache, 5) == [2, 3, 4]


def test_epidemic_s5_first_those_for_which_it_is_neither_source_nor_subscriber() -> None:
    cache = EventCache(3, "uninterested", random.Random(1))
    for sequence, interested in enumerate((True, False, True, False, True, True)):
        cache.add(cached(sequence), interested)
    assert kept(cache, 6) == [2, 4, 5], "1 and 3 went first, then the oldest of the others"


def test_epidemic_s5_a_random_discard_empties_no_two_caches_at_the_same_time() -> None:
    lives = []
    for seed in range(2):
        cache = EventCache(50, "random", random.Random(seed))
        for sequence in range(400):
            cache.add(cached(sequence), interested=True)
        lives.append(set(kept(cache, 400)))
    assert [len(each) for each in lives] == [50, 50]
    assert len(lives[0] & lives[1]) < 25
    assert min(lives[0]) < 350, "some of the old ones are still there"


@given(
    st.sampled_from(("oldest", "uninterested", "random")),
    st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 4), unique=True, max_size=3)), max_size=60),
)
def test_digest_and_names_are_those_of_the_events_that_are_there(
    discard: Any, added: list[tuple[bool, list[int]]]
) -> None:
    cache = EventCache(7, discard, random.Random(1))
    for sequence, (interested, patterns) in enumerate(added):
        cache.add(cached(sequence, tuple(patterns)), interested)
        cache.check_invariants()
    there = kept(cache, len(added))
    assert len(there) == min(7, len(added))
    for each in range(5):
        matching = [sequence for sequence in there if each in added[sequence][1]]
        assert sorted(cache.digest(each)[1::2]) == matching
        for sequence in range(len(added)):
            found = cache.numbered(("s", 0, each, sequence))
            assert (found is not None) == (sequence in matching)
    assert cache.numbered(("s", 1, 0, 0)) is None


def test_epidemic_s3_no_digest_is_of_a_pattern_whose_events_are_all_discarded() -> None:
    """A dispatcher draws the pattern that it gossips about from these."""
    cache = EventCache(2, "oldest", random.Random(1))
    for sequence, pattern_of in enumerate((1, 2, 1)):
        cache.add(cached(sequence, (pattern_of,)), interested=True)
    assert set(cache.patterns) == {1, 2}
    cache.add(cached(3, (1,)), interested=True)
    assert cache.patterns == (1,)


# ------------------------------------------------------------------------------------------------ received events
@given(st.integers(1, 6), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), max_size=80))
def test_what_was_received_is_never_new_again_however_little_is_remembered(
    remember: int, arrivals: list[tuple[int, int]]
) -> None:
    received, ever = ReceivedEvents(remember), set()
    for event in arrivals:
        if EventId(*event) not in received:
            assert event not in ever
            assert received.missing([*event]) == [*event]
        else:
            assert received.missing([*event]) == []
        received.add(EventId(*event), passed_on=True)
        ever.add(event)
        received.check_invariants()


def test_an_event_recovered_and_then_come_over_the_tree_is_known_as_both() -> None:
    received = ReceivedEvents(10)
    assert received.passed_on(EventId(1, 1)) is None
    received.add(EventId(1, 1), passed_on=False)
    assert received.passed_on(EventId(1, 1)) is False
    received.add(EventId(1, 1), passed_on=True)
    assert received.passed_on(EventId(1, 1)) is True


# ------------------------------------------------------------------------------------------------ losses
@given(st.lists(st.integers(1, 40), unique=True, min_size=2, max_size=40))
def test_epidemic_s4_2_lost_is_what_lies_between_numbers_seen_and_has_not_come(seen: list[int]) -> None:
    """Whatever the order: from the first number on, each below the highest that has not come is lost."""
    lost = LostBuffer(1_000)
    detector = LossDetector(lost, 1_000, 0)
    for number in seen:
        detector.observe("s", 0, [7, number], 0, {7: 0}, 0)
    first = seen[0]
    expected = {number for number in range(first, max(seen)) if number not in seen}
    assert {number for number in range(50) if ("s", 0, 7, number) in lost} == expected
    lost.check_invariants()


@given(st.data())
def test_the_lost_buffer_keeps_the_youngest_and_finds_them_by_pattern_and_source(data: st.DataObject) -> None:
    lost, plain = LostBuffer(8), dict[Any, int]()
    for now_us in range(data.draw(st.integers(0, 60))):
        entry = (data.draw(st.sampled_from("st")), 0, data.draw(st.integers(0, 2)), data.draw(st.integers(0, 9)))
        if data.draw(st.booleans()):
            if entry not in plain and len(plain) == 8:
                del plain[min(plain, key=plain.__getitem__)]
            plain.setdefault(entry, now_us)
            lost.add(entry, now_us)
        else:
            plain.pop(entry, None)
            lost.remove(entry)
        lost.check_invariants()
    limit = data.draw(st.integers(0, 60))
    lost.give_up(limit)
    plain = {entry: since for entry, since in plain.items() if since >= limit}
    by_pattern = [(source, 0, each, number) for each in range(3) for source, _, *numbers in lost.of_pattern(each)
                  for number in numbers]  # fmt: skip
    by_source = [(source, 0, each, number) for source in "st" for _, each, *numbers in lost.of_source(source)
                 for number in numbers]  # fmt: skip
    assert sorted(by_pattern) == sorted(by_source) == sorted(plain)


def test_a_pattern_is_drawn_the_likelier_the_more_of_it_is_lost() -> None:
    lost, rng = LostBuffer(100), random.Random(1)
    assert lost.draw(rng) is None
    for number in range(10):
        lost.add(("s", 0, 1 if number < 9 else 2, number), 0)
    drawn = Counter(entry[2] for entry in (lost.draw(rng) for _ in range(1000)) if entry is not None)
    assert 850 < drawn[1] < 950


# ------------------------------------------------------------------------------------------------ interval
def test_rounds_have_a_period_begun_at_a_random_time() -> None:
    phases = {GossipInterval(30_000, 30_000, random.Random(seed)).delay_us(0) for seed in range(50)}
    assert len(phases) > 45
    assert all(0 < phase <= 30_000 for phase in phases)
    interval = GossipInterval(30_000, 30_000, random.Random(1))
    first = interval.delay_us(0)
    assert interval.delay_us(first - 10) == 10
    assert interval.delay_us(first) == 30_000


# ------------------------------------------------------------------------------------------------ the table
class Tables:
    """Dispatchers' tables on a tree, and the messages between them, delivered in order."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self.tables = {f"d{number}": SubscriptionTable(0) for number in range(size)}
        self.edges = {frozenset((f"d{number}", f"d{rng.randrange(number)}")) for number in range(1, size)}
        self.waiting: deque[tuple[NodeName, NodeName, Any]] = deque()
        for edge in sorted(map(sorted, self.edges)):
            self.link(*edge)

    def send(self, source: NodeName, effects: Any) -> None:
        self.waiting += [(source, each.to, each.message) for each in effects if isinstance(each, Send)]

    def link(self, first: NodeName, second: NodeName) -> None:
        self.edges.add(frozenset((first, second)))
        for here, there in ((first, second), (second, first)):
            self.send(here, self.tables[here].on_link_up(there))

    def cut(self, first: NodeName, second: NodeName) -> None:
        self.settle()
        self.edges.remove(frozenset((first, second)))
        for here, there in ((first, second), (second, first)):
            self.send(here, self.tables[here].on_link_down(there, 0))

    def settle(self) -> None:
        while self.waiting:
            source, to, message = self.waiting.popleft()
            table = self.tables[to]
            act = table.on_forwarded if type(message) is PatternsForwarded else table.on_withdrawn
            self.send(to, act(source, message.patterns, 0))

    def behind(self, here: NodeName, peer: NodeName) -> set[NodeName]:
        """The dispatchers on the neighbour's side."""
        found = [peer]
        for name in found:
            found += [
                other for edge in self.edges if name in edge for other in edge - {name}
                if other != here and other not in found
            ]  # fmt: skip
        return set(found)


@given(st.integers(1, 8), st.integers(0, 10_000), st.integers(0, 40))
def test_epidemic_s2_1_every_pattern_is_known_everywhere_with_the_sides_on_which_it_is_held(
    size: int, seed: int, steps: int
) -> None:
    rng = random.Random(seed)
    net = Tables(size, rng)
    held: dict[NodeName, set[str]] = {name: set() for name in net.tables}
    for _ in range(steps):
        name, wanted = rng.choice(sorted(net.tables)), rng.choice("abc")
        kind = rng.random()
        if kind < 0.7:
            change = net.tables[name].unsubscribe if wanted in held[name] else net.tables[name].subscribe
            held[name] ^= {wanted}
            net.send(name, change(pattern(wanted), 0))
            if rng.random() < 0.5:
                net.settle()
        elif net.edges:  # a link breaks and another takes its place
            first, second = rng.choice(sorted(map(sorted, net.edges)))
            net.cut(first, second)
            net.link(rng.choice(sorted(net.behind(second, first))), rng.choice(sorted(net.behind(first, second))))
    net.settle()
    for here, table in net.tables.items():
        table.check_invariants()
        for wanted in "abc":
            number = signature(pattern(wanted))
            expected = {
                peer for peer in table.neighbours if any(wanted in held[each] for each in net.behind(here, peer))
            }
            assert set(table.towards(number, None)) == expected
            assert (number in table.held) == bool(expected or wanted in held[here])
            for peer in expected:
                assert peer not in table.towards(number, peer)


def test_epidemic_s2_1_a_pattern_is_told_once_in_each_direction() -> None:
    table = SubscriptionTable(0)
    for peer in ("x", "y", "z"):
        table.on_link_up(peer)
    assert [each.to for each in table.subscribe(pattern("a"), 0) if isinstance(each, Send)] == ["x", "y", "z"]
    assert table.on_forwarded("x", [pattern("a")], 0) == []
    assert [each.to for each in table.unsubscribe(pattern("a"), 0) if isinstance(each, Send)] == ["x"]
    assert [each.to for each in table.on_forwarded("y", [pattern("a")], 0) if isinstance(each, Send)] == ["x"]


def test_patterns_that_come_and_go_where_no_event_passes_are_forgotten() -> None:
    """A hunt found it: what had lingered was forgotten when an event came only."""
    table = SubscriptionTable(linger_us=10)
    for now_us in range(1_000):
        table.on_link_up("x")
        table.on_forwarded("x", [pattern(f"a{now_us}")], now_us)
        if now_us % 2:
            table.on_withdrawn("x", [pattern(f"a{now_us}")], now_us)
            table.on_withdrawn("x", [pattern(f"a{now_us}")], now_us)
        table.on_link_down("x", now_us)
        table.check_invariants()
    assert len(table) <= 11


# ------------------------------------------------------------------------------------------------ bad input
SCENARIO: dict[str, Any] = {
    "overlay": {"kind": "balanced", "brokers": 4},
    "workload": {"kind": "zipf"},
    "broker": {"reliability": "epidemic"},
    "datagrams": {"delay": "1 ms"},
}


@pytest.mark.parametrize(
    ("given", "key", "allowed"),
    [
        ({"buffer": 0}, "buffer", "at least 1"),
        ({"interval": "0 ms"}, "interval", "at least 1 us"),
        ({"interval": -5}, "interval", "a time with its unit"),
        ({"interval": "1 s"}, "interval_max", "at least 1 s"),
        ({"interval_us": 30_000}, "interval_us", "interval, "),
        ({"p_forward": 1.2}, "p_forward", "from 0 to 1"),
        ({"p_forward": -0.1}, "p_forward", "from 0 to 1"),
        ({"p_source": 2}, "p_source", "from 0 to 1"),
        ({"p_source": "half"}, "p_source", "number"),
        ({"fanout": 0}, "fanout", "at least 1"),
        ({"algorithm": "gossip"}, "algorithm", "combined-pull"),
        ({"discard": "newest"}, "discard", "uninterested"),
        ({"cache": "nowhere"}, "cache", "everywhere"),
        ({"adaptive": 1}, "adaptive", "boolean"),
        ({"lost_age": "0 s"}, "lost_age", "at least 1 us"),
        ({"lost_buffer": 0}, "lost_buffer", "at least 1"),
        ({"rest_after": "0 s"}, "rest_after", "at least 1 us"),
        ({"linger": "-1 s"}, "linger", "a time with its unit"),
        ({"settle": "soon"}, "settle", "a time with its unit"),
        ({"buffer": 100, "remember": 99}, "remember", "at least 100"),
        ({"pforward": 0.5}, "pforward", "p_forward"),
    ],
)
def test_parameters_that_cannot_be_are_refused_when_the_scenario_is_read(
    given: dict[str, Any], key: str, allowed: str
) -> None:
    broker = {"reliability": "epidemic", "parameters": {"epidemic": given}}
    with pytest.raises(InputError) as caught:
        build(check_scenario({**SCENARIO, "broker": broker}, "scenario"))
    assert f"broker.parameters.epidemic.{key}" in str(caught.value)
    assert allowed in str(caught.value)


def test_a_scenario_without_datagrams_is_refused_unless_nothing_is_recovered() -> None:
    without = {key: value for key, value in SCENARIO.items() if key != "datagrams"}
    with pytest.raises(InputError, match="datagrams"):
        build(check_scenario(without, "scenario"))
    broker = {"reliability": "epidemic", "parameters": {"epidemic": {"algorithm": "none"}}}
    build(check_scenario({**without, "broker": broker}, "scenario"))


def test_an_overlay_with_cycles_is_refused() -> None:
    parts = {"routing": "docs.examples.own_protocol:EVERY_LINK", "reliability": "epidemic"}
    with pytest.raises(InputError, match="acyclic"):
        build(check_scenario({**SCENARIO, "overlay": {"kind": "ring", "brokers": 4}, "broker": parts}, "scenario"))


def test_all_algorithms_have_names_and_all_messages_numbers_of_their_own() -> None:
    for algorithm in ALGORITHMS:
        assert EpidemicParameters(algorithm=algorithm).pulls == algorithm.endswith("pull")
    kinds = [kind_of(each) for each in EPIDEMIC_MESSAGES]
    assert kinds == list(range(130, 141))
