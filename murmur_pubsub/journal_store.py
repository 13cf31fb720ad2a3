"""Where journals are kept once they are written: a folder, or a place on any filesystem that pyarrow knows by URI.

A store is named by one text, a path or a URI such as `s3://bucket/runs/first`, so that any host can open it for
itself. A file appears in it whole or not at all.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal_format import HEADER_BYTES, parse_name

_URI = re.compile(r"[a-z][a-z0-9+.-]*://")
_ALLOWED = "a folder, or a URI of a filesystem that pyarrow knows (file, s3, gs, abfs, hdfs) that can be used from here"


class JournalStore(ABC):
    """The files of one journal; `place` is what people call it, `path` where that is on its filesystem."""

    def __init__(self, place: str, path: str) -> None:
        self.place = place
        self._path = path.rstrip("/")

    @abstractmethod
    def sizes(self, ending: str) -> dict[str, int]:
        """The names of the files with that ending, sorted, and their sizes in bytes."""

    @abstractmethod
    def read(self, name: str, size: int | None = None) -> bytes:
        """The content of a file, or its first bytes."""

    def written(self, ending: str) -> Iterator[tuple[str, bytes]]:
        """What people call each journal file with that ending, and its content: writer by writer, each one's in order.

        A file that was just being opened when its writer was killed has no header, and is left out.
        """
        named = [(parse_name(name), name) for name in self.sizes(ending)]
        for _, name in sorted((parts, name) for parts, name in named if parts is not None):
            content = self.read(name)
            if any(content[:HEADER_BYTES]):
                yield self.name_of(name), content

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Make the file, whole or not at all; raises OSError."""

    @abstractmethod
    def _remove(self, name: str) -> None: ...

    def check_writable(self, mark: str) -> None:
        """Write a small file of that name and remove it; raises `InputError`."""
        try:
            self.write(mark, b"murmur")
            self._remove(mark)
        except OSError as error:
            raise InputError(self.place, f"a place that cannot be written ({error})", _ALLOWED) from None

    def path_of(self, name: str) -> str:
        """Where a file is on the store's filesystem."""
        return f"{self._path}/{name}"

    def name_of(self, name: str) -> str:
        """A file in messages for people."""
        return f"{self.place.rstrip('/')}/{name}"


class FolderStore(JournalStore):
    """A folder here, which needs no pyarrow."""

    def sizes(self, ending: str) -> dict[str, int]:
        folder = Path(self._path)
        found = folder.iterdir() if folder.is_dir() else ()
        return {path.name: path.stat().st_size for path in sorted(found) if path.name.endswith(f".{ending}")}

    def read(self, name: str, size: int | None = None) -> bytes:
        with Path(self.path_of(name)).open("rb") as stream:
            return stream.read(size)

    def write(self, name: str, content: bytes) -> None:
        draft = Path(self.path_of(f"{name}.part"))
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(self.path_of(name))

    def _remove(self, name: str) -> None:
        Path(self.path_of(name)).unlink()


class ArrowStore(JournalStore):
    """A place on a filesystem of pyarrow's."""

    def __init__(self, place: str, filesystem: Any, path: str) -> None:
        super().__init__(place, path)
        self._filesystem = filesystem

    def sizes(self, ending: str) -> dict[str, int]:
        from pyarrow.fs import FileSelector

        found = self._filesystem.get_file_info(FileSelector(self._path, allow_not_found=True))
        return {info.base_name: info.size for info in sorted(found, key=_name) if info.base_name.endswith(f".{ending}")}

    def read(self, name: str, size: int | None = None) -> bytes:
        with self._filesystem.open_input_stream(self.path_of(name), compression=None) as stream:
            content: bytes = stream.read(size)
        return content

    def write(self, name: str, content: bytes) -> None:
        draft = self.path_of(f"{name}.part")
        self._filesystem.create_dir(self._path, recursive=True)
        with self._filesystem.open_output_stream(draft, compression=None) as stream:
            stream.write(content)
        self._filesystem.move(draft, self.path_of(name))

    def _remove(self, name: str) -> None:
        self._filesystem.delete_file(self.path_of(name))


def _name(info: Any) -> str:
    return str(info.base_name)


def journal_names(folder: Path) -> list[str]:
    """The names of the journal files in a folder."""
    return sorted(path.name for ending in ("seg", "blob", "inputs") for path in folder.glob(f"*.{ending}"))


def is_uri(place: str) -> bool:
    """Is it a URI, and not a path?"""
    return _URI.match(place) is not None


def store_at(place: str) -> JournalStore:
    """The store of that path or URI; raises `InputError` for a URI that no filesystem is known for or answers to."""
    if not is_uri(place):
        return FolderStore(place, str(Path(place).resolve()))
    from pyarrow.fs import FileSystem

    try:
        return ArrowStore(place, *FileSystem.from_uri(place))
    except (OSError, ValueError) as error:
        raise InputError(place, str(error).splitlines()[0], _ALLOWED) from None
