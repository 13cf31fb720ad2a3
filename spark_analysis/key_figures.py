"""The few figures by which runs are compared, as a sweep does: which they are, and what a small journal says of them.

`spark_analysis.main` takes the same figures from Spark's tables, as `spark_analysis.metrics` defines them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from murmur_pubsub.journal import NONE, RowKind
from murmur_pubsub.journal_rows import ROW_TYPE
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.run_manifest import RunManifest, read_manifest
from spark_analysis.history import History, read_history
from spark_analysis.journal_check import find_damage
from spark_analysis.plain_judge import PlainVerdict, delay_quantile_us, judgement_of, link_rows
from spark_analysis.stays import stays_of
from spark_analysis.verdict import decide_damaged

KEY_FIGURES = ("delay_p50_us", "delay_p99_us", "hops", "yield", "messages", "message_bytes")
"""Delays from publication to first delivery, of which four digits are kept; hops are the mean over deliveries. None:
nothing was delivered, sent, or received by a broker, or the journal is damaged."""
Figures = dict[str, float | None]


def judge_and_measure(run: Path) -> tuple[dict[str, Any], Figures]:
    """The verdict of the judge in plain Python on a run folder, and its figures; raises as `plain_judge.judge_run`."""
    manifest = read_manifest(run)
    place = manifest.journal_at(run)
    damages = find_damage(store_at(place), manifest)
    if damages:
        return decide_damaged(damages), dict.fromkeys(KEY_FIGURES)
    history = read_history(place)
    judgement = judgement_of(manifest, history)
    return dict(judgement.numbers), figures_of(manifest, history, judgement.pairs)


def figures_of(manifest: RunManifest, history: History, pairs: PlainVerdict) -> Figures:
    """The figures of a run with this history and these pairs."""
    rows = pd.DataFrame(np.frombuffer(history.rows.written, ROW_TYPE))
    delivered, sent = rows[rows["kind"] == RowKind.DELIVER], rows[rows["kind"] == RowKind.SEND]
    figures = (
        delay_quantile_us(history, pairs, 0.50),
        delay_quantile_us(history, pairs, 0.99),
        float(delivered["hops"].mean()) if len(delivered) else None,
        _yield(manifest, history, rows),
        float(len(sent)) if len(sent) else None,
        float(sent["bytes"].sum()) if len(sent) else None,
    )
    return dict(zip(KEY_FIGURES, figures, strict=True))


def homes_then(manifest: RunManifest, history: History, rows: pd.DataFrame) -> "pd.Series[Any]":
    """Of each row the broker that its node stood for then; see `spark_analysis.metrics.homes_table`."""
    numbers = manifest.numbers
    first = {numbers[name]: numbers[name] for name in manifest.brokers}
    first |= {numbers[client]: numbers[broker] for client, broker in manifest.homes.items()}
    homes = rows["node"].map(first)
    for client, stays in stays_of(list(link_rows(history, manifest)), manifest.homes).items():
        for stay in stays[1:]:
            homes[(rows["node"] == numbers[client]) & (rows["time_us"] >= stay.from_us)] = numbers[stay.broker]
    return homes


def _yield(manifest: RunManifest, history: History, rows: pd.DataFrame) -> float | None:
    """See `spark_analysis.metrics.reached` and `forwarding`."""
    numbers = manifest.numbers
    brokers = [numbers[name] for name in manifest.brokers]
    seen = rows.assign(
        broker=homes_then(manifest, history, rows),
        from_client=rows["peer"].isin([numbers[client] for client in manifest.homes]),
    )
    received = seen[(seen["kind"] == RowKind.RECEIVE) & seen["node"].isin(brokers) & (seen["sequence"] != NONE)]
    delivered = seen[seen["kind"] == RowKind.DELIVER]
    reached = received.groupby(["source", "sequence", "broker"])["from_client"].any()
    interested = reached.index.isin(pd.MultiIndex.from_frame(delivered[["source", "sequence", "broker"]]))
    choices = interested | ~reached.to_numpy(bool)
    return float(interested.sum() / choices.sum()) if choices.any() else None
