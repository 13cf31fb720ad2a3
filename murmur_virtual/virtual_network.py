"""What nodes and links ask of the virtual runtime that they are in, and what they tell it."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from murmur_pubsub.codec import Codec
from murmur_pubsub.links import Link
from murmur_pubsub.machine import NodeName
from murmur_pubsub.protocol_error import ProtocolError
from murmur_virtual.event_queue import EventQueue

Node = TypeVar("Node")


class VirtualNetwork(Protocol[Node]):
    """See `murmur_virtual.virtual_runtime`, which is one; its `Node` is a `VirtualNode`."""

    seed: int
    now_us: int
    sync_us: int
    """How long a record takes to reach the disk."""
    queue: EventQueue
    nodes: dict[NodeName, Node]
    """The latest incarnation of each node."""
    clients: set[NodeName]
    datagrams: Link | None
    """What carries messages between nodes without a link of their own; None: they are dropped as unreachable."""
    addressed_by: defaultdict[NodeName, dict[NodeName, None]]
    """`VirtualNode.addressed` the other way round: the nodes that hear when that node is gone."""
    in_flight: list[int]
    """Messages on their way, by kind: EVENT_MESSAGE and CONTROL_MESSAGE, each with its datagrams. Nodes count them."""
    busy: dict[NodeName, None]
    """Nodes that run, but are too slow for what waits for them. Each node enters and removes itself."""
    deliveries: int
    """How many there have been; nodes count them."""
    numbers: dict[NodeName, int]
    """All nodes that the run may ever have."""
    overdue: str | None
    """After what time an `InputWatch` has interrupted a machine, in words."""

    def codec(self, message_types: Sequence[type]) -> Codec:
        """The codec for these messages, one for all nodes that speak them."""

    def call_at(self, time_us: int, action: Callable[[int], None]) -> None:
        """Have `action(now_us)` called at the given time."""

    def divided(self, first: NodeName, second: NodeName) -> bool:
        """Does a partition keep datagrams between the two from passing?"""

    def in_run(self, error: ProtocolError) -> ProtocolError:
        """The same error, with the run in which it happened."""
