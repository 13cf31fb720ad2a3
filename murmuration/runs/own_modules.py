"""Where protocols of a user's own are found, beside what is installed."""

import os
import sys
from pathlib import Path

from murmur_pubsub.errors import InputError
from murmuration.hidden_packages import hidden_from_actors, hidden_package


def find_own_modules(*files: Path) -> None:
    """Let modules be imported from the current folder and from the folders of these files.

    The folders come last on the search path, so that a module there hides nothing that is installed. Where it hides a
    package of murmur's all the same (an editable installation comes after all folders): raises `InputError`.
    """
    for folder in (Path.cwd(), *(Path(os.path.realpath(file)).parent for file in files)):  # resolve() trips over loops
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    hidden = hidden_package()
    if hidden is not None:
        raise InputError(*hidden)


def check_actors_modules() -> None:
    """Raise `InputError` if the current folder hides a package of murmur's from actors started here."""
    hidden = hidden_from_actors(Path.cwd())
    if hidden is not None:
        raise InputError(*hidden)
