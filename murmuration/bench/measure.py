"""What is told of a run of the table: the figures that sweeps compare, and what only a table of systems asks for.

All of them are counted from the journal, in the same way for all systems, by the definitions of
`spark_analysis.metrics`.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from murmur_pubsub.journal import NONE, RowKind
from murmur_pubsub.journal_rows import ROW_TYPE
from murmur_pubsub.run_manifest import RunManifest, read_manifest
from spark_analysis.history import History, read_history
from spark_analysis.key_figures import Figures, figures_of, homes_then
from spark_analysis.plain_judge import Judgement, judgement_of, link_rows
from spark_analysis.stays import stays_of

FIGURES = (
    "delivery_rate", "rate_present", "duplicates", "hops", "overhead", "delay_p50_us", "delay_p99_us", "event_messages",
    "messages", "message_bytes", "recovery_us",
)  # fmt: skip
"""The figures of the table; None: nothing was delivered, sent, or broken."""


def judge_and_measure(run: Path) -> tuple[dict[str, Any], Figures]:
    """The verdict of the judge in plain Python on a run that was just played, and the figures of the table."""
    manifest = read_manifest(run)
    history = read_history(manifest.journal_at(run))
    judgement = judgement_of(manifest, history)
    verdict = dict(judgement.numbers)
    common = figures_of(manifest, history, judgement.pairs)
    rows = pd.DataFrame(np.frombuffer(history.rows.written, ROW_TYPE))
    required, published, delivered = verdict["required"], verdict["published"], verdict["delivered"]
    with_event = int(((rows["kind"] == RowKind.SEND) & (rows["sequence"] != NONE)).sum())
    figures = (
        (required - verdict["missing"]) / required if required else None,
        _rate_of_present(manifest, history, judgement),
        verdict["duplicate"] / delivered if delivered else None,
        common["hops"],
        traffic_overhead(manifest, history, rows),
        common["delay_p50_us"],
        common["delay_p99_us"],
        with_event / published if published else None,
        _per(common["messages"], published),
        _per(common["message_bytes"], published),
        verdict["recovery_us"],
    )
    return verdict, dict(zip(FIGURES, figures, strict=True))


def traffic_overhead(manifest: RunManifest, history: History, rows: pd.DataFrame) -> float | None:
    """The share of the copies of events received by brokers that went to brokers without interest; the column
    `traffic_overhead` of `spark_analysis.metrics.forwarding`. None: nothing was received."""
    numbers = manifest.numbers
    brokers = [numbers[name] for name in manifest.brokers]
    received = rows[(rows["kind"] == RowKind.RECEIVE) & (rows["sequence"] != NONE) & rows["node"].isin(brokers)]
    if received.empty:
        return None
    delivered = rows[rows["kind"] == RowKind.DELIVER]
    delivered = delivered.assign(node=homes_then(manifest, history, delivered))
    keys = ["source", "sequence", "node"]
    interested = pd.MultiIndex.from_frame(received[keys]).isin(pd.MultiIndex.from_frame(delivered[keys]))
    return float((~interested).mean())


def _rate_of_present(manifest: RunManifest, history: History, judgement: Judgement) -> float | None:
    """Of the required deliveries between a publisher and a subscriber whose brokers were both up when the event was
    published, the share that was made: what stands still for want of a broker is no routing's fault."""
    away: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for window in judgement.windows:
        for name in window.nodes if window.kills else ():
            away[name].append((window.from_us, window.repaired_us))
    names = [node.name for node in manifest.nodes]
    stays = stays_of(list(link_rows(history, manifest)), manifest.homes)
    published = {(row.source, row.sequence): names[row.node] for row in history.rows.of(RowKind.PUBLISH)}
    subscribers = {number: names[lives[0].node] for number, lives in history.lives.items()}

    def is_up(node: str, at_us: int) -> bool:
        broker = next((stay.broker for stay in reversed(stays.get(node, ())) if stay.from_us <= at_us), node)
        return not any(begin <= at_us < end for begin, end in away[broker])

    pairs = judgement.pairs
    counted = made = 0
    for event, subscriber in pairs.required_until_us:
        at_us = history.events[event][0]
        if event in published and is_up(published[event], at_us) and is_up(subscribers[subscriber], at_us):
            counted += 1
            made += (event, subscriber) in pairs.delivered
    return made / counted if counted else None


def _per(total: float | None, published: int) -> float | None:
    return None if total is None or not published else total / published
