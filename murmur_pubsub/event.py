"""Events: what publishers publish and subscribers are delivered.

An event is known by (publisher number, sequence number); sequence numbers of one publisher start at 0 and
rise by one. Its attributes travel as one msgpack blob that brokers pass on untouched: it is packed once, by
the publisher, and unpacked only where its attributes are read (a subscriber's client never does).
"""

import hashlib
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgpack

from murmur_pubsub.errors import InputError, WireError
from murmur_pubsub.unpacking import unpack
from murmur_pubsub.values import SENDABLE, Value, is_sendable, is_text

_pack = msgpack.Packer().pack
_TIME = struct.Struct("<q")
_UNPACKED_SENDABLE = frozenset((str, int, bool))
EVENT_BYTES_MAX = 1024 * 1024
"""Of an event's packed attributes. A message adds to them what its protocol wants to say, and has to fit a frame."""


class EventId(NamedTuple):
    """`source` is the publisher's number in the run, `sequence` counts that publisher's events from 0."""

    source: int
    sequence: int


class Event:
    """One publication; immutable by convention. `time_us` is the emulated time at which it was published."""

    __slots__ = ("_attributes", "_blob", "sequence", "source", "time_us")

    def __init__(self, source: int, sequence: int, time_us: int, attributes: Mapping[str, Value]) -> None:
        self.source = source
        self.sequence = sequence
        self.time_us = time_us
        self._attributes: Mapping[str, Value] | None = attributes
        self._blob: bytes | None = None

    @classmethod
    def from_wire(cls, fields: list[Any]) -> "Event":
        """An event from `[source, sequence, time_us, blob]`; the blob is looked into only when asked."""
        if type(fields) is not list or len(fields) != 4:
            raise WireError(f"an event of four fields was expected, not {fields!r:.80}")
        source, sequence, time_us, blob = fields
        if type(source) is not int or type(sequence) is not int or type(time_us) is not int or type(blob) is not bytes:
            raise WireError(f"an event has three integers and a blob, not {fields!r:.80}")
        if source >> 31 or (sequence | time_us) >> 63:  # of a negative number shifts leave -1
            raise WireError(f"an event's numbers are not negative and fit 31, 63 and 63 bits, unlike {fields[:3]}")
        event = cls.__new__(cls)
        event.source = source
        event.sequence = sequence
        event.time_us = time_us
        event._attributes = None
        event._blob = blob
        return event

    def to_wire(self) -> tuple[int, int, int, bytes]:
        """The fields that `from_wire` takes, ready for msgpack."""
        blob = self._blob
        return (self.source, self.sequence, self.time_us, self.blob if blob is None else blob)

    @property
    def blob(self) -> bytes:
        """The attributes as one msgpack map."""
        if self._blob is None:
            self._blob = _pack(self._attributes)
        return self._blob

    def check(self) -> None:
        """Raise `InputError` for what may not be published: an event without attributes, with a name or value that an
        event may not have, or too large. Asked wherever a publisher hands an event over, whatever the runtime."""
        attributes = self.attributes
        if not attributes:
            raise InputError(self._place, "an event without attributes", "one attribute or more")
        for name, value in attributes.items():
            if not is_text(name):
                found = f"a name of type {type(name).__name__}"
                raise InputError(f"{self._place}, attribute {name!r:.40}", found, "a text")
            if not is_sendable(value):
                raise InputError(f"{self._place}, attribute {name!r:.40}", f"{value!r:.60}", SENDABLE)
        if len(self.blob) > EVENT_BYTES_MAX:
            found = f"attributes of {len(self.blob):,} bytes"
            raise InputError(self._place, found, f"at most {EVENT_BYTES_MAX:,} bytes")

    @property
    def _place(self) -> str:
        return f"publication {self.source}:{self.sequence}"

    @property
    def attributes(self) -> Mapping[str, Value]:
        """Attribute name to value. Raises `WireError` when the blob that came over the wire is no such map."""
        if self._attributes is None:
            assert self._blob is not None
            self._attributes = unpack_attributes(self._blob)
        return self._attributes

    @property
    def id(self) -> EventId:
        """(source, sequence)."""
        return EventId(self.source, self.sequence)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return self.to_wire()[:3] == other.to_wire()[:3] and self.attributes == other.attributes

    __hash__ = None  # type: ignore[assignment]  # mutable caches inside; use `id` as a key

    def __repr__(self) -> str:
        return f"Event({self.source}:{self.sequence} at {self.time_us} us, {dict(self.attributes)!r})"


def contents_of(event: Event) -> tuple[int, bytes]:
    """The event's publication time and packed attributes, by the class's own means: an object of a class derived from
    it cannot say something else here than what it holds."""
    blob: bytes = Event.blob.fget(event)  # type: ignore[attr-defined]
    return Event.time_us.__get__(event), blob  # type: ignore[attr-defined, misc]


def fingerprint_of(time_us: int, blob: bytes) -> int:
    """A signed 32-bit number by which contents are known: the publication time and the packed attributes.

    Cut from a cryptographic hash: for a checksum a protocol could make up other contents that fit it.
    """
    digest = hashlib.blake2b(_TIME.pack(time_us) + blob, digest_size=4).digest()
    return int.from_bytes(digest, "little", signed=True)


def unpack_attributes(blob: bytes) -> dict[str, Value]:
    """The attribute map packed in `blob`; raises `WireError` if it is not one that may be published."""
    attributes = unpack(blob)
    if type(attributes) is not dict or not attributes:
        raise WireError(f"event attributes are no map, or an empty one: {attributes!r:.60}")
    for name, value in attributes.items():
        # What msgpack unpacks to these types may be sent: it refuses half a surrogate pair, and more than 64 bits.
        if type(name) is not str or (type(value) not in _UNPACKED_SENDABLE and not is_sendable(value)):
            raise WireError(f"event attribute {name!r:.40} has the value {value!r:.40}")
    return attributes
