"""Parameters of Vinifera: those of the overlay, the domains of attributes, load balancing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from murmur_pubsub.errors import InputError
from routing.smallworld.parameters import SmallWorldParameters
from routing.vinifera.hashing import AttributeDomain, read_domains

_OWN = ("attributes", "beta", "balance_rounds", "spread")
_AT = "broker.parameters.vinifera"


@dataclass(frozen=True, slots=True)
class ViniferaParameters:
    """overlay: see there; K_sw is 0 and K_f 8 by default (the paper's, for 1,000 nodes). attributes: declared domains.
    beta: a node moves when its successor has relayed so many more events without interest than it (0: never; the paper
    names no value). balance_rounds: how often a node compares. spread: pass an event on at once to friends who want it
    and to all who have asked for it, and not only down from the rendezvous node."""

    overlay: SmallWorldParameters
    attributes: Mapping[str, AttributeDomain]
    beta: int = 20
    balance_rounds: int = 4
    spread: bool = True

    @classmethod
    def of(cls, place: Mapping[str, Any], given: Any) -> "ViniferaParameters":
        """From a broker's place and the scenario's `parameters.vinifera`; raises `InputError`."""
        if not isinstance(given, Mapping):
            raise InputError(_AT, repr(given), "a mapping")
        numbers = {}
        for name, least in (("beta", 0), ("balance_rounds", 1)):
            value = given.get(name, cls.__dataclass_fields__[name].default)
            if type(value) is not int or value < least:
                raise InputError(f"{_AT}.{name}", repr(value), f"a whole number from {least} on")
            numbers[name] = value
        spread = given.get("spread", True)
        if type(spread) is not bool:
            raise InputError(f"{_AT}.spread", repr(spread), "true or false")
        domains = read_domains(given.get("attributes", {}), f"{_AT}.attributes")
        of_overlay = {name: value for name, value in given.items() if name not in _OWN}
        return cls(SmallWorldParameters.of(place, "vinifera", of_overlay, {}), domains, **numbers, spread=spread)
