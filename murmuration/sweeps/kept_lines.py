"""Files of JSON lines to which lines are only added, so that what was done is kept when a process is killed.

A line that was half written then is left out when the file is read, and ends before the next one is added.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from murmur_pubsub.whole_files import written_to


def kept_lines(path: Path) -> Iterator[Any]:
    """What each line says; nothing if there is no such file."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue


def keep_lines(path: Path, lines: Sequence[Any]) -> None:
    """Add a line for each, on disk when this returns; raises `DiskError`."""
    if not lines:
        return
    with written_to(path), path.open("ab") as file:
        if file.tell() and not _ends_whole(path):
            file.write(b"\n")
        file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        file.flush()
        os.fsync(file.fileno())


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
