"""Whose scratch folder is gathered and removed: a manifest may name any."""

from pathlib import Path

import pytest

from actors.gathering import _send
from actors.scratch import make_scratch, remove_scratch
from murmur_pubsub.errors import RunError


def test_a_folder_that_murmur_has_not_made_is_neither_read_nor_removed(tmp_path: Path) -> None:
    kept = tmp_path / "home" / "journal" / "b0-0-00000.seg"
    kept.parent.mkdir(parents=True)
    kept.write_text("somebody's")
    foreign = tmp_path / "home"
    with pytest.raises(RunError, match="was not made by murmur"):
        list(_send(str(foreign), None))
    with pytest.raises(RunError, match="was not made by murmur"):
        remove_scratch(foreign)
    assert kept.read_text() == "somebody's"


def test_a_link_to_a_folder_that_murmur_has_made_does_not_lose_what_it_leads_to(tmp_path: Path) -> None:
    make_scratch(tmp_path / "made")
    (tmp_path / "link").symlink_to(tmp_path / "made")
    remove_scratch(tmp_path / "link")
    assert (tmp_path / "made").is_dir()


def test_a_scratch_folder_is_gathered_and_removed_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "murmur-run-1234"
    make_scratch(folder)
    (folder / "journal").mkdir()
    (folder / "journal" / "b0-0-00000.seg").write_text("rows")
    assert list(_send(str(folder), None)) == [("b0-0-00000.seg", b"rows", 1)]
    remove_scratch(folder)
    assert not folder.exists()


def test_a_host_on_which_nothing_was_written_has_nothing_to_gather(tmp_path: Path) -> None:
    assert list(_send(str(tmp_path / "never"), None)) == []
    remove_scratch(tmp_path / "never")
