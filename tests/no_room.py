"""A disk that has no room for a file of a run folder."""

from pathlib import Path

import pytest

from murmur_pubsub.errors import DiskError

_WRITERS = {
    "scenario.yaml": "murmuration.runs.run_folder.write_text",
    "layout.json": "murmur_page.layout.write_text",
}
BEFORE_IT_STARTS = tuple(_WRITERS)
"""What a run writes beside its manifest before it starts."""


def leave_no_room_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes that file from now on finds the disk full."""

    def full(path: Path, *_: object) -> None:
        raise DiskError(str(path), "No space left on device")

    monkeypatch.setattr(_WRITERS[name], full)
