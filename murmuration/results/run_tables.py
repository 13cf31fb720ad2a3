"""The tables of a run: pandas frames or Spark's, as `murmuration.results.load` is told."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from murmur_pubsub.run_manifest import RunManifest

Frame = TypeVar("Frame")


@dataclass(frozen=True, slots=True)
class RunTables(Generic[Frame]):
    """What the nodes of a run journaled. Nodes, kinds and messages have their names.

    Times are emulated microseconds from the start of the run. docs/reference.md has the columns of each table.
    """

    manifest: RunManifest
    nodes: Frame
    """number, name, role, broker: a row for each node; `broker` is where a client is attached."""
    rows: Frame
    """All rows of the journal: time_us, kind, node, source, sequence, peer, hops, bytes, value, meaning."""
    events: Frame
    """publisher, sequence, published_us, node, attributes: pandas has a dict, Spark a JSON text."""
    subscriptions: Frame
    """time_us, node, subscriber, filter, withdrawn: a row for each subscription and each withdrawal of one."""
    deliveries: Frame
    """publisher, sequence, subscriber, node, published_us, delivered_us, delay_us, hops: a row for each delivery."""
    faults: Frame
    """step, fault, kind, nodes, at_us, ordered_us, in_effect_us: `at_us` counts from the beginning of publishing."""
