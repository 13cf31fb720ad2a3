"""Play what is in the zoo, each in virtual time in a folder of its own, and ask judges about it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from murmuration.zoo.sighting import Sighting

See = Callable[[Path], Sighting]
"""A judge: what it says of a run folder."""


def play_in_zoo(scenario: Mapping[str, Any], folder: Path) -> Path:
    """The folder of the finished run; raises `InputError` for a scenario that is refused."""
    return execute(check_scenario(scenario, "zoo"), folder, lambda *_: None).folder


def play_and_judge(scenario: Mapping[str, Any], folder: Path, *judges: See) -> list[Sighting]:
    """What each judge says of the scenario. One that is refused before anything starts says so itself."""
    try:
        run = play_in_zoo(scenario, folder)
    except InputError as error:
        return [Sighting("refused", "refused", str(error)) for _ in judges]
    return [sight(judge, run) for judge in judges]


def sight(judge: See, run: Path) -> Sighting:
    """What the judge says; that it cannot read the run, if it cannot."""
    try:
        return judge(run)
    except InputError as error:
        return Sighting("unreadable", None, str(error))
