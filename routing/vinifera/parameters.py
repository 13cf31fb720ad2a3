"""Parameters of Vinifera: those of the overlay, the domains of attributes, load balancing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from murmur_pubsub.errors import InputError
from routing.smallworld.parameters import GossipOverlayParameters
from routing.vinifera.hashing import AttributeDomain, read_domains

Spread = Literal["none", "tree", "friends"]


@dataclass(frozen=True)
class ViniferaParameters(GossipOverlayParameters):
    """One node's parameters; K_sw is 0 and K_f 8 by default (the paper's, for 1,000 nodes)."""

    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Declared domains: `{name: {min: …, max: …}}`."""
    beta: int = 20
    """A node moves when its successor has had that many more events than it as a rendezvous node. It may leave its
    place when a contact has had more than that (0: never; the paper names no value)."""
    balance_rounds: int = 4
    """After how many rounds a node compares."""
    spread: Spread = "tree"
    """Who gets an event on its way to the rendezvous node already. tree: all that have asked for it at a node on the
    way, which costs no copy. friends: also friends whose profiles say that they want it (ours, not the paper's). none:
    nobody."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("beta", 0), ("balance_rounds", 1)):
            if getattr(self, name) < least:
                raise InputError(name, repr(getattr(self, name)), f"a whole number from {least} on")
        if self.spread not in get_args(Spread):
            raise InputError("spread", repr(self.spread), " or ".join(get_args(Spread)))
        assert self.domains is not None  # they are checked when they are read

    @cached_property
    def domains(self) -> Mapping[str, AttributeDomain]:
        """The declared domains; raises `InputError`."""
        return read_domains(self.attributes, "attributes")
