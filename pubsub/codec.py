"""Messages to bytes and back: msgpack arrays whose first element is the message's kind.

A `Codec` is made from the message classes (`pubsub.message`) that a node's machine names; how a
field is packed follows from its annotation: `Event`, `Filter` and `Sequence[Filter]` as nested arrays, everything
else as the msgpack value of that type. Decoding is total: any bytes give a message or a `WireError`. Filters repeat
a lot and are decoded once (a bounded cache by their packed form).

A frame is what a link carries at a time: `u32 length, msgpack array of messages`, many messages in one.
"""

import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import msgpack

from pubsub.errors import WireError
from pubsub.event import Event
from pubsub.filter import Filter

FRAME_HEADER = struct.Struct("<I")
FRAME_BYTES_MAX = 64 * 1024 * 1024
"""A frame that claims more is no frame of ours: the peer is cut off instead of being given the memory."""
_FILTER_CACHE_SIZE = 65_536

_new = tuple.__new__
"""Makes a NamedTuple of fields already checked without the Python call of its constructor."""


class Codec:
    """Encodes and decodes the messages of the given classes; kinds must be unique small integers.

    A codec keeps no state but caches: all nodes of one process that speak the same messages share one.
    """

    def __init__(self, message_types: Sequence[type]) -> None:
        self._pack = msgpack.Packer().pack
        self._shapes: dict[int, tuple[type, frozenset[tuple[type, ...]], Callable[[list[Any]], None] | None]] = {}
        self._filters: dict[bytes, Filter] = {}
        self.encoders: dict[type, Callable[[Any], bytes]] = {}
        self.control = frozenset(each for each in message_types if each.CONTROL)  # type: ignore[attr-defined]
        self.datagrams = frozenset(each for each in message_types if each.DATAGRAM)  # type: ignore[attr-defined]
        for message_type in message_types:
            self._learn(message_type, message_type.KIND)  # type: ignore[attr-defined]

    def encode(self, message: Any) -> bytes:
        """The message as one msgpack array."""
        return self.encoders[type(message)](message)

    def decode(self, data: bytes) -> Any:
        """The message in `data`; raises `WireError` if there is none."""
        try:
            body = msgpack.unpackb(data)
        except Exception as error:
            raise WireError(f"no msgpack: {error}") from error
        return self.from_body(body)

    def from_body(self, body: Any) -> Any:
        """The message whose unpacked array is `body` (consumed); raises `WireError` if it is none."""
        try:
            message_type, shapes, unfold = self._shapes[body[0]]
        except Exception:
            raise WireError(f"a message is an array that begins with a known kind, not {body!r:.60}") from None
        if tuple(map(type, body)) not in shapes:
            raise WireError(f"a {message_type.__name__} has other fields than {body!r:.80}")
        if unfold is not None:
            unfold(body)
        del body[0]
        return _new(message_type, body)

    def _learn(self, message_type: type, kind: int) -> None:
        """Derive from the annotations how the class is packed, and which types its fields have on the wire."""
        if kind in self._shapes:
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
            return packed

        def encode_nested(message: Any) -> bytes:
            body = [kind, *message]
            for number in nested:
                body[number] = body[number].to_wire()
            for number in filter_lists:
                body[number] = [each.to_wire() for each in body[number]]
            packed: bytes = pack(body)
            return packed

        def unfold(body: list[Any]) -> None:
            for number in events:
                body[number] = Event.from_wire(body[number])
            for number in filters:
                body[number] = self._filter(body[number])
            for number in filter_lists:
                body[number] = [self._filter(each) for each in body[number]]

        shapes = frozenset(itertools.product((int,), *(_wire_types(hints[name]) for name in names)))
        plain = not nested and not filter_lists
        self._shapes[kind] = (message_type, shapes, None if plain else unfold)
        self.encoders[message_type] = encode_plain if plain else encode_nested

    def _filter(self, body: Any) -> Filter:
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


def _wire_types(hint: Any) -> tuple[type, ...]:
    """The Python types that msgpack gives for an annotation; containers are checked no deeper than themselves."""
    origin = getattr(hint, "__origin__", hint)
    if origin in (int, str, bytes, bool):
        return (origin,)
    if origin is float:
        return (float, int)
    if origin is Filter:
        return (list, type(None))  # None is the filter that matches nothing
    if origin in (list, tuple, Sequence, Event):
        return (list,)
    if origin is dict:
        return (dict,)
    raise TypeError(f"a message field cannot be annotated {hint!r}")


_ARRAY_HEADER_16 = struct.Struct(">BH")
_ARRAY_HEADER_32 = struct.Struct(">BI")


def frame(messages: Sequence[bytes]) -> bytes:
    """One frame of already encoded messages."""
    count = len(messages)
    if count < 16:
        head = bytes((0x90 | count,))
    elif count < 65_536:
        head = _ARRAY_HEADER_16.pack(0xDC, count)
    else:
        head = _ARRAY_HEADER_32.pack(0xDD, count)
    size = len(head) + sum(map(len, messages))
    return b"".join((FRAME_HEADER.pack(size), head, *messages))


class FrameReader:
    """Cuts a byte stream into frames; `feed` returns the message arrays that are complete."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Any]:
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
            try:
                messages = msgpack.unpackb(memoryview(buffer)[position + 4 : position + 4 + size])
            except Exception as error:
                raise WireError(f"a frame is no msgpack: {error}") from error
            if type(messages) is not list:
                raise WireError(f"a frame is an array of messages, not {messages!r:.60}")
            bodies += messages
            position += 4 + size
        if position:
            del buffer[:position]
        return bodies
