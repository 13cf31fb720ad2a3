"""A workload's card: what made it, a hash of all that it consists of, and what it is like, so that others can cite it.

The hash is over subscriptions and publications in the order of clients, with their times. It does not depend on the
overlay or the protocols, nor on where a file of data lies.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.bench.matrix import WORKLOADS, Cell, System
from murmuration.bench.plan import scenario_with_data
from murmuration.deployment.build import build_overlay, build_workload
from murmuration.scenario.load import check_scenario
from workloads.plan import Workload

_ANY = System("forwarding", "best_effort")
"""Workloads are the same for all."""


def card_of(workload: str, seed: int, brokers: int) -> dict[str, Any]:
    """The card of a workload of the table; raises `InputError` if its data is not here."""
    scenario = scenario_with_data(Cell(workload, "none", _ANY, seed, brokers))
    loaded = check_scenario(scenario, workload)
    built = build_workload(loaded, build_overlay(loaded))
    generator = {key: value for key, value in scenario["workload"].items() if key != "path"}
    data = WORKLOADS[workload].data
    return {
        "format": "murmur-workload-card",
        "schema_version": 1,
        "workload": workload,
        "about": WORKLOADS[workload].about,
        "generator": generator if data is None else generator | {"data": data},
        "seed": seed,
        "sha256": hash_of(built),
        "statistics": _statistics(built),
    }


def hash_of(workload: Workload) -> str:
    """SHA-256 over each client's subscriptions and publications, a line of JSON each."""
    found = hashlib.sha256()

    def add(*fields: Any) -> None:
        found.update(json.dumps(fields, sort_keys=True, ensure_ascii=False).encode() + b"\n")

    for client in workload.clients:
        add("client", client.name, client.broker, list(client.publishers))
        for subscriber, text in client.subscriptions:
            add("subscription", subscriber, text)
        for time_us, publisher, attributes in client.publications:
            add("publication", time_us, publisher, dict(attributes))
        if client.changes:
            raise InputError("workload", "subscriptions that change", "a workload whose subscriptions stay")
    return found.hexdigest()


def _statistics(workload: Workload) -> Mapping[str, float | int]:
    filters = Counter(text for client in workload.clients for _, text in client.subscriptions)
    times_us = [time_us for client in workload.clients for time_us, _, _ in client.publications]
    publishers = {publisher for client in workload.clients for _, publisher, _ in client.publications}
    return {
        "clients": len(workload.clients),
        "subscriptions": sum(filters.values()),
        "distinct filters": len(filters),
        "publishers": len(publishers),
        "publications": len(times_us),
        "seconds": round(max(times_us) / 1e6, 3),
        "matching rate": float(workload.description["reached matching rate"]),
    }
