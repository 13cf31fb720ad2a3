"""Did each fault take effect? What the journal must show of a fault while it is in force, checked step by step.

A node that is down or stalled writes no row; nothing is received over a cut link; a link that loses, duplicates,
delays, reorders or is slow shows it on the messages that passed. The answer is three-valued:
"took_effect" (and what shows it), "not_exercised" (nothing came by that could show it) and "failed": then the run did
not have the faults it claims.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from murmur_pubsub.faults import COMMANDS, RECONFIGURES, FaultKind
from murmur_pubsub.journal import DropReason, RowKind
from murmur_pubsub.links import LinkSpec
from spark_analysis.checked_rows import CheckedRow, CheckedRows
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window

_SURE = 1e-6
"""A fault is said to have failed only if chance explains what was seen less often than this."""
_RARELY_LONGER = 14
"""So many times its mean, or its deviation, is a random delay as seldom."""
_SLACK = 0.8
_SLACK_US = 2_000
_STRAY = 0.02
_MESSAGES = (RowKind.SEND, RowKind.RECEIVE)


@dataclass(frozen=True, slots=True)
class FaultCheck:
    """What became of one fault: "took_effect", "not_exercised" or "failed", and what was seen."""

    step: int
    fault: str
    from_us: int
    until_us: int | None
    outcome: str
    seen: str


def check_faults(
    windows: Sequence[Window],
    rows: CheckedRows,
    numbers: Mapping[str, int],
    last_us: int,
    datagram_kinds: Collection[int] = (),
) -> list[FaultCheck]:
    """One check for each fault with a window but those of orders. `rows`: the journal's rows of the nodes involved
    while faults were in force; `last_us`: the end of the journal; `datagram_kinds`: of messages that pass beside
    links."""
    hindered = [
        (numbers[name], each.in_effect_us, each.undone_us)
        for each in windows
        if each.step.kind in (FaultKind.STALL, FaultKind.SLOW)
        for name in each.nodes
    ]
    checks: dict[int, FaultCheck] = {}
    for window in windows:
        if window.step.kind is FaultKind.ORDER:
            continue  # its answer says what became of it
        if window.in_effect_us == NEVER_US:
            outcome, seen = "failed", "it was ordered and not seen to be in effect"
        else:
            # The rows that show a change of the overlay may be of the very instant of the change.
            from_us = window.from_us - 1 if window.step.kind in RECONFIGURES else window.in_effect_us
            until_us = min(window.shown_until_us, last_us)
            if window.step.kind is FaultKind.CONNECT:
                until_us += 1
            names = window.nodes | frozenset(name for link in window.links for name in link)
            nodes = [numbers[name] for name in sorted(names)]
            here = rows.between(nodes, from_us, until_us)
            if window.links:
                about: dict[frozenset[int], list[CheckedRow]] = {
                    frozenset(numbers[name] for name in link): [] for link in window.links
                }
                for row in here:
                    if (ends := frozenset((row.node, row.peer))) in about:
                        about[ends].append(row)
                waiting = [*hindered, *_paused(here, from_us)]
                outcome, seen = _check_links(window, list(about.values()), rows, datagram_kinds, waiting)
            else:
                outcome, seen = _check_node(window, here, numbers, max(0, until_us - window.in_effect_us))
        lasts = window.undone_us == NEVER_US or window.step.kind is FaultKind.CONNECT
        ended_us = None if lasts else window.undone_us
        check = FaultCheck(window.step.number, window.step.text, window.from_us, ended_us, outcome, seen)
        checks[check.step] = _together(checks[check.step], check) if check.step in checks else check
    return list(checks.values())


def _together(first: FaultCheck, second: FaultCheck) -> FaultCheck:
    """The same of a death from which nodes came back at different times."""
    ends = (first.until_us, second.until_us)
    until_us = None if None in ends else max(each for each in ends if each is not None)
    outcome = "failed" if "failed" in (first.outcome, second.outcome) else first.outcome
    return replace(first, until_us=until_us, outcome=outcome, seen=f"{first.seen}; {second.seen}")


def check_orders(steps: Sequence[FaultStep], answers: Mapping[int, tuple[int, int]]) -> list[FaultCheck]:
    """One check for each order that was given; `answers`: time_us and value of the ANSWER rows, by step."""
    checks = []
    for step in steps:
        if step.kind is FaultKind.ORDER and step.ordered_us is not None:
            at_us, refused = answers.get(step.number, (None, 0))
            took = "" if at_us is None else f" after {(at_us - step.ordered_us) / 1e6:.2f} s"
            done = at_us is not None and not refused
            seen = f"carried out{took}" if done else f"refused{took}" if refused else "no answer"
            outcome = "took_effect" if done else "not_exercised"
            checks.append(FaultCheck(step.number, step.text, step.ordered_us, at_us, outcome, seen))
    return checks


ISSUED_ROWS = {
    FaultKind.PUBLISH: RowKind.PUBLISH,
    FaultKind.SUBSCRIBE: RowKind.SUBSCRIBE,
    FaultKind.UNSUBSCRIBE: RowKind.UNSUBSCRIBE,
}
"""The row that shows that a client has carried out such a step."""


def check_commands(
    steps: Sequence[FaultStep], windows: Sequence[Window], issued: Iterable[tuple[int, int, int]]
) -> list[FaultCheck]:
    """One check for each command of a client that was asked for; `issued`: kind, source and time_us of the rows of
    `ISSUED_ROWS`."""
    times: dict[tuple[int, int], list[int]] = {}
    for kind, source, time_us in issued:
        times.setdefault((kind, source), []).append(time_us)
    checks = []
    for step in steps:
        if step.kind not in COMMANDS or step.ordered_us is None:
            continue
        until_us = NEVER_US if step.in_effect_us is None else step.in_effect_us
        own = times.get((ISSUED_ROWS[step.kind], step.issuer), ())
        done_us = min((time_us for time_us in own if step.ordered_us <= time_us <= until_us), default=None)
        deaths = [each for each in windows if each.kills and step.nodes[0] in each.nodes]
        down = any(each.in_force(step.ordered_us, until_us) for each in deaths)
        outcome = "took_effect" if done_us is not None else "not_exercised" if down else "failed"
        seen = "the client did so" if done_us is not None else "the node was down" if down else "the client did not"
        checks.append(FaultCheck(step.number, step.text, step.ordered_us, done_us, outcome, seen))
    return checks


def _check_node(
    window: Window, rows: Sequence[CheckedRow], numbers: Mapping[str, int], lasted_us: int
) -> tuple[str, str]:
    if window.step.kind is FaultKind.SLOW:
        return _slowness(rows, numbers[window.step.nodes[0]], window.step.work_us)
    return _silence(rows, [numbers[name] for name in window.nodes], lasted_us)


def _check_links(
    window: Window,
    about: Sequence[Sequence[CheckedRow]],
    rows: CheckedRows,
    datagram_kinds: Collection[int],
    hindered: Sequence[tuple[int, int, int]],
) -> tuple[str, str]:
    """`about`: of each link the rows of its ends about each other; `hindered`: nodes that were stalled or slow, or had
    a full queue, from when to when."""
    kind = window.step.kind
    if kind in RECONFIGURES:
        return _link_rows(about[0], window)
    # Once an end has given the link up, what passes between the two is datagrams beside it. One may have done that for
    # an earlier fault.
    over = [[row for row in each if rows.linked((row.node, row.peer), row.time_us)] for each in about]
    if kind is FaultKind.PARTITION:
        return _nothing_passed(over)
    by_link = [row for row in over[0] if row.kind not in _MESSAGES or row.value not in datagram_kinds]
    if kind is FaultKind.CUT:
        return _nothing_passed([by_link])
    assert window.step.link is not None
    return _changed(by_link, window.step.link, hindered)


def _paused(rows: Iterable[CheckedRow], from_us: int) -> Iterator[tuple[int, int, int]]:
    """The nodes that took nothing while a queue of theirs was full, from when to when, as these rows from `from_us` on
    have it."""
    since_us: dict[int, int] = {}
    for row in rows:
        if row.kind != RowKind.PAUSE:
            continue
        if row.value:
            since_us[row.node] = row.time_us
        else:
            yield row.node, since_us.pop(row.node, from_us), row.time_us
    yield from ((node, begun_us, NEVER_US) for node, begun_us in since_us.items())


def _silence(rows: Sequence[CheckedRow], nodes: Collection[int], lasted_us: int) -> tuple[str, str]:
    # A DROP is written for a node by its runtime, a FAULT row about it by the driver.
    own = [row.kind for row in rows if row.node in nodes and row.kind not in (RowKind.DROP, RowKind.FAULT)]
    if own:
        kinds = ", ".join(RowKind(kind).name for kind in sorted(set(own)))
        return "failed", f"{len(own)} rows ({kinds}) where there should be silence"
    return "took_effect", f"silent for {lasted_us / 1e6:.2f} s"


def _slowness(rows: Sequence[CheckedRow], node: int, work_us: int) -> tuple[str, str]:
    times = sorted(row.time_us for row in _of(rows, RowKind.RECEIVE) if row.node == node)
    if len(times) < 2:
        return "not_exercised", f"{len(times)} messages received"
    # Rows are written after the work: no two of them can be closer than that.
    too_close = sum(later - earlier < _SLACK * work_us for earlier, later in pairwise(times))
    outcome = "failed" if too_close > len(times) * _STRAY else "took_effect"
    return outcome, f"{too_close} of {len(times)} messages came less than {work_us / 1e3:.1f} ms after another"


def _of(rows: Iterable[CheckedRow], kind: RowKind) -> list[CheckedRow]:
    return [row for row in rows if row.kind == kind]


def _nothing_passed(over: Sequence[Sequence[CheckedRow]]) -> tuple[str, str]:
    kinds = Counter(row.kind for rows in over for row in rows)
    if received := kinds[RowKind.RECEIVE]:
        return "failed", f"{received} messages were received over it"
    return "took_effect", f"nothing received over {len(over)} links, {kinds[RowKind.DROP]} messages dropped at them"


def _link_rows(about: Sequence[CheckedRow], window: Window) -> tuple[str, str]:
    """Did the ends see the link come up, or go and stay away? One that is down sees nothing."""
    made, lost = _of(about, RowKind.LINK_UP), _of(about, RowKind.LINK_DOWN)
    if window.step.kind is FaultKind.CONNECT:
        seen = len({row.node for row in made})
        return ("took_effect" if seen == 2 else "not_exercised"), f"{seen} of its ends saw it come up"
    if any(row.time_us > window.in_effect_us for row in made):
        return "failed", "it came up again"
    seen = len({row.node for row in lost})
    return ("took_effect" if seen else "not_exercised"), f"{seen} of its ends saw it go"


def _changed(rows: Sequence[CheckedRow], link: LinkSpec, hindered: Sequence[tuple[int, int, int]]) -> tuple[str, str]:
    """The worst of what each changed property shows."""
    # Control messages are exempt from loss, duplication and reordering.
    sent = sum(row.source >= 0 for row in _of(rows, RowKind.SEND))
    shown = []
    if link.loss:
        lost = sum(row.value == DropReason.LOSS for row in _of(rows, RowKind.DROP))
        shown.append(_chance("loss", lost, sent, link.loss))
    if link.duplication:
        shown.append(_chance("duplication", len(_of(rows, RowKind.DUPLICATE)), sent, link.duplication))
    passed = _passages(rows)
    if link.delay.kind in ("constant", "uniform") and link.delay.low_us:
        shown.append(_delay(passed, link.delay.low_us))
    if link.reordering:
        shown.append(_reordering(passed, link.reordering, link.reordering_us))
    if link.messages_per_s:
        for node, from_us, until_us in hindered:  # what waited for a node is taken by it at once, later
            passed = [
                each
                for each in passed
                if not (each.receiver == node and each.sent_us < until_us and each.received_us >= from_us)
            ]
        shown.append(_bandwidth(passed, link.messages_per_s, _apart_us(link)))
    outcomes = [outcome for outcome, _ in shown]
    worst = next((each for each in ("failed", "not_exercised", "took_effect") if each in outcomes), "not_exercised")
    return worst, "; ".join(seen for _, seen in shown) or "nothing of it can be seen in a journal"


def _chance(name: str, hits: int, tries: int, probability: float) -> tuple[str, str]:
    seen = f"{name} of {hits} in {tries} messages"
    if hits:
        return "took_effect", seen
    unlikely = tries and (probability >= 1 or tries * math.log1p(-probability) < math.log(_SURE))
    return ("failed" if unlikely else "not_exercised"), seen


class _Passage(NamedTuple):
    sender: int
    sent_us: int
    receiver: int
    kind: int
    """Of the message."""
    received_us: int


def _passages(rows: Iterable[CheckedRow]) -> list[_Passage]:
    """Events that were sent and received while the change was in force, as each sender sent them. One that was sent or
    received twice is left out: which was which is not known. So is one that came before it was sent, or was sent and
    lost: what came was sent before the change."""
    found: defaultdict[tuple[int, ...], tuple[list[tuple[int, CheckedRow]], list[CheckedRow]]]
    found = defaultdict(lambda: ([], []))
    lost: set[tuple[int, int, int]] = set()
    for place, row in enumerate(rows):
        if row.kind == RowKind.DROP:
            lost.add((row.node, row.source, row.sequence))
        elif row.kind == RowKind.SEND and row.source >= 0:
            found[row.node, row.value, row.source, row.sequence][0].append((place, row))
        elif row.kind == RowKind.RECEIVE and row.source >= 0:
            found[row.peer, row.value, row.source, row.sequence][1].append(row)
    in_order = sorted(
        (sender, sent[0][1].time_us, sent[0][0], sent[0][1].peer, kind, received[0].time_us)
        for (sender, kind, *event), (sent, received) in found.items()
        if len(sent) == len(received) == 1
        and sent[0][1].time_us <= received[0].time_us
        and (sender, *event) not in lost
    )
    return [_Passage(sender, sent_us, *rest) for sender, sent_us, _, *rest in in_order]


def _delay(passed: Sequence[_Passage], low_us: int) -> tuple[str, str]:
    if not passed:
        return "not_exercised", "no message passed"
    least: dict[int, int] = {}
    for each in passed:
        took_us = each.received_us - each.sent_us
        least[each.kind] = min(took_us, least.get(each.kind, took_us))
    # Some kinds of messages may be datagrams, too, which pass beside the link as fast as ever.
    least_us = max(least.values())
    outcome = "took_effect" if least_us >= low_us - _SLACK_US else "failed"
    return outcome, f"{len(passed)} messages took {least_us / 1e3:.1f} ms or more"


def _ways(passed: Iterable[_Passage]) -> list[list[_Passage]]:
    """The passages of each sender."""
    ways: dict[int, list[_Passage]] = {}
    for each in passed:
        ways.setdefault(each.sender, []).append(each)
    return list(ways.values())


def _reordering(passed: Sequence[_Passage], probability: float, by_us: int) -> tuple[str, str]:
    ways = _ways(passed)
    overtaken = sum(
        latest_us > each.received_us
        for way in ways
        for each, latest_us in zip(way, accumulate((each.received_us for each in way), max), strict=True)
    )
    seen = f"{overtaken} of {len(passed)} messages overtaken"
    if overtaken:
        return "took_effect", seen
    # A message held back is overtaken by one that follows within half the time with at least half the probability.
    close = sum(later.sent_us - earlier.sent_us < by_us / 2 for way in ways for earlier, later in pairwise(way))
    unlikely = close and close * math.log1p(-probability / 2) < math.log(_SURE)
    return ("failed" if unlikely else "not_exercised"), seen


def _apart_us(link: LinkSpec) -> int:
    """How much sooner one message may arrive after another than it had been sent after it: the first was held back, the
    second was not."""
    delay = link.delay
    random_us = _RARELY_LONGER * delay.high_us
    spread_us = {"constant": 0, "uniform": delay.high_us - delay.low_us}.get(delay.kind, random_us)
    return spread_us + (link.reordering_us if link.reordering else 0)


def _bandwidth(passed: Sequence[_Passage], messages_per_s: int, apart_us: int) -> tuple[str, str]:
    """`apart_us`: by how much two messages may come closer to each other on the way."""
    outcome, seen = "not_exercised", "no two messages passed"
    for way in _ways(passed):
        if len(way) < 2:
            continue
        times = [each.received_us for each in way]
        took_us = max(times) - min(times)
        needed_us = max(0, (len(times) - 1) * 1_000_000 // messages_per_s - apart_us)
        seen = f"{len(times)} messages in {took_us / 1e3:.0f} ms, at least {needed_us / 1e3:.0f} ms at that rate"
        outcome = "took_effect" if took_us >= _SLACK * needed_us - _SLACK_US else "failed"
        if outcome == "failed":
            break
    return outcome, seen
