"""Guaranteed delivery on live actors: its log is a real SQLite file, and its brokers really die."""

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from actors.ray_session import RaySession
from actors.run import LiveRun
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.message import kind_of
from murmuration.deployment.build_deployment import build
from murmuration.hunt.trial import judge_faults
from murmuration.scenario.load import check_scenario
from reliability.gryphon.messages import Data
from tests.protocols.gryphon.stuck import SENT_BEFORE

SCENARIO: dict[str, Any] = {
    "name": "live-gryphon",
    "overlay": {
        "kind": "cells",
        "cells": {"p": ["p1"], "m": ["b1", "b2"], "s": ["s1"]},
        "links": [["p", "m"], ["m", "s"]],
        "redundancy": {"m": 2},
    },
    "workload": {"kind": "paced", "publishers": {"p1": 1}, "subscribers": {"s1": 2}, "rate_per_s": 40, "seconds": 10},
    "broker": {
        "routing": "cells",
        "reliability": "tests.protocols.gryphon.stuck:StuckAfterLogging",
        "parameters": {"gryphon": {"pubends": {"p1": 2}, "checkpoint": 20}},
    },
    "failure_detection": {"heartbeat": "200 ms", "timeout": "1 s", "reconnect": "50 ms"},
    "faults": [
        {"at": "3 s", "kill": "p1", "signal": "SIGKILL", "for": "1 s"},
        {"at": "6 s", "kill": "b1", "for": "1500 ms"},
    ],
}

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def deployment_of(changes: dict[str, Any]) -> Deployment:
    loaded = check_scenario({**SCENARIO, **changes}, "test")
    return build(loaded).deployment


def rows_of(folder: Path, pattern: str) -> np.ndarray:
    return np.concatenate([read_segment(path)[1] for path in sorted((folder / "journal").glob(pattern))])


def test_gryphon_s2_a_kill_between_log_and_send_loses_nothing(live_ray: RaySession, tmp_path: Path) -> None:
    deployment = deployment_of({})
    (tmp_path / "journal").mkdir()
    LiveRun(deployment, tmp_path, lambda *_: None, "127.0.0.1", live_ray).play()
    first_life = rows_of(tmp_path, "p1-0-*.seg")
    sent = first_life[(first_life["kind"] == RowKind.SEND) & (first_life["value"] == kind_of(Data))]
    received = first_life[(first_life["kind"] == RowKind.RECEIVE) & (first_life["source"] >= 0)]
    assert len(np.unique(sent["sequence"])) <= SENT_BEFORE < len(np.unique(received["sequence"]))
    outcome = judge_faults(deployment, tmp_path / "journal")
    assert outcome.unexplained == []
    assert outcome.verdict.counts == (0, 0, 0, 0)
    assert outcome.verdict.required == 800
    assert {check.outcome for check in outcome.checks} == {"took_effect"}
    with sqlite3.connect(next((tmp_path / "storage").glob("p1*"))) as database:
        records = [
            msgpack.unpackb(record, strict_map_key=False) for (record,) in database.execute("SELECT record FROM log")
        ]
    assert len(records) < 100, "the log was cut as acknowledgements came"


def test_gryphon_s4_a_subscriber_whose_turn_leads_nowhere_is_served_by_the_path_that_is_left(
    live_ray: RaySession, tmp_path: Path
) -> None:
    """In the paper's overlay b1 has no way to s1 any more, but p1-b2-s1 is well: half of the pubends starved."""
    deployment = deployment_of(
        {
            "overlay": {
                "kind": "cells",
                "cells": {"p": ["p1"], "left": ["b1", "b2"], "s1": ["s1"], "s2": ["s2"]},
                "links": [["p", "left"], ["left", "s1"], ["left", "s2"]],
            },
            "workload": {
                "kind": "paced", "publishers": {"p1": 4}, "subscribers": {"s1": 4, "s2": 4}, "rate_per_s": 20,
                "seconds": 10,
            },
            "broker": {
                "routing": "cells", "reliability": "gryphon",
                "parameters": {"gryphon": {"pubends": {"p1": 4}, "checkpoint": 20}},
            },
            "faults": [{"at": "2 s", "cut": ["b1", "s1"]}, {"at": "2 s", "cut": ["b1", "b2"]}],
        }
    )  # fmt: skip
    (tmp_path / "journal").mkdir()
    LiveRun(deployment, tmp_path, lambda *_: None, "127.0.0.1", live_ray).play()
    outcome = judge_faults(deployment, tmp_path / "journal")
    assert outcome.verdict.missing == []
    assert outcome.verdict.counts == (0, 0, 0, 0)
    assert outcome.verdict.required == 4 * 2 * 200
    assert {check.outcome for check in outcome.checks} == {"took_effect"}
    with sqlite3.connect(next((tmp_path / "storage").glob("p1*"))) as database:
        (kept,) = database.execute("SELECT COUNT(*) FROM log").fetchone()
    assert kept < 100, "what s1 has is acknowledged, by way of b2"


def test_a_damaged_log_is_refused_by_its_path(live_ray: RaySession, tmp_path: Path) -> None:
    deployment = deployment_of({"faults": [{"at": "2 s", "kill": "p1", "for": "2 s"}]})
    (tmp_path / "journal").mkdir()

    def damage() -> None:
        log = tmp_path / "storage"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            time.sleep(0.1)
            if run.fault_injector.base_us and run.now_us() > run.fault_injector.base_us + 3_000_000:
                for path in log.glob("p1*"):
                    path.write_bytes(b"SQLite format 3\0" + b"?" * 4_096)
                return

    run = LiveRun(deployment, tmp_path, lambda *_: None, "127.0.0.1", live_ray)
    vandal = threading.Thread(target=damage)
    vandal.start()
    with pytest.raises((InputError, RunError), match=f"{tmp_path}/storage/p1"):
        run.play()
    vandal.join()
