"""Whether a changed link did what the change says, as the journal shows it."""

from collections.abc import Sequence

import pandas as pd
import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import NONE, RowKind
from murmur_pubsub.links import Delay, LinkSpec
from spark_analysis.fault_checks import FaultCheck, check_faults
from spark_analysis.fault_windows import FaultStep, Window

LINK = frozenset({"a", "b"})
NUMBERS = {"a": 0, "b": 1}


def checked(link: LinkSpec, passages: Sequence[tuple[int, int, int | None]]) -> FaultCheck:
    """The check of a change in force from 0 to 1 s; passages of events from a to b: sequence, sent_us, received_us."""
    step = FaultStep(0, FaultKind.CHANGE_LINK, "change link a-b", ("a", "b"), link=link, in_effect_us=0)
    rows = []
    for sequence, sent_us, received_us in passages:
        rows.append((sent_us, sequence, 0, 0, 7, 1, 10, 1, RowKind.SEND))
        if received_us is not None:
            rows.append((received_us, sequence, 0, 1, 7, 0, 0, 1, RowKind.RECEIVE))
    columns = ["time_us", "sequence", "value", "node", "source", "peer", "bytes", "hops", "kind"]
    frame = pd.DataFrame([(0, 0, 0, 0, NONE, NONE, 0, 0, RowKind.START), *rows], columns=columns)
    (check,) = check_faults(
        [Window(step, 0, 0, 1_000_000, 1_000_000, frozenset(), frozenset({LINK}))], frame, NUMBERS, 2_000_000
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
        (REORDERING, [(1, 1_000, 9_000), (2, 2_000, 2_100)], "took_effect"),
        (REORDERING, [(number, 100 * number, 100 * number + 50) for number in range(1, 200)], "failed"),
        (REORDERING, [(number, 100 * number, 100 * number + 50) for number in range(1, 5)], "not_exercised"),
    ],
)
def test_a_change_is_seen_in_what_passed(
    link: LinkSpec, passages: Sequence[tuple[int, int, int | None]], outcome: str
) -> None:
    assert checked(link, passages).outcome == outcome


def test_an_event_sent_again_is_not_taken_for_one_that_was_too_fast() -> None:
    """The first copy arrives after the delay, and so does the second: which was which cannot be told."""
    again = [(1, 1_000, 6_000), (1, 10_000, 15_000)]
    assert checked(DELAYED, again).outcome == "not_exercised"
    assert checked(DELAYED, [*again, (2, 20_000, 25_000)]).outcome == "took_effect"


def test_events_sent_again_and_again_do_not_count_as_chances_of_being_overtaken() -> None:
    again = [(1, 1_000, None)] * 150 + [(1, 1_000, 1_100)]
    assert checked(REORDERING, again).outcome == "not_exercised"
