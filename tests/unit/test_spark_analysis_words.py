"""The parts of the analysis that need neither Spark nor a run: verdicts, words, layout, the look for Java."""

from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest

from murmur_page.graph_layout import positions
from murmur_pubsub.errors import InputError
from murmur_pubsub.promise import Promise
from murmur_pubsub.run_manifest import Lateness
from spark_analysis import wording
from spark_analysis.expectations import check_expectations, measured
from spark_analysis.metrics import BUCKETS_MAX, bucket_width_us
from spark_analysis.session import check_java
from spark_analysis.verdict import Facts, decide


@pytest.mark.parametrize(("late", "percentile"), [(0, None), (10, None), (11, 98), (32, 96), (990, 1), (1_000, 0)])
def test_delays_are_distrusted_from_the_percentile_on_at_which_actors_were_late(
    late: int, percentile: int | None
) -> None:
    lateness = Lateness(due=1_000, late=late, worst_us=41_000)
    assert lateness.sound_percentile == percentile
    if percentile is not None:
        said = wording.late_words(lateness)
        assert f"above p{percentile} are not to be trusted" in said
        assert "41\u202fms at worst" in said


def test_a_run_without_anything_due_was_not_late() -> None:
    assert Lateness().sound_percentile is None


RIGHT = {
    "missing": 0,
    "duplicate": 0,
    "spurious": 0,
    "out_of_order": 0,
    "misplaced": 0,
    "altered": 0,
    "required": 7,
    "delivered": 8,
    "published": 3,
}


@pytest.mark.parametrize(
    ("status", "changes", "outcome", "reason"),
    [
        ("complete", {}, "valid", "every required delivery"),
        ("complete", {"missing": 1}, "invalid", "missing"),
        ("complete", {"duplicate": 1}, "invalid", "1 deliveries were duplicates"),
        ("complete", {"altered": 2, "missing": 2}, "invalid", "2 deliveries were altered"),
        ("complete", {"misplaced": 3}, "invalid", "made by another node"),
        ("complete", {"missing": 7}, "invalid", "7 required deliveries are missing"),
        ("complete", {"required": 0}, "unknown", "no delivery was required"),
        ("complete", {"required": 0, "published": 0}, "unknown", "nothing was published"),
        ("complete", {"required": 0, "spurious": 1}, "invalid", "spurious"),
        ("interrupted", {}, "unknown", "cut short"),
        ("interrupted", {"missing": 1}, "unknown", "cut short"),
        ("running", {"out_of_order": 1}, "invalid", "out of order"),
    ],
)
def test_the_verdict_has_three_values(status: str, changes: dict[str, int], outcome: str, reason: str) -> None:
    decided = decide(Facts(status, RIGHT | changes))
    assert decided["verdict"] == outcome
    assert reason in str(decided["reason"])
    assert {name: decided[name] for name in RIGHT} == RIGHT | changes


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"missing": 3, "out_of_order": 2}, "valid"),
        ({"missing": 3, "duplicate": 1}, "invalid"),
        ({"out_of_order": 1, "spurious": 1}, "invalid"),
        ({"missing": 3, "required": 0}, "unknown"),
        ({"missing": 7}, "unknown"),
    ],
)
def test_what_is_promised_at_most_once_may_be_missing_or_late_but_not_doubled(
    changes: dict[str, int], outcome: str
) -> None:
    decided = decide(Facts("complete", RIGHT | changes, Promise("at_most_once", order="none")))
    assert decided["verdict"] == outcome
    assert decided["explained"] == 0
    if outcome == "valid":
        assert "3 missing and 2 out of order" in str(decided["reason"])


def test_the_reason_names_only_what_happened_and_first_what_weighs_most() -> None:
    decided = decide(Facts("complete", RIGHT | {"duplicate": 2, "altered": 1}))
    assert decided["finding"] == "altered"
    assert decided["reason"].index("altered") < decided["reason"].index("duplicates")
    assert "spurious" not in decided["reason"]
    assert "out of order" not in decided["reason"]


def test_what_is_promised_at_least_once_may_come_twice_but_not_be_missing() -> None:
    promise = Promise("at_least_once")
    assert decide(Facts("complete", RIGHT | {"duplicate": 4}, promise))["verdict"] == "valid"
    assert decide(Facts("complete", RIGHT | {"missing": 1}, promise))["verdict"] == "invalid"


@pytest.mark.parametrize(
    "wrong", [lambda: Promise("exactly-once"), lambda: Promise(order="causal"), lambda: Promise("best effort")]
)
def test_a_promise_that_is_misspelt_is_refused(wrong: Callable[[], Promise]) -> None:
    with pytest.raises(InputError, match=r"promise, (delivery|order): found .*allowed: "):
        wrong()


def test_durations_have_three_digits_and_a_fitting_unit() -> None:
    written = [wording.duration(time_us) for time_us in (0, 7, 14_000, 14_250, 2_500_000, 600e6, 30_000e6)]
    assert [each.replace("\u202f", " ") for each in written] == [
        "0 µs", "7 µs", "14 ms", "14.2 ms", "2.50 s", "10 min", "8.33 h",
    ]  # fmt: skip
    assert wording.duration(None) == "none"


def test_a_share_is_whole_only_when_it_is() -> None:
    written = [wording.share(part) for part in (1, 0.999999, 0.5, 0.000001, 0)]
    assert [each.replace("\u202f", " ") for each in written] == ["100 %", "99.99 %", "50.00 %", "0.01 %", "0 %"]


def test_sizes_are_decimal() -> None:
    assert [wording.size(each).replace("\u202f", " ") for each in (12, 1_234, 5e6)] == ["12 B", "1.23 kB", "5 MB"]


@pytest.mark.parametrize("length_us", [0, 1, 5_000, 119_999, 120_000, 3_600_000_000, 10**13])
def test_time_buckets_are_round_and_few(length_us: int) -> None:
    width_us = bucket_width_us(1_000, 1_000 + length_us)
    assert length_us // width_us < BUCKETS_MAX
    assert str(width_us).rstrip("0") in ("1", "2", "5")
    assert width_us >= 1_000


def test_a_tree_is_drawn_without_crossings() -> None:
    tree = nx.balanced_tree(3, 4)
    placed = positions(nx.relabel_nodes(tree, {node: f"b{node}" for node in tree}))
    edges = [(placed[f"b{a}"], placed[f"b{b}"]) for a, b in tree.edges]
    crossings = [
        (first, second)
        for number, first in enumerate(edges)
        for second in edges[:number]
        if not set(first) & set(second) and _cross(*first, *second)
    ]
    assert crossings == []


def test_a_graph_with_cycles_is_drawn_the_same_every_time() -> None:
    ring = nx.relabel_nodes(nx.cycle_graph(9), {node: f"b{node}" for node in range(9)})
    assert positions(ring) == positions(ring)
    assert len(set(positions(ring).values())) == 9


def _cross(*ends: tuple[float, float]) -> bool:
    a, b, c, d = ends

    def side(p: tuple[float, float], q: tuple[float, float], r: tuple[float, float]) -> bool:
        return (q[0] - p[0]) * (r[1] - p[1]) > (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) != side(a, b, d) and side(c, d, a) != side(c, d, b)


def _java_that_says(folder: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = folder / "bin" / "java"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    command.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.1-ea", "25"])
def test_java_17_and_later_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    _java_that_says(tmp_path, version, monkeypatch)
    assert check_java().startswith(version)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16"])
def test_an_older_java_is_refused_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    _java_that_says(tmp_path, version, monkeypatch)
    with pytest.raises(InputError, match="apt-get install openjdk") as caught:
        check_java()
    assert version in caught.value.found
    assert "--plain" in caught.value.allowed


def test_no_java_is_refused_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="no java command"):
        check_java()


@pytest.mark.parametrize(
    ("key", "found", "told", "is_met"),
    [
        ("delay_p99_us", 1_000, "1\u202fms", True),
        ("delay_p99_us", 1_001, "1.00\u202fms", False),
        ("delay_p99_us", None, "none", False),
        ("recovery_us", None, "none", True),
    ],
)
def test_an_expectation_says_what_was_measured_if_anything_was(
    key: str, found: float | None, told: str, is_met: bool
) -> None:
    (expectation,) = check_expectations({key: 1_000}, {key: found})
    assert (expectation.measured, expectation.met) == (told, is_met)


def test_unexplained_are_the_findings_that_nothing_explains() -> None:
    counts = RIGHT | {"missing": 5, "duplicate": 2}
    assert measured(counts, {"missing": 4}, None, None)["unexplained"] == 3
