"""Clients of other brokers that submit here by way of these, at a broker that serves a redundant pubend.

This broker hears nothing of their links. A client repeats what it has not seen accepted. So one that is silent for long
has everything accepted, or is away, and submits again what it still has, or was killed with what is missing here.
"""

from collections.abc import Collection

from murmur_pubsub.machine import Effect, NodeName, Send
from reliability.end_to_end.redundant_messages import AcceptedThere
from reliability.gryphon.messages import Accepted

_REPEATS = 10
"""A client is silent after so many times in which it would have repeated: of ten words one comes through, where half of
all are lost."""


class Relays:
    """`resend_us`: when clients repeat."""

    def __init__(self, resend_us: int) -> None:
        self._silence_us = _REPEATS * resend_us
        self._by: dict[NodeName, NodeName] = {}
        """By way of which broker each client submits."""
        self._heard_us: dict[NodeName, int] = {}

    @property
    def heard(self) -> Collection[NodeName]:
        """Clients that were not taken to be silent since they last submitted."""
        return self._heard_us.keys()

    def relayed(self, client: NodeName, by: NodeName, now_us: int) -> None:
        """The client has submitted something by way of that broker."""
        self._by[client] = by
        self._heard_us[client] = now_us

    def is_here(self, client: NodeName) -> None:
        """The client has submitted something to this broker itself, which hears of its link."""
        self._by.pop(client, None)
        self._heard_us.pop(client, None)

    def silent(self, now_us: int) -> list[NodeName]:
        """Clients that are silent since this was last asked."""
        silent = [each for each, heard_us in self._heard_us.items() if now_us - heard_us >= self._silence_us]
        for client in silent:
            del self._heard_us[client]
        return silent

    def sent_back(self, effect: Effect) -> Effect:
        """To a client of another broker, by way of that."""
        if type(effect) is Send and type(effect.message) is Accepted and effect.to in self._by:
            by, accepted = self._by[effect.to], effect.message
            return Send(by, AcceptedThere(by, effect.to, accepted.publisher, accepted.sequence))
        return effect
