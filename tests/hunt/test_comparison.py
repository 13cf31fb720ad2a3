"""What the benchmarks of the hunt say: how much is left, the curves of long hunts, what a short one finds."""

from pathlib import Path

import pytest

from benchmarks.hunt import what_is_left
from benchmarks.hunt_curves import rows_of
from benchmarks.short_hunt import short_hunt
from murmuration.hunt.folder import HuntFolder
from tests.hunt.properties_asked import Restless


def test_what_is_left_counts_a_bug_that_was_not_hunted_as_one_like_the_others() -> None:
    done = {("slow", "plain", 0): {"cpu_s": 7_000.0}, ("quick", "plain", 0): {"cpu_s": 200.0}}
    assert what_is_left({}, ["slow"], ["plain", "guided"], 5) == "10 of 10 hunts left"
    assert what_is_left(done, ["slow", "quick"], ["plain"], 2) == "2 of 4 hunts left, about 2.0 CPU hours"
    assert what_is_left(done, ["slow", "quick", "new"], ["plain"], 1) == "1 of 3 hunts left, about 1.0 CPU hours"


def test_a_curve_has_the_places_that_each_part_of_the_schedules_had_reached(tmp_path: Path) -> None:
    folder = HuntFolder(tmp_path)
    folder.findings.mkdir()
    for number, places in enumerate((50, 80, 90, 94)):
        for pair, more in (("a/b", 0), ("c/d", 1_000)):
            known = {"at_s": 1.0, "schedules": 20, "refused": 0, "cpu_s": 1.0, "verdicts": {"valid": 20}}
            folder.add_chunk({"chunk": number, "pair": pair, **known, "places": places + more})
        folder.add_chunk({"chunk": number, "pair": "a/b", "at_s": 1.0, "lost": "its process died"})
    assert list(rows_of(folder)) == [
        ("a/b", "80", "50", "80", "90", "94", "0"),
        ("c/d", "80", "1,050", "1,080", "1,090", "1,094", "0"),
    ]


@pytest.mark.parametrize("wrong_without_it", [False, True])
def test_a_short_hunt_leaves_out_what_the_right_code_shows_too(
    wrong_without_it: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.short_hunt.is_wrong_without_it", lambda keys, root: wrong_without_it)
    *others, last = short_hunt([f"forwarding/{Restless.__module__}:Restless"], 10, Path.cwd())
    assert not any(others)
    assert ("waits for something long after the last fault" in last) is not wrong_without_it
