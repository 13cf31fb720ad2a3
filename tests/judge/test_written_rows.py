"""The rows of a journal that are kept as bytes, beside the same rows as a list."""

import random
from pathlib import Path

import pytest

from murmur_pubsub.journal import NONE, JournalWriter, RowKind
from murmur_pubsub.journal_format import ROW, JournalRow
from spark_analysis.checked_rows import LINK_CHANGES, CheckedRow, CheckedRows
from spark_analysis.history import WrittenRows, read_history

KINDS = (RowKind.START, RowKind.LINK_UP, RowKind.LINK_DOWN, RowKind.SEND, RowKind.RECEIVE, RowKind.DELIVER)
SEEDS = range(20)


def drawn_rows(seed: int) -> list[JournalRow]:
    """Rows of four nodes, not in order of time, as of several writers."""
    rng = random.Random(seed)
    return [
        JournalRow(
            rng.randrange(200), rng.choice((NONE, 0, 1, 2)), rng.randrange(3), rng.randrange(4), rng.randrange(-1, 2),
            rng.randrange(4), rng.randrange(9), rng.randrange(3), rng.choice(KINDS),
        )
        for _ in range(rng.randrange(1, 120))
    ]  # fmt: skip


def written(rows: list[JournalRow]) -> WrittenRows:
    """The same as bytes."""
    return WrittenRows(b"".join(ROW.pack(*row) for row in rows))


def checked(row: JournalRow) -> CheckedRow:
    """What checks look at of it."""
    return CheckedRow(row.time_us, row.node, row.source, row.sequence, row.peer, row.kind, row.value)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_picked_from_the_bytes_as_from_a_list(seed: int) -> None:
    rows, rng = drawn_rows(seed), random.Random(seed)
    kept, kinds = written(rows), rng.sample(KINDS, 2)
    of_kinds = [row for row in rows if row.kind in kinds]
    assert kept.of(*kinds) == of_kinds
    assert len(kept) == len(rows)
    assert kept.last_us == max(row.time_us for row in rows)
    assert kept.ids(*kinds) == {(row.sequence, row.node, row.source) for row in of_kinds}
    events = {(0, 1), (1, 2), (7, 7)}
    assert kept.about(events, *kinds) == [row for row in of_kinds if (row.source, row.sequence) in events]
    assert [kind for kind in KINDS if kept.has(kind)] == [kind for kind in KINDS if any(kind == r.kind for r in rows)]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_checks_look_at_is_of_each_node_in_order_of_time(seed: int) -> None:
    rows, rng = drawn_rows(seed), random.Random(seed)
    nodes = rng.sample(range(5), 3)
    from_us, until_us = sorted(rng.sample(range(210), 2))
    expected = [
        checked(row)
        for node in nodes
        for row in sorted(rows, key=lambda row: row.time_us)
        if row.node == node and from_us < row.time_us < until_us
    ]
    assert written(rows).checked(nodes).between(nodes, from_us, until_us) == expected
    assert CheckedRows.of(map(checked, rows)).between(nodes, from_us, until_us) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_a_link_is_there_unless_it_was_lost_or_an_end_began_since_it_came_up(seed: int) -> None:
    rows = drawn_rows(seed)
    changes = [row for row in rows if row.kind in LINK_CHANGES]
    kept = written(rows).checked(range(4))

    def last(until_us: int, kind: RowKind, *ends: set[int]) -> int:
        """When such a row was written last; -1: never."""
        return max(
            (row.time_us for row in changes if row.time_us <= until_us and is_about(row, kind, *ends)), default=-1
        )

    def is_about(row: JournalRow, kind: RowKind, ends: set[int]) -> bool:
        if kind == RowKind.START:
            return row.kind == kind and row.node in ends and (row.value > 0 or last(201, RowKind.LINK_UP, ends) >= 0)
        return row.kind == kind and {row.node, row.peer} == ends

    for first in range(4):
        for second in range(4):
            ends = {first, second}
            for time_us in range(0, 201, 5):
                lost_us = max(last(time_us, kind, ends) for kind in (RowKind.LINK_DOWN, RowKind.START))
                there = lost_us <= last(time_us, RowKind.LINK_UP, ends)
                assert kept.linked((first, second), time_us) == there, (first, second, time_us)


def test_a_subscription_has_settled_when_everybody_first_knew_of_what_had_changed_until_then(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, "run", 0)
    for at_us, covers_us in ((50, 10), (90, 40), (70, 45)):
        writer.row(at_us, RowKind.SETTLED, 0, value=covers_us)
    for subscriber, issued_us in enumerate((5, 10, 11, 42, 46)):
        writer.side(2, (issued_us, 0, subscriber, "x > 1", subscriber))
    writer.close()
    lives = read_history(tmp_path).lives
    assert [lives[subscriber][0].settled_us for subscriber in range(5)] == [50, 50, 70, 70, float("inf")]
