"""A tour of the zoo: each of its animals is played and judged, and the table says whether the judge saw what it did."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from experiments.zoo.entry import Honest, Saboteur
from experiments.zoo.play import See, play, play_and_judge, sight
from pubsub.deployment import load
from pubsub.errors import InputError

Progress = Callable[[int, int], None]
"""How many have been judged, and how many there are."""


class Damage(Protocol):
    """A way to damage the journal of a finished run. `do` damages that run folder and returns the files that must be
    named; it raises `InputError` for a run to which it cannot be done."""

    @property
    def what(self) -> str: ...

    @property
    def do(self) -> Callable[[Path], Sequence[str]]: ...


class Row(NamedTuple):
    """A line of the table. `found`: the judge says what it must: of an honest one, that it is valid."""

    kind: str
    name: str
    does: str
    verdict: str
    finding: str | None
    names: str
    found: bool


def chosen(names: Sequence[str], saboteurs: Sequence[Saboteur], honest: Sequence[Honest]) -> list[Saboteur | Honest]:
    """Those of the zoo with these names, all if there are none; a dotted path is a `Saboteur` of one's own. Raises
    `InputError` for a name that there is not."""
    everyone: dict[str, Saboteur | Honest] = {each.name: each for each in saboteurs}
    everyone |= {each.name: each for each in honest}
    return [_named(name, everyone) for name in names] or list(everyone.values())


def _named(name: str, everyone: Mapping[str, Saboteur | Honest]) -> Saboteur | Honest:
    if name in everyone:
        return everyone[name]
    if ":" not in name:
        raise InputError("zoo", repr(name), f"a dotted path 'package.module:saboteur', or one of {', '.join(everyone)}")
    own = load(name, "zoo")
    if not isinstance(own, Saboteur | Honest):
        raise InputError("zoo", f"{name!r}, which is a {type(own).__name__}", "an experiments.zoo.entry.Saboteur")
    return own


def tour(entries: Sequence[Saboteur | Honest], see: See, folder: Path, progress: Progress) -> Iterator[Row]:
    """A row for each; their runs are left in the folder, each under its name."""
    for done, entry in enumerate(entries):
        progress(done, len(entries))
        yield row_of(entry, see, folder / entry.name.replace(" ", "-"))
    progress(len(entries), len(entries))


def row_of(entry: Saboteur | Honest, see: See, folder: Path) -> Row:
    """The row of one, played in that folder."""
    seen = play_and_judge(entry.scenario, folder, see)[0]
    if isinstance(entry, Saboteur):
        kind, found = "saboteur", seen.is_of(entry)
    else:
        kind, found = "honest", seen.verdict == "valid"
    return Row(kind, entry.name, entry.does, seen.verdict, seen.finding, seen.names, found)


def tour_of_damages(damages: Mapping[str, Damage], run: Honest, see: See, folder: Path) -> Iterator[Row]:
    """A row for each damage, done to a copy of that run. It is found if the verdict is unknown because of damage, and
    names the first of the files."""
    whole = play(run.scenario, folder / "whole")
    for name, damage in damages.items():
        copy = folder / name.replace(" ", "-")
        shutil.copytree(whole, copy)
        files = damage.do(copy)
        seen = sight(see, copy)
        found = (seen.verdict, seen.finding) == ("unknown", "damage") and files[0] in seen.reason
        yield Row("damage", name, damage.what, seen.verdict, seen.finding, seen.names, found)
