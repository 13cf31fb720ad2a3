"""What is a finding, and what excuses one: run folders built row by row, by the plain judge."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import FaultStage, Phase, RowKind
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.promise import Promise
from murmur_pubsub.run_manifest import FaultEntry, read_manifest, write_manifest
from spark_analysis.history import History, WrittenRows, read_history
from spark_analysis.plain_judge import (
    Judgement,
    PlainVerdict,
    delay_quantile_us,
    judge_history,
    judge_plainly,
    judge_run,
)
from spark_analysis.rules import Rules
from tests.spark.run_folder import PUBLISHER_ORDER, RunFolder

S = 1_000_000
LINKS = (("b0", "b1"), ("c0", "b0"), ("c1", "b1"))
STALL = FaultEntry("stall b1", FaultKind.STALL, nodes=("b1",))
RESUME = FaultEntry("resume b1", FaultKind.RESUME, nodes=("b1",))
KILL = FaultEntry("kill b1", FaultKind.KILL, nodes=("b1",))
REORDER = FaultEntry(
    "reorder b0-b1", FaultKind.CHANGE_LINK, nodes=("b0", "b1"), link=LinkSpec(reordering=0.5, reordering_us=10_000)
)


def begun(folder: Path, promise: Promise = PUBLISHER_ORDER) -> RunFolder:
    """c1 has a subscriber 1 that wants what c0 publishes."""
    run = RunFolder(folder, promise=promise)
    run.phase(0, Phase.PUBLISHING)
    run.subscribe("c1", 1, 1, "x > 0")
    run.settled(2, 1)
    return run


def judged(run: RunFolder, *faults: tuple[int, FaultEntry]) -> Judgement:
    """What is said of the run with these faults, each with the time at which it was ordered and took effect."""
    for place, (at_us, entry) in enumerate(faults):
        for stage in FaultStage:
            run.row("driver", at_us, RowKind.FAULT, sequence=place, hops=int(stage), value=entry.kind)
    finished = run.finish()
    entries = tuple(entry for _, entry in faults)
    write_manifest(finished, replace(read_manifest(finished), links=LINKS, faults=entries))
    return judge_run(finished)


# ------------------------------------------------------------------------------------------- spurious deliveries
@pytest.mark.parametrize(
    ("at_us", "number", "subscriber"),
    [(110, 0, 2), (110, 0, 3), (110, 9, 1), (99, 0, 1)],
    ids=["it wants others", "nobody knows it", "no such event", "not published yet"],
)
def test_a_delivery_that_no_subscription_allows_is_spurious_as_often_as_it_is_made(
    tmp_path: Path, at_us: int, number: int, subscriber: int
) -> None:
    run = begun(tmp_path / "run")
    run.subscribe("c1", 1, 2, "x < 0")
    run.publish("c0", 100, 0, 0, {"x": 1})
    for _ in range(2):
        run.deliver("c1", at_us, 0, number, subscriber)
    judgement = judged(run)
    pair = ((0, number), subscriber)
    was_wanted = (number, subscriber) == (0, 1)
    assert judgement.pairs.spurious == [pair] * (1 if was_wanted else 2)
    assert judgement.pairs.duplicate == [pair] * was_wanted
    assert judgement.pairs.early == set()
    assert (judgement.numbers["verdict"], judgement.numbers["spurious"]) == ("invalid", 2 - was_wanted)


def test_a_delivery_may_seem_to_be_made_before_the_publication_by_as_much_as_clocks_are_apart(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    for number in range(2):
        run.publish("c0", 100, 0, number, {"x": 1})
    for number, at_us in enumerate((90, 89)):
        run.deliver("c1", at_us, 0, number, 1)
    verdict = judge_history(read_history(run.finish() / "journal"), Rules(clocks_us=10))
    assert verdict.spurious == [((0, 1), 1)]


@pytest.mark.parametrize(
    ("rules", "grace_us"),
    [(Rules(), 0), (Rules(subscription_grace_us=10), 10), (None, S)],
    ids=["none", "stated", "default"],
)
def test_an_event_may_arrive_that_was_published_no_longer_than_the_grace_before_its_subscription(
    tmp_path: Path, rules: Rules | None, grace_us: int
) -> None:
    run = RunFolder(tmp_path / "run")
    run.subscribe("c1", 5 * S, 1, "x > 0")
    for number in range(2):
        run.publish("c0", 5 * S - grace_us - number, 0, number, {"x": 1})
        run.deliver("c1", 5 * S + number, 0, number, 1)
    journal = run.finish() / "journal"
    verdict = judge_plainly(journal) if rules is None else judge_history(read_history(journal), rules)
    assert verdict.spurious == [((0, 1), 1)]
    assert verdict.early == {((0, 1), 1)}


@pytest.mark.parametrize("stalled", [True, False])
def test_an_event_that_a_fault_held_up_may_come_to_who_subscribed_meanwhile_and_to_nobody_who_never_asked(
    tmp_path: Path, stalled: bool
) -> None:
    """b1 passes the event on two seconds later. After one second subscriber 2 asks for it, and 3 for something else; 4
    had withdrawn before it was published."""
    run = begun(tmp_path / "run")
    run.subscribe("c1", 3, 4, "x > 0")
    run.subscribe("c1", 4, 4, "x > 0", withdrawn=True)
    run.settled(5, 4)
    run.publish("c0", S, 0, 0, {"x": 1})
    run.hop("c0", "b0", S, S + 10, 0, 0)
    run.hop("b0", "b1", S + 20, 3 * S + 10, 0, 0)
    for subscriber, wanted in ((2, "x > 0"), (3, "x < 0")):
        run.subscribe("c1", 2 * S, subscriber, wanted)
    run.hop("b1", "c1", 3 * S + 20, 3 * S + 30, 0, 0)
    for subscriber in (1, 2, 3, 4):
        run.deliver("c1", 3 * S + 30, 0, 0, subscriber)
    run.settled(4 * S, 4 * S - 1)
    begin_us = S // 2 if stalled else 7 * S
    judgement = judged(run, (begin_us, STALL), (begin_us + 2 * S + S // 2, RESUME))
    assert judgement.pairs.spurious == [((0, 0), subscriber) for subscriber in (2, 3, 4)]
    assert judgement.pairs.early == {((0, 0), 2)}
    assert judgement.left("spurious") == judgement.pairs.spurious[1 if stalled else 0 :]


# ------------------------------------------------------------------------------------------- order
@pytest.mark.parametrize(("order", "found"), [("total", [((0, 0), 2), ((1, 0), 1)]), ("publisher", [])])
def test_in_a_total_order_nobody_gets_an_event_after_one_that_another_one_gets_later(
    tmp_path: Path, order: str, found: Sequence[tuple[tuple[int, int], int]]
) -> None:
    """Subscribers 1 and 2 get the first event of each publisher, one this way and one that way."""
    run = begun(tmp_path / "run", Promise(order=order))
    run.subscribe("c0", 1, 2, "x > 0")
    for source in range(2):
        run.publish("c0", 100, source, 0, {"x": 1})
    for at_us in (110, 120):
        run.deliver("c1", at_us, (at_us - 110) // 10, 0, 1)
        run.deliver("c0", at_us, (120 - at_us) // 10, 0, 2)
    assert judged(run).pairs.out_of_order == found


@pytest.mark.parametrize("overtaken", [True, False], ids=["overtaken on the link", "exchanged behind it"])
def test_a_link_that_reorders_excuses_what_was_overtaken_there_and_not_what_came_over_it_in_order(
    tmp_path: Path, overtaken: bool
) -> None:
    run = begun(tmp_path / "run")
    for number in range(2):
        at_us = S + 100 * number
        run.publish("c0", at_us, 0, number, {"x": 1})
        run.hop("c0", "b0", at_us, at_us + 10, 0, number)
    for number in (1, 0) if overtaken else (0, 1):
        run.hop("b0", "b1", S + 200 + number, S + 300 + 10 * (number != overtaken), 0, number)
    for place, number in enumerate((1, 0)):
        at_us = S + 400 + 100 * place
        run.hop("b1", "c1", at_us, at_us + 10, 0, number)
        run.deliver("c1", at_us + 10, 0, number, 1)
    judgement = judged(run, (S // 2, REORDER))
    assert judgement.pairs.out_of_order == [((0, 0), 1)]
    assert judgement.left("out_of_order") == ([] if overtaken else [((0, 0), 1)])


# ------------------------------------------------------------------------------------------- what the journal shows
@pytest.mark.parametrize("received", [True, False])
@pytest.mark.parametrize("faulty", [True, False])
def test_what_a_node_delivers_that_it_never_received_is_told_where_a_fault_might_excuse_findings(
    tmp_path: Path, faulty: bool, received: bool
) -> None:
    """b1 is down while the second event is published, which is missing."""
    run = begun(tmp_path / "run")
    for number in range(2):
        at_us = S * (1 + number)
        run.publish("c0", at_us, 0, number, {"x": 1})
        run.hop("c0", "b0", at_us, at_us + 10, 0, number)
    run.hop("b0", "b1", S + 20, S + 30, 0, 0)
    if received:
        run.hop("b1", "c1", S + 40, S + 50, 0, 0)
    run.deliver("c1", S + 50, 0, 0, 1)
    run.hop("b0", "b1", 2 * S + 20, None, 0, 1)
    judgement = judged(run, *[(S + S // 2, KILL)] * faulty)
    told = "nothing is excused: c1 had 0:0, and the journal does not show how it came there"
    assert judgement.pairs.missing == [((0, 1), 1)]
    assert (told in judgement.numbers["reason"]) == (faulty and not received)
    assert (judgement.left("missing") == []) == (faulty and received)


def test_a_killed_node_that_writes_rows_shows_that_the_kill_took_no_effect(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    run.publish("c0", S, 0, 0, {"x": 1})
    run.deliver("c1", S + 100, 0, 0, 1)
    run.row("b1", 3 * S, RowKind.LINK_DOWN, "b0")
    run.phase(4 * S, Phase.STOPPED)
    judgement = judged(run, (2 * S, KILL))
    assert [(check.outcome, check.seen) for check in judgement.checks] == [
        ("failed", "1 rows (LINK_DOWN) where there should be silence")
    ]
    assert judgement.numbers["finding"] == "faults_failed"


# ------------------------------------------------------------------------------------------- delays
@pytest.mark.parametrize(
    ("delays_us", "part", "quantile_us"),
    [
        ([5], 0.99, 5.0),
        ([0], 0.99, 0.0),
        ([-3], 0.99, 0.0),
        ([9_999], 0.99, 9_999.0),
        ([12_345], 0.99, 12_340.0),
        (range(1, 101), 0.99, 99.0),
        (range(1, 102), 0.99, 100.0),
        (range(1, 101), 0.0, 1.0),
        ([], 0.99, None),
    ],
)
def test_a_quantile_is_the_first_delay_that_is_no_shorter_than_that_part_of_all_with_four_digits_kept(
    delays_us: Sequence[int], part: float, quantile_us: float | None
) -> None:
    """A delay below zero, of clocks that are apart, counts as none."""
    events = {(0, number): (100, b"") for number in range(len(delays_us))}
    pairs = PlainVerdict(first_us={((0, number), 1): 100 + delay_us for number, delay_us in enumerate(delays_us)})
    assert delay_quantile_us(History(events, {}, WrittenRows(b"")), pairs, part) == quantile_us
