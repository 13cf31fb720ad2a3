"""Files that are there whole or as they were before, whatever ends the writing: a full disk or an interrupt."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from murmur_pubsub.errors import DiskError

DRAFT = ".draft-"
"""How the name of what is not whole yet begins."""


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A draft beside the file, to be written in the block; then it takes the file's place. Raises `DiskError`."""
    draft = path.with_name(f"{DRAFT}{path.name}")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        raise DiskError.of(path, error) from error
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """The same of a folder: a new and empty draft of it."""
    draft = path.with_name(f"{DRAFT}{path.name}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir()
        yield draft
        shutil.rmtree(path, ignore_errors=True)
        draft.rename(path)
    except OSError as error:
        raise DiskError.of(path, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """A whole file with this text."""
    with whole(path) as draft:
        draft.write_text(text, encoding="utf-8")
