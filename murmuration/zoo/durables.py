"""Saboteurs of durable subscriptions: a publishers' broker that goes back on what it told a publisher."""

from collections.abc import Sequence

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, NodeName
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


DURABLE_SABOTEURS = (
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
