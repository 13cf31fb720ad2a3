"""Through which others the brokers of a structured overlay join it."""

import dataclasses
import random
from collections.abc import Mapping, Sequence

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import DEATHS, RETURNS, Fault, FaultKind
from murmur_pubsub.machine import NodeName
from murmur_pubsub.places import RingPlace
from workloads.overlay import Overlay

_BOOTSTRAP_PEERS = 4


def join_plan(
    overlay: Overlay,
    faults: Sequence[Fault],
    start_down: frozenset[NodeName],
    hosts: Mapping[NodeName, int],
    seed: int,
) -> dict[NodeName, RingPlace]:
    """Broker by broker its place on the ring, bootstrap peers included.

    The first broker that is there from the start founds the overlay (or the scenario's `overlay.bootstrap`); the others
    join through one that was started before them, with some more to try if it is gone. Raises `InputError` if no broker
    is there to found it, or a broker would have to join through one that the fault plan has killed by then.
    """
    assert overlay.structure is not None
    there = [name for name in overlay.brokers if name not in start_down]
    if not there:
        raise InputError("overlay", "no broker that is there from the start", "one that founds the overlay")
    rng = random.Random(f"{seed}/bootstrap")
    plan: dict[NodeName, RingPlace] = {}
    for name in overlay.brokers:
        place = overlay.structure[name]
        if place.bootstrap:
            (through,) = place.bootstrap
            _check_alive(through, overlay.brokers, faults, start_down, hosts)
            founder = through
        else:
            founder = there[0]
        peers = [peer for peer in place.bootstrap if peer != name]
        if not peers:
            before = there[(there.index(name) - 1) // 2] if name in there and name != founder else founder
            others = [peer for peer in rng.sample(there, min(len(there), _BOOTSTRAP_PEERS)) if peer != name]
            peers = [peer for peer in dict.fromkeys((before, *others)) if peer != name]
        plan[name] = dataclasses.replace(place, bootstrap=tuple(peers), founds=name == founder)
    return plan


def _check_alive(
    through: NodeName,
    brokers: Sequence[NodeName],
    faults: Sequence[Fault],
    start_down: frozenset[NodeName],
    hosts: Mapping[NodeName, int],
) -> None:
    """Is the only bootstrap peer there whenever another broker joins? (It has peers of its own.)"""
    down = through in start_down
    place, allowed = "overlay.bootstrap", "one that is up whenever a broker starts (or no key: then there are several)"
    if down:
        raise InputError(place, f"{through!r}, which is not there at the start", allowed)
    for fault in faults:
        is_host = fault.kind in (FaultKind.LOSE_HOST, FaultKind.RETURN_HOST)
        about = [name for name in brokers if (hosts.get(name) == fault.host if is_host else name in fault.nodes)]
        if through in about:
            down = fault.kind in DEATHS or (down and fault.kind not in RETURNS)
        elif down and about and fault.kind in RETURNS:
            raise InputError(place, f"{through!r}, which is down when it should let in: {fault}", allowed)
