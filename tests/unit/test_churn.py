"""Churn: reading traces, what is seen through a window, the generator, and plans of starts and kills."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import Fault, FaultKind, FaultTargets
from murmur_pubsub.plan_checker import check_plan
from murmuration.commands.churn import compare_churn, judge_churn
from murmuration.deployment.churn import read_availability
from workloads.churn.fit import fit
from workloads.churn.generator import GeneratedChurn, generate
from workloads.churn.held_out import held_out
from workloads.churn.plan import churn_plan
from workloads.churn.sessions import Availability, ChurnSession, select
from workloads.churn.skype import SKYPE
from workloads.churn.statistics import Statistics, describe, gap_lengths, session_lengths, survival_quantiles
from workloads.churn.trace_file import SKYPE_WINDOW_S, mend_outages, read_trace, write_trace

_DAY_S = 86_400


@st.composite
def node_sessions(draw: st.DrawFn) -> tuple[ChurnSession, ...]:
    times = sorted(draw(st.sets(st.integers(0, 1_000), max_size=12)))
    return tuple(zip(times[::2], times[1::2], strict=False))


traces = st.lists(node_sessions(), min_size=1, max_size=6).map(
    lambda held: Availability({f"n{number}": each for number, each in enumerate(held)}, 0, 1_000)
)


@given(traces, st.integers(0, 999))
def test_the_population_counts_the_sessions_that_hold_a_moment(trace: Availability, time_s: int) -> None:
    assert trace.population([time_s])[0] == len(trace.up_at(time_s))


@given(traces, st.integers(0, 999), st.integers(1, 1_000))
def test_a_window_shows_what_was_up_in_it(trace: Availability, begin_s: int, length_s: int) -> None:
    seen = trace.window(begin_s, begin_s + length_s)
    for time_s in (begin_s, min(begin_s + length_s, 1_000) - 1):
        assert seen.up_at(time_s) == trace.up_at(time_s)
    assert all(begin_s <= up_s < down_s for held in seen.sessions.values() for up_s, down_s in held)


@given(traces)
def test_changes_lead_from_the_first_population_to_the_last(trace: Availability) -> None:
    up = set(trace.up_at(0))
    times = []
    for time_s, name, is_up in trace.changes():
        times.append(time_s)
        assert (name in up) != is_up
        (up.add if is_up else up.remove)(name)
    assert times == sorted(times)
    assert up == set(trace.up_at(999)) | {
        name for name, held in trace.sessions.items() if held and held[-1][1] == 1_000
    }


def test_a_trace_written_is_the_trace_read(tmp_path: Path) -> None:
    trace = generate(GeneratedChurn(50, 10), 3)
    write_trace(trace, tmp_path / "t.avt")
    assert read_trace(tmp_path / "t.avt").sessions == trace.sessions


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("b\t1\t 30 20", "a session from 30 to 20"),
        ("b\t2\t 10 30 20 40", "a session from 20 after one to 30"),
        ("b\t2\t 10 30", "2 times for 2 sessions"),
        ("b\t1\t 10 x", "no number"),
        ("b 1 10 20", "1 fields"),
        ("a\t1\t 10 20", "node a again"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, found: str) -> None:
    path = tmp_path / "broken.avt"
    path.write_text(f"a\t1\t 0 5\n{line}\n")
    with pytest.raises(InputError) as error:
        read_trace(path)
    assert error.value.place == f"{path}, line 2"
    assert found in error.value.found


def test_a_failed_probe_is_mended_and_a_real_departure_is_not() -> None:
    held = {f"n{number}": ((0, 5_000), (6_800, 20_000)) for number in range(9)}
    held["late"] = ((0, 5_000), (15_000, 20_000))
    held["apart"] = ((0, 9_000), (10_800, 20_000))
    mended = mend_outages(Availability(held, 0, 20_000))
    assert mended.description["outages mended"] == 1
    assert mended.sessions["n0"] == ((0, 20_000),)
    assert mended.sessions["late"] == held["late"]
    assert mended.sessions["apart"] == held["apart"], "one node alone is no outage"


def test_censored_sessions_count_as_at_least_so_long() -> None:
    lengths = [(3_600, True), (7_200, True), (7_200, False), (7_200, False)]
    assert survival_quantiles(lengths, (0.25, 0.5, 0.9)) == pytest.approx((1.0, 2.0, float("nan")), nan_ok=True)


def test_sessions_whose_begin_was_not_seen_have_no_length_and_others_say_whether_they_ended() -> None:
    trace = Availability({"a": ((0, 50), (60, 100)), "b": ((10, 20),)}, 0, 100)
    assert session_lengths(trace) == [(40, False), (10, True)]
    assert gap_lengths(trace) == [(10, True)]


def test_the_skype_trace_is_what_it_is_known_to_be(data_directory: Path) -> None:
    whole = read_trace(data_directory / "skype.avt")
    assert (len(whole.sessions), sum(map(len, whole.sessions.values())), whole.end_s) == (2_081, 29_217, 2_478_200)
    seen = whole.window(*SKYPE_WINDOW_S)
    assert describe(seen).population_mean == pytest.approx(709, abs=1)
    lowest = seen.population(range(*SKYPE_WINDOW_S, 1_800)).min()
    mended = mend_outages(whole).window(*SKYPE_WINDOW_S)
    assert lowest < 400, "the prober's outages"
    assert mended.population(range(*SKYPE_WINDOW_S, 1_800)).min() > 500


def test_the_tables_are_those_of_the_trace(data_directory: Path) -> None:
    fitted = fit(read_availability(data_directory / "skype.avt"))
    for field in dataclasses.fields(SKYPE):
        found = np.array(getattr(fitted, field.name))
        assert found == pytest.approx(np.array(getattr(SKYPE, field.name)), rel=0.01), field.name


def test_the_generator_resembles_the_trace(data_directory: Path) -> None:
    trace = read_availability(data_directory / "skype.avt")
    wanted = GeneratedChurn(len(trace.seen.sessions), (trace.end_s - trace.begin_s) / _DAY_S, begin_s=trace.begin_s)
    _assert_resembles(describe(generate(wanted, 1)), describe(trace))


def test_fitted_to_two_weeks_the_generator_resembles_those_that_follow(data_directory: Path) -> None:
    _, (trace, made) = held_out(read_availability(data_directory / "skype.avt"), 14, [1])
    assert (trace.end_s - trace.begin_s) // _DAY_S == 10
    _assert_resembles(describe(made), describe(trace))


def test_nodes_that_are_born_after_the_days_that_were_fitted_are_counted_in_advance() -> None:
    """100 nodes are there from the beginning, and 10 more come each day from the second on: 230 in 14 days, 290 in 20.
    10 a day are a sixteenth of the 160 of the first week: 230 nodes become 230 x (1 + 20 / 16) / (1 + 14 / 16)."""
    born_days = [0] * 100 + [day for day in range(1, 20) for _ in range(10)]
    sessions = {
        f"n{number}": tuple(
            (day * _DAY_S if day == 0 else day * _DAY_S + 3_600, day * _DAY_S + 13 * 3_600) for day in range(born, 20)
        )
        for number, born in enumerate(born_days)
    }
    (fitted, _), (later, made) = held_out(Availability(sessions, 0, 20 * _DAY_S), 14, [1])
    assert (len(fitted.seen.sessions), len(later.sessions), len(made.sessions)) == (230, 290, 276)


def _assert_resembles(made: Statistics, real: Statistics) -> None:
    for name in ("nodes", "population_mean", "sessions", "availability_mean", "departures_per_hour", "arrivals"):
        assert getattr(made, name) == pytest.approx(getattr(real, name), rel=0.1), name
    assert made.swing == pytest.approx(real.swing, abs=0.05)
    assert made.week_swing == pytest.approx(real.week_swing, abs=0.06)
    assert made.week_correlation > 0.9
    assert made.availability_quantiles == pytest.approx(real.availability_quantiles, abs=0.06)
    assert made.session_quantiles == pytest.approx(real.session_quantiles, rel=0.15)
    assert made.gap_quantiles == pytest.approx(real.gap_quantiles, rel=0.2)
    assert made.sessions_per_node[2] == pytest.approx(real.sessions_per_node[2], rel=0.2)


def test_tables_fitted_to_generated_churn_generate_the_like_again() -> None:
    wanted = GeneratedChurn(1_500, 28)
    first = generate(wanted, 1)
    fitted = fit(first)
    assert fitted.step_s == SKYPE.step_s
    assert fitted.coming_hours == pytest.approx(SKYPE.coming_hours, abs=0.15)
    assert fitted.leaving_days == pytest.approx(SKYPE.leaving_days, abs=0.1)
    _assert_resembles(describe(generate(dataclasses.replace(wanted, tables=fitted), 2)), describe(first))


def test_the_first_week_is_as_later_ones_but_for_nodes_that_are_born_or_lost() -> None:
    settled = dataclasses.replace(SKYPE, births=(0.0,) * len(SKYPE.births), lasts=(0.0,) * len(SKYPE.lasts))
    made = generate(GeneratedChurn(2_000, 28, tables=settled), 1)
    first, last = describe(made).arrivals
    assert first == pytest.approx(last, rel=0.03)
    days = made.population(range(0, made.end_s, 3_600)).reshape(-1, 24).mean(axis=1)
    assert days[0] == pytest.approx(days[21], rel=0.03)
    lost = describe(generate(GeneratedChurn(2_000, 28), 1)).arrivals
    assert lost[1] < 0.9 * lost[0], "as the trace, which loses more nodes than it gains"


def test_nodes_change_at_probes_alone_and_do_not_depend_on_how_many_there_are() -> None:
    many, few = generate(GeneratedChurn(1_010, 5), 1), generate(GeneratedChurn(10, 5), 1)
    assert {name: many.sessions[name] for name in few.sessions} == few.sessions
    assert all(time_s % SKYPE.step_s == 0 for time_s, _, _ in many.changes())


def test_generated_churn_begins_where_it_is_told_to_in_the_week() -> None:
    later = generate(GeneratedChurn(1_000, 3, begin_s=4 * _DAY_S), 1)
    assert (later.begin_s, later.end_s) == (4 * _DAY_S, 7 * _DAY_S)
    weekend, workdays = (describe(generate(GeneratedChurn(1_000, 2, begin_s=day * _DAY_S), 1)) for day in (4, 1))
    assert weekend.arrivals[0] < 0.85 * workdays.arrivals[0]


@pytest.mark.parametrize(
    "held",
    [
        ((0, 10), (20, 30)),
        ((0, 20 * _DAY_S),),
        ((15 * _DAY_S, 16 * _DAY_S), (17 * _DAY_S, 20 * _DAY_S)),
    ],
)
def test_what_is_too_little_to_fit_is_refused(held: tuple[ChurnSession, ...]) -> None:
    with pytest.raises(InputError, match="at least 10 days in which nodes come and go"):
        fit(Availability({"n0": held}, 0, held[-1][1]))


def test_a_small_trace_of_any_times_can_be_fitted() -> None:
    held = tuple((begin_s, begin_s + 40_007) for begin_s in range(11, 15 * _DAY_S, _DAY_S))
    fitted = fit(Availability({"n0": held, "n1": held[::2]}, 0, 16 * _DAY_S))
    made = generate(GeneratedChurn(20, 5, tables=fitted), 1)
    assert all(map(len, made.sessions.values()))


def test_weeks_are_described_where_the_window_shows_two() -> None:
    held = tuple((day * _DAY_S, day * _DAY_S + 3_600 * (2 if day % 7 == 5 else 12)) for day in range(21))
    weekly = describe(Availability({"n0": held, "n1": held}, 0, 21 * _DAY_S))
    assert weekly.week_correlation == pytest.approx(1)
    assert weekly.arrivals == pytest.approx((2 * 6 / 7, 2))
    assert weekly.week_swing == pytest.approx((1 - 2 / 12) * 7 / (6 + 2 / 12))
    short = describe(Availability({"n0": held[:5]}, 0, 5 * _DAY_S))
    assert np.isnan([short.week_swing, short.week_correlation]).all()
    assert short.arrivals == pytest.approx((0.8, 0.8))


def test_the_command_has_a_column_for_each_seed_and_judges_by_what_it_did_not_see(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare_churn(None, 30, 1, range(1, 3), False, None)
    shown = capsys.readouterr().out
    assert "generated, seed 1" in shown
    assert "generated, seed 2" in shown
    write_trace(generate(GeneratedChurn(100, 15), 1), tmp_path / "t.avt")
    judge_churn(tmp_path / "t.avt", 11, range(1, 2), False, tmp_path / "t.png")
    shown = capsys.readouterr().out
    assert "t.avt, 11 days fitted" in shown
    assert "t.avt, days held out" in shown
    assert (tmp_path / "t.png").exists()
    with pytest.raises(InputError, match="a day less than the 1"):
        judge_churn(tmp_path / "t.avt", 14.9, range(1, 2), False, None)


def test_a_seed_makes_one_churn_and_scale_slows_it() -> None:
    wanted = GeneratedChurn(200, 20)
    assert generate(wanted, 1).sessions == generate(wanted, 1).sessions
    assert generate(wanted, 1).sessions != generate(wanted, 2).sessions
    slower = dataclasses.replace(wanted, scale=4.0)
    assert describe(generate(slower, 1)).sessions < 0.6 * describe(generate(wanted, 1)).sessions


def test_selection_follows_its_rule() -> None:
    trace = generate(GeneratedChurn(100, 10), 1)
    active = select(trace, 10, "active", 1)
    assert min(map(len, active.sessions.values())) >= np.quantile([len(held) for held in trace.sessions.values()], 0.85)
    assert list(select(trace, 10, "random", 1).sessions) != list(select(trace, 10, "random", 2).sessions)
    with pytest.raises(InputError, match="1 to 100"):
        select(trace, 101, "random", 1)


@given(st.integers(0, 1_000), st.sampled_from([1.0, 60.0, 1440.0]), st.integers(1, 5_000_000))
def test_plans_can_be_carried_out_and_nothing_is_shorter_than_allowed(seed: int, speed: float, shortest: int) -> None:
    trace = generate(GeneratedChurn(5, 3), seed)
    plan = churn_plan(trace, list(trace.sessions), speed, shortest)
    check_plan(plan.steps, FaultTargets(list(trace.sessions), [], {}, plan.start_down))
    latest: dict[str, int] = {}
    for step in plan.steps:
        (name,) = step.nodes
        assert step.time_us - latest.get(name, -shortest) >= shortest
        latest[name] = step.time_us
        assert step.kind in (FaultKind.KILL, FaultKind.RESTART)


def test_churn_that_begins_later_kills_then_the_nodes_that_are_not_there() -> None:
    trace = Availability({"n0": ((0, 500),), "n1": ((300, 900),)}, 0, 1_000)
    plan = churn_plan(trace, ["a", "b"], 1.0, 1_000_000).begun_at(30_000_000)
    assert plan.start_down == frozenset()
    assert [(step.time_us // 1_000_000, step.kind, step.nodes[0]) for step in plan.steps] == [
        (30, FaultKind.KILL, "b"),
        (330, FaultKind.RESTART, "b"),
        (530, FaultKind.KILL, "a"),
        (930, FaultKind.KILL, "b"),
    ]


def test_nodes_that_a_run_begins_with_are_killed_as_churn_begins_though_it_begins_at_once() -> None:
    trace = Availability({"n0": ((0, 500),), "n1": ((300, 900),), "n2": ((300, 900),)}, 0, 1_000)
    plan = churn_plan(trace, ["a", "b", "c"], 1.0, 1_000_000)
    begun = plan.begun_at(0, frozenset({"a", "b"}))
    assert begun.start_down == {"c"}
    assert begun.steps == (Fault(0, FaultKind.KILL, ("b",)), *plan.steps)


@pytest.mark.parametrize("days", [math.nan, math.inf, -1.0, 1e9])
def test_days_that_cannot_be_generated_are_refused(days: float) -> None:
    with pytest.raises(InputError, match=r"generated churn: found 2000 nodes, \S+ days, scale 1; allowed: numbers"):
        GeneratedChurn(days=days)


def test_nor_can_the_tables_be_fitted_to_them() -> None:
    trace = Availability({"n0": ((0, 86_400 * 20),)}, 0, 86_400 * 20)
    for days in (math.nan, -math.inf):
        with pytest.raises(InputError, match="--fit-days"):
            held_out(trace, days, [1])
