"""Ways to damage the journal of a finished run. A judge that is asked about the run afterwards has to name the files.

`DAMAGES["cut at a row"].do(run)` damages the run folder in its place and says which files must be named: so work on a
copy. A damage that needs the files of several clients cannot be done to a virtual run, whose nodes share one writer.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_format import HEADER_BYTES, MAGIC_ROWS, ROW, FileName, parse_name, read_header
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.run_manifest import read_manifest

_BLOCK_BYTES = 64


class JournalDamage(NamedTuple):
    """`what` it does, and how: `do` takes a run folder and returns the files that must be named; it raises `InputError`
    for a run to which it cannot be done."""

    what: str
    do: Callable[[Path], Sequence[str]]


def flip_bit(path: Path, bit: int) -> None:
    """Turn one bit of the file over."""
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


# ------------------------------------------------------------------------------------------- what is there
def _files(run: Path, writer: str = "*", ending: str = "*") -> list[FileName]:
    names = (parse_name(path.name) for path in sorted((run / "journal").glob(f"{writer}-*.{ending}")))
    return [name for name in names if name is not None and writer in ("*", name.writer)]


def _of_role(run: Path, role: str) -> list[str]:
    """The nodes of that role with a journal of their own, and those with the most deliveries first."""
    nodes = read_manifest(run).nodes
    deliveries = {node.name: _deliveries(run, node.name) for node in nodes if node.role == role}
    found = [name for name in deliveries if _files(run, name)]
    if len(found) < 2:
        raise InputError(str(run), f"{len(found)} {role}s with a journal of their own", "two or more, as in a live run")
    return sorted(found, key=lambda name: -deliveries[name])


def _deliveries(run: Path, writer: str) -> int:
    rows = (read_segment(run / "journal" / str(name))[1] for name in _files(run, writer, "seg"))
    return sum(int((each["kind"] == RowKind.DELIVER).sum()) for each in rows)


def _largest(run: Path, ending: str) -> FileName:
    return max(_files(run, ending=ending), key=lambda name: _path(run, name).stat().st_size)


def _path(run: Path, name: FileName) -> Path:
    return run / "journal" / str(name)


# ------------------------------------------------------------------------------------------------- damages
def _delete_writers(run: Path, writers: Sequence[str]) -> list[str]:
    for writer in writers:
        for name in _files(run, writer):
            _path(run, name).unlink()
    return [str(FileName(writer, 0, 0, "seg")) for writer in writers]


def _delete_last(run: Path, ending: str) -> list[str]:
    largest = _largest(run, ending)
    last = _files(run, largest.writer, ending)[-1]
    _path(run, last).unlink()
    return [str(last)]


def _exchange(run: Path, ending: str) -> list[str]:
    first, second = (_files(run, client, ending)[0] for client in _with(run, _of_role(run, "client"), ending)[:2])
    ours, theirs = _path(run, first).read_bytes(), _path(run, second).read_bytes()
    _path(run, first).write_bytes(theirs)
    _path(run, second).write_bytes(ours)
    return [str(first), str(second)]


def _with(run: Path, writers: Sequence[str], ending: str) -> list[str]:
    return [writer for writer in writers if _files(run, writer, ending)]


def _rename(run: Path) -> list[str]:
    ours, theirs = (_files(run, client, "seg")[0] for client in _of_role(run, "client")[:2])
    _path(run, ours).rename(_path(run, theirs))
    return [str(ours), str(theirs)]


def _copy(run: Path, to: Callable[[FileName], FileName]) -> list[str]:
    last = _files(run, _largest(run, "seg").writer, "seg")[-1]
    shutil.copyfile(_path(run, last), _path(run, to(last)))
    return [str(to(last))]


def _cut(run: Path, ending: str, at: Callable[[int], int]) -> list[str]:
    name = _largest(run, ending)
    data = _path(run, name).read_bytes()
    _path(run, name).write_bytes(data[: at(len(data))])
    return [str(name)]


def _middle_row(size: int) -> int:
    """Where the row in the middle of a segment of that size begins."""
    return HEADER_BYTES + (size - HEADER_BYTES) // ROW.size // 2 * ROW.size


def _zero(run: Path, ending: str, at: Callable[[int], int], count: int) -> list[str]:
    name = _largest(run, ending)
    data = bytearray(_path(run, name).read_bytes())
    begin = at(len(data))
    data[begin : begin + count] = bytes(len(data[begin : begin + count]))
    _path(run, name).write_bytes(data)
    return [str(name)]


def _put_in_another_run(run: Path) -> list[str]:
    """What another run of the same scenario leaves need not differ in anything but the run's identifier."""
    name = _largest(run, "seg")
    data = _path(run, name).read_bytes()
    header = read_header(str(name), data, MAGIC_ROWS)
    _path(run, name).write_bytes(replace(header, run=header.run ^ 1).of_segment() + data[HEADER_BYTES:])
    return [str(name)]


def _flip(run: Path) -> list[str]:
    name = _largest(run, "seg")
    flip_bit(_path(run, name), 8 * _middle_row(_path(run, name).stat().st_size) + 3)
    return [str(name)]


DAMAGES: Mapping[str, JournalDamage] = {
    "a client gone": JournalDamage(
        "deletes all files of the client with the most deliveries",
        lambda run: _delete_writers(run, _of_role(run, "client")[:1]),
    ),
    "half the clients gone": JournalDamage(
        "deletes all files of every second client", lambda run: _delete_writers(run, _of_role(run, "client")[::2])
    ),
    "a broker gone": JournalDamage(
        "deletes all files of a broker", lambda run: _delete_writers(run, _of_role(run, "broker")[:1])
    ),
    "a last segment gone": JournalDamage("deletes the last segment of a series", lambda run: _delete_last(run, "seg")),
    "a last side file gone": JournalDamage(
        "deletes the last side file of a series", lambda run: _delete_last(run, "blob")
    ),
    "segments exchanged": JournalDamage("exchanges segments of two clients", lambda run: _exchange(run, "seg")),
    "side files exchanged": JournalDamage("exchanges side files of two clients", lambda run: _exchange(run, "blob")),
    "renamed": JournalDamage("renames a segment of a client to one of another", _rename),
    "copied as the next incarnation": JournalDamage(
        "copies a segment as one of an incarnation that never was",
        lambda run: _copy(run, lambda name: name._replace(incarnation=name.incarnation + 1, number=0)),
    ),
    "copied as the next number": JournalDamage(
        "copies the last segment of a series as the one after it",
        lambda run: _copy(run, lambda name: name._replace(number=name.number + 1)),
    ),
    "cut at a row": JournalDamage("cuts a segment after a whole row", lambda run: _cut(run, "seg", _middle_row)),
    "cut inside a row": JournalDamage(
        "cuts a segment inside a row", lambda run: _cut(run, "seg", lambda size: _middle_row(size) + 7)
    ),
    "a side file cut": JournalDamage(
        "cuts the last bytes of a side file", lambda run: _cut(run, "blob", lambda n: n - 3)
    ),
    "a kind zeroed": JournalDamage(
        "makes a row in the middle of a segment look as if it had not been written",
        lambda run: _zero(run, "seg", lambda size: _middle_row(size) + ROW.size - 2, 1),
    ),
    "a block zeroed": JournalDamage(
        f"zeroes {_BLOCK_BYTES} bytes in the middle of a side file",
        lambda run: _zero(run, "blob", lambda size: size // 2, _BLOCK_BYTES),
    ),
    "emptied": JournalDamage("leaves a segment without a byte", lambda run: _cut(run, "seg", lambda size: 0)),
    "of another run": JournalDamage("puts a segment of another run in the place of one", _put_in_another_run),
    "a bit turned": JournalDamage("turns one bit of a segment over", _flip),
}
