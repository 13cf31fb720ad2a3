"""What every algorithm of recovery knows of its dispatcher ("per dispatcher information" of Figures 2 and 3)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from murmur_pubsub.machine import Effect, NodeName
from reliability.epidemic.cache import EventCache
from reliability.epidemic.loss_detection import LostBuffer
from reliability.epidemic.parameters import EpidemicParameters
from reliability.epidemic.received import ReceivedEvents
from reliability.epidemic.subscription_table import SubscriptionTable

_Target = TypeVar("_Target")


@dataclass(slots=True)
class Dispatcher:
    """`routes`: for each source the dispatchers that its most recent event passed, the source first."""

    name: NodeName
    parameters: EpidemicParameters
    table: SubscriptionTable
    received: ReceivedEvents
    cache: EventCache
    lost: LostBuffer
    rng: random.Random
    routes: dict[NodeName, Sequence[NodeName]] = field(default_factory=dict)

    def towards_subscribers(self, pattern: int, came_from: NodeName | None = None) -> Sequence[NodeName]:
        """To which neighbours gossip about the pattern goes: at most `fanout` of those with subscribers behind them."""
        return self.some_of(self.table.towards(pattern, came_from))

    def some_of(self, targets: Sequence[_Target]) -> Sequence[_Target]:
        """At most `fanout` of them, drawn at random."""
        fanout = self.parameters.fanout
        return targets if len(targets) <= fanout else self.rng.sample(targets, fanout)

    def tosses_p_forward(self) -> bool:
        """The coin: is the gossip message to go on from here?"""
        return self.rng.random() < self.parameters.p_forward


class Gossip(Protocol):
    """An algorithm at one dispatcher."""

    def start_round(self) -> list[Effect]:
        """startGossipRound: the interval has run out."""
        ...

    def handle(self, came_from: NodeName, message: Any) -> list[Effect]:
        """handleGossipMsg, and handleReqMsg where there are requests."""
        ...
