"""The metrics once more, in plain Python over the rows of a small journal: what Spark's tables must say."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from murmur_pubsub.journal import DropReason, RowKind, SideKind, read_side
from murmur_pubsub.journal_rows import read_segment

Row = Mapping[str, int]


def all_rows(journal: Path) -> list[Row]:
    """Every row of a journal."""
    return [
        {name: int(row[name]) for name in row.dtype.names}
        for path in sorted(journal.glob("*.seg"))
        for row in read_segment(path)[1]
    ]


def events_of(journal: Path) -> dict[tuple[int, int], int]:
    """Event to time of publication."""
    return {
        (fields[0], fields[1]): fields[2]
        for path in journal.glob("*.blob")
        for kind, fields in read_side(path)
        if kind is SideKind.EVENT
    }


def of(rows: Iterable[Row], kind: RowKind) -> list[Row]:
    """The rows of a kind."""
    return [row for row in rows if row["kind"] == kind]


def event(row: Row) -> tuple[int, int]:
    """The event a row is about."""
    return row["source"], row["sequence"]


def quantiles_us(delays_us: Sequence[int]) -> tuple[int, int, int, int]:
    """p50, p90, p99, max: the smallest delay that this share is no larger than, four digits kept."""
    ordered = sorted(delays_us)

    def at(percent: int) -> int:
        return four_digits(ordered[-(-percent * len(ordered) // 100) - 1])

    return at(50), at(90), at(99), ordered[-1]


def four_digits(number: int) -> int:
    """25,347 is 25,340."""
    text = str(number)
    return int(text[:4] + "0" * (len(text) - 4))


def delivery_delays_us(rows: Sequence[Row], events: Mapping[tuple[int, int], int]) -> list[int]:
    """From publication to the first delivery of each pair."""
    first: dict[tuple[tuple[int, int], int], int] = {}
    for row in of(rows, RowKind.DELIVER):
        pair = (event(row), row["value"])
        first[pair] = min(row["time_us"], first.get(pair, row["time_us"]))
    return [at - events[pair[0]] for pair, at in first.items()]


def hop_latencies_us(rows: Sequence[Row], brokers: int) -> list[int]:
    """Where an event crossed a link between brokers once: from send to receive."""
    sends, receipts = defaultdict(list), defaultdict(list)
    for row in of(rows, RowKind.SEND):
        sends[event(row), row["node"], row["peer"]].append(row["time_us"])
    for row in of(rows, RowKind.RECEIVE):
        receipts[event(row), row["peer"], row["node"]].append(row["time_us"])
    return [
        receipts[key][0] - at[0]
        for key, at in sends.items()
        if len(at) == 1 == len(receipts[key]) and key[1] < brokers and key[2] < brokers
    ]


def messages(rows: Sequence[Row]) -> dict[int, tuple[int, int, int]]:
    """Message kind to (sent, bytes, received)."""
    kinds = {row["value"] for row in (*of(rows, RowKind.SEND), *of(rows, RowKind.RECEIVE))}
    return {
        kind: (
            sum(row["value"] == kind for row in of(rows, RowKind.SEND)),
            sum(row["bytes"] for row in of(rows, RowKind.SEND) if row["value"] == kind),
            sum(row["value"] == kind for row in of(rows, RowKind.RECEIVE)),
        )
        for kind in kinds
    }


def drops(rows: Sequence[Row]) -> dict[str, int]:
    """Reason to messages dropped."""
    return dict(Counter(DropReason(row["value"]).name.lower() for row in of(rows, RowKind.DROP)))


def broker_events(rows: Sequence[Row], home: Mapping[int, int], brokers: int) -> dict[int, tuple[int, int, int]]:
    """Broker to (events that reached it, pure forwarder of, interested in); nodes below `brokers` are brokers."""
    reached: dict[int, set[tuple[int, int]]] = defaultdict(set)
    entered: dict[int, set[tuple[int, int]]] = defaultdict(set)
    wanted: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for row in of(rows, RowKind.RECEIVE):
        if row["node"] < brokers and row["sequence"] >= 0:
            reached[row["node"]].add(event(row))
            if row["peer"] >= brokers:
                entered[row["node"]].add(event(row))
    for row in of(rows, RowKind.DELIVER):
        wanted[home[row["node"]]].add(event(row))
    return {
        broker: (
            len(reached[broker]),
            len(reached[broker] - wanted[broker] - entered[broker]),
            len(reached[broker] & wanted[broker]),
        )
        for broker in range(brokers)
    }
