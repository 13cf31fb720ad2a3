"""The failure tests of the guaranteed-delivery paper, smaller and in virtual time, and what is judged of them."""

import dataclasses
from pathlib import Path

import pytest

from murmuration.papers.gryphon import criteria
from murmuration.papers.gryphon.cost import ReliabilityCost, cost_specs, ratio_of
from murmuration.papers.gryphon.paper import judge_cost
from murmuration.papers.gryphon.plan import SUBSCRIBERS_AT, FailureTest, failure_scenario, failure_tests
from murmuration.papers.gryphon.run import FailureRun, read_failure
from murmuration.papers.lab.judged_run import play_plainly
from murmuration.papers.lab.results import PaperResult

TESTS = failure_tests("virtual")


def earlier(test: FailureTest, by_s: float, seconds: float) -> FailureTest:
    """The same failures, as far from one another, so much sooner."""
    faults = tuple(each._replace(at_s=each.at_s - by_s) for each in test.faults)
    pauses = tuple((begin - by_s, end - by_s) for begin, end in test.pauses)
    return dataclasses.replace(test, faults=faults, pauses=pauses, seconds=seconds)


def shown_by(test: FailureTest, folder: Path) -> FailureRun:
    return read_failure(test, folder, play_plainly(failure_scenario(test), folder))


@pytest.fixture(scope="module")
def unsent(tmp_path_factory: pytest.TempPathFactory) -> FailureRun:
    return shown_by(earlier(TESTS.unsent, 7.76, 55), tmp_path_factory.mktemp("gryphon") / "unsent")


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> FailureRun:
    return shown_by(earlier(TESTS.sent, 7.76, 55), tmp_path_factory.mktemp("gryphon") / "sent")


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> FailureRun:
    test = earlier(TESTS.throughput, 6, 14)
    stalled, died, back = test.faults
    test = dataclasses.replace(test, faults=(stalled, died, back._replace(at_s=died.at_s + 3)), rate_per_s=10)
    return shown_by(test, tmp_path_factory.mktemp("gryphon") / "crash")


def missed(result: PaperResult) -> list[str]:
    return [each.name.partition(": ")[2] for each in result.criteria if not each.met]


def test_gryphon_s42_what_was_logged_and_not_sent_is_asked_for_once_p1_is_back(unsent: FailureRun) -> None:
    result = PaperResult(scaled_down=True)
    criteria.judge_unsent(result, unsent)
    assert missed(result) == []
    ((_, resumed_s),) = unsent.test.pauses
    for name in SUBSCRIBERS_AT:
        assert unsent.nacked(name, last_ms=1_000 * resumed_s) == 4_000
        # Silence that p1 had told nobody of, behind its last messages: noticed once there are messages behind it.
        assert unsent.nacked(name, 1_000 * resumed_s) == 41 + 31 + 21 + 11
    late = [late_ms for _, late_ms in unsent.latencies["s1"] if late_ms > 1_000]
    assert len(late) == 25
    assert late == sorted(late, reverse=True)
    assert late[0] - late[-1] == pytest.approx(960, abs=1)


def test_gryphon_s42_nothing_is_asked_for_where_p1_had_sent_all(sent: FailureRun) -> None:
    result = PaperResult(scaled_down=True)
    criteria.judge_sent(result, sent)
    assert missed(result) == []


def test_figure_8_is_missed_where_nothing_is_asked_for_or_comes_late(unsent: FailureRun, sent: FailureRun) -> None:
    without = dataclasses.replace(unsent, nacks=sent.nacks, latencies=sent.latencies)
    result = PaperResult(scaled_down=True)
    criteria.judge_unsent(result, without)
    assert missed(result) == [
        "nack ranges of s1 to s5, ticks", "messages of one publisher that come after the return",
        "they arrive within, ms",
    ]  # fmt: skip


def test_gryphon_s6_deliveries_go_on_while_a_broker_stalls_crashes_and_returns(crash: FailureRun) -> None:
    result = PaperResult(scaled_down=True)
    criteria.judge_throughput(result, crash)
    assert missed(result) == []


@pytest.mark.parametrize(
    ("broker", "second", "named"),
    [
        ("s3", 10, "s3 to s5: the worst second / before"),
        ("s1", 9, "s1 and s2 from 1 s after the crash: the worst second / before"),
        ("s2", 4, "s1 and s2 while b1 is stalled / before"),
    ],
)
def test_a_second_without_deliveries_is_seen(crash: FailureRun, broker: str, second: int, named: str) -> None:
    deliveries = crash.deliveries | {broker: list(crash.deliveries[broker])}
    deliveries[broker][second] = 0
    result = PaperResult(scaled_down=True)
    criteria.judge_throughput(result, dataclasses.replace(crash, deliveries=deliveries))
    assert named in missed(result)


def test_a_ratio_has_bounds_once_there_are_four_runs_of_each() -> None:
    assert str(ratio_of([1.0, 2.0, 4.0], [8.0, 8.0, 8.0])) == "4.00"
    assert str(ratio_of([1.0, 2.0, 4.0, 5.0], [8.0, 10.0, 10.0, 16.0])) == "4.00 (1.60 to 16.00)"
    # Of five of each, two of the 25 ratios lie outside on either side: of 252 orders 1 + 1 + 2 are as far out.
    assert str(ratio_of([1.0, 1.0, 1.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0])) == "2.50 (1.00 to 5.00)"


@pytest.mark.parametrize(
    ("ratios", "met"), [((1.02, 1.04, 1.06), True), ((1.02, 1.04, 1.2), None), ((1.12, 1.14, 1.2), False)]
)
def test_what_gryphon_costs_is_judged_by_the_whole_interval(ratios: tuple[float, ...], met: bool | None) -> None:
    share = {(spec.reliability, spec.pair): ratios[spec.pair // 2] for spec in cost_specs("ray", 15, 100, 6)}
    costs = [
        ReliabilityCost(name, 10 * (ratio if name == "gryphon" else 1), 1, 1, 1, "valid")
        for (name, _), ratio in share.items()
    ]
    result = PaperResult(scaled_down=False)
    judge_cost(result, costs, quick=False)
    assert [each.met for each in result.criteria] == [met]


def test_each_of_the_two_is_first_in_every_other_pair() -> None:
    assert [spec.reliability[0] for spec in cost_specs("ray", 15, 100, 4)] == list("bggbbggb")
