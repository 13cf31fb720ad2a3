"""The stable log of a publishers' broker with durable subscriptions: who wants what, and whom each message is for.

Beside the records of `reliability.gryphon.pubend_log` there is ["R", token, client, revision, wanted, {pubend: last
tick in use}]: from here on the client wants that, [[subscriber, filter], …]. A record of a message that matched ends
with {client: [subscriber, …]}; if publications before it were refused, and their publisher may not know, with their
numbers too. A checkpoint ends with what is on record of every client, and with those numbers.

The last checkpoint in the log says all that the records before it say of a client, but for which messages it has
withdrawn. They may be all that is left of older ones: alone they would say that the client begins with the first of
them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgpack

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Effect, NodeName, Persist
from reliability.durable.record import DurableRecord, Wanted, still_for, wanted_of
from reliability.gryphon.pubend_log import Logged, PubendLog


class DurableLog(PubendLog):
    """Keeps `record` as it goes, and takes it up again. `refused`: publisher to the numbers that were refused. While
    more than `most` messages are in it (None: however many), the oldest is given up for all clients that lack it."""

    remembers: ClassVar = ("refused",)  # until its publisher submits something more, and so shows that it has heard

    def __init__(self, place: str, checkpoint: int, most: int | None = None) -> None:
        super().__init__(place, checkpoint)
        self._most = most
        self.refused: dict[int, list[int]] = {}
        self.record = DurableRecord()
        self._recovered: dict[NodeName, list[tuple[Logged, Sequence[int]]]] = {}
        self._checkpoints_left = 0
        """How many are still to be read."""

    def recover(self, records: Sequence[bytes]) -> list[Logged]:
        """See `PubendLog.recover`."""
        # A record is packed with its length in one byte; the kind follows, a text of one letter.
        self._checkpoints_left = sum(record[1:3] == b"\xa1C" for record in records)
        found = super().recover(records)
        for client in list(self._recovered):
            self._keep_for(client)
        return found

    def enlist(self, client: NodeName, revision: int, wanted: Wanted, latest: Mapping[int, int]) -> tuple[int, Persist]:
        """The effect that logs what a client wants from here on, and its token."""
        self._token += 1
        self.record.enlist(client, revision, wanted, latest)
        plain = [[subscriber, str(each)] for subscriber, each in wanted]
        return self._token, Persist(self._token, msgpack.packb(["R", self._token, client, revision, plain, latest]))

    def cut(self, final: dict[int, int]) -> list[Effect]:
        """See `PubendLog.cut`."""
        self.forget_done(final)
        while self._most is not None and len(self) > self._most:
            _, pubend, tick = self._live[0]
            if tick > final.get(pubend, -1):
                break  # other brokers need it, whatever clients do
            self.record.give_up_for_all(pubend, tick)
            self.forget_done(final)
        return super().cut(final)

    def _more_of(self, logged: Logged) -> list[Any]:
        matched = self.record.match(logged.event)
        refused = self.refused.get(logged.event.source)
        if matched:
            self.record.keep(logged.pubend, logged.tick, logged.event, matched)
        return [matched, refused] if refused else [matched] if matched else []

    def _more_at_checkpoint(self) -> list[Any]:
        return [self.record.to_plain(), self.refused]

    def _recover_more(self, kind: str, logged: Logged | None, fields: list[Any]) -> None:
        try:
            if kind == "D" and logged is not None:
                for client, subscribers in fields[0].items() if fields else ():
                    self._recovered.setdefault(client, []).append((logged, subscribers))
                self.refused.pop(logged.event.source, None)
                if len(fields) > 1:
                    self.refused[logged.event.source] = list(fields[1])
            elif kind == "C" and len(fields) == 2:
                self._checkpoints_left -= 1
                if not self._checkpoints_left:
                    self.record.restore(fields[0])
                self.refused.clear()
                self.refused |= {publisher: list(numbers) for publisher, numbers in fields[1].items()}
            elif kind == "R":
                client, revision, plain, latest = fields
                wanted = wanted_of(plain)
                if self._checkpoints_left:
                    self._withdraw(client, wanted)
                else:
                    if client in self.record.registrations:
                        self._keep_for(client)
                    self.record.enlist(client, revision, wanted, latest)
            else:
                super()._recover_more(kind, logged, fields)
        except InputError as error:
            raise ValueError(str(error)) from None

    def _withdraw(self, client: NodeName, wanted: Wanted) -> None:
        """Of what was read so far, only what the client still wants is for it."""
        found = ((logged, still_for(each, wanted, logged.event)) for logged, each in self._recovered.get(client, ()))
        self._recovered[client] = [(logged, left) for logged, left in found if left]

    def _keep_for(self, client: NodeName) -> None:
        """Keep what was read so far for a client, if a record before it or a checkpoint says it is one."""
        for logged, subscribers in self._recovered.pop(client, ()):
            self.record.keep(logged.pubend, logged.tick, logged.event, {client: subscribers})

    def _is_kept(self, pubend: int, tick: int) -> bool:
        return self.record.keeps(pubend, tick)
