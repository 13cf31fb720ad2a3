"""The runs in a folder, as a list to choose from."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from murmur_pubsub.errors import InputError
from murmur_pubsub.run_manifest import read_manifest
from murmur_pubsub.verdict_file import read_verdict


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run folder. `name` is the folder's; `state` says what became of it, or why it cannot be shown."""

    name: str
    folder: Path
    scenario: str = ""
    runtime: str = ""
    seed: int | None = None
    nodes: str = ""
    state: str = ""
    when: str = ""
    opens: bool = True


def runs_in(place: Path) -> list[ListedRun]:
    """The runs in the folder, or the one that it is, the newest first."""
    if (place / "manifest.json").exists():
        return [_listed(place)]
    found = [each for each in place.iterdir() if (each / "manifest.json").exists()] if place.is_dir() else []
    return [_listed(each) for each in sorted(found, key=lambda each: -(each / "manifest.json").stat().st_mtime)]


def _listed(folder: Path) -> ListedRun:
    try:
        manifest = read_manifest(folder)
    except InputError as error:
        return ListedRun(folder.name, folder, state=str(error), opens=False)
    brokers = len(manifest.brokers)
    clients = sum(node.role == "client" for node in manifest.nodes)
    when = datetime.fromtimestamp((folder / "manifest.json").stat().st_mtime)
    state = "running" if manifest.status == "running" else _verdict(folder) or manifest.completeness
    return ListedRun(
        folder.name, folder, manifest.name, manifest.runtime, manifest.seed, f"{brokers} brokers, {clients} clients",
        state, f"{when:%Y-%m-%d %H:%M}",
    )  # fmt: skip


def _verdict(folder: Path) -> str | None:
    try:
        verdict = read_verdict(folder)
    except InputError:
        return None
    return None if verdict is None else str(verdict["verdict"])
