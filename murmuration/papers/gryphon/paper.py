"""`murmur paper gryphon`: the failure tests of guaranteed delivery, its cost, and what intermediate brokers keep.

The three failure tests and the cost run live on Ray actors (with `quick`: in virtual time, and shorter); memory with
a slow subscriber is counted in virtual time. docs/protocols/gryphon.md says what the text leaves open.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from murmuration.papers.gryphon import plots
from murmuration.papers.gryphon.cost import (
    Kept,
    MemorySpec,
    ReliabilityCost,
    ReliabilityCostSpec,
    measure_memory,
    measure_reliability,
    memory_bound,
)
from murmuration.papers.gryphon.run import DELIVERY_COUNTS, STALL_S, FailureRun, failure_tests, measure_failure
from murmuration.papers.lab.judged_run import Runtime, one_judge
from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.papers.lab.results import Figure, PaperResult, ResultTable, TableCell

_CRASH_SHARES = 2
"""Pubends whose traffic runs through b1 while it is well."""


class GryphonPaper:
    """See `murmuration.papers.lab.results.Paper`."""

    name = "gryphon"
    title = "Exactly-once Delivery in a Content-based Publish-Subscribe System (DSN 2002)"
    about = (
        "Publishers at p1, two cells of two brokers each, and subscribers at s1 to s5; every subscriber has to get"
        " every event of its publisher exactly once and in order, whatever fails. A tick is a millisecond of a"
        " publisher's stream; a nack asks for a range of ticks. At full size the tests run on live actors."
    )

    def reproduce(self, runs: PaperRuns, quick: bool, seeds: int) -> PaperResult:
        """The failure tests are runs of their own kind, not samples: `seeds` makes no difference to them."""
        runtime: Runtime = "virtual" if quick else "ray"
        specs = [ReliabilityCostSpec(each, runtime, 10 if quick else 30, 100) for each in ("best_effort", "gryphon")]
        memory = [MemorySpec(slow, 40 if quick else 120) for slow in (False, True)]
        found = runs.spread(measure_memory, memory, lambda _: list[Kept])
        kept = dict(zip(("all subscribers keep up", "one subscriber takes 20 messages/s"), found.values(), strict=True))
        with one_judge(keep=quick):
            seen = list(runs.one_by_one(measure_failure, failure_tests(runtime), lambda _: FailureRun).values())
            costs = list(runs.one_by_one(measure_reliability, specs, lambda _: ReliabilityCost).values())
        result, folder = PaperResult(scaled_down=quick), runs.folder
        figures = [
            Figure(plots.failure(each, number, folder), f"{each.test.title}: latency and nacks")
            for number, each in enumerate(seen, 6)
        ]
        result.tables = [_failures(seen, figures), _cost_table(costs), _memory_table(kept, folder)]
        for each in seen:
            text = ", ".join(f"{each.verdict[name]} {name}" for name in DELIVERY_COUNTS)
            right = not any(each.verdict.values())
            result.judge(f"{each.test.name}: deliveries", "exactly once", text, right, at_any_size=True)
        _judge_failures(result, seen)
        ratio = costs[1].cpu_s / costs[0].cpu_s
        note = "one process, short: not the actors' CPU" if quick else "at most 1.10"
        result.judge("CPU over best effort", "1.04", ratio, None if quick else ratio <= 1.10, note)
        most, bound = max(each.intermediate for each in found[memory[1]]), memory_bound()
        name = "messages kept by b1 and b2, a subscriber being slow"
        result.judge(name, "bounded", most, most <= bound, f"at most {bound:,}", at_any_size=True)
        return result


def _failures(seen: Sequence[FailureRun], figures: Sequence[Figure]) -> ResultTable:
    rows: list[list[TableCell]] = []
    for each in seen:
        s1, s2 = each.nacked("s1"), each.nacked("s2")
        b2 = each.nacked("b2") if "b2" in each.nacks else "-"
        ratio = f"{b2 / (s1 + s2):.2f}" if isinstance(b2, int) and s1 + s2 else "-"
        detected = "-" if each.detected_ms is None else f"{each.detected_ms:,.0f}"
        counts = [each.verdict[name] for name in DELIVERY_COUNTS]
        rows.append([each.test.title, detected, s1, s2, b2, ratio, f"{each.worst_ms['s1']:,.0f}", *counts])
    columns = (
        "failure test", "noticed after ms", "nack range s1", "s2", "b2", "b2/(s1+s2)", "worst latency s1 ms",
        "missing", "duplicate", "out of order", "spurious",
    )  # fmt: skip
    return ResultTable("failures", "Failure tests", columns, rows, figures)


def _cost_table(costs: Sequence[ReliabilityCost]) -> ResultTable:
    base, other = costs
    rows: list[list[TableCell]] = [
        [each.reliability, each.cpu_s, each.messages, each.bytes, each.deliveries] for each in costs
    ]
    rows.append(["ratio", *(other_value / base_value for other_value, base_value in _pairs(other, base))])
    return ResultTable("cost", "Without failures", ("reliability", "CPU s", "messages", "bytes", "deliveries"), rows)


def _pairs(other: ReliabilityCost, base: ReliabilityCost) -> list[tuple[float, float]]:
    names = ("cpu_s", "messages", "bytes", "deliveries")
    return [(float(getattr(other, name)), float(getattr(base, name))) for name in names]


def _memory_table(kept: Mapping[str, Sequence[Kept]], folder: Path) -> ResultTable:
    fields = [each.name for each in dataclasses.fields(Kept)][1:]
    rows = [
        [title, *(max(getattr(point, name) for point in series) for name in fields)] for title, series in kept.items()
    ]
    columns = ("most messages kept", "b1 and b2", "s1", "p1's log", "slow client")
    figure = Figure(plots.memory(kept, folder), "Messages kept over time")
    return ResultTable("memory", "Messages kept at most", columns, rows, [figure])


def _judge_failures(result: PaperResult, seen: Sequence[FailureRun]) -> None:
    link, crash, publishers = seen

    def judge(name: str, paper: str, measured: float | str, met: bool | None, note: str = "") -> None:
        result.judge(name, paper, measured, met, note, at_any_size=True)

    nacked, worst_ms, beside_ms = link.nacked("s1"), link.worst_ms["s1"], link.worst_ms["s2"]
    judge("link: s1 nacks, ticks", "after more than 2 s", nacked, nacked > 0)
    judge("link: worst latency at s1, ms", "2,500", worst_ms, 2_000 <= worst_ms <= 4_000, "2,000 to 4,000")
    unaffected = beside_ms < worst_ms / 4
    judge("link: worst latency at s2, ms", "unaffected", beside_ms, unaffected, "below a quarter of s1's")
    lost_ms, nacked = _CRASH_SHARES * 1_000 * STALL_S, crash.nacked("s1")
    near = 0.7 * lost_ms <= nacked <= 1.3 * lost_ms
    judge("crash: nack range of s1, ticks", "5,500", nacked, near, "two pubends' time of the stall, within 30 %")
    asked = nacked + crash.nacked("s2")
    ratio = crash.nacked("b2") / asked if asked else float("nan")
    judge("crash: nack range b2 / (s1 + s2)", "about 0.5", ratio, ratio <= 0.6, "at most 0.6")
    down_ms, back_ms = publishers.faults[0][0], publishers.faults[1][0]
    nacked = sum(publishers.nacked(name, down_ms, back_ms) for name in publishers.nacks)
    judge("publishers: nacks while p1 is down", "0", nacked, nacked == 0)
    reminded_ms = publishers.ack_expected_ms
    since_ms: float | str = "none" if reminded_ms is None else reminded_ms - back_ms
    judge("publishers: AckExpected after the return, ms", "first", since_ms, reminded_ms is not None)
    nacked = sum(publishers.nacked(name, back_ms) for name in publishers.nacks)
    judge("publishers: nacks after the return", "from s1 to s5", nacked, None, "if something logged was not sent")
