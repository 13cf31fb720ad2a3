"""What a scenario may say of brokers that join cells and depart, and what the judge requires then."""

from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.membership import Membership
from murmur_pubsub.places import CellPlan, spreads
from murmuration.hunt.trial import deployment_of, play_schedule
from spark_analysis.connections import Connections
from spark_analysis.excuses import Case
from spark_analysis.fault_windows import NEVER_US, FaultStep, fault_windows
from spark_analysis.passages import Passage
from tests.deployments import played
from tests.protocols.cells.replacing import PAPERS
from tests.protocols.durable.test_whole import QUICK

SCENARIO: dict[str, Any] = {
    "name": "replaced", "runtime": "virtual", "overlay": PAPERS, "newcomers": ["n1", "n2"],
    "workload": {
        "kind": "paced", "publishers": {"p1": 1}, "subscribers": {"s1": 1, "t1": 1}, "rate_per_s": 40, "seconds": 4,
    },
    "broker": {"routing": "cells", "reliability": "durable", "parameters": {"durable": {"pubends": {"p1": 1}}}},
    **QUICK,
}  # fmt: skip


def steps_of(*faults: dict[str, Any]) -> list[str]:
    return [str(fault) for fault in deployment_of({**SCENARIO, "faults": list(faults)}).faults]


def test_a_join_is_links_a_start_and_an_order() -> None:
    assert steps_of({"at": "1 s", "join": "n1", "cell": "m"}) == [
        "connect n1-p1", "connect n1-s1", "connect n1-t1", "connect n1-b1", "connect n1-b2", "restart n1",
        "join n1 cell m",
    ]  # fmt: skip


def test_at_the_edge_brokers_of_a_cell_have_no_links_with_each_other() -> None:
    assert steps_of({"at": "1 s", "join": "n1", "cell": "s"})[:-2] == ["connect n1-b1", "connect n1-b2"]


def test_the_links_may_be_listed_and_are_those_of_members_at_that_time() -> None:
    listed = steps_of({"at": "1 s", "join": "n1", "cell": "m", "to": ["p1", "s1"]})
    assert listed == ["connect n1-p1", "connect n1-s1", "restart n1", "join n1 cell m"]
    later = steps_of(
        {"at": "1 s", "join": "n1", "cell": "m"},
        {"at": "2 s", "depart": "n1", "broker": "b1"},
        {"at": "3 s", "join": "n2", "cell": "s"},
    )
    assert later[-4:] == ["connect n2-b2", "connect n2-n1", "restart n2", "join n2 cell s"]


def test_one_that_has_been_started_is_only_told() -> None:
    assert steps_of({"at": "1 s", "join": "b1", "cell": "s"}) == ["join b1 cell s"]


@pytest.mark.parametrize(
    ("entry", "place", "found"),
    [
        ({"join": "n1", "cell": "m", "to": ["p1", "n2"]}, "faults.0.to", "'n2'"),
        ({"join": "n1", "cell": "m", "to": "p1"}, "faults.0.to", "'p1'"),
        ({"join": "n1"}, "faults.0", "no `cell`"),
        ({"depart": "b2"}, "faults.0", "no `broker`"),
        ({"depart": "b2", "broker": "nobody"}, "faults.0", "'nobody'"),
    ],
)
def test_an_entry_that_cannot_be_names_its_key(entry: dict[str, Any], place: str, found: str) -> None:
    with pytest.raises(InputError) as error:
        steps_of({"at": "1 s", **entry})
    assert place in error.value.place
    assert found in error.value.found


def test_a_newcomer_is_not_called_like_a_cell() -> None:
    with pytest.raises(InputError, match="found 'm'"):
        deployment_of({**SCENARIO, "newcomers": ["m"]})


def test_random_faults_do_not_join_cells() -> None:
    with pytest.raises(InputError, match="'join' over cells"):
        deployment_of({**SCENARIO, "faults": [{"random": {"every": "1 s", "until": "3 s", "kinds": ["join"]}}]})


def test_a_scenario_replaces_a_broker_with_its_client() -> None:
    faults = [
        {"at": "500 ms", "join": "n1", "cell": "s"},
        {"at": "1 s", "move_client": "c1", "to": "n1"},
        {"at": "2 s", "depart": "n1", "broker": "s1"},
        {"at": "3 s", "kill": "s1"},
    ]
    outcome = play_schedule({**SCENARIO, "faults": faults})
    assert outcome.judgement.numbers["verdict"] == "valid"
    assert outcome.verdict.required == 320
    assert outcome.verdict.counts == (0, 0, 0, 0)
    assert not [check for check in outcome.checks if check.outcome == "failed"]


@pytest.mark.parametrize("end", ["goes to another", "stays"])
def test_a_client_whose_broker_departs_while_it_is_cut_off(end: str) -> None:
    """Its broker does not know of it then. It gets all when it goes elsewhere; where it stays nothing is promised."""
    faults: list[dict[str, Any]] = [
        {"at": "500 ms", "join": "n1", "cell": "s"},
        {"at": "1 s", "cut": ["c1", "s1"]},
        {"at": "2 s", "depart": "n1", "broker": "s1"},
        {"at": "2500 ms", "heal": ["c1", "s1"]},
    ]
    if end == "goes to another":
        faults.append({"at": "3 s", "move_client": "c1", "to": "n1"})
    outcome = play_schedule({**SCENARIO, "faults": faults})
    assert outcome.judgement.numbers["verdict"] == "valid"
    missing = len(outcome.judgement.excused)
    assert missing == 0 if end == "goes to another" else missing > 50


def test_nothing_is_known_of_who_has_departed(tmp_path: Path) -> None:
    faults = [{"at": "1 s", "depart": "b1", "broker": "b2"}, {"at": "2 s", "kill": "b2"}]
    run = played({**SCENARIO, "faults": faults}, tmp_path)
    for name in ("p1", "b1", "s1", "t1"):
        router = run.runtime.nodes[name].machine.router  # type: ignore[attr-defined]
        assert "b2" not in router._tables.tables
        assert "b2" not in router._link_states._known
        assert "b2" not in router.tree.cell_of
        assert name == "p1" or not router._epochs.is_behind


# ------------------------------------------------------------------------------------------------ members
CHAIN = CellPlan({"a": ("a",), "b": ("b",), "c": ("c",)}, (("a", "b"), ("b", "c")), ("a",), ("x", "y"))
PAIR = CellPlan({"a": ("a",), "b": ("b",)}, (("a", "b"),), ("a",), ("x",))


def test_an_edge_may_be_spread_unless_that_closed_a_cycle() -> None:
    assert [cell for cell in CHAIN.cells if spreads(CHAIN, cell)] == ["a", "c"]
    assert [cell for cell in PAIR.cells if spreads(PAIR, cell)] == ["b"]


def test_what_two_know_is_put_together_in_any_order() -> None:
    words: list[tuple[dict[str, str], list[str]]] = [({"x": "c"}, []), ({}, ["c"]), ({"y": "c"}, ["x"])]
    found = []
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0, 1]):
        members = Membership(CHAIN)
        for each in order:
            members.take(*words[each])
        found.append((members.members_of("c"), members.cell_of("x"), members.has_departed("c")))
    assert found == [(("y",), None, True)] * 3


def test_a_cell_is_never_empty() -> None:
    members = Membership(CHAIN)
    members.take({"x": "c"}, ["c", "x"])
    assert members.members_of("c") == ("c",)
    assert (members.has_departed("c"), members.has_departed("x")) == (False, True)


# ------------------------------------------------------------------------------------------------ the judge
def departing(restarts: bool, refused: bool = False) -> list[FaultStep]:
    done = None if refused else 1_000
    order = FaultStep(0, FaultKind.ORDER, "depart b", ("a",), ordered_us=1_000, in_effect_us=done, given_up=("b",))
    steps = [FaultStep(**{**{name: getattr(order, name) for name in order.__slots__}, "for_good": True})]
    if restarts:
        steps.append(FaultStep(1, FaultKind.RESTART, "restart b", ("b",), ordered_us=2_000, in_effect_us=2_000))
    return steps


@pytest.mark.parametrize("restarts", [False, True])
def test_who_has_departed_is_no_way_and_is_promised_nothing_whether_it_starts_again_or_not(restarts: bool) -> None:
    links, brokers = [("a", "b"), ("b", "c")], frozenset("abc")
    (window,) = fault_windows(departing(restarts), [(3_000, 3_000)], links, brokers=brokers)
    assert (window.severs, window.until_us, window.undone_us) == (True, NEVER_US, NEVER_US)
    connections = Connections({}, [window], {"c0": "a", "c1": "b", "c2": "c"})
    lost = Case("missing", "c0", "c1", 10_000)
    assert connections.explain(lost, Passage()) is not None
    assert connections.explain(lost._replace(client="c0"), Passage()) is None


def test_a_departure_that_was_refused_excuses_nothing() -> None:
    assert fault_windows(departing(False, refused=True), [], [("a", "b")]) == []


def test_a_loss_at_a_brokers_own_subscriber_is_judged() -> None:
    connections = Connections({}, [], {}, by_links=False)
    assert connections.explain(Case("missing", "a", "b", 10_000), Passage()) is None


@pytest.mark.parametrize("lossy", [False, True])
def test_where_links_lose_messages_an_event_may_be_held_up_until_somebody_subscribes(lossy: bool) -> None:
    connections = Connections({}, [], {}, limit_us=5_000_000, lossy=lossy)
    early = Case("spurious", "a", "b", 0, delivered_us=2_000_000, early=True)
    assert (connections.explain(early, Passage()) is not None) == lossy
    assert (connections.explain(early._replace(delivered_us=5_000_000), Passage()) is not None) == lossy
    assert connections.explain(early._replace(delivered_us=5_000_001), Passage()) is None
    assert connections.explain(early._replace(early=False), Passage()) is None, "it is not from before its subscription"
    assert connections.explain(early._replace(finding="duplicate", early=False), Passage()) is None
