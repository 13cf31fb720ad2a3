"""A client under epidemic recovery: "at most once" holds up to the subscriber, also where its link doubles messages."""

from collections.abc import Sequence

from murmur_pubsub.client import ClientMachine, Notification
from murmur_pubsub.machine import Effect, Input, Received
from reliability.epidemic.parameters import EpidemicParameters
from reliability.epidemic.received import ReceivedEvents


class EpidemicClient(ClientMachine):
    """A client whose broker notifies it of an event once, for all subscribers; a second notification is a copy that the
    link made."""

    def __init__(self, broker: str, parameters: EpidemicParameters) -> None:
        super().__init__(broker)
        self._received = ReceivedEvents(parameters.remember)

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        if type(input) is Received and type(input.message) is Notification:
            event = input.message.event.id
            if event in self._received:
                return ()
            self._received.add(event, passed_on=True)
        return super().handle(input, now_us)
