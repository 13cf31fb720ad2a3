"""Builds small run folders row by row, with the journal's own writer."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from murmur_pubsub.event import Event, fingerprint_of
from murmur_pubsub.journal import NONE, JournalWriter, Phase, RowKind, SideKind
from murmur_pubsub.promise import REFUSED, Promise
from murmur_pubsub.run_manifest import DriverHost, NodeEntry, OverlayEntry, RunManifest, write_manifest
from murmur_pubsub.values import Value

RUN = 0x5EA1
PUBLISHER_ORDER = Promise()


class RunFolder:
    """A run of brokers `b0, b1, …` in a chain and clients `c0, c1, …`, each at the broker of its number."""

    def __init__(
        self,
        folder: Path,
        brokers: int = 2,
        clients: int = 2,
        grace_us: int = 0,
        rows_per_segment: int = 64,
        promise: Promise = PUBLISHER_ORDER,
    ) -> None:
        self.folder = folder
        self._rows_per_segment = rows_per_segment
        self._grace_us = grace_us
        self._promise = promise
        self._names = [f"b{number}" for number in range(brokers)]
        self._nodes = [NodeEntry(name, "broker") for name in self._names]
        self._nodes += [NodeEntry(f"c{number}", "client", f"b{number % brokers}") for number in range(clients)]
        self._nodes.append(NodeEntry("driver", "driver"))
        self._fingerprints: dict[tuple[int, int], int] = {}
        self.numbers = {node.name: number for number, node in enumerate(self._nodes)}
        self._incarnations: dict[str, int] = {}
        (folder / "journal").mkdir(parents=True)
        self.writers = {name: self.writer(name) for name in self.numbers}

    def writer(self, name: str, incarnation: int = 0) -> JournalWriter:
        """A writer for an incarnation of a node."""
        self._incarnations[name] = incarnation + 1
        number = self.numbers[name]
        return JournalWriter(self.folder / "journal", name, number, incarnation, self._rows_per_segment, RUN)

    def restart(self, name: str, incarnation: int) -> None:
        """From here on the node writes as a new incarnation."""
        self.writers[name].close()
        self.writers[name] = self.writer(name, incarnation)

    def row(self, name: str, time_us: int, kind: RowKind, peer: str | None = None, **fields: int) -> None:
        """Any row of the node."""
        number = -1 if peer is None else self.numbers[peer]
        self.writers[name].row(time_us, kind, self.numbers[name], peer=number, **fields)

    def phase(self, time_us: int, phase: Phase) -> None:
        """The driver says that a phase begins."""
        self.row("driver", time_us, RowKind.PHASE, value=phase)

    def settled(self, time_us: int, covers_us: int) -> None:
        """Every subscription issued up to `covers_us` has settled by `time_us`."""
        self.row("driver", time_us, RowKind.SETTLED, value=covers_us)

    def subscribe(self, client: str, time_us: int, subscriber: int, text: str, withdrawn: bool = False) -> None:
        """A subscription, or the withdrawal of one."""
        side = SideKind.UNSUBSCRIBE if withdrawn else SideKind.SUBSCRIBE
        self.writers[client].side(side, (time_us, self.numbers[client], subscriber, text, NONE))
        kind = RowKind.UNSUBSCRIBE if withdrawn else RowKind.SUBSCRIBE
        self.row(client, time_us, kind, source=subscriber)

    def publish(self, client: str, time_us: int, source: int, sequence: int, attributes: Mapping[str, Value]) -> None:
        """A publication."""
        event = Event(source, sequence, time_us, attributes)
        self._fingerprints[source, sequence] = fingerprint_of(event.time_us, event.blob)
        self.writers[client].side(SideKind.EVENT, event.to_wire())
        self.row(client, time_us, RowKind.PUBLISH, source=source, sequence=sequence, value=len(event.blob))

    def deliver(
        self, client: str, time_us: int, source: int, sequence: int, subscriber: int, hops: int = 0,
        altered: bool = False,
    ) -> None:  # fmt: skip
        """A delivery of what was published under that number, or of something else."""
        size = self._fingerprints.get((source, sequence), 0) ^ altered
        self.row(
            client, time_us, RowKind.DELIVER, source=source, sequence=sequence, hops=hops, size=size, value=subscriber
        )

    def refused(self, client: str, time_us: int, source: int, sequence: int) -> None:
        """The client is told that what it published under that number was refused."""
        self.row(client, time_us, RowKind.PROTOCOL, source=source, sequence=sequence, size=REFUSED, value=0)

    def hop(
        self, sender: str, receiver: str, sent_us: int, received_us: int | None, source: int, sequence: int,
        size: int = 100, kind: int = 16,
    ) -> None:  # fmt: skip
        """A message with an event over a link; `received_us` None: it was lost on the way."""
        event: dict[str, Any] = {"source": source, "sequence": sequence, "value": kind}
        self.row(sender, sent_us, RowKind.SEND, receiver, size=size, **event)
        if received_us is not None:
            self.row(receiver, received_us, RowKind.RECEIVE, sender, **event)

    def finish(self, status: Literal["complete", "interrupted"] = "complete", close: bool = True) -> Path:
        """Write the manifest and close the journal (or leave it as a kill would); the run's folder."""
        if close:
            for writer in self.writers.values():
                writer.close()
        manifest = RunManifest(
            name="built",
            runtime="virtual",
            seed=1,
            run=f"{RUN:016x}",
            nodes=tuple(self._nodes),
            status=status,
            writers=self._incarnations if status == "complete" else None,
            version="0.1.0",
            scenario={"name": "built"},
            overlay=OverlayEntry(tuple(self._names), tuple(itertools.pairwise(self._names))),
            workload={"publishers": 1},
            withdrawal_grace_us=self._grace_us,
            promise=self._promise,
            subscription_grace_us=self._grace_us,
            host=DriverHost(2, 8_000_000_000, "3.11", "Linux"),
            wall_seconds={"publishing": 0.5},
        )
        write_manifest(self.folder, manifest)
        (self.folder / "scenario.yaml").write_text("name: built\n")
        return self.folder
