"""One of the two brokers that may serve a redundant pubend: how it comes to serve, and how it ceases to.

Theory of operation. How it stands is an epoch, the broker that serves, and whether the other one has all that it has;
each change is granted by the witness (`reliability.end_to_end.witness`). A broker writes a standing down before it
acts by it.

- In a pair, what is logged counts as stored when both disks have it (`reliability.end_to_end.shipping`). So neither can
  accept anything without the other.
- Alone, it counts when the one disk has it. An incarnation serves alone only by a claim of its own: an older one may
  have asked to be a pair again, and not know whether that was granted.
- One that serves alone ships its log when the other one answers. When the other has all, it asks that they be a pair,
  and from then on it waits for both disks, whether it has heard an answer or not.
- One that serves in a pair and hears nothing of the other asks to serve alone. The other one waits twice as long, and
  asks to take over, if its log is whole.
- One that was started again serves in a pair when the other has its whole log, and alone when that is granted.
- One that learns of a later epoch in which it does not serve ceases at once. What it had logged and not stored by both
  is not accepted; its log is replaced by that of the other.
- One that serves asks the witness now and then. If that has lost its disk, it is told how it stands: see there.
- Claims come to the witness with a ticket of its own (see there). A broker gets one by claiming, and claims again.
- One whose disk was lost knows no standing. It asks the witness, and believes its answer alone. It serves, with an
  empty log, only if the last word is that it was alone, or if the other one of the pair has lost its disk too. Else it
  waits for the other one's log.

Why nothing that was accepted is lost. What was accepted in a pair is in both logs, and what was accepted alone is in
the log of the only one that may make the next claim. The other one's log is the same before they are a pair again. So
whoever is granted an epoch has all that was accepted before, but for what the former pair may still accept; for that
it has to answer itself, and it answers nothing more once it serves. Of two that both believe to serve, the one of the
earlier epoch believes to be in a pair, and stores nothing without the other.
"""

from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.machine import Effect, NodeName, Record, Send
from reliability.end_to_end.redundant_messages import (
    Beat,
    Claim,
    Has,
    Install,
    Lacks,
    Renew,
    Ship,
    Stands,
    ToCandidate,
    ToWitness,
    Unknown,
)
from reliability.end_to_end.shipping import Intake, Item, Shipping
from reliability.end_to_end.twin_disk import MOST, Safe, Standing, TwinDisk

SERVES = 164
"""Topic of the journal rows of a broker that serves a redundant pubend from now on (value 1: in a pair, 2: alone), or
no more (0)."""
_STREAM_BITS = 32
GIVES_UP = 20
"""After so many silences without a change a broker takes it that there will be none for now."""


class Begins(NamedTuple):
    """The broker serves from now on, by the log on its disk."""


class Ceases(NamedTuple):
    """It does not any more."""


class Counts(NamedTuple):
    """The record of the log with that token counts as stored."""

    token: int


Turn = Begins | Ceases | Counts


class Candidate:
    """`name`, of which `other` is the other one. `turns`: what has become of it and the records, to be taken by
    whoever serves; `effects`: what is to be done. `standing`: the last that is written down."""

    def __init__(
        self,
        name: NodeName,
        other: NodeName,
        witness: NodeName,
        pubend: int,
        incarnation: int,
        silence_us: int,
        disk: TwinDisk,
    ) -> None:
        self.serves = False
        self.turns: list[Turn] = []
        self.effects: list[Effect] = []
        self.standing: Standing | None = None
        self._name = name
        self._other = other
        self._witness = witness
        self._pubend = pubend
        self._incarnation = incarnation
        self._silence_us = silence_us
        self._disk = disk
        self._seen = -1
        """The latest epoch that it knows of, written down or not."""
        self._claimed = -1
        """The last epoch that this incarnation has claimed to serve alone."""
        self._pairing = False
        """Has it asked that the two be a pair, and not heard what became of that?"""
        self._ticket = -1
        """The last of the witness."""
        self._waits_for_ticket = False
        """Was something claimed since the last beat, and not again with the witness's answer to that?"""
        self._shipping: Shipping | None = None
        self._streams = incarnation << _STREAM_BITS
        self._asked_us = 0
        """When the witness was asked last, while nothing was to be claimed."""
        self._renewing = (-1, -1)
        """The epoch that this one has asked the other to agree on, and the witness's incarnation for which it has."""
        self._intake: Intake | None = None
        self._last_stream = 0
        self._uncounted: dict[int, bool] = {}
        """Tokens of the log that do not count yet, in order; is each on this disk?"""
        self._heard_us = 0
        """When the other one was last heard of, in its part."""
        self._steady_us = 0
        """When no change was to be expected, at last."""

    # ---------------------------------------------------------------------------------------------------- from outside
    def start(self, now_us: int) -> None:
        """Begin with what is on the disk."""
        self._heard_us = self._steady_us = now_us
        self.standing = self._disk.note.standing
        self._seen = -1 if self.standing is None else self.standing.epoch
        self.beat(now_us)

    def persist(self, token: int, record: bytes) -> None:
        """The log has a record more."""
        if not self.serves:
            return  # what was logged as it ceased is not accepted
        self._uncounted[token] = False
        self.effects.append(self._disk.append(token, record))
        if self._shipping is not None:
            self._shipping.append(token, record)
            self._ship(self._shipping.to_send())

    def truncate(self, before: int) -> None:
        """The log does not need its records below that token."""
        if not self.serves:
            return
        self.effects += self._disk.cut(before)
        if self._shipping is not None:
            self._shipping.append(before, b"")
            self._ship(self._shipping.to_send())

    def safe(self, what: Safe, place: int, now_us: int) -> None:
        """Something is on the disk."""
        if what.note is None:
            if what.generation == self._disk.note.generation and what.token in self._uncounted:
                self._uncounted[what.token] = True
                self._count()
        elif what.note.standing is not None and what.note.standing != self.standing:
            self._stands(what.note.standing, now_us)
        if self._intake is not None:
            before = self._intake.has
            self._intake.safe(place)
            if self._intake.has > before:
                self._answer()

    def beat(self, now_us: int) -> None:
        """Time has passed: say what is to be said, and ask for a change if one is due."""
        standing = self.standing
        if self._is_steady(now_us):
            self._steady_us = now_us
        if standing is None:
            self._claim(0, paired=False)
        elif standing.host != self._name:
            if now_us - self._heard_us >= 2 * self._silence_us and not self._claim_what_is_due(now_us):
                self._claim(0, paired=False)
        elif self._disk.note.whole:
            self._beat_as_host(standing, now_us)
        else:
            self._tell(Lacks(self._other, self._pubend, standing.epoch, self._incarnation))

    def received(self, message: ToCandidate, now_us: int) -> None:
        """The witness or the other one has said something."""
        if message.to != self._name or message.pubend != self._pubend:
            return
        if type(message) is Stands:
            if message.host in (self._name, self._other) and message.epoch < MOST:
                self._on_stands(message, now_us)
        elif type(message) is Beat:
            if message.epoch < MOST:
                self._on_beat(message, now_us)
        elif type(message) is Ship:
            if 0 <= message.token < MOST:
                self._on_ship(message)
        elif type(message) is Has:
            self._on_has(message, now_us)
        elif type(message) is Lacks:
            self._on_lacks(message)
        elif type(message) is Unknown:
            self._on_unknown(message)
        elif type(message) is Renew:
            self._on_renew(message)

    def settling(self, now_us: int) -> bool:
        """Is a change of the standing to be expected, and not for too long already?"""
        return not self._is_steady(now_us) and now_us - self._steady_us <= GIVES_UP * self._silence_us

    def _is_steady(self, now_us: int) -> bool:
        standing, silent_us = self.standing, now_us - self._heard_us
        if standing is None:
            return False
        if standing.host == self._name and self._disk.note.whole:
            if silent_us > self._silence_us:
                return self.serves and not standing.paired
            return self.serves and standing.paired and self._shipping is not None and self._shipping.is_whole
        if silent_us > 2 * self._silence_us:
            return not standing.paired or not self._disk.note.whole  # it cannot take over
        intake = self._intake
        return standing.paired and intake is not None and 0 < intake.whole <= intake.has + 1

    # ---------------------------------------------------------------------------------------------------- the standing
    def _claim(self, epoch: int, paired: bool) -> None:
        about = (self._pubend, epoch, self._name, paired, self._incarnation, self._ticket)
        self._tell(Claim(self._witness, self._name, *about))
        if epoch and not paired:
            self._claimed = epoch

    def _claim_what_is_due(self, now_us: int) -> bool:
        """Claim the change that is due, if one is."""
        standing, silent_us = self.standing, now_us - self._heard_us
        if standing is None or not self._disk.note.whole:
            return False
        if standing.host != self._name:
            is_due = standing.paired and silent_us >= 2 * self._silence_us
        elif standing.paired:
            is_due = silent_us >= self._silence_us
        else:
            is_due = self._pairing or not self.serves
        if is_due:
            self._claim(standing.epoch + 1, self._pairing)
            self._waits_for_ticket = True
        return is_due

    def _on_stands(self, message: Stands, now_us: int) -> None:
        if self._disk.note.standing is None and message.incarnation != self._incarnation:
            return  # that may be older than what was lost with the disk
        self._learn(Standing(message.epoch, message.host, message.paired))
        if message.ticket >= 0:
            self._ticket = message.ticket  # the last one, and not the latest: the witness's clock may be put back
            if self._waits_for_ticket and self.standing is not None and self.standing.epoch == message.epoch:
                self._claim_what_is_due(now_us)
                self._waits_for_ticket = False

    def _learn(self, standing: Standing) -> None:
        """It stands so; that is written down before anything is done by it, but for ceasing."""
        if standing.epoch <= self._seen:
            return
        self._seen = standing.epoch
        if standing.host != self._name:
            self._cease()
        else:
            self._intake = None
            self._disk.forget_coming()
        note, whole = self._disk.note, self._disk.note.whole
        if not whole:
            # No log is on this disk. Either none was before, or it was lost; then one that was alone begins anew, and
            # one that has a log elsewhere waits for it.
            whole = standing.host == self._name and not standing.paired
        self.effects.append(self._disk.write(note._replace(standing=standing, whole=whole)))

    def _stands(self, standing: Standing, now_us: int) -> None:
        """It is written down."""
        self.standing = standing
        self._heard_us = max(self._heard_us, now_us - self._silence_us)
        if standing.epoch < self._seen:
            return
        if standing.host != self._name:
            return
        self._pairing = False
        if not standing.paired:
            self._shipping = None
            if self.serves or standing.epoch == self._claimed:
                self._serve()
                self._count()
        elif self.serves:
            self.effects.append(Record(SERVES, 1))
        self.beat(now_us)

    def _serve(self) -> None:
        assert self.standing is not None
        self.effects.append(Record(SERVES, 1 if self.standing.paired else 2))
        if not self.serves:
            self.serves = True
            self._uncounted.clear()
            self.turns.append(Begins())

    def _cease(self) -> None:
        self._shipping = None
        self._pairing = False
        if self.serves:
            self.serves = False
            self._uncounted.clear()
            self.effects.append(Record(SERVES, 0))
            self.turns.append(Ceases())

    @property
    def _serving_epoch(self) -> int:
        """The epoch in which this broker is to serve, as far as it knows (-1: none)."""
        standing = self._disk.note.standing
        return standing.epoch if standing is not None and standing.host == self._name else -1

    # --------------------------------------------------------------------------------------------------------- as host
    def _beat_as_host(self, standing: Standing, now_us: int) -> None:
        if not self._claim_what_is_due(now_us) and now_us - self._heard_us >= self._silence_us:
            self._shipping = None
        if now_us - self._asked_us >= self._silence_us:
            self._asked_us = now_us
            self._claim(0, paired=False)  # the witness may have lost its disk
        if self._shipping is not None:
            self._ship([*self._shipping.to_repeat(), *self._shipping.to_send()])
        self._say_here(standing)

    def _say_here(self, standing: Standing) -> None:
        shipping = self._shipping
        stream, whole = (0, 0) if shipping is None else (shipping.stream, shipping.whole)
        about = (self._pubend, standing.epoch, standing.paired, stream, whole)
        self._tell(Beat(self._other, self._name, *about))

    def _on_has(self, message: Has, now_us: int) -> None:
        standing = self.standing
        if standing is None or standing.host != self._name or not self._disk.note.whole or standing.epoch < self._seen:
            return
        shipping = self._shipping
        if shipping is not None and message.incarnation < shipping.peer:
            return  # of an incarnation that is over
        self._heard_us = now_us
        if not standing.paired and not self.serves:
            return  # it is about to serve alone
        if shipping is None or message.incarnation > shipping.peer:
            self._streams += 1
            shipping = self._shipping = Shipping(self._streams, message.incarnation, self._disk.log.items())
            self._say_here(standing)
        elif message.stream == shipping.stream:
            shipping.has(message.number)
        self._ship(shipping.to_send())
        if not self.serves and shipping.in_step:
            self._serve()
        if not standing.paired and not self._pairing and shipping.in_step:
            self._pairing = True
            self._claim_what_is_due(now_us)
        self._count()

    def _on_unknown(self, message: Unknown) -> None:
        """The witness has lost its disk: have it know how it stands, if that is certain."""
        standing = self.standing
        if standing is None or standing.epoch < self._seen:
            return
        if standing.host != self._name:
            self._tell_other(standing)  # that may be the last that the witness has said
            return
        agreed = (standing.epoch, message.incarnation) == self._renewing
        if self.serves and (agreed or not (standing.paired or self._pairing)):
            about = (self._pubend, message.incarnation, standing.epoch, standing.paired)
            self._tell(Install(self._witness, self._name, *about))
        elif self.serves and self._shipping is not None and self._shipping.is_whole:
            # What was granted, and neither of the two knows of, is of the next epoch: the two agree on one beyond.
            self._renewing = standing.epoch + 2, message.incarnation
            self._tell(Renew(self._other, self._pubend, standing.epoch, standing.epoch + 2))

    def _count(self) -> None:
        """What is stored where it has to be counts now, in order."""
        if not self.serves or self.standing is None:
            return
        needs_both = self.standing.paired or self._pairing
        shipping, counting = self._shipping, []
        for token, is_safe in self._uncounted.items():
            if not is_safe or (needs_both and (shipping is None or not shipping.both_have(token))):
                break
            counting.append(token)
        for token in counting:
            del self._uncounted[token]
            self.turns.append(Counts(token))

    def _ship(self, items: Sequence[Item]) -> None:
        assert self._shipping is not None
        for number, token, record in items:
            self._tell(Ship(self._other, self._pubend, self._shipping.stream, number, token, record))

    # ------------------------------------------------------------------------------------------------------- as backup
    def _on_beat(self, message: Beat, now_us: int) -> None:
        if message.epoch < self._seen:
            if self.standing is not None and self.standing.epoch > message.epoch:
                self._tell_other(self.standing)
            return
        if self._disk.note.standing is None or message.epoch == self._seen == self._serving_epoch:
            return  # the witness has to say first how it stands; or it is nothing that the other one could say
        self._heard_us = now_us
        self._learn(Standing(message.epoch, self._other, message.paired))
        if message.stream > self._last_stream:
            self._last_stream = message.stream
            self._intake = Intake(message.stream, message.whole)
            self._disk.begin_generation()
        self._answer()

    def _on_ship(self, message: Ship) -> None:
        intake = self._intake
        if intake is None or message.stream != intake.stream:
            return
        for number, token, record in intake.put(Item(message.number, message.token, message.record)):
            if record:
                coming = number < intake.whole
                written = (self._disk.append_coming if coming else self._disk.append)(token, record)
                self.effects.append(written)
                place: int | None = written.token
            else:
                place = None
                if number >= intake.whole:
                    self.effects += self._disk.cut(token)
            if number == intake.whole - 1:
                written = self._disk.switch(self._disk.note.standing)
                self.effects.append(written)
                place = written.token
            intake.waits_for(number, place)
        self._answer()

    def _on_renew(self, message: Renew) -> None:
        standing, intake = self.standing, self._intake
        if standing is None or standing.host != self._other or not self._seen == standing.epoch == message.former:
            return
        if intake is not None and 0 < intake.whole <= intake.has + 1 and message.epoch == message.former + 2:
            self._learn(Standing(message.epoch, self._other, True))

    def _on_lacks(self, message: Lacks) -> None:
        """The other one has no log; has this one?"""
        if self._disk.note.whole:
            return
        if self.standing == Standing(message.epoch, self._other, True):
            self._tell(message._replace(to=self._other))
        elif self.standing == Standing(message.epoch, self._name, True) and message.incarnation == self._incarnation:
            # Nobody has it, and nobody is on the way to have it: it begins anew.
            self.effects.append(self._disk.write(self._disk.note._replace(whole=True)))

    def _answer(self) -> None:
        intake = self._intake
        stream, number = (0, -1) if intake is None else (intake.stream, intake.has)
        self._tell(Has(self._other, self._pubend, self._incarnation, stream, number))

    def _tell_other(self, standing: Standing) -> None:
        """How it stands, as far as this one knows."""
        self._tell(Stands(self._other, self._pubend, *standing, incarnation=-1, ticket=-1))

    def _tell(self, message: ToCandidate | ToWitness) -> None:
        self.effects.append(Send(message.to, message))
