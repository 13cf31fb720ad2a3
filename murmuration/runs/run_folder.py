"""The folder of one run while it is written."""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal_store import journal_names, store_at
from murmur_pubsub.progress import Progress
from murmur_pubsub.run_manifest import RunManifest, read_manifest, write_manifest
from murmur_pubsub.whole_files import write_text

_BEGINS_WITH = ("manifest.json", "scenario.yaml", "layout.json")


class RunFolder:
    """A run's folder and its manifest."""

    def __init__(self, folder: Path, manifest: RunManifest) -> None:
        self.folder = folder
        self.journal = folder / "journal"
        self.manifest = manifest
        self._found = [name for name in _BEGINS_WITH if (folder / name).exists()]
        """What is somebody else's."""

    @classmethod
    def make(cls, folder: Path, manifest: RunManifest) -> "RunFolder":
        """A new one; raises `InputError` if it is there or cannot be made."""
        run_folder = cls(folder, manifest)
        try:
            run_folder.journal.mkdir(parents=True, exist_ok=False)
        except FileExistsError:
            dangling = folder.is_symlink() and not folder.exists()
            found = "a link to a folder that is not there" if dangling else "a run that is already there"
            raise InputError(str(folder), found, "a new folder (--out)") from None
        except OSError as error:
            raise InputError(str(folder), str(error), "a folder that can be written") from None
        with run_folder.begun():
            write_manifest(folder, manifest)
        return run_folder

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """What a run needs is written in the block, before it starts. What ends that, such as a full disk, leaves
        nothing: such a folder would say for ever that the run is running."""
        try:
            yield
        except BaseException:
            for name in (each for each in _BEGINS_WITH if each not in self._found):
                (self.folder / name).unlink(missing_ok=True)
            self.journal.rmdir()
            with contextlib.suppress(OSError):  # of a folder that had other things in it
                self.folder.rmdir()
            raise

    @classmethod
    def of(cls, folder: Path) -> "RunFolder":
        """The one of an earlier run; raises `InputError` if there is none."""
        return cls(folder, read_manifest(folder))

    @property
    def journal_place(self) -> str:
        """Path or URI of the journal once the run is over."""
        return self.manifest.journal_at(self.folder)

    def write(self, manifest: RunManifest) -> None:
        """Replace the manifest."""
        self.manifest = manifest
        write_manifest(self.folder, manifest)

    def write_scenario(self, data: Mapping[str, Any]) -> None:
        """Keep the scenario's keys, so that the run can be played again, or one of its nodes."""
        write_text(self.folder / "scenario.yaml", yaml.safe_dump(dict(data), sort_keys=False))

    def store_journal(self, progress: Progress) -> None:
        """Move what is in the folder's journal to the store; raises OSError, and what is not moved stays."""
        store = store_at(self.journal_place)
        names = journal_names(self.journal)
        for done, name in enumerate(names, 1):
            store.write(name, (self.journal / name).read_bytes())
            (self.journal / name).unlink()
            progress("storing the journal", done, len(names))


def default_folder(name: str) -> Path:
    """Where a run goes unless told otherwise: microseconds keep apart what parallel jobs start in the same second."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S-%f}"


def point_latest(folder: Path) -> None:
    """Let `latest` beside the run's folder point to it, if there is such a folder and the disk has symbolic links."""
    link = folder.parent / "latest"
    if not folder.is_dir() or (link.exists() and not link.is_symlink()):
        return
    fresh = folder.parent / f".latest-{folder.name}"
    with contextlib.suppress(OSError):
        fresh.symlink_to(folder.name)
        fresh.replace(link)  # at once: a run that ends beside this one never finds none
