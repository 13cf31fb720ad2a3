"""The folder of one run while it is written."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal_store import journal_names, store_at


class RunFolder:
    """A run's folder and its manifest. `store`: the URI where its journal goes at the end, if not into the folder."""

    def __init__(self, folder: Path, manifest: dict[str, Any], store: str | None = None) -> None:
        self.folder = folder
        self.journal = folder / "journal"
        self.manifest = manifest
        self.journal_place = store or manifest.get("journal") or str(self.journal)

    @classmethod
    def make(cls, folder: Path, store: str | None = None) -> "RunFolder":
        """A new one; raises `InputError` if it is there or cannot be made."""
        run_folder = cls(folder, {} if store is None else {"journal": store}, store)
        try:
            run_folder.journal.mkdir(parents=True, exist_ok=False)
        except FileExistsError:
            raise InputError(str(folder), "a run that is already there", "a new folder (--out)") from None
        except OSError as error:
            raise InputError(str(folder), str(error), "a folder that can be written") from None
        return run_folder

    @classmethod
    def of(cls, folder: Path) -> "RunFolder":
        """The one of an earlier run; raises `InputError` if there is none."""
        path = folder / "manifest.json"
        try:
            return cls(folder, json.loads(path.read_text()))
        except (OSError, ValueError) as error:
            raise InputError(str(path), str(error), "the folder of a run") from None

    def write_manifest(self, **fields: Any) -> None:
        """Add the fields and write the manifest anew, whole or not at all."""
        self.manifest |= fields
        draft = self.folder / "manifest.json.new"
        draft.write_text(json.dumps(self.manifest, indent=1) + "\n")
        draft.replace(self.folder / "manifest.json")

    def store_journal(self, progress: Callable[[int, int], None]) -> None:
        """Move what is in the folder's journal to the store; raises OSError, and what is not moved stays."""
        store = store_at(self.journal_place)
        names = journal_names(self.journal)
        for done, name in enumerate(names, 1):
            store.write(name, (self.journal / name).read_bytes())
            (self.journal / name).unlink()
            progress(done, len(names))


def default_folder(name: str) -> Path:
    """Where a run goes unless told otherwise."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
