"""Faults on live actors: each kind takes effect, and where it is disarmed on purpose the checks say so.

One run has them all, one after the other; a second one has the same plan and a fault injector that only claims to act.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.actor_group import ActorGroup
from actors.live_fault_injector import LiveFaultInjector
from actors.processes import ProcessGoneError, ProcessPlace, await_state
from actors.ray_session import RaySession
from actors.run import LiveRun
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import RunError
from murmur_pubsub.faults import Fault
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_virtual.run import play_virtual
from murmuration.deployment.build_deployment import build
from murmuration.hunt.trial import Outcome, judge_faults
from murmuration.scenario.load import check_scenario

SCENARIO: dict[str, Any] = {
    "name": "all-faults",
    "seed": 7,
    "overlay": {"kind": "chain", "brokers": 4},
    "workload": {
        "kind": "zipf", "clients": 4, "subscribers_per_actor": 3, "publishers": 4, "publications": 10500,
        "rate_per_s": 300, "attributes": 2, "predicates": 1, "matching_rate": 0.4,
    },
    "links": {"delay": "1 ms"},
    "failure_detection": {"heartbeat": "150 ms", "timeout": "700 ms", "reconnect": "50 ms"},
    "faults": [
        {"at": "1 s", "kill": "b1", "for": "1 s"},
        {"at": "3500 ms", "kill": "b2", "signal": "SIGKILL", "for": "1 s"},
        {"at": "6 s", "stall": "b1", "for": "1500 ms"},
        {"at": "8500 ms", "stall": "c2", "for": "300 ms"},
        {"at": "9 s", "slow": "b3", "work": "3 ms", "for": "1 s"},
        {"at": "10500 ms", "cut": ["b1", "b2"], "for": "1500 ms"},
        {"at": "13 s", "link": ["b0", "b1"], "loss": 0.5, "for": "1 s"},
        {"at": "14200 ms", "link": ["b1", "b2"], "duplication": 0.5, "for": "1 s"},
        {"at": "15400 ms", "link": ["b2", "b3"], "reordering": 0.5, "reordering_by": "30 ms", "for": "1 s"},
        {"at": "16600 ms", "link": ["b0", "b1"], "delay": "60 ms", "for": "1 s"},
        {"at": "18 s", "link": ["b1", "b2"], "messages_per_s": 20, "for": "1 s"},
        {"at": "20 s", "partition": [["b0", "b1", "c0", "c1"], ["b2", "b3", "c2", "c3"]], "for": "1500 ms"},
        {"at": "22500 ms", "kill": "c3", "for": "1 s"},
    ],
}  # fmt: skip

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def deployment_of(changes: dict[str, Any]) -> Deployment:
    loaded = check_scenario({**SCENARIO, **changes}, "test")
    return build(loaded).deployment


class Armed:
    """A finished run, and where each process was that it started."""

    def __init__(self, folder: Path, fault_injector: type[LiveFaultInjector], session: RaySession) -> None:
        self.deployment = deployment_of({})
        self.folder = folder
        (folder / "journal").mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("actors.run.LiveFaultInjector", fault_injector)
            run = LiveRun(self.deployment, folder, lambda *_: None, "127.0.0.1", session)
            self.places: list[ProcessPlace] = []
            begin = run.group.listen

            def listen(names: Sequence[str]) -> dict[tuple[str, ...], ProcessGoneError]:
                died = begin(names)
                self.places.extend(run.group.places[name] for name in names)
                return died

            run.group.listen = listen  # type: ignore[method-assign]
            run.play()
        self.outcome: Outcome = judge_faults(self.deployment, folder / "journal")

    def rows(self, pattern: str) -> np.ndarray:
        paths = sorted((self.folder / "journal").glob(pattern))
        return np.concatenate([read_segment(path)[1] for path in paths])


@pytest.fixture(scope="module")
def armed(live_ray: RaySession, tmp_path_factory: pytest.TempPathFactory) -> Armed:
    return Armed(tmp_path_factory.mktemp("armed"), LiveFaultInjector, live_ray)


class Harmless(LiveFaultInjector):
    """Claims to act, and does nothing."""

    def _do(self, step: int, fault: Fault) -> None:
        pass


@pytest.fixture(scope="module")
def disarmed(live_ray: RaySession, tmp_path_factory: pytest.TempPathFactory) -> Armed:
    return Armed(tmp_path_factory.mktemp("disarmed"), Harmless, live_ray)


@pytest.mark.parametrize("number", range(len(SCENARIO["faults"])))
def test_each_fault_takes_effect(armed: Armed, number: int) -> None:
    check = armed.outcome.checks[number]
    assert check.outcome == "took_effect", check


@pytest.mark.parametrize("number", range(len(SCENARIO["faults"])))
def test_each_fault_that_is_disarmed_is_found_out(disarmed: Armed, number: int) -> None:
    check = disarmed.outcome.checks[number]
    assert check.outcome == "failed", check


def test_best_effort_loses_only_what_faults_explain(armed: Armed) -> None:
    assert armed.outcome.verdict.missing, "13 faults cost something"
    assert armed.outcome.unexplained == []
    assert armed.outcome.verdict.spurious == []


def test_without_faults_nothing_is_lost(disarmed: Armed) -> None:
    assert disarmed.outcome.verdict.counts == (0, 0, 0, 0)


def test_both_runtimes_make_every_delivery_that_no_fault_excuses(armed: Armed, tmp_path: Path) -> None:
    play_virtual(armed.deployment, tmp_path, lambda *_: None)
    virtual = judge_faults(armed.deployment, tmp_path)
    assert [check.outcome for check in virtual.checks] == ["took_effect"] * len(virtual.checks)
    assert virtual.unexplained == []
    assert virtual.verdict.missing, "the same faults cost something here too"
    # A publisher that was down publishes nothing meanwhile, and for how long differs by the time a process takes.
    guaranteed = virtual.guaranteed & armed.outcome.guaranteed
    assert len(guaranteed) > 0.5 * len(virtual.guaranteed)
    assert guaranteed <= virtual.verdict.delivered
    assert guaranteed <= armed.outcome.verdict.delivered
    print(f"{len(guaranteed):,} deliveries guaranteed on both runtimes, all made on both")


def test_no_process_is_left(armed: Armed) -> None:
    """Ray goes on here, so it is the run itself that ends them."""
    assert len(armed.places) == 11
    for place in armed.places:
        await_state(place, "gone")


def test_the_journal_of_a_broker_killed_with_sigkill_holds_its_last_event(armed: Armed) -> None:
    number = armed.deployment.numbers["b2"]
    own = armed.rows("b2-0-*.seg")
    sent = {tuple(row) for row in own[own["kind"] == RowKind.SEND][["peer", "source", "sequence", "value"]].tolist()}
    killed_us = own["time_us"].max()
    received = set()
    for peer in ("b1", "b3", "c2"):
        rows = armed.rows(f"{peer}-*.seg")
        theirs = rows[(rows["kind"] == RowKind.RECEIVE) & (rows["peer"] == number) & (rows["time_us"] <= killed_us)]
        received |= {
            (armed.deployment.numbers[peer], *map(int, row)) for row in theirs[["source", "sequence", "value"]].tolist()
        }
    assert len(received) > 100
    assert received <= sent, "what its peers have received, its journal says it sent"


def test_restarted_publishers_use_no_number_twice(armed: Armed) -> None:
    rows = armed.rows("c3-*.seg")
    published = rows[rows["kind"] == RowKind.PUBLISH][["source", "sequence"]].tolist()
    assert len(published) == len(set(published))
    assert RowKind.PUBLISH in armed.rows("c3-1-*.seg")["kind"].tolist(), "it went on after its restart"


def test_a_kill_that_leaves_the_process_alive_ends_the_run(live_ray: RaySession, tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    plan = {"faults": [{"at": "100 ms", "kill": "b1"}], "workload": {**SCENARIO["workload"], "publications": 300}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ActorGroup, "kill", lambda self, name: None)
        patch.setattr("actors.processes._POLL_S", 0.0)
        patch.setattr("actors.live_fault_injector.await_state", _impatient)
        run = LiveRun(deployment_of(plan), tmp_path, lambda *_: None, "127.0.0.1", live_ray)
        with pytest.raises(RunError, match=r"kill b1, did not take effect: process .* is running"):
            run.play()


def _impatient(place: Any, wanted: Any) -> None:
    await_state(place, wanted, 0.2)
