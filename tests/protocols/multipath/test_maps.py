"""Publiy sections 3 to 5 on the text's own example: Figures 3, 4, 5 and 6, and laws over random trees."""

import functools
import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import Value
from routing.multipath.overlay_maps import MasterOverlayMap, WorkingOverlayMap
from routing.multipath.strategies import (
    PathComputation,
    compute_forwarding_s0,
    compute_forwarding_s1,
    compute_forwarding_s2,
)
from routing.multipath.subscription_tables import MasterSubscriptionTable, WorkingSubscriptionTable
from routing.multipath.view import WorkingView

Tree = dict[str, list[str]]


def tree(*edges: str) -> Tree:
    found: Tree = {}
    for edge in edges:
        first, second = edge.split("-")
        found.setdefault(first, []).append(second)
        found.setdefault(second, []).append(first)
    return found


# Figure 3's drawing is lost; this is a tree that its text describes: A is linked to N1 and N2 by primary links and to
# N3 and N4 by soft ones, both behind N1, and X5 lies one hop behind N4, which is Δ = 4 hops away from A.
FIGURE_3 = tree("A-N1", "A-N2", "N1-X1", "X1-N3", "X1-X2", "X2-N4", "N4-X5", "N3-X3", "N2-X4", "X4-X6")


def figure_3() -> WorkingOverlayMap:
    return WorkingOverlayMap(MasterOverlayMap("A", 4, FIGURE_3), ["N1", "N2", "N3", "N4"])


def test_publiy_s3_figure_3_edge_contraction() -> None:
    wom = figure_3()
    assert set(wom.brokers[:2]) == {"N1", "N2"}
    assert set(wom.brokers) == {"N1", "N2", "N3", "N4"}
    substitute = {broker: wom.names(bits) for broker, bits in wom.substitutes.items()}
    assert substitute == {
        "N1": ("N1",), "X1": ("N1",), "X2": ("N1",), "N2": ("N2",), "X4": ("N2",), "X6": ("N2",),
        "N3": ("N3",), "X3": ("N3",), "N4": ("N4",),
    }  # fmt: skip


def test_publiy_s3_figure_4_auxiliary_sets() -> None:
    wom = figure_3()
    at = {broker: number for number, broker in enumerate(wom.brokers)}
    assert set(wom.names(wom.between[at["N4"]])) == {"N1", "N4"}
    assert set(wom.names(wom.beyond[at["N1"]])) == {"N1", "N3", "N4"}
    assert set(wom.names(wom.behind[at["N1"]])) == {"N2"}
    assert set(wom.names(wom.behind[at["N2"]])) == {"N1", "N3", "N4"}
    assert set(wom.names(wom.beyond[at["N4"]])) == {"N4"}


def test_publiy_s4_figure_3_anchor_of_a_subscription_from_x5() -> None:
    """X5 is 5 hops from A: its anchor is N4, which the working map keeps; that of X3, 4 hops away, is X3, for which
    the map has N3."""
    wom = figure_3()
    mst = MasterSubscriptionTable()
    for origin, ppath in (("X5", ("N1", "X1", "X2", "N4")), ("X3", ("N1", "X1", "N3", "X3"))):
        mst.note_origin(origin, (0, 0), ppath)
    wst = WorkingSubscriptionTable(mst, wom, mst.ppaths)
    assert {wom.names(bit): origins for bit, origins in wst.groups} == {
        ("N4",): mst.bits["X5"],
        ("N3",): mst.bits["X3"],
    }


def test_publiy_s4_what_an_origin_does_not_hold_is_not_taken_from_it() -> None:
    mst = MasterSubscriptionTable()
    for origin in ("N1", "N2"):
        mst.note_origin(origin, (0, 0), (origin,))
    held, unknown = parse_filter("x = 1"), parse_filter("x = 2")
    mst.add("N1", held)
    for wanted in (held, unknown):
        mst.remove("N2", wanted)
    assert len(mst) == 1
    assert mst.matching_origins({"x": 1}) == mst.bits["N1"]
    mst.check_invariants()


# Figure 2, from which the strategies are described: p matches at N3, N5 and N6, all behind N1 and N2.
FIGURE_2 = tree("A-N1", "N1-N2", "N2-N3", "N2-N4", "N4-N5", "N4-N6")


@pytest.mark.parametrize(
    ("links", "compute", "expected"),
    [
        (["N1"], compute_forwarding_s0, {"N1"}),
        (["N1", "N2", "N3", "N5", "N6"], compute_forwarding_s1, {"N2"}),
        (["N1", "N2", "N3", "N5", "N6"], compute_forwarding_s2, {"N3", "N5", "N6"}),
        (["N1", "N2", "N4", "N3"], compute_forwarding_s2, {"N3", "N4"}),
    ],
)
def test_publiy_s5_figures_2_5_and_6(links: list[str], compute: PathComputation, expected: set[str]) -> None:
    wom = WorkingOverlayMap(MasterOverlayMap("A", 4, FIGURE_2), links)
    anchors = 0
    for broker in ("N3", "N5", "N6"):
        anchors |= wom.substitutes[broker]
    assert set(wom.names(compute(wom, anchors))) == expected


def test_publiy_s5_figure_5_takes_one_path_in_each_branch() -> None:
    wom = figure_3()
    assert set(wom.names(compute_forwarding_s1(wom, wom.set_of(["N3", "N4", "N2"])))) == {"N1", "N2"}
    assert set(wom.names(compute_forwarding_s1(wom, wom.set_of(["N4", "N2"])))) == {"N4", "N2"}
    assert set(wom.names(compute_forwarding_s1(wom, wom.set_of(["N1", "N4"])))) == {"N1"}


def test_publiy_s5_figure_6_leaves_out_what_a_closer_anchor_passes_on() -> None:
    wom = figure_3()
    assert set(wom.names(compute_forwarding_s2(wom, wom.set_of(["N3", "N4", "N2"])))) == {"N3", "N4", "N2"}
    assert set(wom.names(compute_forwarding_s2(wom, wom.set_of(["N1", "N4"])))) == {"N1"}


# ------------------------------------------------------------------------------------------------ model tests
def random_tree(rng: random.Random, size: int) -> Tree:
    names = [f"b{number}" for number in range(size)]
    found: Tree = {name: [] for name in names}
    for number in range(1, size):
        parent = names[rng.randrange(max(0, number - 4), number)]
        found[names[number]].append(parent)
        found[parent].append(names[number])
    return found


class GivenAnchors(WorkingSubscriptionTable):
    """A table whose anchors a test computes itself, whatever the event has in it."""

    compute: Callable[[], int]

    def anchors(self, attributes: Mapping[str, Value]) -> int:
        return self.compute()


EVENT = Event(1, 0, 0, {})


class AllBrokers:
    """All brokers of a tree with maps from scratch, any soft and candidate links, and an oracle for the tables."""

    def __init__(self, adjacency: Tree, delta: int, rng: random.Random, density: float) -> None:
        self.moms = {name: MasterOverlayMap(name, delta, adjacency) for name in adjacency}
        self.ways = {name: MasterOverlayMap(name, len(adjacency), adjacency) for name in adjacency}
        self.views: dict[str, WorkingView] = {}
        for name, mom in self.moms.items():
            soft = [peer for peer in mom.brokers if rng.random() < density]
            candidates = [peer for peer in mom.brokers if peer not in soft and peer not in adjacency[name]]
            candidates = [peer for peer in candidates if rng.random() < density / 2]
            mst = MasterSubscriptionTable()
            for origin in adjacency:
                mst.note_origin(origin, (0, 0), self.ways[name].path(origin)[:delta])
            wom = WorkingOverlayMap(mom, [*adjacency[name], *soft, *candidates])
            wst = GivenAnchors(mst, wom, mst.ppaths)
            wst.compute = functools.partial(self._anchors, wst, mst)
            self.views[name] = WorkingView(wom, wst, candidates)
        self.wanted: set[str] = set()

    def _anchors(self, wst: WorkingSubscriptionTable, mst: MasterSubscriptionTable) -> int:
        origins = sum(mst.bits[origin] for origin in self.wanted)
        return sum(bit for bit, group in wst.groups if origins & group)

    def publish(self, source: str, wanted: set[str], compute: PathComputation) -> list[str]:
        """Every broker the publication arrives at, as often as it does."""
        self.wanted = wanted
        arrivals = []
        waiting: list[tuple[str, str | None]] = [(source, None)]
        while waiting:
            name, came_from = waiting.pop()
            arrivals.append(name)
            assert len(arrivals) < 500, "it goes round"
            view = self.views[name]
            forward = view.forward(EVENT, came_from, compute)
            waiting += [(peer, name) for peer in view.wom.names(forward)]
        return arrivals

    def on_the_way(self, source: str, wanted: set[str]) -> set[str]:
        """Where S0 takes it: the tree paths to all brokers that want it."""
        return {source} | {broker for each in wanted for broker in self.ways[source].path(each)}


@given(
    seed=st.integers(0, 2**32),
    size=st.integers(1, 40),
    delta=st.integers(1, 5),
    density=st.floats(0, 1),
    share=st.floats(0, 1),
)
def test_publiy_s5_every_strategy_reaches_every_anchor_once_and_no_broker_that_s0_would_not(
    seed: int, size: int, delta: int, density: float, share: float
) -> None:
    rng = random.Random(seed)
    adjacency = random_tree(rng, size)
    brokers = AllBrokers(adjacency, delta, rng, density)
    source = rng.choice(list(adjacency))
    wanted = {name for name in adjacency if name != source and rng.random() < share}
    allowed = brokers.on_the_way(source, wanted)
    for compute in (compute_forwarding_s1, compute_forwarding_s2):
        arrivals = brokers.publish(source, wanted, compute)
        assert len(arrivals) == len(set(arrivals)), "a broker got it twice"
        assert wanted <= set(arrivals), "a broker missed it"
        assert set(arrivals) <= allowed, "it passed a broker that S0 would not reach"
    alone = AllBrokers(adjacency, delta, rng, 0.0)
    assert sorted(alone.publish(source, wanted, compute_forwarding_s0)) == sorted(allowed)


@given(seed=st.integers(0, 2**32), size=st.integers(2, 30), density=st.floats(0, 1))
def test_publiy_s6_candidate_links_change_nothing_but_the_counts(seed: int, size: int, density: float) -> None:
    rng = random.Random(seed)
    adjacency = random_tree(rng, size)
    centre = rng.choice(list(adjacency))
    mom = MasterOverlayMap(centre, 4, adjacency)
    real = [*adjacency[centre], *(peer for peer in mom.brokers if rng.random() < density)]
    candidates = [peer for peer in mom.brokers if peer not in real and rng.random() < 0.5]
    mst = MasterSubscriptionTable()
    for origin in mom.brokers:
        mst.note_origin(origin, (0, 0), mom.path(origin))
    chosen = [peer for peer in mom.brokers if rng.random() < 0.4]
    for compute in (compute_forwarding_s1, compute_forwarding_s2):
        sent = []
        for stubs in ([], candidates):
            wom = WorkingOverlayMap(mom, [*real, *stubs])
            anchors = 0
            for peer in chosen:
                anchors |= wom.substitutes[peer]
            wst = GivenAnchors(mst, wom, mst.ppaths)
            wst.compute = functools.partial(int, anchors)
            sent.append(set(wom.names(WorkingView(wom, wst, stubs).forward(EVENT, None, compute))))
        assert sent[0] == sent[1]
        assert not sent[1] & set(candidates)


@given(seed=st.integers(0, 2**32), size=st.integers(2, 40), delta=st.integers(1, 5))
def test_publiy_s3_auxiliary_sets_are_those_of_their_definition(seed: int, size: int, delta: int) -> None:
    rng = random.Random(seed)
    adjacency = random_tree(rng, size)
    centre = rng.choice(list(adjacency))
    mom = MasterOverlayMap(centre, delta, adjacency)
    soft = [peer for peer in mom.brokers if rng.random() < 0.4]
    wom = WorkingOverlayMap(mom, [*adjacency[centre], *soft])
    linked = set(wom.brokers)
    for number, broker in enumerate(wom.brokers):
        between = set(mom.path(broker)) & linked
        beyond = {other for other in linked if broker in mom.path(other)}
        from_there = MasterOverlayMap(broker, len(adjacency), adjacency)
        behind = {other for other in linked if centre in from_there.path(other)}
        assert set(wom.names(wom.between[number])) == between
        assert set(wom.names(wom.beyond[number])) == beyond
        assert set(wom.names(wom.behind[number])) == behind
        assert all(number <= other for other in range(len(wom.brokers)) if wom.beyond[number] >> other & 1)
    for broker in mom.brokers:
        closer = [step for step in mom.path(broker) if step in linked]
        assert wom.names(wom.substitutes[broker]) == ((closer[-1],) if closer else ())
        assert set(wom.names(wom.towards[broker])) == {
            other for other in linked if mom.first_hop(other) == mom.first_hop(broker)
        }


def test_tables_of_one_process_may_look_up_matching_origins_together() -> None:
    held = {"N1": "x > 5", "N2": "x > 7", "N3": "x < 3"}
    asked: list[Mapping[str, Value]] = []

    def lookup(attributes: Mapping[str, Value]) -> list[str]:
        asked.append(attributes)
        return [origin for origin, text in held.items() if parse_filter(text).matches(attributes)]

    for order in (list(held), list(reversed(held))):
        mst = MasterSubscriptionTable()
        for origin in order:
            mst.note_origin(origin, (0, 0), (origin,))
            mst.add(origin, parse_filter(held[origin]))
        alone = [mst.matching_origins({"x": value}) for value in range(10)]
        mst.share_lookup(lookup)
        assert [mst.matching_origins({"x": value}) for value in range(10)] == alone
        mst.check_invariants()
    assert len(asked) == 20


def test_maps_with_the_same_distances_and_other_links_are_not_the_same() -> None:
    first = MasterOverlayMap("a", 4, tree("a-b", "a-c", "b-d"))
    second = MasterOverlayMap("a", 4, tree("a-b", "a-c", "c-d"))
    assert first.distances == second.distances
    assert first != second
    assert first == MasterOverlayMap("a", 4, tree("a-b", "a-c", "b-d"))


def test_a_neighbourhood_that_reaches_further_than_the_overlay_ends_with_it() -> None:
    assert MasterOverlayMap("a", 10**12, {"a": ("b",), "b": ("a",)}).distances == {"a": 0, "b": 1}
