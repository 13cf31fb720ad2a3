"""Planted bugs of redundant publishers' brokers: random schedules find most, and runs of a few steps the others."""

from collections.abc import Callable

import pytest

from benchmarks.schedules import drawn
from murmur_pubsub.errors import InputError
from murmuration.harness.cluster import Cluster
from murmuration.hunt.trial import play_schedule
from spark_analysis.plain_judge import judge_run
from tests.protocols.durable.test_schedules import left
from tests.protocols.durable.test_whole import both_subscribe, publish
from tests.protocols.end_to_end.redundant_bugs import BUGS
from tests.protocols.end_to_end.test_redundant_ends_whole import TAKE_OVER, a_cluster, go

FIRST = 970_000
SHOWN_AFTER = {
    "what is on one disk counts": 3,
    "only the first broker is asked": 3,
    "a backup relays nothing": 3,
}
"""How many of the schedules with one backup, with seeds from FIRST on, it takes to find each of these."""


@pytest.mark.parametrize("which", ["backups", "crossed"])
def test_every_subscriber_gets_everything_once_and_in_order(which: str) -> None:
    for seed in range(FIRST, FIRST + 3):
        judgement = play_schedule(drawn(f"multipath/end_to_end/{which}", seed)).judgement
        assert judgement.numbers["verdict"] == "valid", f"--pair multipath/end_to_end/{which} --show {seed}"
        assert not any(left(judgement).values())


@pytest.mark.parametrize("name", SHOWN_AFTER)
def test_a_planted_bug_shows_in_random_schedules(name: str) -> None:
    seed = FIRST + SHOWN_AFTER[name] - 1
    planted = play_schedule(drawn(f"multipath/{BUGS[name]}/backups", seed)).judgement
    assert any(left(planted).values()), f"--pair multipath/{BUGS[name]}/backups --show {seed}"


def test_schedules_draw_lost_disks_and_clients_that_go_to_the_backup() -> None:
    entries = [entry for seed in range(60) for entry in drawn("multipath/end_to_end/backups", seed)["faults"]]
    assert {entry["kill"] for entry in entries if "disk" in entry} == {"b0", "b1"}
    assert "b1" in {entry["to"] for entry in entries if entry.get("move_client") == "c0"}
    with pytest.raises(InputError, match="found 'twice'; allowed: backups, crossed"):
        drawn("multipath/end_to_end/twice", 0)


def _both_are_apart(cluster: Cluster, first: str, second: str) -> None:
    """The publisher's client is at the first, which is cut off from all others, and then at the second, while the first
    still is. What the first had accepted would come too late."""
    cluster.faults.partition([first, "alice"])
    publish(cluster, 10, 10)
    cluster.advance(TAKE_OVER)
    cluster.faults.unite()
    go(cluster, "alice", first, second)
    cluster.faults.partition([first])
    publish(cluster, 20, 10)
    cluster.faults.unite()


def _backup_is_apart(cluster: Cluster) -> None:
    go(cluster, "alice", "b0", "b1")
    _both_are_apart(cluster, "b1", "b0")


def _host_is_apart(cluster: Cluster) -> None:
    _both_are_apart(cluster, "b0", "b1")


def _back_too_late(cluster: Cluster) -> None:
    """The backup is just back when the host dies, which was alone, and has what the backup lacks."""
    cluster.faults.disconnect("bob", "b4")
    cluster.faults.kill("b1")
    publish(cluster, 10, 50)
    cluster.faults.restart("b1")
    cluster.advance("20 ms")
    cluster.faults.kill("b0")
    cluster.advance(TAKE_OVER)
    cluster.faults.restart("b0")
    cluster.advance(TAKE_OVER)
    cluster.faults.connect("bob", "b4")


def _back_in_time(cluster: Cluster) -> None:
    """The backup is back for long when the host is lost for good."""
    cluster.faults.disconnect("bob", "b4")
    cluster.faults.kill("b1")
    publish(cluster, 10, 50)
    cluster.faults.restart("b1")
    cluster.advance("3 s")
    cluster.faults.kill("b0", disk_lost=True)
    go(cluster, "alice", "b0", "b1")
    cluster.advance(TAKE_OVER)
    cluster.faults.connect("bob", "b4")


DIRECTED: dict[str, Callable[[Cluster], None]] = {
    "a backup takes over unasked": _backup_is_apart,
    "a former host does not cease": _host_is_apart,
    "a backup that is behind takes over": _back_too_late,
    "a log is not shipped anew": _back_in_time,
}


@pytest.mark.parametrize("name", DIRECTED)
def test_a_planted_bug_shows_in_a_run_of_a_few_steps(name: str) -> None:
    for reliability, verdict in (("end_to_end", "valid"), (BUGS[name], "invalid")):
        with a_cluster(reliability=reliability) as cluster:
            both_subscribe(cluster)
            publish(cluster, 0, 10)
            DIRECTED[name](cluster)
            cluster.advance("3 s")
            cluster.drain()
            cluster.end()
            judgement = judge_run(cluster.folder)
        assert judgement.numbers["verdict"] == verdict, judgement.numbers["reason"]
        assert any(left(judgement).values()) == (verdict == "invalid")


def test_each_bug_is_shown() -> None:
    assert {*SHOWN_AFTER, *DIRECTED} == {*BUGS}
