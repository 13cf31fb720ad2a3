"""What the judge excuses where another broker stands in for that of the publishers: a second loss, and little else."""

import dataclasses

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.promise import RedundantEnd
from spark_analysis.changing_overlay import OverlayAt
from spark_analysis.connections import Away
from spark_analysis.durable_connections import DurableConnections
from spark_analysis.excuses import Case
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window
from spark_analysis.passages import Passage
from spark_analysis.redundant_ends import able_to_serve, touches
from spark_analysis.stays import Stay

END = RedundantEnd("b0", "b1", "b2", 2_000_000, 1_000)
LINKS = (("c0", "b0"), ("b0", "b1"), ("b1", "b2"), ("b2", "b3"), ("b0", "b2"), ("b3", "c1"))
HOMES = {"c0": "b0", "c1": "b3"}
END_US = 60_000_000
STAYS = {client: [Stay(home, 0, NEVER_US)] for client, home in HOMES.items()}
AT_BACKUP = {**STAYS, "c0": [Stay("b0", 0, 12_000_000), Stay("b1", 12_000_000, NEVER_US)]}
JUDGE = DurableConnections(
    {}, (), HOMES, 30_000_000, [OverlayAt(0, LINKS, True)], False, True, END_US, STAYS, redundant=(END,)
)
MISSING = Case("missing", "c0", "c1", published_us=5_000_000)
LATE = MISSING._replace(published_us=9_500_000)
AWAY = {"c0": [Away(10_000_000, NEVER_US)]}


def kill(name: str, from_us: int, until_us: int = NEVER_US, disk_lost: bool = False) -> Window:
    step = FaultStep(0, FaultKind.KILL, f"kill {name}", (name,), disk_lost=disk_lost)
    absorbed_us = from_us + 1_000_000
    return Window(step, from_us, from_us, until_us, until_us, frozenset({name}), absorbed_us=absorbed_us)


def partition(*groups: str, from_us: int = 10_000_000) -> Window:
    sides = tuple(tuple(group.split()) for group in groups)
    step = FaultStep(0, FaultKind.PARTITION, "a partition", (), sides)
    group = {name: number for number, side in enumerate(sides) for name in side}
    crossing = frozenset(frozenset(ends) for ends in LINKS if group.get(ends[0]) != group.get(ends[1]))
    return Window(step, from_us, from_us, NEVER_US, NEVER_US, links=crossing)


def ended(window: Window, until_us: int) -> Window:
    return dataclasses.replace(window, undone_us=until_us, until_us=until_us)


LOST = kill("b0", 10_000_000)
BOTH_DISKS = [kill(name, 10_000_000, 12_000_000, disk_lost=True) for name in ("b0", "b1")]
"""Whole again at 14 s."""
CASES = {
    "the host is lost for good, and the client is at the backup": ({"windows": [LOST], "stays": AT_BACKUP}, LATE, None),
    "and so is its disk": (
        {"windows": [kill("b0", 10_000_000, disk_lost=True)], "stays": AT_BACKUP}, LATE, None,
    ),
    "it is lost, and the client goes nowhere": ({"windows": [LOST], "away": AWAY}, MISSING, None),
    "the same, and the event was published just before": (
        {"windows": [LOST], "away": AWAY}, LATE, "c0 was not connected to b0 again",
    ),
    "the same, and a fault may have kept it from being accepted": (
        {"windows": [kill("b1", 4_000_000, 6_000_000), LOST], "away": AWAY},
        MISSING, "c0 was not connected to b0 again",
    ),
    "the same, and a fault before the event had been mended just then": (
        {"windows": [kill("b1", 1_000_000, 3_000_000), LOST], "away": AWAY},
        MISSING, "c0 was not connected to b0 again",
    ),
    "the same, and it had been mended before": (
        {"windows": [kill("b1", 1_000_000, 2_999_999), LOST], "away": AWAY}, MISSING, None,
    ),
    "the same, and so many may have waited that none was accepted": (
        {"windows": [LOST], "away": AWAY, "published_us": range(5_000_000, 6_000_000, 1_000)},
        MISSING, "c0 was not connected to b0 again",
    ),
    "the same where links lose messages": (
        {"windows": [LOST], "away": AWAY, "lossy": True}, MISSING, "c0 was not connected to b0 again",
    ),
    "its disk is lost and it is back": (
        {"windows": [kill("b0", 10_000_000, 12_000_000, disk_lost=True)]}, MISSING, None,
    ),
    "it was killed again and again": (
        {"windows": [kill("b0", 10_000_000, 12_000_000), kill("b1", 11_000_000, 12_000_000)]}, MISSING, None,
    ),
    "the backup is lost": ({"windows": [kill("b1", 10_000_000, disk_lost=True)]}, MISSING, None),
    "the witness is lost": ({"windows": [kill("b2", 10_000_000, disk_lost=True)], "stays": STAYS,
                             "overlays": [OverlayAt(0, (*LINKS, ("b0", "b3")), True)]}, MISSING, None),
    "both are lost": ({"windows": [LOST, kill("b1", 40_000_000)]}, MISSING, "kill b0: before the others of b0, b1, b2"),
    "both lose their disks, and the event is published when they are whole": (
        {"windows": BOTH_DISKS}, MISSING._replace(published_us=14_100_000), None,
    ),
    "the same, and the subscriber is away then": (
        {"windows": BOTH_DISKS, "away": {"c1": [Away(11_000_000, 15_000_000)]}},
        MISSING._replace(published_us=14_100_000), "kill b0: before the others of b0, b1, b2",
    ),
    "the same, and it was back some time ago": (
        {"windows": BOTH_DISKS, "away": {"c1": [Away(11_000_000, 15_000_000)]}, "told_again_us": 2_000_000},
        MISSING._replace(published_us=17_000_001), None,
    ),
    "the same, and its broker was cut off from theirs meanwhile": (
        {"windows": [*BOTH_DISKS, ended(partition("b3 c1", "b0 b1 b2 c0"), 15_000_000)]},
        MISSING._replace(published_us=14_100_000), "kill b0: before the others of b0, b1, b2",
    ),
    "the same, and its broker was cut off later": (
        {"windows": [*BOTH_DISKS, ended(partition("b3 c1", "b0 b1 b2 c0", from_us=14_050_000), 16_000_000)]},
        MISSING._replace(published_us=14_100_000), None,
    ),
    "the same, and one of theirs dies for good soon after that": (
        {"windows": [*BOTH_DISKS, kill("b1", 14_050_000)], "told_again_us": 100_000},
        MISSING._replace(published_us=16_300_000), None,
    ),
    "the same, and one may still have to be told": (
        {"windows": BOTH_DISKS, "told_again_us": 200_000},
        MISSING._replace(published_us=14_100_000), "kill b0: before the others of b0, b1, b2",
    ),
    "both lose their disks, one long after the other": (
        {"windows": [kill("b0", 10_000_000, 11_000_000, True), kill("b1", 20_000_000, 21_000_000, True)]},
        MISSING, None,
    ),
    "both lose their disks, one just after the other": (
        {"windows": [kill("b0", 10_000_000, 11_000_000, True), kill("b1", 12_000_000, 13_000_000, True)]},
        MISSING, "kill b0: before the others",
    ),
    "both lose their disks, and the event was published long after": (
        {"windows": [kill("b0", 10_000_000, 11_000_000, True), kill("b1", 12_000_000, 13_000_000, True)]},
        MISSING._replace(published_us=15_000_001), None,
    ),
    "both lose their disks, and the event had been overtaken before": (
        {"windows": [kill("b0", 10_000_000, 11_000_000, True), kill("b1", 12_000_000, 13_000_000, True)]},
        MISSING._replace(overtaken_us=9_999_999), None,
    ),
    "it is lost for good, and the other one loses its disk": (
        {"windows": [LOST, kill("b1", 40_000_000, 41_000_000, True)]}, MISSING, "kill b0: before the others",
    ),
    "the witness has lost its disk, and was told again": (
        {"windows": [kill("b2", 1_000_000, 2_000_000, True), kill("b0", 40_000_000, 41_000_000)]}, MISSING, None,
    ),
    "it is lost when the backup is just back": (
        {"windows": [kill("b1", 7_000_000, 9_000_000), LOST]}, MISSING, "kill b0: before the others",
    ),
    "it is lost when the backup is just taken for back": (
        {"windows": [kill("b1", 7_000_000, 8_000_000), LOST]}, MISSING, "kill b0: before the others",
    ),
    "it is lost when that is over": (
        {"windows": [kill("b1", 7_000_000, 7_999_999), LOST], "stays": AT_BACKUP}, MISSING, None,
    ),
    "it is lost when the backup has been back for long": (
        {"windows": [kill("b1", 2_000_000, 3_000_000), LOST], "stays": AT_BACKUP}, MISSING, None,
    ),
    "the witness dies before the backup has taken over": (
        {"windows": [LOST, kill("b2", 12_000_000, 14_000_000)]}, MISSING, "before the others",
    ),
    "the witness dies when it has": (
        {"windows": [LOST, kill("b2", 20_000_000, 22_000_000)], "stays": AT_BACKUP}, MISSING, None,
    ),
    "the host is lost after the witness": (
        {"windows": [kill("b2", 1_000_000), kill("b0", 40_000_000, 41_000_000)]}, MISSING, "kill b2: before the others",
    ),
    "at the end the host is cut off from all": (
        {"windows": [partition("b0 c0", "b1 b2 b3 c1")]}, MISSING, None,
    ),
    "the same, and the event was published then": (
        {"windows": [partition("b0 c0", "b1 b2 b3 c1")]},
        MISSING._replace(published_us=11_000_000), "may not have been accepted",
    ),
    "at the end the subscriber is with neither": (
        {"windows": [partition("b0 b1 b2 c0", "b3 c1")]}, MISSING, "a partition: no path was left when the run ended",
    ),
    "at the end all three are apart": (
        {"windows": [partition("b0 c0", "b1", "b2 b3 c1")]}, MISSING, "no path was left when the run ended",
    ),
    "a copy": ({"windows": [LOST]}, MISSING._replace(finding="duplicate", delivered_us=6_000_000), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_lost_publishers_broker_is_excused_only_by_what_two_losses_may_cost(name: str) -> None:
    changes, case, told = CASES[name]
    excuse = dataclasses.replace(JUDGE, **changes).explain(case, Passage({}, {}))  # type: ignore[arg-type]
    assert (excuse is None) == (told is None), excuse
    assert excuse is None or str(told) in excuse.text


@pytest.mark.parametrize("finding", ["missing", "duplicate", "out_of_order"])
def test_without_a_backup_a_lost_disk_excuses_what_was_published_there(finding: str) -> None:
    wiped = kill("b0", 10_000_000, 12_000_000, disk_lost=True)
    alone = dataclasses.replace(JUDGE, redundant=(), windows=[wiped])
    case = MISSING._replace(finding=finding, delivered_us=None if finding == "missing" else 6_000_000)
    excuse = alone.explain(case, Passage({}, {}))
    assert excuse is not None
    assert "with what it had accepted" in excuse.text
    elsewhere = kill("b2", 10_000_000, 12_000_000, disk_lost=True)
    assert dataclasses.replace(alone, windows=[elsewhere]).explain(case, Passage({}, {})) is None
    assert alone.explain(case._replace(published_us=12_000_001), Passage({}, {})) is None
    overtaken = alone.explain(case._replace(overtaken_us=9_999_999), Passage({}, {}))
    assert (overtaken is None) == (finding == "missing")


def test_a_fault_is_about_the_three_if_it_hits_one_or_parts_two() -> None:
    assert touches(kill("b2", 0), END)
    assert not touches(kill("b3", 0), END)
    assert touches(partition("b0 b2", "b1"), END)
    assert not touches(partition("b0 b1 b2", "b3"), END)


def test_one_may_serve_with_one_more_of_the_three() -> None:
    assert able_to_serve(END, []) == ["b0", "b1"]
    assert able_to_serve(END, [kill("b2", 0)]) == ["b0", "b1"]
    assert able_to_serve(END, [kill("b0", 0)]) == ["b1"]
    assert able_to_serve(END, [partition("b0 b2", "b1")]) == ["b0"]
    assert able_to_serve(END, [kill("b0", 0), kill("b2", 0)]) == []
