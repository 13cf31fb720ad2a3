"""`murmur paper epidemic`: plans, tables and bars of a plan that is tiny."""

import dataclasses
from pathlib import Path

import pytest

from murmuration.papers.epidemic import paper as epidemic
from murmuration.papers.epidemic.plan import Chart, EpidemicPlan
from murmuration.papers.epidemic.run import EpidemicMeasures, EpidemicSpec
from murmuration.papers.epidemic.settings import Setting
from murmuration.papers.lab.results import PaperResult
from reliability.epidemic.parameters import ALGORITHMS
from tests.papers.runs_here import RunsHere
from workloads.overlay import Tree, balanced

TINY = EpidemicSpec(
    "none", dispatchers=6, patterns=4, rate_per_s=10, loss=0.1, learn_s=0.2, warm_s=0.4, measured_s=0.5, tail_s=0.5
)


def tiny_plan() -> EpidemicPlan:
    broken = dataclasses.replace(TINY, loss=0.0, reconfigured_every_s=0.2)
    chart = Chart("loss", "loss of a link", (0.05, 0.1))
    return EpidemicPlan(Setting(TINY, 0.5), Setting(TINY, 0.5), Setting(broken, 0.5), (chart,), 1, 1, 1, {})


def made_up(spec: EpidemicSpec, rate: float) -> EpidemicMeasures:
    return EpidemicMeasures(
        spec, published=100, due=1_000, delivered=int(1_000 * rate), event_messages=100, gossip_messages=20
    )


@pytest.mark.parametrize(("loss", "remembered"), [(0.05, 0.75), (0.1, 0.56)])
def test_epidemic_evaluation_the_breadth_first_tree_gives_the_remembered_baselines(
    loss: float, remembered: float
) -> None:
    """Mean of (1 - loss)^hops over all pairs of the evaluation's tree: what no recovery should deliver."""
    overlay = balanced(Tree(100, 4), 1)
    neighbours, total = overlay.neighbours, 0.0
    assert max(map(len, neighbours.values())) == 4
    for start in overlay.brokers:
        hops = {start: 0}
        waiting = [start]
        for name in waiting:
            for peer in neighbours[name]:
                if peer not in hops:
                    hops[peer] = hops[name] + 1
                    waiting.append(peer)
        total += sum((1 - loss) ** hops[name] for name in hops if name != start)
    assert total / (100 * 99) == pytest.approx(remembered, abs=0.005)


def test_the_full_plan_is_the_evaluations_network_with_five_seeds_and_more() -> None:
    plan = EpidemicPlan.full(1)
    specs = plan.specs()
    assert len(set(specs)) == len(specs)
    compared = [{*comparison.specs(seed)} for comparison in plan.comparisons.values() for seed in range(1, 6)]
    assert all(each <= set(specs) for each in compared), "conditions and policies are compared with all seeds, too"
    large = [spec for spec in specs if spec.dispatchers == 100]
    assert {(spec.patterns, spec.subscribed, spec.matched, spec.rate_per_s, spec.buffer) for spec in large} == {
        (70, 2, 3, 50.0, 1_500)
    }
    assert {spec.seed for spec in large if spec.algorithm == "push"} == set(range(1, 6))
    assert {spec.seed for spec in large if spec.algorithm == "combined-pull"} == set(range(1, 11))
    assert {spec.algorithm for spec in EpidemicPlan.quick(1).specs()} == set(ALGORITHMS)


def test_tables_figures_and_criteria_come_of_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EpidemicPlan, "quick", lambda seeds: tiny_plan())
    result = epidemic.EpidemicPaper().reproduce(RunsHere(tmp_path), quick=True, seeds=1)
    assert [table.name for table in result.tables] == ["delivery", "sweep_loss", "reconfiguration"]
    assert all(len(row) == len(table.columns) for table in result.tables for row in table.rows)
    assert len(result.figures) == 3
    assert all(figure.stat().st_size > 5_000 for figure in result.figures)
    assert [each.met for each in result.criteria] == [None] * 8 + [True]
    assert result.criteria[-1].measured == 0


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({("none", 0.1): 0.65}, ["no recovery, loss 0.1"]),
        ({("push", 0.1): 0.929}, ["push, loss 0.1"]),
        ({("combined-pull", 0.05): 0.97}, ["combined-pull, loss 0.05"]),
        ({("publisher-pull", 0.1): 0.96}, ["combined-pull at least publisher-pull"]),
        ({("random-pull", 0.1): 0.99}, ["random-pull, loss 0.1, at equal overhead"]),
    ],
)
def test_the_criteria_can_be_missed(changed: dict[tuple[str, float], float], missed: list[str]) -> None:
    rates = {
        ("none", 0.1): 0.55, ("push", 0.1): 0.96, ("combined-pull", 0.1): 0.94, ("subscriber-pull", 0.1): 0.78,
        ("publisher-pull", 0.1): 0.83, ("random-pull", 0.1): 0.9, ("none", 0.05): 0.75, ("push", 0.05): 0.99,
        ("combined-pull", 0.05): 0.99, **changed,
    }  # fmt: skip
    plan = EpidemicPlan.full(1)
    runs = {
        spec: made_up(spec, rates[spec.algorithm, spec.loss])
        for spec in plan.specs()
        if spec.dispatchers == 100 and not spec.lossy_replies
    }
    result = PaperResult(scaled_down=False)
    epidemic.judge_recovery(result, plan, runs)
    assert [each.name for each in result.criteria if each.met is False] == missed
    assert result.all_met == (not missed)


def test_a_delivery_that_should_not_be_misses_a_criterion() -> None:
    plan = EpidemicPlan.full(1)
    runs = {spec: made_up(spec, 0.95) for spec in plan.specs() if spec.dispatchers == 100}
    next(iter(runs.values())).duplicate = 1
    result = PaperResult(scaled_down=True)
    epidemic.judge_recovery(result, plan, runs)
    assert result.criteria[-1].met is False
