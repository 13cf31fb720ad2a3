"""How many processes a live run's faults have ended: each once, and none that was not there."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import FaultStage
from murmur_pubsub.run_manifest import FaultEntry, RunManifest, read_manifest
from spark_analysis.fault_plan import kills_of, steps_of
from tests.spark.run_folder import RunFolder

KILL, RESTART = FaultKind.KILL, FaultKind.RESTART
LOSE_HOST, RETURN_HOST = FaultKind.LOSE_HOST, FaultKind.RETURN_HOST


class Happened(NamedTuple):
    """What the plan has, or what was seen; and when its rows are."""

    kind: FaultKind
    nodes: str
    ordered_us: int | None
    in_effect_us: int | None
    by_itself: bool = False
    in_process: bool = False


def kills(folder: Path, happened: Sequence[Happened], runtime: str = "ray") -> tuple[int, int]:
    entries = tuple(
        FaultEntry(
            str(each.kind), each.kind, each.ordered_us, tuple(each.nodes.split()), by_itself=each.by_itself,
            in_process=each.in_process,
        )
        for each in happened
    )  # fmt: skip
    manifest: RunManifest = read_manifest(RunFolder(folder / "run", brokers=3, clients=1).finish())
    manifest = replace(manifest, runtime=runtime, faults=entries)  # type: ignore[arg-type]
    stages = ((FaultStage.ORDERED, "ordered_us"), (FaultStage.IN_EFFECT, "in_effect_us"))
    times: dict[tuple[int, int], int] = {
        (number, stage): us
        for number, each in enumerate(happened)
        for stage, name in stages
        if (us := getattr(each, name)) is not None
    }
    return kills_of(manifest, steps_of(manifest, times, {}))


def test_kills_of_processes_are_told_from_those_inside_one(tmp_path: Path) -> None:
    happened = [
        Happened(KILL, "b0", 10, 11, in_process=True),
        Happened(FaultKind.KILL_ACTOR, "b0 b1", 20, 21),
    ]
    assert kills(tmp_path / "live", happened) == (1, 1)
    assert kills(tmp_path / "virtual", happened, "virtual") == (0, 0), "there are no processes"


def test_a_kill_of_a_node_that_had_died_by_itself_is_none(tmp_path: Path) -> None:
    happened = [
        Happened(KILL, "b0", 20, 21),
        Happened(RESTART, "b0", 30, 31),
        Happened(KILL, "b0", 5, 10, by_itself=True),
        Happened(KILL, "b0", 35, 40, by_itself=True),
    ]
    assert kills(tmp_path, happened) == (2, 0)


def test_of_a_death_that_its_own_kill_found_there_is_one(tmp_path: Path) -> None:
    assert kills(tmp_path, [Happened(KILL, "b0", 20, 25), Happened(KILL, "b0", 10, 22, by_itself=True)]) == (1, 0)


def test_who_dies_as_it_starts_was_there(tmp_path: Path) -> None:
    happened = [
        Happened(KILL, "b0", 10, 11),
        Happened(RESTART, "b0", 20, 30),
        Happened(KILL, "b0", 15, 25, by_itself=True),
    ]
    assert kills(tmp_path, happened) == (2, 0)


def test_a_kill_of_a_node_whose_start_waits_for_its_host_ends_no_process(tmp_path: Path) -> None:
    lost, back = Happened(LOSE_HOST, "b1 b2", 10, 12, by_itself=True), Happened(RETURN_HOST, "b2", 60, 62, True)
    waiting = [Happened(RESTART, "b1", 20, None), Happened(KILL, "b1", 30, 31)]
    assert kills(tmp_path / "for ever", [*waiting, lost, back]) == (1, 0)
    waiting = [waiting[0]._replace(in_effect_us=72), waiting[1]]
    started = [Happened(RESTART, "b1", 70, 72), Happened(KILL, "b1", 80, 81)]
    assert kills(tmp_path / "started later", [*waiting, *started, lost, back]) == (2, 0)
    waited = [Happened(RESTART, "b1", 20, 62), Happened(KILL, "b1", 70, 71)]
    assert kills(tmp_path / "started", [*waited, lost, back._replace(nodes="b1 b2")]) == (2, 0)


def test_what_was_not_seen_to_be_done_ended_nothing(tmp_path: Path) -> None:
    assert kills(tmp_path, [Happened(KILL, "b0", 10, 11), Happened(KILL, "b1", 20, None)]) == (1, 0)
