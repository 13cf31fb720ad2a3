"""Each broker repeats an event to the next one until that acknowledges it: lossy links lose nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from murmuration.protocol import (
    BrokerServices,
    CancelTimer,
    Effect,
    Event,
    Hops,
    Input,
    InputError,
    LinkDown,
    LinkUp,
    Microseconds,
    NodeContext,
    NodeName,
    Promise,
    Received,
    Reliability,
    ReliabilityProtocol,
    Send,
    SetTimer,
    Start,
    TimerFired,
    message,
)


@message(200)
class Numbered(NamedTuple):
    """An event on its way to the next broker. `number` counts what this broker has sent."""

    event: Event
    hops: Hops
    header: Sequence[int]
    number: int


@message(201)
class Acknowledged(NamedTuple):
    """The event with that number has arrived."""

    number: int


@dataclass(frozen=True)
class HopAckParameters:
    """What a scenario may say under `broker.parameters.hop_acks`."""

    retry_us: Microseconds = 100_000
    """After how long an event is sent again. In a scenario: `retry: 100 ms`."""
    attempts: int = 10
    """How often an event is sent before the broker gives up."""
    remember: int = 10_000
    """How many events a broker remembers, to know a second copy."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InputError("attempts", str(self.attempts), "at least 1")


class HopAcks(Reliability):
    """One broker's part."""

    message_types = (Numbered, Acknowledged)

    def __init__(self, context: NodeContext, parameters: HopAckParameters, services: BrokerServices) -> None:
        self._parameters = parameters
        self._services = services
        self._sent = context.incarnation << 32  # after a restart no number is used twice
        self._unacknowledged: dict[tuple[NodeName, int], tuple[Numbered, int]] = {}
        self._seen: dict[tuple[int, int], None] = {}

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        return self._take(event, 0, None, ())

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if isinstance(input, Received):
            message = input.message
            if isinstance(message, Acknowledged):
                self._unacknowledged.pop((input.source, message.number), None)
                return [CancelTimer(("reliability", input.source, message.number))]
            assert isinstance(message, Numbered)
            taken = self._take(message.event, message.hops, input.source, message.header)
            return [Send(input.source, Acknowledged(message.number)), *taken]
        if isinstance(input, TimerFired):
            return self._send_again(str(input.key[1]), int(str(input.key[2])))
        if isinstance(input, Start | LinkUp | LinkDown):
            return []
        raise TypeError(f"hop acknowledgements take no {input!r}")

    @property
    def waiting(self) -> bool:
        return bool(self._unacknowledged)

    def _take(self, event: Event, hops: int, came_from: NodeName | None, header: Sequence[int]) -> list[Effect]:
        if event.id in self._seen:
            return []
        self._seen[event.id] = None
        if len(self._seen) > self._parameters.remember:
            del self._seen[next(iter(self._seen))]
        passes = self._services.is_relay(event, header)
        effects = [] if passes else self._services.notify(event, hops)
        for peer, onward in self._services.next_hops(event, came_from, header):
            self._sent += 1
            self._unacknowledged[peer, self._sent] = (
                Numbered(event, hops + 1, onward, self._sent),
                self._parameters.attempts,
            )
            effects += self._send_again(peer, self._sent)
        return effects

    def _send_again(self, peer: NodeName, number: int) -> list[Effect]:
        message, left = self._unacknowledged.pop((peer, number))
        if not left:
            return []
        self._unacknowledged[peer, number] = message, left - 1
        return [Send(peer, message), SetTimer(("reliability", peer, number), self._parameters.retry_us)]


HOP_ACKS = ReliabilityProtocol(
    name="hop_acks", make=HopAcks, parameters=HopAckParameters, guarantee=Promise("best_effort", order="none")
)
