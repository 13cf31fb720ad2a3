"""A cluster that is there already: what must hold before a run may start on it, said in words if it does not."""

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from actors.ray_session import ACTOR_BYTES, RAY_BYTES
from pubsub.errors import InputError

_LOOK_TIMEOUT_S = 120.0
FREE_BYTES_MIN = 256 << 20
CLOCK_US_MAX = 20_000
"""Above it delays between machines mean nothing."""
_TOKEN = "the cluster's token: RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token (docs/cluster.md)"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of a cluster: Ray's identifier, its name and address there, how many actors fit, and how far its clock
    is ahead of this machine's (microseconds)."""

    identifier: str
    name: str
    address: str
    room: int
    clock_us: int


def machines_at(address: str, folder: Path) -> list[Machine]:
    """The machines of the cluster at HOST:PORT, the one this process is on first.

    Raises `InputError` if there is no cluster, this process may not join it, versions differ, or a machine does not
    see the folder, which must exist, or has no room there.
    """
    place = f"--address {address}"
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in address:
        raise InputError(place, repr(address), "HOST:PORT of the cluster's head, such as 10.0.0.5:6379")
    found = _look(place, address, folder.resolve())
    if "error" in found:
        kind, words = found["error"]
        if kind == "token":
            raise InputError(place, "a cluster that refuses this token", _TOKEN)
        if kind == "join":
            raise InputError(place, words, "a run from a machine of the cluster: its head, or by `ray job submit`")
        raise InputError(place, f"no cluster ({words})", "the address of a cluster's head: HOST:PORT")
    check_versions(place, found)
    return [_checked(place, machine, folder) for machine in found["machines"]]


def check_versions(place: str, found: dict[str, Any]) -> None:
    """Raise `InputError` if the cluster has another Ray or Python than this process."""
    own = {"ray": version("ray"), "python": ".".join(map(str, sys.version_info[:3]))}
    if any(found[each] != own[each] for each in own):
        raise InputError(
            place,
            f"a cluster of Ray {found['ray']} and Python {found['python']}",
            f"Ray {own['ray']} and Python {own['python']}, as here",
        )


def check_clock(machine: str, ahead_us: float, unsure_us: float) -> None:
    """Raise `InputError` if the machine's clock is certainly too far from this one's: emulated time is told by both."""
    if abs(ahead_us) - unsure_us > CLOCK_US_MAX:
        found = f"a clock {abs(ahead_us) / 1e3:.0f} ms {'ahead of' if ahead_us > 0 else 'behind'} this machine's"
        raise InputError(machine, found, f"clocks that agree to {CLOCK_US_MAX / 1e3:.0f} ms (NTP)")


def _look(place: str, address: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "actors.cluster_probe", address, str(folder)]
    root = Path(__file__).resolve().parents[1]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=_LOOK_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        found = f"no answer in {_LOOK_TIMEOUT_S:.0f} s"
        raise InputError(place, found, "the address of a cluster's head: HOST:PORT") from None
    lines = done.stdout.strip().splitlines()
    try:
        found_there: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        raise InputError(place, f"a look at it that ended {last}", "a cluster that can be joined") from None
    return found_there


def _checked(place: str, said: dict[str, Any], folder: Path) -> Machine:
    machine = f"{place}, machine {said['address']} ({said['name']})"
    if "failure" in said:
        raise InputError(machine, said["failure"], "a machine that runs tasks")
    own = version("murmuration")
    if said["version"] != own:
        raise InputError(machine, f"murmur {said['version'] or 'missing'}", f"murmur {own} on every machine, as here")
    if not said["written"]:
        found = f"no folder {folder.resolve()} that it can write to and that this machine sees too"
        raise InputError(machine, found, "run folders on storage that all machines share (--out)")
    if said["free"] < FREE_BYTES_MIN:
        found = f"{said['free'] / 1e6:.0f} MB free in {folder.resolve()}"
        raise InputError(machine, found, f"{FREE_BYTES_MIN / 1e6:.0f} MB or more")
    check_clock(machine, said["clock_us"], said["clock_unsure_us"])
    room = max(0, (said["memory"] - RAY_BYTES) // ACTOR_BYTES)
    return Machine(said["identifier"], said["name"], said["address"], room, round(said["clock_us"]))
