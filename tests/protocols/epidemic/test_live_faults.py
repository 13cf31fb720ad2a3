"""Epidemic recovery on live actors: a few dispatchers, links that lose a fifth of the events, and kills."""

from pathlib import Path
from typing import Any

import pytest

from actors.ray_session import RaySession
from actors.run import LiveRun
from murmuration.deployment.build_deployment import build
from murmuration.hunt.trial import Outcome, judge_faults
from murmuration.scenario.load import check_scenario

SCENARIO: dict[str, Any] = {
    "name": "live-epidemic",
    "seed": 3,
    "overlay": {"kind": "balanced", "brokers": 6, "degree": 3},
    "workload": {
        "kind": "zipf", "clients": 6, "subscribers_per_actor": 2, "publishers": 6, "publications": 1500,
        "rate_per_s": 150, "attributes": 2, "predicates": 1, "integers": 6, "exponent": 0.4, "matching_rate": 0.3,
    },
    "last_mile": "broker",
    "links": {"delay": "2 ms", "loss": 0.2},
    "datagrams": {"delay": "2 ms"},
    "failure_detection": {"heartbeat": "500 ms", "timeout": "3 s", "reconnect": "50 ms"},
    "drain": {"quiet": "1 s", "limit": "20 s"},
    "faults": [
        {"at": "3 s", "kill": "b1", "for": "1 s"},
        {"at": "6 s", "kill": "b5", "signal": "SIGKILL", "for": "1 s"},
    ],
}  # fmt: skip

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def play(algorithm: str, folder: Path, session: RaySession) -> Outcome:
    """A live run, judged."""
    given = {"algorithm": algorithm, "interval": "100 ms", "settle": "500 ms"}
    broker = {"routing": "forwarding", "reliability": "epidemic", "parameters": {"epidemic": given}}
    loaded = check_scenario({**SCENARIO, "broker": broker}, "test")
    deployment = build(loaded).deployment
    (folder / "journal").mkdir(parents=True)
    LiveRun(deployment, folder, lambda *_: None, "127.0.0.1", session).play()
    return judge_faults(deployment, folder / "journal")


@pytest.fixture(scope="module")
def outcomes(live_ray: RaySession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """One run for each algorithm."""
    folder = tmp_path_factory.mktemp("live-epidemic")
    return {algorithm: play(algorithm, folder / algorithm, live_ray) for algorithm in ("none", "push", "combined-pull")}


def test_live_every_kill_takes_effect(outcomes: dict[str, Outcome]) -> None:
    for outcome in outcomes.values():
        assert [check.outcome for check in outcome.checks] == ["took_effect"] * 2


def test_live_nothing_is_delivered_twice_or_to_the_wrong_one(outcomes: dict[str, Outcome]) -> None:
    for algorithm, outcome in outcomes.items():
        assert outcome.verdict.required > 1_000, algorithm
        assert outcome.verdict.duplicate == [], algorithm
        assert outcome.verdict.spurious == [], algorithm


@pytest.mark.parametrize("algorithm", ["push", "combined-pull"])
def test_live_most_of_what_links_lose_is_recovered(outcomes: dict[str, Outcome], algorithm: str) -> None:
    lost, still = (
        len(outcomes[each].verdict.missing) / outcomes[each].verdict.required for each in ("none", algorithm)
    )
    print(f"missing: none {lost:.3f}, {algorithm} {still:.3f}")
    assert lost > 0.2
    assert still < 0.6 * lost, "what is published while a dispatcher is away is beyond recovery"
