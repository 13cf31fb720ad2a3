"""The stable log of a publishers' broker: what its pubends have put on their ticks, and which client it was from.

A record is a msgpack array. ["D", token, pubend, tick, event]: a message was put on that tick. ["S", token, pubend,
tick]: there is silence up to that tick, and others may have been told so. ["C", token, sequences, ticks]: a checkpoint;
the last sequence number taken from each publisher, and the last tick of each pubend, stand in for the records before it
that are no longer needed. The log is cut at a checkpoint that is safely stored, and never above a message that may
still be asked for.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgpack

from murmur_pubsub.errors import InputError, WireError
from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, Persist, Truncate


class Logged(NamedTuple):
    """A message in the log."""

    pubend: int
    tick: int
    event: Event


class PubendLog:
    """Appends and cuts; one for all pubends of a broker.

    `sequences`: publisher to the last sequence number in the log; `ticks`: pubend to the last tick in use.
    """

    def __init__(self, place: str, checkpoint: int) -> None:
        self.sequences: dict[int, int] = {}
        self.ticks: dict[int, int] = {}
        self._place = place
        self._checkpoint = checkpoint
        self._token = 0
        self._live: deque[tuple[int, int, int]] = deque()  # (token, pubend, tick), oldest first
        self._oldest = 1
        self._cutting = 0

    def recover(self, records: Sequence[bytes]) -> list[Logged]:
        """Read the log of earlier incarnations: the messages that are still there. Raises `InputError` for a record
        that is none of ours: to start as if it were not there would lose what was promised."""
        found: list[Logged] = []
        for number, record in enumerate(records):
            try:
                kind, token, *fields = msgpack.unpackb(record, strict_map_key=False)
                if kind == "D":
                    logged = Logged(fields[0], fields[1], Event.from_wire(fields[2]))
                    found.append(logged)
                    self._note(token, logged)
                    self._recover_more(kind, logged, fields[3:])
                elif kind == "S":
                    self._in_use(*fields)
                elif kind == "C":
                    sequences, ticks, *more = fields
                    self._recover_more(kind, None, more)
                    for publisher, sequence in sequences.items():
                        self.sequences[publisher] = max(sequence, self.sequences.get(publisher, -1))
                    for pubend, tick in ticks.items():
                        self._in_use(pubend, tick)
                else:
                    self._recover_more(kind, None, fields)
                self._token = max(self._token, token)
            except (ValueError, TypeError, KeyError, IndexError, AttributeError, WireError) as error:
                place = f"the stable log of {self._place}, record {number + 1}"
                raise InputError(place, f"{record[:40]!r} ({error})", "a log that this protocol has written") from None
        return found

    def append(self, logged: Logged) -> tuple[int, Persist]:
        """The effect that logs the message, and its token."""
        self._token += 1
        self._note(self._token, logged)
        fields = [logged.pubend, logged.tick, logged.event.to_wire(), *self._more_of(logged)]
        record = msgpack.packb(["D", self._token, *fields])
        return self._token, Persist(self._token, record)

    def append_silence(self, pubend: int, tick: int) -> tuple[int, Persist]:
        """The effect that logs silence up to the tick, and its token."""
        self._token += 1
        self._in_use(pubend, tick)
        return self._token, Persist(self._token, msgpack.packb(["S", self._token, pubend, tick]))

    def cut(self, final: dict[int, int]) -> list[Effect]:
        """A checkpoint, if enough of the log is done with; `final`: pubend to the tick up to which it is."""
        self.forget_done(final)
        oldest = self._live[0][0] if self._live else self._token + 1
        if self._cutting or oldest - self._oldest < self._checkpoint:
            return []
        self._token += 1
        self._cutting = self._token
        self._oldest = oldest
        stored: list[Any] = ["C", self._token, self.sequences, self.ticks, *self._more_at_checkpoint()]
        return [Persist(self._token, msgpack.packb(stored))]

    def forget_done(self, final: Mapping[int, int]) -> None:
        """Forget the oldest messages, as far as they are done with."""
        live = self._live
        while live and live[0][2] <= final.get(live[0][1], -1) and not self._is_kept(live[0][1], live[0][2]):
            live.popleft()

    def stored(self, token: int) -> list[Effect]:
        """The record with that token is safe: if it is the checkpoint, what came before may go."""
        if token != self._cutting:
            return []
        self._cutting = 0
        return [Truncate(min(self._oldest, token))]

    def __len__(self) -> int:
        """How many messages in the log are still needed."""
        return len(self._live)

    # ------------------------------------------------------------------- for a log that holds more than this
    def _more_of(self, logged: Logged) -> list[Any]:
        """What the record of a message ends with."""
        return []

    def _more_at_checkpoint(self) -> list[Any]:
        """What a checkpoint ends with."""
        return []

    def _recover_more(self, kind: str, logged: Logged | None, fields: list[Any]) -> None:
        """What a record ends with (one of a message: `logged`), or has, if it is of a kind that is not known here."""
        if kind not in ("C", "D") or fields:
            raise ValueError(f"a record of kind {kind!r} with {len(fields)} more fields")

    def _is_kept(self, pubend: int, tick: int) -> bool:
        """Is the message needed though all brokers have acknowledged it?"""
        return False

    def _note(self, token: int, logged: Logged) -> None:
        self._live.append((token, logged.pubend, logged.tick))
        self._in_use(logged.pubend, logged.tick)
        source, sequence = logged.event.id
        self.sequences[source] = max(sequence, self.sequences.get(source, -1))

    def _in_use(self, pubend: int, tick: int) -> None:
        self.ticks[pubend] = max(tick, self.ticks.get(pubend, -1))
