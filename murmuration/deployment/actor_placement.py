"""Which nodes share an actor: neighbours in the list of nodes, of one role and on one host."""

from collections.abc import Mapping, Sequence

from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.machine import NodeName


def share_actors(
    nodes: Sequence[NodeSpec], density: int, hosts: Mapping[NodeName, int]
) -> tuple[tuple[NodeName, ...], ...]:
    """The actors with `density` nodes each, or what is left of a role on a host; none if each node has its own."""
    if density == 1:
        return ()
    alike: dict[tuple[int, str], list[NodeName]] = {}
    for node in nodes:
        alike.setdefault((hosts.get(node.name, 0), node.role), []).append(node.name)
    return tuple(
        tuple(names[begin : begin + density]) for names in alike.values() for begin in range(0, len(names), density)
    )
