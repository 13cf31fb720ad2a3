"""What papers' criteria find of results made by hand, on both sides of their bounds, and what such figures are."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.codec import Encoded
from murmur_pubsub.filter_parser import parse_filter
from murmuration.papers.epidemic.run import GOSSIP, DispatcherNetwork, EpidemicMeasures, EpidemicSpec
from murmuration.papers.epidemic.seeded_runs import SeededRuns
from murmuration.papers.gryphon.criteria import judge_crash
from murmuration.papers.gryphon.plan import failure_tests
from murmuration.papers.gryphon.run import DELIVERY_COUNTS, FailureRun
from murmuration.papers.irbr.paper import judge_failures
from murmuration.papers.irbr.plan import IrbrPlan
from murmuration.papers.irbr.run import BIN_US, FOUND_US, PUBLISH_UNTIL_US, FaultSpec, Resilience
from murmuration.papers.lab.results import PaperResult
from murmuration.papers.vinifera.network import GossipNetwork
from murmuration.papers.vinifera.paper import judge_churn
from murmuration.papers.vinifera.plan import ViniferaPlan
from murmuration.papers.vinifera.run import ChurnRun, ChurnSpec
from reliability.epidemic.messages import EventRecovered, EventsRequested, TaggedEvent


def missed(result: PaperResult) -> list[str]:
    return [each.name for each in result.criteria if each.met is False]


def churned(spec: ChurnSpec, outside: int, within: int) -> ChurnRun:
    """Of 1,000 deliveries in each of four hours so many were made; a crowd joins in the third, and still counts in the
    fourth."""
    hours = [outside, outside, within, within]
    return ChurnRun(spec, [100] * 4, [0, 20, 21, 0], [1_000] * 4, hours, [1_000] * 4, [0] * 4, [1_000] * 4)


@pytest.mark.parametrize(
    ("outside", "within", "beside", "words"),
    [
        (990, 950, 900, []),
        (989, 950, 900, ["hit ratio outside flash crowds"]),
        (990, 949, 900, ["hit ratio in flash crowds"]),
        (995, 950, 984, []),
        (995, 950, 986, ["baseline's hit ratio lower"]),
    ],
)
def test_what_vinifera_delivers_under_churn_is_judged(outside: int, within: int, beside: int, words: list[str]) -> None:
    plan, result = ViniferaPlan.quick(1), PaperResult(scaled_down=False)
    of = {"vinifera": (outside, within), "ferry": (beside, beside)}
    judge_churn(result, plan, {spec: churned(spec, *of[spec.routing]) for spec in plan.churn})
    assert len(result.criteria) == 6, "with closed connections, and by heartbeats alone"
    assert {name.partition(": ")[2] for name in missed(result)} == set(words)
    assert len(missed(result)) == 2 * len(words)


def resilience(spec: FaultSpec, before: int, after: int) -> Resilience:
    """Of 1,000 deliveries in each bin so many were made until the failures were found, and after that."""
    bins = range(PUBLISH_UNTIL_US // BIN_US)
    made = [before if at < -(-FOUND_US // BIN_US) else after for at in bins]
    return Resilience(spec, [1_000 for _ in bins], made)


@pytest.mark.parametrize(
    ("irbr", "after", "rpf", "words"),
    [
        (900, 999, 899, []),
        (900, 998, 899, ["IRBR delivers after detection, 20 % killed (%)"]),
        (900, 999, 900, ["IRBR delivers more than RPF until detection, 20 % killed (points)"]),
    ],
)
def test_what_irbr_delivers_of_what_is_published_after_a_kill_is_judged(
    irbr: int, after: int, rpf: int, words: list[str]
) -> None:
    plan, result = IrbrPlan.quick(1), PaperResult(scaled_down=False)
    before = {"irbr": irbr, "rpf": rpf, "scribe": 0}
    judge_failures(result, plan, {spec: resilience(spec, before.get(spec.routing, 0), after) for spec in plan.faults})
    assert missed(result) == words


def crashed(at_s1: int, at_b2: int, **counts: int) -> FailureRun:
    """s1 and s2 have nacked that many ticks each, and b2."""
    nacks = {name: [(0.0, ticks)] for name, ticks in (("s1", at_s1), ("s2", at_s1), ("b2", at_b2))}
    verdict = dict.fromkeys(DELIVERY_COUNTS, 0) | counts
    return FailureRun(failure_tests("virtual").crash, verdict, {}, {}, nacks, [], [], None, 0, {})


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (crashed(3_850, 3_850), []),
        (crashed(3_849, 3_850), ["nack range of s1, ticks"]),
        (crashed(7_150, 7_150), []),
        (crashed(7_151, 7_151), ["nack range of s1, ticks"]),
        (crashed(5_000, 6_000), []),
        (crashed(5_000, 6_001), ["nack range b2 / (s1 + s2)"]),
        (crashed(5_500, 5_500, duplicate=1), ["deliveries"]),
    ],
)
def test_what_the_crash_of_a_broker_costs_is_judged(seen: FailureRun, words: list[str]) -> None:
    """Two pubends' 1,000 ticks a second for 2.75 s are 5,500; within 30 % that is 3,850 to 7,150."""
    result = PaperResult(scaled_down=False)
    judge_crash(result, seen)
    assert [name.partition(": ")[2] for name in missed(result)] == words


def test_nothing_is_owed_to_a_node_that_has_just_started(tmp_path: Path) -> None:
    domains: dict[str, Any] = {"attributes": {"x": {"min": 0, "max": 100}}}
    names = [f"b{number}" for number in range(4)]
    network = GossipNetwork("vinifera", names, 1, tmp_path, domains)
    network.joining_us = 2 * network.cycle_us
    for name in names:
        network.subscribe(name, parse_filter("x > 50"))
    network.start_together(names[:3])
    assert network.wanting({"x": 60}) == 0
    network.cycles(2)
    network.join("b3", names[:1])
    assert network.wanting({"x": 60}) == 0b0111
    assert network.wanting({"x": 40}) == 0
    network.cycles(2)
    assert network.wanting({"x": 60}) == 0b1111
    network.close()


def test_the_mean_delay_is_of_what_was_delivered() -> None:
    """Ten were due, and five came, after 10 ms on average; of the other seed nothing came."""
    spec = EpidemicSpec("none")
    came = EpidemicMeasures(spec, due=10, delivered=5, delay_us=50_000)
    assert SeededRuns([came]).delay_ms == 10
    assert SeededRuns([came, EpidemicMeasures(spec, due=10)]).delay_ms == 5


def test_the_bytes_of_a_message_that_goes_to_several_peers_count_for_each(tmp_path: Path) -> None:
    """Two messages with events, of 30 bytes together, are sent seven times; three gossips of 12, three times."""
    spec = EpidemicSpec("none", dispatchers=3)
    network, measures = DispatcherNetwork(spec, tmp_path), EpidemicMeasures(spec)
    network.sent = Counter({TaggedEvent: 7, GOSSIP[0]: 3, EventsRequested: 2, EventRecovered: 1})
    encoded: dict[type, Encoded] = {kind: Encoded() for kind in (*GOSSIP, TaggedEvent)}
    for kind, messages, size in ((TaggedEvent, 2, 30), (GOSSIP[0], 3, 12)):
        encoded[kind].messages, encoded[kind].bytes = messages, size
    network._count_messages(measures, encoded)
    network.close()
    assert (measures.event_messages, measures.event_bytes) == (7, 105)
    assert (measures.gossip_messages, measures.gossip_bytes) == (3, 12)
    assert (measures.requests, measures.replies) == (2, 1)
