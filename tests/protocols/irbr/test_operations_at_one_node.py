"""Subscriptions, cancellations and transfers of identifier range based routing at one node, message by message."""

from typing import Any

import pytest

from murmur_pubsub.errors import WireError
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import LinkDown, NodeContext, Received, Start
from murmur_pubsub.places import RingPlace
from routing.filter_digest import digest
from routing.irbr.filter_table import FilterTable
from routing.irbr.lately import CONCURRENT_US
from routing.irbr.messages import Cancellation, RangeSubscription, Summary, SummaryRequest, Transfer
from routing.irbr.router import Irbr, IrbrParameters
from routing.pastry.messages import Arrived, Hello, Ping, Pong
from tests.protocols.irbr.one_node import BESIDE, FAR, NARROW, NEAR, X, Y, node, wide
from tests.protocols.one_node import sent
from tests.protocols.pastry.one_node import PROBE_US, end_round, peer

ROW3 = peer("row3", "1120")
"""It stands for the range 112., as seen from 1111."""
ALL = (FAR, BESIDE, ROW3, NEAR)
WIDER, MIDDLE, OTHER = (parse_filter(text) for text in ("x > 0", "x > 3", "z > 1"))


def told(router: Any, source: Any, cell: str, wanted: Filter, number: int = 1, now_us: int = 1) -> None:
    """The source wants that in its range as this node sees it, and all know."""
    word = RangeSubscription(source.identifier, number, wide(cell), wanted, (0, 0))
    router.handle(Received(source.name, word), now_us)


def subscriptions(effects: Any) -> list[tuple[str, str, str]]:
    """To whom, whose range and for which: as digits."""
    words = sent(effects, RangeSubscription)
    return [(to, digits(word.subscriber), digits(word.destination)) for to, word in words]


def digits(of: Any) -> str:
    value, length = of
    return "".join(str(value >> 2 * place & 3) for place in reversed(range(length)))


# --------------------------------------------------------------------------------------------- subscriptions
def test_a_subscription_goes_to_each_row_from_the_longest_prefix_on_with_the_range_that_is_one_for_it() -> None:
    router = node(*ALL)
    effects = router.subscribe(X)
    assert subscriptions(effects) == [
        ("near", "1111", "1112"), ("row3", "111", "112"), ("beside", "11", "10"), ("far", "1", "2")
    ]  # fmt: skip
    assert {(word.origin, word.number, word.filter) for _, word in sent(effects)} == {(router._own, 1, X)}
    assert not router.subscribe(NARROW), "it is covered at home"
    assert {word.number for _, word in sent(router.subscribe(Y))} == {2}
    assert {word.number for _, word in sent(router.unsubscribe(Y))} == {3}


def test_a_node_that_is_back_goes_on_numbering_above_all_that_it_did_before() -> None:
    place = RingPlace(int("1111", 4), digits=4, leaf_set=4)
    router = Irbr(NodeContext("n", 1, incarnation=2, place=place), IrbrParameters())
    router.handle(Start([]), 0)
    router.know([NEAR])
    ((_, word),) = sent(router.subscribe(X))
    assert word.number == 2 * 2**32 + 1


@pytest.mark.parametrize(("cell", "rows"), [("1112", 1), ("112", 2), ("10", 3), ("2", 4)])
def test_a_subscription_stops_behind_the_row_that_has_one_that_covers_it(cell: str, rows: int) -> None:
    router = node(*ALL)
    told(router, FAR, cell, WIDER)
    assert [to for to, *_ in subscriptions(router.subscribe(X))] == ["near", "row3", "beside", "far"][:rows]


def test_what_is_asked_for_outside_is_told_to_nobody() -> None:
    place = RingPlace(int("1111", 4), digits=4, leaf_set=4, bootstrap=("far",))
    router = Irbr(NodeContext("n", 1, place=place), IrbrParameters())
    router.handle(Start([]), 0)
    router.know(ALL)
    for change in (router.subscribe, router.unsubscribe):
        assert not change(X)
    router.check_invariants()


def test_a_subscription_is_passed_on_within_the_range_it_is_for_or_towards_it() -> None:
    router = node(*ALL)
    for destination, passed_to in (("", [*ALL]), ("1", [BESIDE, ROW3, NEAR]), ("111", [NEAR]), ("2", [FAR])):
        word = RangeSubscription(FAR.identifier, 1, wide("2"), parse_filter(f"x = '{destination}'"), wide(destination))
        effects = sent(router.handle(Received("far", word), 1))
        assert [to for to, _ in effects] == [each.name for each in passed_to]
        assert all(passed._replace(destination=()) == word._replace(destination=()) for _, passed in effects)
        assert (word.filter in router.table.of(wide("2"))) is (destination != "2")
    assert [digits(passed.destination) for _, passed in effects] == ["2"]


# --------------------------------------------------------------------------------------------- cancellations
def cancellations(effects: Any) -> list[tuple[str, str, list[Filter], list[Filter]]]:
    """To whom, whose range, what holds from now on, what is known of the receivers' range."""
    words = sent(effects, Cancellation)
    return [(to, digits(word.subscriber), list(word.added), list(word.known)) for to, word in words]


def test_a_cancellation_takes_along_what_the_cancelled_one_had_covered_nearer_than_each_row() -> None:
    router = node(*ALL)
    for wanted in (X, NARROW, OTHER):
        router.subscribe(wanted)
    told(router, ROW3, "112", MIDDLE)
    told(router, FAR, "2", NARROW)
    told(router, FAR, "2", Y, number=2)
    effects = router.unsubscribe(X)
    assert cancellations(effects) == [
        ("near", "1111", [NARROW], []),
        ("row3", "111", [NARROW], [MIDDLE]),
        ("beside", "11", [MIDDLE], []),
        ("far", "1", [MIDDLE], [NARROW]),
    ]
    assert {tuple(word.cancelled) for _, word in sent(effects)} == {(X,)}
    assert [digits(word.destination) for _, word in sent(effects)] == ["1112", "112", "10", "2"]
    assert not cancellations(router.unsubscribe(OTHER))[0][2]


@pytest.mark.parametrize(("cell", "rows"), [("1112", 1), ("112", 2), ("10", 3), ("2", 4)])
def test_a_cancellation_stops_behind_the_row_where_another_covers_what_is_cancelled(cell: str, rows: int) -> None:
    router = node(*ALL)
    router.subscribe(X)
    told(router, FAR, cell, WIDER)
    assert [to for to, *_ in cancellations(router.unsubscribe(X))] == ["near", "row3", "beside", "far"][:rows]


def test_what_is_covered_at_home_is_cancelled_nowhere() -> None:
    router = node(*ALL)
    for wanted in (NARROW, X):
        router.subscribe(wanted)
    assert not router.unsubscribe(NARROW)
    router.subscribe(NARROW)
    assert len(sent(router.unsubscribe(X))) == 4


@pytest.mark.parametrize(
    ("own", "known", "gone", "told_again"),
    [
        ([NARROW], [], "10", ["far"]),
        ([NARROW], [NARROW], "10", []),
        ([NARROW], [MIDDLE], "10", []),
        ([NARROW], [Y], "10", ["far"]),
        ([NARROW], [], "2", []),
        ([NARROW], [], "112", ["beside", "far"]),
        ([NARROW, WIDER], [], "10", []),
        ([Y], [], "10", []),
    ],
)
def test_who_was_covered_by_what_is_cancelled_and_is_not_known_to_be_goes_on_with_its_own_walk(
    own: list[Filter], known: list[Filter], gone: str, told_again: list[str]
) -> None:
    """To the ranges farther out, which have not been told."""
    router = node(*ALL)
    for wanted in own:
        router.subscribe(wanted)
    told(router, BESIDE, gone, X)
    word = Cancellation(BESIDE.identifier, 2, wide(gone), [X], [OTHER], known, wide("11"))
    effects = router.handle(Received("beside", word), 5)
    assert [to for to, *_ in subscriptions(effects)] == told_again
    assert {each.filter for _, each in sent(effects, RangeSubscription)} <= {NARROW}
    passed = [(to, each) for to, each in sent(effects, Cancellation)]
    assert [(to, digits(each.destination)) for to, each in passed] == [("row3", "112"), ("near", "1112")]
    assert router.table.of(wide(gone)) == [OTHER]


def test_a_cancellation_for_another_range_only_passes_and_one_of_an_empty_range_ends_the_search_for_a_peer() -> None:
    router = node(*ALL)
    told(router, FAR, "2", X)
    elsewhere = Cancellation(FAR.identifier, 2, wide("2"), [X], [], [], wide("10"))
    assert sent(router.handle(Received("near", elsewhere), 2)) == [("beside", elsewhere)]
    assert router.table.of(wide("2")) == [X]
    router.handle(LinkDown("far", "reset"), 3)
    assert router.pastry.vacant() == [wide("2")]
    router.handle(Received("near", elsewhere._replace(destination=wide("1111"))), 4)
    assert not router.table.of(wide("2"))
    assert not router.pastry.vacant()


# -------------------------------------------------------------------------------------------------- transfers
@pytest.mark.parametrize("late", [0, 1])
def test_a_substitute_gets_what_came_since_a_round_before_its_predecessor_was_last_heard(late: int) -> None:
    router, new = node(FAR, BESIDE, peer("three", "3000")), peer("new", "2100")
    heard_us = 3 * PROBE_US
    from_us = heard_us - PROBE_US
    told(router, BESIDE, "10", parse_filter("a = 1"), 1, from_us - 1)
    told(router, BESIDE, "3", parse_filter("a = 2"), 2, from_us - 1 + late)
    told(router, BESIDE, "10", parse_filter("a = 3"), 3, from_us - 1 + late)
    told(router, FAR, "2", parse_filter("a = 4"), 4, from_us + 2)
    router.handle(Received("far", Pong(FAR, 0, 0, [])), from_us + 2)
    for number, at_us in ((5, from_us - 1 + late), (6, from_us + 3)):
        router.now_us = at_us
        router.subscribe(parse_filter(f"b = {number}"))
    router.handle(Received("far", Pong(FAR, 0, 0, [])), heard_us)
    router.handle(LinkDown("far", "reset"), heard_us + 10)
    ((to, word),) = sent(router.handle(Received("new", Hello(new, True)), heard_us + 20), Transfer)
    assert (to, digits(word.destination)) == ("new", "2")
    pairs = sorted((digits(of), str(wanted)) for of, wanted in zip(word.ranges, word.filters, strict=True))
    own = [("1", "a = 3"), ("1", "b = 5")] if late else []
    assert pairs == sorted([*own, ("1", "b = 6"), *([("3", "a = 2")] if late else [])])


def test_a_new_node_gets_everything_that_holds_for_it_too() -> None:
    router, new = node(BESIDE, peer("three", "3000")), peer("new", "2100")
    assert not sent(router.handle(Received("three", Arrived(peer("four", "1300"), (0, 0))), 1), Transfer)
    told(router, BESIDE, "10", X, 1, 5)
    told(router, BESIDE, "3", Y, 2, 6)
    router.subscribe(NARROW)
    ((to, word),) = sent(router.handle(Received("new", Arrived(new, (0, 0))), 7), Transfer)
    assert (to, list(word.filters), [digits(each) for each in word.ranges]) == ("new", [Y, X], ["3", "1"])
    ((_, nearer),) = sent(router.handle(Received("a", Arrived(peer("a", "1210"), (0, 0))), 8), Transfer)
    pairs = [(digits(of), wanted) for of, wanted in zip(nearer.ranges, nearer.filters, strict=True)]
    assert pairs == [("10", X), ("3", Y), ("11", NARROW)]


def test_of_a_transfer_what_was_new_is_passed_on_within_the_range() -> None:
    router = node(*ALL)
    told(router, FAR, "2", WIDER)
    word = Transfer([wide("2"), wide("1"), wide("10"), wide("2")], [X, Y, NARROW, OTHER], wide("1"))
    effects = sent(router.handle(Received("far", word), 2))
    assert [(to, digits(each.destination)) for to, each in effects] == [
        ("beside", "10"),
        ("row3", "112"),
        ("near", "1112"),
    ]
    assert all(
        (list(each.ranges), list(each.filters)) == ([wide("10"), wide("2")], [NARROW, OTHER]) for _, each in effects
    )
    assert router.table.of(wide("2")) == [WIDER, OTHER]
    assert not router.handle(Received("far", word), 3)
    with pytest.raises(WireError, match="1 filters of 2 ranges"):
        router.handle(Received("far", Transfer([wide("2"), wide("3")], [X], wide("1"))), 4)


# -------------------------------------------------------------------------------------------------- summaries
def test_what_a_node_says_of_its_range_is_what_is_wanted_there_now() -> None:
    """In answers to probes a digest of it, asked for the whole."""
    router = node(*ALL)

    def says(length: int, *wanted: Filter) -> None:
        ((_, pong),) = sent(router.handle(Received("far", Ping(FAR, length, 0, False)), 10), Pong)
        ((_, summary),) = sent(router.handle(Received("far", SummaryRequest(length)), 10), Summary)
        assert (set(summary.filters), pong.note) == (set(wanted), digest(wanted))

    says(1)
    router.subscribe(NARROW)
    says(1, NARROW)
    told(router, BESIDE, "10", Y)
    says(1, NARROW, Y)
    says(2, NARROW)
    told(router, FAR, "2", X)
    says(1, NARROW, Y)
    told(router, NEAR, "1112", X)
    says(1, X, Y)
    says(4, NARROW)
    router.handle(Received("near", Cancellation(NEAR.identifier, 2, wide("1112"), [X], [], [], (0, 0))), 11)
    says(1, NARROW, Y)
    router.unsubscribe(NARROW)
    says(1, Y)
    router.handle(Received("near", Transfer([wide("1112")], [OTHER], wide("1"))), 12)
    says(1, Y, OTHER)
    router.handle(Received("near", Summary(4, [])), 12 + 5 * PROBE_US + 1)
    says(1, Y)


# ------------------------------------------------------------------------------------------------ empty ranges
def rounds_end(router: Any, *there: Any) -> list[Any]:
    """A round of probes in which these answer; what is said as it ends."""
    return sent(end_round(router, 5 * PROBE_US, *there), Cancellation)


def test_what_was_wanted_in_a_range_that_is_empty_is_cancelled_in_all_the_others() -> None:
    """As seen from 1111: 1112 is gone. For the range 112. this node cancels in the name of 111., which holds it all."""
    router = node(BESIDE, ROW3, NEAR, peer("three", "1113"))
    told(router, NEAR, "1112", X)
    router.subscribe(NARROW)
    router.handle(LinkDown("near", "reset"), 2)
    router.pastry.towards = lambda cell: None  # nobody is nearer to its middle
    router.subscribe(Y)
    effects = rounds_end(router, BESIDE, ROW3, peer("three", "1113"))
    assert [(to, digits(word.subscriber), list(word.cancelled), list(word.added)) for to, word in effects] == [
        ("three", "1112", [X], []),
        ("row3", "111", [X], [NARROW]),
        ("beside", "11", [X], [NARROW]),
    ]
    assert not router.table.of(wide("1112"))
    assert not router.pastry.vacant()
    assert not rounds_end(router, BESIDE, ROW3, peer("three", "1113")), "once"


def test_an_empty_range_of_more_than_one_identifier_is_cancelled_in_all_rows_below_it_too() -> None:
    router = node(BESIDE, ROW3, NEAR, peer("near3", "1130"))
    told(router, ROW3, "112", X)

    def noted() -> int:
        ((_, pong),) = sent(router.handle(Received("beside", Ping(BESIDE, 2, 0, False)), 3), Pong)
        return int(pong.note)

    assert noted() == digest([X])
    router.handle(LinkDown("row3", "reset"), 2)
    router._found_empty[wide("112")] = None
    router.pastry.towards = lambda cell: None
    effects = rounds_end(router, BESIDE, NEAR, peer("near3", "1130"))
    assert [(to, digits(word.subscriber), digits(word.destination)) for to, word in effects] == [
        ("near", "112", "1112"),
        ("near3", "112", "113"),
        ("beside", "11", "10"),
    ]
    assert noted() == digest([])


def test_a_range_that_was_found_empty_and_is_none_of_its_own_or_has_a_peer_again_is_left() -> None:
    router, new = node(FAR, BESIDE), peer("new", "2100")
    told(router, FAR, "2", X)
    router._found_empty = dict.fromkeys((wide("2"), wide("31"), wide("")))
    assert not rounds_end(router, FAR, BESIDE)
    assert router.table.of(wide("2")) == [X]
    router.handle(LinkDown("far", "reset"), 6 * PROBE_US)
    router._found_empty[wide("2")] = None
    router.handle(Received("new", Hello(new, True)), 6 * PROBE_US)
    assert not rounds_end(router, BESIDE, new)
    assert router.table.of(wide("2")) == [X]


@pytest.mark.parametrize(("destination", "towards"), [("", ["2", "12"]), ("1", ["12"]), ("11", [])])
def test_what_is_for_a_range_goes_to_its_parts_without_a_peer_by_way_of_others(
    destination: str, towards: list[str]
) -> None:
    router = node(FAR, BESIDE, ROW3, peer("gone", "1200"))
    for name in ("far", "gone"):
        router.handle(LinkDown(name, "reset"), 1)
    router.pastry.towards = lambda cell: ROW3
    word = RangeSubscription(NEAR.identifier, 1, wide("1112"), X, wide(destination))
    words = sent(router.handle(Received("near", word), 2))
    assert [digits(each.destination) for to, each in words if to == "row3"] == ["112", *towards]
    rows = [digits(each.destination) for _, each in sent(router.subscribe(Y))]
    assert rows == ["112", "10", "12", "2"]


# ------------------------------------------------------------------------------------------------- the table
def test_the_digest_of_a_range_is_that_of_what_it_wants_now() -> None:
    table, cell = FilterTable(), wide("2")
    assert table.digest(cell) == digest([])
    for wanted in (NARROW, X, Y):
        assert table.put(cell, wanted, 1)
        assert table.digest(cell) == digest(table.of(cell))
    assert table.of(cell) == [X, Y]
    assert table.matching({"x": 2}) == [X]
    assert not table.put(cell, NARROW, 2)
    assert table.remove(cell, X)
    assert not table.remove(cell, X)
    assert table.digest(cell) == digest([Y])
    assert table.put(cell, NARROW, 3), "nothing covers it any more"
    assert [table.since_us(cell, wanted) for wanted in (Y, NARROW)] == [1, 3]
    table.check_invariants()


def test_what_was_asked_for_lately_is_forgotten_when_it_is_that_no_more() -> None:
    """Nothing is kept of it; what was asked for again counts from then on."""
    table, cell = FilterTable(), wide("2")
    table.subscribed(cell, X, 7, 1, now_us=10)
    table.subscribed(cell, X, 8, 1, now_us=11)
    table.subscribed(cell, X, 7, 2, now_us=20)
    table._forget_old(20 + CONCURRENT_US)
    assert table._asked._said == {cell: {X: {7: (20, 2)}}}
    table._forget_old(21 + CONCURRENT_US)
    assert table._asked._said == {cell: {}}
    assert not table._asked._order
    table.cancelled(cell, X, 7, 2, now_us=22 + CONCURRENT_US)
    assert not table.of(cell)


def test_what_a_node_has_withdrawn_itself_is_forgotten_once() -> None:
    table, cell = FilterTable(), wide("2")
    table.subscribed(cell, X, 7, 1, now_us=10)
    table.subscribed(cell, Y, 7, 2, now_us=10)
    table.cancelled(cell, X, 7, 3, now_us=11)
    table._forget_old(12 + CONCURRENT_US)
    assert table._asked._said == {cell: {}}
    assert not table._asked._order
    assert table.of(cell) == [Y]


@pytest.mark.parametrize(("number", "left"), [(0, True), (1, True), (2, False)])
def test_a_cancellation_does_not_undo_what_the_same_node_has_asked_for_since(number: int, left: bool) -> None:
    table, cell = FilterTable(), wide("2")
    table.subscribed(cell, X, 7, 1, now_us=10)
    table.cancelled(cell, X, 7, number, now_us=11)
    assert bool(table.of(cell)) is left
    table.cancelled(cell, Y, 9, 5, now_us=12)
    table.check_invariants()
