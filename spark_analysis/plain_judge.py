"""The judge in the plainest Python: the rules of `spark_analysis.judge`, pair by pair, without Spark and without Java.

It reads the journal file by file and evaluates filters with `Filter.matches`, so that it shares neither matching nor
aggregation with the judge on Spark; what excuses a finding, and what the verdict is, the two work out with the same
code. Its cost is that of every event against every subscriber: it is for runs of thousands of events.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from murmur_pubsub.event import fingerprint_of, unpack_attributes
from murmur_pubsub.journal import NONE, RowKind
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.run_manifest import RunManifest, read_manifest
from spark_analysis.causes import Causes, causes_of, links_up
from spark_analysis.changing_overlay import AnyExcuses, excuses_of, overlays_of
from spark_analysis.connections import Connections, LinkRow
from spark_analysis.durable_connections import connections_of
from spark_analysis.excuses import NEVER_OUT, Case, Excuse
from spark_analysis.expectations import check_expectations, measured
from spark_analysis.fault_checks import ISSUED_ROWS, FaultCheck, check_commands, check_faults, check_orders
from spark_analysis.fault_plan import kills_of, steps_of, windows_of
from spark_analysis.fault_windows import NEVER_US, Window
from spark_analysis.given_up import REFUSED_AND_DELIVERED, TOPICS, ToldRow, refused_events
from spark_analysis.history import History, Life, read_history
from spark_analysis.journal_check import find_damage
from spark_analysis.passages import PASSAGE_KINDS, HopRow, Passage, passage_of
from spark_analysis.recovery import recovered, repairs_of, tell_unsettled, unsettled_after, unsettled_change
from spark_analysis.rules import Rules, rules_of
from spark_analysis.verdict import COUNTS, Facts, RefusedDelivered, decide, decide_damaged, tell_conjured

Pair = tuple[tuple[int, int], int]
"""(event id, subscriber)."""


@dataclass(slots=True)
class PlainVerdict:
    """Pairs by finding, as often as it counts; `delivered` are all pairs delivered, `first_us` when.

    `required_until_us`: when the subscription that requires the pair was withdrawn (`NEVER_US`: it was not), and
    `issued_us`: when the first such one was issued. `early`: spurious pairs whose event is older than the subscription.
    `after`: of those out of order, the last of the publisher's events that had been delivered before it. `made_by`: the
    node of a misplaced delivery. `refused`: spurious pairs whose event was refused.
    """

    missing: list[Pair] = field(default_factory=list)
    duplicate: list[Pair] = field(default_factory=list)
    spurious: list[Pair] = field(default_factory=list)
    out_of_order: list[Pair] = field(default_factory=list)
    misplaced: list[Pair] = field(default_factory=list)
    altered: list[Pair] = field(default_factory=list)
    delivered: frozenset[Pair] = frozenset()
    required_until_us: dict[Pair, int] = field(default_factory=dict)
    issued_us: dict[Pair, int] = field(default_factory=dict)
    first_us: dict[Pair, int] = field(default_factory=dict)
    early: set[Pair] = field(default_factory=set)
    after: dict[Pair, int] = field(default_factory=dict)
    made_by: dict[Pair, int] = field(default_factory=dict)
    refused: set[Pair] = field(default_factory=set)

    @property
    def required_pairs(self) -> frozenset[Pair]:
        """The pairs that had to be delivered."""
        return frozenset(self.required_until_us)

    @property
    def required(self) -> int:
        """How many pairs were required."""
        return len(self.required_until_us)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """missing, duplicate, spurious, out of order; misplaced and altered ones count as spurious here."""
        stray = len(self.spurious) + len(self.misplaced) + len(self.altered)
        return len(self.missing), len(self.duplicate), stray, len(self.out_of_order)


def judge_plainly(journal: Path, grace_us: int = 100_000, subscription_grace_us: int = 1_000_000) -> PlainVerdict:
    """Judge the journal folder of one run whose graces are these."""
    return judge_history(read_history(journal), Rules(grace_us, subscription_grace_us))


def _is_alive(life: Life, published_us: int, rules: Rules) -> bool:
    """Was the subscription not withdrawn, with the withdrawal settled a grace ago, when the event was published?"""
    ended_us = min(life.withdrawal_settled_us, life.withdrawn_us + rules.recovery_limit_us)
    return published_us <= ended_us + rules.withdrawal_grace_us


def _may_get(held: Sequence[Life], published_us: int, delivered_us: int, rules: Rules) -> bool:
    """Does one of the subscriptions allow the delivery?"""
    return published_us - rules.clocks_us <= delivered_us and any(
        _is_alive(life, published_us, rules)
        and (rules.keeps_events or life.issued_us <= published_us + rules.subscription_grace_us)
        and life.issued_us <= delivered_us
        for life in held
    )


def judge_history(history: History, rules: Rules) -> PlainVerdict:
    """The same of a history that was read."""
    verdict = PlainVerdict()
    matching: dict[Pair, list[Life]] = {}
    all_lives = [
        (subscriber, life, life.wanted.matches) for subscriber, lives in history.lives.items() for life in lives
    ]
    for event, (published_us, blob) in history.events.items():
        attributes = unpack_attributes(blob)
        held_by: dict[int, list[Life]] = {}
        for subscriber, life, matches in all_lives:
            if matches(attributes):
                held_by.setdefault(subscriber, []).append(life)
        before_us = published_us + rules.withdrawal_grace_us
        for subscriber, held in held_by.items():
            matching[event, subscriber] = held
            requiring = [life for life in held if life.settled_us < published_us and before_us < life.withdrawn_us]
            if requiring:
                until_us = max(life.withdrawn_us for life in requiring)
                verdict.required_until_us[event, subscriber] = int(min(until_us, NEVER_US))
                verdict.issued_us[event, subscriber] = min(life.issued_us for life in requiring)
    refused = refused_events(_told(history)) if rules.durable else frozenset()
    counted: Counter[Pair] = Counter()
    latest: dict[tuple[int, int], int] = {}
    orders: dict[int, list[tuple[int, int]]] = defaultdict(list)
    fingerprints = {event: fingerprint_of(*known) for event, known in history.events.items()}
    homes = {subscriber: {life.node for life in lives} for subscriber, lives in history.lives.items()}
    for row in history.rows.of(RowKind.DELIVER):
        pair = ((row.source, row.sequence), row.value)
        held = matching.get(pair, [])
        known = history.events.get(pair[0])
        if known is not None and fingerprints[pair[0]] != row.bytes:
            verdict.altered.append(pair)
            continue
        if known is not None and row.node not in homes.get(row.value, (row.node,)):
            verdict.misplaced.append(pair)
            verdict.made_by[pair] = row.node
            continue
        counted[pair] += 1
        if counted[pair] == 1 or not held:
            if known and pair[0] in refused:
                verdict.spurious.append(pair)
                verdict.refused.add(pair)
            elif not known or not _may_get(held, known[0], row.time_us, rules):
                verdict.spurious.append(pair)
                foretold = known is not None and row.time_us < known[0] - rules.clocks_us
                issued = [life for life in held if life.issued_us <= row.time_us]
                if known and not foretold and any(_is_alive(life, known[0], rules) for life in issued):
                    verdict.early.add(pair)
        if held and counted[pair] == 1:
            verdict.first_us[pair] = row.time_us
            orders[row.value].append(pair[0])
            stream = (row.value, row.source)
            if row.sequence < latest.get(stream, -1):
                verdict.out_of_order.append(pair)
                verdict.after[pair] = latest[stream]
            latest[stream] = max(latest.get(stream, -1), row.sequence)
    if rules.total_order:
        verdict.out_of_order = sorted({*verdict.out_of_order, *_disordered(orders)})
    verdict.delivered = frozenset(pair for pair in counted if pair in matching)
    verdict.missing = sorted(verdict.required_pairs - verdict.delivered)
    again = (pair for pair, count in counted.items() if pair in matching for _ in range(count - 1))
    verdict.duplicate = sorted(again)
    return verdict


def _disordered(orders: Mapping[int, Sequence[tuple[int, int]]]) -> Iterator[Pair]:
    """What a subscriber got after an event that another one got later than it; `orders`: what each got, in order."""
    places = {reader: {event: place for place, event in enumerate(events)} for reader, events in orders.items()}
    for reader, other in itertools.permutations(orders, 2):
        latest = -1
        for event in orders[reader]:
            place = places[other].get(event, latest)
            if place < latest:
                yield event, reader
            latest = max(latest, place)


# ------------------------------------------------------------------------------------------- whole runs
@dataclass(frozen=True, slots=True)
class Judgement:
    """`numbers` are those of `murmur analyze --json`. `pairs`: the findings. `excused`: those that a fault excuses, by
    finding and pair. `checks`: whether each fault took effect. `windows`: when each was in force."""

    numbers: Mapping[str, Any]
    pairs: PlainVerdict
    excused: Mapping[tuple[str, Pair], Excuse]
    checks: Sequence[FaultCheck]
    windows: Sequence[Window] = ()

    def left(self, finding: str) -> list[Pair]:
        """The pairs of that finding that nothing excuses."""
        return [pair for pair in getattr(self.pairs, finding) if (finding, pair) not in self.excused]

    def first_findings(self, count: int) -> list[str]:
        """Up to `count` of what weighs most in the verdict, in words; none of a run that is valid."""
        finding = self.numbers["finding"]
        if finding not in COUNTS or self.numbers["verdict"] != "invalid":
            return []
        listed = itertools.islice(self.left(finding), count)
        return [self._words(finding, pair) for pair in listed]

    def _words(self, finding: str, pair: Pair) -> str:
        (source, number), reader = pair
        why = f": {REFUSED_AND_DELIVERED}" if finding == "spurious" and pair in self.pairs.refused else ""
        return f"{finding.replace('_', ' ')}: event {source}:{number} for subscriber {reader}{why}"


def judge_run(run: Path) -> Judgement:
    """Judge a run folder; raises `InputError` for one that cannot be read."""
    manifest = read_manifest(run)
    place = manifest.journal_at(run)
    damages = find_damage(store_at(place), manifest)
    if damages:
        return Judgement(decide_damaged(damages), PlainVerdict(), {}, ())
    return judge_journal(manifest, place)


def judge_journal(manifest: RunManifest, journal: Path | str) -> Judgement:
    """Judge what is in the journal, without a look at whether that is all."""
    return judgement_of(manifest, read_history(journal))


def judgement_of(manifest: RunManifest, history: History) -> Judgement:
    """The judgement of a run with this history."""
    pairs = judge_history(history, rules_of(manifest))
    last_us = history.rows.last_us
    faults = history.rows.of(RowKind.FAULT)
    times = {(row.sequence, row.hops): row.time_us for row in faults}
    settled = _settlings(history)
    answers = {row.sequence: (row.time_us, row.value) for row in history.rows.of(RowKind.ANSWER)}
    steps = steps_of(manifest, times, answers)
    windows = windows_of(manifest, steps, settled)
    checked = history.rows.checked(_involved(windows, manifest))
    checks = check_faults(windows, checked, manifest.numbers, last_us, manifest.datagram_kinds)
    issued = [(row.kind, row.source, row.time_us) for row in history.rows.of(*ISSUED_ROWS.values())]
    checks += [*check_orders(steps, answers), *check_commands(steps, windows, issued)]
    checks.sort(key=lambda check: check.step)
    if manifest.promise.excuses_by_connection:
        rows_of_links, overlays = list(link_rows(history, manifest)), overlays_of(manifest.links, steps)
        explainer: AnyExcuses | Connections = connections_of(
            manifest, rows_of_links, settled, windows, overlays, last_us, _told(history),
            sorted(time_us for time_us, _ in history.events.values()),
            lambda: {life.node for lives in history.lives.values() for life in lives},
        )  # fmt: skip
    else:
        explainer = excuses_of(manifest, windows, steps)
    secret = None if isinstance(explainer, Connections) or not windows else _conjured(history, manifest)
    excused = _excused(history, manifest, pairs, explainer) if secret is None else {}
    repairs = repairs_of(windows, manifest.recovery_limit_us)
    required = ((history.events[pair[0]][0], pairs.first_us.get(pair, NEVER_US)) for pair in pairs.required_until_us)
    recovery, late = recovered(required, repairs)
    unsettled = unsettled_after(windows, last_us, manifest.recovery_limit_us) if manifest.has_links else None
    changes_us = {at_us for lives in history.lives.values() for life in lives for at_us in life.changes_us}
    change_us = unsettled_change(changes_us, settled, windows, last_us, manifest.recovery_limit_us)
    counts = {name: len(getattr(pairs, name)) for name in COUNTS}
    counts |= {"required": pairs.required, "delivered": len(pairs.delivered), "published": len(history.events)}
    explained = Counter(name for name in COUNTS for pair in getattr(pairs, name) if (name, pair) in excused)
    p99_us = delay_quantile_us(history, pairs, 0.99)
    longest_us = max(recovery.values(), default=None)
    facts = Facts(
        manifest.completeness,
        counts,
        manifest.promise,
        explained,
        sum(excuse.by_tables for excuse in excused.values()),
        Counter(check.outcome for check in checks),
        check_expectations(manifest.expect, measured(counts, explained, p99_us, longest_us)),
        late,
        tell_unsettled(change_us) if unsettled is None else unsettled.step.text,
        manifest.recovery_limit_us,
        longest_us,
        secret,
        _causes(history, manifest, pairs) if manifest.promise.durable else Causes(),
        manifest.by_themselves,
        kills_of(manifest, steps),
        _refused_delivered(history, pairs, excused),
    )
    return Judgement(decide(facts), pairs, excused, checks, windows)


def _involved(windows: Sequence[Window], manifest: RunManifest) -> frozenset[int]:
    """The nodes that a fault is about, or one of its links."""
    names = {name for window in windows for each in (window.nodes, *window.links) for name in each}
    return frozenset(manifest.numbers[name] for name in names)


def delay_quantile_us(history: History, pairs: PlainVerdict, part: float) -> float | None:
    """The smallest delay of a delivery that is no shorter than this part of all, four digits kept as Spark's tables do;
    None: nothing was delivered."""
    delays = sorted(at_us - history.events[event][0] for (event, _), at_us in pairs.first_us.items())
    if not delays:
        return None
    at_us = max(0, delays[max(0, math.ceil(len(delays) * part - 1))])
    unit = 10 ** max(0, len(str(at_us)) - 4)
    return float(at_us - at_us % unit)


def _conjured(history: History, manifest: RunManifest) -> str | None:
    """See `findings.conjured`."""
    rows = history.rows
    carried = rows.ids(RowKind.SEND, RowKind.DELIVER) - rows.ids(RowKind.PUBLISH, RowKind.RECEIVE)
    out_of_nowhere = [(source, sequence, node) for sequence, node, source in carried if sequence != NONE]
    if not out_of_nowhere or not rows.has(RowKind.RECEIVE):
        return None
    source, sequence, node = min(out_of_nowhere)
    return tell_conjured(manifest.nodes[node].name, source, sequence)


def _settlings(history: History) -> list[tuple[int, int]]:
    return [(row.time_us, row.value) for row in history.rows.of(RowKind.SETTLED)]


def link_rows(history: History, manifest: RunManifest) -> Iterator[LinkRow]:
    """The rows of links that came and went, with the names of their ends."""
    names = [node.name for node in manifest.nodes]
    for row in history.rows.of(RowKind.LINK_UP, RowKind.LINK_DOWN):
        yield row.time_us, row.kind, names[row.node], names[row.peer]


def _causes(history: History, manifest: RunManifest, pairs: PlainVerdict) -> Causes:
    ups_us = links_up(link_rows(history, manifest), manifest.homes, manifest.numbers)
    homes = {subscriber: lives[0].node for subscriber, lives in history.lives.items()}
    found = (
        (homes[reader], history.events[event][0], first_us) for (event, reader), first_us in pairs.first_us.items()
    )
    return causes_of(found, ups_us)


def _refused_delivered(
    history: History, pairs: PlainVerdict, excused: Mapping[tuple[str, Pair], Excuse]
) -> RefusedDelivered | None:
    events = [
        (history.events[event][0], event)
        for event, reader in pairs.spurious
        if (event, reader) in pairs.refused and ("spurious", (event, reader)) not in excused
    ]
    if not events:
        return None
    published_us, event = min(events)
    return RefusedDelivered(len(events), published_us, *event)


def _told(history: History) -> list[ToldRow]:
    told = (row for row in history.rows.of(RowKind.PROTOCOL) if row.bytes in TOPICS)
    return [ToldRow(row.time_us, row.bytes, row.node, row.source, row.sequence, row.value) for row in told]


def _excused(
    history: History, manifest: RunManifest, pairs: PlainVerdict, explainer: AnyExcuses | Connections
) -> dict[tuple[str, Pair], Excuse]:
    names = [node.name for node in manifest.nodes]
    published = history.rows.of(RowKind.PUBLISH)
    where = {(row.source, row.sequence): names[row.node] for row in published}
    wrong = {finding: getattr(pairs, finding) for finding in COUNTS}
    later = {pair: (pair[0][0], sequence) for pair, sequence in pairs.after.items()}
    about = {pair[0] for listed in wrong.values() for pair in listed}
    passages = _passages(history, about.union(later.values()), names)
    overtaken = _overtakings(pairs)
    excused = {}
    for finding, listed in wrong.items():
        for pair in listed:
            event, subscriber = pair
            lives = history.lives.get(subscriber)
            if event not in history.events or not lives:
                continue
            if event not in where:
                excused[finding, pair] = NEVER_OUT
                continue
            until_us = pairs.required_until_us.get(pair, NEVER_US)
            case = Case(
                finding, where[event], names[pairs.made_by.get(pair, lives[0].node)], history.events[event][0],
                pairs.first_us.get(pair), overtaken.get(pair), None if until_us == NEVER_US else until_us,
                finding == "spurious" and pair in pairs.early, pairs.issued_us.get(pair), event,
                passages[later[pair]] if finding == "out_of_order" and pair in later else None,
            )  # fmt: skip
            excuse = explainer.explain(case, passages[event])
            if excuse is not None:
                excused[finding, pair] = excuse
    return excused


def _passages(
    history: History, events: Iterable[tuple[int, int]], names: Sequence[str]
) -> dict[tuple[int, int], Passage]:
    rows: dict[tuple[int, int], list[HopRow]] = {event: [] for event in events}
    if rows:
        for row in history.rows.about(rows, *PASSAGE_KINDS):
            rows[row.source, row.sequence].append((row.time_us, row.kind, row.node, row.peer, row.value))
    hops = history.rows.has(RowKind.RECEIVE)
    return {event: passage_of(listed, names, hops) for event, listed in rows.items()}


def _overtakings(pairs: PlainVerdict) -> dict[Pair, int]:
    """When each subscriber first got a later event of the publisher, of the pairs that are missing or came after it."""
    streams: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for (event, subscriber), at_us in pairs.first_us.items():
        streams[subscriber, event[0]].append((event[1], at_us))
    found = {}
    for pair in (*pairs.missing, *pairs.out_of_order):
        (source, sequence), subscriber = pair
        later = [at_us for number, at_us in streams.get((subscriber, source), []) if number > sequence]
        if later:
            found[pair] = min(later)
    return found
