"""Parameters of one Pastry node, written by the deployment of a structured overlay."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import NodeName
from routing.pastry.identifiers import IdentifierSpace


@dataclass(frozen=True, slots=True)
class PastryParameters:
    """One node's place in the overlay.

    identifier: its own, of `digits` digits in `base` (a power of two). leaf_set: how many nodes are kept around it on
    the ring, half on each side (Pastry: 16 or 32). bootstrap: the peers through which it joins, tried in turn; none:
    it is the overlay's only node until others join. founds: it does not join when it is started for the first time,
    for it is the first node. probe_us: time between rounds of probes, which begin at the multiples of it, at all
    nodes together. probe_timeout_us: a probed peer that has not answered for so long has failed. The text names no
    value of any of these.
    """

    identifier: int
    base: int = 4
    digits: int = 8
    leaf_set: int = 16
    bootstrap: tuple[NodeName, ...] = ()
    founds: bool = False
    probe_us: int = 2_000_000
    probe_timeout_us: int = 500_000

    def __post_init__(self) -> None:
        self.space.check(self.identifier, "overlay.identifiers")
        if self.leaf_set < 4 or self.leaf_set % 2:  # with one on each side neighbours that join at once may miss
            raise InputError("overlay.leaf_set", str(self.leaf_set), "an even number from 4 on")
        if not 0 < self.probe_timeout_us < self.probe_us:
            found = f"probe timeout {self.probe_timeout_us} us, probes every {self.probe_us} us"
            raise InputError("overlay.probe_timeout", found, "a timeout above zero and below the time between probes")

    @property
    def space(self) -> IdentifierSpace:
        """The space of identifiers; raises `InputError` for a bad base or number of digits."""
        return IdentifierSpace(self.base, self.digits)

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "PastryParameters":
        """The parameters as plain data (`pastry` of a node's parameters); raises `InputError`."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise InputError(f"pastry.{name}", "an unknown key", ", ".join(known))
        if "identifier" not in given:
            raise InputError("broker.routing", "a node without an identifier", "an overlay of the kind 'structured'")
        return cls(**{**given, "bootstrap": tuple(given.get("bootstrap", ()))})
