"""Did each fault take effect? What the journal must show of a fault while it is in force, checked step by step.

A node that is down or stalled writes no row; nothing is received over a cut link; a link that loses, duplicates,
delays, reorders or is slow shows it on the messages that passed. The answer is three-valued:
"took_effect" (and what shows it), "not_exercised" (nothing came by that could show it) and "failed": then the run did
not have the faults it claims.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from murmur_pubsub.faults import RECONFIGURES, FaultKind
from murmur_pubsub.journal import DropReason, RowKind
from murmur_pubsub.links import LinkSpec
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window

_SURE = 1e-6
"""A fault is said to have failed only if chance explains what was seen less often than this."""
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
    windows: Sequence[Window], rows: pd.DataFrame, numbers: Mapping[str, int], last_us: int
) -> list[FaultCheck]:
    """One check for each window. `rows`: the journal's rows of the nodes involved while faults were in force, with
    the columns of `ROW_TYPE`; `last_us`: the end of the journal."""
    by_node: dict[Any, pd.DataFrame] = {
        node: each.sort_values("time_us", kind="stable") for node, each in rows.groupby("node")
    }
    checks = []
    for window in windows:
        if window.in_effect_us == NEVER_US:
            outcome, seen = "failed", "it was ordered and not seen to be in effect"
        else:
            # The rows that show a change of the overlay may be of the very instant of the change.
            from_us = window.from_us - 1 if window.step.kind in RECONFIGURES else window.in_effect_us
            until_us = min(window.shown_until_us, last_us)
            if window.step.kind is FaultKind.CONNECT:
                until_us += 1
            names = window.nodes | frozenset(name for link in window.links for name in link)
            here = _between(by_node, [numbers[name] for name in sorted(names)], from_us, until_us, rows)
            outcome, seen = _check(window, here, numbers, max(0, until_us - window.in_effect_us))
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


def _check(window: Window, rows: pd.DataFrame, numbers: Mapping[str, int], lasted_us: int) -> tuple[str, str]:
    kind = window.step.kind
    if kind in (FaultKind.KILL, FaultKind.LOSE_HOST, FaultKind.STALL):
        return _silence(rows, [numbers[name] for name in window.step.nodes], lasted_us)
    if kind is FaultKind.SLOW:
        return _slowness(rows, numbers[window.step.nodes[0]], window.step.work_us)
    ends = [tuple(sorted(numbers[name] for name in link)) for link in window.links]
    if kind in (FaultKind.CUT, FaultKind.PARTITION):
        return _nothing_passed(rows, ends)
    if kind in RECONFIGURES:
        return _link_rows(rows, ends[0], window)
    assert window.step.link is not None
    return _changed(rows, ends[0], window.step.link)


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


def _over(rows: pd.DataFrame, ends: tuple[int, ...], kind: RowKind) -> pd.DataFrame:
    there = (rows["node"] == ends[0]) & (rows["peer"] == ends[1])
    back = (rows["node"] == ends[1]) & (rows["peer"] == ends[0])
    return rows[(rows["kind"] == kind) & (there | back)]


def _nothing_passed(rows: pd.DataFrame, links: Sequence[tuple[int, ...]]) -> tuple[str, str]:
    received = sum(_received_over(rows, ends) for ends in links)
    dropped = sum(len(_over(rows, ends, RowKind.DROP)) for ends in links)
    if received:
        return "failed", f"{received} messages were received over it"
    return "took_effect", f"nothing received over {len(links)} links, {dropped} messages dropped at them"


def _link_rows(rows: pd.DataFrame, ends: tuple[int, ...], window: Window) -> tuple[str, str]:
    """Did the ends see the link come up, or go and stay away? One that is down sees nothing."""
    made, lost = _over(rows, ends, RowKind.LINK_UP), _over(rows, ends, RowKind.LINK_DOWN)
    if window.step.kind is FaultKind.CONNECT:
        seen = made["node"].nunique()
        return ("took_effect" if seen == 2 else "not_exercised"), f"{seen} of its ends saw it come up"
    if (made["time_us"] > window.in_effect_us).any():
        return "failed", "it came up again"
    seen = lost["node"].nunique()
    return ("took_effect" if seen else "not_exercised"), f"{seen} of its ends saw it go"


def _received_over(rows: pd.DataFrame, ends: tuple[int, ...]) -> int:
    """How many messages came over the link: what comes once an end has given the link up is a datagram beside it."""
    arrived = _over(rows, ends, RowKind.RECEIVE)["time_us"]
    lost, made = (_over(rows, ends, kind)["time_us"] for kind in (RowKind.LINK_DOWN, RowKind.LINK_UP))
    latest_lost = np.array([lost[lost <= time_us].max() for time_us in arrived])
    latest_made = np.array([made[made <= time_us].max() for time_us in arrived])
    return int((~(latest_lost > np.nan_to_num(latest_made, nan=-1.0))).sum())


def _changed(rows: pd.DataFrame, ends: tuple[int, ...], link: LinkSpec) -> tuple[str, str]:
    """The worst of what each changed property shows."""
    sent = _over(rows, ends, RowKind.SEND)
    sent = sent[sent["source"] >= 0]  # control messages are exempt from loss, duplication and reordering
    shown = []
    for name, probability, kind, value in (
        ("loss", link.loss, RowKind.DROP, DropReason.LOSS),
        ("duplication", link.duplication, RowKind.DUPLICATE, None),
    ):
        if probability:
            found = _over(rows, ends, kind)
            hits = len(found if value is None else found[found["value"] == value])
            shown.append(_chance(name, hits, len(sent), probability))
    passed = _passages(rows, ends)
    if link.delay.kind in ("constant", "uniform") and link.delay.low_us:
        shown.append(_delay(passed, link.delay.low_us))
    if link.reordering:
        shown.append(_reordering(passed, link.reordering, link.reordering_us))
    if link.messages_per_s:
        shown.append(_bandwidth(passed, link.messages_per_s))
    outcomes = [outcome for outcome, _ in shown]
    worst = next((each for each in ("failed", "not_exercised", "took_effect") if each in outcomes), "not_exercised")
    return worst, "; ".join(seen for _, seen in shown) or "nothing of it can be seen in a journal"


def _chance(name: str, hits: int, tries: int, probability: float) -> tuple[str, str]:
    seen = f"{name} of {hits} in {tries} messages"
    if hits:
        return "took_effect", seen
    unlikely = tries and (probability >= 1 or tries * math.log1p(-probability) < math.log(_SURE))
    return ("failed" if unlikely else "not_exercised"), seen


def _passages(rows: pd.DataFrame, ends: tuple[int, ...]) -> pd.DataFrame:
    """Events that were sent and received while the change was in force: node (sender), sent_us, received_us. One that
    was sent or received twice is left out, for which was which cannot be told."""
    keys = ["source", "sequence"]
    sent, received = (_over(rows, ends, kind) for kind in (RowKind.SEND, RowKind.RECEIVE))
    sent, received = sent[sent["source"] >= 0], received[received["source"] >= 0]
    left = sent[["node", *keys, "time_us"]].rename(columns={"time_us": "sent_us"})
    right = received[["peer", *keys, "time_us"]].rename(columns={"peer": "node", "time_us": "received_us"})
    once = [each.drop_duplicates(["node", *keys], keep=False) for each in (left, right)]
    return once[0].merge(once[1], on=["node", *keys]).sort_values(["node", "sent_us"], kind="stable")


def _delay(passed: pd.DataFrame, low_us: int) -> tuple[str, str]:
    if not len(passed):
        return "not_exercised", "no message passed"
    least_us = int((passed["received_us"] - passed["sent_us"]).min())
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


def _bandwidth(passed: pd.DataFrame, messages_per_s: int) -> tuple[str, str]:
    outcome, seen = "not_exercised", "no two messages passed"
    for _, one_way in passed.groupby("node"):
        times = one_way["received_us"].sort_values()
        if len(times) < 2:
            continue
        took_us = int(times.iloc[-1] - times.iloc[0])
        needed_us = (len(times) - 1) * 1_000_000 // messages_per_s
        seen = f"{len(times)} messages in {took_us / 1e3:.0f} ms, at least {needed_us / 1e3:.0f} ms at that rate"
        outcome = "took_effect" if took_us >= _SLACK * needed_us - _SLACK_US else "failed"
        if outcome == "failed":
            break
    return outcome, seen
