"""Overlay files: a broker's name becomes a node, an actor and a file, so that not every name will do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from murmur_pubsub.errors import InputError
from workloads.meshes import RandomRegular, ScaleFree, SmallWorld, random_regular, scale_free, small_world
from workloads.overlay import FromFile, Overlay, Sized, Tree, balanced, from_file, random_tree, star


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


MESHES: list[tuple[Callable[[Any, int], Overlay], Any]] = [
    (random_regular, RandomRegular(20, 3)),
    (small_world, SmallWorld(20, 4, 0.5)),
    (scale_free, ScaleFree(20, 2)),
]


@pytest.mark.parametrize(("draw", "options"), MESHES, ids=["random_regular", "small_world", "scale_free"])
def test_meshes_are_connected_and_follow_the_seed(draw: Callable[[Any, int], Overlay], options: Any) -> None:
    drawn = [draw(options, seed) for seed in range(30)]
    assert drawn == [draw(options, seed) for seed in range(30)]
    assert len({overlay.edges for overlay in drawn}) == 30
    for overlay in drawn:
        assert not overlay.is_tree
        assert len({frozenset(edge) for edge in overlay.edges}) == len(overlay.edges)
        assert nx.is_connected(nx.Graph(list(overlay.edges)))
        assert set(overlay.neighbours) == {f"b{number}" for number in range(20)}


def test_the_kinds_of_mesh_are_what_their_names_say() -> None:
    regular = random_regular(RandomRegular(30, 4), 7)
    assert {len(peers) for peers in regular.neighbours.values()} == {4}
    circle = small_world(SmallWorld(30, 4, 0.0), 7)
    assert set(circle.neighbours["b10"]) == {"b8", "b9", "b11", "b12"}
    degrees = [len(peers) for peers in scale_free(ScaleFree(200, 2), 7).neighbours.values()]
    assert max(degrees) > 20
    assert sorted(degrees)[100] <= 3


@pytest.mark.parametrize(
    ("make", "found", "allowed"),
    [
        (lambda: RandomRegular(5, 3), "found 3", "an even number"),
        (lambda: RandomRegular(4, 4), "found 4", "2 to 3"),
        (lambda: RandomRegular(1_000_000, 21), "10,500,000 links", "at most 10,000,000"),
        (lambda: SmallWorld(10, 3), "found 3", "an even number from 2 to 9"),
        (lambda: SmallWorld(10, 4, 1.5), "found 1.5", "0 to 1"),
        (lambda: ScaleFree(3, 3), "found 3", "1 to 2"),
        (lambda: ScaleFree(1, 1), "found 1", "at least 2"),
    ],
)
def test_a_mesh_that_cannot_be_is_refused(make: Callable[[], object], found: str, allowed: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert found in str(caught.value)
    assert allowed in str(caught.value)
