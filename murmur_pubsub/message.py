"""What makes a NamedTuple a message: its number on the wire, who sends it to whom, and how it travels.

Numbers: 1 to 15 between clients and brokers, 16 to 127 routing, 128 and above reliability. Control messages
(subscriptions and their like) are never lost, duplicated or reordered by the link model, and a run counts as
settled when none is on its way. A datagram message is sent out of band even to a node to which there is a link, if the
deployment has datagrams. What comes from a node that has no business to send it is malformed.

A field's annotation says what may arrive in it: integers fit 64 bits with a sign, and the elements of lists and dicts
are looked at as deep as they are annotated. `Annotated[int, Within(low, high)]` narrows an integer, and
`Annotated[Sequence[Any], Like((str, int))]` a list to one of just these elements.
"""

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

MessageType = TypeVar("MessageType", bound=type)
Role = Literal["broker", "client"]
"""What a node is."""


class Way(Enum):
    """Who sends a message to whom."""

    BETWEEN_BROKERS = "broker to broker"
    TO_BROKER = "client to its broker"
    TO_CLIENT = "broker to its client"


class Within(NamedTuple):
    """The range of an integer field, both ends included."""

    low: int
    high: int


class Like(NamedTuple):
    """A list of just these elements, each as annotated."""

    elements: tuple[Any, ...]


INT64 = Within(-(2**63), 2**63 - 1)
Hops: TypeAlias = Annotated[int, Within(0, 2**15 - 2)]
"""Links passed by an event: a journal row holds 15 bits, and whoever gets it may pass it on with one more."""


def message(
    kind: int, control: bool = False, datagram: bool = False, way: Way = Way.BETWEEN_BROKERS
) -> Callable[[MessageType], MessageType]:
    """Class decorator: gives the class `KIND`, `CONTROL`, `DATAGRAM` and `WAY`."""

    def mark(message_type: MessageType) -> MessageType:
        message_type.KIND = kind  # type: ignore[attr-defined]
        message_type.CONTROL = control  # type: ignore[attr-defined]
        message_type.DATAGRAM = datagram  # type: ignore[attr-defined]
        message_type.WAY = way  # type: ignore[attr-defined]
        return message_type

    return mark
