"""What one Pastry node does with each message and timer, held in the hand; and what it says of its own state."""

import pytest

from murmur_pubsub.machine import Input, LinkDown, Received, SetTimer
from murmur_pubsub.places import RingPlace
from routing.founding import Outside
from routing.pastry.changes import Answered, CellFilled, PeerFailed
from routing.pastry.identifiers import IdentifierRange, IdentifierSpace
from routing.pastry.known_peers import KnownPeers
from routing.pastry.messages import (
    Arrived,
    Hello,
    Introduced,
    JoinReply,
    JoinRequest,
    PastryPeer,
    Ping,
    Pong,
    Seek,
    Welcome,
)
from routing.pastry.node import Pastry
from routing.pastry.quarantine import QUARANTINE_ROUNDS
from routing.pastry.recovery import pastry_recovers
from routing.pastry.told_filters import ToldFilters
from tests.protocols.one_node import sent
from tests.protocols.pastry.one_node import (
    DEADLINE,
    JOIN,
    PROBE_US,
    ROUND,
    SETTLE,
    TIMEOUT_US,
    gathering,
    identifier,
    inside,
    node_at,
    peer,
)


# ------------------------------------------------------------------------------------------------- joining
@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("joining", [0, 1])
def test_who_asks_one_outside_is_told_so_where_either_has_been_inside_before(own: int, joining: int) -> None:
    """A node that starts for the first time passes on which node may found the overlay anew; two such only wait."""
    node = node_at("1111", "a", incarnation=own)
    effects = node.handle(Received("b", JoinRequest(peer("b", "2000", joining), ())), 1)
    assert [to for to, _ in sent(effects, Outside)] == (["b"] if own or joining else [])
    effects = node.handle(Received("c", JoinRequest(peer("c", "3000", joining), ())), 2)
    assert [to for to, _ in sent(effects, Outside)] == (["c"] if own or joining else [])


def test_those_that_asked_one_outside_are_let_in_as_it_joins() -> None:
    node = node_at("1111", "a")
    for name, text in (("b", "2000"), ("c", "3000")):
        node.handle(Received(name, JoinRequest(peer(name, text), ())), 1)
    node.handle(Received("a", JoinReply([peer("a", "1112")])), 2)
    effects = node.handle(Received("a", Welcome(peer("a", "1112"), True, False, [])), 3)
    assert node.joined
    passed_on = [(to, word.joining) for to, word in sent(effects, JoinRequest)]
    assert passed_on == [("a", peer("b", "2000")), ("a", peer("c", "3000"))], "to the one that is nearer to them"
    assert not node.handle(SETTLE, 4), "once"


def test_who_has_joined_no_more_waits_for_what_it_sought_before_it_started_over() -> None:
    """The one peer that had answered is gone. One sibling that answers the second time is enough."""
    node = gathering()
    node.handle(LinkDown("p", "reset"), 3)
    assert [to for to, _ in sent(node.handle(SETTLE, 4), JoinRequest)] == ["b"]
    node.handle(Received("b", JoinReply([peer("s", "1112")])), 5)
    node.handle(Received("s", Welcome(peer("s", "1112"), True, False, [])), 6)
    assert node.joined


def test_an_answer_that_is_late_for_one_search_is_none_to_the_next() -> None:
    node = gathering()
    node.handle(LinkDown("p", "reset"), 3)
    node.handle(SETTLE, 4)
    node.handle(Received("q", Welcome(peer("q", "2100"), True, True, [])), 5)
    assert not node.joined
    node.handle(Received("b", JoinReply([peer("q", "2100")])), 6)
    assert node.joined, "all that it asks have answered"


def test_a_node_joins_when_all_have_answered_and_all_that_it_sought_were_found() -> None:
    node = gathering()
    node.handle(Received("p", Welcome(peer("q", "2100"), True, True, [peer("r", "3000")])), 3)
    assert not node.joined, "it has been told of another"
    assert [each.name for each in node.peers] == ["p", "q"], "the random one stands for the range, both are leaves"
    assert node.table.get(IdentifierRange(2, 1)) == peer("q", "2100")
    node.handle(Received("r", Welcome(peer("r", "3000"), False, False, [])), 4)
    assert node.joined
    assert "r" not in node.peers, "it is on its way in itself"


def test_a_node_that_has_joined_takes_no_second_reply_and_waits_no_more() -> None:
    node = gathering()
    node.handle(SETTLE, 3)
    assert node.joined
    assert not node.handle(Received("b", JoinReply([peer("x", "3000")])), 4)
    assert not node.handle(SETTLE, 5)
    assert not node.handle(JOIN, 6)


# -------------------------------------------------------------------------------------------- who has arrived
def test_of_its_own_arrival_a_node_makes_nothing() -> None:
    node = inside("1111", peer("a", "2000"))
    assert not node.handle(Received("a", Arrived(node.me, (0, 0))), 1)
    assert not node.take_changes()


@pytest.mark.parametrize(
    ("incarnation", "after_us", "believed"),
    [
        (0, 1, False),
        (0, QUARANTINE_ROUNDS * PROBE_US - 1, False),
        (0, QUARANTINE_ROUNDS * PROBE_US, True),
        (1, 1, True),
    ],
)
@pytest.mark.parametrize("word", [Arrived, Introduced])
def test_hearsay_of_one_that_has_just_failed_is_not_believed(
    incarnation: int, after_us: int, believed: bool, word: type
) -> None:
    node = inside("1111", peer("a", "2000"), peer("b", "3000"))
    node.handle(LinkDown("a", "reset"), 10)
    again = peer("a", "2000", incarnation)
    said = Arrived(again, (0, 0)) if word is Arrived else Introduced([again])
    effects = node.handle(Received("b", said), 10 + after_us)
    assert [to for to, _ in sent(effects, Introduced if word is Arrived else Hello)] == (["a"] if believed else [])


def test_an_arrival_goes_to_those_in_the_rows_below_and_the_new_node_hears_whom_it_may_not_have_met() -> None:
    node = inside("1111", peer("far", "3000"), peer("row2", "1200"), peer("row3", "1120"), peer("row4", "1112"))
    new = peer("new", "1122")
    effects = node.handle(Received("far", Arrived(new, (1, 1))), 1)
    assert [(to, tuple(word.destination)) for to, word in sent(effects, Arrived)] == [
        ("row2", (identifier("12"), 2)),
        ("row3", (identifier("112"), 3)),
        ("row4", (identifier("1112"), 4)),
    ]
    ((to, introduced),) = sent(effects, Introduced)
    assert to == "new"
    assert "new" not in {name for name, *_ in introduced.known}
    assert {name for name, *_ in introduced.known} >= {"n", "row3"}


# ------------------------------------------------------------------------------------------------- failures
@pytest.mark.parametrize(("after_us", "since_us"), [(PROBE_US, 30), (PROBE_US + 1, None)])
def test_a_substitute_is_told_since_when_its_predecessor_was_silent_if_it_is_found_within_a_round(
    after_us: int, since_us: int | None
) -> None:
    """`since_us`: when the failed one was last heard. Later than that, the layer above tells it everything."""
    node, cell, new = inside("1111", peer("old", "2000")), IdentifierRange(2, 1), peer("new", "2100")
    node.heard("old", 30)
    node.handle(LinkDown("old", "reset"), 100)
    assert node.take_changes()[0] == PeerFailed(peer("old", "2000"), cell)
    node.handle(Received("new", Hello(new, True)), 100 + after_us)
    filled = [change for change in node.take_changes() if isinstance(change, CellFilled)]
    assert filled == [CellFilled(cell, new, since_us)]
    assert not node.vacant()


def test_a_watched_peer_is_probed_until_it_is_needed_no_more_and_its_failure_is_told() -> None:
    """One that was never heard counts as heard when it was first watched."""
    node, watched = inside("1111"), peer("w", "2000")
    node.watch(node.me)
    node.watch(watched)
    assert [to for to, _ in sent(node.handle(ROUND, 10), Ping)] == ["w"]
    node.handle(LinkDown("w", "reset"), 20)
    assert node.take_changes() == [PeerFailed(watched, None)]
    node.watch(watched)
    node.unwatch("w")
    assert not sent(node.handle(ROUND, 30), Ping)
    assert not node.handle(LinkDown("w", "reset"), 40)
    assert not node.take_changes()


def test_a_peer_known_under_an_older_incarnation_has_failed_whatever_it_says() -> None:
    old, new = peer("a", "2000"), peer("a", "2000", 1)
    for word in (Hello(new, False), Ping(new, 0, 0, False), Pong(new, 0, 0, []), Welcome(new, False, True, [])):
        node = inside("1111", old)
        node.handle(Received("a", word), 1)
        assert node.take_changes()[0] == PeerFailed(old, IdentifierRange(2, 1))
        assert not node.vacant(), "its cell waits for itself"


def test_after_a_leaf_has_failed_others_seek_this_nodes_identifier_for_some_rounds_and_else_now_and_then() -> None:
    """As many rounds as there are bootstrap peers, each of which is asked in its turn."""
    node = inside("1111", peer("p", "2000"), bootstrap=("a", "b"))
    sought: list[tuple[int, str]] = []
    for number in range(1, 18):
        effects = node.handle(ROUND, number * PROBE_US)
        node.handle(Received("p", Pong(peer("p", "2000"), 0, 0, [])), number * PROBE_US)
        for _ in range(3):
            node.handle(DEADLINE, number * PROBE_US + 1)
        assert all(word == Seek(node.me, node.own) for _, word in sent(effects, Seek))
        sought += [(number, to) for to, _ in sent(effects, Seek)]
        if number == 2:
            node.handle(LinkDown("p", "reset"), number * PROBE_US + 2)
            node.handle(Received("p", Hello(peer("p", "2000"), True)), number * PROBE_US + 3)
    rounds = [number for number, _ in sought]
    assert rounds == [3, 4, 8, 16]
    assert {to for _, to in sought[:2]} == {"a", "b"}


def test_the_three_probes_of_a_round_share_the_time_in_which_a_peer_has_to_answer() -> None:
    node = inside("1111", peer("a", "2000"))
    began_us = PROBE_US
    timers = [each for each in node.handle(ROUND, began_us) if isinstance(each, SetTimer)]
    assert timers[0] == SetTimer(ROUND.key, PROBE_US)
    assert node.round_began_us == began_us
    delays = [timers[1].delay_us]
    while timers:
        timers = [each for each in node.handle(DEADLINE, began_us + sum(delays)) if isinstance(each, SetTimer)]
        delays += [each.delay_us for each in timers]
    assert delays == [166_666, 166_666, 166_668]
    assert sum(delays) == TIMEOUT_US
    assert "a" not in node.peers


def test_a_node_that_has_not_joined_probes_nobody_and_reports_no_answers() -> None:
    node = gathering()
    node.take_changes()
    effects = node.handle(ROUND, 10)
    assert effects == [SetTimer(ROUND.key, PROBE_US - 10)]
    node.handle(Received("p", Pong(peer("p", "2000"), 1, 5, [])), 11)
    assert not node.take_changes()
    node.handle(SETTLE, 12)
    node.take_changes()
    node.handle(Received("p", Pong(peer("p", "2000"), 1, 5, [])), 13)
    assert node.take_changes() == [Answered(peer("p", "2000"), 1, 5)]


# ------------------------------------------------------------------------------------ what a node says of itself
def holds(node: Pastry) -> str:
    _, _, state = node.state()
    return state


def test_the_state_of_a_node_says_what_is_missing_around_it() -> None:
    node = node_at("1111")
    assert node.state() == ("Pastry joined", "state", "alone + leaves missing")
    node.know([peer("a", "2000")])
    assert holds(node) == "leaves missing"
    node.know([peer("b", "3000")])
    assert holds(node) == "nothing", "two of them are both sides of a leaf set of four"
    node.handle(LinkDown("b", "reset"), 1)
    assert holds(node) == "leaves missing + vacant cells"
    node.handle(Received("a", Introduced([peer("c", "3100")])), 2)
    assert holds(node) == "leaves missing + asking + vacant cells"
    node.handle(Received("c", Welcome(peer("c", "3100"), True, False, [])), 3)
    assert holds(node) == "nothing"


def test_the_state_of_a_node_says_that_a_peer_is_silent_once_it_had_to_be_asked_again() -> None:
    node = inside("1111", peer("a", "2000"), peer("b", "3000"))
    said: list[str] = []
    inputs: list[Input] = [ROUND, Received("a", Pong(peer("a", "2000"), 0, 0, [])), DEADLINE, DEADLINE]
    for now_us, taken in enumerate(inputs, 1):
        node.handle(taken, now_us)
        said.append(holds(node))
    assert said == ["nothing", "nothing", "some silent", "some silent"]
    node.handle(Received("b", Pong(peer("b", "3000"), 0, 0, [])), 5)
    assert holds(node) == "nothing"


def test_the_state_of_a_node_says_that_it_looks_for_another_part_and_who_waits_for_it() -> None:
    node = inside("1111", peer("a", "2000"), peer("b", "3000"), peer("c", "3100"), bootstrap=("a",))
    node.handle(LinkDown("b", "reset"), 1)
    assert holds(node) == "leaf lost", "another stands for its cell"
    node = gathering()
    assert node.state() == ("Pastry gathering", "state", "leaves missing + seeking")
    node.handle(Received("w", JoinRequest(peer("w", "3333"), ())), 3)
    assert holds(node) == "leaves missing + seeking + others wait"
    node.handle(Received("p", Welcome(peer("q", "2100"), True, True, [])), 4)
    assert node.state() == ("Pastry joined", "state", "nothing")
    node.handle(Received("x", Welcome(peer("q", "2100"), True, True, [])), 5)
    assert holds(node) == "nothing", "what nobody sought is not missed"


# --------------------------------------------------------------------------------------------------- its parts
def test_a_message_for_a_range_goes_to_none_that_is_no_nearer_to_its_middle() -> None:
    """Else it would go to and fro between two that are equally near."""
    space, cell = IdentifierSpace(4, 4), IdentifierRange(identifier("12"), 2)
    own, as_far = identifier("1133"), identifier("1301")
    assert as_far - space.middle(cell) == space.middle(cell) - own
    known = KnownPeers(space, own, 4)
    known.take_in(PastryPeer("as far", as_far))
    known.take_in(PastryPeer("nearer, elsewhere", 0))
    assert known.towards(cell) is None
    known.take_in(PastryPeer("nearer", as_far - 1))
    assert known.towards(cell) == PastryPeer("nearer", as_far - 1)


def test_the_digits_of_an_identifier_are_numbers_where_letters_have_come_to_an_end() -> None:
    space = IdentifierSpace(64, 3)
    assert space.text(35 * 64**2 + 36 * 64 + 9) == "z<36>9"


@pytest.mark.parametrize(("told_us", "agrees"), [(9, False), (10, True), (11, True)])
def test_an_answer_says_nothing_of_what_the_peer_was_told_since_the_round_began(told_us: int, agrees: bool) -> None:
    told, other = ToldFilters(0), Answered(peer("a", "2000"), 0, note=12345)
    told.told(told_us)
    assert told.agrees(other, [], round_began_us=10) is agrees


def test_a_failure_over_pastry_may_cost_what_its_rounds_add_up_to() -> None:
    """Noticed in 1 round, not believed for 10, asked for in 8 rows, followed by the layer above in 1; and a timeout."""
    place = RingPlace(5, base=4, digits=8, probe_us=PROBE_US, probe_timeout_us=TIMEOUT_US)
    assert pastry_recovers(place).repaired_us == 20 * PROBE_US + TIMEOUT_US
