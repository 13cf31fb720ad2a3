"""One suite over every registered routing, reliability and matching: what any of them must do on a tree."""

import dataclasses
import itertools
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.links import Delay, LinkSpec
from murmur_virtual.run import play_virtual
from murmuration.hunt.trial import play_schedule
from murmuration.registry import RELIABILITIES, ROUTINGS, check_parts
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from routing.local_subscriptions import INDEXES
from routing.protocol import OverlayTraits, RunsOn
from spark_analysis.plain_judge import PlainVerdict, judge_plainly
from tests.deployments import PlainScript, Shape, deployment, random_deployment, structured_deployment, without_tree
from tests.parameters import parameters_of
from tests.parameters import parts as parts_of

PUSH = {"epidemic": {"algorithm": "push", "rest_after": "1 s"}}
TREE = OverlayTraits("a tree", frozenset({RunsOn.LINKS, RunsOn.ACYCLIC, RunsOn.CELLS}))
TREE_WITH_DATAGRAMS = dataclasses.replace(TREE, has_datagrams=True)
WITHOUT_LINKS = OverlayTraits("no links", frozenset({RunsOn.STRUCTURED}), has_datagrams=True)


def _fit(routing: str, reliability: str, traits: OverlayTraits) -> bool:
    above, below = RELIABILITIES[reliability], ROUTINGS[routing]
    try:
        check_parts("bitset", below, above, traits)
        above.check(parameters_of(above, PUSH.get(reliability, {})), traits, below)
    except InputError:
        return False
    return True


PAIRS = [
    (routing, reliability, matching)
    for routing, reliability, matching in itertools.product(ROUTINGS, RELIABILITIES, INDEXES)
    if _fit(routing, reliability, TREE_WITH_DATAGRAMS if RELIABILITIES[reliability].end_to_end else TREE)
]
STRUCTURED = [
    (routing, reliability)
    for routing, reliability in itertools.product(ROUTINGS, RELIABILITIES)
    if _fit(routing, reliability, WITHOUT_LINKS)
]


@pytest.fixture(params=PAIRS, ids=["-".join(pair) for pair in PAIRS])
def parts(request: pytest.FixtureRequest) -> dict[str, str]:
    routing, reliability, matching = request.param
    return {"matching": matching, "routing": routing, "reliability": reliability}


@given(
    seed=st.integers(0, 2**32),
    brokers=st.integers(1, 9),
    clients=st.integers(1, 6),
    changes=st.integers(0, 5),
    low_us=st.integers(0, 2_000),
    spread_us=st.integers(0, 5_000),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_matching_event_arrives_once_and_in_order(
    parts: dict[str, str], seed: int, brokers: int, clients: int, changes: int, low_us: int, spread_us: int
) -> None:
    links = LinkSpec(delay=Delay("uniform", low_us, low_us + spread_us))
    shape = Shape(brokers=brokers, clients=clients, changes=changes, parts=parts, links=links)
    note(f"replay: random_deployment({seed}, {shape})")
    with TemporaryDirectory() as folder:
        play_virtual(random_deployment(seed, shape), Path(folder), lambda *_: None)
        verdict = judge_plainly(Path(folder))
    assert verdict.counts == (0, 0, 0, 0), verdict


def test_a_bandwidth_cap_slows_publishers_and_loses_nothing(parts: dict[str, str], tmp_path: Path) -> None:
    links = LinkSpec(messages_per_s=2_000, queue_messages=5, on_overflow="slow")
    run = play_virtual(
        random_deployment(3, Shape(publications=60, changes=0, parts=parts, links=links)), tmp_path, lambda *_: None
    )
    verdict = judge_plainly(tmp_path)
    assert verdict.required > 100
    assert verdict.counts == (0, 0, 0, 0)
    assert run.runtime.now_us > 100_000, "sixty events in 60 ms cannot have passed such links unslowed"


def test_a_full_queue_that_drops_loses_only_what_the_journal_names(parts: dict[str, str], tmp_path: Path) -> None:
    links = LinkSpec(messages_per_s=500, queue_messages=3, on_overflow="drop")
    play_virtual(
        random_deployment(3, Shape(publications=60, changes=0, parts=parts, links=links)), tmp_path, lambda *_: None
    )
    verdict = judge_plainly(tmp_path)
    dropped = _events_dropped(tmp_path)
    assert dropped, "links this slow must lose something"
    assert verdict.missing or _promised(parts) == "exactly_once"
    assert {event for event, _ in verdict.missing} <= dropped
    assert verdict.counts[1:] == (0, 0, late_ones(parts, verdict))


def test_a_lossy_link_loses_only_what_the_journal_names(parts: dict[str, str], tmp_path: Path) -> None:
    links = LinkSpec(delay=Delay("constant", 1_000), loss=0.05)
    play_virtual(
        random_deployment(5, Shape(publications=60, changes=0, parts=parts, links=links)), tmp_path, lambda *_: None
    )
    verdict = judge_plainly(tmp_path)
    assert bool(verdict.missing) == (_promised(parts) != "exactly_once")
    assert {event for event, _ in verdict.missing} <= _events_dropped(tmp_path)
    assert verdict.counts[1:] == (0, 0, late_ones(parts, verdict))


def _promised(parts: dict[str, str]) -> str:
    return RELIABILITIES[parts["reliability"]].guarantee.delivery


def late_ones(parts: dict[str, str], verdict: PlainVerdict) -> int:
    """How many deliveries may be out of order: what is recovered comes late."""
    return len(verdict.out_of_order) if _promised(parts) == "at_most_once" else 0


@pytest.mark.parametrize(("routing", "reliability"), STRUCTURED)
@given(seed=st.integers(0, 2**32), brokers=st.integers(1, 9), clients=st.integers(1, 6), changes=st.integers(0, 5))
@example(seed=8315, brokers=8, clients=5, changes=3)  # two nodes withdraw what covers a filter of one at the same time
@settings(max_examples=25, deadline=None)
def test_on_structured_overlays_every_matching_event_arrives_once(
    routing: str, reliability: str, seed: int, brokers: int, clients: int, changes: int
) -> None:
    """Brokers join and clients subscribe at once; datagrams keep their order, events of one publisher may not."""
    made = parts_of(routing, reliability, "bitset", **PUSH)
    shape = Shape(brokers=brokers, clients=clients, changes=changes, parts=made)
    note(f"replay: structured_deployment({seed}, {shape})")
    with TemporaryDirectory() as folder:
        play_virtual(structured_deployment(seed, shape), Path(folder), lambda *_: None)
        verdict = judge_plainly(Path(folder))
    assert verdict.counts[:3] == (0, 0, 0), verdict


def _judged(routing: str, reliability: str, workload: dict[str, Any], **keys: Any) -> Mapping[str, Any]:
    """What the judge says of such a run over a structured overlay."""
    parameters = {"parameters": PUSH} if reliability in PUSH else {}
    usual = {
        "kind": "zipf", "clients": 20, "publishers": 4, "rate_per_s": 8, "attributes": 2, "predicates": 1,
        "matching_rate": 0.1,
    }  # fmt: skip
    run = {
        "name": "judged", "runtime": "virtual", "workload": {**usual, **workload},
        "broker": {"routing": routing, "reliability": reliability, **parameters}, **keys,
    }  # fmt: skip
    return play_schedule(run).judgement.numbers


@pytest.mark.parametrize(("routing", "reliability"), STRUCTURED)
def test_where_datagrams_are_lost_subscriptions_settle_and_nothing_else_is_lost(routing: str, reliability: str) -> None:
    """Of all probes one in ten has no answer, and no broker may be taken for failed, or all but seldom."""
    numbers = _judged(
        routing, reliability, {"publications": 40, "subscribers_per_actor": 1}, seed=1, drain={"limit": "20 s"},
        overlay={"kind": "structured", "brokers": 40}, datagrams={"delay": "5 ms", "loss": 0.05},
    )  # fmt: skip
    assert (numbers["duplicate"], numbers["spurious"]) == (0, 0)
    assert numbers["verdict"] == "valid" or (reliability == "best_effort" and numbers["missing"]), numbers["reason"]


@pytest.mark.parametrize(("routing", "reliability"), STRUCTURED)
def test_what_was_asked_settles_though_somebody_always_asks_for_something_else(routing: str, reliability: str) -> None:
    """No gap of these 50 s is as long as a node of the gossip overlay waits until it has settled."""
    numbers = _judged(
        routing, reliability, {"publications": 400, "subscribers_per_actor": 2, "resubscriptions": 100}, seed=2,
        overlay={"kind": "structured", "brokers": 16}, datagrams={"delay": "1 ms"},
    )  # fmt: skip
    assert numbers["verdict"] == "valid", numbers["reason"]
    assert numbers["required"] > 600


@pytest.mark.parametrize(
    ("routing", "reliability", "has_tree"),
    [*((*pair[:2], True) for pair in PAIRS if pair[2] == "bitset"), *((*pair, False) for pair in STRUCTURED)],
)
def test_a_subscription_of_several_filters_gets_an_event_once_until_it_is_withdrawn(
    routing: str, reliability: str, has_tree: bool, tmp_path: Path
) -> None:
    either = "x > 5 OR s LIKE '%a' AND x NOT IN (3, 4) OR p IS NULL AND q IS NULL AND z IS NULL AND y > 0"
    wanted: list[dict[str, Any]] = [{"x": 9, "s": "ba", "z": 1}, {"y": 1}]
    others: list[dict[str, Any]] = [{"x": 3, "s": "a", "z": 1}, {"y": 1, "z": 1}, {"s": "ba", "z": 1}]
    scripts = {
        f"c{number}": PlainScript(
            ((number, either),),
            tuple((at_us, number, event) for at_us in (0, 30_000_000) for event in (*wanted, *others)),
            () if number else ((10_000_000, "unsubscribe", number, either),),
        )
        for number in range(4)
    }
    edges = [("b0", "b1"), ("b1", "b2"), ("b2", "b3")]
    homes = {f"c{number}": f"b{number}" for number in range(4)}
    made = deployment(4, edges, homes, scripts, parts=parts_of(routing, reliability, "bitset", **PUSH))
    play_virtual(made if has_tree else without_tree(made, 1), tmp_path, lambda *_: None)
    verdict = judge_plainly(tmp_path)
    assert verdict.counts[:3] == (0, 0, 0), verdict
    assert verdict.delivered == {
        ((publisher, sequence), subscriber)
        for publisher, sequence, subscriber in itertools.product(range(4), (0, 1, 5, 6), range(4))
        if subscriber or sequence < 5
    }


def _events_dropped(journal: Path) -> set[tuple[int, int]]:
    from murmur_pubsub.journal import RowKind
    from murmur_pubsub.journal_rows import read_segment

    dropped = set()
    for path in journal.glob("*.seg"):
        _, rows = read_segment(path)
        for row in rows[rows["kind"] == RowKind.DROP]:
            dropped.add((int(row["source"]), int(row["sequence"])))
    return dropped


def test_brokers_that_deliver_themselves_deliver_what_clients_would(parts: dict[str, str], tmp_path: Path) -> None:
    delivered = []
    for last_mile in ("clients", "broker"):
        changes = [f"broker.{name}={value}" for name, value in parts.items()]
        loaded = load_scenario(
            Path("parity"), [*changes, f"last_mile={last_mile}", "datagrams.delay=1 ms", "workload.publications=100"]
        )
        run = execute(loaded, tmp_path / last_mile, lambda *_: None)
        verdict = judge_plainly(run.folder / "journal", 1_000_000)
        assert verdict.counts == (0, 0, 0, 0)
        assert verdict.required > 100
        delivered.append(verdict.delivered)
    assert delivered[0] == delivered[1]
