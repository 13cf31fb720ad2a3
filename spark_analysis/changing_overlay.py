"""The overlay of a run as its links came and went, and what excuses a finding where they did.

An event is judged by every overlay that was there while it may have been on its way. So where brokers are connected and
disconnected faster than that, it has several ways, and a loss at a fault on any of them is excused.

Once a broker was ordered to do something, such as to move to another place, ways are no longer known from the links
alone: from then on the event may have had several, as on an overlay with cycles.
"""

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from murmur_pubsub.dead_nodes import Dead
from murmur_pubsub.faults import RECONFIGURES, FaultKind, link_key
from murmur_pubsub.promise import Promise
from murmur_pubsub.run_manifest import RunManifest
from spark_analysis.excuses import IN_HAND_US, Case, Excuse, Excuses
from spark_analysis.fault_windows import FaultStep, Window
from spark_analysis.passages import ON_THE_WAY_US, Passage

Links = Sequence[tuple[str, str]]


class OverlayAt(NamedTuple):
    """The links that there were from a time on, and whether they alone say which way an event goes."""

    from_us: int
    links: Links
    fixed_ways: bool


def overlays_of(links: Links, steps: Sequence[FaultStep]) -> list[OverlayAt]:
    """The overlays of a run that began with these links, in order of time. A link to a dead broker is none before that
    one is back: until then nobody but its other end can know of it."""
    there = {link_key(*ends): ends for ends in links}
    coming: dict[tuple[str, str], tuple[str, str]] = {}
    dead = Dead()
    found = [OverlayAt(0, links, True)]
    for step in steps:
        if step.ordered_us is None:
            continue
        dead.hit_by(step)
        if step.kind is FaultKind.CONNECT:
            coming[link_key(*step.nodes)] = (step.nodes[0], step.nodes[1])
        elif step.kind is FaultKind.DISCONNECT:
            there.pop(link_key(*step.nodes), None)
            coming.pop(link_key(*step.nodes), None)
        come = [key for key, ends in coming.items() if dead.names.isdisjoint(ends)]
        there |= {key: coming.pop(key) for key in come}
        if come or step.kind in (*RECONFIGURES, FaultKind.ORDER):
            fixed_ways = found[-1].fixed_ways and step.kind is not FaultKind.ORDER
            found.append(OverlayAt(step.ordered_us, tuple(there.values()), fixed_ways))
    return found


@dataclass(slots=True)
class ChangingExcuses:
    """Explains findings as `Excuses` does; the fields are those of it, but for the overlays."""

    windows: Sequence[Window]
    overlays: Sequence[OverlayAt]
    homes: Mapping[str, str]
    promise: Promise
    limit_us: int
    has_links: bool = True
    """Do brokers have links at all? Else none leads anywhere, and that is no excuse."""
    _excuses: dict[int, Excuses] = field(default_factory=dict)
    """By the place of the overlay; made when one is asked."""

    def explain(self, case: Case, passage: Passage) -> Excuse | None:
        """The fault that excuses the finding, or None."""
        until_us = case.published_us + ON_THE_WAY_US
        if passage.hops:
            lost_us = [loss.time_us for loss in passage.lost]
            until_us = max(case.published_us, *passage.had.values(), *lost_us, 0) + IN_HAND_US
        begins = [each.from_us for each in self.overlays]
        first, last = bisect.bisect(begins, case.published_us) - 1, bisect.bisect(begins, until_us)
        for place in range(max(0, first), last):
            excuse = self._over(place).explain(case, passage)
            if excuse is not None:
                return excuse
        if case.finding in ("duplicate", "out_of_order"):
            for window in self.windows:  # what came by the old way may come by the new one too, or be overtaken there
                if window.step.kind in RECONFIGURES and window.in_force(case.published_us, until_us):
                    return Excuse(f"{window.step.text}: the event had two ways", by_tables=True)
        return None

    def _over(self, place: int) -> Excuses:
        if place not in self._excuses:
            _, links, fixed_ways = self.overlays[place]
            self._excuses[place] = Excuses(
                self.windows, links, self.homes, self.promise, self.limit_us, fixed_ways, self.has_links
            )
        return self._excuses[place]


AnyExcuses = Excuses | ChangingExcuses


def excuses_of(manifest: RunManifest, windows: Sequence[Window], steps: Sequence[FaultStep]) -> AnyExcuses:
    """What explains the findings of a run whose promise is not excused by connection alone."""
    overlays = overlays_of(manifest.links, steps)
    homes, promise, limit_us = manifest.homes, manifest.promise, manifest.recovery_limit_us
    if len(overlays) == 1:
        return Excuses(windows, manifest.links, homes, promise, limit_us)
    return ChangingExcuses(windows, overlays, homes, promise, limit_us, manifest.has_links)
