"""`murmur init`: a scenario, a test suite or a protocol to begin with, as files that run as they are."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from murmur_pubsub.errors import InputError
from murmur_pubsub.whole_files import write_text
from murmuration.commands.ending import make_folder

STARTERS = Path(__file__).parents[1] / "starters"


class Starter(StrEnum):
    """What one may begin with; a folder of that name has its files."""

    SCENARIO = "scenario"
    SUITE = "suite"
    PROTOCOL = "protocol"


NEXT = {
    Starter.SCENARIO: "murmur run scenario.yaml",
    Starter.SUITE: "pytest",
    Starter.PROTOCOL: "pytest",
}
"""The command to try first, in the folder."""


def starter_named(name: str) -> Starter:
    """The starter of that name; raises `InputError`."""
    if name not in list(Starter):
        raise InputError("init", repr(name), ", ".join(Starter))
    return Starter(name)


StarterArgument = Annotated[
    Starter,
    typer.Argument(
        help="What to begin with: scenario, suite or protocol.",
        parser=starter_named,
        metavar="WHAT",
        autocompletion=lambda: list(Starter),
    ),
]


def begin(starter: Starter, folder: Path) -> list[Path]:
    """Write the starter's files into the folder; raises `InputError`, and writes none, if one of them is there. Where
    there is no room for all of them none stays, and that is a `DiskError`."""
    sources = sorted(each for each in (STARTERS / starter).iterdir() if each.is_file())
    written = [folder / source.name for source in sources]
    make_folder(folder)
    for path in written:
        if path.exists():
            raise InputError(str(path), "a file that is already there", "another folder: nothing is overwritten")
    try:
        for source, path in zip(sources, written, strict=True):
            write_text(path, source.read_text(encoding="utf-8"))
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written
