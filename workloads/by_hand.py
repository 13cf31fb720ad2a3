"""No workload at all: clients that do what they are told while the run goes on (`murmuration.harness.cluster`)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from murmur_pubsub.errors import InputError
from workloads.overlay import Overlay, is_broker_name
from workloads.plan import ClientPlan, Workload

_NUMBERED = re.compile(r"c\d{1,59}")
"""Clients alone may be called so."""


@dataclass(frozen=True, slots=True)
class ByHandOptions:
    """Clients without a plan, which do what they are told."""

    clients: Mapping[str, str] = field(default_factory=dict)
    """The name of each client and its broker; empty: one client `c<n>` at each broker."""


def build_by_hand(overlay: Overlay, config: ByHandOptions, seed: int) -> Workload:
    """Clients without subscriptions or publications; raises `InputError` for names that cannot be."""
    clients = config.clients or {f"c{number}": broker for number, broker in enumerate(overlay.client_brokers)}
    for name, broker in clients.items():
        if broker not in overlay.client_brokers:
            raise InputError(
                f"workload.clients.{name}", repr(broker), f"a broker: {', '.join(overlay.client_brokers[:8])}, …"
            )
        if not (is_broker_name(name) or _NUMBERED.fullmatch(name)):
            allowed = "names of letters, digits, '_', '.' and '-', other than driver"
            raise InputError("workload.clients", f"the client {name[:60]!r}", allowed)
        if name in overlay.brokers:
            raise InputError(f"workload.clients.{name}", "a name in use", "a name that no broker has")
    plans = tuple(ClientPlan(name, broker, (), (), ()) for name, broker in clients.items())
    return Workload(overlay, plans, {"kind": "by_hand", "clients": len(plans)}, 0)
