"""A Pastry node: joining, routing, failure detection and repair (Rowstron and Druschel, Middleware 2001).

Theory of operation. A node keeps a routing table (one peer for each range that shares a prefix with its identifier
and differs in the next digit) and a leaf set (its neighbours on the ring). A message for an identifier goes to the
closest leaf if the leaf set spans it, else to the peer in the cell it belongs to, which shares one digit more, else to
any known peer that shares as many digits and is numerically closer.

Joining (`routing.pastry.joining`): a request is routed to the new node's own identifier and gathers peers on the way.
The new node then seeks a random member of each cell's range, so that the load of standing for a range is spread. In the
layer above, an empty cell means that its range is empty, so tables must be complete. The new node tells that it has
`Arrived` to all nodes that share the greatest number of digits with it, for in their tables, and no others, its cell is
empty. A node that hears of two new nodes introduces them to each other, so that concurrent joins meet.

Only a peer that has itself answered is taken into the tables: hearsay is asked first (`Hello`). Rounds of probes begin
at the multiples of `probe_us`, at all nodes at once, so that between them nothing moves; a peer that is silent for
`probe_timeout_us`, in which it is asked three times, has failed. Its cell is then asked for among the peers of the
same row (and the next ones), the leaf set among the farthest leaves; every answer to a probe carries a row and leaves,
so that what is still missing is learned in the rounds that follow. A peer back with a higher incarnation is a failed
one and a new one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    NodeContext,
    NodeName,
    Received,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from murmur_pubsub.places import RingPlace
from murmur_pubsub.procedure import Procedure
from routing.pastry.changes import Answered, CellFilled, Joined, LeavesChanged, OverlayChange, PeerFailed, RoundEnded
from routing.pastry.identifiers import IdentifierRange, IdentifierSpace
from routing.pastry.joining import JOIN_TRANSITIONS, JoinState, JoinStep
from routing.pastry.leaf_set import LeafSet
from routing.pastry.messages import (
    PASTRY_MESSAGES,
    Arrived,
    Hello,
    Introduced,
    JoinReply,
    JoinRequest,
    PastryPeer,
    Ping,
    Pong,
    RepairRequest,
    Seek,
    Welcome,
)
from routing.pastry.routing_table import RoutingTable

_ROUND, _DEADLINE, _JOIN, _SETTLE = (("routing", "pastry", name) for name in ("round", "deadline", "join", "settle"))
_QUARANTINE_ROUNDS = 10
"""For this many rounds hearsay about a failed peer is not believed."""
_ASKED_FOR_REPAIR = 3
_PINGS = 3
"""Of a round to a silent peer: messages may get lost."""


class Pastry:
    """One node. `note(length)`: what the layer above answers to a probe about this node's range of that length."""

    message_types: tuple[type, ...] = PASTRY_MESSAGES

    def __init__(self, context: NodeContext, note: Callable[[int], int] = lambda length: 0) -> None:
        assert isinstance(context.place, RingPlace)
        self.place = context.place
        self.space = IdentifierSpace(self.place.base, self.place.digits)
        self.own = self.place.identifier
        self.space.check(self.own, "overlay.identifiers")
        self.me = PastryPeer(context.name, self.own, context.incarnation)
        self.table = RoutingTable(self.space, self.own)
        self.leaves = LeafSet(self.space, self.own, self.place.leaf_set)
        self._note = note
        self._random = context.random("pastry")
        self._attempts = self._seeks = self._pings = 0
        self._join = Procedure("joining", context.name, JOIN_TRANSITIONS, JoinState.OUTSIDE)
        self._peers: dict[NodeName, PastryPeer] = {}
        self._watched: dict[NodeName, PastryPeer] = {}
        self._heard_us: dict[NodeName, int] = {}
        self._asked: dict[NodeName, PastryPeer] = {}
        self._silent: dict[NodeName, PastryPeer] = {}
        self._failed_us: dict[NodeName, int] = {}
        self._vacant: dict[IdentifierRange, tuple[int, int | None]] = {}
        self._waiting: list[JoinRequest] = []
        self._changes: list[OverlayChange] = []
        self._now_us = 0
        self._handlers: dict[type, Callable[[NodeName, Any], list[Effect]]] = {
            JoinRequest: self._on_join_request,
            JoinReply: self._on_join_reply,
            Hello: self._on_hello,
            Welcome: self._on_welcome,
            Seek: self._on_seek,
            Arrived: self._on_arrived,
            Introduced: lambda source, message: self._consider(message.known),
            RepairRequest: self._on_repair_request,
            Ping: self._on_ping,
            Pong: self._on_pong,
        }

    # ------------------------------------------------------------------------------ for the layer above
    @property
    def joined(self) -> bool:
        """Is this node part of the overlay?"""
        return self._join.state is JoinState.JOINED

    def handle(self, input: Input, now_us: int) -> list[Effect]:
        """Take `Start`, a message or timer of Pastry, or that a peer is gone; afterwards `take_changes`."""
        self._now_us = now_us
        if type(input) is Received:
            self.heard(input.source, now_us)
            return self._handlers[type(input.message)](input.source, input.message)
        if type(input) is TimerFired:
            return self._on_timer(input)
        if type(input) is LinkDown:
            gone = self._peers.get(input.peer) or self._watched.get(input.peer)
            return [] if gone is None else self._fail(gone)
        if type(input) is Start:
            period_us = self.place.probe_us
            effects: list[Effect] = [SetTimer(_ROUND, period_us - now_us % period_us)]
            first = not self.place.bootstrap or (self.place.founds and not self.me.incarnation)
            return effects + (self._become_joined(JoinStep.FOUND) if first else self._ask_to_join(JoinStep.ASK))
        raise TypeError(f"Pastry takes no {input!r}")

    def know(self, peers: Iterable[PastryPeer]) -> None:
        """Take these into the tables, the first for each cell, as if all had joined long ago: an overlay that need not
        grow node by node."""
        for peer in peers:
            self._take_in(peer)

    def take_changes(self) -> list[OverlayChange]:
        """What has changed since they were last taken, in order."""
        changes, self._changes = self._changes, []
        return changes

    def heard(self, source: NodeName, now_us: int) -> None:
        """Something has come from this node, of whichever layer: it is there."""
        self._heard_us[source] = now_us
        self._silent.pop(source, None)
        self._failed_us.pop(source, None)

    def watch(self, peer: PastryPeer) -> None:
        """Probe this peer too, for the layer above: `PeerFailed` says when it is gone."""
        if peer.name != self.me.name:
            self._watched[peer.name] = peer
            self._heard_us.setdefault(peer.name, self._now_us)

    def unwatch(self, name: NodeName) -> None:
        """The layer above needs it no more."""
        self._watched.pop(name, None)

    def vacant(self) -> list[IdentifierRange]:
        """The cells whose peer has failed, without another yet, and not known to be empty."""
        return list(self._vacant)

    def is_empty(self, cell: IdentifierRange) -> None:
        """The layer above knows that a cell without a peer is empty."""
        self._vacant.pop(cell, None)

    def next_hop(self, key: int, besides: NodeName | None = None) -> PastryPeer | None:
        """The peer to which a message for the identifier goes; None if this node is the closest to it."""
        if self.leaves.spans(key, len(self._peers)):
            return self.leaves.closest(key, besides)
        if key == self.own:
            return None
        stands = self.table.get(self.table.cell_of(key))
        if stands is not None and stands.name != besides:
            return stands
        shared, distance = self.space.shared, self.space.distance
        here = shared(self.own, key)
        best, least = None, (distance(self.own, key), self.own)
        for peer in self._peers.values():
            away = (distance(peer.identifier, key), peer.identifier)
            if away < least and shared(peer.identifier, key) >= here and peer.name != besides:
                best, least = peer, away
        return best

    def towards(self, cell: IdentifierRange) -> PastryPeer | None:
        """The peer to which a message for a range goes of which this node shares all digits but the last: a peer that
        stands for it or is in it, else a peer closer to its middle identifier among those that share as many digits
        (IRBR 5.5). None: as far as this node knows, the range is empty."""
        stands = self.table.get(cell)
        if stands is not None:
            return stands
        middle = self.space.middle(cell)
        around = self.space.range_of(self.own, cell.length - 1)
        best, least = None, abs(self.own - middle)
        for peer in self._peers.values():
            if self.space.contains(cell, peer.identifier):
                return peer
            away = abs(peer.identifier - middle)
            if away < least and self.space.contains(around, peer.identifier):
                best, least = peer, away
        return best

    # ---------------------------------------------------------------------------------------- joining
    def _ask_to_join(self, step: JoinStep) -> list[Effect]:
        peers = self.place.bootstrap
        through = peers[self._attempts % len(peers)]
        self._join.take(step, f"through {through}")
        self._attempts += 1
        return [Send(through, JoinRequest(self.me, ())), SetTimer(_JOIN, self.place.probe_timeout_us)]

    def _on_join_request(self, source: NodeName, request: JoinRequest) -> list[Effect]:
        if not self.joined:
            self._waiting.append(request)
            return []
        joining = PastryPeer(*request.joining)
        effects = self._renew(joining)
        known = {peer[0]: peer for peer in map(tuple, request.known)}
        row = self.table.row(self.space.shared(self.own, joining.identifier) + 1)
        for peer in (self.me, *row.values()):
            known.setdefault(peer.name, peer)
        hop = self.next_hop(joining.identifier, joining.name)
        if hop is not None:
            return [*effects, Send(hop.name, JoinRequest(joining, list(known.values())))]
        for _, peer in self.table.cells():
            known.setdefault(peer.name, peer)
        for peer in self.leaves:
            known.setdefault(peer.name, peer)
        return [*effects, Send(joining.name, JoinReply(list(known.values())))]

    def _on_join_reply(self, source: NodeName, reply: JoinReply) -> list[Effect]:
        if self.joined:
            return []
        self._join.take(JoinStep.REPLY, f"from {source}")
        effects = self._consider(reply.known)
        return [*effects, *self._if_all_answered(), SetTimer(_SETTLE, self.place.probe_timeout_us)]

    def _if_all_answered(self) -> list[Effect]:
        if self._join.state is not JoinState.GATHERING or self._asked or self._seeks or not self._peers:
            return []
        return self._become_joined(JoinStep.ALL_ANSWERED)

    def _become_joined(self, step: JoinStep) -> list[Effect]:
        self._join.take(step)
        self._changes.append(Joined())
        self._changes += [CellFilled(cell, peer, None) for cell, peer in self.table.cells()]
        effects = self._announce()
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            effects += self._on_join_request(self.me.name, request)
        return effects

    def _announce(self) -> list[Effect]:
        """Tell the nodes in whose tables this node's cell was empty, and its leaves."""
        cells = self.table.cells()
        if not cells:
            return []
        longest = cells[-1][0].length
        met = {peer: cell for cell, peer in cells if cell.length == longest}
        for leaf in self.leaves:
            met.setdefault(leaf, self.space.range_of(leaf.identifier, self.space.digits))
        return [Send(peer.name, Arrived(self.me, cell)) for peer, cell in met.items()]

    def _on_arrived(self, source: NodeName, arrived: Arrived) -> list[Effect]:
        peer, destination = PastryPeer(*arrived.peer), IdentifierRange(*arrived.destination)
        if peer.name == self.me.name:
            return []
        effects = self._renew(peer)
        self._failed_us.pop(peer.name, None)
        effects += [
            Send(stands.name, Arrived(peer, cell))
            for cell, stands in self.table.cells(destination.length)
            if stands.name != peer.name
        ]
        # Those that it may not have met are in rows that both share, in its own range, or leaves that make way for it.
        cell = self.table.cell_of(peer.identifier)
        met = {each.name: each for each in (self.me, *self._useful_to(peer))}
        met |= {each.name: each for each in self._peers.values() if self.space.contains(cell, each.identifier)}
        met |= {each.name: each for wide, each in self.table.cells() if wide.length <= cell.length}
        met.pop(peer.name, None)
        self._vacant.pop(cell, None)
        stood = self.table.get(cell)
        effects += self._take_in(peer)
        if stood == peer and self.joined:  # known already, but not as a new node that has to learn everything
            self._changes.append(CellFilled(cell, peer, None))
        return [*effects, Send(peer.name, Introduced(list(met.values())))]

    def _on_seek(self, source: NodeName, seek: Seek) -> list[Effect]:
        seeking = PastryPeer(*seek.seeking)
        hop = self.next_hop(seek.key, seeking.name)
        if hop is not None:
            return [Send(hop.name, seek)]
        return [
            *self._renew(seeking),
            Send(seeking.name, Welcome(self.me, self.joined, True, self._useful_to(seeking))),
        ]

    # --------------------------------------------------------------------------- peers that this node knows
    def _consider(self, known: Iterable[Sequence[Any]]) -> list[Effect]:
        """Ask those that would be of use whether they are there."""
        effects: list[Effect] = []
        wanted = {self.table.cell_of(peer.identifier) for peer in self._asked.values()}
        for each in known:
            peer = PastryPeer(*each)
            name = peer.name
            if name == self.me.name or name in self._asked or self._now_us < self._failed_us.get(name, 0):
                continue
            current = self._peers.get(name)
            if current is not None and current.incarnation >= peer.incarnation:
                continue
            cell = self.table.cell_of(peer.identifier)
            if (self.table.get(cell) is None and cell not in wanted) or self.leaves.wants(peer.identifier):
                wanted.add(cell)
                self._asked[name] = peer
                effects.append(Send(name, Hello(self.me, self.joined)))
        return effects

    def _on_hello(self, source: NodeName, hello: Hello) -> list[Effect]:
        peer = PastryPeer(*hello.peer)
        effects = self._renew(peer)
        useful = self._useful_to(peer)
        if hello.joined and peer.name not in self._peers:
            effects += self._take_in(peer)
        return [*effects, Send(peer.name, Welcome(self.me, self.joined, False, useful))]

    def _on_welcome(self, source: NodeName, welcome: Welcome) -> list[Effect]:
        peer = PastryPeer(*welcome.peer)
        if welcome.sought:
            self._seeks = max(0, self._seeks - 1)
        else:
            self._asked.pop(peer.name, None)
        effects = self._renew(peer)
        if not welcome.joined:  # it will arrive when it has joined
            return effects + self._if_all_answered()
        cell = self.table.cell_of(peer.identifier)
        if not self.joined:
            if welcome.sought:
                self._replace(cell, peer)
            elif self.table.get(cell) is None and cell.length < self.space.digits:
                key = self.space.first(cell) + self._random.randrange(self.space.size // self.space.base**cell.length)
                effects.append(Send(peer.name, Seek(self.me, key)))
                self._seeks += 1
        effects += self._take_in(peer)
        effects += self._consider(welcome.known)
        return effects + self._if_all_answered()

    def _replace(self, cell: IdentifierRange, peer: PastryPeer) -> None:
        """While joining: let the peer that was sought at random stand for the cell."""
        current = self.table.get(cell)
        if current is not None and current.name != peer.name:
            self.table.put(peer)
            self._peers[peer.name] = peer
            if current.name not in self.leaves:
                del self._peers[current.name]

    def _take_in(self, peer: PastryPeer) -> list[Effect]:
        """The peer is there: let it stand for its cell if no other does, and be a leaf if it is close enough."""
        self._heard_us[peer.name] = self._now_us
        cell = self.table.cell_of(peer.identifier)
        if self.table.get(cell) is None:
            longest = max((each.length for each, _ in self.table.cells()), default=0)
            self.table.put(peer)
            self._peers[peer.name] = peer
            failed_us, failed_since_us = self._vacant.pop(cell, (0, None))
            if self._now_us - failed_us > self.place.probe_us:
                failed_since_us = None
            if self.joined:
                self._changes.append(CellFilled(cell, peer, failed_since_us))
                if cell.length > longest:
                    # Nearer than all known: those between have not heard of this node, nor it of them.
                    self._take_leaf(peer)
                    return [*self._announce(), Send(peer.name, Hello(self.me, True))]
        self._take_leaf(peer)
        return []

    def _take_leaf(self, peer: PastryPeer) -> None:
        before = list(self.leaves)
        if self.leaves.add(peer):
            self._peers[peer.name] = peer
            for former in before:
                if former.name not in self.leaves and self.table.get(self.table.cell_of(former.identifier)) != former:
                    del self._peers[former.name]
            self._changes.append(LeavesChanged())

    def _renew(self, peer: PastryPeer) -> list[Effect]:
        """A peer known under an older incarnation has failed in between, and is new now."""
        known = self._peers.get(peer.name) or self._watched.get(peer.name)
        if known is None or known.incarnation >= peer.incarnation:
            return []
        return self._fail(known, quarantine=False)

    def _useful_to(self, peer: PastryPeer) -> list[PastryPeer]:
        """What a peer may like to know: the row in which it belongs, and the leaves if it is near."""
        row = self.table.row(self.space.shared(self.own, peer.identifier) + 1)
        known = {each.name: each for each in row.values()}
        if peer.name in self.leaves or self.leaves.wants(peer.identifier):
            known |= {each.name: each for each in self.leaves}
        known.pop(peer.name, None)
        return list(known.values())

    # ------------------------------------------------------------------------------ failures and repair
    def _on_timer(self, fired: TimerFired) -> list[Effect]:
        if fired.key == _ROUND:
            return self._begin_round()
        if fired.key == _DEADLINE:
            return self._end_round() if self._pings == _PINGS else self._ask_the_silent()
        if fired.key == _SETTLE and self._join.state is JoinState.GATHERING:  # some of those asked are not there
            self._asked.clear()
            self._seeks = 0
            return self._become_joined(JoinStep.SETTLE) if self._peers else self._ask_to_join(JoinStep.START_OVER)
        if fired.key == _JOIN and self._join.state is JoinState.ASKING:
            return self._ask_to_join(JoinStep.ASK_AGAIN)
        return []

    def _begin_round(self) -> list[Effect]:
        period_us = self.place.probe_us
        effects: list[Effect] = [SetTimer(_ROUND, period_us - self._now_us % period_us)]
        if not self.joined:
            return effects
        self._asked.clear()
        self._silent = {**self._watched, **self._peers}
        self._pings = 0
        return effects + self._ask_the_silent()

    def _ask_the_silent(self) -> list[Effect]:
        self._pings += 1
        effects: list[Effect] = []
        for peer in self._silent.values():
            cell = self.table.cell_of(peer.identifier)
            stands = self.table.get(cell)
            length = cell.length if stands is not None and stands.name == peer.name else 0
            effects.append(Send(peer.name, Ping(self.me, length)))
        share_us = self.place.probe_timeout_us // _PINGS
        left_us = self.place.probe_timeout_us - (_PINGS - 1) * share_us
        return [*effects, SetTimer(_DEADLINE, left_us if self._pings == _PINGS else share_us)]

    def _end_round(self) -> list[Effect]:
        silent, self._silent = self._silent, {}
        effects = [effect for peer in silent.values() for effect in self._fail(peer)]
        self._changes.append(RoundEnded())
        return effects

    def _fail(self, peer: PastryPeer, quarantine: bool = True) -> list[Effect]:
        self._watched.pop(peer.name, None)
        self._peers.pop(peer.name, None)
        self._asked.pop(peer.name, None)
        if quarantine:
            self._failed_us[peer.name] = self._now_us + _QUARANTINE_ROUNDS * self.place.probe_us
        cell = self.table.remove(peer)
        was_leaf = self.leaves.remove(peer.name)
        self._changes.append(PeerFailed(peer, cell))
        effects: list[Effect] = []
        if was_leaf:
            for other in self._peers.values():
                self.leaves.add(other)
            self._changes.append(LeavesChanged())
            effects += [Send(end.name, Hello(self.me, self.joined)) for end in self.leaves.ends]
        if cell is not None:
            if quarantine:
                self._vacant[cell] = self._now_us, self._heard_us.get(peer.name, self._now_us)
            effects += self._repair(cell)
        self._heard_us.pop(peer.name, None)
        return effects

    def _repair(self, cell: IdentifierRange) -> list[Effect]:
        for leaf in self.leaves:
            if self.space.contains(cell, leaf.identifier):
                return self._take_in(leaf)
        asked = [peer for _, peer in self.table.cells(cell.length - 1)][:_ASKED_FOR_REPAIR]
        return [Send(peer.name, RepairRequest(cell)) for peer in asked]

    def _on_repair_request(self, source: NodeName, request: RepairRequest) -> list[Effect]:
        cell = IdentifierRange(*request.destination)
        found = [peer for peer in self._peers.values() if self.space.contains(cell, peer.identifier)]
        if self.space.contains(cell, self.own):
            found.append(self.me)
        return [Send(source, Introduced(found[:_ASKED_FOR_REPAIR]))] if found else []

    def _on_ping(self, source: NodeName, ping: Ping) -> list[Effect]:
        peer = PastryPeer(*ping.peer)
        effects: list[Effect] = self._renew(peer)
        if self.joined and peer.name not in self._peers:
            effects += self._take_in(peer)
        note = self._note(ping.length) if self.joined and ping.length else 0
        return [*effects, Send(source, Pong(self.me, ping.length, note, self._useful_to(peer)))]

    def _on_pong(self, source: NodeName, pong: Pong) -> list[Effect]:
        peer = PastryPeer(*pong.peer)
        effects = self._renew(peer)
        if pong.length and self.joined:
            self._changes.append(Answered(peer, pong.length, pong.note))
        return effects + self._consider(pong.known)

    def check_invariants(self) -> None:
        """Raise AssertionError if the tables contradict themselves."""
        standing = {peer.name: peer for _, peer in self.table.cells()}
        assert self._peers == {**standing, **{leaf.name: leaf for leaf in self.leaves}}
        assert self.me.name not in self._peers
        for cell, peer in self.table.cells():
            assert self.space.contains(cell, peer.identifier)
            assert not self.space.contains(cell, self.own)
