"""Cells whose members change, with one bug each: what the random schedules must find."""

from collections.abc import Sequence

from murmur_pubsub.machine import Effect, NodeContext, NodeName
from reliability.gryphon.gryphon import Gryphon
from reliability.gryphon.streams import BrokerStream
from routing.cells.joining import Joining
from routing.cells.messages import Members
from routing.cells.router import CellRouting
from routing.protocol import NoParameters


class TakesAnyWord(CellRouting):
    """Acknowledgements are taken from brokers that do not know all who have joined behind them."""

    def knows_enough(self, joined: Sequence[NodeName]) -> bool:
        return True


class StillWaits(Gryphon):
    """A broker beside one that has departed still waits for its acknowledgements."""

    def _make_stream(self, number: int, root: NodeName) -> BrokerStream:
        stream = super()._make_stream(number, root)
        stream.__class__ = _StreamThatWaits
        return stream


class _StreamThatWaits(BrokerStream):
    def follow_tree(self) -> None:
        before = self.ostreams
        super().follow_tree()
        self.ostreams = {**before, **self.ostreams}


class Unfollowing(Gryphon):
    """A broker serves the branches that it began with, and no newcomer."""

    def on_tree_changed(self) -> Sequence[Effect]:
        return super().on_tree_changed() if self._took_part != self._router.takes_part else ()


class GoesOn(Gryphon):
    """Redundant brokers go on with their streams when a branch is new: what they have acknowledged stays so."""

    def on_tree_changed(self) -> Sequence[Effect]:
        if self._took_part == self._router.takes_part:
            for stream in self.streams.values():
                stream.follow_tree()
        return super().on_tree_changed()


class Forgetful(CellRouting):
    """Who has joined and departed is not stored: who starts again has to be told."""

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        super().__init__(context, parameters)
        self._joining.__class__ = _ForgetfulJoining


class _ForgetfulJoining(Joining):
    def recover(self, records: Sequence[bytes]) -> None:
        return


class Undead(CellRouting):
    """A broker that has departed does not hear of it."""

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        super().__init__(context, parameters)
        self._joining.__class__ = _UndeadJoining


class _UndeadJoining(Joining):
    def heard(self, source: NodeName, message: Members) -> tuple[bool, list[Effect]]:
        departed = [each for each in message.departed if each != self._me]
        return super().heard(source, message._replace(departed=departed))


class LetsFall(CellRouting):
    """A broker that has departed passes on nothing that is on its way."""

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        super().__init__(context, parameters)
        self._joining.__class__ = _FallingJoining


class _FallingJoining(Joining):
    @property
    def has_left(self) -> bool:
        return False


class Unopened(CellRouting):
    """A newcomer uses its links before the other end knows of it."""

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        super().__init__(context, parameters)
        self._joining.__class__ = _HastyJoining


class _HastyJoining(Joining):
    def is_open(self, peer: NodeName) -> bool:
        known = self._membership
        return known.cell_of(self._me) is not None and known.cell_of(peer) is not None


def _path(bug: type) -> str:
    return f"{bug.__module__}:{bug.__name__}"


DRAWN = {
    "who has departed is waited for": ("cells", _path(StillWaits)),
    "no newcomer is served": ("cells", _path(Unfollowing)),
}
"""Routing and reliability; random schedules find them."""
STAGED = {
    "acknowledgements of who does not know all": (_path(TakesAnyWord), "gryphon"),
    "streams go on though a branch is new": ("cells", _path(GoesOn)),
    "membership is not stored": (_path(Forgetful), "gryphon"),
    "who has departed goes on": (_path(Undead), "gryphon"),
    "a link is used too soon": (_path(Unopened), "gryphon"),
    "who has departed lets fall what it has": (_path(LetsFall), "gryphon"),
}
"""What goes wrong with these takes moments that chance does not find: `test_moments` stages them."""
