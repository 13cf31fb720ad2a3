"""Messages to bytes and back: msgpack arrays whose first element is the message's kind.

A `Codec` is made from the message classes (`murmur_pubsub.message`) that a node's machine names; how a
field is packed follows from its annotation: `Event`, `Filter` and `Sequence[Filter]` as nested arrays, everything
else as the msgpack value of that type. Decoding is total: any bytes give a message or a `WireError`. Filters repeat
a lot and are decoded once (a bounded cache by their packed form).

A frame is what a link carries at a time: `u32 length, msgpack array of messages`, many messages in one.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgpack

from murmur_pubsub.errors import InputError, WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.message import Role, Way, is_control, is_datagram, kind_of, way_of
from murmur_pubsub.message_reader import write_reader
from murmur_pubsub.unpacking import CONTAINERS_MAX, SMALL_BYTES, unpack

FRAME_HEADER = struct.Struct("<I")
MESSAGE_BYTES_MAX = 4 * 1024 * 1024
FRAME_BYTES_MAX = MESSAGE_BYTES_MAX + 16
"""A frame that claims more is no frame of ours: the peer is cut off instead of being given the memory."""
_FILTER_CACHE_SIZE = 65_536

MessageReader = Callable[[Any], Any]


@dataclass(slots=True)
class Encoded:
    """What a codec has encoded of one message class since it was told to count."""

    messages: int = 0
    """A message that goes to several peers is encoded once and counts once."""
    bytes: int = 0


class Codec:
    """Encodes and decodes the messages of the given classes; kinds must be unique small integers.

    A codec keeps no state but caches: all nodes of one process that speak the same messages share one. `from_body`
    makes a message of an unpacked array from any sender; raises `WireError`.
    """

    def __init__(self, message_types: Sequence[type]) -> None:
        self._pack = msgpack.Packer().pack
        self._readers: dict[int, MessageReader] = {}
        self._filters: dict[bytes, Filter] = {}
        self.encoders: dict[type, Callable[[Any], bytes]] = {}
        self.control = frozenset(filter(is_control, message_types))
        self.datagrams = frozenset(filter(is_datagram, message_types))
        ways: dict[Way, dict[int, MessageReader]] = {way: {} for way in Way}
        for message_type in message_types:
            kind, way = kind_of(message_type), way_of(message_type)
            self._learn(message_type, kind)
            ways[way][kind] = self._readers[kind]
        self.from_body = _decoder(self._readers)
        self._from_body_by = {way: _decoder(readers) for way, readers in ways.items()}

    def encode(self, message: Any) -> bytes:
        """The message as one msgpack array. Raises `InputError` for one that is too large for any link."""
        return self.encoders[type(message)](message)

    def count(self, message_types: Iterable[type]) -> Mapping[type, Encoded]:
        """From now on count what is encoded of these classes, by all nodes that share the codec."""
        counted = {message_type: Encoded() for message_type in message_types}
        for message_type, found in counted.items():
            # Nodes look an encoder up for each message, so that one put here counts for them at once.
            self.encoders[message_type] = _counting(self.encoders[message_type], found)
        return counted

    def decode(self, data: bytes) -> Any:
        """The message in `data`; raises `WireError` if there is none."""
        return self.from_body(unpack(data))

    def heard_by(self, role: Role) -> tuple[MessageReader, MessageReader]:
        """As `from_body`, at a node of that role: for what a broker sends it, and for what a client sends it. A message
        that such a peer has no business to send is a `WireError`."""
        if role == "client":
            return self._from_body_by[Way.TO_CLIENT], _decoder({})
        return self._from_body_by[Way.BETWEEN_BROKERS], self._from_body_by[Way.TO_BROKER]

    def _learn(self, message_type: type, kind: int) -> None:
        """Derive from the annotations how the class is packed, and what its fields may be on the wire."""
        if kind in self._readers:
            raise ValueError(f"two message classes have the kind {kind}: {message_type.__name__} is the second")
        hints = get_type_hints(message_type)
        names = list(message_type._fields)  # type: ignore[attr-defined]
        events = [number for number, name in enumerate(names, 1) if hints[name] is Event]
        filters = [number for number, name in enumerate(names, 1) if hints[name] is Filter]
        filter_lists = [number for number, name in enumerate(names, 1) if hints[name] == Sequence[Filter]]
        nested = events + filters
        pack = self._pack

        def encode_plain(message: Any) -> bytes:
            packed: bytes = pack((kind, *message))
            if len(packed) > SMALL_BYTES:
                _check_size(message_type, packed)
            return packed

        def encode_nested(message: Any) -> bytes:
            body = [kind, *message]
            for number in nested:
                body[number] = body[number].to_wire()
            for number in filter_lists:
                body[number] = [each.to_wire() for each in body[number]]
            packed: bytes = pack(body)
            if len(packed) > SMALL_BYTES:
                _check_size(message_type, packed)
            return packed

        self._readers[kind] = write_reader(message_type, {Event: Event.from_wire, Filter: self._filter})
        self.encoders[message_type] = encode_nested if nested or filter_lists else encode_plain

    def _filter(self, body: Any) -> Filter:
        # By its packed form, not by its values: 1, 1.0 and True are equal keys in Python and other bytes in msgpack.
        packed: bytes = self._pack(body)
        found = self._filters.get(packed)
        if found is None:
            try:
                found = Filter.from_wire(body)
            except ValueError as error:
                raise WireError(f"malformed filter: {error}") from error
            if len(self._filters) >= _FILTER_CACHE_SIZE:
                self._filters.clear()
            self._filters[packed] = found
        return found


def _counting(encode: Callable[[Any], bytes], found: Encoded) -> Callable[[Any], bytes]:
    def encode_and_count(message: Any) -> bytes:
        data = encode(message)
        found.messages += 1
        found.bytes += len(data)
        return data

    return encode_and_count


def _decoder(readers: Mapping[int, MessageReader]) -> MessageReader:
    def from_body(body: Any) -> Any:
        try:
            read = readers[body[0]]
        except Exception:
            raise WireError(f"a message is an array that begins with a known kind, not {body!r:.60}") from None
        return read(body)

    return from_body


def _check_size(message_type: type, packed: bytes) -> None:
    """Raise `InputError` for a message that no node would take."""
    place = f"a {message_type.__name__} to send"
    if len(packed) > MESSAGE_BYTES_MAX:
        raise InputError(place, f"{len(packed):,} bytes", f"at most {MESSAGE_BYTES_MAX:,} bytes")
    try:
        unpack(packed, CONTAINERS_MAX - 1)  # its frame is one more
    except WireError as error:
        raise InputError(place, str(error), "fewer") from None


_ARRAY_HEADER_16 = struct.Struct(">BH")
_ARRAY_HEADER_32 = struct.Struct(">BI")
_SMALL_BODY_BYTES = SMALL_BYTES - _ARRAY_HEADER_32.size


def frame(messages: Sequence[bytes]) -> bytes:
    """One frame of already encoded messages."""
    return _frame(messages, sum(map(len, messages)))


def frames(messages: Sequence[bytes]) -> list[bytes]:
    """The messages in frames that are small (`murmur_pubsub.unpacking`), but for a message that is large by itself."""
    size = sum(map(len, messages))
    if size <= _SMALL_BODY_BYTES:
        return [_frame(messages, size)]
    cut: list[bytes] = []
    begin = size = 0
    for number, message in enumerate(messages):
        if size and size + len(message) > _SMALL_BODY_BYTES:
            cut.append(_frame(messages[begin:number], size))
            begin, size = number, 0
        size += len(message)
    return [*cut, _frame(messages[begin:], size)]


def _frame(messages: Sequence[bytes], size: int) -> bytes:
    # A msgpack array's head, written by hand before messages that are packed already: fixarray, array 16, array 32.
    count = len(messages)
    if count < 16:
        head = bytes((0x90 | count,))
    elif count < 65_536:
        head = _ARRAY_HEADER_16.pack(0xDC, count)
    else:
        head = _ARRAY_HEADER_32.pack(0xDD, count)
    return b"".join((FRAME_HEADER.pack(len(head) + size), head, *messages))


class FrameReader:
    """Cuts a byte stream into frames; `feed` returns the message arrays that are complete."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> list[Any]:
        """Unpacked message arrays in order. Raises `WireError` when the stream can no longer be a peer's."""
        buffer = self._buffer
        buffer += data
        bodies: list[Any] = []
        position = 0
        available = len(buffer)
        while available - position >= 4:
            (size,) = FRAME_HEADER.unpack_from(buffer, position)
            if size > FRAME_BYTES_MAX:
                raise WireError(f"a frame of {size} bytes; at most {FRAME_BYTES_MAX} are allowed")
            if available - position - 4 < size:
                break
            messages = unpack(memoryview(buffer)[position + 4 : position + 4 + size])
            if type(messages) is not list:
                raise WireError(f"a frame is an array of messages, not {messages!r:.60}")
            bodies += messages
            position += 4 + size
        if position:
            del buffer[:position]  # the views on it are gone: `unpack` copies what it makes
        return bodies
