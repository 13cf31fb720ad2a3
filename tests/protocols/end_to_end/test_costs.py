"""What the benchmark of costs counts, on rows made by hand and on small runs."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import exactly_once_costs as costs
from benchmarks.exactly_once_counts import (
    ACKNOWLEDGED,
    AGAIN,
    AT_REST,
    CAME_BACK,
    CARRIED,
    ENLISTED,
    GONE,
    OWN,
    STAYED,
    Course,
    brought_something,
    count_by_fate,
    count_messages,
    fate_of_brokers,
    measure_deliveries,
)
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import Fault, FaultKind
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import ROW_TYPE, read_rows
from murmur_pubsub.message import kind_of
from murmuration.hunt.trial import deployment_of
from reliability.best_effort import Forwarded
from reliability.durable.messages import CatchUp, Caught, CaughtUp, Enlist, Release
from reliability.end_to_end.messages import Carried
from reliability.gryphon.messages import HandedBack
from workloads.churn.sessions import Availability
from workloads.churn.trace_file import write_trace

B0, B1, B2, C0 = range(4)
IS_BROKER = np.array([True, True, True, False])


def sends(*rows: tuple[int, int, int, Any]) -> Any:
    """(time, from, to, message class) each, of 10 bytes."""
    made = np.zeros(len(rows), ROW_TYPE)
    for place, (time_us, node, peer, message) in enumerate(rows):
        made[place]["kind"] = RowKind.SEND
        made[place]["time_us"], made[place]["node"], made[place]["peer"] = time_us, node, peer
        made[place]["value"], made[place]["bytes"] = kind_of(message), 10
    return made


def made(*rows: dict[str, int]) -> Any:
    found = np.zeros(len(rows), ROW_TYPE)
    for place, row in enumerate(rows):
        for name, value in row.items():
            found[place][name] = value
    return found


def test_a_question_brought_something_if_an_event_came_before_the_next_question() -> None:
    rows = sends(
        (10, B1, B0, CatchUp), (20, B0, B1, CaughtUp),
        (30, B1, B0, CatchUp), (40, B0, B1, Caught), (41, B0, B1, CaughtUp),
        (50, B1, B0, CatchUp), (60, B0, B1, CaughtUp),
    )  # fmt: skip
    assert brought_something(rows).tolist() == [False, False, True, True, True, False, False]


def test_what_came_to_another_broker_or_by_another_pubend_is_no_answer() -> None:
    rows = sends((10, B1, B0, CatchUp), (20, B0, B2, Caught), (20, B2, B1, Caught), (30, B0, B1, CaughtUp))
    assert not brought_something(rows)[[0, 3]].any()


def test_an_answer_before_all_questions_answers_none() -> None:
    assert not brought_something(sends((5, B0, B1, Caught), (10, B1, B0, CatchUp)))[1]


def test_messages_between_brokers_in_the_measured_time_are_counted_by_kind() -> None:
    rows = sends(
        (5, B0, B1, Carried),  # before
        (10, B0, B1, Carried), (11, B1, B2, Forwarded),
        (12, B1, B0, CatchUp), (13, B0, B1, Caught), (14, B0, B1, CaughtUp),
        (15, B2, B0, CatchUp), (16, B0, B2, CaughtUp),
        (17, B1, B0, Release), (18, B1, B0, Enlist),
        (18, C0, B0, HandedBack),  # the last mile
        (20, B0, B1, Carried),  # after
    )  # fmt: skip
    counts, sizes = count_messages(Course(rows, IS_BROKER, 10, 20))
    assert counts == {CARRIED: 2, AGAIN: 3, AT_REST: 2, ACKNOWLEDGED: 1, ENLISTED: 1}
    assert sizes == {kind: 10 * count for kind, count in counts.items()}


def test_a_kind_that_nobody_names_is_routings_own() -> None:
    rows = sends((10, B0, B1, HandedBack))
    assert count_messages(Course(rows, IS_BROKER, 0, 20))[0] == {OWN: 1}


def test_deliveries_of_what_was_published_in_the_measured_time_count_once() -> None:
    event = {"source": 7, "sequence": 3}
    rows = made(
        {"kind": RowKind.PUBLISH, "time_us": 5_000, "source": 7, "sequence": 2},  # before
        {"kind": RowKind.PUBLISH, "time_us": 10_000, **event},
        {"kind": RowKind.DELIVER, "time_us": 19_000, **event, "value": 1, "hops": 9},  # a second time
        {"kind": RowKind.DELIVER, "time_us": 12_000, **event, "value": 1, "hops": 1},
        {"kind": RowKind.DELIVER, "time_us": 31_000, **event, "value": 2, "hops": 4},  # after the end, and counted
        {"kind": RowKind.DELIVER, "time_us": 12_000, "source": 7, "sequence": 2, "value": 1, "hops": 5},
    )
    found = measure_deliveries(Course(rows, IS_BROKER, 10_000, 20_000))
    assert (found.deliveries, found.hops, found.mean_ms) == (2, 2.5, 11.5)
    assert found.p99_ms == pytest.approx(20.81)


def test_nothing_delivered_has_no_delay() -> None:
    assert measure_deliveries(Course(made(), IS_BROKER, 0, 1)) == (0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("values", "text"),
    [([1.0, 1.0], "1.00"), ([1.0, 2.0, 6.0], "3.00 (1.00-6.00)"), ([1_000.0, 3_000.0], "2,000 (1,000-3,000)")],
)
def test_a_spread_has_mean_least_and_largest(values: Sequence[float], text: str) -> None:
    assert costs.spread(values) == text


def test_a_ratio_is_taken_seed_by_seed() -> None:
    assert costs.ratio([2.0, 12.0], [1.0, 3.0]) == "3.00 (2.00-4.00)"
    assert costs.ratio([2.0], [0.0]) == "-"


def test_kills_are_an_eighth_of_the_brokers_all_in_the_measured_time() -> None:
    planned = costs.kills(40, 1, 10, 20)
    times = [int(each["at"].removesuffix(" ms")) for each in planned]
    assert len({each["kill"] for each in planned}) == 5
    assert 10_000 < min(times) < max(times) < 30_000
    assert planned == costs.kills(40, 1, 10, 20) != costs.kills(40, 2, 10, 20)


def small(faults: bool, reliability: str) -> costs.Costs:
    return costs.measure(costs.Job("S2", costs.multipath_scenario("S2", 1, 12, 4, 2, faults), 2, reliability))


def test_without_faults_both_deliver_all_and_one_sends_more() -> None:
    plain, reliable = (small(False, each) for each in costs.RELIABILITIES)
    assert plain.hit_ratio == reliable.hit_ratio == 1
    assert (plain.required, plain.published) == (reliable.required, reliable.published)
    assert plain.required > 100
    assert set(plain.messages) == {CARRIED, OWN}
    assert reliable.messages[CARRIED] == pytest.approx(plain.messages[CARRIED], rel=0.01)
    assert reliable.messages[ACKNOWLEDGED] > 0
    assert AT_REST not in reliable.messages
    assert reliable.seconds == pytest.approx(4, abs=0.1)


def test_under_faults_one_delivers_all_and_the_other_does_not() -> None:
    plain, reliable = (small(True, each) for each in costs.RELIABILITIES)
    assert min(plain.missing, plain.excused) > 0
    assert (reliable.missing, reliable.excused, reliable.wrong) == (0, 0, 0)
    assert reliable.messages[AGAIN] > 0
    assert reliable.p99_ms > plain.p99_ms


def test_a_client_says_once_what_it_subscribes_to(tmp_path: Path) -> None:
    """So many subscriptions are recorded as there are clients and pubends at other brokers. A client that says each of
    its subscriptions has most of them gathered: a publishers' broker hears the first word, and the last."""
    scenario = costs.multipath_scenario("S0", 1, 12, 1, 1, False)
    plain = deployment_of(scenario | {"broker": scenario["broker"] | {"reliability": "end_to_end"}})
    assert recorded(costs.as_reliable(scenario, "end_to_end"), tmp_path / "once") == 12 * 11
    assert recorded(plain, tmp_path / "each") <= 2 * 12 * 11


def recorded(deployment: Deployment, folder: Path) -> int:
    folder.mkdir()
    run = costs.TimedRun(deployment, folder, lambda *_: None)
    run.play()
    rows = read_rows(folder)
    return int(((rows["kind"] == RowKind.SEND) & (rows["value"] == kind_of(Enlist))).sum())


def test_a_warm_up_that_outlasts_publishing_is_refused() -> None:
    scenario = costs.multipath_scenario("S0", 1, 12, 1, 1, False)
    with pytest.raises(InputError, match=r"less than publishing takes"):
        costs.measure(costs.Job("S0", scenario, 5, "best_effort"))


def test_cpu_is_that_between_warm_up_and_the_end_of_publishing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 12.5])
    monkeypatch.setattr(costs, "time", SimpleNamespace(process_time=lambda: next(clock)))
    scenario = costs.multipath_scenario("S0", 1, 12, 1, 1, False)
    run = costs.TimedRun(deployment_of(scenario), tmp_path, lambda *_: None)
    run.warm_us = 1_000_000
    run.play()
    assert run.cpu_s == 2.5
    assert run.ends_us - run.begins_us == pytest.approx(1e6, rel=0.05)


def test_under_churn_all_that_came_back_get_everything(tmp_path: Path) -> None:
    """Of a trace in which each node that leaves comes back two hours later."""
    hour = 3_600
    leaves = {f"n{number}": 97 * hour + number * 500 for number in range(12)}
    sessions = {name: ((0, at_s), (at_s + 2 * hour, 200 * hour)) for name, at_s in leaves.items()}
    trace = tmp_path / "trace.avt"
    write_trace(Availability(sessions, 0, 200 * hour), trace)
    scenario = costs.churn_scenario(1, 12, 0.25, str(trace), 5)
    plain, reliable = (costs.measure(costs.Job("Vinifera", scenario, 5, each)) for each in costs.RELIABILITIES)
    assert plain.hit_ratio < reliable.hit_ratio == 1
    assert (reliable.missing, reliable.excused, reliable.wrong) == (0, 0, 0)
    assert reliable.required == plain.required == sum(required for required, _ in reliable.fates.values())
    assert plain.fates[STAYED][0] > 0
    assert plain.fates[CAME_BACK][0] > plain.fates[CAME_BACK][1]
    assert plain.fates[GONE] == (0, 0)


def deployment_with(*faults: Fault) -> Deployment:
    scenario = costs.multipath_scenario("S0", 1, 12, 1, 1, False)
    return dataclasses.replace(deployment_of(scenario), faults=faults, start_down=frozenset({"b2"}))


def test_a_broker_is_what_the_last_step_about_it_made_of_it() -> None:
    killed, back = Fault(1, FaultKind.KILL, ("b0",)), Fault(2, FaultKind.RESTART, ("b0",))
    fates = fate_of_brokers(deployment_with())
    assert fates == {f"b{number}": STAYED for number in range(12)} | {"b2": GONE}
    assert fate_of_brokers(deployment_with(killed))["b0"] == GONE
    assert fate_of_brokers(deployment_with(killed, back))["b0"] == CAME_BACK


def test_a_pair_is_as_the_worse_of_its_two_brokers() -> None:
    """A client publishes at b0, which came back; there are subscribers at all three, and b2 is gone."""
    deployment = deployment_with(Fault(1, FaultKind.KILL, ("b0",)), Fault(2, FaultKind.RESTART, ("b0",)))
    numbers, event = deployment.numbers, (0, 0)
    rows = made({"kind": RowKind.PUBLISH, "node": numbers["c0"], "source": 0})
    at = {name: script.subscriptions[0][0] for name, script in deployment.scripts.items() if script.subscriptions}
    pairs = [(event, at[name]) for name in ("c0", "c1", "c2")]
    found = count_by_fate(deployment, rows, pairs, [pairs[1]])
    assert found == {STAYED: (0, 0), CAME_BACK: (2, 1), GONE: (1, 1)}
