"""The disk of a broker that keeps the log of a redundant pubend, or is the witness of one.

Theory of operation. A log comes to a broker record by record: written by itself while it serves, shipped by the other
one while that serves. When the two have been apart, all of it is shipped anew, as the next *generation*; until that is
whole on the disk the one before it is the log, and stays there. Which generation is the log is said by the *note*, the
other kind of record: a note says all, and the last one counts. The disk may be cut below the last note that is safe and
below what the log still needs; where only the note is in the way, it is written once more.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import msgpack

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Effect, NodeName, Persist, Truncate

MOST = 1 << 62
"""No epoch and no token of a log comes to that: there is always a next one."""


class Standing(NamedTuple):
    """From the epoch `epoch` on `host` serves: in a pair, or alone."""

    epoch: int
    host: NodeName
    paired: bool


class Note(NamedTuple):
    """`generation`: that one is the log, and `whole` if it is one that this broker may serve by. `standing`: the last
    that it knows of the pubend of which it has the log. `registers`: how it stands with those of which it is the
    witness."""

    generation: int = 0
    whole: bool = False
    standing: Standing | None = None
    registers: Mapping[int, Standing] = {}


class Safe(NamedTuple):
    """What is on the disk now: a note, or the record with that token in that generation."""

    note: Note | None
    generation: int = 0
    token: int = 0


class TwinDisk:
    """Of the broker `name`. `note` is the last that was written, `log` the log's records by their tokens."""

    remembers: ClassVar = ("log", "_needed")  # the disk has that, too: it grows up to a checkpoint

    def __init__(self, name: NodeName) -> None:
        self.note = Note()
        self.log: dict[int, bytes] = {}
        self._name = name
        self._token = 0
        self._coming: dict[int, bytes] = {}
        self._generation = 0
        """The newest; if it is not the log's, it is still coming."""
        self._needed: dict[tuple[int, int], int] = {}
        """Generation and token of each record that is needed to its place on the disk, in order."""
        self._writing: dict[int, Safe | None] = {}
        """What is on its way to the disk, by its place (None: the note once more)."""
        self._note_at: int | None = None
        self._again = False

    def recover(self, records: Sequence[bytes]) -> None:
        """Take up what earlier incarnations have left; raises `InputError` for a record that is none of ours."""
        logs: dict[int, dict[int, tuple[int, bytes]]] = {}
        for number, stored in enumerate(records):
            try:
                place, kind, *fields = msgpack.unpackb(stored, strict_map_key=False)
                self._token = max(self._token, place)
                if kind == "note":
                    self.note, self._note_at = _note_of(*fields), place
                    self._generation = max(self._generation, self.note.generation)
                else:
                    generation, token, record = fields
                    self._generation = max(self._generation, generation)
                    logs.setdefault(generation, {})[token] = place, record
            except (ValueError, TypeError, msgpack.UnpackException) as error:
                where = f"the stable log of {self._name}, record {number + 1}"
                raise InputError(where, f"{stored[:40]!r} ({error})", "a log of a redundant pubend") from None
        for token, (place, record) in logs.get(self.note.generation, {}).items():
            self.log[token] = record
            self._needed[self.note.generation, token] = place

    def write(self, note: Note) -> Persist:
        """The effect that writes the note."""
        self.note = note
        return self._write_note(Safe(note))

    def append(self, token: int, record: bytes) -> Persist:
        """The effect that appends to the log."""
        self.log[token] = record
        return self._append(self.note.generation, token, record)

    def begin_generation(self) -> int:
        """A log is coming anew, in place of one that may still have been coming; its number."""
        self.forget_coming()
        self._generation += 1
        return self._generation

    def forget_coming(self) -> None:
        """What was coming does not come any more."""
        if self._generation != self.note.generation:
            self._forget(self._generation)
            self._coming = {}

    def append_coming(self, token: int, record: bytes) -> Persist:
        """The effect that appends to the log that is coming."""
        self._coming[token] = record
        return self._append(self._generation, token, record)

    def switch(self, standing: Standing | None) -> Persist:
        """What was coming is whole, and from now on the log."""
        former = self.note.generation
        self.log, self._coming = self._coming, {}
        self._forget(former)
        return self.write(self.note._replace(generation=self._generation, whole=True, standing=standing))

    def cut(self, before: int) -> list[Effect]:
        """The log's records with tokens below that are not needed any more."""
        for token in [token for token in self.log if token < before]:
            del self.log[token]
            self._needed.pop((self.note.generation, token), None)
        return self._cut()

    def stored(self, place: int) -> tuple[Safe | None, list[Effect]]:
        """A record is safe: what it was (None: of no news), and effects of that."""
        safe = self._writing.pop(place)
        if safe is None:
            self._again = False
        elif safe.note is None:
            return safe, []
        self._note_at = place
        return safe, self._cut()

    def _append(self, generation: int, token: int, record: bytes) -> Persist:
        self._token += 1
        self._needed[generation, token] = self._token
        self._writing[self._token] = Safe(None, generation, token)
        return Persist(self._token, msgpack.packb([self._token, "log", generation, token, record]))

    def _write_note(self, what: Safe | None) -> Persist:
        self._token += 1
        self._writing[self._token] = what
        return Persist(self._token, msgpack.packb([self._token, "note", *self.note]))

    def _forget(self, generation: int) -> None:
        for key in [key for key in self._needed if key[0] == generation]:
            del self._needed[key]

    def _cut(self) -> list[Effect]:
        """Cut the disk as far as may be; write the note once more if only that is in the way."""
        if any(each is not None and each.note is not None for each in self._writing.values()):
            return []  # what a note on its way says is not safe: what was before is still the log
        oldest = next(iter(self._needed.values()), self._note_at)
        if oldest is None:
            return []
        if self._note_at is None:
            return [Truncate(oldest)]
        if self._note_at >= oldest:
            return [Truncate(oldest)]
        if self._again:
            return [Truncate(self._note_at)]
        self._again = True
        return [Truncate(self._note_at), self._write_note(None)]


def _note_of(
    generation: int, whole: bool, standing: Sequence[object] | None, registers: Mapping[int, Sequence[object]]
) -> Note:
    known = None if standing is None else Standing(*standing)  # type: ignore[arg-type]
    return Note(generation, whole, known, {pubend: Standing(*each) for pubend, each in registers.items()})  # type: ignore[arg-type]
