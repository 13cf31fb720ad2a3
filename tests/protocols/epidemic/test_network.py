"""Epidemic recovery on whole networks: under random faults, without losses, with losses, while the tree changes."""

import functools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.message import kind_of
from murmur_virtual.run import play_virtual
from murmuration.deployment.build_deployment import build
from murmuration.papers.epidemic.run import DispatcherNetwork, EpidemicSpec
from murmuration.scenario.load import check_scenario
from reliability.epidemic.messages import (
    EventRecovered,
    EventsRequested,
    PublisherPull,
    PushDigest,
    RandomPull,
    SubscriberPull,
)
from reliability.epidemic.parameters import ALGORITHMS
from spark_analysis.plain_judge import PlainVerdict, judge_plainly
from tests.schedules import play, schedules

RECOVERY: tuple[type, ...] = (PushDigest, SubscriberPull, PublisherPull, RandomPull, EventsRequested, EventRecovered)
DATAGRAMS = {"datagrams": {"delay": "3 ms"}, "drain": {"quiet": "1 s", "limit": "30 s"}}
SETTLED: dict[str, Any] = {"settle": "0 ms", "interval": "20 ms"}


def broker(algorithm: str, routing: str = "forwarding", **given: Any) -> dict[str, Any]:
    return {
        "routing": routing,
        "reliability": "epidemic",
        "parameters": {"epidemic": {"algorithm": algorithm, **SETTLED, **given}},
    }


# ------------------------------------------------------------------------------------------------ safety
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=25)
@given(data=st.data())
def test_no_duplicate_and_no_spurious_delivery_under_random_faults(algorithm: str, data: st.DataObject) -> None:
    routing = data.draw(st.sampled_from(("forwarding", "flooding", "multipath")), label="routing")
    given = {
        "buffer": data.draw(st.sampled_from((1, 5, 1_500)), label="buffer"),
        "cache": data.draw(st.sampled_from(("interested", "everywhere")), label="cache"),
        "discard": data.draw(st.sampled_from(("oldest", "uninterested", "random")), label="discard"),
        "adaptive": data.draw(st.booleans(), label="adaptive"),
        "remember": data.draw(st.sampled_from((1_500, 50_000)), label="remember"),
    }
    drawn = data.draw(schedules(broker(algorithm, routing, **given), more=DATAGRAMS), label="schedule")
    outcome = play(drawn)
    assert outcome.verdict.duplicate == []
    assert outcome.verdict.spurious == []
    if routing != "multipath":  # a kill leaves soft links in a state that is not this suite's business
        assert outcome.unexplained == []


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=15)
@given(data=st.data())
def test_no_duplicate_over_links_that_lose_double_and_reorder_all_the_time(algorithm: str, data: st.DataObject) -> None:
    harm = {
        name: data.draw(st.sampled_from((0.0, 0.1, 0.4)), label=name) for name in ("loss", "duplication", "reordering")
    }
    more = {
        "links": {"delay": "2 ms", **harm, "reordering_by": "40 ms"},
        "client_links": {"delay": "1 ms", **harm, "reordering_by": "40 ms"},
        "datagrams": {"delay": "3 ms", **harm, "reordering_by": "40 ms"},
        "drain": DATAGRAMS["drain"],
    }
    verdict = play(data.draw(schedules(broker(algorithm), kinds=("kill",), faults_max=2, more=more))).verdict
    assert verdict.duplicate == []
    assert verdict.spurious == []


# ------------------------------------------------------------------------------------------------ no loss, no traffic
@pytest.mark.parametrize("algorithm", [each for each in ALGORITHMS if each != "push"])
@settings(max_examples=20)
@given(data=st.data())
def test_epidemic_s5_without_losses_the_pulls_send_nothing(algorithm: str, data: st.DataObject) -> None:
    routing = data.draw(st.sampled_from(("forwarding", "flooding")), label="routing")
    drawn = data.draw(schedules(broker(algorithm, routing), faults_max=0, resubscriptions_max=0, more=DATAGRAMS))
    with TemporaryDirectory() as folder:
        verdict, sent = run(drawn, Path(folder))
    assert verdict.counts == (0, 0, 0, 0)
    assert sent == []


@settings(max_examples=20)
@given(data=st.data())
def test_epidemic_s5_without_losses_push_gossips_but_no_dispatcher_asks(data: st.DataObject) -> None:
    routing = data.draw(st.sampled_from(("forwarding", "flooding")), label="routing")
    drawn = data.draw(schedules(broker("push", routing), faults_max=0, resubscriptions_max=0, more=DATAGRAMS))
    with TemporaryDirectory() as folder:
        verdict, sent = run(drawn, Path(folder))
    assert verdict.counts == (0, 0, 0, 0)
    assert set(sent) <= {PushDigest}
    assert sent or not verdict.required


def run(data: dict[str, Any], folder: Path) -> tuple[PlainVerdict, list[type]]:
    """The verdict, and the kinds of recovery's messages that were sent."""
    loaded = check_scenario(data, "test")
    play_virtual(build(loaded).deployment, folder, lambda *_: None)
    kinds = {kind_of(each): each for each in RECOVERY}
    sent: list[type] = []
    for path in folder.glob("*.seg"):
        _, rows = read_segment(path)
        sent += [kinds[kind] for kind in rows[rows["kind"] == RowKind.SEND]["value"] if kind in kinds]
    return judge_plainly(folder), sent


# ------------------------------------------------------------------------------------------------ recovery
LOSSY: dict[str, Any] = {
    "name": "lossy",
    "runtime": "virtual",
    "overlay": {"kind": "balanced", "brokers": 10, "degree": 4},
    "workload": {
        "kind": "zipf", "clients": 10, "subscribers_per_actor": 2, "publishers": 4, "publications": 1200,
        "rate_per_s": 300, "attributes": 2, "predicates": 1, "matching_rate": 0.4,
    },
    "links": {"delay": "2 ms"},
    "faults": [
        {"at": "500 ms", "link": ["b0", "b1"], "loss": 0.3, "for": "1 s"},
        {"at": "500 ms", "link": ["b0", "b2"], "loss": 0.3, "for": "1 s"},
    ],
    **DATAGRAMS,
}  # fmt: skip


@functools.cache
def missing(algorithm: str, routing: str = "forwarding") -> int:
    with TemporaryDirectory() as folder:
        verdict, _ = run({**LOSSY, "broker": broker(algorithm, routing)}, Path(folder))
    assert verdict.required > 5_000
    return len(verdict.missing)


@pytest.mark.parametrize("routing", ["forwarding", "flooding", "multipath"])
@pytest.mark.parametrize("algorithm", ["push", "combined-pull"])
def test_epidemic_s5_a_burst_of_losses_is_recovered_over_any_routing(algorithm: str, routing: str) -> None:
    lost = missing("none", routing)
    assert lost > 200
    assert missing(algorithm, routing) <= 0.01 * lost


@pytest.mark.parametrize("algorithm", ["publisher-pull", "random-pull"])
def test_epidemic_s5_each_of_these_pulls_alone_recovers_most_of_a_burst(algorithm: str) -> None:
    assert missing(algorithm) <= 0.1 * missing("none")


def test_epidemic_s5_subscriber_pull_needs_subscribers_that_share_a_pattern(tmp_path: Path) -> None:
    """Here all filters differ, so that no dispatcher is asked; where several share each pattern, most is recovered."""
    assert missing("subscriber-pull") == missing("none")
    rates = {}
    for algorithm in ("none", "subscriber-pull"):
        (tmp_path / algorithm).mkdir()
        rates[algorithm] = small_network(algorithm, tmp_path / algorithm, loss=0.1, subscribed=3).rate
    assert 1 - rates["subscriber-pull"] < 0.3 * (1 - rates["none"])


@pytest.mark.parametrize("algorithm", ["push", "combined-pull"])
def test_gossip_does_not_keep_a_run_from_ending(algorithm: str, tmp_path: Path) -> None:
    """Even when what is lost is nowhere any more: the only publisher dies with what it alone has kept."""
    data = {
        **LOSSY,
        "overlay": {"kind": "chain", "brokers": 3},
        "workload": {**LOSSY["workload"], "clients": 3, "publishers": 1, "publications": 300},
        "broker": broker(algorithm),
        "faults": [
            {"at": "200 ms", "link": ["b0", "b1"], "loss": 0.5, "for": "300 ms"},
            {"at": "600 ms", "kill": "b0", "for": "100 ms"},
        ],
    }
    loaded = check_scenario(data, "test")
    finished = play_virtual(build(loaded).deployment, tmp_path, lambda *_: None)
    assert finished.runtime.now_us < 15_000_000


# ------------------------------------------------------------------------------------------------ restarts
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_epidemic_s4_2_a_killed_dispatcher_neither_doubles_nor_invents(algorithm: str) -> None:
    data = {
        **LOSSY,
        "seed": 3,
        "name": "schedule",
        "broker": broker(algorithm),
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "journal": "hops",
        "faults": [
            {"at": "300 ms", "link": ["b0", "b1"], "loss": 0.3, "for": "2 s"},
            {"at": "500 ms", "kill": "b1", "for": "300 ms"},
            {"at": "1500 ms", "kill": "b2", "for": "300 ms"},
            {"at": "2500 ms", "kill": "b0", "for": "300 ms"},
        ],
    }
    outcome = play(data)
    assert [fault.kind for fault in outcome.deployment.faults].count(FaultKind.KILL) == 3
    assert outcome.verdict.duplicate == []
    assert outcome.verdict.spurious == []
    assert outcome.unexplained == []


# ------------------------------------------------------------------------------------------------ reconfiguration
def small_network(algorithm: Any, folder: Path, **changes: Any) -> Any:
    spec = EpidemicSpec(
        algorithm, dispatchers=12, patterns=8, rate_per_s=20, learn_s=0.5, warm_s=1.0, measured_s=1.0, tail_s=1.5,
        **changes,
    )  # fmt: skip
    return DispatcherNetwork(spec, folder).run()


def test_epidemic_s1_events_lost_while_the_tree_is_reconfigured_are_recovered(tmp_path: Path) -> None:
    rates = {}
    for algorithm in ("none", "push", "combined-pull"):
        (tmp_path / algorithm).mkdir()
        found = small_network(algorithm, tmp_path / algorithm, loss=0.0, reconfigured_every_s=0.2)
        assert found.breaks >= 12
        assert (found.duplicate, found.spurious) == (0, 0)
        rates[algorithm] = found.rate
    assert rates["none"] < 0.97
    assert min(rates["push"], rates["combined-pull"]) > 0.995


def test_the_measures_of_a_run_are_those_of_what_had_to_arrive(tmp_path: Path) -> None:
    """Without losses everything due is delivered, and the same run gives the same figures again."""
    found = small_network("combined-pull", tmp_path, loss=0.0)
    assert found.rate == 1.0
    assert found.due > 300
    assert found.gossip_messages == found.replies == 0
    (tmp_path / "again").mkdir()
    again = small_network("combined-pull", tmp_path / "again", loss=0.0)
    assert (again.due, again.event_messages, again.delay_us) == (found.due, found.event_messages, found.delay_us)
