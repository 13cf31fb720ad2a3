"""Tables that compare algorithms in some conditions, or with some policies, and their pictures."""

from collections.abc import Callable, Mapping
from pathlib import Path

from murmuration.papers.epidemic import compared_plots
from murmuration.papers.epidemic.plan import EpidemicPlan
from murmuration.papers.epidemic.run import EpidemicMeasures, EpidemicSpec
from murmuration.papers.epidemic.seeded_runs import OVERHEAD_COLUMNS, Compared, SeededRuns
from murmuration.papers.epidemic.settings import Comparison
from murmuration.papers.lab.results import Figure, ResultTable

_PICTURES: Mapping[str, Callable[[Compared, str, Path], Path]] = {
    "load": compared_plots.load,
    "overlapping": compared_plots.overlapping,
    "adaptive": compared_plots.adaptive,
    "policies": compared_plots.policies,
}


def compared(plan: EpidemicPlan, name: str, runs: Mapping[EpidemicSpec, EpidemicMeasures]) -> Compared:
    """The runs of a comparison."""
    comparison = plan.comparisons[name]
    return {
        (case.label, algorithm): SeededRuns(
            [runs[comparison.spec(case, algorithm, seed)] for seed in range(1, plan.seeds + 1)]
        )
        for case in comparison.cases
        for algorithm in comparison.algorithms
    }


def comparison_table(name: str, comparison: Comparison, found: Compared, folder: Path) -> ResultTable:
    """One comparison, and its picture if it has one."""
    rows = [(label, algorithm, each.text, *each.overhead()) for (label, algorithm), each in found.items()]
    draw = _PICTURES.get(name)
    return ResultTable(
        name, f"{comparison.title}; {comparison.cases[0].setting.base.dispatchers} dispatchers",
        (comparison.label, "algorithm", "delivery rate", *OVERHEAD_COLUMNS), rows,
        [Figure(draw(found, comparison.label, folder), comparison.title)] if draw else [],
    )  # fmt: skip
