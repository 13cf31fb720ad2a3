"""Parts of a multipath router, one by one: what whole networks would seldom show."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import LinkDown, LinkUp, NodeContext, Received, Send, SetTimer, Start
from murmuration.registry import promise
from reliability.best_effort import BEST_EFFORT
from routing.multipath.knowledge import Knowledge
from routing.multipath.load import Loads
from routing.multipath.messages import (
    BrokerAway,
    MoveConfirmed,
    MovePhase,
    MoveSettled,
    Neighbours,
    OriginSubscriptions,
    SoftLinkAccepted,
    SoftLinkRequest,
    SubscriptionChanged,
    TablesWanted,
    TableTaken,
)
from routing.multipath.move_states import MOVE_TRANSITIONS, MoveState, MoveStep
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.primary_network import PendingMove, PrimaryNetwork, Statement
from routing.multipath.router import MULTIPATH, MultipathRouter
from routing.multipath.soft_links import SoftLinks
from routing.multipath.strategies import compute_forwarding_s1
from routing.multipath.subscription_spread import SubscriptionSpread
from routing.multipath.watch import PATIENCE, Watch
from routing.protocol import NoParameters, OverlayTraits, RunsOn
from tests.protocols.multipath.network import MS, STAR, Network, parameters

WANTED = parse_filter("x = 1")


@pytest.mark.parametrize(
    ("strategy", "capacity", "metered"),
    [
        ("SH", {"uplink_messages_per_s": 10}, True),
        ("SH", {"uplink_bytes_per_s": 10}, True),
        ("SH", {}, False),
        ("S2", {"uplink_messages_per_s": 10}, False),
    ],
)
def test_publiy_s5_sh_meters_an_uplink_that_has_a_capacity(
    strategy: str, capacity: dict[str, int], metered: bool
) -> None:
    router = MultipathRouter(NodeContext("b0", 1), parameters(strategy=strategy, **capacity))
    timers = [effect.key[1] for effect in router.handle(Start(), 0) if isinstance(effect, SetTimer)]
    assert ("meter" in timers) == metered


@pytest.mark.parametrize("rounds", [1, 2])
def test_publiy_s6_a_discarded_link_is_left_alone_for_as_many_rounds_as_said(rounds: int) -> None:
    chosen = parameters(cool_down_rounds=rounds)
    links, loads = SoftLinks(chosen), Loads()
    mom = MasterOverlayMap("b0", 4, {"b0": ("b1",), "b1": ("b0", "b2"), "b2": ("b1",)})

    def a_round() -> None:
        links.sent = {"b1": 5}
        links.end_round(mom, {"b1": None}, loads, {}, lambda _: True)

    a_round()
    assert list(links.candidates) == ["b2"]
    links.drop("b2")
    for _ in range(rounds - 1):
        a_round()
        assert not links.candidates
    a_round()
    assert list(links.candidates) == ["b2"]


def test_publiy_s6_a_candidate_that_has_to_bridge_is_a_soft_link_and_a_candidate_no_more() -> None:
    links = SoftLinks(parameters())
    links.candidates = {"b2": None, "b3": None}
    links.opening = {"b2": None}
    assert [links.bridge("b2"), links.bridge("b2")] == [True, False]
    assert (list(links.soft), list(links.opening), list(links.candidates)) == (["b2"], [], ["b3"])
    links.check_invariants(1, 1)


def test_what_is_said_of_a_broker_that_has_left_or_of_the_broker_itself_is_no_news(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters())
    router = network.routers["b0"]
    router.spread.depart("b3", 0, "b1")
    for origin in ("b3", "b0"):
        assert router.spread.on_change("b1", SubscriptionChanged(origin, 0, 1, ("b1", origin), True, WANTED)) == []
    assert len(router.knowledge.mst) == 0


def test_the_first_change_of_a_broker_not_heard_of_before_is_taken_and_passed_on(tmp_path: Path) -> None:
    router = Network(STAR, tmp_path, parameters()).routers["b0"]
    told = router.spread.on_change("b1", SubscriptionChanged("b9", 0, 1, ("b1", "b9"), True, WANTED))
    assert [each.to for each in told if isinstance(each, Send)] == ["b2"]
    assert len(router.knowledge.mst) == 1


def test_who_joins_here_and_was_known_elsewhere_is_told_of_as_of_one_that_has_moved(tmp_path: Path) -> None:
    router = Network(STAR, tmp_path, parameters()).routers["b0"]
    router.handle(LinkUp("b3", True), 0)
    told = [each.message for each in router.handle(Received("b2", TablesWanted()), 1) if isinstance(each, Send)]
    found = {each.origin: (each.ppath, each.moved) for each in told if isinstance(each, OriginSubscriptions)}
    assert (found["b3"], found["b1"]) == ((("b0", "b3"), 1), (("b0", "b1"), 0))


def test_over_two_bridges_each_is_told_the_way_over_the_broker_that_it_bridges(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters())
    router = network.routers["b0"]
    for peer in ("b1", "b2"):
        router.handle(LinkDown(peer, "gone"), network.runtime.now_us)
    sent = {effect.to: effect.message for effect in router.subscribe(WANTED) if isinstance(effect, Send)}
    told = {to: message.ppath for to, message in sent.items() if isinstance(message, SubscriptionChanged)}
    assert told == {"b3": ("b1", "b0"), "b4": ("b2", "b0")}


def test_publiy_s6_a_bridge_settles_until_both_ends_have_told_all(tmp_path: Path) -> None:
    """And once both have, a request to be told again unsettles neither."""
    network = Network(STAR, tmp_path, parameters())
    network.run_ms(30)
    network.runtime.crash("b1")
    ends = [network.routers[name] for name in ("b0", "b3")]
    settling = []
    for _ in range(60):
        network.run_ms(1)
        settling.append(any(end.settling for end in ends))
    first = settling.index(True)
    assert first < settling.index(False, first) < 59
    ends[0].handle(Received("b3", TablesWanted()), network.runtime.now_us)
    assert not ends[0].settling


def test_a_broker_passes_on_a_word_that_it_has_worked_out_from_a_move_and_hears_then(tmp_path: Path) -> None:
    """Others may have been told nothing of the move, and two may list a broker's neighbours in other orders."""
    network = Network(STAR, tmp_path, parameters())
    router = network.routers["b1"]
    assert router.knowledge.network.learn("b3", Statement(0, 9, ("b1", "b9")))
    heard = Received("b3", Neighbours("b3", 0, 9, 1, ("b9", "b1")))
    sent = [effect.to for effect in router.handle(heard, 0) if isinstance(effect, Send)]
    assert sent == ["b0"]
    assert router.handle(heard, 0) == []


def test_who_has_moved_tells_its_new_neighbour_no_way_that_the_move_has_left_behind(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters())
    for name in ("b1", "b3"):
        network.subscribe(name, "x = 1")
    network.run_ms(30)
    router = network.routers["b3"]
    router.knowledge.network.set_peers(["b0"])

    def told(move: int) -> list[str]:
        effects = router.spread.tell_all("b0", 1, move)
        return [effect.message.origin for effect in effects if isinstance(effect, Send)]  # type: ignore[attr-defined]

    assert set(told(0)) == {"b1", "b3"}, "to b2 and b4 the way leads over b0 itself"
    assert told(7) == ["b3"]


def test_who_waits_to_hear_whether_it_has_moved_tells_the_destination_no_way_that_leads_over_it(tmp_path: Path) -> None:
    """Schedule of two deaths 12: the destination tells its tables before it says that the move is made, and asks for
    the mover's. In the map it is still far off."""
    network = Network(STAR, tmp_path, parameters(delta=4))
    mover = network.routers["b3"]
    mover.knowledge.network.pending = PendingMove(7, "b1", "b2")
    mover.spread.on_table("b2", OriginSubscriptions("b4", 0, 1, ("b2", "b4"), 7, (WANTED,)))
    assert mover.knowledge.mst.ppaths["b4"] == ("b2", "b4")
    told = [each.message for each in mover.membership.on_tables_wanted("b2", TablesWanted()) if isinstance(each, Send)]
    assert [each.origin for each in told if isinstance(each, OriginSubscriptions)] == ["b3"]


def test_who_hears_that_it_has_moved_has_left_its_old_neighbour(tmp_path: Path) -> None:
    """It was restarted before it heard that. The link to the old neighbour is there, and is in the tree no more."""
    network = Network(STAR, tmp_path, parameters(delta=4))
    mover = network.routers["b3"]
    known = mover.knowledge.network
    (before,) = known.peers
    known.pending = PendingMove(7, before, "b2")
    mover.membership.on_move_settled("b2", MoveSettled(7, True))
    assert (list(known.peers), list(known.left)) == (["b2"], [before])


def test_a_way_that_is_none_in_the_map_is_given_up_for_one_that_is(tmp_path: Path) -> None:
    """Schedule of two deaths 53: who told of it had died since, and with it the number of the move. Until it is told
    the broker asks its neighbours, and settles."""
    network = Network(STAR, tmp_path, parameters())
    router = network.routers["b0"]
    mst = router.knowledge.mst
    mst.ppaths["b4"], mst.moved["b4"] = ("b1", "b4"), 9
    router.knowledge.network.outdate("b2")
    router.knowledge.new_peers(["b1", "b2"])
    assert router.membership.must_watch
    router.membership.watch()
    router.membership.watching = True
    assert router.settling
    wanted = [
        each.to for each in router.membership.watch() if isinstance(each, Send) and each.message == TablesWanted()
    ]
    assert wanted == ["b1", "b2"]
    table = OriginSubscriptions("b4", 0, 0, ("b2", "b4"), 0, ())
    router.spread.on_table("b1", table._replace(ppath=("b1", "b3", "b4")))
    assert mst.ppaths["b4"] == ("b1", "b4"), "that is none either"
    router.spread.on_table("b2", table)
    assert (mst.ppaths["b4"], mst.moved["b4"], router.settling) == (("b2", "b4"), 9, False)


@pytest.mark.parametrize("life", [0, 1], ids=["never", "in a life that is over"])
def test_a_broker_in_the_map_that_has_not_been_heard_of_is_asked_for_unless_it_is_away(
    life: int, tmp_path: Path
) -> None:
    """Schedules of two deaths 27 and 69: its tables were lost. Of one that is away nobody may know."""
    router = Network(STAR, tmp_path, parameters()).routers["b0"]
    knowledge = router.knowledge
    if life:
        stated = Statement(life, 1, ("b1",))
        assert knowledge.network.learn("b3", stated)
    else:
        knowledge.mst.forget("b3")
    knowledge.map_changed()
    router.membership.watching = True
    settling = [(router.settling, router.membership.watch())[0] for _ in range(PATIENCE + 2)]
    assert settling == [True] * (PATIENCE + 1) + [False], "nobody seems to know"
    assert router.spread.is_astray
    knowledge.network.heard_away(BrokerAway("b3", "b1", 0, 99, 1, True, life))
    assert not router.spread.is_astray


def test_who_has_forgotten_an_origin_takes_no_way_to_it_over_itself(tmp_path: Path) -> None:
    """Schedule of two deaths 39: the others sent in a circle."""
    router = Network(STAR, tmp_path, parameters()).routers["b0"]
    spread, mst = router.spread, router.knowledge.mst
    spread.on_table("b1", OriginSubscriptions("b9", 0, 1, ("b1", "b0"), 5, (WANTED,)))
    spread.on_change("b1", SubscriptionChanged("b9", 0, 1, ("b1", "b0"), True, WANTED))
    assert "b9" not in mst.ppaths
    spread.on_table("b2", OriginSubscriptions("b9", 0, 1, ("b2", "b9"), 0, (WANTED,)))
    assert mst.ppaths["b9"] == ("b2", "b9")


def test_who_has_taken_no_table_of_an_origin_answers_that_it_has_none(tmp_path: Path) -> None:
    """Else who has told it would take the table for told, and not tell it again."""
    spread = Network(STAR, tmp_path, parameters()).routers["b0"].spread
    told = spread.on_table("b3", OriginSubscriptions("b9", 0, 1, ("b3", "b0"), 0, (WANTED,)))
    assert told == [Send("b3", TableTaken("b9", 0, 0))]


def test_a_neighbour_by_a_move_that_another_says_is_away_is_asked_at_once(tmp_path: Path) -> None:
    """Schedule 1604905: the other's partition was over, and nothing went to the neighbour before the next `watch`."""
    network = Network(STAR, tmp_path, parameters(coordinator="b0", watch_us=60_000 * MS))
    assert network.answer_to(network.order("b3", "move", "b1", "b0")) == ""
    router = network.routers["b0"]
    for number, away in enumerate((True, True, False), 9):
        word = BrokerAway("b3", "b4", 0, number, 1, away, 0)
        sent = [each for each in router.handle(Received("b2", word), 1) if isinstance(each, Send) and each.to == "b3"]
        assert isinstance(sent[-1].message, SoftLinkRequest)
        assert "b3" in router.knowledge.network.down
    router.handle(Received("b3", SoftLinkAccepted(0)), 2)
    assert "b3" not in router.knowledge.network.down


def test_a_neighbour_is_told_all_tables_though_what_it_said_last_is_from_before_it_was_one(tmp_path: Path) -> None:
    """Schedule of two deaths 3: it was restarted in the middle of the move."""
    router = Network(STAR, tmp_path, parameters()).routers["b3"]
    router.knowledge.network.set_peers(["b1", "b2"])
    assert "b2" not in {router.knowledge.network.mom.first_hop(each) for each in ("b0", "b2")}
    told = [each.message for each in router.membership.on_tables_wanted("b2", TablesWanted()) if isinstance(each, Send)]
    assert {each.origin for each in told if isinstance(each, OriginSubscriptions)} >= {"b3", "b1"}


@pytest.mark.parametrize(
    ("source", "ppath", "moved", "taken"),
    [
        ("b2", ("b2", "b9"), 1, False),
        ("b2", ("b2", "b9"), 2, False),
        ("b2", ("b2", "b9"), 3, True),
        ("b1", ("b1", "b5", "b9"), 1, False),
        ("b1", ("b1", "b5", "b9"), 2, True),
        ("b1", ("b1", "b0", "b9"), 3, False),
        ("b7", ("b7", "b9"), 3, False),
    ],
    ids=[
        "an earlier move", "the same move, by another neighbour", "a later move", "an earlier move, the same neighbour",
        "the same move and neighbour", "a way through the broker itself", "from no neighbour",
    ],
)  # fmt: skip
def test_publiy_s6_of_two_ways_to_an_origin_that_of_the_later_move_holds(
    source: str, ppath: tuple[str, ...], moved: int, taken: bool
) -> None:
    knowledge = Knowledge("b0", 0, parameters(delta=4))
    knowledge.new_peers(["b1", "b2"])
    spread = SubscriptionSpread(knowledge)
    spread.on_table("b1", OriginSubscriptions("b9", 0, 1, ("b1", "b9"), 2, (WANTED,)))
    again = spread.on_table(source, OriginSubscriptions("b9", 0, 1, ppath, moved, (WANTED,)))
    assert knowledge.mst.ppaths["b9"] == (ppath if taken else ("b1", "b9"))
    answer = Send(source, TableTaken("b9", 0, 1))
    assert again[-1] == answer, "no link leads to it"
    told = [(each.to, each.message) for each in again[:-1] if isinstance(each, Send)]
    other = "b2" if source == "b1" else "b1"
    grown = ("b0", *ppath)
    assert told == ([(other, OriginSubscriptions("b9", 0, 1, grown, moved, (WANTED,)))] if taken else [])


@pytest.mark.parametrize("covering", [False, True])
def test_publiy_s4_publications_follow_a_table_that_is_told_anew(covering: bool) -> None:
    """Each of the working maps and tables is made once, and then anew if the filters or the way are others."""
    knowledge = Knowledge("b0", 0, parameters(delta=4, covering=covering))
    knowledge.new_peers(["b1", "b2"])
    spread = SubscriptionSpread(knowledge)

    def sent_to(x: int) -> tuple[str, ...]:
        working = knowledge.working()
        return working.wom.names(working.forward(Event(1, 1, 0, {"x": x}), None, compute_forwarding_s1))

    for number, source, moved, x in ((1, "b1", 0, 1), (2, "b1", 0, 2), (2, "b2", 1, 2)):
        table = OriginSubscriptions("b9", 0, number, (source, "b9"), moved, (parse_filter(f"x = {x}"),))
        spread.on_table(source, table)
        assert [sent_to(each) for each in (1, 2)] == [(source,) if each == x else () for each in (1, 2)]


@pytest.mark.parametrize("epoch", [1, 0], ids=["of this life", "of an earlier life"])
def test_publiy_s6_who_hears_of_moves_that_it_missed_takes_its_neighbours_from_there(epoch: int) -> None:
    """A new neighbour is down until it is seen; one that moved away while this broker was away is left."""
    network = PrimaryNetwork("b0", 2, 1)
    network.set_peers(["b1", "b2"])
    version = network.own.version
    if not epoch:
        network.stored = Statement(0, 7, ("b1", "b2"))
        version = 7
    assert not network.correct_own(Statement(epoch, version, ("b2", "b3")))
    assert network.correct_own(Statement(epoch, version + 1, ("b2", "b3")))
    assert (list(network.peers), list(network.down), list(network.left)) == (["b2", "b3"], ["b3"], ["b1"])
    assert network.own.peers == ("b2", "b3")


def test_publiy_s6_what_is_stored_of_a_move_that_may_be_made_is_a_later_word_than_the_last() -> None:
    """Others may have that word by the time the broker is back."""
    network = PrimaryNetwork("b0", 2, 0)
    network.set_peers(["b1"])
    back = PrimaryNetwork("b0", 2, 1)
    assert back.restore([network.record_made("b9", 5).record])
    assert back.stored.age == (0, network.own.version + 1)
    assert (back.stored.peers, back.changed) == (("b1", "b9"), {"b9": 5})


def test_publiy_s6_a_late_phase_of_an_earlier_move_is_confirmed_and_not_taken() -> None:
    """After moves of its own, and after moves of others."""
    late = MovePhase(1, 1, "b4", ("b2", "b1"), (), (), ())
    router = MultipathRouter(NodeContext("b0", 1), parameters())
    router.moves.begin(2, ("b2", "b1"))
    router.moves.end(MoveStep.UNDONE)
    assert router.moves.on_phase("b2", late) == [Send("b2", MoveConfirmed(1, 1))]
    assert router.moves.zone is None
    router.moves.on_phase("b2", late._replace(move=3))
    router.moves.leave_former(4)
    assert router.moves.on_phase("b2", late._replace(move=3)) == [Send("b2", MoveConfirmed(3, 1))]
    assert router.moves.zone is None


def test_publiy_s6_a_broker_whose_own_move_begins_has_left_the_former_one_behind() -> None:
    """The coordinator has granted it, so the former one is over."""
    former = MovePhase(1, 1, "b4", ("b2", "b1"), (), (), ())
    router = MultipathRouter(NodeContext("b0", 1), parameters())
    router.moves.on_phase("b2", former)
    own = router.moves.begin(2, ("b2", "b1"))
    assert router.moves.on_phase("b2", former) == [Send("b2", MoveConfirmed(1, 1))]
    assert router.moves.zone is own


def test_a_broker_that_does_not_answer_is_gone_until_it_does() -> None:
    watch = Watch()
    asked = [watch.ask(["b1", "b2"]) for _ in range(PATIENCE)]
    watch.answered("b2")
    assert asked == [[]] * PATIENCE
    assert watch.ask(["b1", "b2"]) == ["b1"]
    assert watch.ask(["b1", "b2"]) == ["b1"]
    assert watch.unanswered == {"b1": PATIENCE + 2, "b2": 2}
    watch.answered("b3")  # nobody has asked it
    assert watch.ask(["b2"]) == []
    assert list(watch.unanswered) == ["b2"]


def test_a_mover_says_nothing_of_the_new_tree_before_the_destination_has_stored_it(tmp_path: Path) -> None:
    """Schedule of two deaths 118: both died before they had, others had heard, and each end took the link from them,
    beside the one that the move was to replace."""
    network = Network(STAR, tmp_path, parameters(coordinator="b0"))
    number = network.order("b3", "move", "b1", "b0")
    said = set()
    while number not in network.answers:
        network.run_ms(1)
        of = network.routers["b3"].knowledge.network
        said.add((tuple(of.peers), of.pending is None, *(of.said_by(each, 1).peers for each in ("b3", "b1", "b0"))))
    before, after = (("b1",), ("b0", "b3"), ("b1", "b2")), (("b0",), ("b0",), ("b1", "b2", "b3"))
    assert said == {
        (("b1",), True, *before), (("b1",), False, *before), (("b0",), False, *before), (("b0",), True, *after),
    }  # fmt: skip


def test_who_joins_a_mover_before_that_is_known_to_all_then(tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters(coordinator="b0"), more=1)
    network.add("new0")
    number = network.order("b3", "move", "b1", "b0")
    while not network.routers["b3"].knowledge.network.unsaid:
        network.run_ms(1)
    network.connect("b3", "new0")
    assert network.answer_to(number) == ""
    assert all(
        set(each.knowledge.network.statements["b3"].peers) == {"b0", "new0"} for each in network.routers.values()
    )


def test_without_soft_links_no_broker_may_be_away() -> None:
    for strategy, away in (("S0", 0), ("S1", 2), ("S2", 2), ("SH", 2)):
        traits = OverlayTraits("an overlay", frozenset(RunsOn), has_datagrams=True)
        promised = promise(MULTIPATH, BEST_EFFORT, parameters(strategy=strategy, delta=3), NoParameters(), traits)
        assert promised.survives.brokers_away == away


def test_a_move_is_over_before_its_broker_prepares_for_another() -> None:
    """Who has granted a move that has not begun asks the mover first; it may begin any time."""
    others = {state for state, step in MOVE_TRANSITIONS if step is MoveStep.OTHER_MOVE}
    assert others == set(MoveState) - {MoveState.OUTSIDE, MoveState.PREPARATION}


@pytest.mark.parametrize("over", [0, 1], ids=["messages", "bytes"])
def test_publiy_s5_sh_forwards_as_s1_does_while_any_meter_is_above_its_threshold(
    over: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = parameters(strategy="SH", uplink_messages_per_s=1_000_000, uplink_bytes_per_s=1_000_000)
    network = Network(STAR, tmp_path, chosen)
    network.subscribe("b4", "x = 1")
    network.run_ms(20)
    router = network.routers["b0"]
    used: list[object] = []

    def forward(event: Event, came_from: str | None, compute: object) -> int:
        used.append(compute)
        return 0

    monkeypatch.setattr(router.knowledge, "working", lambda: SimpleNamespace(forward=forward, dropped=()))
    router.next_hops(network.event("b0", x=1), None, ())
    router._meters[over].add(2_000_000)
    router._meters[over].turn()
    router.next_hops(network.event("b0", x=1), None, ())
    assert used[0] is not compute_forwarding_s1
    assert used[1] is compute_forwarding_s1


def test_publiy_s6_of_two_candidates_the_one_behind_a_slow_link_is_taken_if_it_gains_as_much() -> None:
    loads = Loads()
    loads.round_trips_us = {"b1": 1_000, "b3": 9_000}
    links = SoftLinks(parameters(fanout=2, maxlinks=3))
    edges = {"b0": ("b1", "b3"), "b1": ("b0", "b2"), "b2": ("b1",), "b3": ("b0", "b4"), "b4": ("b3",)}
    links.sent = {"b1": 12, "b3": 10}  # 12 gained over one of the mean, 10 over one of 1.8 times the mean
    links.end_round(MasterOverlayMap("b0", 4, edges), {"b1": None, "b3": None}, loads, {}, lambda _: True)
    assert list(links.candidates) == ["b4"]


@pytest.mark.parametrize("end", ["b1", "b2"], ids=["old home", "new home"])
def test_publiy_s6_either_end_of_a_link_that_a_move_changed_knows_it_after_a_restart(end: str, tmp_path: Path) -> None:
    network = Network(STAR, tmp_path, parameters(delta=4))
    network.order("b0", "coordinator")
    network.run_ms(50)
    number = network.order("b3", "move", "b1", "b2")
    for _ in range(1_000):
        network.run_ms(1)
        if ("b3" in peers_of(network, end)) is (end == "b2"):
            break
    else:
        pytest.fail(f"there was no move: {network.answers.get(number)}")
    network.run_ms(2)  # its log is written
    peers = peers_of(network, end)
    network.runtime.crash(end)
    network.restart(end)
    assert peers_of(network, end) == peers


def peers_of(network: Network, name: str) -> list[str]:
    return [*network.routers[name].knowledge.network.peers]
