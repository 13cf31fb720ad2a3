"""A plain judge for tests: the rules of `spark_analysis.judge`, pair by pair, in the plainest Python.

It reads the journal as Spark does and evaluates filters with `Filter.matches`. Quadratic, and meant to be.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from pubsub.event import unpack_attributes
from pubsub.filter_parser import parse_filter
from pubsub.journal import NONE, RowKind, SideKind, read_segment, read_side

Pair = tuple[tuple[int, int], int]
"""(event id, subscriber)."""


@dataclass(slots=True)
class Verdict:
    """Pairs by finding; `delivered` are all pairs delivered."""

    missing: list[Pair] = field(default_factory=list)
    duplicate: list[Pair] = field(default_factory=list)
    spurious: list[Pair] = field(default_factory=list)
    out_of_order: list[Pair] = field(default_factory=list)
    required_pairs: frozenset[Pair] = frozenset()
    delivered: frozenset[Pair] = frozenset()

    @property
    def required(self) -> int:
        """How many pairs were required."""
        return len(self.required_pairs)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """missing, duplicate, spurious, out of order."""
        return len(self.missing), len(self.duplicate), len(self.spurious), len(self.out_of_order)


def judge(journal: Path, grace_us: int = 100_000) -> Verdict:
    """Judge the journal folder of one run."""
    events = {}
    issued: dict[tuple[int, str], list[list[float]]] = defaultdict(list)
    known = set()
    for path in sorted(journal.glob("*.blob")):
        for kind, fields in read_side(path):
            if kind is not SideKind.EVENT and fields[4] != NONE:
                if (fields[1], fields[4]) in known:
                    continue  # issued again after a restart
                known.add((fields[1], fields[4]))
            if kind is SideKind.EVENT:
                events[fields[0], fields[1]] = (fields[2], unpack_attributes(fields[3]))
            elif kind is SideKind.SUBSCRIBE:
                issued[fields[2], fields[3]].append([fields[0], float("inf")])
            else:
                held = [span for span in issued[fields[2], fields[3]] if span[1] == float("inf")]
                if held:
                    held[0][1] = fields[0]
    settled, deliveries = [], []
    for path in sorted(journal.glob("*.seg")):
        _, rows = read_segment(path)
        for row in rows:
            if row["kind"] == RowKind.SETTLED:
                settled.append((int(row["value"]), int(row["time_us"])))
            elif row["kind"] == RowKind.DELIVER:
                event = (int(row["source"]), int(row["sequence"]))
                deliveries.append((event, int(row["value"]), int(row["time_us"])))

    def settled_at(time_us: float) -> float:
        return min((at for value, at in settled if value >= time_us), default=float("inf"))

    subscriptions: dict[int, list[tuple[object, float, float, float]]] = defaultdict(list)
    for (subscriber, text), spans in issued.items():
        for begin, end in spans:
            subscriptions[subscriber].append((parse_filter(text), begin, settled_at(begin), end))
    verdict = Verdict(delivered=frozenset((event, subscriber) for event, subscriber, _ in deliveries))
    counted = Counter((event, subscriber) for event, subscriber, _ in deliveries)
    required = set()
    for event, (published_us, attributes) in events.items():
        for subscriber, held in subscriptions.items():
            if any(
                wanted.matches(attributes) and at <= published_us and published_us <= end - grace_us
                for wanted, _, at, end in held
            ):
                required.add((event, subscriber))
    verdict.required_pairs = frozenset(required)
    verdict.missing = sorted(required - set(counted))
    verdict.duplicate = sorted(pair for pair, count in counted.items() if count > 1)
    latest: dict[tuple[int, int], int] = {}
    seen = set()
    for event, subscriber, delivered_us in deliveries:
        published_us, attributes = events.get(event, (None, {}))
        if published_us is None or not any(
            wanted.matches(attributes) and begin <= delivered_us and published_us <= settled_at(end) + grace_us
            for wanted, begin, _, end in subscriptions[subscriber]
        ):
            verdict.spurious.append((event, subscriber))
        if (event, subscriber) not in seen:
            seen.add((event, subscriber))
            if event[1] < latest.get((subscriber, event[0]), -1):
                verdict.out_of_order.append((event, subscriber))
            latest[subscriber, event[0]] = max(latest.get((subscriber, event[0]), -1), event[1])
    return verdict
