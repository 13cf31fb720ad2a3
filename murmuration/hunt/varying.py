"""Schedules over other links, clients, filters and times than usual: in what never varies nobody looks for faults."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from murmuration.hunt.space import TREES, USUAL, ScheduleSpace

_OFTEN = 0.4
"""So many of the sections of a schedule are other ones than usual, and so many of the keys of its workload."""
_BRIEFLY_QUEUED = 0.3
_BYTES_PER_S = 100_000
_DIGITS = ((2, 16), (16, 4), (16, 8))
"""(base, digits) of identifiers."""
_SELDOM = 0.2
_CHURNING_MAX = 3
_VISITED_MAX = 3
_CHURN: Mapping[str, object] = {"days": 3, "speed": 20_000, "shortest": "50 ms"}
"""A session of the generator is a second long, on average."""
_HOSTS = (2, 3)
_DENSITIES = (2, 3)
"""Nodes in an actor, which a `kill_actor` takes all."""
_DELAYS: tuple[object, ...] = (
    "0 ms",
    "20 ms",
    {"uniform": ["500 us", "20 ms"]},
    {"exponential": "5 ms"},
    {"normal": ["5 ms", "2 ms"]},
)
_DETECTIONS = (
    ("50 ms", "200 ms", "5 ms"),
    ("100 ms", "300 ms", "200 ms"),
    ("500 ms", "2 s", "100 ms"),
    ("1 s", "5 s", "100 ms"),
)
"""(heartbeat, timeout, reconnect): no delay above comes near a timeout. The last are what a scenario has by default."""
_USERS = (12, 20, 40)
_FRIENDS = (2, 4, 6)
"""Of a user of a social workload, on average."""
_DATAGRAM_LOSS = (0.0, 0.02, 0.05)
"""Where more is lost, the ring of a gossip overlay does not settle: too many neighbours are taken for failed."""
_WORKLOAD: Mapping[str, tuple[object, ...]] = {
    "attributes": (3,),
    "predicates": (2,),
    "integers": (4,),
    "categories": (3,),
    "subscriptions_per_subscriber": (2, 3),
    "subscribers_per_actor": (1, 4),
    "arrival": ("uniform",),
    "matching_rate": (0.1, 0.9),
    "exponent": (0.0, 2.0),
}


def varied(rng: random.Random, space: ScheduleSpace, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with some sections that are other ones than usual."""
    changed = dict(scenario)
    for section, change in _CHANGES.items():
        if rng.random() < _OFTEN and (other := change(rng, space, scenario)):
            changed[section] = {**scenario.get(section, {}), **other}
    if rng.random() < 2 * _SELDOM and "parameters" not in scenario["broker"]:  # these say who publishes
        changed["workload"] = rng.choice((_social, _paced))(rng, scenario)
    if rng.random() < _OFTEN / 2 and not space.disks:  # clients alone can go to a backup
        changed["last_mile"] = "broker"
    if rng.random() < _OFTEN:
        changed["hosts"] = rng.choice(_HOSTS)
    if rng.random() < _OFTEN:
        changed["density"] = rng.choice(_DENSITIES)
    if rng.random() < _SELDOM:
        changed["journal"] = "deliveries"
    if rng.random() < _SELDOM:
        changed["churn"] = _churn(rng, changed)
    overlay = scenario["overlay"]
    if overlay["kind"] == "structured" and "identifiers" not in overlay and rng.random() < _OFTEN:
        changed["overlay"] = {**overlay, **dict(zip(("base", "digits"), rng.choice(_DIGITS), strict=True))}
    if rng.random() < _SELDOM:
        changed["broker"] = {**scenario["broker"], "matching": "naive"}
    return changed


def on_links_that_carry_it(scenario: dict[str, Any]) -> dict[str, Any]:
    """The scenario on links without bounds, if narrow ones would carry less than its protocol says without a fault.
    With a `dct` each subscribers' broker asks for whatever a pubend has not said yet, and in short chunks that alone
    fills them: it comes later and later, and is asked for again."""
    given = scenario["broker"].get("parameters", {})
    if not any({"dct", "nack_chunk"} <= each.keys() for each in given.values()):
        return scenario
    narrow = ("messages_per_s", "queue_messages")
    return {**scenario, "links": {key: value for key, value in scenario["links"].items() if key not in narrow}}


def less_varied(scenario: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The scenario with one section as it usually is, for each that is not."""
    for section in ("client_links", "last_mile", "churn", "hosts", "density", "journal"):
        if section in scenario:
            yield {key: value for key, value in scenario.items() if key != section}
    if "matching" in scenario["broker"]:
        yield {**scenario, "broker": {key: value for key, value in scenario["broker"].items() if key != "matching"}}
    datagrams = scenario.get("datagrams", {})
    if datagrams.keys() - {"delay"}:
        yield {**scenario, "datagrams": {"delay": datagrams["delay"]}}
    for section, usual in {**USUAL, "overlay": {}}.items():
        varied_keys, given = _VARIED.get(section, ()), scenario[section]
        if given.get("kind") in ("social", "paced"):
            given = _usual_workload(given)
        as_usual = {**{key: value for key, value in given.items() if key not in varied_keys}, **usual}
        if as_usual != scenario[section]:
            yield {**scenario, section: as_usual}


def _links(rng: random.Random, space: ScheduleSpace, scenario: Mapping[str, Any]) -> dict[str, Any]:
    links: dict[str, Any] = {"delay": rng.choice(_DELAYS), "reordering_by": rng.choice(("1 ms", "100 ms"))}
    if rng.random() < _BRIEFLY_QUEUED:
        links |= {"messages_per_s": 500, "queue_messages": rng.choice((3, 20))}
    if rng.random() < _SELDOM:
        links["bytes_per_s"] = _BYTES_PER_S
    return links


def _client_links(rng: random.Random, space: ScheduleSpace, scenario: Mapping[str, Any]) -> dict[str, Any]:
    return {**_links(rng, space, scenario), **drawn_harm(rng, space)}


def _datagrams(rng: random.Random, space: ScheduleSpace, scenario: Mapping[str, Any]) -> dict[str, Any]:
    if "datagrams" not in scenario or not any(space.harm):
        return {}
    harm = {**drawn_harm(rng, space), "loss": rng.choice(_DATAGRAM_LOSS)}
    return {name: probability for name, probability in harm.items() if probability}


def _detection(rng: random.Random, space: ScheduleSpace, scenario: Mapping[str, Any]) -> dict[str, Any]:
    return dict(zip(("heartbeat", "timeout", "reconnect"), rng.choice(_DETECTIONS), strict=True))


def _workload(rng: random.Random, space: ScheduleSpace, scenario: Mapping[str, Any]) -> dict[str, Any]:
    workload = scenario["workload"]
    changed = {key: rng.choice(values) for key, values in _WORKLOAD.items() if rng.random() < _OFTEN}
    if scenario["overlay"]["kind"] in TREES and rng.random() < _OFTEN and not space.disks:  # events enter at some only
        changed["clients_at"] = "leaves"
    clients = rng.randint(workload["publishers"], 2 * workload["clients"])
    return {**changed, "clients": clients}


def _social(rng: random.Random, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """All clients publish and subscribe, each for several users, and ask for many filters."""
    workload = scenario["workload"]
    return {
        "kind": "social",
        "users": rng.choice(_USERS),
        "mean_degree": rng.choice(_FRIENDS),
        "users_at": rng.choice(("random", "neighbours")),
        "clients_per_broker": rng.choice((1, 1, 2)),
        "posts": workload["publications"],
        "rate_per_s": workload["rate_per_s"],
    }


def _paced(rng: random.Random, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Subscribers with one filter each, some of whom come for a while and withdraw it."""
    overlay, usual = scenario["overlay"], scenario["workload"]
    cells = overlay.get("cells", {}).values()  # of which those with several brokers take no clients
    brokers = [members[0] for members in cells if len(members) == 1] or broker_names(overlay)
    publishers = {name: rng.randint(1, 2) for name in rng.sample(brokers, min(len(brokers), rng.randint(1, 2)))}
    rate_per_s = usual["rate_per_s"] // sum(publishers.values())
    seconds = max(1, usual["publications"] // (rate_per_s * sum(publishers.values())))
    visits = {
        name: [[round(seconds * rng.uniform(0.0, 0.4), 1), round(seconds * rng.uniform(0.6, 1.0), 1)]]
        for name in rng.sample(brokers, rng.randint(0, min(len(brokers), _VISITED_MAX)))
    }
    return {
        "kind": "paced",
        "publishers": publishers,
        "subscribers": {name: rng.randint(1, 2) for name in rng.sample(brokers, rng.randint(1, len(brokers)))},
        "rate_per_s": rate_per_s,
        "seconds": seconds,
        "share": rng.choice((0.3, 1.0)),
        **({"visits": visits} if visits else {}),
    }


def _usual_workload(other: Mapping[str, Any]) -> dict[str, Any]:
    if other["kind"] == "social":
        events = {"publications": other["posts"], "rate_per_s": other["rate_per_s"]}
    else:
        rate_per_s = other["rate_per_s"] * sum(other["publishers"].values())
        events = {"publications": other["seconds"] * rate_per_s, "rate_per_s": rate_per_s}
    return {"kind": "zipf", "clients": 2, "publishers": 1, **events, **USUAL["workload"]}


def broker_names(overlay: Mapping[str, Any]) -> list[str]:
    """The brokers of a drawn overlay."""
    if "cells" in overlay:
        return [name for members in overlay["cells"].values() for name in members]
    return [f"b{number}" for number in range(overlay["brokers"])]


def _churn(rng: random.Random, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """A few brokers, or clients, come and go beside the faults that are drawn."""
    if scenario.get("last_mile") != "broker" and rng.random() < 0.5:
        names = [f"c{number}" for number in range(scenario["workload"].get("clients", 2))]
    else:
        names = broker_names(scenario["overlay"])
    return {**_CHURN, "who": rng.sample(names, min(len(names), rng.randint(1, _CHURNING_MAX)))}


def drawn_harm(rng: random.Random, space: ScheduleSpace) -> dict[str, float]:
    """What links do to messages all the time, where the promise covers it."""
    drawn = {name: rng.choice(space.harm) for name in ("loss", "duplication", "reordering")}
    return {name: probability for name, probability in drawn.items() if probability}


_CHANGES: Mapping[str, Callable[[random.Random, ScheduleSpace, Mapping[str, Any]], dict[str, Any]]] = {
    "links": _links,
    "client_links": _client_links,
    "failure_detection": _detection,
    "workload": _workload,
    "datagrams": _datagrams,
}
_VARIED: Mapping[str, tuple[str, ...]] = {
    "links": ("delay", "reordering_by", "messages_per_s", "queue_messages", "bytes_per_s"),
    "overlay": ("base", "digits"),
    "workload": (*_WORKLOAD, "clients_at"),
}
"""Keys that are as usual where they are left out, or are usually something else."""
