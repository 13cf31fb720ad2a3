"""What makes a NamedTuple a message: its number on the wire, whether it is a control message, and how it travels.

Numbers: 1 to 15 between clients and brokers, 16 to 127 routing, 128 and above reliability. Control messages
(subscriptions and their like) are never lost, duplicated or reordered by the link model, and a run counts as
settled when none is on its way. A datagram message is sent out of band even to a node to which there is a link, if the
deployment has datagrams.
"""

from collections.abc import Callable
from typing import TypeVar

MessageType = TypeVar("MessageType", bound=type)


def message(kind: int, control: bool = False, datagram: bool = False) -> Callable[[MessageType], MessageType]:
    """Class decorator: gives the class `KIND`, `CONTROL` and `DATAGRAM`."""

    def mark(message_type: MessageType) -> MessageType:
        message_type.KIND = kind  # type: ignore[attr-defined]
        message_type.CONTROL = control  # type: ignore[attr-defined]
        message_type.DATAGRAM = datagram  # type: ignore[attr-defined]
        return message_type

    return mark
