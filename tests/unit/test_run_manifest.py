"""The manifest is written and read by one schema; what is wrong with one is named: file, key, found, allowed."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.measure import Measure
from murmur_pubsub.promise import Promise, Recovery, Survival
from murmur_pubsub.run_manifest import (
    ClusterEntry,
    DriverHost,
    FaultEntry,
    Gathered,
    HostEntry,
    Lateness,
    NodeEntry,
    OverlayEntry,
    RunManifest,
    read_manifest,
    write_manifest,
)
from spark_analysis import wording

NODES = (NodeEntry("b0", "broker"), NodeEntry("c0", "client", "b0"), NodeEntry("driver", "driver"))
FULL = RunManifest(
    name="small",
    runtime="virtual",
    seed=3,
    run="00",
    nodes=NODES,
    status="complete",
    version="0.1.0",
    time_dilation=2.0,
    scenario={"name": "small", "overlay": {"kind": "chain"}},
    scenario_file="/home/me/small.yaml",
    overlay=OverlayEntry(("b0", "b1"), (("b0", "b1"),)),
    links=(("b0", "b1"), ("c0", "b0")),
    actors=(("b0", "b1"),),
    lossy=True,
    workload={"publications": 5},
    message_kinds={16: "Forwarded"},
    datagram_kinds=(17, 18),
    measures=(Measure(1, "soft links", "level"),),
    withdrawal_grace_us=10,
    subscription_grace_us=11,
    recovery_limit_us=12,
    expect={"delivery_rate": 0.5, "unexplained": 3},
    promise=Promise("exactly_once", survives=Survival(brokers_away=1), recovers=Recovery(13, 14)),
    faults=(
        FaultEntry("kill b0 in its process", FaultKind.KILL, 1_000, ("b0",), in_process=True),
        FaultEntry("partition", FaultKind.PARTITION, groups=(("b0",), ("c0",))),
        FaultEntry(
            "change link b0-b1", FaultKind.CHANGE_LINK, nodes=("b0", "b1"), link=LinkSpec(Delay("uniform", 1, 5))
        ),
    ),
    writers={"run": 1},
    journal="s3://bucket/run",
    cluster=ClusterEntry("10.0.0.5:6379", (HostEntry("a", "10.0.0.5", None, 3, "/s", Gathered(4, "gone"), ("b0",)),)),
    journals_missing=("b0",),
    host=DriverHost(2, 8_000_000_000, "3.11.2", "Linux"),
    lateness=Lateness(100, 3, 41_000),
    wall_seconds={"publishing": 0.5},
    cpu_seconds={"publishing": 0.25},
    emulated_us=1_500_000,
)


def _run(folder: Path, **changes: Any) -> Path:
    """A run folder whose manifest has these keys changed."""
    (folder / "journal").mkdir()
    write_manifest(folder, dataclasses.replace(FULL, journal=None))
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def test_a_manifest_with_every_key_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert all(
        getattr(FULL, each.name) != each.default
        for each in dataclasses.fields(RunManifest)
        if each.default is not dataclasses.MISSING
    ), "every key has a value of its own here"
    write_manifest(tmp_path, FULL)
    assert read_manifest(tmp_path) == FULL


def test_a_manifest_resolves_names_numbers_and_what_is_away() -> None:
    assert FULL.numbers == {"b0": 0, "c0": 1, "driver": 2}
    assert FULL.homes == {"c0": "b0"}
    assert FULL.away == {"b0"}
    assert FULL.completeness == "incomplete"


def test_a_manifest_tells_what_a_second_of_a_core_brought() -> None:
    assert FULL.emulated_per_cpu_second == 6.0
    assert dataclasses.replace(FULL, cpu_seconds={}).emulated_per_cpu_second is None
    assert dataclasses.replace(FULL, emulated_us=None).emulated_per_cpu_second is None
    assert wording.emulated_words(FULL) == "1.50\u202fs, 6\u202fs in a second of a core"
    assert wording.emulated_words(dataclasses.replace(FULL, cpu_seconds={})) == "1.50\u202fs"


@pytest.mark.parametrize(
    ("changes", "key", "found"),
    [
        ({"format": "other"}, "format", "'other'"),
        ({"schema_version": 1}, "schema_version", "1"),
        ({"status": "lost"}, "status", "'lost'"),
        ({"seed": "x"}, "seed", "'x'"),
        ({"seed": True}, "seed", "True"),
        ({"run": "g"}, "run", "'g'"),
        ({"writers": None}, "writers", "nothing"),
        ({"writers": {"c0": "1"}}, "writers.c0", "'1'"),
        ({"nodes": {}}, "nodes", "{}"),
        ({"nodes": [{"name": "b0", "role": "king"}]}, "nodes[0].role", "'king'"),
        ({"nodes": [{"role": "broker"}]}, "nodes[0].name", "nothing"),
        ({"nodes": ["b0"]}, "nodes[0]", "'b0'"),
        ({"overlay": {"edges": [["b0"]]}}, "overlay.edges[0]", "['b0']"),
        ({"promise": {"delivery": "always"}}, "promise", "'always'"),
        ({"faults": [{"text": "kill", "kind": "MURDER"}]}, "faults[0].kind", "'MURDER'"),
        ({"faults": [{"text": "", "kind": "CUT", "link": {"loss": 7.0}}]}, "faults[0].link", "7.0"),
        ({"message_kinds": {"a": "b"}}, "message_kinds", "{'a': 'b'}"),
        ({"expect": {"delivery_rate": "all"}}, "expect.delivery_rate", "'all'"),
        ({"shoe_size": 43}, "shoe_size", "an unknown key"),
    ],
)
def test_a_manifest_with_a_wrong_key_names_it(tmp_path: Path, changes: dict[str, Any], key: str, found: str) -> None:
    with pytest.raises(InputError) as caught:
        read_manifest(_run(tmp_path, **changes))
    assert caught.value.place == f"{tmp_path / 'manifest.json'}, key {key}"
    assert caught.value.found == found
    assert caught.value.allowed


def test_a_folder_without_manifest_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a folder without manifest\.json"):
        read_manifest(tmp_path)
    with pytest.raises(InputError, match="no such folder; allowed"):
        read_manifest(tmp_path / "nowhere")
    (tmp_path / "latest").mkdir()
    with pytest.raises(InputError, match=r"no such folder \(did you mean '.*/latest'\?\); allowed"):
        read_manifest(tmp_path / "latst")


def test_a_manifest_that_is_no_json_is_refused(tmp_path: Path) -> None:
    _run(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "murm')
    with pytest.raises(InputError, match="no readable JSON"):
        read_manifest(tmp_path)


def test_a_folder_without_a_journal_is_no_run(tmp_path: Path) -> None:
    (_run(tmp_path) / "journal").rmdir()
    with pytest.raises(InputError, match="no folder journal/ in it"):
        read_manifest(tmp_path)


def test_what_broke_though_nobody_had_ordered_it_is_told_without_its_repairs() -> None:
    nodes = (NodeEntry("b0", "broker"), NodeEntry("driver", "driver"))
    faults = (
        FaultEntry("kill b0", FaultKind.KILL),
        FaultEntry("death of b0", FaultKind.KILL, by_itself=True),
        FaultEntry("return host 1", FaultKind.RETURN_HOST, by_itself=True),
        FaultEntry("restart b0", FaultKind.RESTART),
    )
    manifest = RunManifest("deaths", "ray", 1, "1", nodes, faults=faults)
    assert manifest.by_themselves == ["death of b0"]
    assert manifest.has_links, "one broker needs none"


@pytest.mark.parametrize(
    ("links", "has_links"),
    [((("b0", "b1"),), True), ((("c0", "b0"), ("b1", "b0")), True), ((("c0", "b0"), ("b1", "c0")), False), ((), False)],
    ids=["of brokers", "and of a client", "of clients only", "none"],
)
def test_a_client_s_link_is_none_between_brokers(links: tuple[tuple[str, str], ...], has_links: bool) -> None:
    nodes = (NodeEntry("b0", "broker"), NodeEntry("b1", "broker"), NodeEntry("c0", "client", "b0"))
    assert RunManifest("small", "ray", 1, "1", nodes, links=links).has_links == has_links
