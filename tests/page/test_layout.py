"""Positions stay: worked out from the deployment once, kept in the run folder, and the same ever after."""

import math
from pathlib import Path
from typing import Any

import pytest

from murmur_page.layout import Layout, layout_of, layout_of_run, write_layout
from murmur_pubsub.deployment import Deployment, LinkPlan, NodeSpec, RunSettings
from murmur_pubsub.errors import InputError
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.run_manifest import read_manifest
from murmuration.deployment.build_deployment import build
from murmuration.harness.cluster import Cluster
from murmuration.scenario.load import check_scenario, load_scenario
from tests.spark.run_folder import RunFolder


def layout(overlay: dict[str, Any], **keys: Any) -> Layout:
    data = {"runtime": "virtual", "overlay": overlay, "workload": {"kind": "by_hand"}, **keys}
    return layout_of(build(check_scenario(data, "test")).deployment)


def test_brokers_of_a_structured_overlay_are_on_a_ring_in_the_order_of_their_identifiers() -> None:
    identifiers = [700, 20, 65_000, 21, 40_000]
    placed = layout(
        {"kind": "structured", "brokers": 5, "identifiers": identifiers},
        broker={"routing": "irbr"}, datagrams={"delay": "1 ms"}, last_mile="broker",
    )  # fmt: skip
    assert placed.kind == "ring"
    turns = [
        (math.atan2(y, x / 1.7) / (2 * math.pi) + 0.25) % 1 for x, y in (placed.positions[f"b{n}"] for n in range(5))
    ]
    assert sorted(range(5), key=turns.__getitem__) == sorted(range(5), key=identifiers.__getitem__)
    assert min(abs(a - b) for at, a in enumerate(turns) for b in turns[:at]) > 0.5 / 5 / 2, "none hides another"


def test_each_cell_has_a_box_with_its_brokers_in_it_and_in_no_other() -> None:
    placed = layout_of(build(load_scenario(Path("gryphon"))).deployment)
    assert placed.kind == "cells"
    assert sum(box.members for box in placed.boxes) == len(placed.positions) == 10
    for box in placed.boxes:
        inside = [
            name
            for name, (x, y) in placed.positions.items()
            if box.x < x < box.x + box.width and box.y < y < box.y + box.height
        ]
        assert len(inside) == box.members
    assert placed.positions["p1"][1] == min(y for _, y in placed.positions.values()), "the entrance is on top"


def test_what_goes_past_brokers_of_a_chain_is_seen_apart_from_it() -> None:
    places = list(layout({"kind": "chain", "brokers": 8}).positions.values())
    for (x, y), (to_x, to_y), (past_x, past_y) in zip(places, places[1:], places[2:], strict=False):
        assert abs((to_x - x) * (past_y - y) - (to_y - y) * (past_x - x)) > 0.01, "three on a line"


@pytest.mark.parametrize("brokers", [1, 2, 16, 90])
def test_every_broker_of_a_tree_has_a_place_of_its_own(brokers: int) -> None:
    overlay = {"kind": "balanced", "brokers": brokers, "degree": 3}
    placed = layout(overlay)
    assert placed.kind == "tree"
    assert len(set(placed.positions.values())) == len(placed.positions) == brokers
    assert placed == layout(overlay)


@pytest.mark.parametrize("brokers", [9, 450])
def test_an_overlay_with_cycles_is_drawn_as_a_mesh(brokers: int) -> None:
    """With hundreds of brokers too, where springs would take minutes."""
    names = [f"b{number}" for number in range(brokers)]
    deployment = Deployment(
        RunSettings(1),
        tuple(NodeSpec(name, "broker", "nowhere:none") for name in names),
        tuple(LinkPlan(name, names[number - step], LinkSpec()) for step in (1, 2) for number, name in enumerate(names)),
        {},
    )
    placed = layout_of(deployment)
    assert placed.kind == "mesh"
    assert len(set(placed.positions.values())) == brokers
    assert placed == layout_of(deployment)


def test_a_broker_that_joins_later_has_a_place_too() -> None:
    placed = layout({"kind": "chain", "brokers": 4}, newcomers=["late"])
    assert placed.kind == "tree"
    assert len(set(placed.positions.values())) == 5


def test_brokers_that_may_join_a_cell_have_places_outside_all_boxes() -> None:
    overlay = {"kind": "cells", "cells": {"p": ["p1"], "left": ["b1", "b2"]}, "links": [["p", "left"]]}
    placed = layout(overlay, newcomers=["late", "later"], broker={"routing": "cells"})
    assert placed.kind == "cells"
    assert set(placed.positions) == {"p1", "b1", "b2", "late", "later"}
    assert len(set(placed.positions.values())) == 5
    lowest = max(box.y + box.height for box in placed.boxes)
    assert all(placed.positions[name][1] > lowest for name in ("late", "later"))


def test_a_run_keeps_its_layout(tmp_path: Path) -> None:
    with Cluster.start(overlay={"kind": "chain", "brokers": 3}, folder=tmp_path / "run") as cluster:
        cluster.settle()
    manifest = cluster._folder.manifest
    kept = layout_of_run(tmp_path / "run", manifest)
    assert set(kept.positions) == {"b0", "b1", "b2"}
    moved = Layout("tree", {**kept.positions, "b0": (5.0, 5.0)})
    write_layout(tmp_path / "run", moved)
    assert layout_of_run(tmp_path / "run", manifest) == moved
    (tmp_path / "run" / "layout.json").write_text('{"kind": "heap", "positions": {}}')
    with pytest.raises(InputError, match=r"layout\.json, key kind"):
        layout_of_run(tmp_path / "run", manifest)


def test_an_older_run_without_a_layout_gets_one_from_its_manifest(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", brokers=4)
    folder = run.finish()
    assert set(layout_of_run(folder, read_manifest(folder)).positions) == {"b0", "b1", "b2", "b3"}


def test_brokers_without_a_place_are_below_the_others_and_apart(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", brokers=3).finish()
    write_layout(folder, Layout("tree", {"b1": (0.0, 3.0)}))
    positions = layout_of_run(folder, read_manifest(folder)).positions
    assert positions["b1"] == (0.0, 3.0)
    assert len(set(positions.values())) == 3
    assert min(positions["b0"][1], positions["b2"][1]) > 3


def test_the_layout_of_another_run_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", brokers=3).finish()
    write_layout(folder, Layout("tree", dict.fromkeys(("b0", "b1", "b2", "x9"), (0.0, 0.0))))
    with pytest.raises(InputError) as caught:
        layout_of_run(folder, read_manifest(folder))
    assert caught.value.place == f"{folder}/layout.json, key positions"
    assert caught.value.found == "'x9'"
    assert caught.value.allowed == "the run's brokers (b0, b1, b2), or no such file"
