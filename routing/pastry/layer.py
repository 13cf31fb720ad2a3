"""What every routing over Pastry has in common: it hands Pastry what is Pastry's, and is told what has changed."""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from murmur_pubsub.fingerprint import Fact
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Received,
    Start,
    Stored,
    TimerFired,
)
from routing.pastry.changes import OverlayChange
from routing.pastry.messages import PASTRY_MESSAGES, PastryPeer
from routing.pastry.node import Pastry
from routing.pastry.sense import sense_of
from routing.router import Router

_PASTRY = frozenset(PASTRY_MESSAGES)


class OverPastry(Router):
    """A router (`routing.router.Router`) on a Pastry node. A protocol gives handlers of its messages, by class, and of
    changes of the overlay; there are no links, since all messages are datagrams. `resets`: it is told at once of peers
    that are gone."""

    persists = True

    def __init__(self, context: NodeContext, resets: bool, note: Callable[[NodeName, int], int] | None = None) -> None:
        self._resets = resets
        self.pastry = Pastry(context) if note is None else Pastry(context, note)
        self.now_us = 0
        self._senses: dict[type, Callable[[Any], None]] = {}
        self.receivers: dict[type, Callable[[NodeName, Any], list[Effect]]] = {}
        self.watchers: dict[type, Callable[[Any], list[Effect]]] = {}

    @property
    def settling(self) -> bool:
        """A node that has not joined has told no other node what is wanted here."""
        return not self.pastry.joined

    @property
    def hears_resets(self) -> bool:
        """See `murmur_pubsub.machine.Machine`."""
        return self._resets

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `routing.router.Router`."""
        self.now_us = now_us
        if type(input) is Received:
            message_type = type(input.message)
            sense = self._senses.get(message_type)
            if sense is None:
                sense = self._senses[message_type] = sense_of(message_type, self.pastry.space)
            sense(input.message)
            if message_type not in _PASTRY:
                self.pastry.heard(input.source, now_us)
                return self.receivers[message_type](input.source, input.message)
        elif type(input) is LinkUp:
            return ()
        elif type(input) not in (Start, Stored, TimerFired, LinkDown):
            raise TypeError(f"a router over Pastry takes no {input!r}")
        effects = self.pastry.handle(input, now_us)
        for change in self.pastry.take_changes():
            effects += self._on_change(change)
        return effects

    def fingerprint(self) -> Set[Fact]:
        """See `murmur_pubsub.machine.Machine`."""
        return {self.pastry.state()}

    def know(self, peers: Iterable[PastryPeer]) -> None:
        """See `Pastry.know`; the layer above has nothing to tell them yet."""
        self.pastry.know(peers)
        for change in self.pastry.take_changes():
            self._on_change(change)

    def _on_change(self, change: OverlayChange) -> list[Effect]:
        watcher = self.watchers.get(type(change))
        return [] if watcher is None else watcher(change)
