"""How a command ends: with one message for what a person can mend, and an exit code."""

import signal
import sys
from pathlib import Path

import typer

from murmur_pubsub.errors import InputError, RunError


class CutShort(Exception):
    """A run that ended early; says what was kept in the folder, if that was made, and how to go on."""

    def __init__(self, folder: Path, kept: str, cause: BaseException) -> None:
        why = "interrupted" if isinstance(cause, KeyboardInterrupt) else str(cause)
        super().__init__(f"{why}\n{kept if folder.exists() else 'nothing was kept'}")
        self.exit_code = 130 if isinstance(cause, KeyboardInterrupt) else 1


def carry_out(application: typer.Typer) -> None:
    """Carry the command out: errors a person can mend become one message, and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        sys.exit(application(prog_name="murmur", standalone_mode=False))  # the code of a typer.Exit, or None
    except InputError as error:
        _stop(f"murmur: {error}", 2)
    except CutShort as error:
        _stop(f"murmur: {error}", error.exit_code)
    except RunError as error:
        _stop(f"murmur: {error}", 130 if isinstance(error.__cause__, KeyboardInterrupt) else 1)
    except (typer.Abort, KeyboardInterrupt):
        _stop("murmur: interrupted", 130)
    except OSError as error:
        _stop(f"murmur: {error}", 1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _stop(f"murmur: {error.format_message()}", 2)  # a usage error of the command line itself


def _interrupt(*_: object) -> None:
    """What `kill`, `timeout` and service managers send ends a command as Ctrl-C does."""
    raise KeyboardInterrupt


def _stop(message: str, code: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(code)
