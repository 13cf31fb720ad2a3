"""Is the journal of a run whole, and is it this run's? What is not is named as damage, file by file.

A run that ended is compared with its manifest: every writer has a series of segments for each of its incarnations, each
series has all its files up to the one that was sealed as the last, each file is what its name says and holds what was
sealed. A series may be open only where the manifest has a fault that took its writer away. A run that was cut short may
leave any series open, and misses what was not begun; whatever else is wrong there is damage too.

`survey` looks at names, sizes and headers; what is in a file is looked at by `damage_in`, each file on its own, so
that many can be read at once. `find_damage` does both in this process.
"""

import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from murmur_pubsub.dead_nodes import with_the_living
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import DEATHS, FaultKind
from murmur_pubsub.journal import FAULTS_WRITER, RUN_WRITER
from murmur_pubsub.journal_format import (
    HEADER_BYTES,
    MAGIC_ROWS,
    ROW,
    SCHEMA_VERSION,
    FileName,
    FileState,
    SegmentHeader,
    parse_name,
    schema_version,
    sound_header,
)
from murmur_pubsub.journal_sealing import bytes_written
from murmur_pubsub.journal_store import JournalStore
from murmur_pubsub.run_manifest import RunManifest

_ENDED = (FileState.LAST, FileState.LAST_OF_DEAD)


class Damage(NamedTuple):
    """A file of the journal, and what is wrong with it."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file} {self.what}"


class Content(NamedTuple):
    """A file whose content is still to be looked at. `former`: the checksum of the file before it in its series."""

    file: str
    header: SegmentHeader
    former: int


@dataclass(slots=True)
class Survey:
    """What names, sizes and headers say. `size`: bytes of the whole journal."""

    size: int
    damages: list[Damage] = field(default_factory=list)
    contents: list[Content] = field(default_factory=list)


def find_damage(store: JournalStore, manifest: RunManifest) -> list[Damage]:
    """Everything that is wrong with the journal, by file; raises `InputError` if there is none, or one of another
    schema version."""
    surveyed = survey(store, manifest)
    inside = (damage_in(content, store.read(content.file)) for content in surveyed.contents)
    return sorted([*surveyed.damages, *(damage for damage in inside if damage is not None)])


def survey(store: JournalStore, manifest: RunManifest) -> Survey:
    """What is wrong with names, sizes and headers, and which contents are to be looked at; raises as `find_damage`."""
    sizes = store.sizes("seg") | store.sizes("blob")
    if not sizes:
        raise InputError(store.place, "no segment (*.seg)", "the journal of a run")
    beginnings = {name: store.read(name, HEADER_BYTES) for name in sizes}
    versions = {name: schema_version(beginning) for name, beginning in beginnings.items()}
    others = [name for name, version in versions.items() if version is not None]
    if others and SCHEMA_VERSION not in versions.values():
        name = others[0]
        raise InputError(store.name_of(name), f"schema version {versions[name]}", f"schema version {SCHEMA_VERSION}")
    surveyor = _Surveyor(manifest, Survey(sum(sizes.values())))
    for name, size in sizes.items():
        surveyor.look_at(name, size, beginnings[name])
    surveyor.look_at_series()
    return surveyor.survey


def damage_in(content: Content, data: bytes) -> Damage | None:
    """What is wrong with the file that has this data: not what was sealed, or a gap where a writer was killed."""
    file, header, former = content
    if header.state is not FileState.OPEN:
        checksum = zlib.crc32(memoryview(data)[HEADER_BYTES : header.used], former)
        if checksum != header.checksum or data[header.used :].strip(b"\0"):
            return Damage(file, "was changed after it was sealed")
        return None
    try:
        bytes_written(file, data)
    except InputError as error:
        return Damage(file, f"was damaged while it was open ({error.place}: {error.found})")
    return None


class _File(NamedTuple):
    """A file of a series. `header`: None if there is none, or another's; `sound`: nothing is wrong with name, size and
    header by themselves."""

    size: int
    header: SegmentHeader | None
    sound: bool

    @property
    def state(self) -> FileState:
        """That of a file whose header was not written yet is as good as open."""
        return FileState.OPEN if self.header is None else self.header.state


class _Surveyor:
    """Looks at the files one by one, and then at what they are together."""

    def __init__(self, manifest: RunManifest, survey: Survey) -> None:
        self.survey = survey
        self._manifest = manifest
        driver = manifest.numbers.get("driver", len(manifest.nodes))
        self._numbers = manifest.numbers | {RUN_WRITER: driver, FAULTS_WRITER: driver + 1}
        self._series: dict[tuple[str, int], dict[str, dict[int, _File]]] = {}
        self._taken = _taken_away(manifest)

    def look_at(self, file: str, size: int, beginning: bytes) -> None:
        """A file by itself."""
        name = parse_name(file)
        writers = self._manifest.writers
        if name is None or name.writer not in self._numbers:
            self._damaged(file, "is no file of this run's journal")
            return
        if writers is not None and name.incarnation >= writers.get(name.writer, 0):
            self._damaged(file, f"is of an incarnation of {name.writer} that never was")
            return
        header, wrong = None, None
        if size and (any(beginning) or size < HEADER_BYTES):
            header = sound_header(beginning)
            wrong = self._wrong_header(name, beginning, header)
            if wrong is not None:
                header = None
            elif header is not None:
                wrong = self._wrong_size(name, size, header)
        if wrong is not None:
            self._damaged(file, wrong)
        files = self._series.setdefault((name.writer, name.incarnation), {"seg": {}, "blob": {}})
        files[name.ending][name.number] = _File(size, header, wrong is None)

    def _wrong_header(self, name: FileName, beginning: bytes, header: SegmentHeader | None) -> str | None:
        if len(beginning) < HEADER_BYTES:
            return "was cut inside its header"
        version = schema_version(beginning)
        if version is None:
            return "does not begin as a file of a journal"
        if version != SCHEMA_VERSION:
            return f"says that it is of schema version {version}"
        if header is None:
            return "has a header that was changed"
        if header.run != self._manifest.identifier:
            return "is of another run"
        ending = "seg" if beginning.startswith(MAGIC_ROWS) else "blob"
        if (header.node, header.incarnation, header.number, ending) != (self._numbers[name.writer], *name[1:]):
            writers = {number: writer for writer, number in self._manifest.numbers.items()}
            writers[self._numbers[name.writer]] = name.writer
            writer = writers.get(header.node, f"writer {header.node}")
            return f"holds what {writer} wrote as {FileName(writer, header.incarnation, header.number, ending)}"
        return None

    def _wrong_size(self, name: FileName, size: int, header: SegmentHeader) -> str | None:
        whole = header.allocated if header.state is FileState.OPEN else header.used
        if size < whole:
            return _cut(name, size, whole)
        if size > whole and not (size == header.allocated and self._may_be_open(name)):
            return f"has {size - whole:,} bytes more than it was given"
        return None

    def look_at_series(self) -> None:
        """The files of each series, and what is not there."""
        counts = dict(self._manifest.writers or {})
        for writer, incarnation in self._series:
            if _known(self._series[writer, incarnation]["seg"]):
                counts[writer] = max(counts.get(writer, 0), incarnation + 1)
        begun = {(writer, incarnation) for writer, count in counts.items() for incarnation in range(count)}
        for writer, incarnation in sorted(begun | self._series.keys()):
            files = self._series.get((writer, incarnation), {"seg": {}, "blob": {}})
            segments, sides = files["seg"], files["blob"]
            ends = min((number for number, file in segments.items() if file.state in _ENDED), default=None)
            last = None if ends is None else segments[ends].header
            first = FileName(writer, incarnation, 0, "seg")
            self._look_together(first, segments, None if ends is None else ends + 1)
            self._look_together(first._replace(ending="blob"), sides, None if last is None else last.side_files)
            if last is not None:
                self._look_at_totals(writer, incarnation, sides, last)

    def _look_together(self, first: FileName, files: Mapping[int, _File], count: int | None) -> None:
        """The segments, or the side files, of one series; `count`: how many there were, if that is known."""
        if first.writer not in self._manifest.away:
            expected = count
            if expected is None:
                top = max(_known(files), default=-1)
                more = top in files and files[top].state is FileState.SEALED  # the next was open before it was sealed
                expected = max(top + 1 + more, 1 if first.ending == "seg" else 0)
            for number in range(expected):
                if number not in files:
                    self._damaged(str(first._replace(number=number)), "is missing")
        for number, file in files.items():
            if not file.sound:
                continue
            name = first._replace(number=number)
            wrong = self._wrong_in_series(name, files, count)
            before = files.get(number - 1)
            if wrong is not None:
                self._damaged(str(name), wrong)
            elif file.header is None:
                continue  # nothing is in it yet
            elif file.state is FileState.OPEN or number == 0:
                self.survey.contents.append(Content(str(name), file.header, 0))
            elif before is not None and before.header is not None:
                self.survey.contents.append(Content(str(name), file.header, before.header.checksum))

    def _wrong_in_series(self, name: FileName, files: Mapping[int, _File], count: int | None) -> str | None:
        file, following = files[name.number], files.get(name.number + 1)
        if count is not None and name.number >= count:
            return "is one file more than its series had"
        may_be_open = self._may_be_open(name)
        in_place = following is None and (name.number == 0 or name.number - 1 in files)
        if file.header is None and not (in_place and may_be_open):
            return "has nothing in it" if not file.size else "has no header"
        if file.state is FileState.OPEN:
            if not may_be_open:
                return "was never sealed, though no fault took its writer away"
            if count is not None or (following is not None and following.state is not FileState.OPEN):
                return "was never sealed, though its series was"
        if file.state is FileState.LAST_OF_DEAD and not may_be_open:
            return "was sealed as a dead writer's, though no fault took its writer away"
        return None

    def _look_at_totals(self, writer: str, incarnation: int, sides: Mapping[int, _File], last: SegmentHeader) -> None:
        """Are the side files those that the last segment was sealed with?"""
        headers = [file.header for number, file in sorted(sides.items()) if file.sound and number < last.side_files]
        if not headers or len(headers) < last.side_files:
            return
        used = sum(header.used for header in headers if header is not None)
        end = headers[-1]
        if end is not None and (end.checksum, used) != (last.side_checksum, last.side_bytes):
            name = FileName(writer, incarnation, last.side_files - 1, "blob")
            self._damaged(str(name), "is not the side file with which its series was sealed")

    def _may_be_open(self, name: FileName) -> bool:
        """Was the writer taken away before it could seal its files?"""
        if self._manifest.writers is None:
            return True
        return name.incarnation < self._taken[name.writer]

    def _damaged(self, file: str, what: str) -> None:
        self.survey.damages.append(Damage(file, what))


def _taken_away(manifest: RunManifest) -> Counter[str]:
    """How many incarnations of each node faults have taken away: those that died, and one that is stalled at the end.
    To kill who is dead takes nothing away."""
    taken: Counter[str] = Counter()
    stalled: set[str] = set()
    for step, alive in with_the_living(manifest.happened):
        if step.kind in DEATHS:
            taken.update(alive)
            stalled -= alive
        elif step.kind is FaultKind.STALL:
            stalled |= alive
        elif step.kind is FaultKind.RESUME:
            stalled -= alive
    taken.update(stalled)
    return taken


def _known(files: Mapping[int, _File]) -> list[int]:
    """The numbers of those that say themselves which they are."""
    return [number for number, file in files.items() if file.header is not None]


def _cut(name: FileName, size: int, whole: int) -> str:
    if name.ending == "blob":
        return f"was cut at byte {size:,} of {whole:,}"
    rows, over = divmod(size - HEADER_BYTES, ROW.size)
    of = f"of {(whole - HEADER_BYTES) // ROW.size:,}"
    return f"was cut inside row {rows + 1:,} {of}" if over else f"was cut at row {rows:,} {of}"
