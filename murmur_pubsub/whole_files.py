"""Files that are there whole or as they were before, whatever ends the writing: a full disk or an interrupt."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from murmur_pubsub.errors import DiskError, InputError

DRAFT = ".draft-"
"""How the name of what is not whole yet begins."""
FORMER = ".former-"
"""And of a folder whose place another one takes."""


@contextmanager
def written_to(path: Path) -> Iterator[None]:
    """What the operating system says against writing in the block is a `DiskError` of the file."""
    try:
        yield
    except OSError as error:
        raise DiskError.of(path, error) from error


def try_folder(folder: Path, room: int = 0) -> None:
    """Make the folder if it is not there, and try whether a file of so many bytes can be written in it; raises
    OSError if not."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(room))


def check_files(paths: Iterable[Path]) -> None:
    """Raise `InputError` if a folder is in the place of one of these files, which are written later: what is done
    before that should not be done for nothing."""
    for path in paths:
        if path.is_dir():
            raise InputError(str(path), "a folder", "a file, or nothing: it is going to be written")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A draft beside the file, to be written in the block; then it takes the file's place. Raises `DiskError`."""
    draft = path.with_name(f"{DRAFT}{path.name}")
    try:
        with written_to(path):
            yield draft
            draft.replace(path)
    finally:
        with contextlib.suppress(OSError):  # of a folder that is none, or cannot be entered: there is no draft
            draft.unlink()


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """The same of a folder: a new and empty draft of it."""
    with written_to(path), new_folder(path) as draft:
        yield draft


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A `whole_folder` whose block does more than write: of what the operating system says, only what stands against
    its taking the place of the one before is a `DiskError` of it. Raises `InputError` if none can be made there."""
    draft, former = path.with_name(f"{DRAFT}{path.name}"), path.with_name(f"{FORMER}{path.name}")
    try:
        _clear(path, draft, former)  # of what was killed
        if (path.is_symlink() or path.exists()) and not path.is_dir():
            raise InputError(str(path), "no folder", "the place of one")
        draft.mkdir()
    except OSError as error:
        raise InputError(str(path), f"no place for a folder ({error.strerror})", "one that can be written") from None
    try:
        yield draft
        with written_to(path):
            if path.exists():
                path.rename(former)  # and removed later: what ends a removal leaves a part
            draft.rename(path)
    finally:
        _clear(path, draft, former)


def _clear(path: Path, draft: Path, former: Path) -> None:
    """Remove what was only in the way to the folder; without a new one the former is put back."""
    if former.exists() and not path.exists():
        former.rename(path)
    for left in (draft, former):
        shutil.rmtree(left, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """A whole file with this text."""
    with whole(path) as draft:
        draft.write_text(text, encoding="utf-8")
