"""Which links are up, as the brokers of a region tell each other, and the paths that they make.

Theory of operation (link state, as in routing of packets; the paper only says that a message may take any link of a
bundle, or go sideways). Only where cells have several brokers is there a choice of ways. A region is such cells that
are neighbours of one another, with the lone brokers around them (`CellTree.regions`). Every way between two regions
passes a lone broker, so no other region has to know which links are up in one, and among lone brokers nothing is told.

In a region each broker numbers the states of its own links and floods each state; on a new link both ends tell each
other all states that they have. A link counts as up while both its ends say so. A broker that is away says nothing,
but its neighbours no longer name it. So once all is told, brokers that reach each other know the same links.

Messages are sent by the whole path (the sender decides it, brokers on it only pass it on): while brokers still know
different links a message may meet one that is down and be lost, but it can never go round.
"""

from collections import deque
from collections.abc import Sequence

from murmur_pubsub.errors import WireError
from murmur_pubsub.machine import Effect, NodeName, Send
from routing.cells.cell_tree import Cell, CellTree
from routing.cells.messages import LinksUp

Path = tuple[NodeName, ...]
"""The brokers to pass one after the other, without the sender; the last one is the receiver. Empty: there is none."""


class LinkStates:
    """The links of one broker, and what it knows of those of its regions."""

    def __init__(self, tree: CellTree, me: NodeName, incarnation: int) -> None:
        self.links: dict[NodeName, None] = {}
        self._tree = tree
        self._me = me
        self._incarnation = incarnation
        self._version = 0
        self._known: dict[NodeName, LinksUp] = {}
        self._paths: dict[NodeName, Path] | None = None
        self._ways: dict[tuple[Cell, int], Path] = {}

    # ------------------------------------------------------------------------------------------- telling
    def link_up(self, peer: NodeName) -> list[Effect]:
        """A link is there: all is told to the new neighbour, and its being there to the others."""
        self.links[peer] = None
        effects = self._changed()
        others = [state for broker, state in self._known.items() if broker != self._me]
        return [*effects, *(Send(peer, state) for state in others if self._concerns(state, peer))]

    def link_down(self, peer: NodeName) -> list[Effect]:
        """A link is gone."""
        del self.links[peer]
        return self._changed()

    def grow(self) -> list[Effect]:
        """Brokers have joined or departed, and other regions are around: all states go to those that they concern."""
        for broker in [each for each in self._known if self._tree.membership.has_departed(each)]:
            del self._known[broker]
        self._forget_paths()
        return [
            Send(peer, state)
            for peer in self.links
            for state in self._known.values()
            if state.broker != peer and self._concerns(state, peer)
        ]

    def learn(self, source: NodeName, state: LinksUp) -> list[Effect]:
        """Take what a broker says of its links, and pass it on if it is news. Raises `WireError` for brokers that the
        overlay does not have."""
        if not {state.broker, *state.peers} <= self._tree.numbers.keys():
            raise WireError(f"links of brokers that are none: {state!r:.80}")
        if self._tree.membership.has_departed(state.broker):
            return []
        known = self._known.get(state.broker)
        if state.broker == self._me or (known is not None and known[1:3] >= state[1:3]):
            return []
        return self._take(state, source)

    def _changed(self) -> list[Effect]:
        self._version += 1
        in_order = sorted(self.links, key=self._tree.numbers.__getitem__)
        return self._take(LinksUp(self._me, self._incarnation, self._version, in_order), None)

    def _take(self, state: LinksUp, source: NodeName | None) -> list[Effect]:
        self._known[state.broker] = state
        self._forget_paths()
        told = [peer for peer in self.links if peer not in (source, state.broker)]
        return [Send(peer, state) for peer in told if self._concerns(state, peer)]

    def _forget_paths(self) -> None:
        self._paths = None
        self._ways.clear()

    def _concerns(self, state: LinksUp, peer: NodeName) -> bool:
        return any(state.broker in region and peer in region for region in self._tree.regions)

    # -------------------------------------------------------------------------------------------- paths
    def path(self, broker: NodeName) -> Path:
        """A shortest path to the broker."""
        if self._paths is None:
            self._paths = self._all_paths()
        return self._paths.get(broker, ())

    def way(self, branch: Cell, turn: int) -> Path:
        """The path to the member of the branch's cell to send to: the one whose turn it is, unless another leads to
        more of the cells behind the branch, or to as many by a shorter path."""
        members = self._tree.members[branch]
        turn %= len(members)
        if (branch, turn) not in self._ways:
            reached = [each for each in (members[turn], *members) if self.path(each)]
            best = min(reached, key=lambda each: (-self._led_to(each), len(self.path(each))), default=None)
            self._ways[branch, turn] = () if best is None else self.path(best)
        return self._ways[branch, turn]

    def _all_paths(self) -> dict[NodeName, Path]:
        paths: dict[NodeName, Path] = {self._me: ()}
        waiting = deque([self._me])
        while waiting:
            broker = waiting.popleft()
            for peer in self._neighbours(broker):
                if peer not in paths:
                    paths[peer] = (*paths[broker], peer)
                    waiting.append(peer)
        return paths

    def _neighbours(self, broker: NodeName) -> Sequence[NodeName]:
        """The brokers at the other ends of the links that are up; its own are known here at first hand."""
        state = self._known.get(broker)
        if state is None:
            return ()
        if broker == self._me:
            return state.peers
        return [
            peer
            for peer in state.peers
            if peer in self._known and broker in self._known[peer].peers and peer in self._tree.cell_of
        ]

    def _led_to(self, member: NodeName) -> int:
        """How many cells of the region the member reaches without a step back towards this broker's own cell."""
        depth, cell_of = self._tree.depth, self._tree.cell_of
        reached = {member: None}
        waiting = deque([member])
        while waiting:
            broker = waiting.popleft()
            for peer in self._neighbours(broker):
                if peer not in reached and depth[cell_of[peer]] >= depth[cell_of[broker]]:
                    reached[peer] = None
                    waiting.append(peer)
        return len({cell_of[broker]: None for broker in reached})

    def check_invariants(self) -> None:
        """What is known of the own links is how they are; a path has no broker twice."""
        if self._me in self._known:
            assert set(self._known[self._me].peers) == set(self.links)
        for path in (self._paths or {}).values():
            assert len({self._me, *path}) == len(path) + 1
