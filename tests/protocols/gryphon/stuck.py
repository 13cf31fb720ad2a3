"""A publishers' broker that is caught between the log and the network."""

from collections.abc import Sequence

from murmur_pubsub.machine import Effect, NodeContext
from reliability.gryphon.gryphon import Gryphon
from reliability.gryphon.parameters import GryphonParameters
from reliability.layer import BrokerServices

SENT_BEFORE = 60
"""The first messages go out, this many; later ones reach the disk and no other broker, until this one is killed."""


class StuckAfterLogging(Gryphon):
    """In its first life it stops between the log and the send; in the next it is well."""

    def __init__(self, context: NodeContext, parameters: GryphonParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._stuck_after = SENT_BEFORE if context.incarnation == 0 else None
        self._seen = 0

    def _on_stored(self, token: int) -> Sequence[Effect]:
        self._seen += 1
        if self._stuck_after is not None and self._seen > self._stuck_after:
            return ()
        return super()._on_stored(token)
