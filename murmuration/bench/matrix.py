"""What the table of all systems is made of: workloads, faults and pairs of protocols, and the scenario of each cell.

All systems of a cell get the same clients at the same brokers, the same filters and events at the same times, the same
links and the same faults. What differs is what has to: the overlay, and for the rendezvous systems what attributes
there are.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from murmuration.registry import RELIABILITIES, ROUTINGS, routing_named
from routing.protocol import RunsOn

Section = Mapping[str, Any]

EVENTS_PER_BROKER = 4
PUBLISHING_S = 30
_FAULTS_FROM_S, _FAULTS_FOR_S = 8, 8
_KILLED_SHARE = 5
_CHURN_FROM_S = 2
_GOSSIP_INTERVAL = "100 ms"
"""Not the paper's 30 ms: its dispatchers publish thousands of events a second, and here most rounds would be idle."""
_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class System(NamedTuple):
    """A pair of protocols, by names or dotted paths."""

    routing: str
    reliability: str

    def __str__(self) -> str:
        return f"{self.routing}/{self.reliability}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the table. `brokers`: how many there are, and clients."""

    workload: str
    fault: str
    system: System
    seed: int
    brokers: int

    def __str__(self) -> str:
        return f"{self.workload}/{self.fault}/{self.system}/{self.seed}"


@dataclass(frozen=True, slots=True)
class BenchWorkload:
    """A workload. `section`: the scenario's, for so many brokers; `domains`: the values of the attributes that filters
    ask for; `data`: the file without which it cannot be played, and the key that names it."""

    about: str
    section: Callable[[int], Section]
    domains: Callable[[int], Section]
    others: tuple[str, ...] = ()
    """Attributes that events have and filters do not ask for."""
    data: str | None = None


@dataclass(frozen=True, slots=True)
class BenchFault:
    """What is broken. `keys`: those of the scenario, for so many brokers, a seed and the path of `data`."""

    about: str
    keys: Callable[[int, int, str | None], Section]
    data: str | None = None


def _synthetic(exponent: float) -> Callable[[int], Section]:
    def section(brokers: int) -> Section:
        return {
            "kind": "zipf", "clients": brokers, "subscribers_per_actor": 2, "publishers": _publishers(brokers),
            "publications": EVENTS_PER_BROKER * brokers, "rate_per_s": _rate_per_s(brokers), "attributes": 3,
            "predicates": 1, "integers": 50, "exponent": exponent, "matching_rate": 0.05,
        }  # fmt: skip

    return section


def _social(brokers: int) -> Section:
    posts = EVENTS_PER_BROKER * brokers
    return {
        "kind": "social",
        "users": 2 * brokers,
        "mean_degree": 10,
        "posts": posts,
        "rate_per_s": _rate_per_s(brokers),
    }


def _quotes(brokers: int) -> Section:
    return {
        "kind": "recorded", "publications": EVENTS_PER_BROKER * brokers, "rate_per_s": _rate_per_s(brokers),
        "clients": brokers, "publishers": _publishers(brokers), "subscriptions": 2 * brokers, "matching_rate": 0.01,
    }  # fmt: skip


def _rate_per_s(brokers: int) -> float:
    return round(EVENTS_PER_BROKER * brokers / PUBLISHING_S, 3)


def _publishers(brokers: int) -> int:
    return max(2, brokers // 10)


def _of_numbers(brokers: int) -> Section:
    return {f"a{number}": {"min": 0, "max": 50} for number in range(3)}


def _of_authors(brokers: int) -> Section:
    return {"author": {"min": 0, "max": 2 * brokers}}


def _of_quotes(brokers: int) -> Section:
    strings, prices, volumes = {"min": "A", "max": "ZZZZZ"}, {"min": 0, "max": 300}, {"min": 0, "max": 100_000_000}
    return {"symbol": strings, "close": prices, "volume": volumes}


WORKLOADS: Mapping[str, BenchWorkload] = {
    "uniform": BenchWorkload("interest and events spread evenly over whole numbers", _synthetic(0.0), _of_numbers),
    "zipf": BenchWorkload("interest and events popular by Zipf, exponent 1", _synthetic(1.0), _of_numbers),
    "social": BenchWorkload(
        "two users a broker, a generated friendship graph; all publish", _social, _of_authors, ("topic", "length")
    ),
    "quotes": BenchWorkload(
        "recorded stock quotes, filters by symbol, price and volume", _quotes, _of_quotes,
        ("class", "open", "high", "low", "date"), "padres_stockquotes.tar.xz",
    ),
}  # fmt: skip


def _killed(brokers: int, seed: int, data: str | None) -> Section:
    victims = sorted(random.Random(f"{seed}/killed").sample(range(brokers), max(1, brokers // _KILLED_SHARE)))
    return {
        "faults": [
            {"at": f"{_FAULTS_FROM_S} s", "kill": f"b{number}", "for": f"{_FAULTS_FOR_S} s"} for number in victims
        ]
    }


def _churn(brokers: int, seed: int, data: str | None) -> Section:
    played_s = PUBLISHING_S - _CHURN_FROM_S
    trace = {"days": 5} if data is None else {"trace": data}
    section = {"window": [2, 3], "speed": 86_400 / played_s, "who": "brokers", "select": "active", "shortest": "1 s"}
    section["begin"] = f"{_CHURN_FROM_S} s"
    return {"churn": trace | section}


def _lossy(brokers: int, seed: int, data: str | None) -> Section:
    return {"links": {"loss": 0.05}, "datagrams": {"loss": 0.05}}


FAULTS: Mapping[str, BenchFault] = {
    "none": BenchFault("nothing is broken", lambda *_: {}),
    "loss": BenchFault("links and datagrams between brokers lose 5 % of the messages", _lossy),
    "killed": BenchFault("a fifth of the brokers is killed at 8 s and started again at 16 s", _killed),
    "skype": BenchFault("brokers come and go as nodes of the Skype trace, a day while events are published", _churn,
                        "skype.avt"),
    "generated": BenchFault("brokers come and go as the generator fitted to that trace has it", _churn),
}  # fmt: skip


def registered_systems() -> list[System]:
    """All pairs of registered protocols, those that cannot run too."""
    return [System(routing, reliability) for routing in ROUTINGS for reliability in RELIABILITIES]


def scenario_of(cell: Cell, workload_data: str | None, fault_data: str | None) -> dict[str, Any]:
    """The cell's scenario, whole. The data: paths of the files that the workload and the fault name."""
    workload, fault = WORKLOADS[cell.workload], FAULTS[cell.fault]
    routing = routing_named(cell.system.routing)
    structured = routing.runs_on is RunsOn.STRUCTURED
    kind: Section = {"kind": "structured"} if structured else {"kind": "balanced", "degree": 4}
    domains = dict(workload.domains(cell.brokers))
    known: dict[str, Section] = {name: {"attributes": domains} for name in ("vinifera", "vinifera_even")}
    known["ferry"] = {"attributes": [*domains, *workload.others]}
    pushes = {"algorithm": "push"} if structured else {}  # pulls need an overlay with links
    known |= {"epidemic": {**pushes, "interval": _GOSSIP_INTERVAL}}
    parameters = {name: given for name, given in known.items() if name in (routing.name, cell.system.reliability)}
    broken = dict(fault.keys(cell.brokers, cell.seed, fault_data))
    data = {} if workload_data is None else {"path": workload_data}
    return {
        "name": f"bench-{_NAME.sub('-', str(cell))}"[:60].rstrip("-"),
        "description": f"{cell} of murmur bench: {workload.about}; {fault.about}",
        "seed": cell.seed,
        "runtime": "virtual",
        "overlay": {**kind, "brokers": cell.brokers},
        "workload": {**workload.section(cell.brokers), **data},
        "broker": {"routing": cell.system.routing, "reliability": cell.system.reliability, "parameters": parameters},
        "links": {"delay": "5 ms", **broken.pop("links", {})},
        "datagrams": {"delay": "5 ms", **broken.pop("datagrams", {})},
        "client_links": {"delay": "1 ms"},
        "failure_detection": {"heartbeat": "500 ms", "timeout": "2 s", "reconnect": "200 ms"},
        "drain": {"quiet": "1 s", "limit": "10 s"},
        **broken,
    }
