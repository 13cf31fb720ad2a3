"""What a guarantee of exactly-once delivery does not cover: subscribers that did not stay connected.

The guarantee is for subscribers whose client and broker keep their link, and for events that have reached a
publishers' broker. A missing delivery is *explained* if the subscriber was away when the event was published; or went
away later, and until then had got no later event of that publisher (it had not had its turn); or if the publisher
was killed, and until then none of its later events had reached the subscriber (it may have died with it). A fault may
hold an event up until its subscriber withdraws, or subscribes; one that is over, if the event had not had its turn by
then. While a log is full publishers wait, and so does what they publish (`spark_analysis.full_logs`). Under a total
order an event waits for what other pubends have to say: it is excused while one of their brokers cannot be reached, or
if its subscriber withdrew before its turn. A subscription settles without a publishers' broker that was given up by an
order: what is published there meanwhile is excused. Nothing else explains anything: not the death of a broker on the
way, not a lossy link; but where links lose messages all the time, an event that had not had its turn when its
subscriber withdrew is no loss.

An event has not reached a publishers' broker for sure while the publisher's client is away. If it stays away until
the event is due, the event is excused, also one that such a broker had only logged when it went for good.

Plain Python over small tables, for tests as well as for Spark.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from murmur_pubsub.faults import RETURNS, FaultKind
from murmur_pubsub.journal import RowKind
from spark_analysis.changing_overlay import Links, OverlayAt
from spark_analysis.excuses import Case, Excuse
from spark_analysis.fault_windows import NEVER_US, Window
from spark_analysis.full_logs import FullLog, time_waiting
from spark_analysis.passages import ON_THE_WAY_US, Passage, held_until
from spark_analysis.search_tree import neighbours_of, search_tree

LinkRow = tuple[int, int, str, str]
"""(time_us, RowKind.LINK_UP or LINK_DOWN, node, peer)."""

_DOWN, _UP, _DIED, _SETTLED = range(4)
"""What happens to a client's link, in the order in which it may happen in one microsecond: a client that goes to
another broker is away and back at once, and if it also dies then, it does so last."""
AT_REST_US = 7_000_000
"""How long a path may be there again without bringing over an event that nothing later of its publisher has followed.
No gap shows it; its pubend expects an acknowledgement after AET, and again after 6 s at most."""


@dataclass(frozen=True, slots=True)
class Away:
    """From when to when a subscriber's client was without its broker, until its subscriptions had settled again."""

    from_us: int
    until_us: int


def times_away(
    rows: Sequence[LinkRow],
    settled: Iterable[tuple[int, int]],
    homes: Mapping[str, str],
    limit_us: int = NEVER_US,
    windows: Iterable[Window] = (),
) -> dict[str, list[Away]]:
    """Client by client, when it was away; `settled`: (time_us, covers_us) of the SETTLED rows, `homes`: client to
    broker, at first. What happened before anything had settled does not count. `limit_us`: how long after its link is
    back a client may be away at most. `windows`: a kill of its broker or of itself ends the client's link, though
    neither may live to say so; and a client that comes late has none at first."""
    settlings = sorted(settled)
    if not settlings:
        return {}
    begun_us = settlings[0][0]
    steps: dict[str, list[tuple[int, int, int]]] = {client: [] for client in homes}
    now_at: dict[str, str] = {}
    windows = list(windows)
    kills = [each for each in windows if each.kills and each.in_effect_us < NEVER_US]
    for time_us, kind, node, peer in sorted([*rows, *_ended_by_kills(rows, homes, kills)]):
        client, broker = (node, peer) if node in homes else (peer, node)
        if kind == RowKind.LINK_UP and client in homes:
            now_at[client] = broker
        if client in homes and now_at.get(client, broker) == broker and time_us >= begun_us:
            steps[client].append((time_us, _DOWN if kind == RowKind.LINK_DOWN else _UP, 0))
    for coming in windows:
        if coming.step.kind in RETURNS:  # for the first time: it repairs nothing
            for client in steps.keys() & coming.step.nodes:
                steps[client].append((coming.from_us, _DOWN, 0))
    for kill in kills:
        if kill.in_effect_us >= begun_us:
            for client in kill.nodes & steps.keys():
                steps[client].append((kill.in_effect_us, _DIED, 0))
    found: dict[str, list[Away]] = {}
    for client, moves in steps.items():
        if moves:
            moves += [(time_us, _SETTLED, covers_us) for time_us, covers_us in settlings]
            found[client] = _walk(sorted(moves), limit_us)
    return found


def _ended_by_kills(rows: Iterable[LinkRow], homes: Mapping[str, str], kills: Iterable[Window]) -> Iterator[LinkRow]:
    """The ends of links of clients that were ever at a broker, when that one was killed."""
    clients: dict[str, set[str]] = {}
    for client, broker in itertools.chain(
        homes.items(), ((node, peer) for _, kind, node, peer in rows if kind == RowKind.LINK_UP and node in homes)
    ):
        clients.setdefault(broker, set()).add(client)
    for kill in kills:
        for broker in kill.nodes & clients.keys():
            yield from ((kill.in_effect_us, RowKind.LINK_DOWN, broker, client) for client in clients[broker])


def _walk(moves: Sequence[tuple[int, int, int]], limit_us: int) -> list[Away]:
    away: list[Away] = []
    down_us = up_us = None
    for time_us, what, covers_us in moves:
        if what in (_DOWN, _DIED):
            down_us = time_us if down_us is None else down_us
            up_us = None
        elif what == _UP and down_us is not None:
            up_us = time_us
        elif what == _SETTLED and down_us is not None and up_us is not None and covers_us >= up_us:
            away.append(Away(down_us, min(time_us, up_us + limit_us)))
            down_us = up_us = None
    if down_us is not None:
        away.append(Away(down_us, NEVER_US if up_us is None else min(NEVER_US, up_us + limit_us)))
    return away


@dataclass(frozen=True, slots=True)
class Connections:
    """Explains findings as `excuses.Excuses` does, under a promise that nothing is missing. `homes`: client to
    broker. `limit_us`: an event that had not come this time after its publication was missing before anything else.
    `overlays`: the links that there were, those of clients too. `lossy`: do links lose messages all the time? Then an
    event may take long though nothing is broken. `waited_for`: under a total order, the brokers whose pubends every
    event may have to wait for: all, since the journal does not say which have any. `full`: when logs were full.
    `ordered`: do events of one publisher come in order? `idle`: clients that have subscribed to nothing."""

    away: Mapping[str, Sequence[Away]]
    windows: Sequence[Window]
    homes: Mapping[str, str]
    limit_us: int = NEVER_US
    overlays: Sequence[OverlayAt] = (OverlayAt(0, (), True),)
    lossy: bool = False
    by_links: bool = True
    """Do brokers need links to reach each other? Else each reaches every other one, unless a fault of nodes, or a
    partition, is between the two."""
    last_us: int = NEVER_US
    """The end of the run."""
    waited_for: Sequence[str] = field(default=(), kw_only=True)
    full: Sequence[FullLog] = field(default=(), kw_only=True)
    ordered: bool = field(default=True, kw_only=True)
    idle: Set[str] = field(default=frozenset(), kw_only=True)

    def explain(self, case: Case, passage: Passage) -> Excuse | None:
        """Why the promise does not cover the finding, or None."""
        lost = self._disk_lost(case)
        if lost is not None:
            return lost
        if case.finding == "missing":
            return self._missing(case) or self._waited(case)
        if case.early and case.delivered_us is not None:
            if self.lossy and case.delivered_us <= case.published_us + self.limit_us:
                return Excuse("links lose messages: the event was held up until its subscriber had subscribed")
            return self._waited(case) or self._held_up(case)
        return None

    def _home(self, name: str) -> str:
        """The broker of a client, or itself if it has subscribers and publishers of its own."""
        return self.homes.get(name, name)

    def _disk_lost(self, case: Case) -> Excuse | None:
        """Was the log of the publishers' broker lost, with the event? What it had accepted may be missing, or be
        accepted twice."""
        for window in self.windows:
            if window.step.disk_lost and self._home(case.publisher) in window.nodes:
                until_us = self._told_again_us(case, window.until_us)
                if case.finding != "spurious" and case.may_end_in(window.from_us, until_us):
                    return Excuse(f"{window.step.text}: with what it had accepted")
        return None

    def _told_again_us(self, case: Case, whole_us: int) -> int:
        """When a broker that is whole again without its log knows again what the subscriber wants."""
        return whole_us

    def _missing(self, case: Case) -> Excuse | None:
        due_us = min(case.due_in_order_us, case.published_us + self.limit_us)
        for each in self.away.get(case.client, ()):
            if each.until_us >= case.published_us and due_us > each.from_us:
                return Excuse(f"{case.client} was not connected to {self._home(case.client)}")
        not_handed_over = self._publisher_not_back(case, due_us)
        if not_handed_over is not None:
            return not_handed_over
        home = self._home(case.client)
        for window in self.windows:
            if window.step.kind is FaultKind.ORDER and home in window.nodes:
                if window.until_us >= case.published_us and due_us > window.from_us:
                    return Excuse(f"{window.step.text}: nothing is promised at that broker")
            if self.waited_for and window.step.kind is FaultKind.ORDER and self._home(case.publisher) in window.nodes:
                if due_us > window.from_us:
                    return Excuse(f"{window.step.text}: a total order waits no more for what is published there")
            if window.step.kind is FaultKind.ORDER and self._settled_without(case, window):
                return Excuse(f"{window.step.text}: subscriptions settle without that broker")
            if not window.kills or window.until_us < case.published_us or due_us <= window.from_us:
                continue
            # No other node can answer for what a node published as it died, or has itself subscribed.
            if case.client in window.nodes or (
                case.publisher in window.nodes and case.published_us <= window.in_effect_us
            ):
                return Excuse(window.step.text)
        for broker in (self._home(case.publisher), *self.waited_for):
            parted = self._parted(broker, case, due_us)
            if parted is not None:
                return parted
        if case.withdrawn_us is None or (self.ordered and case.due_in_order_us < case.withdrawn_us):
            return None
        in_time = case.withdrawn_us <= due_us  # of one instant nobody says which was first
        if self.waited_for and in_time:
            return Excuse(f"in a total order it had not had its turn when {case.client} withdrew")
        if self.lossy and in_time:
            return self._lost_before_it_withdrew(case)
        return self._held_up(case) or (self._behind_others(case) if in_time else None)

    def _waited(self, case: Case) -> Excuse | None:
        """Did the publisher have to wait for room in a log until the subscriber withdrew, or subscribed, or the run
        ended without what is away?"""
        handed_us = case.published_us
        for each in self.away.get(case.publisher, ()):
            if each.from_us - ON_THE_WAY_US <= case.published_us <= each.until_us:
                handed_us = max(handed_us, each.until_us)
        within_us = self.limit_us if self.lossy else ON_THE_WAY_US
        waiting = time_waiting(self.full, self._takers(case), handed_us, within_us, self._taken_over_us(case))
        if waiting is None:
            return None
        until_us = waiting.until_us + within_us
        if case.delivered_us is not None:
            late = case.delivered_us <= until_us
            return Excuse(f"it waited for room in the log of {waiting.broker}") if late else None
        if case.withdrawn_us is not None and case.withdrawn_us <= min(case.due_in_order_us, until_us):
            return Excuse(f"it waited for room in the log of {waiting.broker} when {case.client} withdrew")
        if waiting.until_us < NEVER_US or case.overtaken_us is not None:
            return None
        lasting = (window for window in self.windows if window.severs and window.undone_us == NEVER_US)
        broken = (window.step.text for window in lasting if self._may_fill_logs(window))
        satisfied = self._lack_nothing(False)
        away = (name for name, times in self.away.items() if times and times[-1].until_us == NEVER_US)
        gone = (f"{name} is away" for name in away if name not in satisfied)
        cause = next(itertools.chain(broken, gone), None)
        return None if cause is None else Excuse(f"{cause}: the log of {waiting.broker} stayed full")

    def _may_fill_logs(self, window: Window) -> bool:
        """May a log have to keep what the window keeps from somebody?"""
        satisfied = self._lack_nothing(window.step.kind is FaultKind.STALL)
        return bool(window.nodes - satisfied) or any(satisfied.isdisjoint(link) for link in window.links)

    def _lack_nothing(self, stalled: bool) -> Set[str]:
        """The clients for which no log keeps anything, when they are away, or stalled. Nothing is kept for one whose
        link is gone; one that only takes nothing keeps its broker from acknowledging."""
        return self.idle if stalled else self.homes.keys()

    def _takers(self, case: Case) -> Sequence[str]:
        """The brokers one of which takes what the publisher publishes."""
        return (self._home(case.publisher),)

    def _taken_over_us(self, case: Case) -> int:
        """How long until one of those takes what another one took."""
        return 0

    def _settled_without(self, case: Case, order: Window) -> bool:
        """Was the publisher's broker given up, so that the subscription may have settled though it had not heard of
        it? One that is much older had been heard of."""
        if case.issued_us is None or self._home(case.publisher) not in order.nodes:
            return False
        return case.published_us <= order.until_us and order.from_us < case.issued_us + self.limit_us

    def _publisher_not_back(self, case: Case, due_us: int) -> Excuse | None:
        """Was the publisher's link down, and not up again when the event was due?"""
        for each in self.away.get(case.publisher, ()):
            if each.until_us >= due_us > each.from_us and not self._accepted(case, each.from_us):
                return Excuse(f"{case.publisher} was not connected to {self._home(case.publisher)} again")
        return None

    def _accepted(self, case: Case, by_us: int) -> bool:
        """Was the event accepted for sure by that time, where brokers stand in for one another? Here none do."""
        return False

    def _lost_before_it_withdrew(self, case: Case) -> Excuse:
        return Excuse(f"links lose messages: it had not had its turn when {case.client} withdrew")

    def _parted(self, publishers: str, case: Case, due_us: int) -> Excuse | None:
        """Was there no path from that broker to the subscriber's that lasted for long enough to bring the event over,
        before a later one came or it was wanted no more? While messages are lost or slow on a changed link, none is.
        The first stretch without a path must have begun before the event was due."""
        until_us = min(case.due_in_order_us, case.over_us, self.last_us)
        broken = [
            window
            for window in self.windows
            if window.severs and window.from_us < until_us and window.undone_us > case.published_us
        ]
        others = self.homes.keys() - {case.publisher, case.client}
        changed = [
            window
            for window in self.windows
            if window.step.kind is FaultKind.CHANGE_LINK and others.isdisjoint(window.step.nodes)
        ]
        changes = [time_us for window in (*broken, *changed) for time_us in (window.from_us, window.undone_us)]
        changes += [each.from_us for each in self.overlays]
        between = sorted(each for each in (*changes, due_us) if case.published_us < each < until_us)
        moments = [case.published_us, *between, until_us]
        enough_us = self.limit_us if self.lossy else ON_THE_WAY_US
        subscribers = self._home(case.client)
        whole_us, cause = 0, ""
        for begin_us, end_us in itertools.pairwise(moments):
            if begin_us >= due_us and not cause:
                return None
            there = [window for window in broken if window.from_us <= begin_us < window.undone_us]
            links = next(each.links for each in reversed(self.overlays) if each.from_us <= begin_us)
            gone = any(publishers in window.nodes for window in there)
            if not gone and self._reaches(publishers, subscribers, links, there):
                if any(window.from_us <= begin_us < window.undone_us for window in changed):
                    continue
                if not whole_us and begin_us >= case.published_us + self.limit_us:
                    break  # a path that begins later than a recovery may take is none that was promised
                whole_us += end_us - begin_us
                if whole_us > enough_us:
                    return None
            else:
                whole_us, cause = 0, there[-1].step.text if there else "the overlay was in parts"
                if case.overtaken_us is None:
                    enough_us = max(enough_us, AT_REST_US)
        return Excuse(f"{cause}: no path was left") if cause else None

    def _reaches(self, publishers: str, subscribers: str, links: Links, broken: Sequence[Window]) -> bool:
        """Is there a path from one broker to the other that no broken window is on? The first is not asked about."""
        if self.by_links:
            return subscribers in search_tree(publishers, neighbours_of(links), broken)
        # A partition lists the links that it cuts, and keeps datagrams from passing between all others, too.
        return not any(subscribers in window.nodes or window.separates(publishers, subscribers) for window in broken)

    def _behind_others(self, case: Case) -> Excuse | None:
        """What a fault has held up may still be on its way when the fault is over, and the event behind it."""
        lately = (each for each in self.windows if each.in_force(case.published_us - self.limit_us, case.published_us))
        words = f"what it held up had not had its turn when {case.client} withdrew"
        return next((Excuse(f"{window.step.text}: {words}") for window in lately), None)

    def _held_up(self, case: Case) -> Excuse | None:
        if case.over_us > self._held_until(case):
            return None
        until_us = case.published_us + ON_THE_WAY_US
        held_up = (window for window in self.windows if window.in_force(case.published_us, until_us))
        return next((Excuse(f"{window.step.text}: the event was held up") for window in held_up), None)

    def _held_until(self, case: Case) -> int:
        """Until when the event may have been held up: by faults, by the absence of one of its clients, by full logs."""
        stretches = [(window.from_us, window.carried_us) for window in self.windows]
        stretches += [(each.from_us, each.until_us) for each in self.full]
        for name in (case.publisher, case.client):
            stretches += [(each.from_us, each.until_us) for each in self.away.get(name, ())]
        return held_until(stretches, case.published_us, max(self.limit_us, AT_REST_US))
