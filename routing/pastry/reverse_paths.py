"""How an event goes back over an edge by which a subscription came (IRBR section 3).

A routing table is a directed graph: a node that has a peer in its table need not be in the table of that peer. The text
counts the way back in hops of the overlay, "usually larger" than the way there, and that is why its baselines need more
messages to publish than IRBR. Here it is `routed`: an event takes Pastry's way to the identifier of the node that asked
for it. A node that keeps the address of that node needs one message instead: `direct`, the default, since nothing
forbids it.

A routed event's header has that identifier behind the router's own field.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from murmur_pubsub.errors import InputError
from routing.pastry.messages import PastryPeer
from routing.pastry.node import Pastry
from routing.protocol import OverlayTraits
from routing.router import Hop

ReversePath = Literal["direct", "routed"]


@dataclass(frozen=True, slots=True)
class ReversePathParameters:
    """What a scenario may say of a routing whose events go back over edges."""

    resets: bool = False
    """Take a peer whose process has closed its connections for failed at once (decision 0010), and not only when it
    leaves a probe unanswered."""
    reverse_paths: ReversePath = "direct"
    """How events go back over an edge."""


def needs_order(parameters: ReversePathParameters, traits: OverlayTraits) -> None:
    """Raise `InputError` where a withdrawal may overtake the subscription that it withdraws."""
    if traits.datagrams_overtake:
        raise InputError(
            "datagrams.delay", "delays that differ", "a constant delay: what two brokers say keeps its order"
        )


class ReversePaths:
    """The edges of one node, taken backwards."""

    def __init__(self, pastry: Pastry, path: ReversePath) -> None:
        self._pastry = pastry
        self._routed = path == "routed"

    def back_to(self, peer: PastryPeer, field: int) -> list[Hop]:
        """The hop to the node that asked, with the router's own field of the header; none if there is no way."""
        return self._towards(peer.identifier, field) if self._routed else [Hop(peer.name, (field,))]

    def passes_on(self, header: Sequence[int]) -> bool:
        """Is an event with this header only passing this node?"""
        return len(header) > 1 and header[1] != self._pastry.own

    def onward(self, header: Sequence[int]) -> list[Hop]:
        """The next hop of such an event."""
        return self._towards(header[1], header[0])

    def _towards(self, identifier: int, field: int) -> list[Hop]:
        hop = self._pastry.next_hop(identifier)
        return [] if hop is None else [Hop(hop.name, (field, identifier))]
