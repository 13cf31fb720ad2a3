"""What the journal of a run under best effort or exactly once says of its messages and deliveries.

A question of a subscribers' broker (`CatchUp`) that was answered with an event counts as asked for again, with its
answer; one that found nothing new is one at rest. Which it was is told by what the publishers' broker sent to the one
that asked before its next question: there is one client at each broker, and one pubend at a publishers' broker.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import RowKind
from murmur_pubsub.message import kind_of
from reliability.best_effort import Forwarded
from reliability.durable.messages import CatchUp, Caught, CaughtUp, Enlist, Enlisted, Release, Released
from reliability.end_to_end.messages import Carried, Reminder

Rows = np.ndarray[Any, Any]
Pair = tuple[tuple[int, int], int]
"""(publisher and number of the event, subscriber)."""

CARRIED, AGAIN, AT_REST = "carried by routing", "asked for again", "questions at rest"
ACKNOWLEDGED, ENLISTED, OWN = "acknowledgements", "subscriptions recorded", "routing's own"
_KINDS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    (CARRIED, (Forwarded, Carried)),
    (AGAIN, (Caught,)),
    (ACKNOWLEDGED, (Release, Released, Reminder)),
    (ENLISTED, (Enlist, Enlisted)),
)
STAYED, CAME_BACK, GONE = "both stayed", "came back", "one is gone"
FATES = (STAYED, CAME_BACK, GONE)
_PAIR_BITS = 40
"""Of a time in microseconds: above it is the pair of brokers."""


@dataclass(frozen=True, slots=True)
class Course:
    """A run's rows, by node number whether it is a broker, and the time that is measured."""

    rows: Rows
    is_broker: Rows
    begins_us: int
    ends_us: int

    def measured(self, rows: Rows) -> Rows:
        """Those of the rows that are of the measured time."""
        return rows[(rows["time_us"] >= self.begins_us) & (rows["time_us"] < self.ends_us)]


class Delivered(NamedTuple):
    """Of the deliveries of what was published in the measured time: each subscriber's first."""

    deliveries: int
    hops: float
    mean_ms: float
    p99_ms: float


def count_messages(course: Course) -> tuple[Counter[str], Counter[str]]:
    """Messages that brokers sent each other in the measured time, by kind, and their bytes."""
    rows = course.rows
    sent = rows[(rows["kind"] == RowKind.SEND) & (rows["peer"] >= 0)]
    sent = sent[course.is_broker[sent["node"]] & course.is_broker[sent["peer"]]]
    kinds = np.full(len(sent), OWN, dtype=object)
    for name, classes in _KINDS:
        kinds[np.isin(sent["value"], [kind_of(each) for each in classes])] = name
    asked = np.isin(sent["value"], [kind_of(CatchUp), kind_of(CaughtUp)])
    kinds[asked] = np.where(brought_something(sent)[asked], AGAIN, AT_REST)
    inside = (sent["time_us"] >= course.begins_us) & (sent["time_us"] < course.ends_us)
    counts: Counter[str] = Counter(kinds[inside].tolist())
    sizes: Counter[str] = Counter()
    for name in counts:
        sizes[name] = int(sent["bytes"][inside & (kinds == name)].sum())
    return counts, sizes


def brought_something(sent: Rows) -> Rows:
    """Of each of these rows: is it a question that was answered with an event, or belongs it to such a one?"""
    from_asker = sent["value"] == kind_of(CatchUp)
    asker = np.where(from_asker, sent["node"], sent["peer"]).astype(np.int64)
    asked = np.where(from_asker, sent["peer"], sent["node"]).astype(np.int64)
    keys = ((asker << 20 | asked) << _PAIR_BITS) + sent["time_us"]
    questions = np.sort(keys[from_asker])
    if not len(questions):
        return np.zeros(len(sent), dtype=bool)
    place = np.maximum(0, np.searchsorted(questions, keys, "right") - 1)
    follows = (questions[place] <= keys) & (questions[place] >> _PAIR_BITS == keys >> _PAIR_BITS)
    fruitful = np.zeros(len(questions), dtype=bool)
    fruitful[place[follows & (sent["value"] == kind_of(Caught))]] = True
    found: Rows = follows & fruitful[place]
    return found


def measure_deliveries(course: Course) -> Delivered:
    """Their number, mean hops, and delays from publication to delivery at the subscriber's client."""
    rows = course.rows
    published = course.measured(rows[rows["kind"] == RowKind.PUBLISH])
    at_us = {(int(row["source"]), int(row["sequence"])): int(row["time_us"]) for row in published}
    delivered = rows[rows["kind"] == RowKind.DELIVER]
    delivered = delivered[np.argsort(delivered["time_us"], kind="stable")]
    seen: set[tuple[int, int, int]] = set()
    delays, hops = [], 0
    for row in delivered[["source", "sequence", "value", "time_us", "hops"]].tolist():
        event = row[:2]
        if event in at_us and row[:3] not in seen:
            seen.add(row[:3])
            delays.append(row[3] - at_us[event])
            hops += row[4]
    if not delays:
        return Delivered(0, 0.0, 0.0, 0.0)
    found = np.array(delays) / 1e3
    return Delivered(len(delays), hops / len(delays), float(found.mean()), float(np.percentile(found, 99)))


def fate_of_brokers(deployment: Deployment) -> dict[str, str]:
    """Of each broker: has it stayed, did it come back, or is it gone when the plan is over?"""
    fates = {spec.name: STAYED for spec in deployment.nodes if spec.role == "broker"}
    fates |= dict.fromkeys(deployment.start_down, GONE)
    for fault in deployment.faults:
        if fault.kind in (FaultKind.KILL, FaultKind.RESTART):
            fates[fault.nodes[0]] = GONE if fault.kind is FaultKind.KILL else CAME_BACK
    return fates


def count_by_fate(
    deployment: Deployment, rows: Rows, required: Collection[Pair], missing: Collection[Pair]
) -> Mapping[str, tuple[int, int]]:
    """Required deliveries and those of them that were made, by what became of publisher's and subscriber's brokers."""
    fates, specs = fate_of_brokers(deployment), deployment.nodes
    published = rows[rows["kind"] == RowKind.PUBLISH]
    publishers = {int(row["source"]): specs[row["node"]].broker for row in published[["source", "node"]]}
    homes = {spec.name: spec.broker for spec in specs if spec.broker is not None}
    subscribers = {
        subscriber: homes[name] for name, script in deployment.scripts.items() for subscriber, _ in script.subscriptions
    }
    found, lost = Counter[str](), set(missing)
    made: Counter[str] = Counter()
    for pair in required:
        (source, _), subscriber = pair
        both = [fates[str(broker)] for broker in (publishers[source], subscribers[subscriber])]
        fate = max(both, key=FATES.index)
        found[fate] += 1
        made[fate] += pair not in lost
    return {fate: (found[fate], made[fate]) for fate in FATES}
