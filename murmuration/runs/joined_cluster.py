"""A run on a cluster that is there already: who may join, and which node goes to which machine."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FaultKind
from murmuration.deployment.host_placement import Place, check_room
from murmuration.scenario.load import LoadedScenario

if TYPE_CHECKING:
    from actors.joining import Machine


@dataclass(frozen=True, slots=True)
class JoinedCluster:
    """The machines of the cluster at an address, the one with the driver first. `scratch`: the run's folder on those
    that keep journals until they are gathered, by number."""

    address: str
    machines: "tuple[Machine, ...]"
    scratch: Mapping[int, str]

    @property
    def places(self) -> list[Place]:
        """The machines as nodes are put on them."""
        return [Place(each.name, each.address, each.room, each.zone) for each in self.machines]

    def check(self, deployment: Deployment) -> None:
        """Raise `InputError` for a deployment that does not fit, or whose faults would break what is not ours."""
        clients = len(deployment.nodes) - len(deployment.machines)
        check_room(deployment.machines, clients, self.places)
        for fault in deployment.faults:
            if fault.kind is FaultKind.LOSE_MACHINE:
                found, allowed = f"{fault} on the cluster at {self.address}", "that fault on machines of the run's own"
                raise InputError("faults", found, f"{allowed}: without --address")

    def manifest(self, deployment: Deployment) -> dict[str, Any]:
        """What the run folder says of the cluster: its machines, and the brokers on each."""
        return {
            "cluster": {
                "address": self.address,
                "machines": [
                    {
                        "name": machine.name,
                        "address": machine.address,
                        "zone": machine.zone,
                        "clock_us": machine.clock_us,
                        "scratch": self.scratch.get(number),
                        "gathered": None,
                        "brokers": [name for name, at in deployment.machines.items() if at == number],
                    }
                    for number, machine in enumerate(self.machines)
                ],
            }
        }


def join(loaded: LoadedScenario, address: str, folder: Path, store: str | None = None) -> JoinedCluster:
    """Look at the cluster; raises `InputError` if a run in that folder cannot be played there."""
    scenario = loaded.scenario
    if scenario.runtime != "ray":
        raise InputError(
            f"--address {address}", f"runtime {scenario.runtime}", "runtime ray: virtual time has no machines"
        )
    if folder.exists():
        raise InputError(str(folder), "a run that is already there", "a new folder (--out)")
    from actors.joining import machines_at

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        machines = machines_at(address, folder.parent, store)
    except OSError as error:
        raise InputError(str(folder), str(error), "a folder that can be written") from None
    if len(machines) < scenario.machines:
        found = f"{len(machines)} machines at {address}, of {scenario.machines} wanted"
        raise loaded.error_at(("machines",), found, f"at most {len(machines)}, or a larger cluster")
    own = f"murmur-{folder.name}-{secrets.token_hex(4)}"
    kept = {number: f"{each.scratch}/{own}" for number, each in enumerate(machines) if each.scratch is not None}
    return JoinedCluster(address, tuple(machines), kept)
