"""Reverse path forwarding as scenarios name it: its parameters, and which of its two coverings they ask for."""

from dataclasses import dataclass
from typing import Literal

from murmur_pubsub.machine import NodeContext
from routing.pastry.recovery import pastry_recovers
from routing.pastry.reverse_paths import ReversePathParameters, needs_order
from routing.protocol import Offer, RoutingProtocol, RunsOn
from routing.rpf.receiver import CoveredAtReceiver
from routing.rpf.router import ReversePathForwarding


@dataclass(frozen=True, slots=True)
class PathParameters(ReversePathParameters):
    """What a scenario may say of reverse path forwarding."""

    covering: Literal["sender", "receiver"] = "sender"
    """Who keeps a covered filter from going on: the node that would send it, by all that it has sent to that neighbour;
    or the node that gets it, by what the same neighbour has sent before."""


def reverse_path_forwarding(context: NodeContext, parameters: PathParameters) -> ReversePathForwarding:
    """The router of one broker."""
    make = CoveredAtReceiver if parameters.covering == "receiver" else ReversePathForwarding
    return make(context, parameters)


RPF = RoutingProtocol(
    name="rpf",
    make=reverse_path_forwarding,
    parameters=PathParameters,
    runs_on=RunsOn.STRUCTURED,
    offers=frozenset({Offer.GOSSIP}),
    keeps_order=False,
    recovers=pastry_recovers,
    tried={"covering": ()},  # the text's baseline is for its figures; its schedules are drawn where they are asked for
    check=needs_order,
)
