"""What makes a NamedTuple a message: its number on the wire, which role sends it to which, and how it travels.

Numbers: 1 to 15 between clients and brokers, 16 to 127 routing, 128 and above reliability. Control messages
(subscriptions and their like) are never lost, duplicated or reordered by the link model, and a run counts as
settled when none is on its way. A datagram message is sent out of band even to a node to which there is a link, if the
deployment has datagrams. What comes from a node that has no business to send it is malformed.

A message that has a field `event` carries that event: its rows in the journal are about it. With a field `hops` it says
how many links the event has passed, and with a `header` it goes where routing says.

A field's annotation says what may arrive in it: integers fit 64 bits with a sign, and the elements of lists and dicts
are looked at as deep as they are annotated. `Annotated[int, Within(low, high)]` narrows an integer, and
`Annotated[Sequence[Any], Like((str, int))]` a list to one of just these elements.
"""

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

Message: TypeAlias = tuple[object, ...]
"""A NamedTuple of a class marked by `message`."""
MessageType = TypeVar("MessageType", bound=type)
Role = Literal["broker", "client"]
"""What a node is."""


class Way(Enum):
    """Which role sends a message to which."""

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
"""Links passed by an event: a journal row holds 15 bits, and a receiver may pass it on with one more."""


def message(
    kind: int, control: bool = False, datagram: bool = False, way: Way = Way.BETWEEN_BROKERS
) -> Callable[[MessageType], MessageType]:
    """Class decorator: gives the class `KIND`, `CONTROL`, `DATAGRAM`, `WAY`, `CARRIES_EVENT`, `COUNTS_HOPS`."""

    def mark(message_type: MessageType) -> MessageType:
        message_type.KIND = kind  # type: ignore[attr-defined]
        message_type.CONTROL = control  # type: ignore[attr-defined]
        message_type.DATAGRAM = datagram  # type: ignore[attr-defined]
        message_type.WAY = way  # type: ignore[attr-defined]
        message_type.CARRIES_EVENT = "event" in message_type.__annotations__  # type: ignore[attr-defined]
        message_type.COUNTS_HOPS = "hops" in message_type.__annotations__  # type: ignore[attr-defined]
        return message_type

    return mark


def kind_of(message_type: type) -> int:
    """The number of a class of messages on the wire."""
    kind: int = message_type.KIND  # type: ignore[attr-defined]
    return kind


def way_of(message_type: type) -> Way:
    """Which role sends messages of the class to which."""
    way: Way = message_type.WAY  # type: ignore[attr-defined]
    return way


def is_control(message_type: type) -> bool:
    """Is it a class of control messages?"""
    return bool(message_type.CONTROL)  # type: ignore[attr-defined]


def is_datagram(message_type: type) -> bool:
    """Do messages of the class travel as datagrams?"""
    return bool(message_type.DATAGRAM)  # type: ignore[attr-defined]


def goes_by_routing(message_type: type) -> bool:
    """Does a message of the class carry an event along the way that routing names, with its header?"""
    return {"event", "header"} <= set(message_type.__annotations__)
