"""Guaranteed delivery with one bug each: what the random schedules must find."""

from collections.abc import Sequence

from murmur_pubsub.machine import Effect, NodeContext, NodeName
from reliability.gryphon.gryphon import Gryphon
from reliability.gryphon.knowledge import KnowledgeStream
from reliability.gryphon.merge import Merge
from reliability.gryphon.parameters import GryphonParameters
from reliability.gryphon.pubend import Pubend
from reliability.gryphon.streams import BrokerStream
from reliability.layer import BrokerServices


class HastyHorizon(Gryphon):
    """The doubt horizon is one tick too far: a message that is lost just there is passed over."""

    def _make_stream(self, number: int, root: NodeName) -> BrokerStream:
        stream = super()._make_stream(number, root)
        stream.knowledge.__class__ = _HastyKnowledge
        return stream


class _HastyKnowledge(KnowledgeStream):
    __slots__ = ()

    def horizon(self, tick: int) -> int:
        found = super().horizon(tick)
        return found + 1 if found <= self.newest else found


class ForgottenChild(Gryphon):
    """Acknowledgements are accumulated from one branch too few."""

    def _make_stream(self, number: int, root: NodeName) -> BrokerStream:
        stream = super()._make_stream(number, root)
        stream.__class__ = _StreamThatForgets
        return stream


class _StreamThatForgets(BrokerStream):
    def accumulate(self) -> int:
        acked = [ostream.acked for ostream in self.ostreams.values()][:-1]
        if self.subend is not None:
            acked.append(self.subend.next - 1)
        self.knowledge.finalize(min(acked) if acked else self.knowledge.newest)
        return self.knowledge.final

    def check_invariants(self) -> None:
        """The bug is to be found by what subscribers get."""


class ReusedTick(Gryphon):
    """After a restart the pubend begins again on the tick of its last message."""

    def __init__(self, context: NodeContext, parameters: GryphonParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._restarted = context.incarnation > 0

    def _recover(self, records: Sequence[bytes]) -> Sequence[Effect]:
        effects = super()._recover(records)
        for pubend in self._publishing.pubends:
            pubend.__class__ = _PubendThatRepeats if self._restarted and pubend.last_message >= 0 else Pubend
        return effects


class _PubendThatRepeats(Pubend):
    __slots__ = ()

    def next_tick(self, now_us: int) -> int:
        again = self.last_message
        self.__class__ = Pubend  # type: ignore[assignment]
        return again


def _path(bug: type[Gryphon]) -> str:
    return f"{bug.__module__}:{bug.__name__}"


BUGS = {
    "doubt horizon one too far": _path(HastyHorizon),
    "acks of one child too few": _path(ForgottenChild),
    "a tick used again after a restart": _path(ReusedTick),
}


class Unmerged(Gryphon):
    """Promises a total order, and delivers each stream as it comes."""

    def __init__(self, context: NodeContext, parameters: GryphonParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._merge = None


class Impatient(Gryphon):
    """Messages wait only for streams that hold messages themselves: who is silent may still say something earlier."""

    def __init__(self, context: NodeContext, parameters: GryphonParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        if self._merge is not None:
            self._merge.__class__ = _ImpatientMerge


class _ImpatientMerge(Merge):
    __slots__ = ()

    @property
    def _taking(self) -> list[BrokerStream]:
        taking = super()._taking
        return [each for each in taking if each.knowledge.last_message >= 0]


ORDER_BUGS = {"streams are not merged": _path(Unmerged), "a silent stream is not waited for": _path(Impatient)}
"""Found where a total order is asked for."""
