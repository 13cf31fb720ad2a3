"""Redundant publishers' brokers with one bug each: what random schedules with backups must find."""

from collections.abc import Sequence
from typing import Any

from murmur_pubsub.machine import Effect, NodeContext, NodeName
from reliability.end_to_end.end_to_end import EndToEnd
from reliability.end_to_end.parameters import EndToEndParameters
from reliability.end_to_end.redundant_messages import Claim
from reliability.end_to_end.twin_disk import Standing
from reliability.gryphon.messages import Submission
from reliability.layer import BrokerServices


class Redundant(EndToEnd):
    """One whose candidate and witness, if it has them, are changed by `plant`."""

    def __init__(self, context: NodeContext, parameters: EndToEndParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        if self._redundancy is not None:
            if self._redundancy.candidate is not None:
                self.plant(self._redundancy.candidate)
            self.plant_witness(self._redundancy.witness)

    def plant(self, candidate: Any) -> None: ...

    def plant_witness(self, witness: Any) -> None: ...


class CountsOnOneDisk(Redundant):
    """What is on the disk of the broker that serves counts, though the other one may not have it."""

    def plant(self, candidate: Any) -> None:
        count = candidate._count

        def count_alone() -> None:
            shipping, candidate._shipping = candidate._shipping, _HasAll()
            count()
            candidate._shipping = shipping

        candidate._count = count_alone


class _HasAll:
    def both_have(self, token: int) -> bool:
        return True


class TakesOverUnasked(Redundant):
    """A backup that hears nothing serves without the word of the witness."""

    def plant(self, candidate: Any) -> None:
        claim = candidate._claim

        def take(epoch: int, paired: bool) -> None:
            if epoch and not paired and candidate.standing.host != candidate._name:
                candidate._claimed = epoch
                candidate._learn(Standing(epoch, candidate._name, False))
            else:
                claim(epoch, paired)

        candidate._claim = take


class TakesOverBehind(Redundant):
    """The backup of one that serves alone may take over too."""

    def plant(self, candidate: Any) -> None:
        claim_what_is_due = candidate._claim_what_is_due

        def take(now_us: int) -> bool:
            standing = candidate.standing
            if standing is None or standing.host == candidate._name:
                return bool(claim_what_is_due(now_us))
            candidate._claim(standing.epoch + 1, False)
            candidate._waits_for_ticket = True
            return True

        candidate._claim_what_is_due = take

    def plant_witness(self, witness: Any) -> None:
        claim = witness.claim

        def grant(message: Claim, now_us: int) -> list[Effect]:
            known = witness._disk.note.registers.get(message.pubend)
            is_young = now_us <= message.ticket + witness._patience_us
            if known is not None and message.epoch == known.epoch + 1 and not message.paired and is_young:
                registers = {**witness._disk.note.registers, message.pubend: known._replace(paired=True)}
                witness._disk.note = witness._disk.note._replace(registers=registers)
            granted: list[Effect] = claim(message, now_us)
            return granted

        witness.claim = grant


class AsksOnlyTheFirst(EndToEnd):
    """Subscribers' brokers ask only the broker at which the pubend was at first."""

    def __init__(self, context: NodeContext, parameters: EndToEndParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._where.ask = lambda root, now_us: (root,)  # type: ignore[method-assign]


class RelaysNothing(EndToEnd):
    """A broker that does not serve forgets what its clients submit."""

    def _on_submission(self, source: NodeName, message: Submission) -> Sequence[Effect]:
        return super()._on_submission(source, message) if self._serves else ()


class NotShippedAnew(Redundant):
    """When the two have been apart, only what comes from then on is shipped."""

    def plant(self, candidate: Any) -> None:
        has = candidate._on_has

        def without_the_log(message: Any, now_us: int) -> None:
            log = candidate._disk.log
            shipping = candidate._shipping
            if candidate.serves and (shipping is None or shipping.peer != message.incarnation):
                candidate._disk.log = dict(list(log.items())[-1:])
            has(message, now_us)
            candidate._disk.log = log

        candidate._on_has = without_the_log


class DoesNotCease(Redundant):
    """One that has served goes on, and counts what is on its own disk, when another one does."""

    def plant(self, candidate: Any) -> None:
        candidate._cease = lambda: None
        CountsOnOneDisk.plant(self, candidate)  # type: ignore[arg-type]


def _path(bug: type[EndToEnd]) -> str:
    return f"{bug.__module__}:{bug.__name__}"


BUGS = {
    "what is on one disk counts": _path(CountsOnOneDisk),
    "a backup takes over unasked": _path(TakesOverUnasked),
    "a backup that is behind takes over": _path(TakesOverBehind),
    "only the first broker is asked": _path(AsksOnlyTheFirst),
    "a backup relays nothing": _path(RelaysNothing),
    "a log is not shipped anew": _path(NotShippedAnew),
    "a former host does not cease": _path(DoesNotCease),
}
"""What each is called to where it is, as a scenario names it."""
