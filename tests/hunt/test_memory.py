"""Memory that does not shrink: what a machine keeps when all is over is compared with what it kept at first."""

from collections import deque
from pathlib import Path
from typing import Any

import pytest
import yaml

from murmuration.hunt.memory import kept_by
from murmuration.hunt.symptoms import tried
from reliability.end_to_end.twin_disk import TwinDisk
from reliability.gryphon.parameters import GryphonParameters
from reliability.gryphon.subend import Subend
from routing.cells.tables import Table
from tests.hunt.properties_asked import Hoarding, Remembering, Restless
from tests.hunt.test_coverage import CHAIN


class Part:
    def __init__(self, *held: Any) -> None:
        self.held = list(held)


class Whole:
    remembers = ("lately",)

    def __init__(self) -> None:
        self.lately = [1, 2, 3]
        self.last: deque[int] = deque([1, 2], maxlen=2)
        self.name = "b0"
        self.by_peer = {"b1": {1: "x"}, "b2": {}}
        self.parts = {1: Part(1, 2), 2: Part(3)}
        self.first = self.parts[1]
        self.pair = (Part(4), 5)


def test_entries_are_counted_in_all_parts_once_but_for_what_is_bounded() -> None:
    assert kept_by(Whole()) == {("Whole", "by_peer"): 3, ("Whole", "parts"): 2, ("Part", "held"): 4}


LONG = {**CHAIN, "workload": {**CHAIN["workload"], "publications": 120}, "drain": {"limit": "2 s"}}
KILL = {"at": "200 ms", "kill": "b1", "for": "200 ms"}


@pytest.mark.parametrize(("protocol", "is_found"), [(Hoarding, True), (Remembering, False), (Restless, False)])
def test_a_protocol_that_keeps_every_event_is_found_unless_it_says_so(protocol: type, is_found: bool) -> None:
    path = f"{protocol.__module__}:{protocol.__name__}"
    keys = {**LONG, "broker": {"routing": "forwarding", "reliability": path}, "faults": [KILL]}
    symptom = tried(keys).symptom
    assert (symptom is not None and symptom.kind == "property: forgets what is over") is is_found
    if is_found:
        assert symptom is not None
        assert "entries in Hoarding.passed long after the last fault" in symptom.words


def test_what_is_made_of_subscriptions_to_pass_the_first_event_on_is_no_memory_that_grows() -> None:
    """Hunt of multipath/epidemic/varied, seed 59: 48 filters, of which a broker had no table before."""
    workload = {"kind": "zipf", "clients": 7, "publishers": 1, "publications": 1, "subscribers_per_actor": 12}
    parameters = {"multipath": {"covering": True}}
    broker = {"routing": "multipath", "reliability": "best_effort", "parameters": parameters}
    keys = {"overlay": {"kind": "chain", "brokers": 2}, "workload": workload, "broker": broker}
    assert tried({"runtime": "virtual", "datagrams": {"delay": "1 ms"}, **keys}).symptom is None


def test_covering_sets_made_after_a_link_went_are_no_memory_that_grows() -> None:
    """Hunt of multipath/end_to_end/varied, seed 623: a broker is killed before the first event."""
    workload = {
        "kind": "social",
        "users": 40,
        "mean_degree": 2,
        "users_at": "random",
        "clients_per_broker": 1,
        "posts": 3,
    }
    broker = {"routing": "multipath", "reliability": "end_to_end", "parameters": {"multipath": {"covering": True}}}
    keys = {
        "runtime": "virtual",
        "seed": 1388,
        "overlay": {"kind": "chain", "brokers": 4},
        "workload": {**workload, "rate_per_s": 40},
        "broker": broker,
        "links": {"delay": "2 ms"},
        "datagrams": {"delay": "1 ms"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "faults": [{"at": "0 ms", "kill": "b0", "for": "50 ms"}],
    }
    assert tried(keys).symptom is None


def test_the_copy_of_a_log_on_the_disk_is_no_memory_that_grows() -> None:
    """Schedule multipath/end_to_end/backups 2900699: 88 events before the first checkpoint."""
    disk = TwinDisk("b0")
    for token in range(60):
        disk.append(token, b"")
    assert not {place for place in kept_by(disk) if place[1] in ("log", "_needed")}


def test_the_incarnations_that_a_broker_has_heard_of_are_no_memory_that_grows() -> None:
    table = Table(0, heard={f"p{number}": 1 for number in range(60)})
    assert not kept_by(table)


@pytest.mark.parametrize("step", [0, 10])
def test_a_subend_without_messages_forgets_which_subscriptions_have_begun(step: int) -> None:
    subend = Subend(0, GryphonParameters())
    for version in range(100):
        subend.begin(version, step * version)
        subend.next = step * version
    assert sum(kept_by(subend).values()) <= 2
    assert subend.reach(1_000) == 99


def test_what_is_kept_for_clients_that_come_while_their_broker_is_away_is_no_growth() -> None:
    """A schedule of irbr_members/best_effort: they came and went by a trace, and their broker was dead at first."""
    schedule = yaml.safe_load((Path(__file__).parent / "late_clients.yaml").read_text())
    assert tried(schedule).symptom is None
