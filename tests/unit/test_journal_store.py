"""Stores of journals: any filesystem of pyarrow's, and what cannot be one."""

from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem, _MockFileSystem

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import JournalWriter, RowKind
from murmur_pubsub.journal_rows import parse_segment
from murmur_pubsub.journal_store import ArrowStore, JournalStore, journal_names, store_at
from murmuration.runs.driver import check_store


def stores(folder: Path) -> list[JournalStore]:
    """One on each kind of filesystem that needs no other host."""
    return [
        store_at(str(folder / "path")),
        store_at((folder / "uri").as_uri()),
        ArrowStore("mock://runs/first", _MockFileSystem(), "runs/first"),
        ArrowStore("sub", SubTreeFileSystem(str(folder / "base"), LocalFileSystem()), "runs/first"),
    ]


@pytest.mark.parametrize("kind", range(4))
def test_what_is_written_is_listed_and_read(tmp_path: Path, kind: int) -> None:
    store = stores(tmp_path)[kind]
    assert store.sizes("seg") == {}, "a place that is not there yet has no files"
    store.check_writable(".mark")
    assert store.sizes("mark") == {}, "what was written to see that it can be is gone"
    journal = tmp_path / "journal"
    journal.mkdir()
    writer = JournalWriter(journal, "b1", 4)
    writer.row(7, RowKind.DELIVER, 4, value=9)
    writer.close()
    for name in journal_names(journal):
        store.write(name, (journal / name).read_bytes())
    assert store.sizes("seg") == {"b1-0-00000.seg": (journal / "b1-0-00000.seg").stat().st_size}
    assert store.sizes("blob") == {}
    assert store.read("b1-0-00000.seg", 4) == b"MURM"
    header, rows = parse_segment("b1", store.read("b1-0-00000.seg"))
    assert (header.node, rows["value"].tolist()) == (4, [9])


@pytest.mark.parametrize("place", ["nothing://here/runs", "file://elsewhere/runs"])
def test_a_uri_of_no_filesystem_is_named(place: str) -> None:
    with pytest.raises(InputError, match=f"{place}: found .*; allowed: a folder, or a URI"):
        store_at(place)


def test_a_run_has_a_store_of_its_own(tmp_path: Path) -> None:
    check_store(tmp_path.as_uri())
    with pytest.raises(InputError, match="a URI, such as"):
        check_store(str(tmp_path))
    (tmp_path / "b0-0-00000.seg").touch()
    with pytest.raises(InputError, match="already at"):
        check_store(tmp_path.as_uri())


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="a place that cannot be written"):
        store_at((tmp_path / "file" / "runs").as_uri()).check_writable(".mark")
