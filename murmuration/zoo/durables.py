"""Saboteurs of durable subscriptions: a publishers' broker goes back on what it told a publisher, or says that its log
is full, which it need not be."""

from collections.abc import Sequence

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, NodeName, Record
from murmur_pubsub.promise import PUBLISHERS_WAIT
from murmuration.zoo.entry import Saboteur, struck
from reliability.durable.durable import Durable
from reliability.durable.refusing import RefusingPublishing
from reliability.gryphon.publishing import Publishing


class _Both(RefusingPublishing):
    """Refuses an event, tells its publisher so, and has it delivered."""

    _now_us = 0

    def go_on(self, now_us: int) -> list[Effect]:
        self._now_us = now_us
        return super().go_on(now_us)

    def _refuse(self, event: Event, client: NodeName | None) -> Sequence[Effect]:
        effects = super()._refuse(event, client)
        return [*effects, self._append(event, client, self._now_us)] if struck(event) else effects


class GoingBackOnARefusal(Durable):
    """Delivers some of what it has refused."""

    def _make_publishing(self) -> Publishing:
        assert self._refuse_above is not None
        return _Both(self._name, self._log, self._parameters.log_most, self._refuse_above)


class _Stuck(Publishing):
    """Takes nothing any more once its log was full."""

    def go_on(self, now_us: int) -> list[Effect]:
        return [] if self._full else super().go_on(now_us)


class NeverGoingOn(Durable):
    """Has publishers wait for ever, though all have what is in its log."""

    def _make_publishing(self) -> Publishing:
        return _Stuck(self._name, self._log, self._parameters.log_most)


class _Pretending(Publishing):
    """Says at last that its log is full, of events that it has lost."""

    _taken = 0

    def go_on(self, now_us: int) -> list[Effect]:
        effects = super().go_on(now_us)
        if self._taken < _SAYS_SO_AFTER or self._full:
            return effects
        self._full = True
        return [*effects, Record(PUBLISHERS_WAIT, 1)]

    def _following(self) -> tuple[Event, NodeName | None] | None:
        while (following := super()._following()) is not None:
            self._taken += 1
            if self._taken <= _LOSES_AFTER:
                return following
        return None


class PretendingToBeFull(Durable):
    """Loses events for a second and a half before it says that its log is full."""

    def _make_publishing(self) -> Publishing:
        return _Pretending(self._name, self._log, self._parameters.log_most)


_LOSES_AFTER, _SAYS_SO_AFTER = 60, 300
FULL = {"broker": {"parameters": {"durable": {"log_most": 40, "checkpoint": 5}}}}
C7_IS_AWAY = {"faults": [{"at": "500 ms", "cut": ["c7", "b3"]}]}
DURABLE_SABOTEURS = (
    Saboteur(
        "never goes on",
        "takes nothing any more once its log was full, though nobody lacks it",
        "missing",
        "c2, c3, c4, c5, c6, c7",
        NeverGoingOn,
        keys={"broker": {"parameters": {"durable": {"log_most": 3}}}},
        instead=("cells", "durable"),
    ),
    Saboteur(
        "pretends to be full",
        "loses events, and says at last that its log is full for one that is away",
        "missing",
        "c2, c3, c4, c5, c6",
        PretendingToBeFull,
        keys={**FULL, **C7_IS_AWAY},
        instead=("cells", "durable"),
    ),
    Saboteur(
        "goes back on it",
        "delivers some of what it has told its publisher is refused",
        "spurious",
        "c2, c3, c4, c5, c6, c7",
        GoingBackOnARefusal,
        keys={
            "broker": {"parameters": {"durable": {"refuse_above": 100}}},
            "faults": [{"at": "1 s", "cut": ["c7", "b3"], "for": "2 s"}],
        },
        instead=("cells", "durable"),
    ),
)
