"""What the rows of one event say of messages that were lost."""

import pytest

from murmur_pubsub.journal import NONE, DropReason, RowKind
from spark_analysis.passages import HopRow, Loss, passage_of

NAMES = ("a", "b")
SENT = (10, RowKind.SEND, 0, 1, 16)
COPIED = (10, RowKind.DUPLICATE, 0, 1, 0)
CAME = (20, RowKind.RECEIVE, 1, 0, 16)
CAME_AGAIN = (30, RowKind.RECEIVE, 1, 0, 16)
DROPPED = (20, RowKind.DROP, 0, 1, DropReason.LOSS)
UNTOLD = Loss(10, 10, "a", "b", None)


@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        ([SENT], [UNTOLD]),
        ([SENT, CAME], []),
        ([SENT, COPIED, CAME], [UNTOLD, UNTOLD]),
        ([SENT, COPIED, CAME, CAME_AGAIN], []),
        ([SENT, DROPPED], [Loss(10, 20, "a", "b", DropReason.LOSS)]),
        ([DROPPED], [Loss(20, 20, "a", "b", DropReason.LOSS)]),
    ],
    ids=["sent alone", "sent and came", "one of two came", "both came", "dropped on its way", "dropped unsent"],
)
def test_a_message_is_lost_that_neither_came_nor_was_dropped_and_one_that_was_dropped_once(
    rows: list[HopRow], lost: list[Loss]
) -> None:
    passage = passage_of([(5, RowKind.PUBLISH, 0, NONE, 8), *rows], NAMES, hops=True)
    assert passage.lost == lost
