"""IRBR's messages over a baseline's are compared seed by seed, and judged by the mean of the seeds."""

from pathlib import Path

import pytest

from murmuration.papers.irbr.paper import judge_operations
from murmuration.papers.irbr.plan import IrbrPlan
from murmuration.papers.irbr.plots import PROTOCOL_NAMES
from murmuration.papers.irbr.plots import ratios as draw_ratios
from murmuration.papers.irbr.run import TEXT_RPF, CostSpec, OperationCost
from murmuration.papers.irbr.spread import messages, ratios, spread_table
from murmuration.papers.irbr.workload import Rates
from murmuration.papers.lab.results import PaperResult

COVERING, MATCHING = Rates(covering=0.05), Rates(matching=0.1)


def cost(routing: str, seed: int, *means: float, nodes: int = 1_024, rates: Rates = COVERING) -> OperationCost:
    made = OperationCost(CostSpec(routing, nodes, rates, (10, 40), 0, seed))
    if rates is COVERING:
        made.subscribe = list(means)
    else:
        made.subscribe, made.publish = [1.0, 1.0], list(means)
    return made


COSTS = [
    cost("irbr", 1, 20, 10), cost("irbr", 2, 20, 20), cost("irbr", 3, 1, 1),
    cost("rpf", 1, 10, 10), cost("rpf", 2, 20, 25),
    cost(TEXT_RPF, 1, 40, 40), cost("rpf", 4, 1, 1), cost("scribe", 1, 3, 3),
    cost("irbr", 1, 9, 9, nodes=256), cost("rpf", 1, 10, 10, nodes=256),
    cost("irbr", 1, 30, 60, rates=MATCHING), cost("rpf", 1, 20, 40, rates=MATCHING),
]  # fmt: skip


def test_messages_are_the_mean_of_all_operations() -> None:
    assert messages(cost("irbr", 1, 20, 10)) == (10 * 20 + 30 * 10) / 40
    assert messages(cost("irbr", 1, 30, 60, rates=MATCHING)) == 45


def test_a_ratio_has_the_seeds_that_both_have() -> None:
    found = {(each.nodes, each.rates, each.other): each for each in ratios(COSTS, ("rpf", TEXT_RPF))}
    assert len(found) == 4
    over_rpf = found[1_024, COVERING, "rpf"]
    assert over_rpf.seeds == (1, 2)
    assert over_rpf.ratios == pytest.approx([12.5 / 10, 20 / 23.75])
    assert over_rpf.words == "2 seeds, 0.842 to 1.250, 1 below 1"
    assert not over_rpf.met, "the mean decides, not that one seed is below"
    assert found[1_024, COVERING, TEXT_RPF].words == "seed 1"
    assert found[256, COVERING, "rpf"].ratios == [0.9]


def test_each_baseline_has_a_criterion_of_its_own_at_the_size_that_counts() -> None:
    plan, result = IrbrPlan.full(1), PaperResult(scaled_down=False)
    subscribing = [CostSpec(each, 1_024, COVERING, (10, 40), 0) for each in ("irbr", "scribe")]
    object.__setattr__(plan, "subscribing", subscribing)
    judge_operations(result, plan, ratios(COSTS, (TEXT_RPF, "rpf", "scribe")), {each.spec: each for each in COSTS})
    met = {each.name: (each.measured, each.met) for each in result.criteria}
    assert met == {
        "subscribe messages of IRBR over those of RPF, covering at the receiver, covering 5 %": (0.312, True),
        "subscribe messages of IRBR over those of RPF, covering 5 %": (1.046, False),
        "publish messages of IRBR over those of RPF, matching 10 %": (1.5, False),
        "subscribe messages of Scribe over those of IRBR, covering 5 %": (0.24, True),
        "missing, duplicate and spurious without failures": (0, True),
    }


def test_the_spread_has_a_table_and_a_figure(tmp_path: Path) -> None:
    found = ratios(COSTS, ("rpf", TEXT_RPF))
    table = spread_table(found, PROTOCOL_NAMES, [])
    row = (
        1_024,
        "subscribe",
        "5 %",
        "RPF",
        2,
        "16.2 (12.5 to 20.0)",
        "16.9 (10.0 to 23.8)",
        "1.046 (0.842 to 1.250)",
        1,
    )
    assert row in table.rows
    assert draw_ratios(found, tmp_path).stat().st_size > 5_000


def test_other_seeds_are_played_beside_the_first() -> None:
    plan = IrbrPlan.full(1)
    for nodes in (64, 256, 1_024):
        assert {spec.seed for spec in plan.spread if spec.nodes == nodes} == set(range(1, 13))
    assert {spec.routing for spec in plan.spread if spec.rates.covering} == {"irbr", "rpf", TEXT_RPF}
    assert {*plan.spread, *plan.large} < set(plan.specs())
    assert len(plan.specs()) == len(set(plan.specs())), "that of the first seed is of the charts too, and played once"
