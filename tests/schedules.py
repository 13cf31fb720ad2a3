"""Random schedules for the tests of every protocol: drawn by hypothesis in place of a seed, so that they shrink.

A failing test prints the scenario and the one command that runs it again.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st

from murmuration.hunt.schedule import draw_schedule
from murmuration.hunt.space import FAULTS, TREES, ScheduleSpace
from murmuration.hunt.trial import Outcome, play_schedule


def schedules(
    broker: Mapping[str, Any],
    kinds: Sequence[str] = FAULTS,
    overlays: Sequence[str] = TREES,
    brokers_max: int = 6,
    faults_max: int = 5,
    clients_fail: bool = True,
    losses: Sequence[float] = (0.0,),
    resubscriptions_max: int = 10,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> st.SearchStrategy[dict[str, Any]]:
    """Schedules of that section `broker` and these other keys; see `murmuration.hunt.space.ScheduleSpace`."""
    space = ScheduleSpace(
        broker,
        tuple(overlays),
        brokers_max,
        tuple(kinds),
        faults_max,
        clients_fail=clients_fail,
        harm=tuple(losses),
        resubscriptions_max=resubscriptions_max,
        more=more,
    )
    return schedules_in(space)


def schedules_in(space: ScheduleSpace) -> st.SearchStrategy[dict[str, Any]]:
    """Schedules of that space."""
    return st.randoms(use_true_random=False).map(lambda rng: draw_schedule(rng, space))


def examples(quick: int, thorough: int) -> pytest.MarkDecorator:
    """The test's parameter `examples`: how many schedules it draws, the larger number in a test that is slow."""
    return pytest.mark.parametrize("examples", [quick, pytest.param(thorough, marks=pytest.mark.slow)])


def play(data: Mapping[str, Any]) -> Outcome:
    """Run the scenario and judge it. A failing test prints it, and the command that runs it again: the last one that
    hypothesis tries is the smallest."""
    file = Path(tempfile.gettempdir()) / f"murmur-schedule-{os.getpid()}.yaml"
    text = yaml.safe_dump(dict(data), sort_keys=False)
    file.write_text(text)
    if currently_in_test_context():
        note(f"{text}seed {data['seed']}; again: murmur run {file}")
    return play_schedule(data)
