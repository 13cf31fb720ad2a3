"""Which host each broker is on: by a policy, or pinned by name.

Clients are on the first host, with the driver: losing another one costs brokers only.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import NodeName

Policy = Literal["spread", "pack"] | Mapping[str, str | int]
_NAMED_MAX = 10


@dataclass(frozen=True, slots=True)
class HostRoom:
    """A host to put nodes on; `room`: how many actors of the run fit (None: not known); `zone`: of its cloud."""

    name: str
    address: str
    room: int | None = None
    zone: str | None = None


def local_hosts(number: int) -> list[HostRoom]:
    """This number of raylets on this host, which have its memory together."""
    return [HostRoom(str(each), "127.0.0.1") for each in range(number)]


def place_brokers(
    brokers: Sequence[NodeName], policy: Policy, hosts: Sequence[HostRoom], clients: int, density: int
) -> dict[NodeName, int]:
    """The number of the host of each broker; raises `InputError` (place: the scenario's key).

    spread: brokers take turns on the hosts. pack: a host is filled before the next one is used, the first beside the
    clients. A mapping of brokers to hosts (number, name or address) or zones pins those, and the others are spread;
    brokers pinned to a zone take turns on its hosts.
    """
    if policy == "pack":
        return _packed(brokers, hosts, clients, density)
    pinned: dict[NodeName, int] = {}
    turns: Counter[str | int] = Counter()
    if not isinstance(policy, str):
        for broker, wanted in policy.items():
            if broker not in brokers:
                allowed = ", ".join(brokers[:_NAMED_MAX])
                raise InputError(f"placement.{broker}", "no broker of that name", f"brokers: {allowed}")
            candidates = _numbers(broker, wanted, hosts)
            pinned[broker] = candidates[turns[wanted] % len(candidates)]
            turns[wanted] += 1
    others = [broker for broker in brokers if broker not in pinned]
    return pinned | {broker: number % len(hosts) for number, broker in enumerate(others)}


def check_room(placed: Mapping[NodeName, int], clients: int, hosts: Sequence[HostRoom], density: int) -> None:
    """Raise `InputError` if a host has not the memory for its actors, each of `density` brokers or clients."""
    for number, host in enumerate(hosts):
        brokers = sum(at == number for at in placed.values())
        actors = _actors(brokers, density) + (_actors(clients, density) if number == 0 else 0)
        if host.room is not None and actors > host.room:
            found = f"{actors} actors on host {host.address} ({host.name})"
            raise InputError("placement", found, f"at most {host.room} there, or more hosts, or a higher density")


def _actors(nodes: int, density: int) -> int:
    return -(-nodes // density)


def _packed(brokers: Sequence[NodeName], hosts: Sequence[HostRoom], clients: int, density: int) -> dict[NodeName, int]:
    fitting = [None if host.room is None else host.room * density for host in hosts]
    if fitting[0] is not None:  # clients share no actor with brokers
        fitting[0] = max(0, fitting[0] - _actors(clients, density) * density)
    placed: dict[NodeName, int] = {}
    number, left = 0, fitting[0]
    for broker in brokers:
        while left == 0 and number + 1 < len(hosts):
            number += 1
            left = fitting[number]
        placed[broker] = number
        left = None if left is None else left - 1
    return placed


def _numbers(broker: NodeName, wanted: str | int, hosts: Sequence[HostRoom]) -> list[int]:
    for number, host in enumerate(hosts):
        if wanted in (number, host.name, host.address):
            return [number]
    in_zone = [number for number, host in enumerate(hosts) if host.zone == wanted]
    if in_zone:
        return in_zone
    there = ", ".join(f"{number} ({host.address})" for number, host in enumerate(hosts[:_NAMED_MAX]))
    zones = ", ".join(sorted({host.zone for host in hosts if host.zone is not None}))
    allowed = f"number, name or address of one of: {there}" + (f"; or a zone: {zones}" if zones else "")
    raise InputError(f"placement.{broker}", f"host {wanted!r}", allowed)
