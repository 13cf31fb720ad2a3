"""Did each fault take effect? What the journal must show of a fault while it is in force, checked step by step.

A node that is down or stalled writes no row; nothing is received over a cut link; a link that loses, duplicates,
delays, reorders or is slow shows it on the messages that passed. The answer is three-valued:
"took_effect" (and what shows it), "not_exercised" (nothing came by that could show it) and "failed": then the run did
not have the faults it claims.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from murmur_pubsub.faults import COMMANDS, RECONFIGURES, FaultKind
from murmur_pubsub.journal import DropReason, RowKind
from murmur_pubsub.links import LinkSpec
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window

_SURE = 1e-6
"""A fault is said to have failed only if chance explains what was seen less often than this."""
_RARELY_LONGER = 14
"""So many times its mean, or its deviation, is a random delay as seldom."""
_SLACK = 0.8
_SLACK_US = 2_000
_STRAY = 0.02


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
    rows: pd.DataFrame,
    numbers: Mapping[str, int],
    last_us: int,
    datagram_kinds: Collection[int] = (),
) -> list[FaultCheck]:
    """One check for each window but those of orders. `rows`: the journal's rows of the nodes involved while faults were
    in force, with the columns of `ROW_TYPE`; `last_us`: the end of the journal; `datagram_kinds`: of messages that
    pass beside links."""
    by_node: dict[Any, pd.DataFrame] = {
        node: each.sort_values("time_us", kind="stable") for node, each in rows.groupby("node")
    }
    hindered = [
        (numbers[name], each.in_effect_us, each.undone_us)
        for each in windows
        if each.step.kind in (FaultKind.STALL, FaultKind.SLOW)
        for name in each.nodes
    ]
    checks = []
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
            here = _between(by_node, nodes, from_us, until_us, rows)
            if window.links:
                so_far = _between(by_node, nodes, -1, until_us, rows)
                ends = [tuple(sorted(numbers[name] for name in link)) for link in window.links]
                outcome, seen = _check_links(
                    window, [_about(here, each) for each in ends], so_far, datagram_kinds, hindered
                )
            else:
                outcome, seen = _check_node(window, here, numbers, max(0, until_us - window.in_effect_us))
        lasts = window.undone_us == NEVER_US or window.step.kind is FaultKind.CONNECT
        ended_us = None if lasts else window.undone_us
        checks.append(FaultCheck(window.step.number, window.step.text, window.from_us, ended_us, outcome, seen))
    return checks


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


def _between(
    by_node: Mapping[Any, pd.DataFrame], nodes: Sequence[int], from_us: int, until_us: int, rows: pd.DataFrame
) -> pd.DataFrame:
    """The rows of these nodes strictly between the two times."""
    parts = []
    for node in nodes:
        if node in by_node:
            times = by_node[node]["time_us"].to_numpy()
            begin, end = np.searchsorted(times, from_us, "right"), np.searchsorted(times, until_us, "left")
            if end > begin:
                parts.append(by_node[node].iloc[begin:end])
    return pd.concat(parts) if parts else rows.iloc[:0]


def _check_node(window: Window, rows: pd.DataFrame, numbers: Mapping[str, int], lasted_us: int) -> tuple[str, str]:
    if window.step.kind is FaultKind.SLOW:
        return _slowness(rows, numbers[window.step.nodes[0]], window.step.work_us)
    return _silence(rows, [numbers[name] for name in window.step.nodes], lasted_us)


def _check_links(
    window: Window,
    about: Sequence[pd.DataFrame],
    so_far: pd.DataFrame,
    datagram_kinds: Collection[int],
    hindered: Sequence[tuple[int, int, int]],
) -> tuple[str, str]:
    """`about`: of each link the rows of its ends about each other; `so_far`: those from the beginning on; `hindered`:
    nodes that were stalled or slow, from when to when."""
    kind = window.step.kind
    if kind in RECONFIGURES:
        return _link_rows(about[0], window)
    over = [_while_linked(each, so_far) for each in about]
    if kind in (FaultKind.CUT, FaultKind.PARTITION):
        return _nothing_passed(over)
    assert window.step.link is not None
    passed = over[0]
    beside = passed["kind"].isin((RowKind.SEND, RowKind.RECEIVE)) & passed["value"].isin(datagram_kinds)
    return _changed(passed[~beside], window.step.link, hindered)


def _silence(rows: pd.DataFrame, nodes: list[int], lasted_us: int) -> tuple[str, str]:
    # A DROP is written for a node by its runtime, a FAULT row about it by the driver.
    own = rows[rows["node"].isin(nodes) & ~rows["kind"].isin([RowKind.DROP, RowKind.FAULT])]
    if len(own):
        kinds = ", ".join(RowKind(kind).name for kind in sorted(own["kind"].unique()))
        return "failed", f"{len(own)} rows ({kinds}) where there should be silence"
    return "took_effect", f"silent for {lasted_us / 1e6:.2f} s"


def _slowness(rows: pd.DataFrame, node: int, work_us: int) -> tuple[str, str]:
    times = rows[(rows["node"] == node) & (rows["kind"] == RowKind.RECEIVE)]["time_us"].sort_values()
    if len(times) < 2:
        return "not_exercised", f"{len(times)} messages received"
    # Rows are written after the work: no two of them can be closer than that.
    too_close = int((times.diff() < _SLACK * work_us).sum())
    outcome = "failed" if too_close > len(times) * _STRAY else "took_effect"
    return outcome, f"{too_close} of {len(times)} messages came less than {work_us / 1e3:.1f} ms after another"


def _about(rows: pd.DataFrame, ends: tuple[int, ...]) -> pd.DataFrame:
    """The rows of the two ends about each other."""
    there = (rows["node"] == ends[0]) & (rows["peer"] == ends[1])
    back = (rows["node"] == ends[1]) & (rows["peer"] == ends[0])
    return rows[there | back]


def _while_linked(about: pd.DataFrame, so_far: pd.DataFrame) -> pd.DataFrame:
    """Those of these rows that were written while the two ends had the link: once one has given it up, what passes
    between them is datagrams beside it. One may have done that for an earlier fault."""
    if not len(about):
        return about
    first = about.iloc[0]
    earlier = _about(so_far, (int(first["node"]), int(first["peer"])))
    lost, made = (
        np.append(-1, np.sort(_of(earlier, kind)["time_us"])) for kind in (RowKind.LINK_DOWN, RowKind.LINK_UP)
    )
    times = about["time_us"].to_numpy()
    latest_lost, latest_made = (each[np.searchsorted(each, times, "right") - 1] for each in (lost, made))
    return about[latest_lost <= latest_made]


def _of(rows: pd.DataFrame, kind: RowKind) -> pd.DataFrame:
    return rows[rows["kind"] == kind]


def _nothing_passed(over: Sequence[pd.DataFrame]) -> tuple[str, str]:
    received = sum(len(_of(rows, RowKind.RECEIVE)) for rows in over)
    dropped = sum(len(_of(rows, RowKind.DROP)) for rows in over)
    if received:
        return "failed", f"{received} messages were received over it"
    return "took_effect", f"nothing received over {len(over)} links, {dropped} messages dropped at them"


def _link_rows(about: pd.DataFrame, window: Window) -> tuple[str, str]:
    """Did the ends see the link come up, or go and stay away? One that is down sees nothing."""
    made, lost = _of(about, RowKind.LINK_UP), _of(about, RowKind.LINK_DOWN)
    if window.step.kind is FaultKind.CONNECT:
        seen = made["node"].nunique()
        return ("took_effect" if seen == 2 else "not_exercised"), f"{seen} of its ends saw it come up"
    if (made["time_us"] > window.in_effect_us).any():
        return "failed", "it came up again"
    seen = lost["node"].nunique()
    return ("took_effect" if seen else "not_exercised"), f"{seen} of its ends saw it go"


def _changed(rows: pd.DataFrame, link: LinkSpec, hindered: Sequence[tuple[int, int, int]]) -> tuple[str, str]:
    """The worst of what each changed property shows."""
    sent = _of(rows, RowKind.SEND)
    sent = sent[sent["source"] >= 0]  # control messages are exempt from loss, duplication and reordering
    shown = []
    for name, probability, kind, value in (
        ("loss", link.loss, RowKind.DROP, DropReason.LOSS),
        ("duplication", link.duplication, RowKind.DUPLICATE, None),
    ):
        if probability:
            found = _of(rows, kind)
            hits = len(found if value is None else found[found["value"] == value])
            shown.append(_chance(name, hits, len(sent), probability))
    passed = _passages(rows)
    if link.delay.kind in ("constant", "uniform") and link.delay.low_us:
        shown.append(_delay(passed, link.delay.low_us))
    if link.reordering:
        shown.append(_reordering(passed, link.reordering, link.reordering_us))
    if link.messages_per_s:
        for node, from_us, until_us in hindered:  # what waited for a node is taken by it at once, later
            waited = (passed["peer"] == node) & (passed["sent_us"] < until_us) & (passed["received_us"] >= from_us)
            passed = passed[~waited]
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


def _passages(rows: pd.DataFrame) -> pd.DataFrame:
    """Events that were sent and received while the change was in force: node (sender), peer (receiver), value (the kind
    of message), sent_us, received_us. One that was sent or received twice is left out: which was which is not known."""
    kinds = rows["kind"].to_numpy()
    events = np.flatnonzero(np.isin(kinds, (RowKind.SEND, RowKind.RECEIVE)) & (rows["source"].to_numpy() >= 0))
    sent = kinds[events] == RowKind.SEND
    columns = {name: rows[name].to_numpy()[events] for name in ("node", "peer", "value", "source", "sequence")}
    keys = (
        np.where(sent, columns["node"], columns["peer"]),
        *(columns[each] for each in ("value", "source", "sequence")),
    )
    # Rows of one message are neighbours then, its sending first.
    order = np.lexsort((~sent, *keys))
    unlike = np.any([each[order][1:] != each[order][:-1] for each in keys], axis=0)
    first = np.flatnonzero(np.append(True, unlike)) if len(order) else order
    pairs = first[np.diff(np.append(first, len(order))) == 2]
    passed = pairs[sent[order[pairs]] & ~sent[order[pairs + 1]]]
    left, right, times = order[passed], order[passed + 1], rows["time_us"].to_numpy()[events]
    by_time = np.lexsort((left, times[left], keys[0][left]))
    left, right = left[by_time], right[by_time]
    return pd.DataFrame(
        {
            "node": keys[0][left],
            "peer": columns["peer"][left],
            "value": keys[1][left],
            "sent_us": times[left],
            "received_us": times[right],
        }
    )


def _delay(passed: pd.DataFrame, low_us: int) -> tuple[str, str]:
    if not len(passed):
        return "not_exercised", "no message passed"
    took = passed["received_us"] - passed["sent_us"]
    # Some kinds of messages may be datagrams, too, which pass beside the link as fast as ever.
    least_us = int(took.groupby(passed["value"]).min().max())
    outcome = "took_effect" if least_us >= low_us - _SLACK_US else "failed"
    return outcome, f"{len(passed)} messages took {least_us / 1e3:.1f} ms or more"


def _reordering(passed: pd.DataFrame, probability: float, by_us: int) -> tuple[str, str]:
    ways = passed.groupby("node")
    overtaken = int((ways["received_us"].cummax() > passed["received_us"]).sum())
    seen = f"{overtaken} of {len(passed)} messages overtaken"
    if overtaken:
        return "took_effect", seen
    # A message held back is overtaken by one that follows within half the time with at least half the probability.
    close = int((ways["sent_us"].diff() < by_us / 2).sum())
    unlikely = close and close * math.log1p(-probability / 2) < math.log(_SURE)
    return ("failed" if unlikely else "not_exercised"), seen


def _apart_us(link: LinkSpec) -> int:
    """How much sooner one message may arrive after another than it had been sent after it: the first was held back, the
    second was not."""
    delay = link.delay
    random_us = _RARELY_LONGER * delay.high_us
    spread_us = {"constant": 0, "uniform": delay.high_us - delay.low_us}.get(delay.kind, random_us)
    return spread_us + (link.reordering_us if link.reordering else 0)


def _bandwidth(passed: pd.DataFrame, messages_per_s: int, apart_us: int) -> tuple[str, str]:
    """`apart_us`: by how much two messages may come closer to each other on the way."""
    outcome, seen = "not_exercised", "no two messages passed"
    for _, one_way in passed.groupby("node"):
        times = one_way["received_us"].sort_values()
        if len(times) < 2:
            continue
        took_us = int(times.iloc[-1] - times.iloc[0])
        needed_us = max(0, (len(times) - 1) * 1_000_000 // messages_per_s - apart_us)
        seen = f"{len(times)} messages in {took_us / 1e3:.0f} ms, at least {needed_us / 1e3:.0f} ms at that rate"
        outcome = "took_effect" if took_us >= _SLACK * needed_us - _SLACK_US else "failed"
        if outcome == "failed":
            break
    return outcome, seen
