"""At which broker each client was when: a client may go from one to another while the run goes on."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import RowKind
from murmur_pubsub.run_manifest import RunManifest
from spark_analysis.connections import LinkRow
from spark_analysis.fault_windows import NEVER_US


class Stay(NamedTuple):
    """A client had its link to that broker, until it had one to another (`NEVER_US`: it had none)."""

    broker: str
    from_us: int
    until_us: int


def stays_of(rows: Sequence[LinkRow], homes: Mapping[str, str]) -> dict[str, list[Stay]]:
    """Those of each client, in their order; `rows`: those of its links, `homes`: client to broker, at first."""
    stays = {client: [Stay(home, 0, NEVER_US)] for client, home in homes.items()}
    for time_us, kind, node, peer in sorted(rows):
        if kind == RowKind.LINK_UP and node in homes and stays[node][-1].broker != peer:
            stays[node][-1] = stays[node][-1]._replace(until_us=time_us)
            stays[node].append(Stay(peer, time_us, NEVER_US))
    return stays


def clients_that_move(manifest: RunManifest) -> set[str]:
    """The clients that a step of the run's plan gives a link: no others can have been at two brokers."""
    connected = (step.nodes for step in manifest.faults if step.kind is FaultKind.CONNECT)
    return manifest.homes.keys() & {name for nodes in connected for name in nodes}
