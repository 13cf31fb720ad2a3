"""A Ray cluster that is there already: its hosts, and whether a run can be played on them."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.run_manifest import ClusterEntry, HostEntry
from murmuration.deployment.host_placement import HostRoom, check_room
from murmuration.scenario.load import LoadedScenario

if TYPE_CHECKING:
    from actors.joining import Host


@dataclass(frozen=True, slots=True)
class JoinedCluster:
    """The cluster at an address."""

    address: str
    hosts: "tuple[Host, ...]"
    """The host of the driver is the first."""
    scratch: Mapping[int, str]
    """The run's folder on each host that keeps journals until they are gathered, by the host's number."""
    density: int = 1
    """How many nodes share an actor."""

    @property
    def rooms(self) -> list[HostRoom]:
        """The hosts, with their room for actors."""
        from actors.room import fitting_actors

        return [
            HostRoom(each.name, each.address, fitting_actors(each.memory, self.density), each.zone)
            for each in self.hosts
        ]

    def check(self, deployment: Deployment) -> None:
        """Raise `InputError` for a deployment that does not fit, or whose faults would break hosts of the cluster."""
        clients = len(deployment.nodes) - len(deployment.hosts)
        check_room(deployment.hosts, clients, self.rooms, self.density)
        for fault in deployment.faults:
            if fault.kind is FaultKind.LOSE_HOST:
                found, allowed = f"{fault} on the cluster at {self.address}", "that fault on hosts of the run's own"
                raise InputError("faults", found, f"{allowed}: without --address")

    def entry(self, deployment: Deployment) -> ClusterEntry:
        """What the manifest says of the cluster: its hosts, and the brokers on each."""
        hosts = tuple(
            HostEntry(
                name=host.name,
                address=host.address,
                zone=host.zone,
                clock_us=host.clock_us,
                scratch=self.scratch.get(number),
                gathered=None,
                brokers=tuple(name for name, at in deployment.hosts.items() if at == number),
            )
            for number, host in enumerate(self.hosts)
        )
        return ClusterEntry(self.address, hosts)


def join(loaded: LoadedScenario, address: str, folder: Path, store: str | None = None) -> JoinedCluster:
    """Look at the cluster; raises `InputError` if a run in that folder cannot be played there."""
    scenario = loaded.scenario
    if scenario.runtime != "ray":
        raise InputError(
            f"--address {address}", f"runtime {scenario.runtime}", "runtime ray: virtual time has no hosts"
        )
    if folder.exists():
        raise InputError(str(folder), "a run that is already there", "a new folder (--out)")
    from actors.joining import hosts_at

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        hosts = hosts_at(address, folder.parent, store)
    except OSError as error:
        raise InputError(str(folder), str(error), "a folder that can be written") from None
    if len(hosts) < scenario.hosts:
        found = f"{len(hosts)} hosts at {address}, of {scenario.hosts} wanted"
        raise loaded.error_at(("hosts",), found, f"at most {len(hosts)}, or a larger cluster")
    own = f"murmur-{folder.name}-{secrets.token_hex(4)}"
    kept = {number: f"{each.scratch}/{own}" for number, each in enumerate(hosts) if each.scratch is not None}
    return JoinedCluster(address, tuple(hosts), kept, scenario.density)
