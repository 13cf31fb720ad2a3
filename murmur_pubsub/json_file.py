"""JSON documents that were written earlier, read again: by now anything may stand in their files."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.plain_data import from_plain


def read_json(path: Path, allowed: str) -> dict[str, Any]:
    """The mapping in the file. Raises `InputError` naming the file, and FileNotFoundError if there is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except RecursionError:
        raise InputError(str(path), "brackets in brackets without an end", allowed) from None
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"no readable JSON ({error})", allowed) from None
    if not isinstance(document, dict):
        raise InputError(str(path), f"{document!r:.60}", allowed)
    return document


def check_keys(kind: type, document: Any, path: Path, anew: str | None = None) -> None:
    """Raise `InputError` naming file and key unless the document has what that dataclass has; it may have more. `anew`:
    what to do about a key that is not there, as in what an older version wrote."""
    if isinstance(document, dict):
        fields = dataclasses.fields(kind)
        needed = (each.name for each in fields if each.default is each.default_factory is dataclasses.MISSING)
        absent = next((name for name in needed if name not in document), None)
        if absent is not None and anew is not None:
            raise InputError(f"{path}, key {absent}", "nothing", anew)
        names = {field.name for field in fields}
        document = {key: each for key, each in document.items() if key in names}
    from_plain(kind, document, str(path))


@contextmanager
def taken_apart(path: Path, allowed: str) -> Iterator[None]:
    """What was read from the file is taken apart in the block; raises `InputError` naming it for another shape."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, OSError) as error:
        raise InputError(str(path), f"another content ({error!r:.120})", allowed) from error
