"""`murmur paper gryphon`: the failure tests of guaranteed delivery, its cost, and what intermediate brokers keep.

The three failure tests and the cost run live on Ray actors (with `quick`: in virtual time, and shorter); memory with
a slow subscriber is counted in virtual time. docs/protocols/gryphon.md says what the text leaves open.
"""

import dataclasses
from pathlib import Path

from murmur_pubsub.progress import Progress
from murmuration.papers.gryphon import plots as plots
from murmuration.papers.gryphon.cost import Cost, Kept, measure_cost, measure_memory, memory_bound
from murmuration.papers.gryphon.run import STALL_S, TESTS, Observed, observe
from murmuration.papers.lab.framework import Bar, PaperResult, ResultTable

_CRASH_SHARES = 2
"""Pubends whose traffic runs through b1 while it is well."""


class GryphonPaper:
    """See `murmuration.papers.lab.framework.Paper`."""

    name = "gryphon"
    title = "Exactly-once Delivery in a Content-based Publish-Subscribe System (DSN 2002)"

    def reproduce(self, folder: Path, quick: bool, seeds: int, progress: Progress) -> PaperResult:
        """The failure tests are runs of their own kind, not samples: `seeds` makes no difference to them."""
        runtime = "virtual" if quick else "ray"
        seconds, rate_per_s = (10.0, 100.0) if quick else (30.0, 100.0)
        total = len(TESTS) + 4
        done = 0
        progress("runs", done, total)
        seen: list[Observed] = []
        for test in TESTS:
            seen.append(observe(test, runtime, folder / test.name))
            progress("runs", done := done + 1, total)
        costs: list[Cost] = []
        for reliability in ("best_effort", "gryphon"):
            costs.append(measure_cost(reliability, runtime, folder / f"cost-{reliability}", seconds, rate_per_s))
            progress("runs", done := done + 1, total)
        kept: dict[str, list[Kept]] = {}
        for title, slow in (("all subscribers keep up", False), ("one subscriber takes 20 messages/s", True)):
            kept[title] = measure_memory(slow, seconds=40 if quick else 120)
            progress("runs", done := done + 1, total)
        result = PaperResult()
        result.tables = [_failures(seen), _cost_table(costs), _memory_table(kept)]
        result.figures = [plots.failure(each, number, folder) for number, each in enumerate(seen, 6)]
        result.figures.append(plots.memory(kept, folder))
        result.bars = [*_delivery_bars(seen), *_failure_bars(seen), _cost_bar(costs, quick), _memory_bar(kept)]
        return result


def _failures(seen: list[Observed]) -> ResultTable:
    rows: list[list[str | int | float]] = []
    for each in seen:
        s1, s2 = each.nacked("s1"), each.nacked("s2")
        b2 = each.nacked("b2") if "b2" in each.nacks else "-"
        ratio = f"{b2 / (s1 + s2):.2f}" if isinstance(b2, int) and s1 + s2 else "-"
        detected = "-" if each.detected_ms is None else f"{each.detected_ms:,.0f}"
        verdict = each.verdict
        counts = [int(verdict[name]) for name in ("missing", "duplicate", "out_of_order", "spurious")]
        rows.append([each.test.title, detected, s1, s2, b2, ratio, f"{each.worst_ms('s1'):,.0f}", *counts])
    columns = (
        "failure test", "noticed after ms", "nack range s1", "s2", "b2", "b2/(s1+s2)", "worst latency s1 ms",
        "missing", "duplicate", "out of order", "spurious",
    )  # fmt: skip
    return ResultTable("failures", "Failure tests", columns, rows)


def _cost_table(costs: list[Cost]) -> ResultTable:
    base, other = costs
    rows: list[list[str | int | float]] = [
        [each.reliability, each.cpu_s, each.messages, each.bytes, each.deliveries] for each in costs
    ]
    rows.append(["ratio", *(other_value / base_value for other_value, base_value in _pairs(other, base))])
    return ResultTable("cost", "Without failures", ("reliability", "CPU s", "messages", "bytes", "deliveries"), rows)


def _pairs(other: Cost, base: Cost) -> list[tuple[float, float]]:
    names = ("cpu_s", "messages", "bytes", "deliveries")
    return [(float(getattr(other, name)), float(getattr(base, name))) for name in names]


def _memory_table(kept: dict[str, list[Kept]]) -> ResultTable:
    fields = [each.name for each in dataclasses.fields(Kept)][1:]
    rows = [
        [title, *(max(getattr(point, name) for point in series) for name in fields)] for title, series in kept.items()
    ]
    columns = ("most messages kept", "b1 and b2", "s1", "p1's log", "slow client")
    return ResultTable("memory", "Messages kept at most", columns, rows)


def _delivery_bars(seen: list[Observed]) -> list[Bar]:
    bars = []
    for each in seen:
        counts = {name: int(each.verdict[name]) for name in ("missing", "duplicate", "out_of_order", "spurious")}
        text = ", ".join(f"{count} {name}" for name, count in counts.items())
        bars.append(Bar(f"{each.test.name}: deliveries", "exactly once", text, not any(counts.values())))
    return bars


def _failure_bars(seen: list[Observed]) -> list[Bar]:
    link, crash, publishers = seen
    asked = crash.nacked("s1") + crash.nacked("s2")
    ratio = crash.nacked("b2") / asked if asked else float("nan")
    lost_ms = _CRASH_SHARES * 1_000 * STALL_S
    down_ms, back_ms = publishers.faults[0][0], publishers.faults[1][0]
    while_down = sum(publishers.nacked(name, down_ms, back_ms) for name in publishers.nacks)
    afterwards = sum(publishers.nacked(name, back_ms) for name in publishers.nacks)
    link_ms, beside_ms, crash_ms = link.worst_ms("s1"), link.worst_ms("s2"), crash.nacked("s1")
    reminded_ms = publishers.ack_expected_ms
    since_ms: float | str = "none" if reminded_ms is None else reminded_ms - back_ms
    near = 0.7 * lost_ms <= crash_ms <= 1.3 * lost_ms
    unaffected = beside_ms < link_ms / 4
    return [
        Bar("link: s1 nacks, ticks", "after more than 2 s", link.nacked("s1"), link.nacked("s1") > 0),
        Bar("link: worst latency at s1, ms", "2,500", link_ms, 2_000 <= link_ms <= 4_000, "2,000 to 4,000"),
        Bar("link: worst latency at s2, ms", "unaffected", beside_ms, unaffected, "below a quarter of s1's"),
        Bar("crash: nack range of s1, ticks", "5,500", crash_ms, near, "two pubends' time of the stall, within 30 %"),
        Bar("crash: nack range b2 / (s1 + s2)", "about 0.5", ratio, ratio <= 0.6, "at most 0.6"),
        Bar("publishers: nacks while p1 is down", "0", while_down, while_down == 0),
        Bar("publishers: AckExpected after the return, ms", "first", since_ms, reminded_ms is not None),
        Bar(
            "publishers: nacks after the return", "from s1 to s5", afterwards, None, "if something logged was not sent"
        ),
    ]


def _cost_bar(costs: list[Cost], quick: bool) -> Bar:
    ratio = costs[1].cpu_s / costs[0].cpu_s
    note = "at most 1.10" if not quick else "one process, short: not the actors' CPU"
    return Bar("CPU over best effort", "1.04", ratio, None if quick else ratio <= 1.10, note)


def _memory_bar(kept: dict[str, list[Kept]]) -> Bar:
    most = max(point.intermediate for point in list(kept.values())[1])
    bound = memory_bound()
    return Bar(
        "messages kept by b1 and b2, a subscriber being slow", "bounded", most, most <= bound, f"at most {bound:,}"
    )
