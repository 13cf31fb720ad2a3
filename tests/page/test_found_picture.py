"""Findings are grouped by where the event's way ended, and the page can draw the ways."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from murmur_pubsub.journal import DropReason, RowKind
from murmur_pubsub.run_manifest import RunManifest, read_manifest
from spark_analysis.event_way import follow, follow_all
from spark_analysis.found_picture import found_picture
from tests.spark.run_folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four brokers in a chain. Of 0:0 the link b1-b2 loses its copy, 0:1 b1 does not send on, 0:2 gets to b3, whose
    client is not handed it, and 0:3 arrives."""
    built = RunFolder(tmp_path / "run", brokers=4, clients=4)
    for sequence in range(4):
        at_us = 1_000 * (sequence + 1)
        built.publish("c0", at_us, 0, sequence, {"a": sequence})
        built.hop("c0", "b0", at_us, at_us + 10, 0, sequence)
        built.hop("b0", "b1", at_us + 20, at_us + 30, 0, sequence)
        if sequence == 0:
            built.hop("b1", "b2", at_us + 40, None, 0, sequence)
            loss = {"source": 0, "sequence": sequence, "value": int(DropReason.LOSS)}
            built.row("b1", at_us + 41, RowKind.DROP, "b2", **loss)
        if sequence >= 2:
            built.hop("b1", "b2", at_us + 40, at_us + 50, 0, sequence)
            built.hop("b2", "b3", at_us + 60, at_us + 70, 0, sequence)
    built.deliver("c3", 4_100, 0, 3, subscriber=3)
    return built.finish()


def found(*events: str, finding: str = "missing") -> pd.DataFrame:
    rows = [(finding, event, "c3", 3, "") for event in events]
    return pd.DataFrame(rows, columns=["finding", "event", "client", "subscriber", "explanation"])


def test_the_groups_say_where_ways_ended(run: Path) -> None:
    picture = found_picture(run, linked(run), found("0:0", "0:1", "0:2"))
    assert {group["where"]: group["count"] for group in picture["findings"]} == {
        "between b1 and b2: lost by the link": 1,
        "between b1 and b2: b1 did not send it": 1,
        "b3 had it and did not hand it to c3: b3 did not send it": 1,
    }
    assert picture["findings"][0]["command"] == f"murmur trace {run} 0:0"


def test_a_finding_whose_event_is_not_followed_says_what_explains_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_analysis.found_picture._EVENTS_FOLLOWED", 1)
    findings = found("0:0", "0:1", "0:2")
    findings["explanation"] = ["kill b1", "kill b2", ""]
    assert [group["where"] for group in found_picture(run, linked(run), findings)["findings"]] == [
        "between b1 and b2: lost by the link (explained: kill b1)", "explained: kill b2",
        "not followed: see analysis/findings.csv",
    ]  # fmt: skip


def test_a_way_has_its_hops_in_order_and_says_which_was_lost(run: Path) -> None:
    way = found_picture(run, linked(run), found("0:0"))["ways"]["0:0"]
    assert [(hop["from"], hop["to"], hop.get("lost")) for hop in way["hops"]] == [
        ("c0", "b0", None), ("b0", "b1", None), ("b1", "b2", "lost by the link"),
    ]  # fmt: skip
    assert way["t"] == 1_000


def test_many_ways_from_one_reading_are_the_ways_one_by_one(run: Path) -> None:
    ways = follow_all(run, [(0, 2), (0, 0), (0, 7)])
    assert set(ways) == {(0, 0), (0, 2)}
    for (source, sequence), way in ways.items():
        alone = follow(run, source, sequence)
        assert (way.attributes, way.published_us) == (alone.attributes, alone.published_us)
        assert [visit.node for visit in way.visits] == [visit.node for visit in alone.visits]


def test_a_file_that_was_just_being_opened_hides_no_way(run: Path) -> None:
    """Its writer was killed before it wrote a byte, or its header."""
    (run / "journal" / "b0-1-00000.seg").write_bytes(b"")
    (run / "journal" / "b0-1-00000.blob").write_bytes(bytes(4_096))
    assert [visit.node for visit in follow(run, 0, 0).visits] == ["c0", "b0", "b1"]


def linked(run: Path) -> RunManifest:
    manifest = read_manifest(run)
    clients = tuple((f"c{number}", f"b{number}") for number in range(4))
    return replace(manifest, links=(("b0", "b1"), ("b1", "b2"), ("b2", "b3"), *clients))
