"""The analysis of runs with faults: it explains what the plain rules explain, and tells on a broker that forgets."""

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from murmur_pubsub.machine import NodeContext
from murmur_pubsub.promise import Promise
from murmuration.deployment.build_deployment import build
from murmuration.hunt.trial import judge_faults
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from reliability.best_effort import BEST_EFFORT
from reliability.durable.durable import DURABLE, Durable
from reliability.durable.parameters import DurableParameters
from reliability.layer import BrokerServices
from spark_analysis.main import analyze, judge
from spark_analysis.plain_judge import judge_run
from tests.faults.test_live_faults import SCENARIO
from tests.faults.test_own_deaths import end_process, started
from tests.judge.test_turns_of_faults import BY_ACTOR, written
from tests.virtual.test_reconfiguration import TOLD

SMALL = {**SCENARIO, "runtime": "virtual", "journal": "hops"}

pytestmark = pytest.mark.spark


BOASTFUL = dataclasses.replace(BEST_EFFORT, name="boastful", guarantee=Promise("exactly_once"))
"""Best effort that promises more."""
LASTING = dataclasses.replace(BOASTFUL, guarantee=Promise("exactly_once", durable=True), clients_roam=True)
"""And more still."""


class Hasty(Durable):
    """Gives up what has waited for a client for half a second, whatever the lease."""

    def __init__(self, context: NodeContext, parameters: DurableParameters, services: BrokerServices) -> None:
        super().__init__(context, dataclasses.replace(parameters, lease=500), services)


PROMISING = dataclasses.replace(DURABLE, make=Hasty)


@pytest.mark.slow
def test_spark_explains_what_the_plain_rules_explain(tmp_path: Path) -> None:
    loaded = check_scenario(SMALL, "test")
    run = execute(loaded, tmp_path / "run", lambda *_: None).folder
    verdict = analyze(run)
    plain = judge_faults(build(loaded).deployment, run / "journal")
    assert plain.unexplained == []
    assert verdict["missing"] == len(plain.verdict.missing) > 100
    assert verdict["duplicate"] > 0
    assert verdict["verdict"] == "valid", verdict["reason"]
    assert verdict["explained"] == verdict["missing"] + verdict["duplicate"] + verdict["out_of_order"]
    assert (verdict["faults_took_effect"], verdict["faults_failed"]) == (len(SCENARIO["faults"]), 0)
    report = (run / "report.html").read_text()
    assert "kill b1 (step 1)" in report
    assert "faults explain what went wrong" in report


def test_a_broker_that_forgets_to_renew_makes_the_run_invalid(tmp_path: Path) -> None:
    faults = [{"at": "2 s", "cut": ["b1", "b2"], "for": "1 s"}]
    parts = {"routing": "tests.virtual.test_fault_schedules:Forgetful"}
    loaded = check_scenario({**SMALL, "broker": parts, "faults": faults}, "test")
    run = execute(loaded, tmp_path / "run", lambda *_: None).folder
    verdict = judge(run)
    assert verdict["verdict"] == "invalid"
    assert verdict["missing"] > verdict["explained"] > 0
    assert "without a fault that explains" in verdict["reason"]


def test_a_guarantee_of_exactly_once_excuses_only_subscribers_that_were_away(tmp_path: Path) -> None:
    faults = [{"at": "2 s", "kill": "b1", "for": "1 s"}]
    parts = {"reliability": "tests.spark.test_faults:BOASTFUL"}
    loaded = check_scenario({**SMALL, "broker": parts, "faults": faults}, "test")
    verdict = judge(execute(loaded, tmp_path / "run", lambda *_: None).folder)
    assert verdict["verdict"] == "invalid"
    assert 0 < verdict["explained"] < verdict["missing"], "b1's own subscribers, and not those whose events it lost"


def test_both_judges_require_all_events_of_a_durable_subscription(tmp_path: Path) -> None:
    """Whoever was down: only those that are not back, that withdrew, or whose publisher died are excused."""
    workload = {**SMALL["workload"], "publishers": 2, "publications": 400, "rate_per_s": 100, "resubscriptions": 6}
    faults = [
        {"at": "500 ms", "kill": "b1", "for": "500 ms"},
        {"at": "1200 ms", "move_client": "c2", "to": "b0"},
        {"at": "1800 ms", "kill": "c0", "for": "300 ms"},
        {"at": "2400 ms", "cut": ["c2", "b0"], "for": "500 ms"},
        {"at": "3 s", "kill": "b3"},
    ]
    parts = {"reliability": "tests.spark.test_faults:LASTING"}
    data = {**SMALL, "workload": workload, "broker": parts, "faults": faults}
    run = execute(check_scenario(data, "test"), tmp_path / "run", lambda *_: None).folder
    told, plain = judge(run), judge_run(run)
    assert {key: told[key] for key in plain.numbers} == dict(plain.numbers)
    reasons = " ".join(excuse.text for excuse in plain.excused.values())
    assert "when the run ended" in reasons
    assert 20 < told["explained"] < told["missing"] - 20


def test_both_judges_hold_what_was_given_up_against_the_limits(tmp_path: Path) -> None:
    """What was given up after less than the lease is not excused, though the client was told of it; what was refused
    because a log was full is."""
    workload = {**SMALL["workload"], "publishers": 1, "publications": 300, "rate_per_s": 100}
    faults = [{"at": "500 ms", "cut": ["c2", "b2"], "for": "2 s"}]
    names = {"routing": "cells", "reliability": "tests.spark.test_faults:PROMISING"}
    parts = {**names, "parameters": {"durable": {"lease": "1 s", "refuse_above": 40}}}
    data = {**SMALL, "workload": workload, "broker": parts, "faults": faults}
    run = execute(check_scenario(data, "test"), tmp_path / "run", lambda *_: None).folder
    told, plain = judge(run), judge_run(run)
    assert {key: told[key] for key in plain.numbers} == dict(plain.numbers)
    assert 10 < told["explained"] < told["missing"] - 10
    reasons = " ".join(excuse.text for excuse in plain.excused.values())
    assert "longer than its lease" in reasons
    assert "was refused" in reasons


def test_both_judges_follow_events_through_an_overlay_that_changes(tmp_path: Path) -> None:
    """Links that come and go, and orders: to the numbers and to each check. A link that loses without a fault is no
    excuse, so that both have findings that are explained and findings that are not."""
    changes = {"every": "200 ms", "until": "4 s", "kinds": ["reconfigure"], "outage": ["100 ms", "300 ms"]}
    orders = [{"at": "5 s", "rest": "b1"}, {"at": "6 s", "swap": "b0", "with": "b1", "by": "b2"}]
    data = {
        **SMALL,
        "overlay": {"kind": "balanced", "brokers": 8, "degree": 3},
        "workload": {**SMALL["workload"], "publications": 2_000},
        "broker": {"reliability": TOLD},
        "links": {"delay": "1 ms", "loss": 0.005},
        "faults": [{"random": changes}, *orders],
    }
    run = execute(check_scenario(data, "test"), tmp_path / "run", lambda *_: None).folder
    told = analyze(run)
    plain = judge_run(run)
    assert {key: told[key] for key in plain.numbers} == dict(plain.numbers)
    assert 20 < told["explained"] < told["missing"] - 20
    table = pd.read_csv(run / "analysis" / "faults.csv")
    assert list(table["outcome"]) == [check.outcome for check in plain.checks]
    assert table["seen"].str.contains("saw it go|saw it come up|refused|carried out").all()
    assert "no path was left" in "".join(excuse.text for excuse in plain.excused.values())


@pytest.mark.parametrize("forgets", [False, True], ids=["honest", "forgets"])
def test_both_judges_have_an_own_death_end_with_the_restart_of_its_actor(tmp_path: Path, forgets: bool) -> None:
    run = written(tmp_path / "run", BY_ACTOR, forgets=forgets)
    told, plain = judge(run), judge_run(run)
    assert {key: told[key] for key in plain.numbers} == dict(plain.numbers)
    assert (told["verdict"], told["explained"]) == ("invalid" if forgets else "valid", 4)


@pytest.mark.ray
@pytest.mark.slow
def test_both_judges_take_a_death_that_nobody_ordered_for_a_fault(tmp_path: Path) -> None:
    with started(tmp_path / "run") as cluster:
        alice, bob = cluster.clients["alice"], cluster.clients["bob"]
        wanted = bob.subscribe("n >= 0")
        cluster.settle()
        end_process(cluster, "b1")
        cluster.wait_for(lambda: bool(cluster._runtime.observed))
        alice.publish({"n": 0})
        cluster.settle()
        cluster.faults.restart("b1")
        cluster.settle()
        alice.publish({"n": 1})
        cluster.wait_for(lambda: len(bob.deliveries(wanted)) == 1)
        end_process(cluster, "b2")
        cluster.wait_for(lambda: len(cluster._runtime.observed) == 2)
        alice.publish({"n": 2})
        cluster.settle()
    told = analyze(tmp_path / "run")
    plain = judge_run(tmp_path / "run")
    assert {key: told[key] for key in plain.numbers} == dict(plain.numbers)
    assert told["verdict"] == "valid", told["reason"]
    assert (told["missing"], told["explained"], told["faults_took_effect"]) == (2, 2, 2)
    assert told["reason"].endswith("; nobody had ordered the death of b1, the death of b2")
    table = pd.read_csv(tmp_path / "run" / "analysis" / "faults.csv")
    assert list(table["outcome"]) == [check.outcome for check in plain.checks]
    assert "death of b1" in (tmp_path / "run" / "report.html").read_text()
