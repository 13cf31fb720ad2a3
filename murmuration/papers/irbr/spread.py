"""IRBR's messages over a baseline's, seed by seed: each has other identifiers, tables, filters and events."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from murmuration.papers.irbr.run import OperationCost
from murmuration.papers.irbr.workload import Rates
from murmuration.papers.lab.results import Figure, ResultTable


@dataclass(frozen=True, slots=True)
class Ratio:
    """Messages of an operation with IRBR over those with a baseline, seed by seed."""

    nodes: int
    rates: Rates
    other: str
    seeds: tuple[int, ...]
    own: tuple[float, ...]
    """IRBR's mean messages an operation."""
    others: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """One for each seed."""
        return [own / other for own, other in zip(self.own, self.others, strict=True)]

    @property
    def mean(self) -> float:
        """Of the ratios."""
        return sum(self.ratios) / len(self.ratios)

    @property
    def met(self) -> bool:
        """Does IRBR need fewer in the mean of the seeds?"""
        return self.mean < 1

    @property
    def words(self) -> str:
        """The spread, in words."""
        if len(self.seeds) == 1:
            return f"seed {self.seeds[0]}"
        below = sum(ratio < 1 for ratio in self.ratios)
        return f"{len(self.seeds)} seeds, {min(self.ratios):.3f} to {max(self.ratios):.3f}, {below} below 1"


def ratios(costs: Iterable[OperationCost], others: Sequence[str]) -> list[Ratio]:
    """Of the runs at each size and rate, over each baseline that was measured there: the seeds that both have. In the
    order of operations, rates, baselines and sizes."""
    measured: dict[tuple[int, Rates], dict[str, dict[int, float]]] = {}
    for cost in costs:
        spec = cost.spec
        measured.setdefault((spec.nodes, spec.rates), {}).setdefault(spec.routing, {})[spec.seed] = messages(cost)
    found = []
    for (nodes, rates), by_routing in measured.items():
        own = by_routing.get("irbr", {})
        for other in others:
            seeds = tuple(sorted(own.keys() & by_routing.get(other, {}).keys()))
            if seeds:
                beside = by_routing[other]
                each = tuple(own[seed] for seed in seeds), tuple(beside[seed] for seed in seeds)
                found.append(Ratio(nodes, rates, other, seeds, *each))
    return sorted(
        found, key=lambda each: (operation(each.rates), wanted(each.rates), others.index(each.other), each.nodes)
    )


def messages(cost: OperationCost) -> float:
    """Of a publish operation the mean over the checkpoints; of a subscribe operation that of all of them."""
    if cost.publish:
        return sum(cost.publish) / len(cost.publish)
    bounds = (0, *cost.spec.checkpoints)
    sent = sum(mean * (bounds[at + 1] - bounds[at]) for at, mean in enumerate(cost.subscribe))
    return sent / bounds[-1]


def spread_table(found: Sequence[Ratio], names: dict[str, str], figures: Sequence[Figure]) -> ResultTable:
    """Each ratio with its spread."""
    rows = [
        (
            ratio.nodes, operation(ratio.rates), f"{100 * wanted(ratio.rates):g} %", names[ratio.other],
            len(ratio.seeds), _spread(ratio.own, 1), _spread(ratio.others, 1), _spread(ratio.ratios, 3),
            sum(each < 1 for each in ratio.ratios),
        )
        for ratio in found
    ]  # fmt: skip
    columns = (
        "nodes", "operation", "covering or matching rate", "IRBR beside", "seeds", "IRBR: mean (least to greatest)",
        "the other", "IRBR over the other", "seeds below 1",
    )  # fmt: skip
    return ResultTable("spread", "Messages an operation, seed by seed", columns, rows, figures)


def operation(rates: Rates) -> str:
    """What is counted at such rates."""
    return "publish" if rates.covering is None else "subscribe"


def wanted(rates: Rates) -> float:
    """The rate that is wanted."""
    return (rates.matching or 0) if rates.covering is None else rates.covering


def _spread(values: Sequence[float], digits: int) -> str:
    mean = sum(values) / len(values)
    return f"{mean:,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"
