"""Rendezvous routing over the gossip overlay: installing subscriptions, delivering events.

Theory of operation (Vinifera IV-B3 and IV-B4). What a node wants, for itself and for the neighbours that have installed
something at it, is aggregated and cut into parts by the next hop towards each part's rendezvous nodes; each of those is
sent its part, and what is added to it, while its version alone is confirmed with every heartbeat: an entry that
is not confirmed expires, and what is left shrinks all the way with the next rounds. When the way to a part changes, the
new neighbour is told at once and the old one a round later, so that events find one way or the other.

An event goes to one rendezvous node for each of its targets, and from there to the neighbours that want it, each doing
the same. Its header says (attribute, hashed value, phase). A router that `spreads` does not wait for the rendezvous
node: where an event first comes by, on whatever way, it is passed on at once to all who have asked for it there, and to
the friends whose profiles say that they want it, but for those who the sender has told as well, being its neighbours.
So it is everywhere in a cluster of alike nodes within few hops, and the trees see to those whom no friend tells; who
gets it once more passes it on no more. A node's own subscribers get an event when it first comes by.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Received,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from routing.router import Hop
from routing.smallworld.boxes import Boxes, aggregate, extended, from_wire, to_wire, within
from routing.smallworld.content_table import ContentTable, Entry
from routing.smallworld.messages import OVERLAY_MESSAGES, Beat, BeatAnswer, GossipPeer, Install
from routing.smallworld.overlay import GossipOverlay
from routing.smallworld.parameters import SmallWorldParameters
from routing.smallworld.ring import KnownRing

UP, DOWN = range(2)
"""Phases: to the rendezvous node, from it."""
_FLUSH = ("routing", "flush")
_FLUSH_US_MAX = 100_000
_STABLE_ROUNDS = 3
_UNSETTLED_ROUNDS_MAX = 60
_EXPIRES_ROUNDS = 3
Target = tuple[int, int]
"""(attribute, hashed value)."""


def no_utility(profile: bytes) -> float:
    """For a protocol that has no friend links."""
    return 0.0


class RendezvousRouter:
    """See `routing.router.Router`. A protocol says what it wants (`own_boxes`), where events go (`targets`), how it
    compares profiles (`utility`, of a friend link to a node with that profile) and who wants an event by its profile
    (`alike`); `prunes`: events are matched against filters on their way down; `spreads`: see above."""

    requires_tree = False
    requires_structure = True
    keeps_order = False
    prunes = True
    spreads = False
    message_types: tuple[type, ...] = (*OVERLAY_MESSAGES, Install)

    def __init__(
        self, context: NodeContext, parameters: SmallWorldParameters, utility: Callable[[bytes], float] = no_utility
    ) -> None:
        self.overlay = GossipOverlay(context, parameters, utility)
        self.overlay.installed_version = self._confirmed_version  # type: ignore[method-assign]
        self.table = ContentTable()
        self.filters: dict[Filter, None] = {}
        self.now_us = 0
        self._uplinks: dict[NodeName, tuple[int, Boxes]] = {}
        self._version = 0
        self._dirty = True
        """May the ways have changed of what is wanted, or what the node itself wants?"""
        self._grown: list[Boxes] = []
        """What neighbours have come to want since something was installed last."""
        self._excess = False
        """May more be installed than is wanted?"""
        self._wanted: Boxes | None = None
        """What is wanted, if that has not changed since it was aggregated."""
        self._cut: Boxes = {}
        """What was wanted when it was last cut into parts, by the ring as it was known then."""
        self._cut_by: KnownRing | None = None
        self._parts: dict[NodeName, Boxes] = {}
        self._last_round: dict[NodeName, Boxes] = {}
        """What was wanted by way of each next hop in the last round."""
        self._flushing = False
        self.hears_resets = parameters.resets
        self._flush_us = min(_FLUSH_US_MAX, max(1, parameters.cycle_us // 1_000))
        self._asked_in = 0
        self._seen: list[dict[tuple[int, ...], None]] = [{}, {}]

    # ------------------------------------------------------------------------- what a protocol says of itself
    def own_boxes(self) -> Boxes:
        """What the node's own filters want."""
        raise NotImplementedError

    def targets(self, event: Event) -> list[Target]:
        """To whose rendezvous nodes the event goes."""
        raise NotImplementedError

    def alike(self, targets: Sequence[Target]) -> list[NodeName]:
        """The neighbours that want an event with these targets, as their profiles have it."""
        return []

    def on_round(self) -> list[Effect]:
        """A round has begun."""
        return []

    def on_rendezvous(self, event: Event, target: Target) -> None:
        """An event has come to this node as the target's rendezvous node."""

    def on_neighbour_moved(self, name: NodeName) -> None:
        """A contact has taken another identifier."""

    def filters_changed(self) -> None:
        """What the node's own subscribers want has changed."""

    # ---------------------------------------------------------------------------------------------- the face
    @property
    def settling(self) -> bool:
        """See `murmur_pubsub.machine.is_settling`: the ring or what is wanted has changed of late."""
        overlay = self.overlay
        if not overlay.joined:
            return True
        if overlay.round - self._asked_in > _UNSETTLED_ROUNDS_MAX:
            return False
        return self._flushing or overlay.stable_rounds < _STABLE_ROUNDS

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `routing.router.Router`."""
        self.now_us = now_us
        if type(input) is Received:
            effects = self._receive(input.source, input.message)
        elif type(input) is TimerFired:
            effects = self._on_timer(input)
        elif type(input) is Start:
            effects = self.overlay.start()
        elif type(input) is LinkDown:
            effects = self.overlay.fail(input.peer)
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
            attribute, value, phase = header
            towards = [((attribute, value), phase)]
        else:
            towards = [(target, UP) for target in self.targets(event)]
        hops: list[Hop] = []
        for target, phase in towards:
            hops += self._onward(event, came_from, target, phase)
        if self.spreads and not self._again((event.source, event.sequence, DOWN)):
            hops += self._spread(event, came_from, hops)
        return hops

    def know(self, peers: Iterable[GossipPeer]) -> Sequence[Effect]:
        """Begin as part of an overlay with these peers in it."""
        return self._after(self.overlay.know(peers))

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        """Has the event been handed to the subscribers here before?"""
        return self._again((event.source, event.sequence))

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        self.overlay.check_invariants()
        self.table.check_invariants()
        assert self.overlay.uplinks == {name: version for name, (version, _) in self._uplinks.items()}
        assert self.overlay.me.name not in self._uplinks

    # ------------------------------------------------------------------------------------- installation
    def _asked(self) -> list[Effect]:
        self._asked_in = self.overlay.round
        self.overlay.stable_rounds = 0
        self.wants_changed()
        return self._after([])

    def wants_changed(self) -> None:
        """The node itself wants something else than before."""
        self._wanted = None
        self._dirty = True

    def _receive(self, source: NodeName, message: Any) -> list[Effect]:
        if type(message) is Install:
            return self._on_install(source, message)
        effects = self.overlay.receive(source, message)
        if type(message) is Beat or type(message) is BeatAnswer:
            if self.table.confirm(source, message.incarnation, message.version, self.overlay.round):
                self._wants_less()
            if source in self._uplinks and message.held != self._uplinks[source][0]:
                effects.append(self._installation(source, 0, self._uplinks[source][1]))
        return effects

    def _on_install(self, source: NodeName, install: Install) -> list[Effect]:
        boxes = from_wire(install.boxes, install.filters)
        entry, now = Entry(install.incarnation, install.version, boxes), self.overlay.round
        if install.since:
            changed = self.table.extend(source, entry, install.since, now)
            self._wanted = None
        else:
            changed = self.table.install(source, entry, now)
            if changed:
                self._wants_less()
        if changed:
            if not within(boxes, self._cut):
                self._grown.append(boxes)
            self.overlay.stable_rounds = 0
        return []

    def _wants_less(self) -> None:
        """A neighbour wants something else, or nothing: what it has ceased to want is seen to in the next round."""
        self._wanted = None
        self._excess = True

    def _confirmed_version(self, peer: NodeName) -> int:
        return self.table.version(peer)

    def _on_timer(self, fired: TimerFired) -> list[Effect]:
        if fired.key == _FLUSH:
            self._flushing = False
            if self._dirty or self._cut_by is None:
                return self._install_all(False)
            return self._install_grown(self._cut_by)
        before = self.overlay.round
        effects = self.overlay.on_timer(fired)
        assert effects is not None, fired
        if self.overlay.round > before:
            if before % 2:
                self._seen = [self._seen[1], {}]
            if self.table.expire(self.overlay.round - _EXPIRES_ROUNDS):
                self._wants_less()
            effects += self.on_round()
            effects = [*self._install_all(True), *effects]  # first, so that heartbeats are answered with its versions
        return effects

    def _after(self, effects: list[Effect]) -> list[Effect]:
        """Whatever has happened, see that what is wanted is installed a little later, once for many changes."""
        overlay = self.overlay
        if overlay.failed:
            for name in overlay.failed:
                self._last_round.pop(name, None)
                overlay.uplinks.pop(name, None)
                if self._uplinks.pop(name, None) is not None:
                    self._dirty = True
                if self.table.drop(name):
                    self._wants_less()
            overlay.failed.clear()
        if overlay.moved:
            for name in overlay.moved:
                self.on_neighbour_moved(name)
            overlay.moved.clear()
        if overlay.changed:
            overlay.changed = False
            self._dirty = True
        if (self._dirty or self._grown) and not self._flushing:
            self._flushing = True
            effects = [*effects, SetTimer(_FLUSH, self._flush_us)]
        return effects

    def wanted(self) -> Boxes:
        """What is wanted by way of this node, its own subscribers included."""
        if self._wanted is None:
            self._wanted = aggregate([self.own_boxes(), *(entry.boxes for _, entry in self.table)])
        return self._wanted

    def _cut_into_parts(self) -> dict[NodeName, Boxes]:
        """What is wanted, by next hop."""
        known, wanted = self.overlay.known, self.wanted()
        if known is not self._cut_by or wanted is not self._cut:
            self._cut, self._cut_by, self._parts = wanted, known, _parts_of(wanted, known)
        return self._parts

    def _install_all(self, in_round: bool) -> list[Effect]:
        """Tell the next hops what has come to be wanted by way of them; in a round also what is wanted no more, and was
        not in the last round either: until then what replaces it has come into effect."""
        calm = not self._excess and self.overlay.known is self._cut_by
        if not self.overlay.joined or not (self._dirty or self._grown or (in_round and not calm)):
            return []
        self._dirty = False
        self._grown.clear()
        parts = self._cut_into_parts()
        self._excess = not in_round or parts != self._last_round
        effects: list[Effect] = []
        for name in dict.fromkeys((*parts, *self._uplinks)):
            wanted = parts.get(name, {})
            _, installed = self._uplinks.get(name, (0, {}))
            if wanted == installed:
                continue
            if not in_round and within(wanted, installed):
                continue
            kept = self._last_round.get(name) if in_round else installed
            if kept:
                wanted = aggregate([wanted, kept])
                if wanted == installed:
                    continue
            self._take_down(name, wanted)
            effects.append(self._installation(name, 0, wanted))
            if not wanted:
                del self._uplinks[name], self.overlay.uplinks[name]
        if in_round:
            self._last_round = parts
        return effects

    def _install_grown(self, ring: KnownRing) -> list[Effect]:
        """Tell the next hops what neighbours have come to want, by the ring as it was known when all was cut last: no
        next hop has been lost since, and those that were found are taken in the next round."""
        grown, self._grown = self._grown, []
        effects: list[Effect] = []
        for name, part in _parts_of(functools.reduce(extended, grown, {}), ring).items():
            before, installed = self._uplinks.get(name, (0, {}))
            if not within(part, installed):
                self._take_down(name, extended(installed, part))
                self._last_round[name] = extended(self._last_round.get(name, {}), part)
                effects.append(self._installation(name, before, part))
        return effects

    def _take_down(self, name: NodeName, wanted: Boxes) -> None:
        self._version += 1
        self._uplinks[name] = self._version, wanted
        self.overlay.uplinks[name] = self._version

    def _installation(self, name: NodeName, since: int, boxes: Boxes) -> Send:
        numbers, filters = to_wire(boxes)
        return Send(name, Install(self.overlay.me.incarnation, self._uplinks[name][0], since, numbers, filters))

    # ----------------------------------------------------------------------------------------- delivery
    def _onward(self, event: Event, came_from: NodeName | None, target: Target, phase: int) -> list[Hop]:
        """Towards the target's rendezvous node; from there, unless it has been spread before, down."""
        key = (event.source, event.sequence, target[0])
        if phase != DOWN:
            if self._again((*key, UP)):
                return []  # somebody's view of the ring is out of date, and it would go round
            hop = self.overlay.known.next_hop(target[1])
            if hop is not None:
                return [Hop(hop, (*target, UP))]
            self.on_rendezvous(event, target)
            came_from = None  # it has passed the event up, and may have asked for it too
        if self.spreads or self._again((*key, DOWN)):
            return []
        attributes = event.attributes if self.prunes else None
        down = (*target, DOWN)
        return [Hop(name, down) for name in self.table.destinations(*target, attributes) if name != came_from]

    def _spread(self, event: Event, came_from: NodeName | None, upward: Sequence[Hop]) -> list[Hop]:
        """To all who have asked for the event here, and to the friends who want it."""
        told = {came_from, *(hop.peer for hop in upward)}
        hops: dict[NodeName, Hop] = {}
        targets = self.targets(event)
        for target in targets:
            for name in self.table.destinations(*target, event.attributes):
                if name not in told:
                    hops.setdefault(name, Hop(name, (*target, DOWN)))
        friends = [name for name in self.alike(targets) if name not in told and name not in hops]
        if friends:
            down = (*targets[0], DOWN)
            reached = self.overlay.reached_from(came_from)
            hops.update((name, Hop(name, down)) for name in friends if self.overlay.identifier_of(name) not in reached)
        return list(hops.values())

    def _again(self, key: tuple[int, ...]) -> bool:
        """Has this been asked before, in this round or one of the last ones?"""
        before, now = self._seen
        if key in now or key in before:
            return True
        now[key] = None
        return False


def _parts_of(boxes: Boxes, ring: KnownRing) -> dict[NodeName, Boxes]:
    """The boxes cut by the next hop towards each part's rendezvous node, without those of this node itself."""
    parts: dict[NodeName, Boxes] = {}
    for key, ranges in boxes.items():
        for low, high in ranges:
            for begin, end, hop in ring.shower(low, high):
                if hop is not None:
                    part = parts.get(hop)
                    if part is None:
                        parts[hop] = {key: [(begin, end)]}
                    elif key in part:
                        part[key].append((begin, end))
                    else:
                        part[key] = [(begin, end)]
    return parts
