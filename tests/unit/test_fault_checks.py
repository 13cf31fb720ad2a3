"""Whether a changed link did what the change says, as the journal shows it."""

from collections.abc import Sequence

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import NONE, DropReason, RowKind
from murmur_pubsub.links import Delay, LinkSpec
from spark_analysis.checked_rows import CheckedRow, CheckedRows
from spark_analysis.fault_checks import FaultCheck, check_commands, check_faults
from spark_analysis.fault_windows import FaultStep, Window, fault_windows
from spark_analysis.recovery import repairs_of

LINK = frozenset({"a", "b"})
NUMBERS = {"a": 0, "b": 1}


def checked(
    link: LinkSpec,
    *kinds: Sequence[tuple[int, int, int | None]],
    datagram_kinds: Sequence[int] = (),
    beside: Sequence[Window] = (),
    lost: Sequence[tuple[int, int]] = (),
    paused: Sequence[tuple[int, int]] = (),
    others: Sequence[CheckedRow] = (),
) -> FaultCheck:
    """The check of a change in force from 0 to 1 s; of each kind of message the passages of events from a to b:
    sequence, sent_us, received_us. `lost`: those that the link lost on their way, sequence and sent_us. `paused`: when
    b took nothing (1), and went on (0), since its link to another node was full. `others`: more rows."""
    step = FaultStep(0, FaultKind.CHANGE_LINK, "change link a-b", ("a", "b"), link=link, in_effect_us=0)
    rows = []
    for kind, (sequence, sent_us, received_us) in [(kind, each) for kind, some in enumerate(kinds) for each in some]:
        rows.append(CheckedRow(sent_us, 0, 7, sequence, 1, RowKind.SEND, kind))
        if received_us is not None:
            rows.append(CheckedRow(received_us, 1, 7, sequence, 0, RowKind.RECEIVE, kind))
    rows += [CheckedRow(sent_us, 0, 7, each, 1, RowKind.DROP, DropReason.LOSS) for each, sent_us in lost]
    rows += [CheckedRow(time_us, 1, NONE, 0, 2, RowKind.PAUSE, value) for time_us, value in paused]
    check, *_ = check_faults(
        [Window(step, 0, 0, 1_000_000, 1_000_000, frozenset(), frozenset({LINK})), *beside],
        CheckedRows.of([CheckedRow(0, 0, NONE, 0, NONE, RowKind.START, 0), *rows, *others]),
        NUMBERS,
        2_000_000,
        datagram_kinds,
    )
    return check


DELAYED = LinkSpec(delay=Delay("constant", 5_000))
REORDERING = LinkSpec(reordering=0.5, reordering_us=10_000)


@pytest.mark.parametrize(
    ("link", "passages", "outcome"),
    [
        (DELAYED, [(1, 1_000, 6_000), (2, 2_000, 7_100)], "took_effect"),
        (DELAYED, [(1, 1_000, 6_000), (2, 9_000, 10_000)], "failed"),
        (DELAYED, [(1, 1_000, None)], "not_exercised"),
        (DELAYED, [(1, 2_000, 1_000), (2, 3_000, 8_000)], "took_effect"),  # 1 came of an earlier time that it was sent
        (REORDERING, [(1, 1_000, 9_000), (2, 2_000, 2_100)], "took_effect"),
        (REORDERING, [(number, 100 * number, 100 * number + 50) for number in range(1, 200)], "failed"),
        (REORDERING, [(number, 100 * number, 100 * number + 50) for number in range(1, 5)], "not_exercised"),
    ],
)
def test_a_change_is_seen_in_what_passed(
    link: LinkSpec, passages: Sequence[tuple[int, int, int | None]], outcome: str
) -> None:
    assert checked(link, passages).outcome == outcome


@pytest.mark.parametrize(
    ("link", "outcome"),
    [
        (LinkSpec(messages_per_s=50), "failed"),
        (LinkSpec(messages_per_s=50, reordering=0.1, reordering_us=10_000), "not_exercised"),
        (LinkSpec(messages_per_s=50, reordering=0.1, reordering_us=1_000), "failed"),
        (LinkSpec(Delay("uniform", 0, 10_000), messages_per_s=50), "took_effect"),
    ],
)
def test_a_message_that_was_held_back_comes_close_before_the_next_one_on_a_link_of_small_bandwidth(
    link: LinkSpec, outcome: str
) -> None:
    """The link takes one each 20 ms. Nothing overtakes anything, so that of reordering nothing is seen."""
    assert checked(link, [(1, 1_000, 30_000), (2, 2_000, 43_000)]).outcome == outcome


@pytest.mark.parametrize(("apart_us", "outcome"), [(2_800, "took_effect"), (2_799, "failed")])
def test_a_random_delay_may_be_fourteen_times_its_mean(apart_us: int, outcome: str) -> None:
    """Of a million messages about one has such a delay. The link takes one each 20 ms, of which 6 ms are left."""
    link = LinkSpec(Delay("exponential", 0, 1_000), messages_per_s=50)
    assert checked(link, [(1, 1_000, 40_000), (2, 2_000, 40_000 + apart_us)]).outcome == outcome


@pytest.mark.parametrize(
    ("link", "sent", "outcome"),
    [
        (LinkSpec(loss=0.1), 0, "not_exercised"),
        (LinkSpec(loss=0.1), 131, "not_exercised"),
        (LinkSpec(loss=0.1), 132, "failed"),
        (LinkSpec(loss=1.0), 1, "failed"),
        (LinkSpec(duplication=0.1), 131, "not_exercised"),
        (LinkSpec(duplication=0.1), 132, "failed"),
    ],
)
def test_what_never_happened_has_failed_if_that_is_by_chance_once_in_a_million_times(
    link: LinkSpec, sent: int, outcome: str
) -> None:
    assert checked(link, [(number, number, number + 50) for number in range(1, sent + 1)]).outcome == outcome


def test_only_what_was_received_has_come() -> None:
    """The receiver writes of the event that was sent to it, and has not got it."""
    known = CheckedRow(1_500, 1, 7, 2, 0, RowKind.PROTOCOL, 0)
    passages = [(1, 1_000, 6_000), (2, 1_400, None)]
    assert checked(DELAYED, passages, others=[known]).outcome == "took_effect"
    assert checked(DELAYED, passages, others=[known._replace(kind=RowKind.RECEIVE)]).outcome == "failed"


@pytest.mark.parametrize("kind", [FaultKind.STALL, FaultKind.SLOW])
def test_what_waited_for_a_hindered_node_says_nothing_of_the_bandwidth(kind: FaultKind) -> None:
    """flooding/best_effort 1305842: the client took two at once when it went on."""
    link, passages = LinkSpec(messages_per_s=50), [(1, 1_000, 200_000), (2, 2_000, 200_000)]
    held_up = FaultStep(1, kind, "hinder b", ("b",), in_effect_us=500)
    beside = [Window(held_up, 500, 500, 200_000, 200_000, frozenset({"b"}))]
    assert checked(link, passages).outcome == "failed"
    assert checked(link, passages, beside=beside).outcome == "not_exercised"
    later = [(3, 201_000, 221_000), (4, 202_000, 222_000)]
    assert checked(link, [*passages, *later], beside=beside).outcome == "failed"


@pytest.mark.parametrize(
    ("paused", "outcome"),
    [
        ((), "failed"),
        (((30_000, 1), (199_000, 0)), "not_exercised"),
        (((199_000, 0),), "not_exercised"),  # since before the change
        (((30_000, 1),), "not_exercised"),
        (((210_000, 1), (300_000, 0)), "failed"),
    ],
)
def test_what_waited_for_a_node_with_a_full_queue_says_nothing_of_the_bandwidth(
    paused: Sequence[tuple[int, int]], outcome: str
) -> None:
    """Hunted with seed 631, cells/durable/replaced+varied: the broker took four at once when it had room again."""
    passages = [(1, 1_000, 199_000), (2, 2_000, 199_000)]
    assert checked(LinkSpec(messages_per_s=50), passages, paused=paused).outcome == outcome


def test_an_event_sent_again_is_not_taken_for_one_that_was_too_fast() -> None:
    """The first copy arrives after the delay, and so does the second: which was which cannot be told."""
    again = [(1, 1_000, 6_000), (1, 10_000, 15_000)]
    assert checked(DELAYED, again).outcome == "not_exercised"
    assert checked(DELAYED, [*again, (2, 20_000, 25_000)]).outcome == "took_effect"


def test_what_came_when_an_event_was_sent_again_and_lost_was_sent_before_the_change() -> None:
    """The schedule cells/durable 2001461: it came in the microsecond in which it was sent again."""
    passages = [(1, 1_000, 1_000), (2, 2_000, 7_000)]
    assert checked(DELAYED, passages).outcome == "failed"
    assert checked(DELAYED, passages, lost=[(1, 1_000)]).outcome == "took_effect"


def test_events_sent_again_and_again_do_not_count_as_chances_of_being_overtaken() -> None:
    again = [(1, 1_000, None)] * 150 + [(1, 1_000, 1_100)]
    assert checked(REORDERING, again).outcome == "not_exercised"


def cut_after_a_kill(*rows: tuple[int, int, int, RowKind], first: bool = False) -> FaultCheck:
    """The check of a cut from 1 to 2 s; rows: time_us, node, peer, kind. Another fault was in force from 0 on. `first`:
    is a start the node's first one?"""
    step = FaultStep(0, FaultKind.CUT, "cut a-b", ("a", "b"), in_effect_us=1_000_000)
    seen = [
        CheckedRow(time_us, node, 7, 0, peer, kind, kind == RowKind.START and not first)
        for time_us, node, peer, kind in rows
    ]
    (check,) = check_faults(
        [Window(step, 1_000_000, 1_000_000, 2_000_000, 2_000_000, frozenset(), frozenset({LINK}))],
        CheckedRows.of(seen),
        NUMBERS,
        3_000_000,
    )
    return check


@pytest.mark.parametrize(
    ("kind", "found"), [(FaultKind.CUT, "took_effect"), (FaultKind.PARTITION, "failed")], ids=["cut", "partition"]
)
def test_messages_that_are_always_datagrams_pass_beside_a_link_that_is_cut(kind: FaultKind, found: str) -> None:
    step = FaultStep(0, kind, "between a and b", ("a", "b"), in_effect_us=1_000_000)
    windows = [Window(step, 1_000_000, 1_000_000, 2_000_000, 2_000_000, frozenset(), frozenset({LINK}))]
    arrived = CheckedRows.of([CheckedRow(1_500_000, 1, 7, 0, 0, RowKind.RECEIVE, 186)])
    (check,) = check_faults(windows, arrived, NUMBERS, 3_000_000, (186,))
    assert check.outcome == found
    (check,) = check_faults(windows, arrived, NUMBERS, 3_000_000, (187,))
    assert check.outcome == "failed"


def test_a_datagram_is_not_taken_for_a_message_over_a_link_given_up_before_the_cut() -> None:
    given_up = (500_000, 1, 0, RowKind.LINK_DOWN)
    arrived = (1_500_000, 1, 0, RowKind.RECEIVE)
    assert cut_after_a_kill(given_up, arrived).outcome == "took_effect"
    assert cut_after_a_kill(arrived).outcome == "failed"
    assert cut_after_a_kill(given_up, (700_000, 1, 0, RowKind.LINK_UP), arrived).outcome == "failed"


def test_a_datagram_is_not_taken_for_a_message_over_a_link_whose_ends_both_died() -> None:
    """The schedule ferry/best_effort 2700558: neither end could say that the link went."""
    restarted = (1_200_000, 1, -1, RowKind.START)
    arrived = (1_500_000, 1, 0, RowKind.RECEIVE)
    assert cut_after_a_kill(restarted, arrived).outcome == "took_effect"
    assert cut_after_a_kill(restarted, (1_300_000, 0, 1, RowKind.LINK_UP), arrived).outcome == "failed"
    assert cut_after_a_kill((1_200_000, 5, -1, RowKind.START), arrived).outcome == "failed", "another node"
    assert cut_after_a_kill(arrived, (1_600_000, 1, -1, RowKind.START)).outcome == "failed", "later"


def test_a_datagram_of_a_client_that_comes_while_its_link_is_cut_is_not_taken_for_a_message_over_it() -> None:
    """A guided hunt found it: no row says that a link goes down that never was up."""
    comes, up = (1_200_000, 1, -1, RowKind.START), (9_000_000, 1, 0, RowKind.LINK_UP)
    arrived = (1_500_000, 1, 0, RowKind.RECEIVE)
    assert cut_after_a_kill(comes, arrived, up, first=True).outcome == "took_effect"
    assert cut_after_a_kill(comes, (1_300_000, 1, 0, RowKind.LINK_UP), arrived, first=True).outcome == "failed"
    assert cut_after_a_kill(comes, arrived, first=True).outcome == "failed", "it may be one of those without links"


def test_a_datagram_beside_a_delayed_link_is_not_taken_for_a_message_over_it() -> None:
    over = [(1, 1_000, 6_000), (2, 2_000, 7_100)]
    beside = [(3, 3_000, 3_500)]
    assert checked(DELAYED, [*over, *beside]).outcome == "failed", "one kind of message"
    assert checked(DELAYED, over, beside).outcome == "took_effect"
    pushed = [(number, sent_us + 200, sent_us + 700) for number, sent_us, _ in over]
    assert checked(DELAYED, over, [*beside, *pushed]).outcome == "took_effect", "the same events beside the link, too"


def test_messages_that_are_always_datagrams_say_nothing_of_a_link() -> None:
    beside = [(1, 1_000, 1_500), (2, 2_000, 2_500)]
    assert checked(DELAYED, beside).outcome == "failed"
    assert checked(DELAYED, beside, datagram_kinds=(0,)).outcome == "not_exercised"


def test_a_link_that_is_taken_away_is_in_force_until_the_rest_has_settled_and_the_next_link_is_the_repair() -> None:
    taken = FaultStep(0, FaultKind.DISCONNECT, "taken", ("b1", "b2"), ordered_us=10, in_effect_us=11)
    made = FaultStep(1, FaultKind.CONNECT, "made", ("b0", "b2"), ordered_us=50, in_effect_us=52)
    windows = fault_windows([taken, made], [(30, 30), (70, 70)], [("b0", "b1"), ("b1", "b2")])
    assert [(each.from_us, each.until_us, each.destroys) for each in windows] == [(10, 30, True), (50, 70, False)]
    repairs = repairs_of(windows, 100)
    assert (repairs.repaired_us, repairs.all_us) == ([52], 52)


UP, DOWN = RowKind.LINK_UP, RowKind.LINK_DOWN


@pytest.mark.parametrize(
    ("kind", "rows", "outcome"),
    [
        (FaultKind.CONNECT, [(100, 0, UP), (300, 1, UP)], "took_effect"),
        (FaultKind.CONNECT, [(99, 0, UP), (300, 1, UP)], "not_exercised"),
        (FaultKind.CONNECT, [(100, 0, UP), (301, 1, UP)], "not_exercised"),
        (FaultKind.DISCONNECT, [(100, 0, DOWN)], "took_effect"),
        (FaultKind.DISCONNECT, [(99, 0, DOWN)], "not_exercised"),
        (FaultKind.DISCONNECT, [(100, 0, DOWN), (200, 0, UP)], "took_effect"),
        (FaultKind.DISCONNECT, [(100, 0, DOWN), (201, 0, UP)], "failed"),
    ],
    ids=["comes", "had come", "comes too late", "goes", "had gone", "goes, and came just until then", "comes again"],
)
def test_a_change_of_the_overlay_is_seen_from_its_very_instant_on(
    kind: FaultKind, rows: Sequence[tuple[int, int, RowKind]], outcome: str
) -> None:
    """It is ordered at 100, in effect at 200, and all has settled at 300; rows: time_us, node and kind."""
    step = FaultStep(0, kind, "change a-b", ("a", "b"), ordered_us=100, in_effect_us=200)
    seen = CheckedRows.of([CheckedRow(time_us, node, NONE, 0, 1 - node, row, 0) for time_us, node, row in rows])
    (check,) = check_faults(fault_windows([step], [(300, 300)], [("a", "b")]), seen, NUMBERS, 1_000)
    assert check.outcome == outcome


@pytest.mark.parametrize(("back_us", "ended_us"), [((50, 70), 70), ((70, 50), 70), ((50, None), None)])
def test_a_death_from_which_nodes_come_back_one_by_one_ends_with_the_last(
    back_us: Sequence[int | None], ended_us: int | None
) -> None:
    died = FaultStep(0, FaultKind.KILL_ACTOR, "kill a and b", ("a", "b"), ordered_us=10, in_effect_us=11)
    back = [
        FaultStep(number, FaultKind.RESTART, f"restart {name}", (name,), ordered_us=at_us, in_effect_us=at_us)
        for number, (name, at_us) in enumerate(zip("ab", back_us, strict=True), 1)
        if at_us is not None
    ]
    windows = fault_windows([died, *sorted(back, key=lambda step: step.ordered_us or 0)], [], [])
    (check,) = check_faults(windows, CheckedRows.of([]), NUMBERS, 1_000)
    assert (check.until_us, check.outcome) == (ended_us, "took_effect")


@pytest.mark.parametrize(
    ("issued", "hindrance", "outcome"),
    [
        ([(RowKind.PUBLISH, 7, 55)], None, "took_effect"),
        ([(RowKind.PUBLISH, 7, 49), (RowKind.PUBLISH, 7, 61), (RowKind.PUBLISH, 8, 55)], None, "failed"),
        ([(RowKind.SUBSCRIBE, 7, 55)], None, "failed"),
        ([], (FaultKind.KILL, "c1"), "not_exercised"),
        ([], (FaultKind.KILL, "c2"), "failed"),
        ([], (FaultKind.STALL, "c1"), "failed"),
    ],
    ids=[
        "it did", "at other times, or another", "it did something else", "its process was gone",
        "another one's process was gone", "it was stalled",
    ],
)  # fmt: skip
def test_a_command_of_the_plan_took_effect_if_the_client_did_so_then(
    issued: list[tuple[int, int, int]], hindrance: tuple[FaultKind, str] | None, outcome: str
) -> None:
    step = FaultStep(1, FaultKind.PUBLISH, "publish", ("c1",), ordered_us=50, in_effect_us=60, issuer=7)
    hindered = [] if hindrance is None else [
        FaultStep(0, hindrance[0], "hindrance", (hindrance[1],), ordered_us=30, in_effect_us=30)
    ]  # fmt: skip
    windows = fault_windows([*hindered, step], [], [])
    assert [check.outcome for check in check_commands([step], windows, issued)] == [outcome]
