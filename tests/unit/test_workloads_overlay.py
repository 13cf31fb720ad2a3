"""Overlay files: a broker's name becomes a node, an actor and a file, so that not every name will do."""

from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from workloads.overlay import FromFile, Sized, Tree, balanced, from_file, random_tree, star


@pytest.mark.parametrize("name", ["c0", "c17", "driver", "../../x", "a/b", ".hidden", "-o", "ü", "x" * 61])
def test_a_name_that_cannot_be_a_brokers_is_named_by_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "overlay.txt"
    path.write_text(f"a b\nb {name}\n", encoding="utf-8")
    with pytest.raises(InputError, match="the broker") as caught:
        from_file(FromFile(str(path)), 1)
    assert caught.value.place == f"{path}, line 2"


def test_ordinary_names_are_kept_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "overlay.txt"
    path.write_text("c1x drivers\ndrivers b-2.eu_west # c0 in a comment\n")
    overlay = from_file(FromFile(str(path)), 1)
    assert overlay.brokers == ("c1x", "drivers", "b-2.eu_west")
    assert overlay.leaves == ("c1x", "b-2.eu_west")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"overlay\.path .*absent"):
        from_file(FromFile(str(tmp_path / "absent")), 1)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="binary"):
        from_file(FromFile(str(tmp_path / "binary")), 1)


def test_random_trees_follow_the_seed() -> None:
    assert random_tree(Tree(40, 4), 1) == random_tree(Tree(40, 4), 1)
    assert random_tree(Tree(40, 4), 1) != random_tree(Tree(40, 4), 2)


@pytest.mark.parametrize("brokers", [1, 2])
def test_one_and_two_brokers_are_overlays(brokers: int) -> None:
    for overlay in (star(Sized(brokers), 1), balanced(Tree(brokers, 1), 1), random_tree(Tree(brokers, 1), 1)):
        assert overlay.leaves == overlay.brokers
        assert len(overlay.brokers) == brokers
        assert overlay.is_tree
