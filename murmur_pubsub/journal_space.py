"""Where the bytes of a journal's file are while it is written: in a map of the file, or in memory alone.

Under WebAssembly files are memory and a map is a copy, so there the file gets its bytes when they are to be seen.
"""

import mmap
import os
import sys
from pathlib import Path
from typing import Protocol

from murmur_pubsub.errors import DiskError


class Space(Protocol):
    """`map`: the bytes of a file, of stated size."""

    map: mmap.mmap | bytearray

    def show(self, used: int) -> None:
        """Have readers of the file see the bytes in use."""
        ...

    def close(self, used: int) -> None:
        """Cut the file to the bytes in use and close it."""
        ...

    def abandon(self) -> None:
        """Write no more, and leave the file as it is."""
        ...


class MappedSpace:
    """The file, allocated on disk and mapped: what is written outlives the process. It has its name once its beginning
    is written: others read it while it grows."""

    def __init__(self, path: Path, size: int, beginning: bytes) -> None:
        self._path = path
        begun = path.with_name(f"{path.name}.begun")
        try:
            descriptor = os.open(begun, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                os.posix_fallocate(descriptor, 0, size)
                self.map: mmap.mmap | bytearray = mmap.mmap(descriptor, size)
                self.map[: len(beginning)] = beginning
                begun.rename(path)
            except OSError:
                begun.unlink()
                raise
            finally:
                os.close(descriptor)
        except OSError as error:
            raise DiskError.of(path, error) from error

    def show(self, used: int) -> None:
        pass  # they see them as soon as they are written

    def close(self, used: int) -> None:
        assert isinstance(self.map, mmap.mmap)
        self.map.close()
        os.truncate(self._path, used)

    def abandon(self) -> None:
        assert isinstance(self.map, mmap.mmap)
        self.map.close()


class MemorySpace:
    """Bytes in memory until they are to be seen."""

    def __init__(self, path: Path, size: int, beginning: bytes) -> None:
        self._path = path
        path.write_bytes(beginning)
        self.map: mmap.mmap | bytearray = bytearray(size)
        self.map[: len(beginning)] = beginning
        self._shown = len(beginning)

    def show(self, used: int) -> None:
        with self._path.open("ab") as file:
            file.write(memoryview(self.map)[self._shown : used])
        self._shown = used

    def close(self, used: int) -> None:
        self._path.write_bytes(memoryview(self.map)[:used])

    def abandon(self) -> None:
        pass  # what was not shown is lost


def space_for(path: Path, size: int, beginning: bytes) -> Space:
    """A new file with this beginning, and space for so many bytes. Raises FileExistsError, and `DiskError` if there
    is no such space."""
    if path.exists():
        raise FileExistsError(f"{path} is there already")
    return MemorySpace(path, size, beginning) if sys.platform == "emscripten" else MappedSpace(path, size, beginning)
