"""The coordinator's desk at a broker: who hosts the coordinator, and what its host does for it (section 6).

The overlay names a broker to begin with. An order names another one, and all brokers are told; so they are when the
host comes back after a restart. Whoever is told reports its neighbours and its move.
"""

from murmur_pubsub.machine import Effect, NodeName, Send, SetTimer
from routing.multipath.coordinator import Coordinator
from routing.multipath.knowledge import Knowledge, Office
from routing.multipath.messages import CoordinatorNamed, MoveAsked, MoveFinished, MoveGranted, MovePermission, MoveRuns
from routing.multipath.primary_network import Statement

_TIMER = ("routing", "desk")


class CoordinatorDesk:
    """`coordinator`: if this broker hosts it."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self.coordinator: Coordinator | None = None

    def on_start(self) -> list[Effect]:
        """If this broker is the host from the beginning, it begins; a restarted one hears the others first."""
        office, name = self._knowledge.office, self._knowledge.name
        if office is None or office.name != name:
            return []
        epoch = self._knowledge.network.epoch
        self._knowledge.office = Office(0, epoch, name)
        return self.open()

    def open(self) -> list[Effect]:
        """Begin to be the host, or cease to be."""
        office = self._knowledge.office
        if office is None or office.name != self._knowledge.name:
            self.coordinator = None
            return []
        first = (office.term, office.epoch) == (0, 0)
        self.coordinator = Coordinator(self._knowledge.parameters.delta, office.term, office.epoch, first)
        self.coordinator.learn(office.name, self._knowledge.network.own)
        return [] if first else [self._timer]

    def take_office(self) -> None:
        """This broker is the host from now on, by order."""
        term = 0 if self._knowledge.office is None else self._knowledge.office.term
        self._knowledge.office = Office(term + 1, self._knowledge.network.epoch, self._knowledge.name)

    def is_news(self, named: CoordinatorNamed) -> bool:
        """Take the word of who the host is; False if it is old. To a restarted host its own office comes back."""
        office = Office(named.term, named.epoch, named.name)
        if office.name == self._knowledge.name:
            office = office._replace(epoch=self._knowledge.network.epoch)
        if self._knowledge.office is not None and office <= self._knowledge.office:
            return False
        self._knowledge.office = office
        return True

    def tell(self, peer: NodeName) -> list[Effect]:
        """To a neighbour that comes (back): who is the host, unless it is as at first."""
        office = self._knowledge.office
        return [] if office is None or (office.term, office.epoch) == (0, 0) else self._name_to(peer)

    def _name_to(self, broker: NodeName) -> list[Effect]:
        office = self._knowledge.office
        return [] if office is None else [Send(broker, CoordinatorNamed(office.name, office.term, office.epoch))]

    def name_to_all(self, source: NodeName | None) -> list[Effect]:
        """Pass on who is the host."""
        peers = [peer for peer, _ in self._knowledge.network.relays() if peer != source]
        return [effect for peer in peers for effect in self.tell(peer)]

    # ---------------------------------------------------------------------------- what the host does, if it is this one
    def learn(self, broker: NodeName, statement: Statement) -> None:
        """See `Coordinator.learn`."""
        if self.coordinator is not None:
            self.coordinator.learn(broker, statement)

    def forget(self, broker: NodeName) -> None:
        """See `Coordinator.forget`."""
        if self.coordinator is not None:
            self.coordinator.forget(broker)

    def on_permission(self, wanted: MovePermission) -> list[Effect]:
        """A broker asks for a move."""
        if self.coordinator is None:
            return []
        return [*self._granted(self.coordinator.ask(wanted)), *self._look_for_reports(self.coordinator)]

    def _look_for_reports(self, coordinator: Coordinator) -> list[Effect]:
        missing = coordinator.look_for()
        asked = [effect for broker in missing for effect in self._name_to(broker)]
        return [*asked, self._timer] if asked else []

    def on_finished(self, finished: MoveFinished) -> list[Effect]:
        """A move is over."""
        return [] if self.coordinator is None else self._granted(self.coordinator.finish(finished.move))

    def on_runs(self, runs: MoveRuns) -> list[Effect]:
        """A move is not."""
        if self.coordinator is None:
            return []
        self.coordinator.hear(runs)
        return [self._timer]

    def on_timer(self) -> list[Effect]:
        """See which moves still run."""
        if self.coordinator is None:
            return []
        self.coordinator.ready = True
        asked = [Send(name, MoveAsked(number)) for name, number in self.coordinator.look_around()]
        granted = self._granted(self.coordinator.grant())
        effects = [*asked, *granted, *self._look_for_reports(self.coordinator)]
        return [*effects, self._timer] if self.coordinator.active else effects

    def _granted(self, answers: list[tuple[NodeName, MoveGranted]]) -> list[Effect]:
        effects: list[Effect] = [Send(mover, granted) for mover, granted in answers]
        if any(granted.number for _, granted in answers):
            effects.append(self._timer)
        return effects

    @property
    def _timer(self) -> SetTimer:
        return SetTimer(_TIMER, 2 * self._knowledge.parameters.move_grace_us)
