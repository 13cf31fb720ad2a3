"""Where the real data of experiments and tests is: MURMUR_DATA, or ../shared/data beside the checkout."""

import os
from pathlib import Path
from typing import Literal

from murmur_pubsub.errors import InputError

Trace = Literal["generated", "skype"]
"""Of whose sessions churn is."""


def data_folder() -> Path:
    """The folder, which need not be there."""
    given = os.environ.get("MURMUR_DATA")
    return (Path(given) if given else Path(__file__).parents[3] / "../shared/data").resolve()


def find_real(name: str) -> Path | None:
    """A file of the real data, if it is there."""
    path = data_folder() / name
    return path if path.is_file() else None


def real_file(name: str) -> Path:
    """A file of the real data; raises `InputError`."""
    path = find_real(name)
    if path is None:
        raise InputError("MURMUR_DATA", f"no {name} in {data_folder()}", "the folder of the real data")
    return path


def churn_of(trace: Trace) -> list[str]:
    """The changes to a scenario with generated churn that make it the trace's; raises `InputError`."""
    return [f"churn.trace={real_file('skype.avt')}"] if trace == "skype" else []
