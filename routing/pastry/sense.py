"""Whether the identifiers and ranges in a message are of this overlay's space: a peer may say any numbers."""

import functools
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

from murmur_pubsub.errors import WireError
from routing.pastry.identifiers import IdentifierRange, IdentifierSpace
from routing.pastry.messages import PastryPeerFields, RangeFields


@functools.cache
def _fields_of(message_type: type, annotated: object) -> list[tuple[str, bool]]:
    """The fields that are annotated so, and whether each is a sequence of them."""
    hints = get_type_hints(message_type, include_extras=True)
    return [(name, hint != annotated) for name, hint in hints.items() if annotated in (hint, *get_args(hint))]


def sense_of(message_type: type, space: IdentifierSpace) -> Callable[[Any], None]:
    """A function that raises `WireError` for a message of the class with an identifier or a range that the space does
    not have. Which fields have some, their annotations say."""
    checks: list[tuple[str, bool, Callable[[Any], object]]] = [
        (name, are_many, check)
        for annotated, check in ((PastryPeerFields, peer_check(space)), (RangeFields, range_check(space)))
        for name, are_many in _fields_of(message_type, annotated)
    ]

    def check_all(message: Any) -> None:
        for name, are_many, check in checks:
            found = getattr(message, name)
            for each in found if are_many else (found,):
                check(each)

    return check_all


def peer_check(space: IdentifierSpace) -> Callable[[Any], None]:
    """A function that raises `WireError` for the fields of a peer whose identifier is none."""

    def check(peer: Any) -> None:
        if not 0 <= peer[1] < space.size:
            raise WireError(f"the peer {peer!r:.80} has no identifier of {space.digits} digits in base {space.base}")

    return check


def range_check(space: IdentifierSpace) -> Callable[[Any], IdentifierRange]:
    """A function that makes a range of its fields, or raises `WireError`."""
    sizes = [space.base**length for length in range(space.digits + 1)]

    def check(fields: Any) -> IdentifierRange:
        if len(fields) != 2 or not 0 <= fields[1] < len(sizes) or not 0 <= fields[0] < sizes[fields[1]]:
            raise WireError(f"{fields!r:.80} is no range of {space.digits} digits in base {space.base}")
        return IdentifierRange(*fields)

    return check
