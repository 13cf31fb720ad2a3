"""How long a fault is taken to disturb an overlay without links, whose brokers find failures in their own time."""

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.links import HARD_LIMIT_FACTOR, LinkSpec
from murmur_pubsub.promise import Recovery
from spark_analysis.fault_windows import FaultStep, Window, fault_windows

BROKERS = frozenset({"b0", "b1", "b2"})
RECOVERS = Recovery(repaired_us=50, founded_us=1_000)
KILL, RESTART, PARTITION, UNITE = FaultKind.KILL, FaultKind.RESTART, FaultKind.PARTITION, FaultKind.UNITE
DIVIDED = (("b0",), ("b1", "b2"))


def disturbed(*happened: tuple[int, FaultKind, str], limit_us: int = 10_000) -> list[int]:
    """How long tables are disturbed after each begin of a fault, and after each end."""
    steps = [
        FaultStep(
            number, kind, str(kind), tuple(name.split()), DIVIDED if kind is PARTITION else (),
            ordered_us=at_us, in_effect_us=at_us,
        )
        for number, (at_us, kind, name) in enumerate(happened)
    ]  # fmt: skip
    windows = fault_windows(steps, [], [], limit_us, has_links=False, recovers=RECOVERS, brokers=BROKERS)
    lasting = [(each.in_effect_us, each.absorbed_us) for each in windows]
    lasting += [(each.repaired_us, each.until_us) for each in windows]
    return [end_us - begin_us for begin_us, end_us in sorted(lasting)]


@pytest.mark.parametrize(
    ("others", "lasting"),
    [
        ([], 50),
        ([(120, KILL, "b1")], 50),
        ([(110, KILL, "b1"), (120, KILL, "b2")], 1_050),
        ([(160, KILL, "b1"), (170, KILL, "b2")], 50),
        ([(50, PARTITION, "")], 1_050),
        ([(50, PARTITION, ""), (90, UNITE, "")], 50),
    ],
    ids=["alone", "two of three", "all", "all, but later", "all of its side", "all of its former side"],
)
def test_where_all_brokers_fail_at_once_it_takes_longer_until_there_is_an_overlay_again(
    others: list[tuple[int, FaultKind, str]], lasting: int
) -> None:
    happened = sorted([(100, KILL, "b0"), *others])
    begins = sorted(at_us for at_us, kind, _ in happened if kind is not UNITE)
    assert disturbed(*happened)[begins.index(100)] == lasting


def test_a_broker_that_has_just_come_back_is_not_part_of_the_overlay_yet() -> None:
    others = [(120, KILL, "b1"), (130, KILL, "b2")]
    assert disturbed((50, KILL, "b0"), (90, RESTART, "b0"), *others)[1] == 1_050
    assert disturbed((50, KILL, "b0"), (60, RESTART, "b0"), *others)[1] == 50


def test_what_the_scenario_allows_is_never_exceeded() -> None:
    assert disturbed((100, KILL, "b0"), limit_us=30) == [30, 0]
    assert disturbed((100, KILL, "b0"), (100, KILL, "b1"), (100, KILL, "b2"), limit_us=300)[0] == 300


def test_a_lost_host_is_no_fault_of_a_broker_that_was_dead_before() -> None:
    """It may be started again on another host while its own is lost, and is not silent then."""
    happened = [(KILL, "b0"), (FaultKind.LOSE_HOST, "b0 b1"), (RESTART, "b0")]
    assert hit(*happened) == [(KILL, "b0"), (FaultKind.LOSE_HOST, "b1")]


def test_an_actor_comes_back_without_those_that_were_dead_before_it() -> None:
    """A guided hunt found it: the host of both is lost then, and the dead one is started on another one."""
    actor = [(FaultKind.KILL_ACTOR, "b0 b1"), (FaultKind.RESTART_ACTOR, "b0 b1")]
    lost = (FaultKind.LOSE_HOST, "b0 b1")
    assert hit((KILL, "b0"), *actor, lost, (RESTART, "b0")) == [(KILL, "b0"), (actor[0][0], "b1"), (lost[0], "b1")]
    assert [len(names) for _, *names in hit(*actor, lost)] == [2, 2]
    back = (FaultKind.RETURN_HOST, "b0 b1")
    assert [len(names) for _, *names in hit((KILL, "b0"), lost, back, lost)] == [1, 1, 2]


def test_a_broker_that_was_dead_before_its_actor_is_still_away_when_all_others_fail() -> None:
    actor = "b0 b1"
    happened = [
        (100, KILL, "b0"), (110, FaultKind.KILL_ACTOR, actor), (120, FaultKind.RESTART_ACTOR, actor),
        (300, KILL, "b1"), (310, KILL, "b2"),
    ]  # fmt: skip
    assert disturbed(*happened)[4] == 1_050, "after the last one the overlay is founded anew"
    assert disturbed(*happened[1:])[3] == 50, "without its own death it came back with its actor"


def test_the_return_of_a_host_on_which_nobody_was_yet_is_nothing() -> None:
    assert hit((FaultKind.LOSE_HOST, ""), (FaultKind.RETURN_HOST, "")) == [(FaultKind.LOSE_HOST,)]


def test_with_links_a_client_that_comes_disturbs_tables_and_without_links_a_broker_does() -> None:
    assert hit((RESTART, "c0")) == [(RESTART, "c0")]
    assert hit((RESTART, "b0")) == []
    assert disturbed((100, RESTART, "b0")) == [50, 50]


def test_what_waits_for_a_narrow_link_goes_at_its_rate_when_it_is_mended() -> None:
    link = LinkSpec(messages_per_s=10, queue_messages=1_000)
    step = FaultStep(0, FaultKind.CHANGE_LINK, "narrow b0-b1", ("b0", "b1"), link=link)
    narrow = Window(step, 0, 0, undone_us=1_000_000, until_us=2_000_000)
    assert narrow.carried_us == 1_000_000 + HARD_LIMIT_FACTOR * 100_000_000


def hit(*happened: tuple[FaultKind, str]) -> list[tuple[object, ...]]:
    """The kind of each fault with the nodes that it is of."""
    steps = [
        FaultStep(at_us, kind, str(kind), tuple(names.split()), ordered_us=at_us, in_effect_us=at_us)
        for at_us, (kind, names) in enumerate(happened, 1)
    ]
    windows = fault_windows(steps, [], [], 1_000, has_links=True, recovers=None, brokers=BROKERS)
    return [(each.step.kind, *sorted(each.nodes)) for each in windows]
