"""A machine's inputs with their times, recorded as they come, so that a node of a run can be run again in one process.

A machine is a function of its context and its inputs. An `InputRecorder` stands between runtime and machine: it writes
each input before the machine sees it, and then a digest of the effects, so that a second run can tell whether it does
the same.
The records are a stream of msgpack arrays `[time_us, kind, …]` and `[digest]` in turn; what a kill cut off is left out.
Messages are recorded as the codec packs them, keys of timers as msgpack does: they are tuples of plain values.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack

from murmur_pubsub.codec import Codec
from murmur_pubsub.errors import DiskError, InputError, WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    LinkUp,
    Machine,
    Order,
    Publish,
    Received,
    Start,
    Stored,
    Subscribe,
    TimerFired,
    Unsubscribe,
)
from murmur_pubsub.machine_around import MachineAround

_KINDS: tuple[type, ...] = (
    Start, Received, TimerFired, LinkUp, LinkDown, Stored, Subscribe, Unsubscribe, Publish, Order,
)  # fmt: skip
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}


@dataclass(frozen=True, slots=True)
class RecordedInput:
    """One of them; `digest` is of its effects (None: the machine raised, or was killed while at it)."""

    time_us: int
    input: Input
    digest: int | None


class InputRecorder(MachineAround):
    """A machine around another one. `write` takes a record, which is safe once it returns."""

    def __init__(self, machine: Machine, write: Callable[[bytes], object]) -> None:
        super().__init__(machine)
        self._write = write
        self._codec = Codec(machine.message_types)

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        self._write(packed_input(input, now_us, self._codec))
        effects = self.inner.handle(input, now_us)
        self._write(msgpack.packb([digest_of(effects, self._codec)]))
        return effects


def added_to(path: Path) -> Callable[[bytes], object]:
    """What adds an `InputRecorder`'s records to that file; it raises `DiskError`, which is not the machine's fault."""
    file = path.open("ab", buffering=0)

    def add(record: bytes) -> None:
        try:
            file.write(record)
        except OSError as error:
            raise DiskError.of(path, error) from error

    return add


def packed_input(input: Input, now_us: int, codec: Codec) -> bytes:
    """The record of an input."""
    fields = [_plain(field, codec) for field in input]
    packed: bytes = msgpack.packb([now_us, _NUMBERS[type(input)], *fields])
    return packed


def digest_of(effects: Sequence[Effect], codec: Codec) -> int:
    """A number that differs (but for one chance in 2^32) when the effects do."""
    listed = [(type(effect).__name__, *(_plain(field, codec) for field in effect)) for effect in effects]
    return zlib.crc32(msgpack.packb(listed))


def read_inputs(place: str, data: bytes, message_types: Sequence[type]) -> Iterator[RecordedInput]:
    """The inputs in a file's bytes, in order; raises `InputError` naming `place` for bytes that are no such records."""
    codec = Codec(message_types)
    records = msgpack.Unpacker(use_list=False)
    records.feed(data)
    before: RecordedInput | None = None
    number = 0
    try:
        for record in records:
            number += 1
            if len(record) > 1:
                if before is not None:
                    yield before
                before = RecordedInput(record[0], _input(record[1], record[2:], codec), None)
            else:
                assert before is not None
                yield RecordedInput(before.time_us, before.input, record[0])
                before = None
    except (msgpack.UnpackException, WireError, ValueError, TypeError, LookupError, AssertionError) as error:
        place = f"{place}, record {number}"
        raise InputError(place, f"no recorded input ({error!r:.80})", "what a run with keep_inputs wrote") from error
    if before is not None:
        yield before


def _plain(field: Any, codec: Codec) -> Any:
    kind = type(field)
    if kind in codec.encoders:
        return codec.encode(field)
    if kind is Event or kind is Filter:
        return msgpack.packb(field.to_wire())
    return field


def _input(number: int, fields: tuple[Any, ...], codec: Codec) -> Input:
    kind = _KINDS[number]
    if kind is Received:
        return Received(fields[0], codec.decode(fields[1]))
    if kind is Publish:
        return Publish(Event.from_wire(msgpack.unpackb(fields[0])))
    made: Input
    if kind in (Subscribe, Unsubscribe):
        made = kind(fields[0], Filter.from_wire(msgpack.unpackb(fields[1])))
    else:
        made = kind(*fields)
    return made
