"""Routing over cells: who is told which links are up, which way is taken, and how detours go under best effort."""

from collections.abc import Sequence

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Effect, LinkDown, LinkUp, NodeContext, Received, Send, SetTimer, TimerFired
from murmur_pubsub.places import CellPlan
from routing.cells.cell_tree import CellTree
from routing.cells.epochs import SPACING_US, UNFILTERED
from routing.cells.link_states import LinkStates
from routing.cells.messages import WHOLE, EpochHeard, InEffect, LinksUp, TableChanged, TablesHeld, WholeTable
from routing.cells.router import CellRouting
from routing.cells.tables import FilterTables, Table
from routing.protocol import NoParameters
from routing.router import Hop
from tests.protocols.gryphon.bench import TWO_BRANCHES, Bench
from tests.protocols.gryphon.cuts import chain, one_cell, two_cells

PAPERS = CellPlan(
    {"p": ("p",), "l": ("b1", "b2"), "r": ("b3", "b4"), **{name: (name,) for name in ("s1", "s2", "s3", "s4")}},
    (("p", "l"), ("p", "r"), ("l", "s1"), ("l", "s2"), ("r", "s3"), ("r", "s4")),
    ("p",),
)


def states(plan: CellPlan, me: str) -> LinkStates:
    return LinkStates(CellTree(plan, me), me, 0)


def told(effects: Sequence[Effect]) -> list[tuple[str, str, list[str]]]:
    """To whom, of which broker, which links."""
    return [(each.to, each.message.broker, each.message.peers) for each in effects]  # type: ignore[union-attr]


def router(me: str, plan: CellPlan = TWO_BRANCHES, links: Sequence[str] = ()) -> CellRouting:
    made = CellRouting(NodeContext(me, 1, {}, 0, plan), NoParameters())
    for peer in links:
        made.handle(LinkUp(peer, True), 0)
    return made


# ---------------------------------------------------------------------------------------------- the tree
def test_a_region_is_what_hangs_together_by_cells_of_several_brokers() -> None:
    left, right = {"p", "b1", "b2", "s1", "s2"}, {"p", "b3", "b4", "s3", "s4"}
    for me, regions in (("p", [left, right]), ("b1", [left]), ("s1", [left]), ("b4", [right])):
        assert [set(each) for each in CellTree(PAPERS, me).regions] == regions
    assert CellTree(chain(3), "b1").regions == []
    assert [set(each) for each in CellTree(two_cells(2), "b0").regions] == [{"p", "a0", "a1", "b0", "b1", "s"}]


def test_a_tree_knows_how_far_away_a_cell_is() -> None:
    assert CellTree(PAPERS, "b1").depth == {"l": 0, "p": 1, "r": 2, "s3": 3, "s4": 3, "s1": 1, "s2": 1}


# ------------------------------------------------------------------------------------------- link states
def test_links_are_told_in_the_region_and_nowhere_else() -> None:
    p = states(PAPERS, "p")
    for peer in ("b1", "b3"):
        p.link_up(peer)
    of_b1 = LinksUp("b1", 0, 7, ["p", "b2"])
    assert told(p.learn("b1", of_b1)) == []
    assert told(p.link_up("b2")) == [
        ("b1", "p", ["b1", "b2", "b3"]), ("b3", "p", ["b1", "b2", "b3"]), ("b2", "p", ["b1", "b2", "b3"]),
        ("b2", "b1", ["p", "b2"]),
    ]  # fmt: skip
    assert told(p.link_down("b2")) == [("b1", "p", ["b1", "b3"]), ("b3", "p", ["b1", "b3"])]


def test_among_lone_brokers_nothing_is_told() -> None:
    middle = states(chain(3), "b1")
    assert middle.link_up("p") + middle.link_up("b2") + middle.link_down("p") == []
    assert middle.path("b2") == ("b2",)
    assert middle.path("p") == ()


def test_only_what_is_news_is_passed_on() -> None:
    b1 = states(PAPERS, "b1")
    for peer in ("p", "b2", "s1"):
        b1.link_up(peer)
    news = LinksUp("s2", 1, 3, ["b2"])
    assert [to for to, _, _ in told(b1.learn("b2", news))] == ["p", "s1"]
    assert b1.learn("p", news) == []
    assert b1.learn("p", LinksUp("s2", 1, 2, [])) == []
    assert b1.learn("p", LinksUp("s2", 0, 9, [])) == []
    assert b1.learn("p", LinksUp("b1", 9, 9, [])) == [], "it knows its own"
    assert [to for to, _, _ in told(b1.learn("p", LinksUp("s2", 2, 0, [])))] == ["b2", "s1"]


def test_a_link_counts_as_up_while_both_its_ends_say_so() -> None:
    b1 = states(PAPERS, "b1")
    b1.link_up("p")
    b1.learn("p", LinksUp("p", 0, 1, ["b1", "b2"]))
    assert b1.path("b2") == ()
    b1.learn("p", LinksUp("b2", 0, 1, ["p", "s1"]))
    assert b1.path("b2") == ("p", "b2")
    assert b1.path("s1") == ()
    b1.learn("p", LinksUp("s1", 0, 1, ["b2"]))
    assert b1.path("s1") == ("p", "b2", "s1")
    b1.learn("p", LinksUp("b2", 0, 2, ["p"]))
    assert b1.path("s1") == ()
    b1.check_invariants()


def up(plan: CellPlan, me: str, *pairs: str) -> LinkStates:
    """What a broker knows when just these links are up."""
    ends = [pair.split("-") for pair in pairs]
    known = states(plan, me)
    peers: dict[str, list[str]] = {}
    for first, second in ends:
        peers.setdefault(first, []).append(second)
        peers.setdefault(second, []).append(first)
    for peer in peers[me]:
        known.link_up(peer)
    for broker, others in peers.items():
        known.learn(peers[me][0], LinksUp(broker, 0, 1, others))
    return known


ALL_WELL = ("p-b1", "p-b2", "b1-b2", "b1-s1", "b1-s2", "b2-s1", "b2-s2")


@pytest.mark.parametrize(
    ("cut", "ways"),
    [
        ((), ["b1", "b2", "b1"]),
        (("b1-s1",), ["b1", "b2", "b1"]),
        (("b1-s1", "b1-b2"), ["b2", "b2", "b2"]),
        (("p-b1",), ["b2", "b2", "b2"]),
        (("b1-s1", "b2-s2", "b1-b2"), ["b1", "b2", "b1"]),
    ],
    ids=[
        "all is well: turns",
        "sideways is as good",
        "to where more is reached",
        "a shorter path",
        "as much by either",
    ],
)
def test_the_member_to_send_to(cut: tuple[str, ...], ways: list[str]) -> None:
    known = up(PAPERS, "p", *(each for each in ALL_WELL if each not in cut))
    assert [known.way("l", turn)[-1] for turn in range(3)] == ways


def test_the_way_goes_on_by_the_members_that_are_reached() -> None:
    known = up(PAPERS, "b1", "p-b1", "p-b2", "b2-s1")
    assert known.way("s1", 0) == ("p", "b2", "s1")
    assert known.way("s2", 0) == ()
    assert up(PAPERS, "b1", "b1-b2", "b2-p").way("p", 3) == ("b2", "p")


def test_a_shorter_path_is_taken_and_of_paths_that_are_alike_the_one_whose_turn_it_is() -> None:
    known = up(PAPERS, "s1", "s1-b1", "s1-b2", "b1-b2", "b1-p", "b2-p")
    assert known.path("p") in (("b1", "p"), ("b2", "p"))
    assert [known.way("l", turn) for turn in (0, 1)] == [("b1",), ("b2",)]
    known = up(PAPERS, "s1", "s1-b1", "b1-b2", "b1-p", "b2-p")
    assert [known.way("l", turn) for turn in (0, 1)] == [("b1",), ("b1",)]


def test_brokers_that_were_cut_off_from_each_other_agree_again_when_the_link_is_back() -> None:
    bench = Bench(one_cell(3, ("s", "t")))
    pairs = [("p", "m0"), ("m0", "m1"), ("m1", "s"), ("p", "m2"), ("m0", "m2")]
    for pair in pairs:
        bench.unlink(*pair)
    for pair in reversed(pairs):
        bench.link(*pair)
    routers = [broker.router for broker in bench.brokers.values()]
    known = [each._link_states._known for each in routers if isinstance(each, CellRouting)]
    assert len(known) == 6
    assert all(each == known[0] for each in known)


def test_a_restarted_brokers_links_are_news_though_it_counts_from_one_again() -> None:
    bench = Bench()
    bench.crash("m0")
    bench.start("m0")
    bench.link("m0", "s")
    router_of_p = bench.brokers["p"].router
    assert isinstance(router_of_p, CellRouting)
    assert router_of_p.path("m0") == ("m1", "s", "m0")
    assert router_of_p.way("m", 0) == ("m1",)


# ------------------------------------------------------------------------------------- under best effort
def test_best_effort_goes_by_the_whole_path_too() -> None:
    links = {"p": ["m0", "m1"], "m0": ["p"], "m1": ["p", "s", "t"], "s": ["m1"], "t": ["m1"]}
    p = router("p", links=links["p"])
    p.handle(Received("m1", WholeTable("s", 0, 1, [parse_filter("x > 0")], {"p": 0}, False)), 0)
    p.handle(Received("m1", WholeTable("t", 0, 1, [], {"p": 0}, False)), 0)
    for name, peers in links.items():
        p.handle(Received("m1", LinksUp(name, 0, 5, peers)), 0)
    event = Event(7, 0, 0, {"x": 1})
    (hop,) = p.next_hops(event, None, ())
    assert hop.peer == "m1"
    assert len(hop.header) == 2
    m0 = router("m0", links=["p"])
    m0.handle(Received("p", WholeTable("s", 0, 1, [parse_filter("x > 0")], {}, False)), 0)
    for name, peers in links.items():
        m0.handle(Received("p", LinksUp(name, 0, 5, peers)), 0)
    numbers = m0.tree.numbers
    stamp = 1 << 62
    hops = m0.next_hops(event, "p", (numbers["p"], stamp))
    assert hops[0] == Hop("p", (numbers["p"], stamp, numbers["m1"], numbers["s"]))
    assert p.is_relay(event, hops[0].header)
    assert p.next_hops(event, "m0", hops[0].header) == [Hop("m1", (numbers["p"], stamp, numbers["s"]))]
    m1 = router("m1", links=["p", "s", "t"])
    assert m1.is_relay(event, (numbers["p"], stamp, numbers["s"]))
    assert m1.next_hops(event, "p", (numbers["p"], stamp, numbers["s"])) == [Hop("s", (numbers["p"], stamp))]
    assert not m1.is_relay(event, (numbers["p"], stamp))


# -------------------------------------------------------------------------------------- epochs and tables
def test_a_broker_says_which_incarnation_of_a_root_it_has_heard_of() -> None:
    s = router("s", links=["m0"])
    assert s._epochs.incarnation_of("p") == 0
    announced = InEffect("p", (3 << 32) + 1, WHOLE, {"s": [0, 0]}, [])
    effects = s.handle(Received("m0", announced), 0)
    assert s._epochs.incarnation_of("p") == 3
    changes = [each.message for each in effects if type(each) is Send and type(each.message) is TableChanged]
    assert [each.heard for each in changes] == [{"p": 3}]
    assert s.handle(Received("m0", announced), 0) == []


def announced_by(effects: Sequence[Effect]) -> list[InEffect]:
    """The announcements among the effects, each once."""
    sent = [each.message for each in effects if type(each) is Send]
    return list({each.epoch: each for each in sent if type(each) is InEffect}.values())


def spaced(p: CellRouting) -> Sequence[Effect]:
    """The time passes that no announcement of p may follow the last one."""
    return p.handle(TimerFired(("routing", "spacing")), 0)


def restarted_root() -> CellRouting:
    """p in its second life, whose neighbours know of it; it has announced what m0 held of s: an old table."""
    p = CellRouting(NodeContext("p", 1, {}, 1, TWO_BRANCHES), NoParameters())
    for peer in ("m0", "m1"):
        p.handle(LinkUp(peer, True), 0)
    (first,) = announced_by(p.handle(Received("m0", WholeTable("s", 0, 0, [], {}, False)), 0))
    assert dict(first.tables)["s"] == [0, 0]
    for broker in ("m0", "m1", "t"):
        p.handle(Received("m0", WholeTable(broker, 0, 0, [], {"p": 1}, False)), 0)
    return p


def test_a_restarted_root_filters_by_no_epoch_that_may_name_older_tables_than_its_former_life_did() -> None:
    p, wanted = restarted_root(), parse_filter("x = 1")
    before = p._epochs.own
    p.handle(Received("m0", WholeTable("s", 0, 2, [wanted], {"p": 1}, False)), 0)
    # m1 may hold the old table of s still, for which the announced epoch is complete there.
    assert p._epochs.own == before
    assert p.stamp("m") == UNFILTERED
    p.handle(Received("m0", EpochHeard(before)), 0)
    p.handle(Received("m1", EpochHeard(before)), 0)
    (second,) = announced_by(spaced(p))
    assert dict(second.tables)["s"] == [0, 2]
    assert p.stamp("m") == second.epoch
    p.check_invariants()


def test_what_a_broker_has_heard_of_roots_is_announced_where_it_makes_a_branch_sure_and_nowhere_else() -> None:
    p = restarted_root()
    before = p._epochs.own
    for peer in ("m0", "m1"):
        p.handle(Received(peer, EpochHeard(before)), 0)
    spaced(p)
    after = p._epochs.own
    assert after == before + 1, "the tables that had come meanwhile"
    for peer in ("m0", "m1"):
        assert announced_by(p.handle(Received(peer, EpochHeard(after)), 0)) == []
    assert announced_by(spaced(p)) == []
    assert p.stamp("m") == UNFILTERED
    (sure,) = announced_by(p.handle(Received("m0", TableChanged("s", 0, 1, [], [], {"p": 1})), 0))
    assert (sure.since, dict(sure.tables), p.stamp("m")) == (after, {"s": [0, 1]}, sure.epoch)
    for peer in ("m0", "m1"):
        p.handle(Received(peer, EpochHeard(sure.epoch)), 0)
    spaced(p)
    heard = TableChanged("s", 0, 2, [], [], {"p": 1, "q": 4})
    assert announced_by(p.handle(Received("m0", heard), 0)) == []
    (last,) = announced_by(p.handle(Received("m0", TableChanged("t", 0, 1, [parse_filter("x = 1")], [], {})), 0))
    assert dict(last.tables) == {"s": [0, 2], "t": [0, 1]}
    p.check_invariants()


def test_an_announcement_says_what_is_new_and_who_lacks_the_one_before_takes_no_notice() -> None:
    s = router("s", links=["m0"])
    for broker in ("p", "t"):
        s.handle(Received("m0", WholeTable(broker, 0, 0, [], {}, False)), 0)
    first, second = InEffect("p", 1, WHOLE, {"t": [0, 0], "s": [0, 0]}, []), InEffect("p", 2, 1, {"t": [0, 1]}, [])
    third = InEffect("p", 3, 2, {"p": [0, 7]}, [])
    assert s.handle(Received("m0", second), 0) == []
    assert "p" not in s._epochs.known
    for announced in (first, third, second, first, second):
        s.handle(Received("m0", announced), 0)
    assert s._epochs.whole("p") == InEffect("p", 2, WHOLE, {"t": [0, 1], "s": [0, 0]}, [])
    assert (s._epochs.filterable("p", 1), s._epochs.filterable("p", 2)) == (True, False)
    s.handle(Received("m0", TableChanged("t", 0, 1, [], [], {})), 0)
    assert s._epochs.filterable("p", 2)
    s.handle(Received("m0", third), 0)
    assert not s._epochs.filterable("p", 3)
    s.handle(Received("m0", InEffect("p", 5, WHOLE, {"s": [0, 0]}, [])), 0)
    assert s._epochs.filterable("p", 5)
    assert s._epochs.whole("p").tables == {"s": [0, 0]}
    s.check_invariants()


def test_a_broker_that_was_cut_off_gets_all_of_the_epochs_that_it_missed() -> None:
    bench = Bench()
    for number in range(3):
        bench.subscribe("t", 10 + number, f"x = {number}")
        if number == 0:
            for peer in ("m0", "m1"):
                bench.unlink(peer, "s")
    bench.link("m1", "s")
    routers = [broker.router for broker in bench.brokers.values()]
    known = [each._epochs.known["p"] for each in routers if isinstance(each, CellRouting)]
    assert len(known) == 5
    assert all(each == known[0] for each in known)
    assert known[0].tables["t"] == [0, 3]
    bench.subscribe("t", 20, "x = 9")
    assert [each.tables["t"] for each in known] == [[0, 4]] * 5


def test_a_root_announces_one_epoch_at_a_time() -> None:
    p = router("p", links=["m0", "m1"])

    def announced(effects: Sequence[Effect]) -> list[int]:
        return [each.message.epoch for each in effects if type(each) is Send and type(each.message) is InEffect]

    assert announced(p.subscribe(parse_filter("x = 1"))) == [1, 1]
    assert announced(p.subscribe(parse_filter("x = 2"))) == []
    assert announced(spaced(p)) == [], "the neighbours have not heard the first yet"
    assert announced(p.handle(Received("m0", EpochHeard(1)), 0)) == []
    assert announced(p.handle(Received("m1", EpochHeard(0)), 0)) == [], "an answer to an earlier one"
    assert announced(p.handle(Received("m1", EpochHeard(1)), 0)) == [2, 2]
    assert announced(p.subscribe(parse_filter("x = 3"))) == []
    assert announced(p.handle(LinkDown("m0", "test"), 0)) == []
    assert announced(p.handle(LinkDown("m1", "test"), 0)) == []
    assert announced(spaced(p)) == [], "there is nobody to tell"
    assert p._epochs.own == 3


def test_what_changes_within_a_moment_is_announced_together_and_has_not_settled_before() -> None:
    p = router("p", links=["m0", "m1"])
    effects = p.subscribe(parse_filter("x = 1"))
    assert SetTimer(("routing", "spacing"), SPACING_US) in effects
    for peer in ("m0", "m1"):
        p.handle(Received(peer, EpochHeard(1)), 0)
    assert not p.settling, "all that there is was announced at once"
    for bound in (2, 3):
        assert announced_by(p.subscribe(parse_filter(f"x = {bound}"))) == []
    assert p.settling
    (second,) = announced_by(spaced(p))
    assert dict(second.tables) == {"p": [0, 3]}
    assert not p.settling


def test_what_comes_from_a_broken_connection_is_ignored() -> None:
    p = router("p")
    assert p.handle(Received("m0", WholeTable("s", 0, 1, [], {}, False)), 0) == ()
    assert p._tables.at("s") == (-1, 0)


def test_on_a_new_link_each_end_gets_what_it_lacks() -> None:
    m0 = router("m0", links=["p", "s"])
    m0.handle(Received("s", WholeTable("s", 0, 2, [parse_filter("x = 1")], {}, False)), 0)
    m0.handle(Received("p", InEffect("p", 4, WHOLE, {}, [])), 0)
    effects = m0.handle(Received("p", TablesHeld({"s": [0, 1], "m0": [0, 0]}, {})), 0)
    assert [type(each.message) for each in effects if type(each) is Send] == [WholeTable], "p knows its own epoch"
    effects = m0.handle(Received("s", TablesHeld({"s": [0, 2]}, {"p": 3})), 0)
    sent = [each.message for each in effects if type(each) is Send]
    assert [type(each) for each in sent] == [WholeTable, InEffect]
    assert m0.handle(Received("s", TablesHeld({"s": [0, 2], "m0": [0, 0]}, {"p": 4})), 0) == []


def test_a_table_is_changed_only_from_the_version_before() -> None:
    m0 = router("m0", links=["p", "s"])
    wanted = parse_filter("x = 1")
    assert m0.handle(Received("s", TableChanged("s", 0, 1, [wanted], [], {})), 0) == ()
    m0.handle(Received("s", WholeTable("s", 0, 0, [], {}, False)), 0)
    effects = m0.handle(Received("s", TableChanged("s", 0, 1, [wanted], [], {"p": 2})), 0)
    assert [each.to for each in effects if type(each) is Send] == ["p"]
    assert m0._tables.tables["s"].heard == {"p": 2}
    assert list(m0._tables.wanted_behind({"x": 1}, None)) == ["s"]
    assert m0.handle(Received("s", TableChanged("s", 0, 1, [wanted], [], {})), 0) == ()
    m0.handle(Received("s", TableChanged("s", 0, 2, [], [wanted], {})), 0)
    assert list(m0._tables.wanted_behind({"x": 1}, None)) == []
    assert m0.handle(Received("s", TableChanged("m0", 0, 1, [wanted], [], {})), 0) == (), "its own it knows itself"
    m0.check_invariants()


def test_nothing_goes_to_where_a_broker_wanted_it_that_has_departed() -> None:
    plan = CellPlan({"p": ("p",), "s": ("s",)}, (("p", "s"),), ("p",), ("s2",))
    tree = CellTree(plan, "p")
    tree.membership.take({"s2": "s"}, [])
    tree.grow()
    tables, wanted = FilterTables(tree), parse_filter("x = 1")
    tables.replace("s2", Table(0), [wanted])
    assert [*tables.wanted_behind({"x": 1}, None)] == ["s2"]
    tree.membership.take({}, ["s2"])
    tree.grow()
    tables.grow()
    assert [*tables.wanted_behind({"x": 1}, None)] == []
    tables.check_invariants()


def test_cell_routing_takes_nothing_that_is_not_its_own() -> None:
    with pytest.raises(TypeError, match="cell routing takes no"):
        router("p").handle(Hop("p"), 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["_link_states", "_tables", "_epochs"])
def test_the_checks_of_a_router_are_those_of_all_its_parts(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = router("b1", PAPERS)
    made.check_invariants()

    def broken() -> None:
        raise AssertionError("this part")

    monkeypatch.setattr(type(getattr(made, part)), "check_invariants", lambda self: broken())
    with pytest.raises(AssertionError, match="this part"):
        made.check_invariants()
