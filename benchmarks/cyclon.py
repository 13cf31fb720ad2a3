"""Cyclon, the peer-sampling protocol, as a machine: the load of the engine benchmark.

A node keeps a view of `VIEW` peers; once a cycle it sends a random part of it to a random peer, which answers
with a part of its own, and each puts what it got in place of what it had. The same work an event as the bare
loop that it is compared with: no ages, no self-entries.
"""

from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.machine import Effect, Input, Machine, NodeContext, Received, Send, SetTimer, Start, TimerFired
from murmur_pubsub.message import message

VIEW = 20
SHUFFLE = 5
CYCLE_US = 1_000_000
_CYCLE_KEY = ("cyclon", "cycle")


@message(200)
class ShuffleRequest(NamedTuple):
    """Part of the sender's view."""

    peers: list[int]


@message(201)
class ShuffleReply(NamedTuple):
    """Part of the answering node's view."""

    peers: list[int]


class Cyclon(Machine):
    """Node i of `nodes`; names are the numbers as text. `cycle_us`: how long a cycle is, if not a second."""

    __slots__ = ("_names", "_next_cycle", "_rng", "_view")

    message_types: tuple[type, ...] = (ShuffleRequest, ShuffleReply)

    def __init__(self, context: NodeContext) -> None:
        nodes = context.parameters["nodes"]
        self._rng = context.random("cyclon")
        self._names: Sequence[str] = context.parameters["names"]
        self._next_cycle = SetTimer(_CYCLE_KEY, context.parameters.get("cycle_us", CYCLE_US))
        self._view = [int(self._rng.random() * nodes) for _ in range(VIEW)]

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if isinstance(input, Received):
            source, message = input
            if isinstance(message, ShuffleRequest):
                reply = ShuffleReply(self._sample())
                self._view[:SHUFFLE] = message.peers
                return (Send(source, reply),)
            assert isinstance(message, ShuffleReply)
            self._view[:SHUFFLE] = message.peers
            return ()
        if isinstance(input, TimerFired):
            peer = self._names[self._view[int(self._rng.random() * VIEW)]]
            return (Send(peer, ShuffleRequest(self._sample())), self._next_cycle)
        if isinstance(input, Start):
            return (SetTimer(_CYCLE_KEY, int(self._rng.random() * self._next_cycle.delay_us)),)
        raise TypeError(f"Cyclon takes no {input!r}")

    def check_invariants(self) -> None:
        assert len(self._view) == VIEW

    def _sample(self) -> list[int]:
        """A random part of the view, moved to its front (a partial Fisher-Yates shuffle)."""
        view, random = self._view, self._rng.random
        for position in range(SHUFFLE):
            other = position + int(random() * (VIEW - position))
            view[position], view[other] = view[other], view[position]
        return view[:SHUFFLE]
