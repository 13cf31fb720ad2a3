"""What a promise of durable subscriptions does not cover: next to nothing that has come to an end.

A durable subscription is required for all events from its begin to its end, whoever is down meanwhile. So a subscriber
that was away excuses a missing event only if it was still away when the run ended, and a fault on the way only if no
path was left then. An event that a later one of its publisher has overtaken is not excused even so. A publisher that
dies, or is not connected again, may take with it what it had not handed over, as under any promise; and what has not
had its turn when its subscription is withdrawn need not come. What the limits of a subscription let a broker give up,
or refuse, is excused by what the subscriber or the publisher was told (`spark_analysis.given_up`). A lost disk of the
publishers' broker excuses what was published there, unless another broker stands in (`spark_analysis.redundant_ends`).

A client that dies may have been delivered what it had not recorded yet: that may come once more when it is back.

Plain Python over small tables, for tests as well as for Spark.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.promise import RedundantEnd
from murmur_pubsub.run_manifest import RunManifest
from spark_analysis.changing_overlay import OverlayAt
from spark_analysis.connections import Connections, LinkRow, times_away
from spark_analysis.excuses import Case, Excuse
from spark_analysis.fault_windows import NEVER_US, Window
from spark_analysis.full_logs import full_logs
from spark_analysis.given_up import ToldRow, Words, joined
from spark_analysis.passages import ON_THE_WAY_US, Passage
from spark_analysis.redundant_ends import able_to_serve, end_of, is_accepted, not_covered
from spark_analysis.search_tree import lying_between, neighbours_of
from spark_analysis.stays import Stay, stays_of

RECORDED_US = 1_000_000
"""A client has recorded what it was delivered this long ago."""


def connections_of(
    manifest: RunManifest,
    rows: Sequence[LinkRow],
    settled: Iterable[tuple[int, int]],
    windows: Sequence[Window],
    overlays: Sequence[OverlayAt],
    last_us: int,
    told: Sequence[ToldRow] = (),
    published_us: Sequence[int] = (),
    subscribed: Callable[[], Iterable[int]] = tuple,
) -> Connections:
    """What explains the findings of a run whose promise excuses by connection; `last_us`: the end of its journal;
    `told`: the rows of what clients were told; `published_us`: see `Words`; `subscribed`: the nodes that have ever
    subscribed, which is asked only if a log was full at the end."""
    homes, limit_us = manifest.homes, manifest.recovery_limit_us
    away = times_away(rows, settled, homes, limit_us, windows)
    full = full_logs(told, manifest.names, manifest.promise.limits, windows, published_us)
    idle: Set[str] = frozenset()
    if any(each.until_us == NEVER_US for each in full):
        idle = homes.keys() - {manifest.names[node] for node in subscribed()}
    if not manifest.promise.durable:
        waited_for = manifest.brokers if manifest.promise.order == "total" else ()
        known = (away, windows, homes, limit_us, overlays, manifest.lossy, manifest.has_links)
        ordered = manifest.promise.order != "none"
        return Connections(*known, last_us, waited_for=waited_for, full=full, ordered=ordered, idle=idle)
    stays = stays_of(rows, homes)
    words = Words(told, manifest.names, manifest.promise.limits, manifest.lossy, published_us)
    by_links = manifest.has_links and not manifest.promise.survives.any_links
    known = (away, windows, homes, limit_us, overlays, manifest.lossy, by_links)
    redundant = manifest.promise.redundant
    limits = manifest.promise.limits
    return DurableConnections(
        *known,
        last_us,
        stays,
        tuple(settled),
        words,
        redundant,
        published_us,
        limits.told_again_us,
        full=full,
        idle=idle,
    )


@dataclass(frozen=True, slots=True)
class DurableConnections(Connections):
    """Explains findings as `Connections` does. `stays`: client to the brokers where it was, in order.
    `settled`: (time_us, covers_us) of the SETTLED rows. `words`: see `spark_analysis.given_up`."""

    stays: Mapping[str, Sequence[Stay]] = field(default_factory=dict)
    settled: Sequence[tuple[int, int]] = ()
    words: Words | None = None
    redundant: Sequence[RedundantEnd] = ()
    published_us: Sequence[int] = ()
    told_again_us: int = 0
    """See `Limits`."""
    _ways: dict[tuple[str, str], list[Window]] = field(default_factory=dict, init=False, repr=False)
    """By publisher and subscriber: see `_on_the_way`."""

    def explain(self, case: Case, passage: Passage) -> Excuse | None:
        """Why the promise does not cover the finding, or None."""
        if case.client not in self.homes:  # a broker that delivers itself
            excuse = Connections.explain(self, case, passage)
            return excuse or (self._begun_anew(case) or self._given_up(case) if case.finding == "missing" else None)
        lost = self._disk_lost(case)
        if lost is not None:
            return lost
        if case.finding == "duplicate":
            return self._died_before_it_had_recorded(case, case.delivered_us)
        if case.finding == "out_of_order":
            # It had withdrawn the event's subscription, and forgot that, too: with what it gets again the event comes.
            forgotten = self._died_before_it_had_recorded(case, case.overtaken_us)
            return forgotten or Connections.explain(self, case, passage)
        if case.finding == "missing":
            excuse = self._lost_with_its_publisher(case) or self._not_back(case) or self._withdrawn(case)
            excuse = excuse or self._died_before_it_had_subscribed(case) or self._given_up(case)
            return excuse or self._waited(case)
        return Connections.explain(self, case, passage)

    def _disk_lost(self, case: Case) -> Excuse | None:
        """Was a log lost, and no other one left?"""
        end = self._end_of(case)
        if end is None:
            return Connections._disk_lost(self, case)
        told_again_us = functools.partial(self._told_again_us, case)
        lost = not_covered(case, end, self.windows, self.last_us, told_again_us)
        if lost is None or case.finding == "spurious":
            return None
        return Excuse(f"{lost.step.text}: before the others of {', '.join(end.names)} were whole, or could stand in")

    def _told_again_us(self, case: Case, whole_us: int) -> int:
        stretches = [(each.from_us, each.until_us) for each in self.away.get(case.client, ())]
        for window in self._on_the_way(case):
            is_theirs = bool(window.nodes) and window.nodes.isdisjoint({case.client, *self._brokers_of(case)})
            if window.severs and not (is_theirs and window.until_us == NEVER_US):  # of publishers' brokers one is left
                stretches.append((window.from_us, window.until_us))
        for from_us, until_us in sorted(stretches):
            if from_us <= whole_us + self.told_again_us:
                whole_us = max(whole_us, until_us)
        return min(NEVER_US, whole_us + self.told_again_us)

    def _brokers_of(self, case: Case) -> set[str]:
        """Where its client was, at one time or another."""
        return {stay.broker for stay in self.stays.get(case.client, ())} or {self._home(case.client)}

    def _lack_nothing(self, stalled: bool) -> Set[str]:
        """See `Connections`: for every other client all is kept until it is back."""
        return self.idle

    def _takers(self, case: Case) -> Sequence[str]:
        end = self._end_of(case)
        return Connections._takers(self, case) if end is None else (end.host, end.backup)

    def _taken_over_us(self, case: Case) -> int:
        end = self._end_of(case)
        return 0 if end is None else end.notices_us

    def _end_of(self, case: Case) -> RedundantEnd | None:
        return end_of(self.homes.get(case.publisher, case.publisher), self.redundant)

    def _accepted(self, case: Case, by_us: int) -> bool:
        end = self._end_of(case)
        within = (self.limit_us,) if self.lossy else ()
        return end is not None and is_accepted(case, by_us, end, self.windows, self.published_us, *within)

    def _lost_with_its_publisher(self, case: Case) -> Excuse | None:
        due_us = self.last_us if case.overtaken_us is None else case.overtaken_us
        not_handed_over = self._publisher_not_back(case, due_us)
        if not_handed_over is not None:
            return not_handed_over
        for window in self.windows:
            if window.kills and case.publisher in window.nodes and due_us > window.from_us:
                if window.until_us >= case.published_us and case.published_us <= window.in_effect_us:
                    return Excuse(window.step.text)
        return None

    def _not_back(self, case: Case) -> Excuse | None:
        """Was the subscriber away, or without a path, up to the end, or its broker given up?"""
        for window in self.windows:
            if window.step.kind is FaultKind.ORDER and window.until_us >= case.published_us:
                since_us = max(window.from_us, case.published_us)
                for stay in self.stays[case.client]:
                    if stay.broker in window.nodes and stay.from_us <= window.until_us and stay.until_us >= since_us:
                        return Excuse(f"{window.step.text}: nothing is promised at that broker")
        if case.overtaken_us is not None:
            return None
        for each in self.away.get(case.client, ()):
            if each.until_us >= self.last_us:
                return Excuse(f"{case.client} was not connected when the run ended")
        return self._apart_at_the_end(case)

    def _apart_at_the_end(self, case: Case) -> Excuse | None:
        publishers, subscribers = (self.stays[each][-1].broker for each in (case.publisher, case.client))
        late_us = self.last_us - ON_THE_WAY_US
        there = [each for each in self.windows if each.severs and each.undone_us > late_us]
        end = self._end_of(case)
        if end is not None:
            return self._redundant_apart(case, end, publishers, subscribers, there)
        gone = any(publishers in window.nodes for window in there)
        if not gone and self._reaches(publishers, subscribers, self.overlays[-1].links, there):
            return None
        cause = there[-1].step.text if there else "the overlay was in parts"
        return Excuse(f"{cause}: no path was left when the run ended")

    def _redundant_apart(
        self, case: Case, end: RedundantEnd, publishers: str, subscribers: str, there: Sequence[Window]
    ) -> Excuse | None:
        """Could nobody at the end serve the subscriber, or nobody that does take the event from its publisher?"""
        able = [
            name
            for name in able_to_serve(end, there)
            if self._reaches(name, subscribers, self.overlays[-1].links, there)
        ]
        cause = there[-1].step.text if there else "the overlay was in parts"
        if not able:
            return Excuse(f"{cause}: no path was left when the run ended")
        is_gone = any(publishers in window.nodes for window in there)
        parted = [name for name in able if any(window.separates(publishers, name) for window in there)]
        if not is_gone and parted != able:
            return None
        if self._accepted(case, min(window.from_us for window in there)):
            return None
        return Excuse(f"{cause}: it may not have been accepted")

    def _withdrawn(self, case: Case) -> Excuse | None:
        """Had the event not had its turn when its subscription was withdrawn?"""
        if case.withdrawn_us is None or case.due_in_order_us < case.withdrawn_us:
            return None  # of one instant nobody says which was first
        if case.withdrawn_us > self._held_until(case):
            return self._lost_before_it_withdrew(case) if self.lossy else None
        for each in self.away.get(case.client, ()):
            if each.from_us <= case.withdrawn_us and each.until_us + self.limit_us >= case.published_us:
                return Excuse(f"{case.client} had been away, and withdrew before the event had its turn")
        if self.lossy:
            return self._lost_before_it_withdrew(case)
        return self._held_up(case) or self._behind_others(case)

    def _given_up(self, case: Case) -> Excuse | None:
        if self.words is None or not self.words.tells_of(case):
            return None
        silences = [(each.from_us, each.until_us) for each in self.away.get(case.client, ())]
        silences += [(window.from_us, window.carried_us) for window in self._on_the_way(case)]
        return self.words.explain(case, joined(silences), self._held_up_since_us(case))

    def _held_up_since_us(self, case: Case) -> int:
        """From when on faults of others may have held events up that came to a broker after this one."""
        stretches = joined(
            (window.from_us, window.carried_us + self.limit_us)
            for window in self.windows
            if not window.is_about(case.client)
        )
        held_up = (from_us for from_us, until_us in stretches if from_us <= case.published_us <= until_us)
        return next(held_up, case.published_us)

    def _on_the_way(self, case: Case) -> list[Window]:
        """What may have kept the publishers' broker from hearing of the client."""
        ends = case.publisher, case.client
        if ends not in self._ways:
            self._ways[ends] = self._between(case)
        return self._ways[ends]

    def _between(self, case: Case) -> list[Window]:
        brokers, end = self._brokers_of(case), self._end_of(case)
        publishers = self._takers(case) if end is None else end.names
        nodes = {case.client, *brokers, *publishers}
        if self.by_links:
            links = (link for overlay in self.overlays for link in overlay.links if self.homes.keys().isdisjoint(link))
            neighbours = neighbours_of(links)
            nodes = nodes.union(*(lying_between(*ends, neighbours) for ends in itertools.product(brokers, publishers)))
        ways = [*itertools.product(brokers, publishers), *((case.client, broker) for broker in brokers)]
        return [
            window
            for window in self.windows
            if nodes & window.nodes
            or any(window.separates(*ends) for ends in ways)
            or ((self.by_links or not window.step.groups) and any(link <= nodes for link in window.links))
        ]

    def _died_before_it_had_subscribed(self, case: Case) -> Excuse | None:
        """Nobody but the client knows of a subscription that has not settled. If it dies, it has to begin anew."""
        if case.issued_us is None:
            return None
        first_us = self._settled_us(case.issued_us)
        for window in self.windows:
            if window.kills and case.client in window.nodes and case.issued_us <= window.in_effect_us:
                if window.from_us <= first_us and case.published_us <= self._back_again_us(case.client, window):
                    return Excuse(f"{window.step.text}: its subscription had not settled")
        return None

    def _begun_anew(self, case: Case) -> Excuse | None:
        """A broker that was killed subscribes again. All that may publish have to hear of that, also those that were
        away when it came back."""
        for window in self.windows:
            if window.kills and case.client in window.nodes and window.from_us < case.due_in_order_us:
                if case.published_us <= self._settled_us(window.repaired_us):
                    return Excuse(f"{window.step.text}: its subscriptions begin anew, and had not settled")
        return None

    def _settled_us(self, issued_us: int) -> int:
        """When what had been asked for by that time had settled."""
        return min((time_us for time_us, covers_us in self.settled if covers_us >= issued_us), default=NEVER_US)

    def _back_again_us(self, client: str, kill: Window) -> int:
        """By when a client that had died has begun anew: it may run again, and be cut off still."""
        away = [each for each in self.away.get(client, ()) if each.from_us <= kill.undone_us <= each.until_us]
        return max([kill.until_us, *(each.until_us for each in away)])

    def _died_before_it_had_recorded(self, case: Case, delivered_us: int | None) -> Excuse | None:
        about = [window for window in self.windows if case.client in window.nodes]
        for window in about:
            if not window.kills or delivered_us is None:
                continue
            since_us = window.from_us - RECORDED_US
            for other in about:  # while it is held up it records nothing
                if not other.kills and other.from_us <= window.from_us and other.undone_us >= since_us:
                    since_us = min(since_us, other.from_us - RECORDED_US)
            if since_us <= delivered_us <= window.in_effect_us:
                return Excuse(f"{window.step.text}: it had not recorded what it was delivered")
        return None
