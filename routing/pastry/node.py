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

Two nodes that meet tell each other what both should know: the rows that they share, and leaves. A node that finds a
peer for an empty cell passes it on to those that have the same cell.

Only a peer that has itself answered is taken into the tables: hearsay is asked first (`Hello`). Rounds of probes begin
at the multiples of `probe_us`, at all nodes at once, so that between them nothing moves; a peer that is silent for
`probe_timeout_us`, in which it is asked three times, has failed. Its cell is then asked for among the peers of the
same row (and the next ones), the leaf set among the farthest leaves; every answer to a probe carries a row and leaves,
so that what is still missing is learned in the rounds that follow. A row that has become empty is told by none of its
peers, so in each round a node asks one peer for another row, all rows in turn. A leaf that does not take the asking
node for one tells of the nodes between the two. And since many failures at once may leave parts that know nothing of
each other, a node that has lost a leaf has bootstrap peers, and some it knew before, look for its identifier. A peer
back with a higher incarnation is a failed one and a new one; what is said of a failed one is not believed for a while.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from murmur_pubsub.fingerprint import Fact, state_of
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
    Stored,
    TimerFired,
)  # fmt: skip
from murmur_pubsub.places import RingPlace
from murmur_pubsub.procedure import Procedure
from routing.founding import Founding, Outside
from routing.pastry.changes import (
    Answered,
    CellFilled,
    Joined,
    LeavesChanged,
    OverlayChange,
    PeerFailed,
    PeerReturned,
    RoundEnded,
)  # fmt: skip
from routing.pastry.identifiers import IdentifierRange, IdentifierSpace
from routing.pastry.joining import JOIN_TRANSITIONS, JoinState, JoinStep
from routing.pastry.known_peers import KnownPeers
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
from routing.pastry.quarantine import Quarantine
from routing.remembered_peers import RememberedPeers

_ROUND, _DEADLINE, _JOIN, _SETTLE = (("routing", "pastry", name) for name in ("round", "deadline", "join", "settle"))
_ASKED_FOR_REPAIR = 3
_LOOK_EVERY = 8
"""In rounds: how often a node looks for itself by way of others."""
_PINGS = 3
"""Of a round to a silent peer: messages may get lost."""


class Pastry:
    """One node. `note(asking, length)`: what the layer above answers to that node's probe of this node's range."""

    message_types: tuple[type, ...] = PASTRY_MESSAGES

    def __init__(self, context: NodeContext, note: Callable[[NodeName, int], int] = lambda asking, length: 0) -> None:
        assert isinstance(context.place, RingPlace)
        self.place = context.place
        self.space = IdentifierSpace(self.place.base, self.place.digits)
        self.own = self.place.identifier
        self.space.check(self.own, "overlay.identifiers")
        self.me = PastryPeer(context.name, self.own, context.incarnation)
        self.peers = KnownPeers(self.space, self.own, self.place.leaf_set)
        self.table, self.leaves = self.peers.table, self.peers.leaves
        self.next_hop, self.towards = self.peers.next_hop, self.peers.towards
        self._note = note
        self._random = context.random("pastry")
        self._seeks = self._pings = self._rounds = self._looks = 0
        self._rows_asked: dict[NodeName, int] = {}
        self._join = Procedure("joining", context.name, JOIN_TRANSITIONS, JoinState.OUTSIDE)
        self._watched: dict[NodeName, PastryPeer] = {}
        self._heard_us: dict[NodeName, int] = {}
        self.round_began_us = 0  # when this node last sent its probes
        self._asked: dict[NodeName, PastryPeer] = {}
        self._silent: dict[NodeName, PastryPeer] = {}
        self._quarantine = Quarantine(self.place.probe_us)
        self._vacant: dict[IdentifierRange, tuple[int, int | None]] = {}
        self._founding = Founding(context.name, self.place.bootstrap, context.incarnation > 0)
        self._remembered = RememberedPeers(context.name)
        self._waiting: dict[NodeName, JoinRequest] = {}
        """The requests of other nodes, until this one has joined."""
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
            Outside: self._on_outside,
        }

    # ------------------------------------------------------------------------------ for the layer above
    @property
    def joined(self) -> bool:
        """Is this node part of the overlay?"""
        return self._join.state is JoinState.JOINED

    def handle(self, input: Input, now_us: int) -> list[Effect]:
        """Take `Start`, `Stored`, a message or timer of Pastry, or that a peer is gone; afterwards `take_changes`."""
        self._now_us = now_us
        if type(input) is Received:
            self.heard(input.source, now_us)
            return self._handlers[type(input.message)](input.source, input.message)
        if type(input) is TimerFired:
            return self._on_timer(input)
        if type(input) is LinkDown:
            gone = self.peers.get(input.peer) or self._watched.get(input.peer)
            return [] if gone is None else self._fail(gone)
        if type(input) is Stored:
            return self._remembered.stored(input.token)
        if type(input) is Start:
            self._founding.remembered = self._remembered.restore(input.records)
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
        self._quarantine.heard(source)

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

    # ---------------------------------------------------------------------------------------- joining
    def _ask_to_join(self, step: JoinStep) -> list[Effect]:
        through = self._founding.to_ask()
        self._join.take(step, f"through {' and '.join(through)}")
        return [
            *(Send(peer, JoinRequest(self.me, ())) for peer in through),
            SetTimer(_JOIN, self.place.probe_timeout_us),
        ]

    def _on_join_request(self, source: NodeName, request: JoinRequest) -> list[Effect]:
        joining = PastryPeer(*request.joining)
        if not self.joined:
            self._waiting[joining.name] = request
            told = self._founding.asked_by(joining.name)
            return [Send(joining.name, told)] if joining.incarnation or self.me.incarnation else []
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

    def _on_outside(self, source: NodeName, said: Outside) -> list[Effect]:
        told = self._founding.heard(source, said)
        return [] if self.joined or told is None else [Send(source, told)]

    def _on_join_reply(self, source: NodeName, reply: JoinReply) -> list[Effect]:
        if self.joined:
            return []
        self._founding.answered()
        self._join.take(JoinStep.REPLY, f"from {source}")
        effects = self._consider(reply.known)
        return [*effects, *self._if_all_answered(), SetTimer(_SETTLE, self.place.probe_timeout_us)]

    def _if_all_answered(self) -> list[Effect]:
        if self._join.state is not JoinState.GATHERING or self._asked or self._seeks or not self.peers:
            return []
        return self._become_joined(JoinStep.ALL_ANSWERED)

    def _become_joined(self, step: JoinStep) -> list[Effect]:
        self._join.take(step)
        self._changes.append(Joined())
        self._changes += [CellFilled(cell, peer, None) for cell, peer in self.table.cells()]
        effects = self._announce()
        waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            effects += self._on_join_request(self.me.name, request)
        return effects

    def _announce(self) -> list[Effect]:
        """Tell the nodes in whose tables this node's cell was empty, and its leaves."""
        return [Send(peer.name, Arrived(self.me, cell)) for peer, cell in self.peers.in_the_longest_row().items()]

    def _on_arrived(self, source: NodeName, arrived: Arrived) -> list[Effect]:
        peer, destination = PastryPeer(*arrived.peer), IdentifierRange(*arrived.destination)
        if peer.name == self.me.name or not self._quarantine.believes(peer, self._now_us):
            return []
        effects = self._renew(peer)
        cell = self.table.cell_of(peer.identifier)
        stood = self.table.get(cell)
        # Where this node's cell was empty, so may be those of all that have the same cell.
        told = destination.length if stood is not None else cell.length
        effects += [
            Send(stands.name, Arrived(peer, part))
            for part, stands in self.table.cells(told)
            if stands.name != peer.name
        ]
        # Those that it may not have met are in rows that both share, in its own range, or leaves that make way for it.
        near = (self.me, *self.peers.in_common_with(peer), *self.peers.within(cell))
        met = {each.name: each for each in near if each.name != peer.name}
        self._vacant.pop(cell, None)
        effects += self._take_in(peer, pass_on=False)
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
            Send(seeking.name, Welcome(self.me, self.joined, True, self.peers.useful_to(seeking))),
        ]

    # --------------------------------------------------------------------------- peers that this node knows
    def _consider(self, known: Iterable[Sequence[Any]]) -> list[Effect]:
        """Ask those that would be of use whether they are there."""
        effects: list[Effect] = []
        wanted = {self.table.cell_of(peer.identifier) for peer in self._asked.values()}
        for name, identifier, incarnation in known:
            self._remembered.heard_of(name)
            current = self.peers.get(name)  # first, since nearly all are known
            if (current is not None and current.incarnation >= incarnation) or name == self.me.name:
                continue
            peer = PastryPeer(name, identifier, incarnation)
            if name in self._asked or not self._quarantine.believes(peer, self._now_us):
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
        useful = self.peers.in_common_with(peer) if hello.joined else self.peers.useful_to(peer)
        if hello.joined and peer.name not in self.peers:
            effects += self._take_in(peer)
        return [*effects, Send(peer.name, Welcome(self.me, self.joined, False, useful))]

    def _on_welcome(self, source: NodeName, welcome: Welcome) -> list[Effect]:
        peer = PastryPeer(*welcome.peer)
        # Who was found by a search, or asked before this node had joined, has not taken it in.
        knows_this = not welcome.sought and self._asked.pop(peer.name, None) is not None
        if welcome.sought:
            self._seeks = max(0, self._seeks - 1)
        effects = self._renew(peer)
        if not welcome.joined:  # it will arrive when it has joined
            return effects + self._if_all_answered()
        cell = self.table.cell_of(peer.identifier)
        if not self.joined:
            if welcome.sought:
                self.peers.replace(peer)
            elif self.table.get(cell) is None and cell.length < self.space.digits:
                key = self.space.first(cell) + self._random.randrange(self.space.size // self.space.base**cell.length)
                effects.append(Send(peer.name, Seek(self.me, key)))
                self._seeks += 1
        effects += self._meet(peer, knows_this, welcome.known) if self.joined else self._take_in(peer)
        effects += self._consider(welcome.known)
        return effects + self._if_all_answered()

    def _meet(self, peer: PastryPeer, knows_this: bool, told: Sequence[Sequence[Any]]) -> list[Effect]:
        """Take in the peer, which has told what it knows of what both should know; tell it the rest, and that this node
        is there if it may not know."""
        if peer.name in self.peers:
            return []
        effects = self._take_in(peer)
        if peer.name in self.peers and not knows_this:
            effects.append(Send(peer.name, Hello(self.me, True)))
        names = {name for name, *_ in told}
        rest = [each for each in self.peers.in_common_with(peer) if each.name not in names]
        if peer.name in self.peers and rest:
            effects.append(Send(peer.name, Introduced(rest)))
        return effects

    def _take_in(self, peer: PastryPeer, pass_on: bool = True) -> list[Effect]:
        """The peer is there: take it into the tables, if it has a place in them. `pass_on`: if a cell was empty, tell
        those that have the same cell."""
        self._heard_us[peer.name] = self._now_us
        longest = max((each.length for each, _ in self.table.cells()), default=0)
        cell, is_leaf = self.peers.take_in(peer)
        effects: list[Effect] = []
        if cell is not None:
            failed_us, failed_since_us = self._vacant.pop(cell, (0, None))
            if self._now_us - failed_us > self.place.probe_us:
                failed_since_us = None
            if self.joined:
                self._changes.append(CellFilled(cell, peer, failed_since_us))
                if pass_on:
                    beside = [stands for _, stands in self.table.cells(cell.length - 1) if stands.name != peer.name]
                    effects = [Send(each.name, Introduced([peer])) for each in beside]
                if cell.length > longest:  # nearer than all known: those between have not heard of this node
                    effects += [*self._announce(), Send(peer.name, Hello(self.me, True))]
        if is_leaf:
            self._changes.append(LeavesChanged())
        return effects

    def _renew(self, peer: PastryPeer) -> list[Effect]:
        """A peer known under an older incarnation has failed in between, and is new now."""
        if self._quarantine.has_returned(peer):
            self._changes.append(PeerReturned(peer))
        known = self.peers.get(peer.name) or self._watched.get(peer.name)
        if known is None or known.incarnation >= peer.incarnation:
            return []
        return self._fail(known, quarantine=False)

    # ------------------------------------------------------------------------------ failures and repair
    def _on_timer(self, fired: TimerFired) -> list[Effect]:
        if fired.key == _ROUND:
            return self._begin_round()
        if fired.key == _DEADLINE:
            return self._end_round() if self._pings == _PINGS else self._ask_the_silent()
        if fired.key == _SETTLE and self._join.state is JoinState.GATHERING:  # some of those asked are not there
            self._asked.clear()
            self._seeks = 0
            return self._become_joined(JoinStep.SETTLE) if self.peers else self._ask_to_join(JoinStep.START_OVER)
        if fired.key == _JOIN and self._join.state is JoinState.ASKING:
            anew = self._founding.turn()
            return self._become_joined(JoinStep.FOUND_ANEW) if anew else self._ask_to_join(JoinStep.ASK_AGAIN)
        return []

    def _begin_round(self) -> list[Effect]:
        period_us = self.place.probe_us
        effects: list[Effect] = [SetTimer(_ROUND, period_us - self._now_us % period_us)]
        if not self.joined:
            return effects
        self._asked.clear()
        self._silent = {**self._watched, **{peer.name: peer for peer in self.peers}}
        self._pings, self.round_began_us = 0, self._now_us
        self._rounds += 1
        self._rows_asked = self.peers.row_to_ask_for(self._rounds)
        return [*effects, *self._look_for_itself(), *self._ask_the_silent()]

    def _look_for_itself(self) -> list[Effect]:
        """Have others seek this identifier in some rounds after a leaf has failed, and now and then: if the overlay has
        come apart, the node that is found may be in another part."""
        if not (self._looks or self._rounds % _LOOK_EVERY == 0):
            return []
        self._looks = max(0, self._looks - 1)
        through = self._remembered.to_look_through(self.place.bootstrap, self.peers.names)
        return [Send(peer, Seek(self.me, self.own)) for peer in through]

    def _ask_the_silent(self) -> list[Effect]:
        self._pings += 1
        effects: list[Effect] = []
        for peer in self._silent.values():
            cell = self.peers.stands_for(peer)
            length, row = 0 if cell is None else cell.length, self._rows_asked.get(peer.name, 0)
            effects.append(Send(peer.name, Ping(self.me, length, row, peer.name in self.leaves)))
        share_us = self.place.probe_timeout_us // _PINGS
        left_us = self.place.probe_timeout_us - (_PINGS - 1) * share_us
        return [*effects, SetTimer(_DEADLINE, left_us if self._pings == _PINGS else share_us)]

    def _end_round(self) -> list[Effect]:
        silent, self._silent = self._silent, {}
        effects = [effect for peer in silent.values() for effect in self._fail(peer)]
        self._changes.append(RoundEnded())
        return effects + self._remembered.keep(self.peers.names)

    def _fail(self, peer: PastryPeer, quarantine: bool = True) -> list[Effect]:
        self._watched.pop(peer.name, None)
        self._asked.pop(peer.name, None)
        if quarantine:
            self._quarantine.begin(peer, self._now_us)
        cell, was_leaf = self.peers.remove(peer)
        self._changes.append(PeerFailed(peer, cell))
        effects: list[Effect] = []
        if was_leaf:
            self._changes.append(LeavesChanged())
            self._looks = len(self.place.bootstrap)
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
        found = self.peers.within(cell)
        if self.space.contains(cell, self.own):
            found.append(self.me)
        return [Send(source, Introduced(found[:_ASKED_FOR_REPAIR]))] if found else []

    def _on_ping(self, source: NodeName, ping: Ping) -> list[Effect]:
        peer = PastryPeer(*ping.peer)
        effects: list[Effect] = self._renew(peer)
        if self.joined and peer.name not in self.peers:
            effects += self._take_in(peer)
        known = self.peers.useful_to(peer, ping.row, ping.leaf)
        return [*effects, Send(source, Pong(self.me, ping.length, self._note(source, ping.length), known))]

    def _on_pong(self, source: NodeName, pong: Pong) -> list[Effect]:
        peer = PastryPeer(*pong.peer)
        effects = self._renew(peer)
        if self.joined:
            self._changes.append(Answered(peer, pong.length, pong.note))
        return effects + self._consider(pong.known)

    def state(self) -> Fact:
        """For a fingerprint."""
        return state_of(
            f"Pastry {self._join.state.name.lower()}",
            alone=not self.peers,
            leaves_missing=not self.leaves.full,
            some_silent=self._silent and self._pings > 1,
            asking=self._asked,
            seeking=self._seeks,
            vacant_cells=self._vacant,
            leaf_lost=self._looks,
            others_wait=self._waiting,
        )

    def check_invariants(self) -> None:
        """Raise AssertionError if the tables contradict themselves."""
        self.peers.check_invariants()
        assert self.me.name not in self.peers
