"""A publishers' broker that refuses what its log has no room for, and tells the publisher so.

Theory of operation. What comes while `refuse_above` messages are kept is decided at once, and decided once: it is not
taken, and a copy of it that comes later is not either. The publisher's client hears up to which number all is decided,
and which of that was refused, in one message; it is told again until it submits something that shows that it has heard.
What is logged later carries the refusals before it that were not heard. So they outlive this broker, wherever it would
otherwise take them for accepted.
"""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, NodeName, Record, Send
from murmur_pubsub.promise import REFUSED
from reliability.durable.log import DurableLog
from reliability.durable.messages import Decided
from reliability.gryphon.messages import Submission
from reliability.gryphon.publishing import Known, Publishing


class RefusingPublishing(Publishing):
    """See above; one for all pubends of a broker."""

    remembers: ClassVar = ("_refusals",)  # those of the log

    def __init__(self, broker: NodeName, log: DurableLog, log_most: int, refuse_above: int) -> None:
        super().__init__(broker, log, log_most)
        self._refusals = log.refused
        self._sequences = log.sequences
        self._refuse_above = refuse_above
        self._unsafe: Counter[int] = Counter()  # publisher to its events that are on their way into the log

    def submit(self, client: NodeName, message: Submission, now_us: int) -> list[Effect]:
        """See `Publishing.submit`."""
        source = message.event.source
        if source in self._refusals:
            self._refusals[source] = [each for each in self._refusals[source] if each >= message.oldest]
            if not self._refusals[source]:
                del self._refusals[source]
        return super().submit(client, message, now_us)

    def go_on(self, now_us: int) -> list[Effect]:
        """Put into the log what there is room for, and refuse the rest."""
        effects: list[Effect] = []
        while (following := self._following()) is not None:
            if len(self._log) < self._refuse_above:
                effects.append(self._append(*following, now_us))
            else:
                effects += self._refuse(*following)
        return effects

    def _append(self, event: Event, client: NodeName | None, now_us: int) -> Effect:
        self._unsafe[event.source] += 1
        return super()._append(event, client, now_us)

    def _refuse(self, event: Event, client: NodeName | None) -> Sequence[Effect]:
        source, sequence = event.id
        self._sequences[source] = sequence
        if client is None:
            return (Record(REFUSED, 0, event=event),)
        self._refusals.setdefault(source, []).append(sequence)
        if self._decide(source):
            self._to_accept[source] = client
        return ()

    def stored(self, token: int) -> tuple[list[Effect], Known | None]:
        """See `Publishing.stored`."""
        effects, known = super().stored(token)
        if known is not None and known.event is not None:
            self._unsafe[known.event.source] -= 1
            self._decide(known.event.source)
        return effects, known

    def _decide(self, source: int) -> bool:
        """All that was taken or refused of the publisher is decided, unless something is on its way into the log."""
        if self._unsafe[source]:
            return False
        self._accepted[source] = self._sequences[source]
        return True

    def accept(self) -> list[Effect]:
        """See `Publishing.accept`."""
        refused = {source: client for source, client in self._to_accept.items() if self._refused_of(source)}
        for source in refused:
            del self._to_accept[source]
        told = [
            Send(client, Decided(source, self._accepted[source], self._refused_of(source)))
            for source, client in refused.items()
        ]
        return [*super().accept(), *told]

    def _refused_of(self, source: int) -> list[int]:
        """Those that the publisher may not have heard of, of what is decided."""
        return [each for each in self._refusals.get(source, ()) if each <= self._accepted.get(source, -1)]
