"""A fork is the run itself up to its point and another one behind it; forks of the end fail as the run does."""

import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal_rows import read_rows
from murmur_pubsub.script import Change
from murmuration.commands.main import application
from murmuration.hunt.coverage import Reached
from murmuration.hunt.difference import began_us_of, first_difference, play_rows
from murmuration.hunt.trial import deployment_of
from murmuration.hunt.why import ForkedRun, LaterScript, failing_forks, find_why, later
from murmuration.hunt.why_report import write_why
from tests.hunt.hunting import HASTY, played_at_once, played_by
from tests.hunt.test_coverage import CHAIN
from workloads.plan import ClientPlan

LOSSY: dict[str, Any] = {
    "name": "lossy",
    "runtime": "virtual",
    "seed": 7073,
    "overlay": {"kind": "cells", "cells": {"p": ["p0"], "m": ["m0"], "n": ["n0"]}, "links": [["p", "m"], ["m", "n"]]},
    "workload": {
        "kind": "zipf",
        "clients": 3,
        "subscribers_per_actor": 2,
        "publishers": 2,
        "publications": 20,
        "rate_per_s": 40,
        "attributes": 2,
        "predicates": 1,
        "matching_rate": 0.5,
    },
    "broker": {"routing": "cells", "reliability": "gryphon"},
    "links": {"delay": "2 ms", "loss": 0.3},
    "faults": [{"at": "300 ms", "kill": "n0", "for": "50 ms"}],
}


forks_here = partial(played_by, failing_forks)


def fork_rows(at_us: int, fork: int, folder: Path) -> np.ndarray:
    deployment = later(deployment_of(LOSSY), at_us, random.Random(fork))
    ForkedRun(at_us, fork, Reached(), (), deployment, folder, lambda *_: None).play()
    return read_rows(folder)


@pytest.mark.parametrize("at_us", [0, 200_000, 320_000])
def test_a_fork_is_the_run_itself_up_to_its_point_and_no_further(tmp_path: Path, at_us: int) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "fork").mkdir()
    ours, forked = play_rows(deployment_of(LOSSY), tmp_path / "run"), fork_rows(at_us, 3, tmp_path / "fork")
    until_us = began_us_of(ours) + at_us
    before, forked_before = ours[ours["time_us"] < until_us], forked[forked["time_us"] < until_us]
    assert len(before) > 10
    assert (before == forked_before).all()
    assert len(ours) != len(forked) or (ours != forked).any()


def test_what_is_planned_behind_the_point_comes_later_and_what_is_before_it_does_not() -> None:
    filters = ((0, "x > 0"),)
    publications = ((100, 0, {"x": 1}), (200, 0, {"x": 2}), (201, 0, {"x": 3}))
    changes: tuple[Change, ...] = ((150, "subscribe", 1, "x > 1"), (250, "unsubscribe", 1, "x > 1"))
    script = LaterScript(ClientPlan("c0", "b0", filters, (0,), publications, changes), 200, 30)
    assert [time_us for time_us, _, _ in script.publications] == [100, 200, 231]
    assert script.changes == [changes[0], (280, *changes[1][1:])]
    assert script.subscriptions == filters


def test_where_two_runs_part_is_told_in_words() -> None:
    without = {**LOSSY, "faults": []}
    told = first_difference(LOSSY, without)
    assert told[0].startswith("with it:")
    assert "n0" in told[0]
    assert first_difference(LOSSY, LOSSY) == ["no step differs"]


def test_a_scenario_that_shows_nothing_wrong_has_no_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a scenario that shows nothing wrong"):
        find_why(LOSSY, 2, forks_here, lambda *_: None)
    with pytest.raises(InputError, match="--forks: found 1; allowed: 2 or more"):
        application(["hunt", "--why", "none.yaml", "--forks", "1"], standalone_mode=False)


def test_what_fails_before_anything_is_published_has_no_why() -> None:
    broker = {"routing": "forwarding", "reliability": "tests.hunt.properties_asked:Unready"}
    with pytest.raises(InputError, match="a run that fails before anything is published"):
        find_why({**CHAIN, "broker": broker}, 2, forks_here, lambda *_: None)


@pytest.mark.slow
def test_the_last_forks_all_fail_and_the_step_where_it_was_decided_is_named(tmp_path: Path) -> None:
    keys = {**LOSSY, "seed": 2, "broker": {"routing": "cells", "reliability": HASTY}}
    why = find_why(keys, 3, forks_here, lambda *_: None)
    assert why == find_why(keys, 3, partial(played_at_once, failing_forks), lambda *_: None), "on many cores too"
    assert why.points[-1].share == 1.0
    assert why.points[0].share < 1.0
    text = write_why(why, yaml.safe_load(yaml.safe_dump(keys)), tmp_path)
    assert "It rises from" in text
    assert "<svg" in (tmp_path / "why.svg").read_text()
