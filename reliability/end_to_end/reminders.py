"""The publishers' end reminds brokers of what their clients have not acknowledged.

Theory of operation. A message that is lost with nothing behind it shows no gap where it is missing. The publishers'
broker knows of it: what a client was matched with is kept until the client has it. So what was put on a tick `rest` ago
and is still kept, it names to the broker that last spoke for the client. Who lacks it asks, and who has it says so.
While nothing is heard of the client it reminds again, after a quarter of `rest` at first, then each time after twice as
long, at most `rest_most`.

A broker that was restarted does not know who is where, so it asks all brokers that may have clients. One that has lost
its disk does not even know that somebody wants anything. It asks all of them at once, and those that say nothing again,
for `idle`. Reminders may be lost, or go to a broker that the client has left: brokers ask by themselves too, if seldom.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence

from murmur_pubsub.machine import Effect, NodeName
from reliability.durable.keeper import Keeper
from reliability.end_to_end.messages import Reminder
from reliability.end_to_end.parameters import EndToEndParameters
from reliability.gryphon.pubend import Pubend
from reliability.gryphon.round_trip import doubled

LOOKS = 4
"""How often in a `rest` it is looked whom to remind."""
_ALL: NodeName = ""
"""Stands for all clients of which it is not known where they are."""


class Reminders:
    """Of one publishers' broker. `brokers`: those that may have clients."""

    def __init__(
        self,
        keeper: Keeper,
        brokers: Sequence[NodeName],
        parameters: EndToEndParameters,
        post: Callable[[Reminder], Sequence[Effect]],
    ) -> None:
        self._keeper = keeper
        self._brokers = brokers
        self._rest_us = parameters.rest * 1_000
        self._rest_most_us = parameters.rest_most * 1_000
        self._idle_us = parameters.idle * 1_000
        self._post = post
        self._where: dict[NodeName, NodeName] = {}
        """The broker that last spoke for the client."""
        self._reminded: dict[NodeName, tuple[int, int]] = {}
        """How often since something was heard, and when to remind again."""
        self._silent: dict[NodeName, None] = {}
        """Brokers that have said nothing since it was lost what is kept for whom."""
        self._numbers: Sequence[int] = ()
        self._asks_until_us = self._again_us = self._asked = 0

    @property
    def asks_all(self) -> bool:
        """May there be clients of which nothing is on record any more?"""
        return bool(self._silent)

    def heard(self, client: NodeName, broker: NodeName, now_us: int) -> None:
        """That broker has spoken for the client."""
        self._where[client] = broker
        self._silent.pop(broker, None)
        if client in self._reminded:
            self._reminded[client] = 0, now_us + self._rest_us

    def with_recorded(self, client: NodeName, broker: NodeName) -> list[Effect]:
        """The broker hears that the client is on record, which may have been away."""
        kept = self._keeper.kept_for_one(client)
        return [effect for pubend, tick in kept for effect in self._post(Reminder(broker, pubend, [client], [tick]))]

    def look(self, since_us: int, now_us: int) -> list[Effect]:
        """Remind of what is due; not of clients of which nothing was heard since then."""
        due: dict[tuple[NodeName, int], dict[NodeName, int]] = defaultdict(dict)
        reminded: dict[NodeName, None] = {}
        """Clients, or `_ALL`."""
        everywhere: dict[int, None] = {}
        for client, pubend, tick in self._keeper.kept_for(since_us, (now_us - self._rest_us) // 1_000):
            known = client if client in self._where else _ALL
            if not self._is_due(known, now_us):
                continue
            reminded[known] = None
            if known is client:
                due[self._where[client], pubend][client] = tick
            else:
                everywhere[pubend] = None
        due.update(((broker, pubend), {}) for broker in self._brokers for pubend in everywhere)
        if now_us >= self._asks_until_us:  # by now they have asked by themselves
            self._silent.clear()
        if self._silent and self._again_us <= now_us:
            self._again_us = now_us + doubled(self._rest_us // LOOKS, self._asked, self._rest_most_us)
            self._asked += 1
            due.update(((broker, pubend), {}) for broker in self._silent for pubend in self._numbers)
        for client in reminded:
            often = self._reminded.get(client, (0, 0))[0]
            self._reminded[client] = often + 1, now_us + doubled(self._rest_us // LOOKS, often, self._rest_most_us)
        return [
            effect
            for (broker, pubend), ticks in due.items()
            for effect in self._post(Reminder(broker, pubend, [*ticks], [*ticks.values()]))
        ]

    def all_is_lost(self, pubends: Sequence[Pubend], now_us: int) -> list[Effect]:
        """What was kept for whom is not known any more: ask all brokers that may have clients."""
        self._silent = dict.fromkeys(self._brokers if pubends else ())
        self._numbers = [pubend.number for pubend in pubends]
        self._asks_until_us = now_us + self._idle_us
        self._asked, self._again_us = 0, now_us + self._rest_us
        pairs = itertools.product(self._numbers, self._brokers)
        return [effect for number, broker in pairs for effect in self._post(Reminder(broker, number, [], []))]

    def _is_due(self, client: NodeName, now_us: int) -> bool:
        return self._reminded.get(client, (0, 0))[1] <= now_us
