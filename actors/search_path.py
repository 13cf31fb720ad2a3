"""An actor or task finds the modules that its driver finds: a protocol of the user's own may be in any folder."""

import os
import sys
from collections.abc import Iterable


def own_search_path() -> tuple[str, ...]:
    """The folders in which this process looks for modules."""
    return tuple(os.path.abspath(folder) for folder in sys.path)


def extend_search_path(folders: Iterable[str]) -> None:
    """Look in these folders too, after all others: nothing that is found now is hidden."""
    sys.path.extend(folder for folder in folders if folder not in sys.path)
