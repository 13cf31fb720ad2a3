"""What rows in arrays add up to (`murmur_page.counted`), for runs of millions."""

import numpy as np

from murmur_page.counted import CROSSINGS, NEVER_SENT, TOLD, Counted, Crossing, Handled
from murmur_pubsub.journal import NONE, RowKind


def counted_rows(rows: np.ndarray, nodes: int) -> Counted:
    """Of rows of dtype `ROW_TYPE`; `nodes`: how many nodes the run has."""
    kinds = rows["kind"]
    found = Counted(told=rows[np.isin(kinds, TOLD)].tolist())
    for kind in CROSSINGS:
        _count(found, rows[(kinds == kind) & (rows["peer"] != NONE)], RowKind(kind), nodes)
    found.published, found.delivered = (_handled(rows[kinds == each]) for each in (RowKind.PUBLISH, RowKind.DELIVER))
    own = rows[kinds == RowKind.PROTOCOL]
    found.measured = list(zip(*(own[name].tolist() for name in ("node", "bytes", "value")), strict=True))
    lags = rows["value"][kinds == RowKind.LAG]
    found.lag_us = int(lags.max()) if len(lags) else 0
    return found


def _count(found: Counted, part: np.ndarray, kind: RowKind, nodes: int) -> None:
    if not len(part):
        return
    back = kind == RowKind.RECEIVE
    sender, receiver = (part["peer"], part["node"]) if back else (part["node"], part["peer"])
    special = part["value"] == NEVER_SENT if kind == RowKind.DROP else part["source"] != NONE
    keys, places = np.unique(sender.astype(np.int64) * nodes + receiver, return_inverse=True)
    totals = np.bincount(places, minlength=len(keys)).tolist()
    specials = np.bincount(places, weights=special, minlength=len(keys)).astype(int).tolist()
    for key, total, of_them in zip(keys.tolist(), totals, specials, strict=True):
        crossing = found.crossings.setdefault(divmod(key, nodes), Crossing())
        if back:
            crossing.received += total
        elif kind == RowKind.DROP:
            crossing.lost += total
            crossing.unsent += of_them
        else:
            crossing.sent += total
            crossing.carried += of_them


def _handled(rows: np.ndarray) -> list[Handled]:
    events = ((rows["source"].astype(np.int64) << 40) | rows["sequence"]).tolist()
    return list(map(Handled, events, rows["time_us"].tolist(), rows["node"].tolist()))
