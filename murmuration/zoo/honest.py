"""Honest protocols: every registered pair, in peace and under faults that heal, and some that look suspicious."""

import itertools
from collections.abc import Mapping
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.deployment.build_deployment import build
from murmuration.registry import RELIABILITIES, ROUTINGS
from murmuration.scenario.load import check_scenario
from murmuration.zoo.durables import C7_IS_AWAY, FULL
from murmuration.zoo.entry import CHAIN, RING, STRUCTURED, VISITED, Honest, Keys, dotted, scenario_of
from murmuration.zoo.templates import EveryLink, FirstTimeOnly

_TREE: Keys = {"workload": VISITED, "datagrams": {"delay": "1 ms"}}
_DOMAINS: Keys = {"attributes": {"publisher": {"min": 0, "max": 2}, "x": {"min": 0, "max": 1}}}
_PARAMETERS_WITHOUT_LINKS: Mapping[str, Any] = {
    "epidemic": {"algorithm": "push", "rest_after": "1 s"},
    "vinifera": _DOMAINS,
    "vinifera_even": _DOMAINS,
    "ferry": {"attributes": ["publisher", "x"]},
}
_HEALS = [
    {"at": "600 ms", "kill": "b2", "for": "300 ms"},
    {"at": "1500 ms", "cut": ["b0", "b1"], "for": "400 ms"},
    {"at": "2500 ms", "stall": "b1", "for": "200 ms"},
    {"at": "3 s", "slow": "b3", "work": "1 ms", "for": "500 ms"},
    {"at": "3200 ms", "link": ["b1", "b2"], "loss": 0.3, "duplication": 0.3, "reordering": 0.3, "for": "500 ms"},
    {"at": "3500 ms", "kill": "c5", "for": "300 ms"},
]
_HEALS_WITHOUT_LINKS = [
    {"at": "600 ms", "kill": "b2", "for": "300 ms"},
    {"at": "2500 ms", "stall": "b1", "for": "200 ms"},
]


def _fit(routing: str, reliability: str, keys: Keys) -> bool:
    try:
        build(check_scenario(scenario_of(keys, routing, reliability), "zoo"))
    except InputError:
        return False
    return True


def _pairs() -> list[Honest]:
    found = []
    for routing, reliability in itertools.product(ROUTINGS, RELIABILITIES):
        own = {name: each for name, each in _PARAMETERS_WITHOUT_LINKS.items() if name in (routing, reliability)}
        without_links = {**STRUCTURED, "broker": {"parameters": own}}
        for keys, faults in ((_TREE, _HEALS), (without_links, _HEALS_WITHOUT_LINKS)):
            if _fit(routing, reliability, keys):
                name = f"{routing} {reliability}"
                found.append(Honest(name, "in peace", routing, reliability, keys))
                found.append(
                    Honest(f"{name} faults", "under faults that heal", routing, reliability, {**keys, "faults": faults})
                )
    return found


TEN_CLIENTS = Honest(
    "ten clients",
    "ten clients with five subscribers each",
    "forwarding",
    "best_effort",
    {
        "workload": {
            "kind": "zipf", "clients": 10, "subscribers_per_actor": 5, "publishers": 4, "publications": 200,
            "rate_per_s": 400, "matching_rate": 0.1,
        }
    },
)  # fmt: skip
HONEST = (
    *_pairs(),
    Honest(
        "flooding a ring",
        "two ways, and a broker of one of them dies",
        dotted(EveryLink),
        dotted(FirstTimeOnly),
        {**RING, "faults": [{"at": "1 s", "kill": "b1", "for": "1 s"}]},
    ),
    Honest(
        "copies",
        "a link makes copies, and best effort delivers them",
        "forwarding",
        "best_effort",
        {"faults": [{"at": "0 s", "link": ["b1", "b2"], "duplication": 0.5}]},
    ),
    Honest(
        "withdrawal",
        "a visitor leaves while its broker stands still",
        "forwarding",
        "best_effort",
        {
            "workload": {**CHAIN["workload"], "visits": {"b3": [[1, 2.5]]}},
            "faults": [{"at": "2300 ms", "stall": "b2", "for": "250 ms"}],
            "withdrawal_grace": "10 ms",
        },
    ),
    Honest("full log", "publishers wait for a client that is not back", "cells", "durable", {**FULL, **C7_IS_AWAY}),
    Honest(
        "full log gryphon",
        "publishers wait for a broker that is not back",
        "cells",
        "gryphon",
        {
            "broker": {"parameters": {"gryphon": {"log_most": 40, "checkpoint": 5}}},
            "faults": [{"at": "500 ms", "kill": "b3"}],
        },
    ),
    Honest("own subscribers", "brokers that deliver themselves", "forwarding", "best_effort", {"last_mile": "broker"}),
    TEN_CLIENTS,
)
