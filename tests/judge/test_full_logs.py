"""Publishers wait while a log is full: what that excuses, by rows and cases made by hand."""

import dataclasses
import functools
from collections.abc import Sequence

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.promise import PUBLISHERS_WAIT, Limits, RedundantEnd
from spark_analysis.changing_overlay import OverlayAt
from spark_analysis.connections import Away, Connections
from spark_analysis.durable_connections import DurableConnections
from spark_analysis.excuses import Case
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window
from spark_analysis.full_logs import FullLog, full_logs, time_waiting
from spark_analysis.given_up import ToldRow
from spark_analysis.passages import ON_THE_WAY_US, Passage
from spark_analysis.stays import Stay

S = 1_000_000
NAMES = ("b0", "b1")
HOMES = {"c0": "b0", "c1": "b1", "c2": "b2", "c3": "b0"}
LINKS = (("b0", "b1"), ("b0", "b2"), *HOMES.items())
OVERLAYS = [OverlayAt(0, LINKS, True)]
STAYS = {client: [Stay(home, 0, NEVER_US)] for client, home in HOMES.items()}
MISSING = Case("missing", "c0", "c1", published_us=5 * S)
C2_IS_AWAY = {"c2": [Away(2 * S, NEVER_US)]}
ONE = (FullLog("b0", 4 * S, 8 * S),)
TO_THE_END = (FullLog("b0", 4 * S, NEVER_US),)


def killed(name: str, at_us: int, until_us: int = NEVER_US) -> Window:
    step = FaultStep(0, FaultKind.KILL, f"kill {name}", (name,))
    return Window(step, at_us, at_us, until_us, until_us, frozenset({name}))


def cut(*ends: str) -> Window:
    step = FaultStep(0, FaultKind.CUT, f"cut {', '.join(ends)}", ends)
    return Window(step, 2 * S, 2 * S, NEVER_US, NEVER_US, links=frozenset({frozenset(ends)}))


def stalled(name: str) -> Window:
    step = FaultStep(0, FaultKind.STALL, f"stall {name}", (name,))
    return Window(step, 2 * S, 2 * S, NEVER_US, NEVER_US, frozenset({name}))


B2_IS_DEAD = (killed("b2", 2 * S),)


def rows(*said: tuple[int, int]) -> list[ToldRow]:
    """What b0 said when: 1 or 0."""
    return [ToldRow(at_us, PUBLISHERS_WAIT, 0, 0, 0, value) for at_us, value in said]


@pytest.mark.parametrize(
    ("said", "windows", "stretches"),
    [
        ([(2 * S, 1), (3 * S, 0)], [], [(2 * S, 3 * S)]),
        ([(2 * S, 1)], [], [(2 * S, NEVER_US)]),
        ([(2 * S, 1), (4 * S, 1), (5 * S, 0)], [killed("b0", 3 * S, 4 * S)], [(2 * S, 5 * S)]),
        ([(2 * S, 1)], [killed("b0", 3 * S, 4 * S)], [(2 * S, 3 * S)]),
        ([(2 * S, 1)], [killed("b1", 3 * S, 4 * S)], [(2 * S, NEVER_US)]),
        ([(S // 2, 1), (3 * S, 0)], [], []),
        ([(3 * S, 0)], [], []),
    ],
    ids=[
        "it goes on", "it does not", "it starts again and is full still", "it starts again", "another one dies",
        "too few had been published", "it was not full",
    ],
)  # fmt: skip
def test_a_log_is_full_from_a_word_to_the_next(
    said: Sequence[tuple[int, int]], windows: Sequence[Window], stretches: Sequence[tuple[int, int]]
) -> None:
    published_us = [S, S, S]
    found = full_logs(rows(*said), NAMES, Limits(waits_above=3), windows, published_us)
    assert [(each.from_us, each.until_us) for each in found] == stretches
    assert not full_logs(rows(*said), NAMES, Limits(), windows, published_us), "who promises nothing of it may not wait"


@pytest.mark.parametrize(
    ("handed_us", "until_us"),
    [(3 * S, None), (4 * S, 8 * S), (7 * S, 8 * S), (8 * S, 8 * S), (9 * S, None), (19 * S, 31 * S)],
)
def test_an_event_waits_while_one_stretch_follows_another(handed_us: int, until_us: int | None) -> None:
    of_another = FullLog("b1", 0, NEVER_US)
    full = [of_another, FullLog("b0", 4 * S, 8 * S), FullLog("b0", 19 * S, 25 * S), FullLog("b0", 25 * S + 9, 31 * S)]
    waiting = time_waiting(full, ["b0"], handed_us, S // 2)
    assert (None if waiting is None else waiting.until_us) == until_us


CASES = {
    "it went on": (ONE, B2_IS_DEAD, MISSING, None),
    "it went on, but the subscriber had withdrawn": (
        ONE, (), MISSING._replace(withdrawn_us=7 * S), "it waited for room in the log of b0 when c1 withdrew",
    ),
    "the subscriber withdrew long after that": (ONE, (), MISSING._replace(withdrawn_us=12 * S), None),
    "the subscriber had a later one before it withdrew": (
        ONE, (), MISSING._replace(withdrawn_us=7 * S, overtaken_us=6 * S), None,
    ),
    "it was full to the end": (TO_THE_END, B2_IS_DEAD, MISSING, "kill b2: the log of b0 stayed full"),
    "it was full to the end, and nobody is away": (TO_THE_END, (), MISSING, None),
    "there is a later one": (TO_THE_END, B2_IS_DEAD, MISSING._replace(overtaken_us=6 * S), None),
    "it had come long before": (TO_THE_END, B2_IS_DEAD, MISSING._replace(published_us=2 * S), None),
    "its publisher was away then": (
        TO_THE_END, B2_IS_DEAD, MISSING._replace(published_us=2 * S, publisher="c3"), "stayed full",
    ),
    "another broker's log was full": ((FullLog("b1", 4 * S, NEVER_US),), B2_IS_DEAD, MISSING, None),
}  # fmt: skip


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize(("full", "windows", "case", "says"), CASES.values(), ids=list(CASES))
def test_what_waits_for_room_is_excused_while_something_is_away(
    full: Sequence[FullLog], windows: Sequence[Window], case: Case, says: str | None, durable: bool
) -> None:
    of_all = ({"c3": [Away(S, 5 * S)]}, windows, HOMES, 30 * S, OVERLAYS)
    if durable:
        judge: Connections = DurableConnections(*of_all, last_us=60 * S, stays=STAYS, full=full)
    else:
        judge = Connections(*of_all, full=full)
    found = judge.explain(case, Passage())
    assert (found is None) == (says is None)
    assert says is None or (found is not None and says in found.text)


FILLERS: dict[str, tuple[Sequence[Window], dict[str, list[Away]], bool, bool, bool]] = {
    "a broker that is dead": (B2_IS_DEAD, {}, True, True, True),
    "a broker that is cut off": ((cut("b0", "b2"),), {}, True, True, True),
    "a client that is not back": ((), C2_IS_AWAY, False, True, False),
    "a client that is dead": ((killed("c2", 2 * S),), C2_IS_AWAY, False, True, False),
    "a client that is cut off": ((cut("c2", "b2"),), C2_IS_AWAY, False, True, False),
    "a client that is stalled": ((stalled("c2"),), {}, True, True, False),
}
"""What may keep a log full: of clients that do not outlive their connection, of durable subscriptions, and if c2 has
never subscribed."""


@pytest.mark.parametrize(("windows", "away", "fills", "fills_durable", "fills_idle"), FILLERS.values(), ids=[*FILLERS])
def test_only_who_lacks_something_keeps_a_log_full(
    windows: Sequence[Window], away: dict[str, list[Away]], fills: bool, fills_durable: bool, fills_idle: bool
) -> None:
    of_all = (away, windows, HOMES, 30 * S, OVERLAYS)
    for idle, wanted in (((), (fills, fills_durable)), (("c2",), (fills_idle, fills_idle))):
        bound = functools.partial(Connections, full=TO_THE_END, idle=frozenset(idle))
        durable = functools.partial(DurableConnections, full=TO_THE_END, idle=frozenset(idle))
        judges = (bound(*of_all), durable(*of_all, last_us=60 * S, stays=STAYS))
        assert tuple(judge.explain(MISSING, Passage()) is not None for judge in judges) == wanted


@pytest.mark.parametrize(
    ("delivered_us", "is_excused"),
    [(8 * S + S // 2, True), (8 * S + ON_THE_WAY_US, True), (8 * S + ON_THE_WAY_US + 1, False), (12 * S, False)],
)
def test_what_waited_may_come_to_a_later_subscriber(delivered_us: int, is_excused: bool) -> None:
    early = Case("spurious", "c0", "c1", 5 * S, delivered_us, early=True)
    judge = Connections({}, (), HOMES, 30 * S, OVERLAYS, full=ONE)
    assert (judge.explain(early, Passage()) is not None) == is_excused


@pytest.mark.parametrize("full", [(), (FullLog("b0", 4 * S, 45 * S),)], ids=["there was room", "a log was full"])
def test_what_a_fault_held_up_until_a_log_was_full_may_be_held_up_for_longer(full: Sequence[FullLog]) -> None:
    """Its client stood still when it was published, and went on when the log had no room."""
    still = dataclasses.replace(stalled("c0"), undone_us=5 * S, until_us=5 * S)
    bound = Connections({}, [still], HOMES, 30 * S, OVERLAYS, full=full)
    durable = DurableConnections({}, [still], HOMES, 30 * S, OVERLAYS, last_us=60 * S, stays=STAYS, full=full)
    withdrawn = MISSING._replace(published_us=2 * S, withdrawn_us=50 * S)
    early = Case("spurious", "c0", "c1", 2 * S, delivered_us=50 * S, early=True)
    for judge, case in ((bound, withdrawn), (durable, withdrawn), (bound, early), (durable, early)):
        assert (judge.explain(case, Passage()) is not None) == bool(full), (judge, case)


def test_of_redundant_brokers_either_may_be_full() -> None:
    end = RedundantEnd("b0", "b1", "b2", S, 40)
    full = [FullLog("b1", 4 * S, NEVER_US)]
    known = (C2_IS_AWAY, (), HOMES, 30 * S, OVERLAYS, False, True, 60 * S, STAYS)
    assert DurableConnections(*known, redundant=[end], full=full).explain(MISSING, Passage()) is not None
    assert DurableConnections(*known, full=full).explain(MISSING, Passage()) is None


@pytest.mark.parametrize(("handed_us", "later_us", "goes_on"), [(3, 10, True), (8, 10, True), (3, 12, False)])
def test_what_waited_at_one_of_two_brokers_waits_on_at_the_one_that_takes_over(
    handed_us: int, later_us: int, goes_on: bool
) -> None:
    full = [FullLog("b0", 2 * S, 7 * S), FullLog("b1", later_us * S, NEVER_US)]
    waiting = time_waiting(full, ["b0", "b1"], handed_us * S, within_us=S, taken_over_us=2 * S)
    assert waiting == (FullLog("b1", 2 * S, NEVER_US) if goes_on else full[0])
    assert time_waiting(full, ["b0"], handed_us * S, S, 2 * S) == (full[0] if handed_us <= 7 else None)
    end = RedundantEnd("b0", "b1", "b2", 2 * S, 40)
    known = (C2_IS_AWAY, (), HOMES, 30 * S, OVERLAYS, False, True, 60 * S, STAYS)
    judge = DurableConnections(*known, redundant=[end], full=full)
    assert (judge.explain(MISSING._replace(published_us=handed_us * S), Passage()) is not None) == goes_on
