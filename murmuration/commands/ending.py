"""How a command ends: with one message for what a person can mend, and an exit code."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from murmur_pubsub.errors import DiskError, InputError, RunError
from murmur_pubsub.whole_files import try_folder

_INTERRUPTED = 130


class CutShort(Exception):
    """A run that ended early; says how to read what was journaled, or that nothing was."""

    def __init__(self, folder: Path, cause: BaseException) -> None:
        why = "interrupted" if isinstance(cause, KeyboardInterrupt) else str(cause)
        if _is_journaled(folder):
            kept = f"what was journaled is kept: `murmur analyze {folder}` reads it"
        else:
            kept = f"nothing was journaled in {folder}" if folder.exists() else "nothing was kept"
        super().__init__(f"{why}\n{kept}")
        self.exit_code = _code_of(cause)


@contextmanager
def result_at(path: Path, out: Path | None, allowed: str = "another (--out)") -> Iterator[None]:
    """Writes its result in the block; raises `InputError` if it cannot, which names `--out` only if that was given."""
    try:
        yield
    except DiskError as error:
        place = str(path) if out is None else f"--out {path}"
        raise InputError(place, f"a place that cannot be written ({error.why})", allowed) from error


def make_folder(folder: Path) -> None:
    """Make the folder if it is not there; raises `InputError` if that cannot be, or nothing can be written in it."""
    try:
        try_folder(folder)
    except OSError as error:
        raise InputError(str(folder), str(error), "a folder that can be written") from None


def carry_out(application: typer.Typer) -> None:
    """Carry the command out: errors a person can mend become one message, and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = application(prog_name="murmur", standalone_mode=False)  # of a typer.Exit, or None
        if code == _INTERRUPTED:  # typer makes that of Ctrl-C in a command that says no more about it
            raise KeyboardInterrupt
        sys.exit(code)
    except InputError as error:
        _stop(f"murmur: {error}", 2)
    except CutShort as error:
        _stop(f"murmur: {error}", error.exit_code)
    except RunError as error:
        _stop(f"murmur: {error}", _code_of(error))
    except (typer.Abort, KeyboardInterrupt):
        _stop("murmur: interrupted", _INTERRUPTED)
    except OSError as error:
        _stop(f"murmur: {error}", 1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _stop(f"murmur: {_of_usage(error)}", 2)


def _code_of(cause: BaseException) -> int:
    """The exit code of a command that this ended early, or what it was made of."""
    for each in (cause, cause.__cause__):
        if isinstance(each, KeyboardInterrupt):
            return _INTERRUPTED
        if isinstance(each, DiskError) and each.no_place:
            return 2
    return 1


def _is_journaled(folder: Path) -> bool:
    """Is there a journal, or the beginning of one, in the run folder or in its store?"""
    from murmur_pubsub.journal_store import store_at
    from murmur_pubsub.run_manifest import read_manifest

    try:
        return bool(store_at(read_manifest(folder).journal_at(folder)).sizes("seg"))
    except (InputError, OSError):
        return False


def _of_usage(error: Any) -> str:
    """An error of the command line itself, in words; that of a value says what was found."""
    from pydantic import ValidationError

    if not isinstance(error.__cause__, ValidationError):
        return str(error.format_message())
    from murmuration.scenario.options import in_words

    return str(InputError(error.param.opts[0], *in_words(error.__cause__.errors()[0])))


def _interrupt(*_: object) -> None:
    """What `kill`, `timeout` and service managers send ends a command as Ctrl-C does."""
    raise KeyboardInterrupt


def _stop(message: str, code: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(code)
