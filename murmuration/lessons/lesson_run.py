"""A virtual run that a page carries on, stretch by stretch, with hands on it, and that is judged in the end."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from murmur_page.counted import counted
from murmur_page.head import head_of
from murmur_page.layout import layout_of, write_layout
from murmur_page.observer import Observer
from murmur_pubsub.errors import RunError
from murmur_pubsub.journal import NONE, RUN_WRITER, RowKind
from murmur_pubsub.journal_format import HEADER_BYTES, ROW, FileName
from murmur_pubsub.run_manifest import FaultEntry, Status
from murmur_virtual.run import VirtualRun
from murmuration.deployment.build_deployment import build
from murmuration.lessons.witnesses import journal_hash
from murmuration.runs.hands import SAVED, Hands
from murmuration.runs.manifest import manifest_of
from murmuration.runs.run_folder import RunFolder
from murmuration.scenario.load import check_scenario
from spark_analysis.event_way import EventId, EventWay, follow, follow_all
from spark_analysis.history import read_history
from spark_analysis.plain_judge import Judgement, judge_run
from spark_analysis.way_ends import WayEnds


class PagedHands(Hands):
    """Hands whose time passes when the page says so; `until_us` counts from the beginning of publishing."""

    until_us = 0

    def pace(self, now_us: int) -> int:
        """See `Steering`."""
        return max(now_us, self.until_us)

    def let_go(self, now_us: int) -> None:
        """See `Steering`. A run that lasted longer than its plan is saved though nothing else was done."""
        super().let_go(now_us)
        if now_us:
            self._save(now_us)


class LessonRun:
    """A run of the scenario of these keys in a new folder. `place`: what has the keys. `inputs_max`: a run whose
    machines take more floods (None: it may). Raises `InputError` for a scenario that cannot be played, and while it is
    carried on `ProtocolError` for what a protocol does wrong, and `RunError` for a flood."""

    def __init__(
        self, keys: Mapping[str, Any], folder: Path, place: str = "lesson", inputs_max: int | None = None
    ) -> None:
        loaded = check_scenario({**keys, "runtime": "virtual"}, place)
        built = build(loaded)
        self.deployment = built.deployment
        self._folder = RunFolder.make(folder, manifest_of(loaded, built))
        with self._folder.begun():
            self._folder.write_scenario(loaded.data)
            write_layout(folder, layout_of(self.deployment))
        self.hands = PagedHands(loaded, self.deployment, self._folder)
        try:
            self._run = VirtualRun(self.deployment, self._folder.journal, self._hear, steering=self.hands)
        except BaseException:
            self._end("interrupted", None)
            raise
        self._inputs_max = inputs_max
        self._stretches = self._run.stretches()
        self._rows = _Rows(self._folder.journal)
        self._observer = Observer(self._folder.manifest)
        self._told_us = -1
        self.over = False
        self._step()
        self._began_us = self._run.runtime.now_us

    @property
    def faults(self) -> Sequence[FaultEntry]:
        """Those of the plan, and those by hand."""
        return self._folder.manifest.faults

    @property
    def inputs(self) -> int:
        """How many inputs machines took."""
        return self._run.runtime.processed

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self._folder.folder

    def head(self) -> dict[str, Any]:
        """What a page must know before the first frame."""
        return head_of(self.folder, self._folder.manifest)

    def advance(self, stretch_us: int) -> list[dict[str, Any]]:
        """Let this time pass, and tell the frame of it; nothing once the run is over."""
        if self.over:
            return []
        self.hands.until_us = self._run.runtime.now_us - self._began_us + stretch_us
        self._step()
        return self._frames()

    def order(self, entry: Mapping[str, Any]) -> str:
        """Do this now, and say what came of it; raises `InputError` where it cannot be."""
        answer: Future[str] = self.hands.order(entry)
        while self.hands.waiting:
            self._step()
        return answer.result(timeout=0)

    def play_on(self) -> list[dict[str, Any]]:
        """Order nothing more, and play to the end."""
        self.hands.finish()
        while not self.over:
            self.hands.until_us += 1_000_000
            self._step()
        return self._frames()

    def judgement(self) -> Judgement:
        """Of a run that is over."""
        return judge_run(self.folder)

    def hops(self) -> dict[str, list[int]]:
        """How many links each event had come over when it reached a broker from another one, in order of time, by the
        broker's name."""
        nodes = self._folder.manifest.nodes
        hops: dict[str, list[int]] = {node.name: [] for node in nodes if node.role == "broker"}
        for row in read_history(self._folder.journal).rows.of(RowKind.RECEIVE):
            if row.source != NONE and row.hops and nodes[row.node].role == "broker":
                hops[nodes[row.node].name].append(row.hops)
        return hops

    def way(self, source: int, sequence: int) -> EventWay:
        """The way of an event so far; raises `InputError` for one that was not published."""
        return follow(self.folder, source, sequence)

    def end_of_way(self, event: EventId, subscriber: int) -> str:
        """Where the way of an event ended on which it did not come to that subscriber, in words."""
        manifest = self._folder.manifest
        way = follow_all(self.folder, [event]).get(event)
        if way is None:
            return "its publisher died before it was out"
        home, *_ = read_history(self._folder.journal).lives[subscriber]
        return WayEnds(manifest).of_missing(way, manifest.names[home.node])

    def saved(self) -> str:
        """What was done by hand, as a scenario; without hands, the scenario itself."""
        by_hand = self.folder / SAVED
        return (by_hand if by_hand.exists() else self.folder / "scenario.yaml").read_text(encoding="utf-8")

    def journal_hash(self) -> str:
        """The SHA-256 of the journal of a run that is over."""
        return journal_hash(self._folder.journal)

    def _hear(self, step: str, done: int, total: int) -> None:
        if self._inputs_max is not None and self.inputs > self._inputs_max:
            raise RunError(f"It floods: machines took {self.inputs:,} inputs, and there is no end of it.")

    def _step(self) -> None:
        """Play the next stretch. Raises what ends the run early."""
        try:
            next(self._stretches)
        except StopIteration:
            self._end("complete", self._run.writers)
        except BaseException:
            self._end("interrupted", None)
            self.hands.let_go(0)
            raise

    def _end(self, status: Status, writers: Mapping[str, int] | None) -> None:
        self.over = True
        self._folder.write(dataclasses.replace(self._folder.manifest, status=status, writers=writers))

    def _frames(self) -> list[dict[str, Any]]:
        if not self.over:
            self._run.show()
        self._observer.manifest = self._folder.manifest
        rows, now_us = list(self._rows.following()), self._run.runtime.now_us
        if not rows:
            return []
        frame = self._observer.frame(counted(rows), self._told_us, max(now_us, self._told_us + 1))
        self._told_us = frame.end_us
        return [frame.plain()]


class _Rows:
    """The rows of a virtual run's journal, each once, as they are written."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._number = 0
        self._offset = HEADER_BYTES

    def following(self) -> Iterator[tuple[int, ...]]:
        """Those that were not told before."""
        while True:
            path = self._journal / str(FileName(RUN_WRITER, 0, self._number, "seg"))
            with path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
            for row in ROW.iter_unpack(data[: len(data) - len(data) % ROW.size]):
                if not row[-1]:
                    break
                self._offset += ROW.size
                yield row
            if not (self._journal / str(FileName(RUN_WRITER, 0, self._number + 1, "seg"))).exists():
                return
            self._number, self._offset = self._number + 1, HEADER_BYTES
