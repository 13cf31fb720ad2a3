"""What a broker does for redundant pubends: it may have the log of one, and be the witness of others.

It stands between the publishers' end and the disk. What the end logs goes to the disk, and to the other broker's; what
the end hears of it, and whether it serves at all, are *turns* (`reliability.end_to_end.candidate`).
"""

from collections.abc import Sequence

from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import Effect, Input, NodeContext, NodeName, Persist, Received, Stored, Truncate
from reliability.end_to_end.candidate import GIVES_UP, Begins, Candidate, Counts, Turn
from reliability.end_to_end.parameters import EndToEndParameters
from reliability.end_to_end.redundant_messages import Claim, Install
from reliability.end_to_end.twin_disk import TwinDisk
from reliability.end_to_end.witness import Witness


class Redundancy:
    """Of one broker; `roots`: the brokers of the pubends, by number. `hosted`: that of the pubend of which this one may
    have the log."""

    def __init__(self, context: NodeContext, parameters: EndToEndParameters, roots: Sequence[NodeName]) -> None:
        name, self._incarnation = context.name, context.incarnation
        self.hosted = name
        self.disk = TwinDisk(name)
        self.candidate: Candidate | None = None
        self._begun_us = 0
        self._silence_us = parameters.silence * 1_000
        self._turns: list[Turn] = []
        self._effects: list[Effect] = []
        numbers = {end.host: roots.index(end.host) for end in parameters.redundant}
        for end in parameters.redundant:
            if name in (end.host, end.backup):
                self.hosted = end.host
                other = end.backup if name == end.host else end.host
                about = (numbers[end.host], self._incarnation, parameters.silence * 1_000)
                self.candidate = Candidate(name, other, end.witness, *about, self.disk)
        witnessed = {numbers[end.host]: end for end in parameters.redundant if end.witness == name}
        self.witness = Witness(witnessed, self.disk, self._incarnation, self._silence_us)

    @property
    def serves(self) -> bool:
        """May this broker answer and accept anything for its pubend?"""
        return self.candidate is None or self.candidate.serves

    @property
    def served_by(self) -> NodeName | None:
        """The broker that serves the pubend, as far as this one knows (None: it does not)."""
        standing = None if self.candidate is None else self.candidate.standing
        return None if standing is None else standing.host

    def start(self, records: Sequence[bytes], now_us: int) -> None:
        """Take up what earlier incarnations have left; raises `InputError`."""
        self._begun_us = now_us
        self.disk.recover(records)
        self._effects += self.witness.start()
        if self.candidate is None:
            self._turns.append(Begins())
        else:
            self.candidate.start(now_us)

    def take(self, input: Input, now_us: int) -> None:
        """A message of those that are about this, or something is on the disk."""
        if type(input) is Received and type(input.message) is Claim:
            self._effects += self.witness.claim(input.message, now_us)
        elif type(input) is Received and type(input.message) is Install:
            self._effects += self.witness.install(input.message)
        elif type(input) is Received and self.candidate is not None:
            self.candidate.received(input.message, now_us)  # type: ignore[arg-type]
        elif type(input) is Stored:
            safe, effects = self.disk.stored(input.token)
            self._effects += effects
            if safe is None:
                return
            if safe.note is not None:
                self._effects += self.witness.safe(safe.note, now_us)
            if self.candidate is not None:
                self.candidate.safe(safe, input.token, now_us)
            elif safe.note is None:
                self._turns.append(Counts(safe.token))

    def beat(self, now_us: int) -> None:
        """Time has passed."""
        if self.candidate is not None:
            self.candidate.beat(now_us)

    def turns(self) -> list[Turn]:
        """What has become of the publishers' end and its records since this was last asked."""
        turns, self._turns = self._turns, []
        if self.candidate is not None:
            turns += self.candidate.turns
            self.candidate.turns = []
        return turns

    def carried_out(self, effects: Sequence[Effect]) -> list[Effect]:
        """What the publishers' end has handed back, by way of the disk; and what is to be done beside that."""
        for effect in effects:
            if type(effect) is Persist:
                if self.candidate is None:
                    self._effects.append(self.disk.append(effect.token, effect.record))
                else:
                    self.candidate.persist(effect.token, effect.record)
            elif type(effect) is Truncate:
                if self.candidate is None:
                    self._effects += self.disk.cut(effect.before)
                else:
                    self.candidate.truncate(effect.before)
            else:
                self._effects.append(effect)
            self._gather()
        self._gather()
        effects, self._effects = self._effects, []
        return effects

    def _gather(self) -> None:
        if self.candidate is not None:
            self._effects += self.candidate.effects
            self.candidate.effects = []

    def settling(self, now_us: int) -> bool:
        """Is a change of who serves to be expected, or is the witness to be told how it stands?"""
        if not self.witness.knows_all and now_us - self._begun_us <= GIVES_UP * self._silence_us:
            return True
        return self.candidate is not None and self.candidate.settling(now_us)

    def fingerprint(self) -> Fact:
        """What state it is in, coarsely."""
        standing = None if self.candidate is None else self.candidate.standing
        return state_of("redundant end", serves=self.serves, paired=standing is not None and standing.paired)


def redundancy_of(context: NodeContext, parameters: EndToEndParameters, roots: Sequence[NodeName]) -> Redundancy | None:
    """What the broker has to do with redundant pubends; None: nothing."""
    if any(context.name in end.names for end in parameters.redundant):
        return Redundancy(context, parameters, roots)
    return None
