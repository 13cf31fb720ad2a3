"""The tables of a run as pandas frames, read from its journal in this process."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from murmur_pubsub.event import unpack_attributes
from murmur_pubsub.journal import FaultStage, RowKind, SideKind, parse_side
from murmur_pubsub.journal_rows import ROW_TYPE, parse_segment
from murmur_pubsub.journal_store import JournalStore, store_at
from murmur_pubsub.run_manifest import RunManifest
from murmuration.results.meanings import meanings_of
from murmuration.results.run_tables import RunTables

_ROW_COLUMNS = ["time_us", "kind", "node", "source", "sequence", "peer", "hops", "bytes", "value", "meaning"]
_EVENT_COLUMNS = ["publisher", "sequence", "published_us", "attributes"]
_SUBSCRIPTION_COLUMNS = ["time_us", "node", "subscriber", "filter", "withdrawn"]


def pandas_tables(manifest: RunManifest, place: str) -> RunTables[pd.DataFrame]:
    """The tables of the journal at that path or URI."""
    store = store_at(place)
    rows = _rows(manifest, store)
    events, subscriptions = _side_tables(manifest, store)
    published = rows.loc[rows["kind"] == RowKind.PUBLISH.name, ["source", "sequence", "node"]]
    events = events.merge(published.rename(columns={"source": "publisher"}), "left", ["publisher", "sequence"])
    return RunTables(
        manifest,
        pd.DataFrame(
            [(number, node.name, node.role, node.broker) for number, node in enumerate(manifest.nodes)],
            columns=["number", "name", "role", "broker"],
        ),
        rows,
        events[["publisher", "sequence", "published_us", "node", "attributes"]],
        subscriptions,
        _deliveries(rows, events),
        _faults(manifest, rows),
    )


def _rows(manifest: RunManifest, store: JournalStore) -> pd.DataFrame:
    parsed = [parse_segment(place, data)[1] for place, data in store.written("seg")]
    joined = np.concatenate([np.empty(0, ROW_TYPE), *parsed])
    joined = joined[np.argsort(joined["time_us"], kind="stable")]
    rows = pd.DataFrame({name: joined[name] for name in ROW_TYPE.names or ()})
    meanings = pd.DataFrame(meanings_of(manifest), columns=["kind", "value", "meaning"])
    rows = rows.merge(meanings.astype({"kind": "uint8"}), "left", ["kind", "value"])
    names = dict(enumerate(manifest.names))
    rows["kind"] = _named(rows["kind"], {kind.value: kind.name for kind in RowKind})
    rows["node"], rows["peer"] = _named(rows["node"], names), _named(rows["peer"], names)
    return rows[_ROW_COLUMNS]


def _named(numbers: "pd.Series[int]", names: Mapping[int, str]) -> "pd.Series[Any]":
    """The names of the numbers as a category: a journal has few names and many rows."""
    return numbers.map(names).astype(pd.CategoricalDtype(list(names.values())))


def _side_tables(manifest: RunManifest, store: JournalStore) -> tuple[pd.DataFrame, pd.DataFrame]:
    names = manifest.names
    events, subscriptions = [], []
    for place, data in store.written("blob"):
        for kind, fields in parse_side(place, data):
            if kind is SideKind.EVENT:
                source, sequence, time_us, blob = fields
                events.append((source, sequence, time_us, unpack_attributes(blob)))
            elif kind is not SideKind.ANSWER:
                time_us, node, subscriber, text, _ = fields
                subscriptions.append((time_us, names[node], subscriber, text, kind is SideKind.UNSUBSCRIBE))
    in_order = pd.DataFrame(events, columns=_EVENT_COLUMNS).sort_values(["published_us", "publisher", "sequence"])
    issued = pd.DataFrame(subscriptions, columns=_SUBSCRIPTION_COLUMNS).sort_values("time_us", kind="stable")
    return in_order.reset_index(drop=True), issued.reset_index(drop=True)


def _deliveries(rows: pd.DataFrame, events: pd.DataFrame) -> pd.DataFrame:
    made = rows.loc[rows["kind"] == RowKind.DELIVER.name, ["source", "sequence", "value", "node", "time_us", "hops"]]
    made = made.rename(columns={"source": "publisher", "value": "subscriber", "time_us": "delivered_us"})
    known = events[["publisher", "sequence", "published_us"]]
    made = made.merge(known, "left", ["publisher", "sequence"])
    made["delay_us"] = made["delivered_us"] - made["published_us"]
    columns = ["publisher", "sequence", "subscriber", "node", "published_us", "delivered_us", "delay_us", "hops"]
    return made[columns]


def _faults(manifest: RunManifest, rows: pd.DataFrame) -> pd.DataFrame:
    seen = rows[rows["kind"] == RowKind.FAULT.name]
    stages = {
        stage: dict(zip(of_stage["sequence"], of_stage["time_us"], strict=True))
        for stage, of_stage in ((stage, seen[seen["hops"] == stage]) for stage in FaultStage)
    }
    faults = pd.DataFrame(
        [
            (
                step,
                entry.text,
                entry.kind.name,
                list(entry.nodes),
                entry.time_us,
                stages[FaultStage.ORDERED].get(step),
                stages[FaultStage.IN_EFFECT].get(step),
            )
            for step, entry in enumerate(manifest.faults)
        ],
        columns=["step", "fault", "kind", "nodes", "at_us", "ordered_us", "in_effect_us"],
    )
    return faults.astype({"at_us": "Int64", "ordered_us": "Int64", "in_effect_us": "Int64"})
