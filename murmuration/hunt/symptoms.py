"""What is wrong with a schedule, so coarsely that two schedules with one cause say the same."""

import functools
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import DiskError
from murmur_pubsub.progress import Progress
from murmur_pubsub.protocol_error import ProtocolError
from murmuration.hunt.coverage import ImpatientRun, ObservedRun, Reached
from murmuration.hunt.properties import Property, property_at
from murmuration.hunt.trial import Outcome, deployment_of, play


@dataclass(frozen=True, slots=True)
class Symptom:
    """`kind`: what a judge found, or where what was raised; `words`: all that is known."""

    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Tried:
    """A schedule that was played. `outcome`: None if it was not played to its end."""

    verdict: str
    """That of the judge, or `raised`."""
    symptom: Symptom | None
    outcome: Outcome | None
    reached: Reached


Making = Callable[[Reached, Sequence[Property], Deployment, Path, Progress], ObservedRun]


def tried(data: Mapping[str, Any], properties: Sequence[str] = ()) -> Tried:
    """Play the scenario of these keys; raises `InputError` for one that cannot be. `properties`: dotted paths of those
    that are asked beside what is always asked."""
    return tried_run(deployment_of(data), ObservedRun, properties)


def tried_impatiently(data: Mapping[str, Any], properties: Sequence[str] = ()) -> Tried:
    """The same, but what stays broken is not waited for as long as the scenario says (see `ImpatientRun`): only where
    something is wrong then it is played to its end."""
    played = tried_run(deployment_of(data), ImpatientRun, properties)
    return played if played.symptom is None else tried(data, properties)


def tried_run(deployment: Deployment, make: Making, properties: Sequence[str] = ()) -> Tried:
    """The same of the run that is made of a deployment. What a protocol raises is a symptom."""
    reached, asked = Reached(), [property_at(path) for path in properties]
    try:
        outcome = play(deployment, functools.partial(make, reached, asked))
    except DiskError:
        raise  # a full disk breaks no protocol
    except Exception as error:  # whatever a protocol raises is a finding
        return Tried("raised", _raised(error), None, reached)
    numbers = outcome.judgement.numbers
    symptom = None
    if numbers["verdict"] == "invalid":
        symptom = Symptom(str(numbers["finding"]), str(numbers["reason"]))
    elif reached.broken:
        name, words = next(iter(reached.broken.items()))
        symptom = Symptom(f"property: {name}", words)
    return Tried(numbers["verdict"], symptom, outcome, reached)


def _raised(error: Exception) -> Symptom:
    if isinstance(error, ProtocolError) and error.place is not None:
        return Symptom(f"raised at {error.place}", str(error))
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].name}" if frames else "no place"
    return Symptom(
        f"{type(error).__name__} in {where}: {without_numbers(str(error))}", f"{type(error).__name__}: {error}"
    )


def without_numbers(text: str) -> str:
    """The first line of it, as it is for any node and at any time."""
    return re.sub(r"\b[a-z]*\d[\w,.:]*", "#", text.partition("\n")[0])[:120]
