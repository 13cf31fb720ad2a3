"""A tour of the zoo: each of its animals is played and judged, and the table says whether the judge saw what it did."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from murmur_pubsub.deployment import object_at
from murmur_pubsub.errors import InputError
from murmur_pubsub.progress import Progress
from murmuration.zoo.entry import Damaged, Honest, Saboteur
from murmuration.zoo.play import See, play_and_judge, play_in_zoo, sight
from murmuration.zoo.split_run import split_by_node


class TourRow(NamedTuple):
    """A line of the table. `found`: the judge says what it must: of an honest one, that it is valid."""

    kind: str
    name: str
    does: str
    verdict: str
    finding: str | None
    names: str
    found: bool


ZooEntry = Saboteur | Honest | Damaged


def chosen(names: Sequence[str], entries: Sequence[ZooEntry]) -> list[ZooEntry]:
    """Those of the entries with these names, all if there are none; a dotted path is a `Saboteur` of one's own. Raises
    `InputError` for a name that there is not."""
    by_name = {each.name: each for each in entries}
    return [_named(name, by_name) for name in dict.fromkeys(names)] or list(entries)


def _named(name: str, by_name: Mapping[str, ZooEntry]) -> ZooEntry:
    if name in by_name:
        return by_name[name]
    if ":" not in name:
        raise InputError("zoo", repr(name), f"a dotted path 'package.module:saboteur', or one of {', '.join(by_name)}")
    own = object_at(name, "zoo")
    if not isinstance(own, ZooEntry):
        raise InputError("zoo", f"{name!r}, which is a {type(own).__name__}", "an murmuration.zoo.entry.Saboteur")
    return own


def tour(entries: Sequence[ZooEntry], see: See, folder: Path, progress: Progress) -> Iterator[TourRow]:
    """A row for each; their runs are left in the folder, each under its name."""
    for done, entry in enumerate(entries):
        progress("judging", done, len(entries))
        yield row_of(entry, see, place_of(entry, folder))
    progress("judging", len(entries), len(entries))


def place_of(entry: ZooEntry, folder: Path) -> Path:
    """Where the run of it is left."""
    return folder / entry.name.replace(" ", "-")


def row_of(entry: ZooEntry, see: See, folder: Path) -> TourRow:
    """The row of one, played in that folder."""
    if isinstance(entry, Damaged):
        return _row_of_damage(entry, see, folder)
    seen = play_and_judge(entry.scenario, folder, see)[0]
    if isinstance(entry, Saboteur):
        kind, found = "saboteur", seen.is_of(entry)
    else:
        kind, found = "honest", seen.verdict == "valid"
    return TourRow(kind, entry.name, entry.does, seen.verdict, seen.finding, seen.names, found)


def _row_of_damage(entry: Damaged, see: See, folder: Path) -> TourRow:
    """It is found if the verdict is unknown because of damage, and names the first of the files."""
    files = damage(entry, folder)
    seen = sight(see, folder)
    found = (seen.verdict, seen.finding) == ("unknown", "damage") and files[0] in seen.reason
    return TourRow("damage", entry.name, entry.does, seen.verdict, seen.finding, seen.names, found)


def damage(entry: Damaged, folder: Path) -> Sequence[str]:
    """Make a damaged run in that folder; the files that must be named."""
    with tempfile.TemporaryDirectory() as place:
        split_by_node(play_in_zoo(entry.run.scenario, Path(place) / "run"), folder)
    return entry.do(folder)
