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
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import NONE, RowKind, SideKind, files_in_order, read_side, written_rows
from murmur_pubsub.journal_format import ROW, JournalRow
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.run_manifest import RunManifest, read_manifest
from spark_analysis.causes import Causes, causes_of, links_up
from spark_analysis.changing_overlay import AnyExcuses, excuses_of, overlays_of
from spark_analysis.checked_rows import CheckedRow, CheckedRows
from spark_analysis.connections import Connections
from spark_analysis.durable_connections import connections_of
from spark_analysis.excuses import Case, Excuse
from spark_analysis.expectations import check_expectations, measured
from spark_analysis.fault_checks import ISSUED_ROWS, FaultCheck, check_commands, check_faults, check_orders
from spark_analysis.fault_plan import steps_of, windows_of
from spark_analysis.fault_windows import NEVER_US, Window
from spark_analysis.given_up import REFUSED_AND_DELIVERED, TOPICS, ToldRow, refused_events
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
    `made_by`: the node of a misplaced delivery. `refused`: spurious pairs whose event was refused.
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


@dataclass(frozen=True, slots=True)
class _Life:
    wanted: Filter
    node: int
    issued_us: int
    settled_us: float
    withdrawn_us: float
    withdrawal_settled_us: float

    @property
    def changes_us(self) -> list[int]:
        """When the subscription was issued, and withdrawn if it was."""
        return [int(time_us) for time_us in (self.issued_us, self.withdrawn_us) if time_us != float("inf")]


@dataclass(slots=True)
class History:
    """What a journal says. `events`: id to (publication time, packed attributes). `lives`: of each subscriber's
    subscriptions. `rows`: those of a node in the order in which they were written."""

    events: dict[tuple[int, int], tuple[int, bytes]]
    lives: dict[int, list[_Life]]
    rows: Sequence[JournalRow]

    def of(self, *kinds: RowKind) -> list[JournalRow]:
        """The rows of these kinds."""
        return [row for row in self.rows if row.kind in kinds]

    @property
    def checked(self) -> CheckedRows:
        """Those that checks of faults look at."""
        return CheckedRows.of(
            CheckedRow(row.time_us, row.node, row.source, row.sequence, row.peer, row.kind, row.value)
            for row in self.rows
        )


def read_history(journal: Path) -> History:
    """The history in the journal folder of one run."""
    rows: list[JournalRow] = []
    for path in files_in_order(journal, "seg"):
        rows += map(JournalRow._make, ROW.iter_unpack(written_rows(str(path), path.read_bytes())[1]))
    settlings = sorted((row.value, row.time_us) for row in rows if row.kind == RowKind.SETTLED)

    def settled_at(time_us: float) -> float:
        return min((at for value, at in settlings if value >= time_us), default=float("inf"))

    events: dict[tuple[int, int], tuple[int, bytes]] = {}
    issued: dict[tuple[int, str], list[list[Any]]] = defaultdict(list)
    for kind, fields in _side_records(journal):
        if kind is SideKind.EVENT:
            events.setdefault((fields[0], fields[1]), (fields[2], fields[3]))
        elif kind is SideKind.SUBSCRIBE:
            issued[fields[2], fields[3]].append([fields[1], fields[0], float("inf")])
        else:
            held = [span for span in issued[fields[2], fields[3]] if span[2] == float("inf")]
            if held:
                held[0][2] = fields[0]
    lives: dict[int, list[_Life]] = defaultdict(list)
    for (subscriber, text), spans in issued.items():
        for node, begin, end in spans:
            life = _Life(parse_filter(text), node, begin, settled_at(begin), end, settled_at(end))
            lives[subscriber].append(life)
    return History(events, lives, rows)


def _side_records(journal: Path) -> Iterator[tuple[SideKind, list[Any]]]:
    """All records, but for subscriptions that a client issued again after a restart."""
    known = set()
    for path in files_in_order(journal, "blob"):
        for kind, fields in read_side(path):
            if kind is SideKind.ANSWER:
                continue
            if kind is not SideKind.EVENT and fields[4] != NONE:
                if (fields[1], fields[4]) in known:
                    continue
                known.add((fields[1], fields[4]))
            yield kind, fields


def judge_plainly(journal: Path, grace_us: int = 100_000, subscription_grace_us: int = 1_000_000) -> PlainVerdict:
    """Judge the journal folder of one run whose graces are these."""
    return judge_history(read_history(journal), Rules(grace_us, subscription_grace_us))


def _is_alive(life: _Life, published_us: int, rules: Rules) -> bool:
    """Was the subscription not withdrawn, with the withdrawal settled a grace ago, when the event was published?"""
    ended_us = min(life.withdrawal_settled_us, life.withdrawn_us + rules.recovery_limit_us)
    return published_us <= ended_us + rules.withdrawal_grace_us


def _may_get(held: Sequence[_Life], published_us: int, delivered_us: int, rules: Rules) -> bool:
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
    matching: dict[Pair, list[_Life]] = {}
    for event, (published_us, blob) in history.events.items():
        attributes = unpack_attributes(blob)
        for subscriber, lives in history.lives.items():
            held = [life for life in lives if life.wanted.matches(attributes)]
            if held:
                matching[event, subscriber] = held
            before_us = published_us + rules.withdrawal_grace_us
            requiring = [life for life in held if life.settled_us <= published_us and before_us <= life.withdrawn_us]
            if requiring:
                until_us = max(life.withdrawn_us for life in requiring)
                verdict.required_until_us[event, subscriber] = int(min(until_us, NEVER_US))
                verdict.issued_us[event, subscriber] = min(life.issued_us for life in requiring)
    refused = refused_events(_told(history)) if rules.durable else frozenset()
    counted: Counter[Pair] = Counter()
    latest: dict[tuple[int, int], int] = {}
    orders: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row in history.of(RowKind.DELIVER):
        pair = ((row.source, row.sequence), row.value)
        held = matching.get(pair, [])
        known = history.events.get(pair[0])
        homes = {life.node for life in history.lives.get(row.value, [])}
        if known is not None and fingerprint_of(*known) != row.bytes:
            verdict.altered.append(pair)
            continue
        if known is not None and homes and row.node not in homes:
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
                if known and not foretold and any(_is_alive(life, known[0], rules) for life in held):
                    verdict.early.add(pair)
        if held and counted[pair] == 1:
            verdict.first_us[pair] = row.time_us
            orders[row.value].append(pair[0])
            stream = (row.value, row.source)
            if row.sequence < latest.get(stream, -1):
                verdict.out_of_order.append(pair)
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
    return judge_journal(manifest, Path(place))


def judge_journal(manifest: RunManifest, journal: Path) -> Judgement:
    """Judge what is in the folder, without a look at whether that is all."""
    return judgement_of(manifest, read_history(journal))


def judgement_of(manifest: RunManifest, history: History) -> Judgement:
    """The judgement of a run with this history."""
    pairs = judge_history(history, rules_of(manifest))
    last_us = max(row.time_us for row in history.rows)
    faults = history.of(RowKind.FAULT)
    times = {(row.sequence, row.hops): row.time_us for row in faults}
    settled = _settlings(history)
    answers = {row.sequence: (row.time_us, row.value) for row in history.of(RowKind.ANSWER)}
    steps = steps_of(manifest, times, answers)
    windows = windows_of(manifest, steps, settled)
    checks = check_faults(
        windows, history.checked if windows else CheckedRows({}), manifest.numbers, last_us, manifest.datagram_kinds
    )
    issued = [(row.kind, row.source, row.time_us) for row in history.of(*ISSUED_ROWS.values())]
    checks += [*check_orders(steps, answers), *check_commands(steps, windows, issued)]
    checks.sort(key=lambda check: check.step)
    if manifest.promise.excuses_by_connection:
        link_rows, overlays = list(_link_rows(history, manifest)), overlays_of(manifest.links, steps)
        explainer: AnyExcuses | Connections = connections_of(
            manifest, link_rows, settled, windows, overlays, last_us, _told(history),
            sorted(time_us for time_us, _ in history.events.values()),
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
        manifest.kills,
        _refused_delivered(history, pairs, excused),
    )
    return Judgement(decide(facts), pairs, excused, checks, windows)


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
    came: set[tuple[int, int, int]] = set()
    carried: set[tuple[int, int, int]] = set()
    for row in history.of(RowKind.PUBLISH, RowKind.SEND, RowKind.RECEIVE, RowKind.DELIVER):
        has = (row.source, row.sequence, row.node)
        (came if row.kind in (RowKind.PUBLISH, RowKind.RECEIVE) else carried).add(has)
    out_of_nowhere = sorted(each for each in carried - came if each[1] != NONE)
    if not out_of_nowhere or not history.of(RowKind.RECEIVE):
        return None
    source, sequence, node = out_of_nowhere[0]
    return tell_conjured(manifest.nodes[node].name, source, sequence)


def _settlings(history: History) -> list[tuple[int, int]]:
    return [(row.time_us, row.value) for row in history.of(RowKind.SETTLED)]


def _link_rows(history: History, manifest: RunManifest) -> Iterator[tuple[int, int, str, str]]:
    names = [node.name for node in manifest.nodes]
    for row in history.of(RowKind.LINK_UP, RowKind.LINK_DOWN):
        yield row.time_us, row.kind, names[row.node], names[row.peer]


def _causes(history: History, manifest: RunManifest, pairs: PlainVerdict) -> Causes:
    ups_us = links_up(_link_rows(history, manifest), manifest.homes, manifest.numbers)
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
    told = (row for row in history.of(RowKind.PROTOCOL) if row.bytes in TOPICS)
    return [ToldRow(row.time_us, row.bytes, row.node, row.source, row.sequence, row.value) for row in told]


def _excused(
    history: History, manifest: RunManifest, pairs: PlainVerdict, explainer: AnyExcuses | Connections
) -> dict[tuple[str, Pair], Excuse]:
    names = [node.name for node in manifest.nodes]
    published = history.of(RowKind.PUBLISH)
    where = {(row.source, row.sequence): names[row.node] for row in published}
    wrong = {finding: getattr(pairs, finding) for finding in COUNTS}
    passages = _passages(history, {pair[0] for listed in wrong.values() for pair in listed}, names)
    overtaken = _overtakings(pairs)
    excused = {}
    for finding, listed in wrong.items():
        for pair in listed:
            event, subscriber = pair
            lives = history.lives.get(subscriber)
            if event not in history.events or not lives:
                continue
            if event not in where:  # its publisher was killed after the attributes were written and before it was out
                excused[finding, pair] = Excuse("its publisher died before it was out")
                continue
            until_us = pairs.required_until_us.get(pair, NEVER_US)
            case = Case(
                finding, where[event], names[pairs.made_by.get(pair, lives[0].node)], history.events[event][0],
                pairs.first_us.get(pair), overtaken.get(pair), None if until_us == NEVER_US else until_us,
                finding == "spurious" and pair in pairs.early, pairs.issued_us.get(pair), event,
            )  # fmt: skip
            excuse = explainer.explain(case, passages[event])
            if excuse is not None:
                excused[finding, pair] = excuse
    return excused


def _passages(
    history: History, events: Iterable[tuple[int, int]], names: Sequence[str]
) -> dict[tuple[int, int], Passage]:
    rows: dict[tuple[int, int], list[HopRow]] = {event: [] for event in events}
    hops = any(row.kind == RowKind.RECEIVE for row in history.rows)
    if rows:
        for row in history.of(*PASSAGE_KINDS):
            if (row.source, row.sequence) in rows:
                rows[row.source, row.sequence].append((row.time_us, row.kind, row.node, row.peer, row.value))
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
