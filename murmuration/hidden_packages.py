"""Finds a module or folder of the user's that Python takes for one of murmur's packages.

The packages beside this one have plain names (`actors`, `routing`, …), and a project may have folders of that name.
Where such a folder comes first on the search path, murmur would run the wrong code, or fail at an import of its own.
Nothing of murmur's is imported here, for any of it may be hidden.
"""

import importlib.util
from pathlib import Path
from typing import NamedTuple

PACKAGES = (
    "actors", "murmur_page", "murmur_pubsub", "murmur_virtual", "reliability", "routing", "spark_analysis", "workloads",
)  # fmt: skip
_HOME = Path(__file__).resolve().parents[1]


class HiddenPackage(NamedTuple):
    """A package of murmur's, and what hides it: the fields of an `InputError`."""

    place: str
    found: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.place}: found {self.found}; allowed: {self.allowed}"


def hidden_package() -> HiddenPackage | None:
    """What hides a package of murmur's from this process; None if nothing does."""
    for name in PACKAGES:
        found = _place_of(name)
        if found is not None and found != _HOME / name:
            return _hidden(name, found)
    return None


def hidden_from_actors(folder: Path) -> HiddenPackage | None:
    """The same for actors that are started from that folder: Ray puts it first on their search path."""
    for name in PACKAGES:
        for file in (folder / name / "__init__.py", folder / f"{name}.py"):
            if file.is_file() and file.resolve().parent != _HOME / name:
                return _hidden(name, file.parent if file.name == "__init__.py" else file)
    return None


def _place_of(name: str) -> Path | None:
    """The folder of the package, or the file of the module, that an import of the name would give."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0] if folders else spec.origin or "").resolve()


def _hidden(name: str, found: Path) -> HiddenPackage:
    return HiddenPackage(
        f"package {name}",
        f"{found}, which hides murmur's own",
        f"a search path without a module of that name: rename it, or start murmur in another folder, with no {name}"
        " on PYTHONPATH",
    )
