"""What a publishers' broker has refused reaches nobody: hand-made histories, by the plain judge."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from murmur_pubsub.promise import Limits, Promise
from murmuration.commands.trace import trace_event
from spark_analysis.given_up import REFUSED_AND_DELIVERED
from spark_analysis.plain_judge import judge_run
from tests.spark.run_folder import RunFolder

DURABLE = Promise("exactly_once", durable=True, limits=Limits(refuses_above=3))
EVENTS = 6
REFUSED = 4
"""The number of the event that is refused: as many as may be kept were published before it."""


def refused_run(
    folder: Path,
    told_us: Sequence[int] = (1_450,),
    delivered_us: Sequence[int] = (),
    number: int = REFUSED,
    restarted: bool = False,
    promise: Promise = DURABLE,
    stray: bool = False,
) -> Path:
    """c0 publishes six events, 100 us apart; c1 gets each but the one that is refused, and that at these times. The
    subscriber of c1 that `stray` delivers to has asked for nothing."""
    run = RunFolder(folder, promise=promise)
    run.subscribe("c1", 1, 7, "x >= 0")
    run.settled(2, 2)
    for sequence in range(EVENTS):
        run.publish("c0", 1_000 + 100 * sequence, 0, sequence, {"x": sequence})
    for at_us in told_us:
        run.refused("c0", at_us, 0, number)
        if restarted:
            run.restart("c0", 1)
    got = [(1_050 + 100 * sequence, sequence) for sequence in range(EVENTS) if sequence != number]
    for at_us, sequence in sorted([*got, *((at_us, number) for at_us in delivered_us)]):
        run.deliver("c1", at_us, 0, sequence, 8 if stray and sequence == number else 7)
    return run.finish()


@pytest.mark.parametrize(
    ("told_us", "restarted"),
    [((1_450,), False), ((1_450, 1_700), False), ((1_450,), True)],
    ids=["told once", "told twice", "its client starts again"],
)
def test_what_was_refused_and_reached_nobody_is_no_finding(
    tmp_path: Path, told_us: Sequence[int], restarted: bool
) -> None:
    judgement = judge_run(refused_run(tmp_path / "run", told_us, restarted=restarted))
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    assert judgement.pairs.missing == [((0, REFUSED), 7)]
    assert judgement.numbers["explained"] == 1
    assert judgement.pairs.refused == set()


@pytest.mark.parametrize("delivered_us", [1_440, 1_460, 9_000], ids=["before the word", "after it", "long after it"])
def test_what_was_refused_and_is_delivered_all_the_same_is_spurious(
    tmp_path: Path, delivered_us: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run = refused_run(tmp_path / "run", delivered_us=(delivered_us,))
    judgement = judge_run(run)
    assert judgement.numbers["verdict"] == "invalid"
    assert (judgement.numbers["finding"], judgement.numbers["missing"]) == ("spurious", 0)
    assert judgement.left("spurious") == [((0, REFUSED), 7)]
    told = f"1 deliveries were spurious ({REFUSED_AND_DELIVERED}, the first 0:{REFUSED})"
    assert str(judgement.numbers["reason"]).startswith(told)
    assert judgement.first_findings(3) == [f"spurious: event 0:{REFUSED} for subscriber 7: {REFUSED_AND_DELIVERED}"]
    trace_event(run, f"0:{REFUSED}", tmp_path / "way.svg")
    assert "* c0 is told that it was refused" in capsys.readouterr().out


def test_what_was_refused_and_comes_twice_is_spurious_and_a_duplicate(tmp_path: Path) -> None:
    judgement = judge_run(refused_run(tmp_path / "run", delivered_us=(1_460, 1_470)))
    assert (judgement.numbers["spurious"], judgement.numbers["duplicate"]) == (1, 1)


@pytest.mark.parametrize(("other_us", "first"), [(1_390, "1:0"), (1_410, f"0:{REFUSED}")])
def test_of_what_was_refused_and_delivered_the_first_is_what_was_published_first(
    tmp_path: Path, other_us: int, first: str
) -> None:
    """c0's was published at 1400 us. Neither the publisher's number counts nor what is in the event."""
    run = RunFolder(tmp_path / "run", promise=DURABLE)
    run.subscribe("c1", 1, 7, "x >= 0")
    run.settled(2, 2)
    for sequence in range(REFUSED + 1):
        run.publish("c0", 1_000 + 100 * sequence, 0, sequence, {"x": 5})
    run.publish("c1", other_us, 1, 0, {"x": 5 + (other_us < 1_400)})
    for client, source, number in (("c0", 0, REFUSED), ("c1", 1, 0)):
        run.refused(client, 1_450, source, number)
        run.deliver("c1", 1_460, source, number, 7)
    assert f"the first {first})" in str(judge_run(run.finish()).numbers["reason"])


def test_what_was_refused_and_reaches_somebody_who_had_not_asked_is_told_as_refused(tmp_path: Path) -> None:
    judgement = judge_run(refused_run(tmp_path / "run", delivered_us=(1_460, 1_470), stray=True))
    assert judgement.pairs.spurious == [((0, REFUSED), 8)] * 2
    assert judgement.pairs.refused == {((0, REFUSED), 8)}


def test_a_refusal_without_room_being_short_excuses_nothing_also_if_it_is_told_again_later(tmp_path: Path) -> None:
    """The first word counts: by then two events were published, and three may be kept."""
    judgement = judge_run(refused_run(tmp_path / "run", (1_110, 1_600), number=1))
    assert judgement.numbers["finding"] == "missing"
    assert judgement.left("missing") == [((0, 1), 7)]


def test_rows_of_that_topic_mean_nothing_where_no_subscription_is_durable(tmp_path: Path) -> None:
    """A topic is a protocol's own."""
    run = refused_run(tmp_path / "run", delivered_us=(1_460,), promise=Promise("exactly_once"))
    assert judge_run(run).numbers["verdict"] == "valid"
