"""Properties beside the verdict: always, sometimes, eventually; a protocol that never rests is found by one."""

from pathlib import Path
from typing import Any, NoReturn

import pytest

from murmur_pubsub.errors import InputError
from murmuration.commands.main import application
from murmuration.hunt import symptoms
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.coverage import FaultsInForce, ImpatientRun, ObservedRun, Reached
from murmuration.hunt.properties import Property
from murmuration.hunt.symptoms import Symptom, tried, tried_impatiently
from murmuration.hunt.trial import deployment_of
from tests.hunt.hunting import here, hunt, silent
from tests.hunt.test_coverage import CHAIN

KILL_B1 = {"at": "200 ms", "kill": "b1", "for": "200 ms"}
KILL_B2 = {"at": "250 ms", "kill": "b2", "for": "200 ms"}
ASKED = "tests.hunt.properties_asked"


def symptom(asked: str, *faults: dict[str, Any]) -> Symptom | None:
    return tried({**CHAIN, "faults": [*faults]}, [f"{ASKED}:{asked}"]).symptom


def test_always_is_asked_at_every_look() -> None:
    assert symptom("B1_IS_THERE", KILL_B2) is None
    found = symptom("B1_IS_THERE", KILL_B1)
    assert found is not None
    assert found.kind == "property: b1 is there"
    assert "always: b1 is away" in found.words


def test_eventually_is_asked_after_the_last_fault_and_not_where_one_is_for_good() -> None:
    assert symptom("B1_IS_BACK", KILL_B1) is None
    assert symptom("B1_IS_BACK", {"at": "200 ms", "kill": "b1"}) is None


def test_sometimes_is_a_place_that_is_reached_or_not(tmp_path: Path) -> None:
    paths = [f"{ASKED}:BOTH_DOWN", f"{ASKED}:NEVER"]
    met = tried({**CHAIN, "faults": [KILL_B1, KILL_B2]}, paths)
    assert met.symptom is None
    assert {place for place in met.reached.places() if place.startswith("sometimes")} == {
        "sometimes b1 and b2 are away"
    }
    alone = tried({**CHAIN, "faults": [KILL_B1]}, paths).reached.places()
    assert not {place for place in alone if place.startswith("sometimes")}


def test_a_protocol_that_never_comes_to_rest_is_found(tmp_path: Path) -> None:
    quarry = Quarry(
        "forwarding", f"{ASKED}:Restless", scenario={**CHAIN, "broker": RESTLESS, "drain": {"limit": "2 s"}}
    )
    hunted = hunt(tmp_path, 20, quarry)
    hunted.run(here, silent)
    assert [finding.kind for finding in hunted.found.all] == ["property: comes to rest"]
    assert "waits for something long after the last fault" in hunted.found.all[0].words
    assert "properties=()" in (hunted.found.all[0].folder / "test_finding.py").read_text()


RESTLESS = {"routing": "forwarding", "reliability": f"{ASKED}:Restless"}


LOSSY = {"at": "100 ms", "link": ["b2", "b3"], "loss": 0.1}
ORDER = {"at": "900 ms", "coordinator": "b0"}


@pytest.mark.parametrize("faults", [[{"at": "200 ms", "kill": "b1"}], [LOSSY, KILL_B1], [KILL_B1, ORDER]])
def test_a_protocol_comes_to_rest_whatever_stays_broken(faults: list[dict[str, Any]]) -> None:
    broker = {**RESTLESS, "routing": "multipath" if ORDER in faults else "forwarding"}
    more = {"broker": broker, "datagrams": {"delay": "1 ms"}, "drain": {"limit": "2 s"}, "faults": faults}
    seen = tried({**CHAIN, **more})
    assert seen.symptom is not None
    assert seen.symptom.kind == "property: comes to rest"


def test_who_is_away_for_good_is_waited_for_by_who_owes_it_something(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = {"routing": "forwarding", "reliability": "end_to_end"}
    gone = {"at": "200 ms", "kill": "b1"}
    scenario = {**CHAIN, "broker": broker, "datagrams": {"delay": "1 ms"}, "drain": {"limit": "9 s"}, "faults": [gone]}
    assert tried(scenario).symptom is None
    monkeypatch.setattr(FaultsInForce, "any_away", False)
    found = tried(scenario).symptom
    assert found is not None
    assert found.kind == "property: comes to rest"


JOINING = {
    "runtime": "virtual",
    "overlay": {"kind": "cells", "cells": {"p": ["p0"], "m": ["m0"]}, "links": [["p", "m"]]},
    "workload": {"kind": "zipf", "clients": 1, "publishers": 1, "publications": 20, "rate_per_s": 20},
    "broker": {"routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"pubends": {"p0": 1}}}},
    "links": {"delay": "2 ms"},
    "newcomers": ["n0"],
    "last_mile": "broker",
}
JOIN_N0 = {"at": "350 ms", "join": "n0", "cell": "m"}


@pytest.mark.parametrize(("killed_at", "lost"), [("350 ms", True), ("500 ms", False)])
def test_who_died_before_an_order_was_carried_out_is_not_told_again(
    killed_at: str, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newcomer that has stored nothing yet stays outside, and what it has subscribed to is never in effect."""
    subscribed = {"at": "350 ms", "subscribe": "n0", "filter": "a0 >= 0.2"}
    faults = [JOIN_N0, subscribed, {"at": killed_at, "kill": "n0", "for": "50 ms"}]
    scenario = {**JOINING, "drain": {"limit": "20 s"}, "faults": faults}
    assert tried(scenario).symptom is None
    monkeypatch.setattr(ObservedRun, "_lost_order", property(lambda run: False, lambda run, lost: None), raising=False)
    found = tried(scenario).symptom
    assert (found is not None and found.kind == "property: comes to rest") == lost


@pytest.mark.parametrize(
    ("path", "told"),
    [("tests.hunt.properties_asked:Restless", "a murmuration.hunt.properties.Property"), ("nothing", "a dotted path")],
)
def test_what_is_no_property_is_told(tmp_path: Path, path: str, told: str) -> None:
    arguments = ["hunt", "parity", "--schedules", "1", "--property", path, "--out", str(tmp_path / "hunt")]
    with pytest.raises(InputError, match=told):
        application(arguments, standalone_mode=False)
    with pytest.raises(InputError, match="always, sometimes or eventually"):
        Property("odd", "often", lambda sight: None)  # type: ignore[arg-type]


TOTAL = {"routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"order": "total"}}}


@pytest.mark.parametrize(("make", "least_s"), [(ObservedRun, 300), (ImpatientRun, 30)])
def test_what_stays_broken_is_waited_for_no_longer_than_anything_can_still_come(
    tmp_path: Path, make: type[ObservedRun], least_s: int
) -> None:
    """In a total order all wait for a publishers' broker, and ask it again and again."""
    lasting_s = []
    for number, kill in enumerate(({"kill": "b1"}, {"kill": "b1", "for": "200 ms"})):
        keys = {**CHAIN, "broker": TOTAL, "faults": [{"at": "200 ms", **kill}], "drain": {"limit": "300 s"}}
        folder = tmp_path / str(number)
        folder.mkdir()
        run = make(Reached(), (), deployment_of(keys), folder, lambda *_: None)
        run.play()
        lasting_s.append(run.runtime.now_us // 1_000_000)
    assert least_s <= lasting_s[0] < least_s + 5
    assert lasting_s[1] < 10


def test_what_is_wrong_when_a_run_was_ended_is_played_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried_impatiently({**CHAIN, "faults": [KILL_B1]}).symptom is None

    def wrong(*_: Any) -> NoReturn:
        raise AssertionError("too early")

    monkeypatch.setattr(symptoms, "ImpatientRun", wrong)
    assert symptoms.tried_run(deployment_of(CHAIN), wrong).symptom is not None
    played = tried_impatiently({**CHAIN, "faults": [KILL_B1]})
    assert (played.verdict, played.symptom) == ("valid", None)
