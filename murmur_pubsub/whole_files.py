"""Files that are there whole or as they were before, whatever ends the writing: a full disk or an interrupt."""

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


def write_text(path: Path, text: str) -> None:
    """The same of a text."""
    with whole(path) as draft:
        draft.write_text(text, encoding="utf-8")
