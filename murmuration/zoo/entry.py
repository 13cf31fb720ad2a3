"""What the zoo knows of each of its animals: what it does, where it is played, and what the judges must say of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from murmur_pubsub.event import Event
from reliability.protocol import ReliabilityProtocol
from routing.protocol import RoutingProtocol

Keys = Mapping[str, Any]
Part = type | RoutingProtocol[Any] | ReliabilityProtocol[Any] | str
"""A class, a declaration, or a dotted path of one of them."""

SEED = 1
CHAIN: Keys = MappingProxyType(
    {
        "name": "zoo",
        "seed": SEED,
        "runtime": "virtual",
        "overlay": {"kind": "chain", "brokers": 4},
        "workload": {
            "kind": "paced",
            "publishers": {"b0": 2},
            "subscribers": {"b1": 1, "b2": 1, "b3": 4},
            "rate_per_s": 50,
            "seconds": 4,
            "share": 0.8,
            "padding": 20,
        },
        "links": {"delay": "2 ms"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "drain": {"limit": "120 s"},
        "recovery_limit": "2 s",
    }
)
"""Two publishers, c0 and c1, at one end of a chain of four brokers; subscribers c2 at b1, c3 at b2, c4 to c7 at b3.
Those with even numbers want what c0 publishes."""
SPREAD: Keys = {**CHAIN["workload"], "publishers": {"b0": 1, "b3": 1}}
"""The same with the second publisher at the other end."""
VISITED: Keys = {**CHAIN["workload"], "visits": {"b2": [[1.5, 2.6]], "b3": [[2.0, 3.5], [2.0, 3.0]]}}
"""The same with visitors: c8 at b2; c9 and c10 at b3."""
RING: Keys = {
    "overlay": {"kind": "ring", "brokers": 5},
    "workload": {**CHAIN["workload"], "subscribers": {"b1": 1, "b2": 1, "b3": 4, "b4": 2}},
}
"""A ring of five: b3 can be reached by b1 and b2, or by b4; c8 and c9 are at b4."""
STRUCTURED: Keys = {
    "overlay": {"kind": "structured", "brokers": 8},
    "datagrams": {"delay": "1 ms"},
    "recovery_limit": "30 s",
}
"""Eight brokers without links, that may take half a minute to find out that one has gone."""


def struck(event: Event) -> bool:
    """Is the event one of those that a saboteur picks on?"""
    return event.sequence % 20 == 7


@dataclass(frozen=True, slots=True)
class Saboteur:
    """A planted fault and what a judge must say of it.

    routing, reliability: the parts with the fault (None: the honest ones, `instead`). keys: of the scenario, in place
    of those of `CHAIN`. verdict: "invalid", "unknown" or "refused" (an error before anything starts). finding: the
    verdict's finding. names: what must match all of where the finding is said to be (of a refusal, or where there are
    no pairs: some of the reason). instead: the honest protocols with which the same scenario is valid.
    """

    name: str
    does: str
    finding: str
    names: str
    reliability: Part | None = None
    routing: Part | None = None
    keys: Keys = field(default_factory=dict)
    verdict: str = "invalid"
    instead: tuple[str, str] = ("forwarding", "best_effort")

    @property
    def scenario(self) -> dict[str, Any]:
        """The keys of its scenario."""
        routing, reliability = self.instead
        routing = routing if self.routing is None else dotted(self.routing)
        return scenario_of(self.keys, routing, reliability if self.reliability is None else dotted(self.reliability))

    @property
    def harmless(self) -> dict[str, Any]:
        """The same without the fault."""
        return scenario_of(self.keys, *self.instead)


@dataclass(frozen=True, slots=True)
class Honest:
    """Protocols that do what they promise: the judge must find them valid. `keys` as for `Saboteur`."""

    name: str
    does: str
    routing: str
    reliability: str
    keys: Keys = field(default_factory=dict)

    @property
    def scenario(self) -> dict[str, Any]:
        """The keys of its scenario."""
        return scenario_of(self.keys, self.routing, self.reliability)


@dataclass(frozen=True, slots=True)
class Damaged:
    """A way to damage the journal of an honest run, as its nodes would have left it. `do` takes the run folder and
    returns the files that must be named."""

    name: str
    does: str
    do: Callable[[Path], Sequence[str]]
    run: Honest


def scenario_of(keys: Keys, routing: str, reliability: str) -> dict[str, Any]:
    """The keys of a scenario with these protocols."""
    broker = {**keys.get("broker", {}), "routing": routing, "reliability": reliability}
    return {**CHAIN, **keys, "broker": broker}


def dotted(part: Part) -> str:
    """The path by which a scenario names the class or declaration."""
    if isinstance(part, str):
        return part
    return f"{part.__module__}:{part.__qualname__}" if isinstance(part, type) else str(part.name)
