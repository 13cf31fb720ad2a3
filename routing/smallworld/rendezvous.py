"""Rendezvous routing over the gossip overlay: delivering events (Vinifera IV-B4).

Theory of operation. `routing.smallworld.installation` leaves an entry for each subscription at every node on its path
to its rendezvous nodes. An event goes to one rendezvous node for each of its targets, and from there to the neighbours
that want it, each of which does the same. Its header says (attribute, hashed value, phase).

A router that `spreads` does not wait for the rendezvous node. Wherever an event first arrives, on whatever path, the
node passes it on at once to all neighbours that have asked for it there. The way up to a rendezvous node and the ways
that lead down from it are one tree (`routing.smallworld.ring`), so that nobody gets the event twice for that.

A protocol may name neighbours besides (`interested_neighbours`): friends whose profiles say that they want the event.
A node leaves out friends that are neighbours of the sender too, since the sender has told them. So the event is soon
everywhere in a cluster of nodes with similar subscriptions, and the trees reach the nodes that no friend tells. A node
that gets the event once more does not pass it on. A node's own subscribers get it the first time.

When a node has left a part of the ring, the one above it stands for its range, and does not know yet what is wanted
there. For some rounds it passes the events of that range to the former owner too, which has the entries still.

A node that has moved does not stand for its new range at once, and others send it events of that range already. They go
back to the former owner, over the ring as it was before those moved that are known to have moved lately. The mover may
take a third for that owner, since it has not heard of others that moved there before. So each node on the way back goes
by what it knows itself, and whoever it is that takes itself for the owner hands the event down.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Received,
    SetTimer,
    Start,
    Stored,
    TimerFired,
)
from routing.recently_seen import RecentlySeen
from routing.router import Hop, Router
from routing.smallworld.changes import (
    GossipChange,
    GossipPeerFailed,
    GossipPeerMoved,
    IdentifierGivenUp,
    RingChanged,
)
from routing.smallworld.content_table import ContentTable
from routing.smallworld.installation import Installation
from routing.smallworld.messages import OVERLAY_MESSAGES, Beat, BeatAnswer, GossipPeer, Install
from routing.smallworld.overlay import GossipOverlay
from routing.smallworld.parameters import SmallWorldParameters
from routing.smallworld.ring import clockwise
from routing.smallworld.subscription_regions import SubscriptionRegions
from routing.smallworld.uplinks import Uplinks

UP, DOWN, BACK = range(3)
"""Phases: to the rendezvous node, from it; and to the one that was it before others moved there."""
_FLUSH = ("routing", "flush")
_FLUSH_US_MAX = 100_000
_GRACE_ROUNDS = 3
"""For so long a former owner is told events, too. By then all that is wanted in its range has been installed anew. That
takes a flush and a hop after it has left, and a round more for each time that it is lost."""
_STABLE_ROUNDS = 3
_UNSETTLED_ROUNDS_MAX = 60
_ON_THE_WAY_ROUNDS_MAX = 10
"""After so many rounds what a node has asked for is at its rendezvous nodes: each hop takes a flush, and a round more
for each time that it is lost. What neighbours come to want later are ways that change as better contacts are found.
That goes on for long in a large overlay, and loses nothing: the former way holds until the new one does."""
Target = tuple[int, int]
"""(attribute, hashed value)."""


def no_utility(profile: bytes) -> float:
    """For a protocol that has no friend links."""
    return 0.0


class RendezvousRouter(Router):
    """See `routing.router.Router`. A protocol says what its node wants (`own_regions`), where events go (`targets`),
    how it compares profiles (`utility`, of a friend link to a node with that profile), and which neighbours want an
    event by their profiles (`interested_neighbours`). `prunes`: events are matched against filters on their way down;
    `spreads`: see above; `alike`: see `GossipOverlay`."""

    persists = True
    prunes = True
    spreads = False
    alike = False
    message_types: tuple[type, ...] = (*OVERLAY_MESSAGES, Install)

    def __init__(
        self, context: NodeContext, parameters: SmallWorldParameters, utility: Callable[[bytes], float] = no_utility
    ) -> None:
        uplinks = Uplinks()
        self.table = ContentTable()
        self.overlay = GossipOverlay(context, parameters, utility, uplinks, self.table.version, self.alike)
        self.installation = Installation(self.overlay, self.table, uplinks, self.own_regions)
        self.filters: dict[Filter, None] = {}
        self._resets = parameters.resets
        self._flush_us = min(_FLUSH_US_MAX, max(1, parameters.cycle_us // 1_000))
        self._flushing = False
        """Is the timer set after which something is installed?"""
        self._changed_in = 0
        """The round in which the ring last changed."""
        self._grown_in = 0
        """The round in which a neighbour last came to want something. To take back what is wanted no more goes on for
        many rounds, a round for each hop, and keeps no event from anybody."""
        self._asked_in = 0
        """The round in which an own subscriber last asked for something."""
        self._rounds_began_us: deque[int] = deque(maxlen=_ON_THE_WAY_ROUNDS_MAX)
        """When this round and those before it began."""
        self._left: dict[NodeName, tuple[int, int]] = {}
        """Contacts that have moved: the identifier that each had before, and the round in which that was heard."""
        self._seen = RecentlySeen()

    # ------------------------------------------------------------------------- what a protocol says of itself
    def own_regions(self) -> SubscriptionRegions:
        """What the node's own filters want."""
        raise NotImplementedError

    def targets(self, event: Event) -> list[Target]:
        """The event goes to the rendezvous node of each of these."""
        raise NotImplementedError

    def interested_neighbours(self, event: Event) -> list[NodeName]:
        """The neighbours that want the event, as their profiles have it."""
        return []

    def on_round(self) -> list[Effect]:
        """A round has begun."""
        return []

    def on_rendezvous(self, event: Event, target: Target) -> None:
        """An event has come to this node as the target's rendezvous node."""

    def on_neighbour_moved(self, name: NodeName) -> None:
        """A contact has taken another identifier."""

    def on_moved_away(self) -> None:
        """This node had to take another identifier."""

    def filters_changed(self) -> None:
        """What the node's own subscribers want has changed."""

    # ---------------------------------------------------------------------------------------------- the face
    @property
    def settling(self) -> bool:
        """The ring or what is wanted has changed of late."""
        overlay = self.overlay
        if not overlay.joined:
            return True
        this_round = overlay.round
        asked_ago = this_round - self._asked_in
        if asked_ago > _UNSETTLED_ROUNDS_MAX:
            return False
        if this_round - max(self._asked_in, self._changed_in) < _STABLE_ROUNDS:
            return True
        on_the_way = self._flushing or this_round - self._grown_in < _STABLE_ROUNDS
        return on_the_way and asked_ago <= _ON_THE_WAY_ROUNDS_MAX

    @property
    def settled_until_us(self) -> int:
        """What was asked that many whole rounds ago: a few if the ring has been still meanwhile."""
        is_still = self.overlay.round - self._changed_in >= _STABLE_ROUNDS
        rounds = _STABLE_ROUNDS if is_still else _ON_THE_WAY_ROUNDS_MAX
        is_known = self.overlay.joined and len(self._rounds_began_us) >= rounds
        return self._rounds_began_us[-rounds] - 1 if is_known else -1

    @property
    def hears_resets(self) -> bool:
        """See `murmur_pubsub.machine.Machine`."""
        return self._resets

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `routing.router.Router`."""
        if type(input) is Received:
            effects = self._receive(input.source, input.message)
        elif type(input) is TimerFired:
            effects = self._on_timer(input, now_us)
        elif type(input) is Start:
            effects = self.overlay.start(input.records)
        elif type(input) is LinkDown:
            effects = self.overlay.fail(input.peer)
        elif type(input) is Stored:
            return self.overlay.stored(input.token)
        elif type(input) is LinkUp:
            return ()
        else:
            raise TypeError(f"a rendezvous router takes no {input!r}")
        return self._after(effects)

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        """See `routing.router.Router`."""
        self.filters[wanted] = None
        self.filters_changed()
        return self._asked()

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        """See `routing.router.Router`."""
        del self.filters[wanted]
        self.filters_changed()
        return self._asked()

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """See `routing.router.Router`."""
        if header:
            if len(header) != 3:
                raise WireError(f"a header of attribute, value and phase was expected, not {header!r:.60}")
            attribute, value, phase = header
            towards = [((attribute, value), phase)]
        else:
            towards = [(target, UP) for target in self.targets(event)]
        hops: list[Hop] = []
        for target, phase in towards:
            hops += self._onward(event, came_from, target, phase)
        if self.spreads and not self._seen.again((event.source, event.sequence, DOWN)):
            hops += self._spread(event, came_from, hops)
        return hops

    def know(self, peers: Iterable[GossipPeer]) -> Sequence[Effect]:
        """Begin as part of an overlay with these peers in it."""
        return self._after(self.overlay.know(peers))

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        """Has the event been handed to the subscribers here before?"""
        return self._seen.again((event.source, event.sequence))

    def fingerprint(self) -> Set[Fact]:
        """See `murmur_pubsub.machine.Machine`."""
        due = self.installation.due
        return {
            self.overlay.state(),
            state_of("installations", wants=self.filters, held=len(self.table), due=due, unsettled=self.settling),
        }

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        self.overlay.check_invariants()
        self.installation.check_invariants()

    # ------------------------------------------------------------------------------- what brings it about
    def _asked(self) -> list[Effect]:
        self._asked_in = self.overlay.round
        self.installation.own_changed()
        return self._after([])

    def _receive(self, source: NodeName, message: Any) -> list[Effect]:
        if type(message) is Install:
            if self.installation.on_install(source, message):
                self._grown_in = self.overlay.round
            return []
        effects = self.overlay.receive(source, message)
        if type(message) is Beat or type(message) is BeatAnswer:
            effects += self.installation.on_versions(source, message)
        return effects

    def _on_timer(self, fired: TimerFired, now_us: int) -> list[Effect]:
        if fired.key == _FLUSH:
            self._flushing = False
            return self.installation.install_soon()
        before = self.overlay.round
        effects = self.overlay.on_timer(fired)
        if self.overlay.round > before:
            self._rounds_began_us.append(now_us)
            if before % 2:
                self._seen.forget()
            oldest = self.overlay.round - _GRACE_ROUNDS
            self._left = {name: left for name, left in self._left.items() if left[1] >= oldest}
            self.installation.expire()
            effects += self.on_round()
            # Installations go first, so that the answers to this round's heartbeats have their versions.
            effects = [*self.installation.install_in_round(), *effects]
        return effects

    def _after(self, effects: list[Effect]) -> list[Effect]:
        """Whatever has happened, see that what is wanted is installed a little later, once for many changes."""
        for change in self.overlay.take_changes():
            self._on_change(change)
        if self.installation.due and not self._flushing:
            self._flushing = True
            effects = [*effects, SetTimer(_FLUSH, self._flush_us)]
        return effects

    def _on_change(self, change: GossipChange) -> None:
        if type(change) is GossipPeerFailed:
            self._left.pop(change.peer, None)
            self.installation.peer_failed(change.peer)
            return
        if type(change) is IdentifierGivenUp:
            self.on_moved_away()
        if type(change) is RingChanged or type(change) is IdentifierGivenUp:
            self._changed_in = self.overlay.round
        elif type(change) is GossipPeerMoved:
            self._left[change.peer] = change.former, self.overlay.round
            self.on_neighbour_moved(change.peer)
        self.installation.ring_changed()

    # ----------------------------------------------------------------------------------------- delivery
    def _onward(self, event: Event, came_from: NodeName | None, target: Target, phase: int) -> list[Hop]:
        """Towards the target's rendezvous node; from there, unless it has been spread before, down."""
        if phase == DOWN:
            return self._down(event, target, came_from)
        overlay, value = self.overlay, target[1]
        key = (event.source, event.sequence, target[0])
        hop = overlay.ring.next_hop(value)
        # Who sends it back here may take this node for one that has not moved, and be the one that was meant.
        back = [came_from] if came_from is not None and phase == BACK else []
        # An event that comes up again has gone round: each of some that have just moved takes another for the owner.
        is_first = phase == UP and not self._seen.again((*key, UP))
        if is_first and hop is not None and hop != came_from:
            return [Hop(hop, (*target, UP))]
        if not is_first or hop is not None:
            # Whoever is closest has just moved there, and does not know yet what is wanted there.
            if self._seen.again((*key, BACK)):
                return self._down(event, target, None, back)
            moved = self._moved_lately()
            former = overlay.ring_before(moved).next_hop(value)
            if former == came_from and is_first != overlay.moves:
                # It has passed the event to this node as the former owner, or takes it for one that has not moved.
                former = overlay.ring_before(moved, besides=came_from).next_hop(value)
            if former is not None and (is_first or former != came_from):
                down = self._down(event, target, None, back) if back and overlay.moves else []
                return [Hop(former, (*target, BACK)), *(each for each in down if each.peer != former)]
        self.on_rendezvous(event, target)
        left = [name for name in self._former_owners(value) if name not in (hop, came_from)]
        down = self._down(event, target, None, back)
        return [*(Hop(name, (*target, BACK)) for name in left), *(each for each in down if each.peer not in left)]

    def _down(
        self, event: Event, target: Target, came_from: NodeName | None, besides: Sequence[NodeName] = ()
    ) -> list[Hop]:
        """To those that have asked here, but for the one that it has come down from; and to these."""
        if self.spreads or self._seen.again((event.source, event.sequence, target[0], DOWN)):
            return []  # whoever has sent it here has handed it over already
        attributes = event.attributes if self.prunes else None
        names = dict.fromkeys((*besides, *self.table.destinations(*target, attributes)))
        return [Hop(name, (*target, DOWN)) for name in names if name != came_from]

    def _moved_lately(self) -> dict[NodeName, int]:
        """The contacts that have moved in this round or the last, and the identifier that each had before."""
        return {name: former for name, (former, heard) in self._left.items() if heard >= self.overlay.round - 1}

    def _former_owners(self, value: int) -> list[NodeName]:
        """The contacts that were closer above the value until lately than this node is, its owner."""
        own = clockwise(value, self.overlay.me.identifier)
        return [name for name, (former, _) in self._left.items() if clockwise(value, former) <= own]

    def _spread(self, event: Event, came_from: NodeName | None, upward: Sequence[Hop]) -> list[Hop]:
        """To all neighbours that have asked for the event here, and to the friends that want it."""
        told = {came_from, *(hop.peer for hop in upward)}
        hops: dict[NodeName, Hop] = {}
        targets = self.targets(event)
        for target in targets:
            for name in self.table.destinations(*target, event.attributes):
                if name not in told:
                    hops.setdefault(name, Hop(name, (*target, DOWN)))
        friends = [name for name in self.interested_neighbours(event) if name not in told and name not in hops]
        if friends:
            down = (*targets[0], DOWN)
            reached, neighbours = self.overlay.reached_from(came_from), self.overlay.neighbours
            hops.update((name, Hop(name, down)) for name in friends if neighbours.peer(name).identifier not in reached)
        return list(hops.values())
