"""The witness of redundant pubends: which of two brokers serves each, and whether they are a pair.

Theory of operation. Of each such pubend there is one small record on the disk of the witness: the epoch, the broker
that serves, and whether the other one has all that it has. A change is a claim of the next epoch. The first claim is
granted, if it is of a broker that may make it: of a pair each may go on alone, and one that is alone may go on alone
or have the other back. Nobody hears of a claim before it is on the disk.

A claim may have waited for long, at a witness that was held up. Whoever made it may be gone, or in a pair again that
has accepted more. So each word of the witness is a *ticket*, with the time on its clock, and only with a young one a
claim is granted. With an older one it brings the next ticket, and whoever still wants the same claims again.

A witness that is lost costs no service: only
nothing changes without it. One that has lost its disk knows nothing, and says so. The broker that serves tells it how
it stands: at once if it is alone, since nobody else may have claimed anything; in a pair when the two have agreed on an
epoch that is beyond all that the witness can have granted before. What it is told names its incarnation, so that it
believes nothing of an earlier time.
"""

from murmur_pubsub.machine import Effect, NodeName, Send
from murmur_pubsub.promise import RedundantEnd
from reliability.end_to_end.redundant_messages import Claim, Install, Stands, Unknown
from reliability.end_to_end.twin_disk import MOST, Note, Standing, TwinDisk


class Witness:
    """At one broker, for the pubends `ends` by their numbers. `patience_us`: so old a ticket may be."""

    def __init__(self, ends: dict[int, RedundantEnd], disk: TwinDisk, incarnation: int, patience_us: int) -> None:
        self._ends = ends
        self._patience_us = patience_us
        self._incarnation = incarnation
        self._disk = disk
        self._safe: dict[int, Standing] = {}
        self._asking: dict[int, dict[NodeName, int]] = {}
        """Of each pubend who waits for a word, and in which incarnation it has asked (-1: it has not)."""

    def start(self) -> list[Effect]:
        """Begin with what is on the disk."""
        self._safe = dict(self._disk.note.registers)
        if not self._ends or self._safe or self._incarnation:
            return []
        begin = {number: Standing(0, end.host, False) for number, end in self._ends.items()}
        return [self._disk.write(self._disk.note._replace(registers=begin))]

    def claim(self, message: Claim, now_us: int) -> list[Effect]:
        """One of the two claims an epoch, or asks."""
        end, known = self._ends.get(message.pubend), self._disk.note.registers.get(message.pubend)
        if end is None or message.origin not in (end.host, end.backup):
            return []
        if known is None:
            return [Send(message.origin, Unknown(message.origin, message.pubend, self._incarnation))]
        is_young = 0 <= message.ticket <= now_us <= message.ticket + self._patience_us
        if not is_young or not may_claim(known, message) or message.host != message.origin:
            if self._safe.get(message.pubend) != known:  # another claim is on its way to the disk
                self._asking.setdefault(message.pubend, {})[message.origin] = message.incarnation
                return []
            return [_told(message.origin, message.pubend, known, message.incarnation, now_us)]
        return self._write(message.pubend, end, Standing(message.epoch, message.host, message.paired))

    def install(self, message: Install) -> list[Effect]:
        """The broker that serves says how it stands."""
        end, is_known = self._ends.get(message.pubend), message.pubend in self._disk.note.registers
        if end is None or is_known or message.incarnation != self._incarnation:
            return []
        if message.origin not in (end.host, end.backup) or message.epoch >= MOST:
            return []
        return self._write(message.pubend, end, Standing(message.epoch, message.origin, message.paired))

    def _write(self, pubend: int, end: RedundantEnd, standing: Standing) -> list[Effect]:
        self._asking[pubend] = {end.host: -1, end.backup: -1, **self._asking.get(pubend, {})}
        registers = {**self._disk.note.registers, pubend: standing}
        return [self._disk.write(self._disk.note._replace(registers=registers))]

    @property
    def knows_all(self) -> bool:
        """Does it know how it stands with all of them?"""
        return self._ends.keys() <= self._safe.keys()

    def safe(self, note: Note, now_us: int) -> list[Effect]:
        """The note is on the disk: tell those that wait for it."""
        effects: list[Effect] = []
        for number, standing in note.registers.items():
            self._safe[number] = standing
            if standing == self._disk.note.registers.get(number):
                asking = self._asking.pop(number, {})
                effects += [_told(to, number, standing, asked, now_us) for to, asked in asking.items()]
        return effects


def may_claim(known: Standing, message: Claim) -> bool:
    """May the claim follow what is known?"""
    if message.epoch != known.epoch + 1:
        return False
    return not message.paired if known.paired else message.host == known.host


def _told(to: NodeName, pubend: int, standing: Standing, incarnation: int, now_us: int) -> Send:
    return Send(to, Stands(to, pubend, *standing, incarnation, now_us))
