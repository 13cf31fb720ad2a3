"""A cluster that is there already: what must hold before a run may start on it, said in words if it does not."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError

_LOOK_TIMEOUT_S = 120.0
FREE_BYTES_MIN = 256 << 20
CLOCK_US_MAX = 20_000
"""Above it delays between hosts mean nothing."""
_TOKEN = "the cluster's token: RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token (docs/cluster.md)"


@dataclass(frozen=True, slots=True)
class HostProbe:
    """What a host of a cluster says of itself, before anything is checked.

    `seen`: it sees the run folder. `scratch`: where it would keep journals until they are gathered (None: straight in
    the run folder); `trouble`: why it cannot write there; `free`: bytes there. `store_trouble`: why it cannot write to
    the store. `failure`: it said nothing, and why.
    """

    identifier: str
    name: str
    address: str
    zone: str | None = None
    memory: int = 0
    murmur: str | None = None
    ray: str = ""
    python: str = ""
    seen: bool = False
    scratch: str | None = None
    trouble: str | None = None
    free: int = 0
    store_trouble: str | None = None
    clock_us: float = 0.0
    clock_unsure_us: float = 0.0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """A host of a cluster: Ray's identifier, its name, address and zone there, its bytes for actors, how far its
    clock is ahead of this host's (microseconds), and where it keeps journals until they are gathered (None: it
    writes straight into the run folder)."""

    identifier: str
    name: str
    address: str
    zone: str | None
    memory: int
    clock_us: int
    scratch: str | None


def hosts_at(address: str, folder: Path, store: str | None = None, shared: bool = False) -> list[Host]:
    """The hosts of the cluster at HOST:PORT, the one this process is on first.

    Raises `InputError` if there is no cluster, this process may not join it, or a host is not fit (`check_host`).
    The folder must exist; `shared`: every host has to see it.
    """
    place = f"--address {address}"
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in address:
        raise InputError(place, repr(address), "HOST:PORT of the cluster's head, such as 10.0.0.5:6379")
    found = _look(place, address, folder.resolve(), store)
    if "error" in found:
        kind, words = found["error"]
        if kind == "token":
            raise InputError(place, "a cluster that refuses this token", _TOKEN)
        if kind == "join":
            raise InputError(place, words, "a run from a host of the cluster: its head, or by `ray job submit`")
        raise InputError(place, f"no cluster ({words})", "the address of a cluster's head: HOST:PORT")
    own = own_versions()
    check_versions(place, "a cluster", found, own)
    hosts = [HostProbe(**said) for said in found["hosts"]]
    for number, probe in enumerate(hosts):
        check_host(f"{place}, host {probe.address} ({probe.name})", probe, own, shared or number == 0, store)
    return [
        Host(
            probe.identifier,
            probe.name,
            probe.address,
            probe.zone,
            probe.memory,
            round(probe.clock_us),
            probe.scratch if number else None,
        )
        for number, probe in enumerate(hosts)
    ]


def own_versions() -> dict[str, str]:
    """The versions that every host must have as well."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {"ray": version("ray"), "python": python, "murmur": version("murmuration")}


def check_versions(place: str, what: str, found: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Raise `InputError` if there is another Ray or Python than here."""
    if any(found[each] != own[each] for each in ("ray", "python")):
        raise InputError(
            place,
            f"{what} of Ray {found['ray']} and Python {found['python']}",
            f"Ray {own['ray']} and Python {own['python']}, as here",
        )


def check_clock(host: str, ahead_us: float, unsure_us: float) -> None:
    """Raise `InputError` if the host's clock is certainly too far from this one's: emulated time is told by both."""
    if abs(ahead_us) - unsure_us > CLOCK_US_MAX:
        found = f"a clock {abs(ahead_us) / 1e3:.0f} ms {'ahead of' if ahead_us > 0 else 'behind'} this host's"
        raise InputError(host, found, f"clocks that agree to {CLOCK_US_MAX / 1e3:.0f} ms (NTP)")


def check_host(place: str, probe: HostProbe, own: Mapping[str, str], shared: bool, store: str | None) -> None:
    """Raise `InputError` for a host on which no actor should start; `shared`: it has to see the run folder."""
    if probe.failure is not None:
        raise InputError(place, probe.failure, "a host that runs tasks")
    check_versions(place, "a host", {"ray": probe.ray, "python": probe.python}, own)
    if probe.murmur != own["murmur"]:
        found = f"murmur {probe.murmur or 'missing'}"
        raise InputError(place, found, f"murmur {own['murmur']} on every host, as here")
    if shared and not probe.seen:
        found = "no run folder that it and this host both see"
        raise InputError(place, found, "storage that all hosts share (--out)")
    if probe.trouble is not None:
        found = f"no place for journals ({probe.trouble})"
        raise InputError(place, found, "a run folder (--out), or MURMUR_SCRATCH there, that can be written")
    if probe.free < FREE_BYTES_MIN:
        found = f"{probe.free / 1e6:.0f} MB free for journals"
        raise InputError(place, found, f"{FREE_BYTES_MIN / 1e6:.0f} MB or more")
    if probe.store_trouble is not None:
        raise InputError(place, f"a store {store} that it cannot write to ({probe.store_trouble})", "--store elsewhere")
    check_clock(place, probe.clock_us, probe.clock_unsure_us)


def _look(place: str, address: str, folder: Path, store: str | None) -> dict[str, Any]:
    command = [sys.executable, "-m", "actors.cluster_probe", address, str(folder), *([store] if store else [])]
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
