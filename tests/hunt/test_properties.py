"""Properties beside the verdict: always, sometimes, eventually; a protocol that never rests is found by one."""

from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmuration.commands.main import application
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.properties import Property
from murmuration.hunt.symptoms import Symptom, tried
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
    assert "waits for something though nothing is broken any more" in hunted.found.all[0].words
    assert "properties=()" in (hunted.found.all[0].folder / "test_finding.py").read_text()


RESTLESS = {"routing": "forwarding", "reliability": f"{ASKED}:Restless"}


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
