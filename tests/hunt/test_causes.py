"""Findings are told apart by how their schedules show, in words without names and times, and by sorts of faults."""

from pathlib import Path
from typing import Any

import pytest

from murmuration.hunt.chunk import Found
from murmuration.hunt.fault_draws import DrawnFault
from murmuration.hunt.findings import FindingStore, cause_of
from murmuration.hunt.present import whole_scenario
from murmuration.hunt.schedule import Schedule
from murmuration.hunt.showing import how_it_shows
from murmuration.hunt.shrink import Shrunk
from murmuration.hunt.symptoms import Symptom, tried
from tests.hunt.hunting import HASTY
from tests.hunt.test_coverage import CHAIN
from tests.hunt.test_why import LOSSY

KILL = {"at": "200 ms", "kill": "b1", "for": "200 ms"}
CUT = {"at": "200 ms", "cut": ["b1", "b2"], "for": "200 ms"}
DELAY = {"at": "200 ms", "link": ["b1", "b2"], "delay": "30 ms", "for": "200 ms"}
RESTLESS = Symptom("property: comes to rest", "comes to rest, eventually: b1 waits, 3.2 s into the run")


def test_where_the_way_of_a_missing_event_ended_is_told_by_roles() -> None:
    keys = {**LOSSY, "seed": 2, "broker": {"routing": "cells", "reliability": HASTY}}
    symptom = tried(keys).symptom
    assert symptom is not None
    assert symptom.kind == "missing"
    assert how_it_shows(keys, symptom) == "between a broker and a broker: lost by the link"


def test_what_a_property_says_is_told_without_names_and_times() -> None:
    assert how_it_shows({**CHAIN, "faults": []}, RESTLESS) == "comes to rest, eventually: # waits, # s into the run"


def added(store: FindingStore, symptom: Symptom, *faults: dict[str, Any], pair: str = "forwarding/best_effort") -> int:
    """How many findings there are with it."""
    keys = {**CHAIN, "faults": [*faults]}
    schedule = Schedule(CHAIN, (DrawnFault(200, "kill", 1, 200),))
    store.add(pair, Found(schedule, keys, symptom, 0), Shrunk(schedule, keys, symptom, 1, 0.1), "0")
    return len(store.all)


def test_one_cause_is_one_finding_by_whatever_kind_of_fault_it_shows(tmp_path: Path) -> None:
    store = FindingStore(tmp_path)
    assert [added(store, RESTLESS, fault) for fault in (KILL, CUT, DELAY)] == [1, 1, 2]
    assert added(store, RESTLESS) == 3, "without any fault"
    assert added(store, Symptom(RESTLESS.kind, "comes to rest, eventually: b1 is dizzy"), KILL) == 4
    again = FindingStore(tmp_path)
    again.read()
    assert [(each.cause, each.record["schedules"]) for each in again.all] == [
        (each.cause, each.record["schedules"]) for each in store.all
    ]
    assert added(again, RESTLESS, CUT) == 4


def test_two_pairs_with_one_symptom_are_two_findings(tmp_path: Path) -> None:
    store = FindingStore(tmp_path)
    assert [added(store, RESTLESS, KILL, pair=pair) for pair in ("forwarding/epidemic", "cells/epidemic")] == [1, 2]
    assert not store.count("irbr/epidemic", RESTLESS.kind, "0/0/1")
    assert store.count("cells/epidemic", RESTLESS.kind, "0/0/2")
    assert [each.record["schedules"] for each in store.all] == [1, 2]


@pytest.mark.parametrize(("faults", "sorts"), [([], ()), ([DELAY, KILL, CUT], ("changes a link", "takes away"))])
def test_sorts_of_faults(faults: list[dict[str, Any]], sorts: tuple[str, ...]) -> None:
    assert cause_of({**CHAIN, "faults": faults}, RESTLESS).faults == sorts


def test_links_that_lose_all_the_time_are_of_one_sort_with_a_link_that_begins_to() -> None:
    lossy = {"at": "200 ms", "link": ["b1", "b2"], "loss": 0.5, "for": "200 ms"}
    assert cause_of({**LOSSY, "faults": []}, RESTLESS) == cause_of({**CHAIN, "faults": [lossy]}, RESTLESS)


def test_what_is_written_is_judged_by_the_limit_of_the_hunt_which_is_longer_where_links_lose() -> None:
    limits = [whole_scenario({**keys, "faults": []})["recovery_limit"] for keys in (CHAIN, LOSSY)]
    assert limits == ["30 s", "5 min"]
