"""Journals that are no damage and seldom come: without a row, at a URI, with files or events that were only begun."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import murmuration
from murmur_pubsub.event import Event
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import FaultStage, Phase, RowKind, SideKind
from murmur_pubsub.journal_format import HEADER_BYTES
from murmur_pubsub.journal_rows import read_rows
from murmur_pubsub.run_manifest import FaultEntry, read_manifest, write_manifest
from murmuration.results.verdict import judge_for
from spark_analysis.key_figures import judge_and_measure
from spark_analysis.plain_judge import judge_run
from tests.spark.run_folder import RunFolder

DIED = FaultEntry("kill c0", FaultKind.KILL, 1_000_000, ("c0",))


def one_delivery(folder: Path) -> RunFolder:
    """c0 publishes one event, and c1 gets it."""
    run = RunFolder(folder)
    run.phase(0, Phase.PUBLISHING)
    run.subscribe("c1", 0, 1, "x > 0")
    run.settled(1, 0)
    run.publish("c0", 100, 0, 0, {"x": 1})
    run.deliver("c1", 105, 0, 0, 1)
    return run


def cut_short_at_once(folder: Path) -> Path:
    """Nothing was written."""
    return RunFolder(folder).finish("interrupted", close=False)


def complete_and_empty(folder: Path) -> Path:
    """The same, and all writers closed their files."""
    return RunFolder(folder).finish()


def at_a_uri(folder: Path) -> Path:
    """The journal was moved to a store."""
    run = one_delivery(folder).finish()
    store = folder.with_name("store")
    write_manifest(run, replace(read_manifest(run), journal=f"file://{store}"))
    shutil.move(run / "journal", store)
    return run


def just_opening(ending: str, content: bytes) -> Callable[[Path], Path]:
    """A run that was cut short while b0 opened its next segment, or its first side file."""

    def build(folder: Path) -> Path:
        run = one_delivery(folder).finish("interrupted", close=False)
        (run / "journal" / f"b0-0-0000{int(ending == 'seg')}.{ending}").write_bytes(content)
        return run

    return build


def died_before_it_was_out(events: int, killed: bool = True) -> Callable[[Path], Path]:
    """c0 dies as it publishes the last of these events: its attributes are written, and its row is not. Its subscriber
    of its own and that of c1 want them all."""

    def build(folder: Path) -> Path:
        run = RunFolder(folder)
        run.phase(0, Phase.PUBLISHING)
        for subscriber, client in enumerate(("c0", "c1")):
            run.subscribe(client, 0, subscriber, "x > 0")
        run.settled(1_000, 900)
        publish(run, "c1", "b1", 1_000_000, 1, 0)
        for number in range(events - 1):
            publish(run, "c0", "b0", 1_000_000 + number * 100_000, 0, number)
        died_us = 1_000_000 + events * 100_000
        run.writers["c0"].side(SideKind.EVENT, Event(0, events - 1, died_us, {"x": 1}).to_wire())
        for stage in (FaultStage.ORDERED, FaultStage.IN_EFFECT) if killed else ():
            run.row("driver", died_us + 10 + stage, RowKind.FAULT, sequence=0, hops=int(stage))
        run.phase(60_000_000, Phase.STOPPED)
        finished = run.finish("complete" if killed else "interrupted", close=killed)
        if killed:
            write_manifest(finished, replace(read_manifest(finished), faults=(DIED,)))
        return finished

    return build


def publish(run: RunFolder, client: str, home: str, time_us: int, source: int, number: int) -> None:
    """A publication with its way to both clients."""
    other = {"b0": "b1", "b1": "b0"}[home]
    run.publish(client, time_us, source, number, {"x": 1})
    hops = [(client, home), (home, other), (home, client), (other, {"b0": "c0", "b1": "c1"}[other])]
    for place, (sender, receiver) in enumerate(hops):
        run.hop(sender, receiver, time_us + 2 * place, time_us + 2 * place + 1, source, number)
    for subscriber, reader in enumerate(("c0", "c1")):
        run.deliver(reader, time_us + 10, source, number, subscriber)


JUST_OPENED = [("seg", 0), ("seg", HEADER_BYTES), ("seg", 4_096), ("blob", 0), ("blob", 4_096)]
ODD: dict[str, Callable[[Path], Path]] = {
    "cut short before the first row": cut_short_at_once,
    "complete without a row": complete_and_empty,
    "at a URI": at_a_uri,
    **{f"just opening {size} bytes of a {ending}": just_opening(ending, bytes(size)) for ending, size in JUST_OPENED},
    "died with its first event": died_before_it_was_out(1),
    "died with its fourth event": died_before_it_was_out(4),
    "cut short with its fourth event": died_before_it_was_out(4, killed=False),
}


@pytest.mark.parametrize("name", ["cut short before the first row", "complete without a row"])
def test_a_journal_without_a_row_is_judged_and_measured(tmp_path: Path, name: str) -> None:
    verdict, figures = judge_and_measure(ODD[name](tmp_path / "run"))
    assert verdict["verdict"] == "unknown"
    assert verdict["finding"] == ("cut_short" if name.startswith("cut") else "nothing_published")
    assert set(figures.values()) == {None}


def test_a_journal_at_a_uri_is_judged_without_spark(tmp_path: Path) -> None:
    run = at_a_uri(tmp_path / "run")
    numbers = judge_run(run).numbers
    assert (numbers["verdict"], numbers["delivered"]) == ("valid", 1)
    assert judge_for(run) == "plain"


@pytest.mark.parametrize(("ending", "size"), JUST_OPENED)
def test_a_file_that_was_just_being_opened_is_left_out(tmp_path: Path, ending: str, size: int) -> None:
    run = just_opening(ending, bytes(size))(tmp_path / "run")
    numbers = judge_run(run).numbers
    assert (numbers["finding"], numbers["delivered"]) == ("cut_short", 1)
    assert len(read_rows(run / "journal")) == len(murmuration.load_run(run).rows) > 0


@pytest.mark.parametrize("events", [1, 4])
def test_an_event_whose_publisher_died_before_it_was_out_need_not_arrive(tmp_path: Path, events: int) -> None:
    judgement = judge_run(died_before_it_was_out(events)(tmp_path / "run"))
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    assert judgement.numbers["missing"] == judgement.numbers["explained"] == 2
    assert {excuse.text for excuse in judgement.excused.values()} == {"its publisher died before it was out"}
