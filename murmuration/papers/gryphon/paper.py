"""`murmur paper gryphon`: the failure tests of guaranteed delivery, its cost, and what intermediate brokers keep.

The failure tests and the cost run live on Ray actors (with `quick`: in virtual time, and shorter); two controls, and
memory with a slow subscriber, are measured in virtual time. docs/protocols/gryphon.md says what the text leaves open.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from murmuration.papers.gryphon import criteria, plots
from murmuration.papers.gryphon.cost import Ratio, ReliabilityCost, cost_specs, measure_reliability, ratio_of
from murmuration.papers.gryphon.memory import Kept, MemorySpec, measure_memory, memory_bound
from murmuration.papers.gryphon.plan import FailureTest, FailureTests, failure_tests
from murmuration.papers.gryphon.run import DELIVERY_COUNTS, FailureRun, measure_failure
from murmuration.papers.gryphon.throughput import Throughput
from murmuration.papers.lab.judged_run import Runtime
from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.papers.lab.results import Figure, PaperResult, ResultTable, TableCell

_CPU_AT_MOST = 1.10


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
        specs = cost_specs(runtime, 5, 200, 5) if quick else cost_specs(runtime, 10, 200, 4)
        memory = [MemorySpec(slow, 40 if quick else 120) for slow in (False, True)]
        found = runs.spread(measure_memory, memory, lambda _: list[Kept])
        kept = dict(zip(("all subscribers keep up", "one subscriber takes 20 messages/s"), found.values(), strict=True))
        tests = failure_tests(runtime)
        played = runs.one_by_one(measure_failure, tests, lambda _: FailureRun)
        costs = list(runs.one_by_one(measure_reliability, specs, lambda _: ReliabilityCost).values())
        result = PaperResult(scaled_down=quick)
        figures = [
            Figure(plots.failure(each, runs.folder), f"{each.test.title}: latency and nacks")
            for test, each in played.items()
            if test != tests.throughput
        ]
        result.tables = [
            _failures(list(played.values()), figures),
            _throughput_table(played[tests.throughput], runs.folder),
            _cost_table(costs),
            _memory_table(kept, runs.folder),
        ]
        _judge_failures(result, tests, played)
        judge_cost(result, costs, quick)
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


def _throughput_table(seen: FailureRun, folder: Path) -> ResultTable:
    rates = Throughput(seen)
    rows: list[list[TableCell]] = [
        ["all, from the stall to 5 s after the crash", rates.through],
        ["s1 and s2, while b1 is stalled and nobody knows", rates.while_stalled],
        ["s1 and s2, the worst second from 1 s after the crash", rates.least_after],
        ["s3 to s5, the worst second from the stall", rates.least_untouched],
    ]
    figure = Figure(plots.throughput(seen, folder), f"{seen.test.title}: deliveries in each second")
    return ResultTable("throughput", "Deliveries a second", ("where and when", "over those before"), rows, [figure])


_COSTS = ("cpu_s", "messages", "bytes", "deliveries")


def _ratio(costs: Sequence[ReliabilityCost], name: str) -> Ratio:
    values: dict[str, list[float]] = {"best_effort": [], "gryphon": []}
    for each in costs:
        values[each.reliability].append(float(getattr(each, name)))
    return ratio_of(values["best_effort"], values["gryphon"])


def _cost_table(costs: Sequence[ReliabilityCost]) -> ResultTable:
    rows: list[list[TableCell]] = [
        [each.reliability, each.cpu_s, each.messages, each.bytes, each.deliveries] for each in costs
    ]
    rows.append(["ratio (95 %)", *(str(_ratio(costs, name)) for name in _COSTS)])
    return ResultTable("cost", "Without failures", ("reliability", "CPU s", "messages", "bytes", "deliveries"), rows)


def _memory_table(kept: Mapping[str, Sequence[Kept]], folder: Path) -> ResultTable:
    fields = [each.name for each in dataclasses.fields(Kept)][1:]
    rows = [
        [title, *(max(getattr(point, name) for point in series) for name in fields)] for title, series in kept.items()
    ]
    columns = ("most messages kept", "b1 and b2", "s1", "p1's log", "slow client")
    figure = Figure(plots.memory(kept, folder), "Messages kept over time")
    return ResultTable("memory", "Messages kept at most", columns, rows, [figure])


def _judge_failures(result: PaperResult, tests: FailureTests, played: Mapping[FailureTest, FailureRun]) -> None:
    criteria.judge_link(result, played[tests.link])
    criteria.judge_crash(result, played[tests.crash])
    criteria.judge_noticed_crash(result, played[tests.noticed_crash])
    criteria.judge_unsent(result, played[tests.unsent])
    criteria.judge_sent(result, played[tests.sent])
    criteria.judge_throughput(result, played[tests.throughput])


def judge_cost(result: PaperResult, costs: Sequence[ReliabilityCost], quick: bool) -> None:
    """Met or missed only if the whole interval is on one side: what is between may be luck."""
    ratio = _ratio(costs, "cpu_s")
    note, met = "one process, short: not the actors' CPU", None
    if not quick and ratio.least is not None and ratio.most is not None:
        on_one_side = ratio.most <= _CPU_AT_MOST or ratio.least > _CPU_AT_MOST
        met = ratio.most <= _CPU_AT_MOST if on_one_side else None
        note = f"at most {_CPU_AT_MOST:.2f}" + ("" if on_one_side else ": the interval lies on both sides")
    result.judge("CPU over best effort (95 %)", "1.04", str(ratio), met, note)
