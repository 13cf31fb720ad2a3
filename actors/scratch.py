"""The folder in which a host keeps a run's journals and logs until they are gathered.

Its place is read from a manifest, which may be forged: only a folder with the mark that murmur leaves is
read or removed.
"""

import shutil
from pathlib import Path

from murmur_pubsub.errors import RunError

_MARK = ".murmur-scratch"


def make_scratch(folder: Path) -> None:
    """Make the folder, if it is not there, with its mark."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()


def check_scratch(folder: Path) -> None:
    """Raise `RunError` for a folder that murmur has not made; one that is not there has nothing in it."""
    if folder.exists() and not (folder / _MARK).is_file():
        raise RunError(f"{folder} was not made by murmur: nothing is taken from it, and nothing removed")


def remove_scratch(folder: Path) -> None:
    """Remove the folder with all that is in it; raises as `check_scratch` does."""
    check_scratch(folder)
    shutil.rmtree(folder, ignore_errors=True)
