"""Which findings a fault excuses: where the journal shows that the event's way ended at what the fault touched.

A delivery is missing because the event's way ended somewhere. On an overlay without cycles the event has one way to the
subscriber, and the journal says how far it came:

- a message with it was sent and did not arrive: excused if a fault that destroys messages was in force there;
- a node had it and sent it no further: excused if the node died with it in hand, or if a fault further on had
  disturbed the tables by which the node decided, and they could not have been mended yet.

Where links form cycles, or there are none, the event may have had several ways: then any of its messages that ended at
a fault excuses it, tables disturbed by any fault do, and so does an overlay that has no whole path left. What the run's
promise says that its protocols survive is excused only until the overlay could have settled without what is broken.

A copy is excused by the link that made it, and on an overlay without links by disturbed tables. An event out of order
is excused by a link that lets messages overtake each other, unless the later event came over it in order; or where it
was held up and later ones went another way. An event held up by a fault may come to a later subscriber, and need not
come to one that withdrew in the meantime.

A journal without SEND and RECEIVE rows does not show a way: there a fault in force near it in time excuses a loss.
"""

import bisect
import itertools
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from murmur_pubsub.faults import RECONFIGURES, FaultKind
from murmur_pubsub.journal import DropReason
from murmur_pubsub.promise import Promise
from spark_analysis.fault_windows import NEVER_US, Window
from spark_analysis.passages import ON_THE_WAY_US, Loss, Passage, held_until
from spark_analysis.search_tree import Ways, search_tree

IN_HAND_US = 100_000
"""How long a node may have an event in hand: one that it keeps for longer is lost by waiting, not by a fault."""
_AT_ONCE_US = 5_000
"""How soon a broker passes an event on that needs no recovery."""
_AT_BROKERS = "tables disturbed"
_LEAVES_TABLES = (FaultKind.CHANGE_LINK, FaultKind.SLOW, FaultKind.ORDER)
"""Faults that let control messages through, if late: no table goes wrong by them."""


class Case(NamedTuple):
    """A finding to be explained.

    publisher, client: the nodes where the event was published and where its subscriber is. delivered_us: first
    delivery (None: none). overtaken_us: when the subscriber first got a later event of the publisher (None: never).
    withdrawn_us: until when the subscription was held (None: it still is). early: the event is older than the
    subscription. issued_us: when the subscription that requires it was issued (None: not asked for). event: its
    publisher's number and its own (None: not asked for). later: the way of an event that
    was delivered before it, though it is a later one (None: not known).
    """

    finding: str
    publisher: str
    client: str
    published_us: int
    delivered_us: int | None = None
    overtaken_us: int | None = None
    withdrawn_us: int | None = None
    early: bool = False
    issued_us: int | None = None
    event: tuple[int, int] | None = None
    later: Passage | None = None

    @property
    def due_in_order_us(self) -> int:
        """Until when it might have come in order: `overtaken_us`, or `NEVER_US` if nothing has overtaken it."""
        return NEVER_US if self.overtaken_us is None else self.overtaken_us

    def may_end_in(self, from_us: int, until_us: int) -> bool:
        """Had it been published by the end of that stretch, and not been passed over before its begin?"""
        passed_over = self.finding == "missing" and self.due_in_order_us < from_us
        return self.published_us <= until_us and not passed_over

    @property
    def over_us(self) -> int:
        """When it was delivered, or else was wanted no more."""
        ends_us = (self.delivered_us, self.withdrawn_us)
        return next((each for each in ends_us if each is not None), NEVER_US)


class Excuse(NamedTuple):
    """`text` for people; `by_tables`: no message was lost, but tables were disturbed."""

    text: str
    by_tables: bool = False


NEVER_OUT = Excuse("its publisher died before it was out")
"""The event's attributes were written, and then nothing more: there is no PUBLISH row of it."""


@dataclass(slots=True)
class Excuses:
    """Explains findings of best effort. `links`: all of the overlay and of clients; `homes`: client to broker.
    `limit_us`: how long a message may be on its way at most. `fixed_ways`: do the links alone say which way an event
    goes? `in_parts`: links may have been taken away, so that there may be no way."""

    windows: Sequence[Window]
    links: Sequence[tuple[str, str]]
    homes: Mapping[str, str] = field(default_factory=dict)
    promise: Promise = field(default_factory=Promise)
    limit_us: int = ON_THE_WAY_US
    fixed_ways: bool = True
    in_parts: bool = False
    _ways: Ways = field(init=False)
    _about: dict[str | frozenset[str], list[Window]] = field(default_factory=dict)
    _partitions: list[Window] = field(default_factory=list)
    _begins: list[int] = field(default_factory=list)
    _longest: list[tuple[int, int, Window]] = field(default_factory=list)
    """Stretches of disturbed tables by their begins; at each place the one that ends last of those up to it."""
    _one_way: bool = False
    _meshed: bool = False

    def __post_init__(self) -> None:
        for window in self.windows:  # under churn there are thousands, and few about any one node
            things: list[str | frozenset[str]] = [*window.nodes, *window.links]
            for thing in things:
                self._about.setdefault(thing, []).append(window)
        self._partitions = [window for window in self.windows if window.step.groups]
        self._ways = Ways(self.links, self.homes)
        # A graph with as many links less than it has nodes as it has parts is a tree, or several.
        parts = self._ways.count_parts()
        linked = bool(self.links) and self.fixed_ways and (parts == 1 or self.in_parts)
        self._one_way = linked and len(self.links) == len(self._ways.neighbours) - parts
        self._meshed = linked and not self._one_way
        disturbing = [window for window in self.windows if window.step.kind not in _LEAVES_TABLES]
        stretches = [(begin, end, window) for window in disturbing for begin, end in window.disturbances]
        stretches.sort(key=lambda stretch: stretch[0])
        self._begins = [begin for begin, _, _ in stretches]
        for stretch in stretches:
            former = self._longest[-1] if self._longest else stretch
            self._longest.append(stretch if stretch[1] > former[1] else former)

    def explain(self, case: Case, passage: Passage) -> Excuse | None:
        """The fault that excuses the finding, or None."""
        if case.finding == "missing":
            return self._given_up(case) or self._withdrawn(case) or self._missing(case, passage)
        if case.finding == "duplicate":
            return self._doubled(case, passage)
        if case.finding == "out_of_order":
            if not passage.hops:
                near = self._near_in_time(case, "reorders")
                return near or (None if self._one_way else self._near_in_time(case, "diverts"))
            excuse = self._changed_link(case, passage, "reorders") or self._second_copy(case, passage)
            return excuse or self._held_back(case, passage)
        if case.early and case.delivered_us is not None:
            return self._early(case, passage)
        return None

    def _given_up(self, case: Case) -> Excuse | None:
        """Was the broker of the subscriber, or of the publisher, given up by an order?"""
        until_us = case.published_us + ON_THE_WAY_US
        for name in (case.client, case.publisher):
            for window in self._about.get(self.homes.get(name, name), ()):
                if window.step.kind is FaultKind.ORDER and window.in_force(case.published_us, until_us):
                    return Excuse(f"{window.step.text}: nothing is promised at that broker")
        return None

    # ------------------------------------------------------------------------------------------- losses
    def _missing(self, case: Case, passage: Passage) -> Excuse | None:
        if self.in_parts and case.client not in self._ways.tree(case.publisher):
            return self._apart(case)
        if not passage.hops:
            return self._near_in_time(case, "keeps_events_from")
        is_own = case.client not in self.homes  # a broker that delivers itself
        has_it = case.client in passage.received or (is_own and case.publisher == case.client)
        # Where links do not say the way, an event may have to go elsewhere before the broker's own subscribers get it.
        if has_it and (not is_own or self._one_way or self._meshed):
            return self._died_in_hand([case.client], passage) or self._by_tables_at_home(case, passage)
        if not self._one_way:
            return self._anywhere(case, passage)
        way = self._ways.between(case.publisher, case.client)
        came = max((place for place, name in enumerate(way) if name in passage.received), default=0)
        return self._where_it_ended(case, passage, way, came) or self._before_it_was_recovered(passage, way, came)

    def _by_tables_at_home(self, case: Case, passage: Passage) -> Excuse | None:
        """Did a client that had been away get the event for some of its subscribers, while its broker had yet to hear
        again what the others want? One that delivers itself may not have been asked to."""
        home = self.homes.get(case.client)
        if home not in passage.had:
            return self._beyond(case.client, passage) if home is None else None
        return self._by_tables(self._between([home, case.client]), passage.had[home], passage.had[home])

    def _where_it_ended(self, case: Case, passage: Passage, way: Sequence[str], came: int) -> Excuse | None:
        # A delegate is beside the way, and hands the event on to a broker that is on it.
        behind, ahead = {*way[: came + 1], *(passage.had.keys() - set(way))}, set(way[came + 1 :])
        lost = [loss for loss in passage.lost if loss.sender in behind and self._leads_on(loss.receiver, behind, ahead)]
        if lost:
            return self._destroyed(lost, full=self._between(way[came:]))
        here = way[came]
        had_us = passage.had.get(here, case.published_us)
        excuse = self._died_in_hand([here], passage) or self._by_tables_ahead(way, came, had_us)
        return excuse or self._at_a_delegate(way, passage)

    def _at_a_delegate(self, way: Sequence[str], passage: Passage) -> Excuse | None:
        """Was a broker beside the way, to which the event came without a link, to hand it on and could not?"""
        for each in passage.sent if self.promise.survives.by_delegates else ():
            delegate = each.receiver
            if delegate in passage.received and delegate not in (*way, *self._ways.neighbours.get(each.sender, ())):
                had_us = passage.had[delegate]
                excuse = self._died_in_hand([delegate], passage)
                excuse = excuse or self._by_tables(self._about.get(delegate, ()), had_us, had_us)
                if excuse is not None:
                    return excuse
        return None

    def _leads_on(self, receiver: str, behind: Set[str], ahead: Set[str]) -> bool:
        """Was a copy for that receiver one that the rest of the way may have hung on?"""
        to_delegate = self.promise.survives.by_delegates and receiver not in behind and receiver not in self.homes
        return receiver in ahead or to_delegate

    def _before_it_was_recovered(self, passage: Passage, way: Sequence[str], came: int) -> Excuse | None:
        """A protocol that recovers events may bring one further than its first copy came, and then keep it from a
        subscriber that it takes for a later one: did the first copy end at a fault?"""
        for place, (here, there) in enumerate(itertools.pairwise(way[: came + 1])):
            had_us = passage.had.get(here, 0)
            lost = [loss for loss in passage.lost if (loss.sender, loss.receiver) == (here, there)]
            excuse = self._destroyed(lost)
            if excuse is not None:
                return excuse
            left = (each.time_us for each in passage.sent if (each.sender, each.receiver) == (here, there))
            if min(left, default=had_us + _AT_ONCE_US + 1) > had_us + _AT_ONCE_US:
                excuse = self._by_tables_ahead(way, place, had_us)
                if excuse is not None:
                    return excuse
        return None

    def _by_tables_ahead(self, way: Sequence[str], place: int, had_us: int) -> Excuse | None:
        """Had a fault from that place of the way on disturbed the tables by which the node there decides?"""
        for window in (*self._between(way[place:]), *self._beside_a_bridge(way[place:], had_us)):
            if window.step.kind not in _LEAVES_TABLES and self._excusable(window, way, had_us):
                return Excuse(f"{window.step.text}: {way[place]} had {_AT_BROKERS}", by_tables=True)
        return None

    def _beside_a_bridge(self, ahead: Sequence[str], at_us: int) -> list[Window]:
        """Cuts beside the rest of the way while it is bridged: who is there behind a broker that is away, others say,
        and to one of them a neighbour behind a cut is away, too."""
        on_way = [window for name in ahead for window in self._about.get(name, ()) if window.severs]
        if not self.promise.survives.brokers_away or not any(each.in_force(at_us, at_us) for each in on_way):
            return []
        things = [frozenset((name, other)) for name in ahead for other in self._ways.neighbours.get(name, ())]
        return [window for thing in things for window in self._about.get(thing, ()) if window.severs]

    def _anywhere(self, case: Case, passage: Passage) -> Excuse | None:
        no_path = self._no_path(case, {case.published_us, *(loss.time_us for loss in passage.lost)})
        if no_path is not None:
            return no_path
        home = self.homes.get(case.client, case.client)
        last_mile = [loss for loss in passage.lost if loss.receiver == case.client]
        # Over a mesh all that is left is the last mile; on a structured overlay an event may have to come by again.
        if last_mile or (self._meshed and home in passage.received and home != case.client):
            near = self._between([home, case.client])
            if last_mile:
                return self._destroyed(last_mile, full=near)
            kept = self._died_in_hand([home], passage) or self._by_tables(near, passage.had[home], passage.had[home])
            return kept or self._beyond(home, passage)
        lost = [loss for loss in passage.lost if loss.receiver not in passage.had]
        excuse = self._destroyed(lost) or self._died_in_hand(passage.had, passage)
        excuse = excuse or self._divided(case) or self._end_away(case) or self._by_any_tables(case, passage)
        return excuse or (None if self.fixed_ways else self._perhaps_on_its_way(case))

    def _beyond(self, home: str, passage: Passage) -> Excuse | None:
        """Did the event perhaps only pass the subscriber's broker, on a detour, and was it lost on the rest of that?"""
        brokers = passage.beyond(home, self.homes)
        lost = [loss for loss in passage.lost if loss.sender in brokers and loss.receiver not in self.homes]
        return self._destroyed(lost) or self._died_in_hand(brokers, passage)

    def _divided(self, case: Case) -> Excuse | None:
        """Was the subscriber on the other side of a partition?"""
        ends = [self.homes.get(name, name) for name in (case.publisher, case.client)]
        for window in self._partitions:
            if window.separates(*ends) and window.from_us <= case.published_us + IN_HAND_US:
                if case.published_us <= window.undone_us:
                    return Excuse(f"{window.step.text}: between {ends[0]} and {ends[1]}")
        return None

    def _end_away(self, case: Case) -> Excuse | None:
        """Was an end of the way out of the overlay, or its client away? Over a mesh `_no_path` says so."""
        for client in () if self._meshed else (case.client, case.publisher):
            for window in self._between([self.homes.get(client, client), client]):
                if window.severs and window.in_force(case.published_us, case.published_us + IN_HAND_US):
                    return Excuse(f"{window.step.text}: {client} was away")
        return None

    def _perhaps_on_its_way(self, case: Case) -> Excuse | None:
        """The event's way is not known: was more away, anywhere, than the promise covers, or an end of the way?"""
        until_us = case.published_us + IN_HAND_US
        there = [
            window
            for window in self.windows
            if window.step.kind not in (*_LEAVES_TABLES, *RECONFIGURES) and window.in_force(case.published_us, until_us)
        ]
        ends = {end for name in (case.publisher, case.client) for end in (name, self.homes.get(name, name))}
        away = {name for window in there for name in window.nodes if name not in self.homes}
        too_many = len(away) > self.promise.survives.brokers_away
        for window in there:
            if window.links or window.nodes & ends or (window.nodes & away and too_many):
                return Excuse(f"{window.step.text}: perhaps on the event's way", by_tables=True)
        return None

    def _destroyed(self, lost: Iterable[Loss], full: Sequence[Window] = ()) -> Excuse | None:
        """Was a fault that destroys messages in force where one of these was lost? `full`: those behind which a queue
        may have overflowed."""
        for loss in lost:
            there = self._between([loss.sender, loss.receiver])
            if loss.reason is DropReason.OVERFLOW:
                there = [*there, *(window for window in full if window.holds_up)]
            for window in there:
                if window.destroys and self._took(window, loss):
                    return Excuse(f"{window.step.text}: lost from {loss.sender} to {loss.receiver}")
        return None

    def _took(self, window: Window, loss: Loss) -> bool:
        """Could the window have taken the message? It may have left before the fault, and no loss is sooner than
        that; what a promise covers is excused only until the overlay had settled."""
        if loss.reason is DropReason.LOSS and window.step.kind is FaultKind.CHANGE_LINK:
            return window.in_force(loss.sent_us, loss.time_us)
        known = loss.reason is DropReason.UNREACHABLE or self.promise.survives.any_path
        if known and self._meshed:  # the sender knew, and there was another way
            return window.disturbs(loss.sent_us, loss.time_us + ON_THE_WAY_US)
        # Nothing but a fault takes a message that was sent: it may have waited in a queue for it.
        waited_us = self.limit_us if loss.reason is None else 0
        return window.in_force(loss.sent_us, loss.time_us + waited_us)

    def _died_in_hand(self, nodes: Iterable[str], passage: Passage) -> Excuse | None:
        for name in nodes:
            had_us = passage.had.get(name)
            for window in self._about.get(name, ()):
                if had_us is not None and window.kills and had_us <= window.in_effect_us:
                    if window.from_us <= had_us + IN_HAND_US:
                        return Excuse(f"{window.step.text}: {name} had the event in hand")
        return None

    def _by_tables(self, windows: Iterable[Window], from_us: int, until_us: int) -> Excuse | None:
        for window in windows:
            if window.step.kind not in _LEAVES_TABLES and window.disturbs(from_us, until_us + IN_HAND_US):
                return Excuse(f"{window.step.text}: {_AT_BROKERS}", by_tables=True)
        return None

    def _by_any_tables(self, case: Case, passage: Passage) -> Excuse | None:
        """Had any fault disturbed tables while the event was on its way?"""
        times = list(passage.had.values()) or [case.published_us]
        place = bisect.bisect_right(self._begins, max(times) + IN_HAND_US) - 1
        # Of the stretches that begin early enough the one that ends last tells for all.
        if place < 0 or self._longest[place][1] < min(times):
            return None
        return Excuse(f"{self._longest[place][2].step.text}: {_AT_BROKERS}", by_tables=True)

    def _excusable(self, window: Window, way: Sequence[str], at_us: int) -> bool:
        """Was the window in force, or its tables not mended, in a way that the promise does not cover?"""
        if not self._survived(window, way):
            return window.in_force(at_us, at_us + IN_HAND_US)
        return window.disturbs(at_us, at_us + IN_HAND_US)

    def _survived(self, window: Window, way: Sequence[str]) -> bool:
        """Does the promise cover what is broken on the way: few enough brokers in a row, none at the ends?"""
        most = self.promise.survives.brokers_away
        if not most or not window.nodes or window.step.kind is FaultKind.SLOW:
            return False
        away = {
            name
            for name in way
            for other in self._about.get(name, ())
            if other.nodes and other.in_force(window.from_us, window.until_us)
        }
        ends = {way[0], way[-1], self.homes.get(way[0], way[0]), self.homes.get(way[-1], way[-1])}
        rows = (len(list(group)) for is_away, group in itertools.groupby(way, away.__contains__) if is_away)
        return not (away & ends) and all(row <= most for row in rows)

    def _no_path(self, case: Case, times_us: Iterable[int]) -> Excuse | None:
        """Was there no whole path of the overlay at one of these times?"""
        if not self._meshed:
            return None
        return next(filter(None, (self._no_path_at(case, time_us) for time_us in sorted(times_us))), None)

    def _no_path_at(self, case: Case, time_us: int) -> Excuse | None:
        broken = [window for window in self.windows if window.severs and window.in_force(time_us, time_us)]
        reached = search_tree(case.publisher, self._ways.neighbours, broken)
        to_itself = case.client == case.publisher  # by way of its broker
        if not broken or (self.homes.get(case.client, case.client) if to_itself else case.client) in reached:
            return None
        return Excuse(f"{broken[-1].step.text}: no path was left")

    def _apart(self, case: Case) -> Excuse:
        """No link led to the subscriber: the last one that was taken away says it best."""
        away = [window.step for window in self.windows if window.step.kind is FaultKind.DISCONNECT]
        before = [step.text for step in away if step.ordered_us is not None and step.ordered_us <= case.published_us]
        return Excuse(f"{before[-1] if before else 'the overlay was in parts'}: no path was left")

    # ------------------------------------------------------------------------------------- other findings
    def _doubled(self, case: Case, passage: Passage) -> Excuse | None:
        excuse = self._changed_link(case, passage, "duplicates")
        if excuse is None and not self._one_way and not self._meshed:
            # Without links no node hears of a failure at once: until all have, two may send on for the same others.
            return self._by_any_tables(case, passage)
        return excuse

    def _changed_link(self, case: Case, passage: Passage, able: str) -> Excuse | None:
        """Did the event cross a link that a fault had changed so? Where it has one way, only links on it count: on that
        by the links, and on the one it took first, if a broker beside that way did another's work. Where a bridge led
        and no link does, those count that are on any way: from the publisher, and to the subscriber."""
        steps: set[tuple[str, str]] | None = None
        if self._one_way:
            steps = set(itertools.pairwise(self._ways.between(case.publisher, case.client)))
            steps |= set(itertools.pairwise(passage.way_taken(case.publisher, case.client)))
        if steps is not None and self.in_parts and not steps:
            ends = [(case.publisher, self.homes.get(case.publisher)), (self.homes.get(case.client), case.client)]
            steps = {(first, last) for first, last in ends if first is not None and last is not None}
        for time_us, sender, receiver in passage.copied if able == "duplicates" else passage.sent:
            if steps is not None and (sender, receiver) not in steps:
                continue
            if able == "reorders" and case.later is not None and passage.led(case.later, sender, receiver):
                continue
            for window in self._about.get(frozenset((sender, receiver)), ()):
                if getattr(window, able) and window.in_force(time_us, time_us):
                    return Excuse(f"{window.step.text}: at {sender}-{receiver}")
        return None

    def _second_copy(self, case: Case, passage: Passage) -> Excuse | None:
        """Was the first of two copies lost? The second comes later, and may come after the next event."""
        return self._changed_link(case, passage, "duplicates") if passage.lost else None

    def _held_back(self, case: Case, passage: Passage) -> Excuse | None:
        """Where there are several ways: was the event held up, by a broker or by a link, while later ones passed it by?
        Behind a slow link they do so only when something makes them take another way, which may be shorter, too."""
        if self._one_way or not self.links:
            return None
        rerouted = self._by_any_tables(case, passage)
        if rerouted is not None and passage.went_otherwise(case.later, case.publisher, case.client):
            return rerouted
        for time_us, sender, receiver in passage.sent:
            links = self._about.get(frozenset((sender, receiver)), ()) if rerouted else ()
            for window in (*self._about.get(receiver, ()), *links):
                if window.holds_up and window.in_force(time_us, time_us):
                    return Excuse(f"{window.step.text}: later events went another way")
        return None

    def _withdrawn(self, case: Case) -> Excuse | None:
        return None if case.withdrawn_us is None else self._held_up(case)

    def _early(self, case: Case, passage: Passage) -> Excuse | None:
        """Did the event come so late to the subscriber's broker that a later subscriber got it?"""
        assert case.delivered_us is not None
        home = self.homes.get(case.client, case.client)
        came_us = [time_us for time_us in passage.received.get(home, ()) if time_us <= case.delivered_us]
        latest_us = max(came_us, default=passage.had.get(home, 0))
        if passage.hops and case.delivered_us - latest_us > ON_THE_WAY_US:
            return None  # its broker had kept it
        return self._held_up(case)

    def _held_up(self, case: Case) -> Excuse | None:
        """Was a fault on the event's way that may have held it up for so long?"""
        able = [window for window in self._near(case) if window.holds_up or window.destroys]
        stretches = ((window.from_us, window.carried_us) for window in able)
        if case.over_us > held_until(stretches, case.published_us, self.limit_us):
            return None
        there = (each for each in able if each.in_force(case.published_us, case.published_us + ON_THE_WAY_US))
        return next((Excuse(f"{window.step.text}: the event was held up") for window in there), None)

    def _near_in_time(self, case: Case, able: str) -> Excuse | None:
        until_us = case.published_us + ON_THE_WAY_US
        there = sorted(self._near(case), key=lambda window: window.step.turn)
        for window in there:
            if window.holds_up and window.in_force(case.published_us, until_us):
                until_us = max(until_us, window.until_us)
        for window in there:
            if getattr(window, able) and window.in_force(case.published_us, until_us):
                return Excuse(f"{window.step.text}: near in time", by_tables=True)
        return None

    # --------------------------------------------------------------------------------------------- ways
    def _near(self, case: Case) -> Sequence[Window]:
        """The windows on the event's way; all where it has more than one."""
        return self._between(self._ways.between(case.publisher, case.client)) if self._one_way else self.windows

    def _between(self, way: Sequence[str]) -> list[Window]:
        """The windows about these nodes and what is between each and the next."""
        pairs = list(itertools.pairwise(way))
        things: list[str | frozenset[str]] = [*way, *(frozenset(pair) for pair in pairs)]
        found = {id(window): window for thing in things for window in self._about.get(thing, ())}
        for window in self._partitions if len(way) == 2 else ():  # two nodes may talk without a link between them
            if window.separates(*way):
                found[id(window)] = window
        return sorted(found.values(), key=lambda window: window.step.turn)
