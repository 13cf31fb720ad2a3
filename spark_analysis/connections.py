"""What a guarantee of exactly-once delivery does not cover: subscribers who did not stay connected.

The guarantee is for subscribers whose client and broker keep their link, and for events that have reached a
publishers' broker. A missing delivery is *explained* if the subscriber was away when the event was published; or went
away later, and until then had got no later event of that publisher (it had not had its turn); or if the publisher
was killed, and until then none of its later events had reached the subscriber (it may have died with it). Nothing
else explains anything: not the death of a broker on the way, not a lossy link.

Plain Python over small tables, for tests as well as for Spark.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pubsub.faults import FaultKind
from pubsub.journal import RowKind
from spark_analysis.fault_windows import NEVER_US, Window

LinkRow = tuple[int, int, str, str]
"""(time_us, RowKind.LINK_UP or LINK_DOWN, node, peer)."""
_DEATHS = (FaultKind.KILL, FaultKind.LOSE_MACHINE)


@dataclass(frozen=True, slots=True)
class Away:
    """From when to when a subscriber's client was without its broker, until its subscriptions had settled again."""

    from_us: int
    until_us: int


def times_away(
    rows: Iterable[LinkRow], settled: Iterable[tuple[int, int]], homes: Mapping[str, str]
) -> dict[str, list[Away]]:
    """Client by client, when it was away; `settled`: (time_us, covers_us) of the SETTLED rows, `homes`: client to
    broker. What happened before anything had settled does not count."""
    settlings = sorted(settled)
    if not settlings:
        return {}
    begun_us = settlings[0][0]
    steps: dict[str, list[tuple[int, int, int]]] = {client: [] for client in homes}
    for time_us, kind, node, peer in rows:
        client = node if homes.get(node) == peer else peer if homes.get(peer) == node else None
        if client is not None and time_us > begun_us:
            steps[client].append((time_us, 0 if kind == RowKind.LINK_DOWN else 1, 0))
    found: dict[str, list[Away]] = {}
    for client, moves in steps.items():
        if moves:
            moves += [(time_us, 2, covers_us) for time_us, covers_us in settlings]
            found[client] = _walk(sorted(moves))
    return found


def _walk(moves: Sequence[tuple[int, int, int]]) -> list[Away]:
    away: list[Away] = []
    down_us = up_us = None
    for time_us, what, covers_us in moves:
        if what == 0:
            down_us = time_us if down_us is None else down_us
            up_us = None
        elif what == 1 and down_us is not None:
            up_us = time_us
        elif what == 2 and down_us is not None and up_us is not None and covers_us >= up_us:
            away.append(Away(down_us, time_us))
            down_us = up_us = None
    if down_us is not None:
        away.append(Away(down_us, NEVER_US))
    return away


@dataclass(frozen=True, slots=True)
class Connections:
    """Explains missing deliveries as `fault_windows.Explainer` does. `homes`: client to broker."""

    away: Mapping[str, Sequence[Away]]
    windows: Sequence[Window]
    homes: Mapping[str, str]
    looks_at_order: ClassVar[bool] = True

    def explain(
        self, finding: str, publisher: str | None, subscriber: str, published_us: int, overtaken_us: int | None
    ) -> str | None:
        """Why the guarantee does not cover the finding, or None. `overtaken_us`: when the subscriber first got a later
        event of the publisher (None: never)."""
        if finding != "missing":
            return None
        for each in self.away.get(subscriber, ()):
            if each.until_us >= published_us and (overtaken_us is None or overtaken_us > each.from_us):
                return f"{subscriber} was not connected to {self.homes[subscriber]}"
        for window in self.windows:
            if window.step.kind not in _DEATHS or window.until_us < published_us:
                continue
            if overtaken_us is not None and overtaken_us <= window.from_us:
                continue
            # What a node published as it died, or has itself subscribed, nobody else can answer for.
            if subscriber in window.nodes or (publisher in window.nodes and published_us <= window.in_effect_us):
                return window.step.text
        return None
