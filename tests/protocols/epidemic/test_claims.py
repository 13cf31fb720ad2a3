"""The comparisons of `murmur paper epidemic`: what is played for them, and what their criteria find."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from murmuration.papers.epidemic.claims import judge_claims
from murmuration.papers.epidemic.comparisons import comparison_table
from murmuration.papers.epidemic.plan import EpidemicPlan
from murmuration.papers.epidemic.run import EpidemicMeasures, EpidemicSpec
from murmuration.papers.epidemic.seeded_runs import Compared, SeededRuns
from murmuration.papers.lab.results import PaperResult
from reliability.epidemic.parameters import ALGORITHMS, Algorithm

PLAN = EpidemicPlan.full(1)
Told = dict[tuple[str, str, Algorithm], dict[str, Any]]


def outcome(rate: float = 0.95, gossip: float = 0.2, delay_ms: float = 100) -> SeededRuns:
    delivered = round(1_000 * rate)
    run = EpidemicMeasures(
        EpidemicSpec("none", tail_s=0.1), due=1_000, delivered=delivered, event_messages=1_000,
        event_bytes=1_000, gossip_messages=round(1_000 * gossip), gossip_bytes=round(2_000 * gossip),
        delay_us=round(delivered * delay_ms * 1e3), over_time=[(4, 5)] * 3,
    )  # fmt: skip
    return SeededRuns([run, run])


def all_compared(changed: Told) -> dict[str, Compared]:
    """As the text says it, but for what is changed."""
    as_said: Told = {
        ("load", "5 a second", "push"): {"rate": 0.99, "delay_ms": 50},
        ("adaptive", "loss 0, adaptive", "push"): {"gossip": 0.1},
        ("p_forward_large", "0.5", "push"): {"rate": 0.8},
        ("control", "interval", "random-pull"): {"rate": 0.9},
        ("control", "interval, Pforward", "random-pull"): {"rate": 0.9},
    }
    for algorithm in ALGORITHMS:
        as_said["policies", "everywhere, oldest", algorithm] = {"rate": 0.8}
        as_said["policies", "interested, random", algorithm] = {"rate": 0.97}
    as_said |= changed
    return {
        name: {
            (case.label, algorithm): outcome(**as_said.get((name, case.label, algorithm), {}))
            for case in comparison.cases
            for algorithm in comparison.algorithms
        }
        for name, comparison in PLAN.comparisons.items()
    }


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({("overlapping", "none", "push"): {"rate": 0.9}}, ["push, reconfigurations that overlap"]),
        ({("load", "5 a second", "publisher-pull"): {"rate": 1.0}}, ["5 events/s: delivery rate of push"]),
        ({("load", "5 a second", "combined-pull"): {"delay_ms": 49}}, ["5 events/s: mean delay of push"]),
        (
            {("adaptive", "loss 0, adaptive", "push"): {"gossip": 0.2}},
            ["adaptive interval, no losses: gossip of push"],
        ),
        (
            {("adaptive", "loss 0.1, adaptive", "combined-pull"): {"rate": 0.93}},
            ["adaptive interval, loss 0.1: combined-pull"],
        ),
        ({("p_forward_large", "0.5", "push"): {"rate": 0.86}}, ["Pforward 0.5, 100 dispatchers: push"]),
        ({("p_forward", "0.5", "combined-pull"): {"rate": 0.93}}, ["Pforward 1 instead of 0.5: pulls"]),
        ({("policies", "interested, random", "push"): {"rate": 0.9}}, ["discarded at random, not the oldest"]),
        (
            {("policies", "everywhere, uninterested", each): {"rate": 0.805} for each in ALGORITHMS},
            ["kept everywhere: first what is neither published nor subscribed here, not the oldest"],
        ),
        (
            {("control", "interval", "random-pull"): {"rate": 0.94}},
            ["random-pull, loss 0.1, equal interval"],
        ),
    ],
)
def test_the_criteria_can_be_missed(changed: Told, missed: list[str]) -> None:
    result = PaperResult(scaled_down=False)
    apart = {algorithm: outcome(gossip=0.3 if algorithm == "push" else 0.1) for algorithm in ALGORITHMS}
    judge_claims(result, all_compared(changed), apart)
    assert [each.name for each in result.criteria if each.met is False] == missed


def test_a_pull_that_gossips_as_much_as_push_where_links_break_now_and_then_misses_criteria() -> None:
    result = PaperResult(scaled_down=False)
    apart = {
        algorithm: outcome(gossip=0.3 if algorithm in {"push", "subscriber-pull"} else 0.1) for algorithm in ALGORITHMS
    }
    judge_claims(result, all_compared({}), apart)
    missed = [each.name for each in result.criteria if not each.met]
    assert missed == [
        "a link breaks every 0.2 s: gossip messages for each event message",
        "a link breaks every 0.2 s: gossip bytes for each byte of event messages",
    ]


@pytest.mark.parametrize("name", PLAN.comparisons)
def test_a_comparison_has_a_row_for_each_case_and_algorithm(name: str, tmp_path: Path) -> None:
    comparison, found = PLAN.comparisons[name], all_compared({})[name]
    table = comparison_table(name, comparison, found, tmp_path)
    assert [row[:2] for row in table.rows] == list(found)
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert all(figure.path.stat().st_size > 5_000 for figure in table.figures)


def test_cases_differ_in_what_they_are_named_for_and_in_nothing_else() -> None:
    def differs(name: str, first: int, second: int, algorithm: Algorithm) -> set[str]:
        comparison = PLAN.comparisons[name]
        one, other = (
            dataclasses.asdict(comparison.spec(comparison.cases[number], algorithm, 1)) for number in (first, second)
        )
        return {field for field, value in one.items() if other[field] != value}

    stretches = {"rate_per_s", "learn_s", "warm_s", "measured_s", "tail_s"}
    assert differs("load", 0, 1, "push") == stretches, "where events are few, numbers take longer to be learnt"
    assert differs("overlapping", 0, 1, "push") == {"loss"}
    assert differs("adaptive", 0, 1, "push") == {"adaptive"}
    assert differs("p_forward", 0, 1, "push") == {"p_forward"}
    assert differs("policies", 2, 3, "push") == {"discard"}
    assert differs("control", 0, 1, "random-pull") == {"interval_s"}
    assert differs("control", 1, 2, "random-pull") == {"p_forward"}
    combined, control = (
        PLAN.comparisons["control"].spec(PLAN.comparisons["control"].cases[2], algorithm, 1)
        for algorithm in PLAN.comparisons["control"].algorithms
    )
    assert dataclasses.replace(combined, algorithm="random-pull") == control, "the same means"
