"""The picture of a run says what happened: states of nodes and links, what moved, and no delivery more or less."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from murmur_page.counted import Counted, counted
from murmur_page.counted_rows import counted_rows
from murmur_page.frame import Frame, KeptFrames, delay_bucket
from murmur_page.growing import GrowingRun
from murmur_page.journal_tail import JournalTail
from murmur_page.observer import Observer
from murmur_page.recorded import frames_of, recorded
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import RowKind
from murmur_pubsub.measure import Measure
from murmur_pubsub.run_manifest import FaultEntry, read_manifest, write_manifest
from murmuration.harness.cluster import Cluster
from tests.judge.test_turns_of_faults import WAYS, Step, written
from tests.spark.run_folder import RunFolder


def count(tail: JournalTail, cluster: Cluster) -> Counted:
    """What the rows since the last time add up to, as arrays and row by row."""
    rows = tail.until(cluster.now_us)
    found = counted_rows(rows, len(read_manifest(cluster.folder).nodes))
    assert counted(rows.tolist()) == found
    return found


class Watched:
    """A cluster of three brokers in a chain, and an observer of its journal."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.tail = JournalTail(cluster.folder / "journal")
        self.observer = Observer(read_manifest(cluster.folder))
        self.frames: list[Frame] = []

    def look(self) -> Frame:
        self.observer.manifest = read_manifest(self.cluster.folder)
        begin_us = self.frames[-1].end_us if self.frames else -1
        frame = self.observer.frame(count(self.tail, self.cluster), begin_us, self.cluster.now_us)
        self.frames.append(frame)
        return frame

    def node(self, name: str) -> str:
        return self.observer.nodes[self.observer.manifest.numbers[name]]

    def link(self, first: str, second: str) -> str:
        numbers = self.observer.manifest.numbers
        return self.observer.links[numbers[first], numbers[second]]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with Cluster.start(
        overlay={"kind": "chain", "brokers": 3},
        clients={"alice": "b0", "bob": "b2"},
        links={"delay": "2 ms"},
        failure_detection={"heartbeat": "50 ms", "timeout": "200 ms"},
        folder=tmp_path / "run",
    ) as cluster:
        cluster.clients["bob"].subscribe("price > 10")
        cluster.settle()
        yield Watched(cluster)


def test_states_of_nodes_follow_kill_stall_slow_and_their_ends(watched: Watched) -> None:
    faults, cluster = watched.cluster.faults, watched.cluster
    watched.look()
    assert {watched.node(name) for name in ("b0", "b1", "b2", "alice", "bob")} == {"up"}
    for order, ends, state in (
        (faults.kill, faults.restart, "down"),
        (faults.stall, faults.resume, "stalled"),
    ):
        order("b1")
        cluster.advance("300 ms")
        watched.look()
        assert watched.node("b1") == state
        assert watched.link("b0", "b1") == "down"
        ends("b1")
        cluster.settle()
        watched.look()
        assert watched.node("b1") == "up"
        assert watched.link("b0", "b1") == "up"
    faults.slow("b1", "2 ms")
    watched.look()
    assert watched.node("b1") == "slow"
    faults.stall("b1")
    faults.resume("b1")
    watched.look()
    assert watched.node("b1") == "slow", "as before it was stalled"
    faults.slow("b1", "0 s")
    watched.look()
    assert watched.node("b1") == "up"


def test_states_of_links_follow_cut_change_and_partition(watched: Watched) -> None:
    faults, cluster = watched.cluster.faults, watched.cluster
    watched.look()
    faults.cut("b0", "b1")
    watched.look()
    assert watched.link("b0", "b1") == "cut"
    assert watched.link("b1", "b2") == "up"
    faults.heal("b0", "b1")
    cluster.settle()
    faults.link("b0", "b1", loss=0.5)
    watched.look()
    assert watched.link("b0", "b1") == "harmed"
    faults.link("b0", "b1")
    watched.look()
    assert watched.link("b0", "b1") == "up"
    faults.partition(["b0", "alice"], ["b1", "b2", "bob"])
    watched.look()
    assert (watched.link("b0", "b1"), watched.link("b1", "b2")) == ("cut", "up")
    faults.unite()
    cluster.settle()
    watched.look()
    assert watched.link("b0", "b1") == "up"


def test_a_fault_is_told_as_asked_for_and_as_done_and_a_repair_names_what_it_ends(watched: Watched) -> None:
    watched.cluster.faults.kill("b1")
    watched.cluster.advance("10 ms")
    watched.cluster.faults.restart("b1")
    watched.cluster.settle()
    told = [each for each in watched.look().story if each["k"] == "fault"]
    assert [(each["step"], each["stage"], each.get("ends")) for each in told] == [
        (0, "asked", None), (0, "done", None), (1, "asked", None), (1, "done", [0]),
    ]  # fmt: skip
    assert [each["text"] for each in told[::2]] == ["kill b1", "restart b1"]


@pytest.mark.parametrize("plan", WAYS.values(), ids=WAYS.keys())
def test_who_died_by_itself_is_back_with_whatever_starts_it_again(tmp_path: Path, plan: list[Step]) -> None:
    run = written(tmp_path / "run", plan)
    told = [each for frame in frames_of(run, read_manifest(run), 600) for each in frame.story if each["k"] == "fault"]
    begun = {each["step"] for each in told if each["kind"] in ("kill", "kill_actor", "lose_host")}
    assert sorted(step for each in told for step in each.get("ends", ())) == sorted(begun)


def test_a_stall_and_a_slow_node_end_with_the_kill_and_that_is_no_repair(watched: Watched) -> None:
    faults = watched.cluster.faults
    faults.slow("b1", "2 ms")
    faults.stall("b1")
    faults.kill("b1")
    faults.restart("b1")
    watched.cluster.settle()
    told = [each for each in watched.look().story if each["k"] == "fault" and each["stage"] == "done"]
    assert [(each["kind"], each.get("ends"), each.get("breaks", False)) for each in told] == [
        ("slow", None, True), ("stall", None, True), ("kill", [0, 1], True), ("restart", [2], False),
    ]  # fmt: skip
    assert watched.node("b1") == "up"


def test_what_nothing_ends_is_of_a_moment(tmp_path: Path) -> None:
    """An order, and a repair of what was whole, last no longer than their instant; what breaks lasts."""
    plan: list[Step] = [
        (50, FaultKind.ORDER, "b1"), (51, FaultKind.RESUME, "b1"), (52, FaultKind.STALL, "b1"),
        (53, FaultKind.RESUME, "b1"), (54, FaultKind.PUBLISH, "c0"),
    ]  # fmt: skip
    run = written(tmp_path / "run", plan, own=())
    told = [each for frame in frames_of(run, read_manifest(run), 600) for each in frame.story if each["k"] == "fault"]
    done = {each["step"]: [key for key in ("breaks", "ends", "moment") if key in each] for each in told}
    assert done == {0: ["moment"], 1: ["moment"], 2: ["breaks"], 3: ["ends"], 4: []}


def test_what_a_plan_does_to_a_node_that_has_died_by_itself_does_not_show_it_alive(tmp_path: Path) -> None:
    plan: list[Step] = [(31, FaultKind.STALL, "b1"), (32, FaultKind.RESUME, "b1"), (33, FaultKind.SLOW, "b2")]
    run = written(tmp_path / "run", plan, back=False)
    manifest = read_manifest(run)
    ends = [frame.nodes for frame in frames_of(run, manifest, 600)]
    for name in ("b1", "b2"):
        seen = [nodes[manifest.numbers[name]] for nodes in ends if manifest.numbers[name] in nodes]
        assert seen[-1] == "down", seen


def test_messages_on_their_way_are_counted_until_they_arrive(watched: Watched) -> None:
    cluster = watched.cluster
    b1 = watched.observer.manifest.numbers["b1"]
    cluster.clients["alice"].publish(*({"price": 12} for _ in range(5)))
    cluster.advance("1 ms")
    assert watched.look().waiting[b1] == 5
    cluster.advance("100 ms")
    frame = watched.look()
    assert frame.waiting[b1] == 0
    assert (frame.delivered, frame.moved[b1, b1 + 1].events) == (5, 5)


def test_losses_are_of_the_link_that_lost(watched: Watched) -> None:
    watched.cluster.faults.link("b1", "b2", loss=1.0)
    watched.cluster.clients["alice"].publish({"price": 12}, {"price": 13})
    watched.cluster.advance("100 ms")
    moved = watched.look().moved
    assert {pair: each.lost for pair, each in moved.items() if each.lost} == {(1, 2): 2}


@pytest.mark.parametrize("frames_max", [3, 7, 40])
def test_frames_that_were_merged_say_what_one_frame_of_all_says(watched: Watched, frames_max: int) -> None:
    cluster, kept = watched.cluster, KeptFrames(frames_max)
    for number in range(30):
        cluster.clients["alice"].publish(*({"price": each} for each in range(number)))
        if number == 10:
            cluster.faults.kill("b1")
        if number == 20:
            cluster.faults.restart("b1")
        cluster.advance("5 ms")
        kept.add(watched.look())
        assert len(kept.frames) <= frames_max
    observer = Observer(read_manifest(cluster.folder))
    whole = observer.frame(count(JournalTail(cluster.folder / "journal"), cluster), -1, cluster.now_us)
    merged = kept.frames[0]
    for frame in kept.frames[1:]:
        assert frame.begin_us == merged.end_us
        merged.merge(frame)
    for name in ("published", "delivered", "delays", "moved", "activity", "story"):
        assert getattr(merged, name) == getattr(whole, name), name
    states = {node: state for node, state in merged.nodes.items() if node in whole.nodes}
    assert states == whole.nodes


def test_the_recorded_run_has_every_publication_and_delivery_of_its_journal(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    for number in range(50):
        run.publish("c0", 1_000 * number, 0, number, {"a": number})
        run.hop("b0", "b1", 1_000 * number + 10, 1_000 * number + 400, 0, number)
        run.deliver("c1", 1_000 * number + 500, 0, number, subscriber=3)
    folder = run.finish()
    frames = frames_of(folder, read_manifest(folder), 600)
    assert sum(frame.published for frame in frames) == sum(frame.delivered for frame in frames) == 50
    delays = sum((frame.delays for frame in frames), start=frames[0].delays.__class__())
    assert dict(delays) == {delay_bucket(500): 50}
    data = recorded(folder)
    assert [node[0] for node in data["head"]["nodes"]] == ["b0", "b1", "c0", "c1"]
    assert sum(each[2] for frame in data["frames"] for each in frame.get("m", ())) == 50
    assert all(frame["t"] > frame["b"] for frame in data["frames"])


def test_a_fault_that_the_manifest_does_not_name_yet_is_told_by_its_number(tmp_path: Path) -> None:
    """A live run's manifest may be read just before a fault is entered."""
    run = RunFolder(tmp_path / "run")
    run.row("b0", 5, RowKind.FAULT, sequence=0, value=1, hops=1)
    folder = run.finish()
    (told,) = frames_of(folder, read_manifest(folder), 600)[-1].story
    assert (told["text"], told["kind"]) == ("step 1", "kill")


def test_what_a_protocol_measures_is_a_level_that_holds_or_a_count(tmp_path: Path) -> None:
    """b0 has 2 soft links, and still 2, then 3, and counts 5 ticks and 1; b1 has two rows; a client's is nobody's."""
    built = RunFolder(tmp_path / "run", brokers=2, clients=1)
    for node, time_us, topic, value in (
        ("b0", 10, 1, 2), ("b0", 20, 2, 5), ("b1", 30, 3, 77), ("c0", 35, 1, 9), ("b0", 110, 1, 2), ("b0", 120, 2, 1),
        ("b1", 130, 3, 77), ("b0", 210, 1, 3), ("b0", 220, 4, 1),
    ):  # fmt: skip
        built.row(node, time_us, RowKind.PROTOCOL, size=topic, value=value)
    run = built.finish()
    measures = (Measure(1, "soft links", "level"), Measure(2, "ticks", "sum"), Measure(3, "moves", "rows"))
    write_manifest(run, replace(read_manifest(run), measures=measures))
    frames = frames_of(run, read_manifest(run), 220)
    assert [(each.levels, dict(each.totals)) for each in frames if each.levels or each.totals] == [
        ({(1, 0): 2}, {}), ({}, {(2, 0): 5}), ({}, {(3, 1): 1}),
        ({}, {(2, 0): 1}), ({}, {(3, 1): 1}), ({(1, 0): 3}, {}),
    ]  # fmt: skip
    whole, *others = frames
    for each in others:
        whole.merge(each)
    assert (whole.levels, dict(whole.totals)) == ({(1, 0): 3}, {(2, 0): 6, (3, 1): 2})
    assert recorded(run)["head"]["measures"][0] == [1, "soft links", "level"]


def test_a_protocol_that_declares_what_it_measures_is_shown_by_it(tmp_path: Path) -> None:
    chain, parameters = {"kind": "chain", "brokers": 4}, {"multipath": {"round": "100 ms"}}
    datagrams, folder = {"delay": "1 ms"}, tmp_path / "run"
    with Cluster.start(
        chain, routing="multipath", parameters=parameters, datagrams=datagrams, folder=folder
    ) as cluster:
        cluster.clients["c3"].subscribe("price > 10")
        cluster.settle()
        for _ in range(10):
            cluster.clients["c0"].publish({"price": 11})
            cluster.advance("100 ms")
    data = recorded(tmp_path / "run")
    topics = {topic: words for topic, words, _ in data["head"]["measures"]}
    levels = [(topics[topic], level) for frame in data["frames"] for topic, _, level in frame.get("e", ())]
    assert {("candidate links", 1), ("candidate links", 0), ("soft links", 1)} <= set(levels)


def test_a_fault_entered_while_a_page_reads_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run enters a fault in its manifest before it writes the row: both may come between two looks of a page."""
    run = RunFolder(tmp_path / "run")
    run.row("b0", 5, RowKind.FAULT, sequence=0, value=1, hops=1)
    growing = GrowingRun(run.finish())
    kill = FaultEntry("kill b0", FaultKind.KILL, 5, ("b0",))
    until = JournalTail.until

    def entered_then_read(tail: JournalTail) -> np.ndarray:
        write_manifest(run.folder, replace(growing.manifest, faults=(kill,)))
        return until(tail)

    monkeypatch.setattr(JournalTail, "until", entered_then_read)
    (frame,) = growing.look()
    assert [each["text"] for each in frame["s"]] == ["kill b0"]
