"""What one node of the gossip overlay does with each message and timer, held in the hand; what it says of itself."""

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter import EVERYTHING
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import LinkDown, NodeContext, Received, SetTimer, Start
from murmur_pubsub.places import RingPlace
from routing.founding import Outside
from routing.router import Hop
from routing.smallworld.messages import (
    Beat,
    BeatAnswer,
    Exchange,
    GossipJoinRequest,
    GossipWelcome,
    Install,
    Shuffle,
)
from routing.smallworld.recovery import gossip_recovers
from routing.smallworld.rendezvous import BACK, DOWN, UP
from routing.smallworld.ring import RING_SIZE
from routing.vinifera.parameters import ViniferaParameters
from routing.vinifera.router import Vinifera
from tests.protocols.one_node import sent
from tests.protocols.vinifera.one_node import (
    ASK_AGAIN,
    CYCLE_US,
    DEADLINE,
    FLUSH,
    RETRY,
    ROUND,
    TENTH,
    TIMEOUT_US,
    acquainted,
    answer,
    beat,
    fields,
    node,
    requests,
)


# ------------------------------------------------------------------------------------------------- joining
@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("joining", [0, 1])
def test_who_asks_one_outside_is_told_so_where_either_has_been_inside_before(own: int, joining: int) -> None:
    """A node that starts for the first time passes on which node may found the overlay anew; two such only wait."""
    router = node("a", incarnation=own)
    effects = router.handle(Received("b", GossipJoinRequest(fields("b", 9, joining))), 1)
    assert [to for to, _ in sent(effects, Outside)] == (["b"] if own or joining else [])
    effects = router.handle(Received("a", GossipWelcome([fields("a", TENTH)])), 2)
    assert [to for to, _ in sent(effects, GossipWelcome)] == ["b"], "as it joins it lets in those that waited"
    assert not router.handle(Received("a", GossipJoinRequest(fields("n", 0))), 3), "its own request has come round"


def test_a_node_that_is_not_let_in_asks_the_next_of_its_peers() -> None:
    router = node("a", "b")
    for asked in ("b", "a", "b"):
        effects = router.handle(RETRY, 1)
        assert [to for to, _ in sent(effects, GossipJoinRequest)] == [asked]
        assert [each for each in effects if isinstance(each, SetTimer)] == [SetTimer(RETRY.key, TIMEOUT_US)]
        assert sent(router.handle(ROUND, 2), object) == []
    router.handle(Received("a", GossipWelcome([fields("a", TENTH)])), 3)
    assert not sent(router.handle(RETRY, 4), GossipJoinRequest)


@pytest.mark.parametrize(("joining", "passed_to"), [(4, "next"), (5, "second"), (6, "second"), (7, None)])
def test_who_joins_is_let_in_by_the_node_after_its_identifier(joining: int, passed_to: str | None) -> None:
    """Though it be the very next identifier; what has the same is not after it."""
    router = acquainted(next=5, second=7)
    effects = router.handle(Received("other", GossipJoinRequest(fields("new", joining))), 2)
    assert [to for to, _ in sent(effects, GossipJoinRequest)] == ([passed_to] if passed_to else [])
    assert [to for to, _ in sent(effects, GossipWelcome)] == ([] if passed_to else ["new"])
    for source in ("next", "second"):
        effects = router.handle(Received(source, GossipJoinRequest(fields(source, joining))), 3)
        if source == passed_to:
            assert [to for to, _ in sent(effects, GossipWelcome)] == [source], "it is not sent back"


def test_a_node_looks_for_its_successor_in_its_first_two_rounds_and_then_in_each_eighth() -> None:
    """It may be the one with the very next identifier."""
    router = acquainted(next=1, later=2, far=5 * TENTH)
    assert requests(router, 16) == [(1, "next"), (2, "next"), (8, "next"), (16, "next")]


def test_a_node_with_bootstrap_peers_looks_through_them_in_each_eighth_round() -> None:
    router = node("a", "b")
    router.handle(Received("a", GossipWelcome([fields("a", TENTH), fields("c", 5 * TENTH)])), 1)
    for name, at in (("a", TENTH), ("c", 5 * TENTH)):
        router.handle(Received(name, answer(at)), 2)
    looked = requests(router, 16)
    assert looked[:2] == [(1, "a"), (2, "a")]
    assert [(number, to) for number, to in looked[2:] if to in ("a", "b")] in (
        [(8, "a"), (16, "b")],
        [(8, "b"), (16, "a")],
    )


def test_a_node_whose_successor_has_failed_looks_for_the_next_at_once_and_in_two_rounds() -> None:
    router = acquainted(after=TENTH, middle=5 * TENTH, before=9 * TENTH)
    requests(router, 2)
    assert not sent(router.handle(LinkDown("before", "reset"), 9 * CYCLE_US), GossipJoinRequest)
    effects = router.handle(LinkDown("after", "reset"), 9 * CYCLE_US)
    assert [to for to, _ in sent(effects, GossipJoinRequest)] == ["middle"]
    assert requests(router, 3) == [(1, "middle"), (2, "middle")]


# ----------------------------------------------------------------------------------------------- identifiers
def test_who_moves_says_its_new_place_and_load_at_once() -> None:
    router = acquainted(a=TENTH, b=5 * TENTH)
    said = sent(router.overlay.move(3 * TENTH, 7), Beat)
    assert [to for to, _ in said] == ["a", "b"]
    assert {(word.identifier, word.load) for _, word in said} == {(3 * TENTH, 7)}
    effects = router.handle(Received("a", beat(TENTH, 2)), 2)
    ((_, word),) = sent(effects, BeatAnswer)
    assert (word.identifier, word.load) == (3 * TENTH, 7)
    assert word.number > said[0][1].number, "what is said later has a greater number"


@pytest.mark.parametrize(("source", "gives_way"), [("a", True), ("z", False)])
def test_of_two_with_one_identifier_the_later_by_name_draws_another_and_has_none_of_its_load(
    source: str, gives_way: bool
) -> None:
    router = acquainted(b=5 * TENTH)
    router.load.add(3)
    rounds = requests(router, 3)
    assert [number for number, _ in rounds] == [1, 2]
    router.handle(FLUSH, 6 * CYCLE_US)
    effects = router.handle(Received(source, beat(0)), 7 * CYCLE_US)
    assert (router.overlay.me.identifier != 0) is gives_way
    assert router.load.events == (0 if gives_way else 1)
    assert router.settling is gives_way
    if gives_way:
        assert {word.load for _, word in sent(effects, Beat)} == {0}
        assert requests(router, 3)[0][0] == 1, "it looks for its new successor"


def test_who_hears_that_a_peer_has_moved_next_to_it_exchanges_tables_with_it() -> None:
    """The peer's own request to be let in there has overtaken the heartbeat that says where it is now."""
    router = acquainted({"degree": 2, "friend_links": 0}, next=3 * TENTH, before=7 * TENTH, mover=5 * TENTH)
    neighbours = router.overlay.neighbours
    router.handle(Received("mover", GossipJoinRequest(fields("mover", 9 * TENTH))), 2)
    assert "mover" not in neighbours, "as far as is known it stands elsewhere"
    effects = router.handle(Received("mover", beat(9 * TENTH, 2)), 3)
    assert [(to, exchange.answer) for to, exchange in sent(effects, Exchange)] == [("mover", False)]
    router.handle(Received("mover", Exchange(fields("mover", 9 * TENTH), [], True)), 4)
    assert list(neighbours) == ["mover", "next"]
    effects = router.handle(Received("mover", beat(8 * TENTH, 3)), 5)
    assert not sent(effects, Exchange), "it is a neighbour"
    effects = router.handle(Received("before", beat(6 * TENTH, 2)), 6)
    assert not sent(effects, Exchange), "it is not next to this node"


def test_who_comes_between_two_nodes_hears_from_the_one_of_the_other() -> None:
    """The other is no neighbour any more, and might hear of the one between them after many rounds only."""
    router = acquainted({"degree": 2, "friend_links": 0}, next=3 * TENTH, before=7 * TENTH)
    effects = router.handle(Received("mover", Exchange(fields("mover", 9 * TENTH), [], True)), 2)
    assert "before" not in router.overlay.neighbours
    ((to, exchange),) = sent(effects, Exchange)
    assert (to, [name for name, *_ in exchange.table]) == ("mover", ["mover", "next", "before"])


@pytest.mark.parametrize(
    ("source", "at", "reach", "asked"),
    [
        ("before", 7, [0, 3, 9], True),
        ("before", 7, [0, 3, 6], False),
        ("next", 3, [0, 1, 7], True),
        ("next", 3, [0, 5, 7], False),
        ("far", 5, [0, 1, 9], False),
    ],
)
def test_who_hears_that_a_neighbour_on_the_ring_has_one_between_the_two_exchanges_tables_with_it(
    source: str, at: int, reach: list[int], asked: bool
) -> None:
    router = acquainted({"degree": 3, "friend_links": 1}, next=3 * TENTH, before=7 * TENTH, far=5 * TENTH)
    said = beat(at * TENTH, 2)._replace(reach=[tenth * TENTH for tenth in reach])
    effects = router.handle(Received(source, said), 2)
    assert [(to, exchange.answer) for to, exchange in sent(effects, Exchange)] == [(source, False)] * asked


def test_the_closest_peer_that_has_a_link_here_is_on_the_ring_at_once_however_many_others_have() -> None:
    """It may have been given up for one that others said was closer."""
    router = acquainted({"degree": 2, "friend_links": 0}, next=3 * TENTH, before=6 * TENTH)
    for name, at in (("first", 4 * TENTH), ("second", 5 * TENTH), ("far", 5 * TENTH + 1), ("near", 9 * TENTH)):
        router.handle(Received(name, beat(at)), 2)
    ring = router.overlay.ring
    assert [ring.next_hop(tenth * TENTH) for tenth in (4, 5, 6, 9)] == ["first", "second", "before", "near"]
    assert ring.next_hop(5 * TENTH + 1) == "before", "there are two that have links here for longer"
    router.handle(LinkDown("near", "reset"), 3)
    assert router.overlay.ring.next_hop(9 * TENTH) is None


def test_who_hears_that_the_node_before_it_has_moved_takes_the_load_that_is_left_to_it() -> None:
    """The two have divided their load: both have the average, and the one that moved says it."""
    router = acquainted(before=9 * TENTH, other=5 * TENTH)
    router.load.become(10)
    router.handle(Received("other", beat(4 * TENTH, 2, load=3)), 2)
    assert router.load.events == 10
    router.handle(Received("before", beat(9 * TENTH + 5, 2, load=6)), 3)
    assert router.load.events == 6


# -------------------------------------------------------------------------------------------- rounds, failures
def test_the_first_round_is_at_a_moment_of_the_nodes_own_within_a_cycle() -> None:
    drawn = set()
    for name in ("a", "b", "c", "d"):
        place = RingPlace(0, base=4, digits=8, founds=True, probe_us=2, probe_timeout_us=1)
        router = Vinifera(NodeContext(name, 1, place=place), ViniferaParameters())
        (timer,) = (
            each for each in router.handle(Start([]), 0) if isinstance(each, SetTimer) and each.key == ROUND.key
        )
        drawn.add(timer.delay_us)
    assert drawn == {1, 2}


@pytest.mark.parametrize(("rounds", "there"), [(3, True), (4, False)])
def test_a_contact_that_was_not_heard_for_three_rounds_is_gone(rounds: int, there: bool) -> None:
    """Neighbour or not; the deadline for its answer, which comes earlier, is left out here."""
    router = acquainted(neighbour=TENTH)
    router.handle(Received("other", beat(5 * TENTH)), 1)
    assert "other" not in router.overlay.neighbours
    for number in range(1, rounds + 1):
        router.handle(ROUND, number * CYCLE_US)
    assert ("neighbour" in router.overlay.neighbours) is there
    assert [name in router.overlay.contacts for name in ("neighbour", "other")] == [there, there]


def test_a_neighbour_that_leaves_a_heartbeat_unanswered_fails_with_the_deadline() -> None:
    router = acquainted(there=TENTH, silent=5 * TENTH)
    effects = router.handle(ROUND, 10)
    assert {to for to, _ in sent(effects, Beat)} == {"there", "silent"}
    assert SetTimer(DEADLINE.key, TIMEOUT_US) in effects
    router.handle(Received("there", answer(TENTH, 2)), 11)
    router.handle(DEADLINE, 12)
    assert list(router.overlay.neighbours) == ["there"]
    router.handle(DEADLINE, 13)
    assert list(router.overlay.neighbours) == ["there"]


def test_who_has_not_answered_a_heartbeat_is_asked_twice_more_before_the_deadline() -> None:
    router = acquainted(there=TENTH, silent=5 * TENTH)
    effects = router.handle(ROUND, 10)
    router.handle(Received("there", answer(TENTH, 2)), 11)
    again = SetTimer(ASK_AGAIN.key, TIMEOUT_US // 3)
    for is_asked_again in (True, False):
        assert again in effects
        effects = router.handle(ASK_AGAIN, 12)
        assert [to for to, _ in sent(effects, Beat)] == ["silent"]
        assert (again in effects) is is_asked_again
    router.handle(Received("silent", answer(5 * TENTH, 2)), 13)
    router.handle(DEADLINE, 14)
    assert set(router.overlay.neighbours) == {"there", "silent"}


def test_nobody_is_asked_again_once_all_have_answered() -> None:
    router = acquainted(there=TENTH)
    router.handle(ROUND, 10)
    router.handle(Received("there", answer(TENTH, 2)), 11)
    assert router.handle(ASK_AGAIN, 12) == []


def test_of_a_failed_peer_hearsay_is_not_believed_in_any_word_until_it_speaks_itself() -> None:
    router = acquainted(a=TENTH, gone=5 * TENTH)
    router.handle(LinkDown("gone", "reset"), 2)
    gone = fields("gone", 5 * TENTH)
    for word in (
        Shuffle([gone], False),
        Shuffle([gone], True),
        Exchange(fields("a", TENTH), [gone], True),
        GossipWelcome([gone]),
    ):
        router.handle(Received("a", word), 3)
        assert "gone" not in {peer.name for peer in router.overlay.candidates}
    router.handle(Received("gone", beat(5 * TENTH, 2)), 4)
    router.handle(Received("a", Exchange(fields("a", TENTH), [gone], True)), 5)
    assert "gone" in router.overlay.neighbours


def test_a_table_is_answered_with_the_own_one_and_an_answer_with_none() -> None:
    router = acquainted(a=TENTH)
    for is_answer in (True, False):
        effects = router.handle(Received("a", Exchange(fields("a", TENTH), [], is_answer)), 2)
        assert [(to, word.answer) for to, word in sent(effects, Exchange)] == ([] if is_answer else [("a", True)])
        effects = router.handle(Received("a", Shuffle([fields("a", TENTH)], is_answer)), 3)
        assert [(to, word.answer) for to, word in sent(effects, Shuffle)] == ([] if is_answer else [("a", True)])


# --------------------------------------------------------------------------------------------------- events
def test_an_event_goes_to_the_rendezvous_node_of_each_attribute_though_their_values_have_one_place() -> None:
    router = acquainted(a=RING_SIZE - 1)
    hops = router.next_hops(Event(1, 1, 0, {"x": 4, "y": 4}), None, ())
    assert [hop.header[1:] for hop in hops] == [(hops[0].header[1], UP)] * 2
    assert len({hop.header[0] for hop in hops}) == 2
    assert not router.next_hops(Event(1, 1, 0, {"x": 4, "y": 4}), "a", hops[0].header), "it goes round no more"


def test_an_event_is_remembered_for_two_to_four_rounds() -> None:
    """What a node remembers of events would grow for ever."""
    router = node(spread="none")
    remembered: list[int] = []
    for began in range(4):
        event = Event(1, began, 0, {"x": 4})
        assert not router.is_relay(event, ())
        rounds = 0
        while router.is_relay(event, ()):
            router.handle(ROUND, 1)
            rounds += 1
        remembered.append(rounds)
        if began % 2:
            router.handle(ROUND, 1)
    assert set(remembered) == {3, 4}
    assert remembered[0] == 4, "every second round, beginning with the second"
    event = Event(1, 9, 0, {"x": 4})
    assert not router.is_relay(event, ())
    for _ in range(9):
        router.handle(DEADLINE, 2)
    assert router.is_relay(event, ()), "a deadline is no round"


def test_an_event_goes_up_towards_the_place_of_its_value() -> None:
    router = acquainted(chosen={"spread": "none"}, low=TENTH, high=5 * TENTH)
    for number, (value, hop) in enumerate(((TENTH, "low"), (TENTH + 1, "high"), (5 * TENTH, "high"))):
        event = Event(1, number, 0, {"x": 4})
        assert router.next_hops(event, None, (1, value, UP)) == [Hop(hop, (1, value, UP))]


@pytest.mark.parametrize(("spread", "told"), [("none", ["wanting"]), ("tree", [])])
def test_an_event_that_goes_round_goes_down_from_where_it_comes_again(spread: str, told: list[str]) -> None:
    """The schedule vinifera_even/best_effort 3660016: two nodes had moved, and each passed it to the other. With the
    spread along the tree those who have asked here were told when it first came by."""
    router = acquainted({"spread": spread}, above=5 * TENTH, below=7 * TENTH)
    router.handle(Received("wanting", beat(6 * TENTH)), 2)
    router.handle(Received("wanting", Install(0, 1, 0, [1, 0, RING_SIZE - 1, 0], [EVERYTHING])), 3)
    event, header = Event(1, 1, 0, {"x": 4}), (1, 4 * TENTH, UP)
    assert Hop("above", header) in router.next_hops(event, None, header)
    assert router.next_hops(event, "below", header) == [Hop("above", (1, 4 * TENTH, BACK))], "whose it was before"
    assert [hop.peer for hop in router.next_hops(event, "below", header)] == told
    assert not router.next_hops(event, "below", header), "it goes round no more"


def test_an_event_goes_down_once_and_not_to_where_it_came_from() -> None:
    router = node(spread="none")
    for name in ("v", "w"):
        router.handle(Received(name, Install(0, 1, 0, [1, 0, RING_SIZE - 1, 0], [EVERYTHING])), 1)
    event = Event(1, 1, 0, {"x": 4})
    assert [hop.peer for hop in router.next_hops(event, "v", (1, 9, DOWN))] == ["w"]
    assert not router.next_hops(event, "u", (1, 9, DOWN))
    assert [hop.peer for hop in router.next_hops(Event(1, 2, 0, {"x": 4}), "v", (1, 9, UP))] == ["v", "w"], "from below"


# ------------------------------------------------------------------------------------------------ installing
@pytest.mark.parametrize(
    ("cycle_us", "flush_us"), [(2_000_000, 2_000), (999, 1), (3_000, 3), (100_000_000, 100_000), (200_000_000, 100_000)]
)
def test_what_is_wanted_is_installed_a_thousandth_of_a_round_later(cycle_us: int, flush_us: int) -> None:
    """So that many changes at once make one message; but no later than in a tenth of a second."""
    place = RingPlace(0, base=4, digits=8, founds=True, probe_us=cycle_us, probe_timeout_us=cycle_us // 2)
    router = Vinifera(NodeContext("n", 1, place=place), ViniferaParameters())
    assert SetTimer(FLUSH.key, flush_us) in router.handle(Start([]), 0)
    assert not router.subscribe(parse_filter("x > 1")), "the timer is set"
    router.handle(FLUSH, 1)
    assert router.subscribe(parse_filter("x > 2")) == [SetTimer(FLUSH.key, flush_us)]


# ------------------------------------------------------------------------------------ what a node says of itself
def states(router: Vinifera) -> dict[str, str]:
    return {part: state for part, _, state in router.fingerprint()}


def test_the_state_of_a_node_says_what_it_lacks_on_the_ring() -> None:
    router = node("a")
    assert states(router)["ring"] == "outside + alone + no successor + seeking"
    router.handle(Received("w", GossipJoinRequest(fields("w", 9))), 1)
    assert states(router)["ring"] == "outside + alone + no successor + seeking + others wait"
    router.handle(Received("a", GossipWelcome([fields("a", TENTH)])), 2)
    assert states(router)["ring"] == "no successor + seeking"
    router.handle(Received("a", answer(TENTH)), 3)
    assert states(router)["ring"] == "seeking"
    router.handle(ROUND, 4)
    assert states(router)["ring"] == "seeking + answers missing"
    router.handle(Received("a", answer(TENTH, 2)), 5)
    router.handle(Received("w", answer(9, 2)), 5)
    router.handle(ROUND, 6)
    router.handle(Received("a", answer(TENTH, 3)), 7)
    router.handle(Received("w", answer(9, 3)), 7)
    assert states(router)["ring"] == "nothing"
    router.overlay.move(3 * TENTH, 0)
    assert states(router)["ring"] == "moving"
    router.handle(DEADLINE, 8)
    assert states(router)["ring"] == "nothing"


def test_the_state_of_a_node_says_what_is_installed_at_it_and_to_be_installed() -> None:
    router = acquainted(a=TENTH)

    def installations() -> str:
        return states(router)["installations"]

    assert installations() == "due + unsettled"
    for _ in range(3):
        router.handle(FLUSH, 1)
        router.handle(ROUND, 2)
        router.handle(Received("a", answer(TENTH, 2 + router.overlay.round)), 3)
    assert installations() == "nothing"
    router.subscribe(parse_filter("x > 1"))
    assert installations() == "wants + due + unsettled"
    router.handle(FLUSH, 4)
    assert installations() == "wants + unsettled"
    router.handle(Received("a", Install(0, 1, 0, [1, 0, 9, 0], [EVERYTHING])), 5)
    assert installations() == "wants + held + due + unsettled"


@pytest.mark.parametrize("part", ["degree", "own name", "contacts", "view", "table", "uplinks"])
def test_a_contradiction_in_any_part_of_a_node_is_found(part: str) -> None:
    router = acquainted(a=TENTH)
    router.check_invariants()
    me, overlay = router.overlay.me, router.overlay
    if part == "degree":
        overlay.neighbours._table |= {f"p{at}": (me._replace(name=f"p{at}"), 0) for at in range(10)}
    elif part == "own name":
        overlay.neighbours._table["n"] = me, 0
    elif part == "contacts":
        overlay.contacts.hear("n", beat(0), 1)
    elif part == "view":
        overlay._sampling.view["n"] = me, 0
    elif part == "table":
        router.table._confirmed["ghost"] = 1
    else:
        overlay._uplinks.put("n", {})
    with pytest.raises(AssertionError):
        router.check_invariants()


def test_a_failure_over_the_gossip_overlay_may_cost_what_its_rounds_add_up_to() -> None:
    """Begun in 1 round, noticed in 3, not believed for 12, entries expire in 3; and a timeout."""
    place = RingPlace(5, probe_us=CYCLE_US, probe_timeout_us=TIMEOUT_US)
    assert gossip_recovers(place).repaired_us == 19 * CYCLE_US + TIMEOUT_US
