"""Folds the rows of a journal into frames: what became of nodes and links, what moved, and what is to be told.

A link is up when both its ends have said so, and down as soon as one says that. A node that is killed says nothing: the
fault's row does. What is on its way is what was sent and has neither arrived nor been dropped, as far as rows tell.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from murmur_page.counted import Counted, Handled
from murmur_page.frame import Activity, Frame, LinkState, Moved, NodeState, Pair, delay_bucket
from murmur_pubsub.dead_nodes import Dead
from murmur_pubsub.faults import COMMANDS, DEATHS, ENDS, REPAIRS, RETURNS, UNDONE_BY, FaultKind, takes_back
from murmur_pubsub.journal import NONE, FaultStage, Phase, RowKind
from murmur_pubsub.run_manifest import FaultEntry, RunManifest

_UNMATCHED_MAX = 10_000
_PHASES = {
    Phase.STARTING: "nodes are started",
    Phase.SUBSCRIBING: "clients subscribe",
    Phase.PUBLISHING: "publishing begins",
    Phase.DRAINING: "all is published; what is on its way arrives",
    Phase.STOPPED: "the run is over",
}


class Observer:
    """Knows the state of a run up to the last row that it was given.

    `manifest` may be replaced while the run goes on: a live run's grows with faults that nobody planned.
    """

    def __init__(self, manifest: RunManifest) -> None:
        self.manifest = manifest
        names = manifest.numbers
        self._numbers = names
        self._is_broker = [node.role == "broker" for node in manifest.nodes]
        self._home = [
            names[node.broker] if node.broker is not None else number for number, node in enumerate(manifest.nodes)
        ]
        self.nodes: dict[int, NodeState] = {}
        self.links: dict[Pair, LinkState] = {}
        self._up: set[Pair] = set()
        self._named: set[Pair] = set()
        """Links of which an end has said something."""
        self._cut: set[Pair] = set()
        self._harmed: set[Pair] = set()
        self._gone: set[Pair] = set()
        self._open: dict[int, tuple[FaultEntry, frozenset[str]]] = {}
        """Faults that are in force, by step, and whom each has hit."""
        self._dead = Dead()
        self._slow: set[int] = set()
        """Nodes that are, and are again once they go on after a stall."""
        self._counted = {measure.topic: measure.counted for measure in manifest.measures}
        self._levels: dict[Pair, int] = {}
        self._on_way: Counter[Pair] = Counter()
        self._waiting: dict[int, int] = {}
        self._published_us: dict[int, int] = {}
        self._unmatched: list[Handled] = []
        """Deliveries whose publication has not been read yet."""

    def frame(self, counted: Counted, begin_us: int, end_us: int) -> Frame:
        """The frame of rows that add up to this and follow those given before."""
        frame = Frame(begin_us, end_us)
        changed = False
        for row in counted.told:
            changed |= self._look_at(frame, row)
        if changed:
            self._say_links(frame)
        self._count_moved(frame, counted)
        receivers = {receiver for _, receiver in counted.crossings}
        self._say_waiting(frame, receivers | self._waiting.keys() if changed else receivers)
        self._count_deliveries(frame, counted)
        self._measure(frame, counted.measured)
        frame.lag_us = counted.lag_us
        return frame

    # ------------------------------------------------------------------------------------- what is counted
    def _count_moved(self, frame: Frame, counted: Counted) -> None:
        for pair, crossing in counted.crossings.items():
            self._on_way[pair] += crossing.sent - crossing.received - (crossing.lost - crossing.unsent)
            if not (self._is_broker[pair[0]] and self._is_broker[pair[1]]):
                continue
            if crossing.received:
                self._activity(frame, pair[1]).received += crossing.received
            if crossing.sent or crossing.lost:
                moved = frame.moved.setdefault(pair, Moved())
                moved.events += crossing.carried
                moved.others += crossing.sent - crossing.carried
                moved.lost += crossing.lost

    def _say_waiting(self, frame: Frame, receivers: set[int]) -> None:
        if not receivers:
            return
        waiting: defaultdict[int, int] = defaultdict(int)
        for (_, receiver), count in self._on_way.items():
            if receiver in receivers and count > 0:  # an arrival may be read before its sending
                waiting[receiver] += count
        for receiver in receivers:
            if self._is_broker[receiver] and self._waiting.get(receiver, 0) != waiting[receiver]:
                self._waiting[receiver] = frame.waiting[receiver] = waiting[receiver]

    def _measure(self, frame: Frame, rows: Iterable[tuple[int, int, int]]) -> None:
        """Take in the protocol's own rows, as far as it says what they measure."""
        for node, topic, value in rows:
            counted = self._counted.get(topic)
            key = (topic, node)
            if counted is None or not self._is_broker[node]:
                continue
            if counted != "level":
                frame.totals[key] += value if counted == "sum" else 1
            elif self._levels.get(key, 0) != value:
                self._levels[key] = frame.levels[key] = value

    def _count_deliveries(self, frame: Frame, counted: Counted) -> None:
        frame.published, frame.delivered = len(counted.published), len(counted.delivered)
        known = self._published_us
        for each in counted.published:
            self._activity(frame, self._home[each.node]).published += 1
            known[each.event] = each.time_us
        later: list[Handled] = []
        for each in counted.delivered:
            self._activity(frame, self._home[each.node]).delivered += 1
        for each in (*self._unmatched, *counted.delivered):
            if each.event in known:
                frame.delays[delay_bucket(each.time_us - known[each.event])] += 1
            else:
                later.append(each)
        self._unmatched = later[-_UNMATCHED_MAX:]

    def _activity(self, frame: Frame, broker: int) -> Activity:
        return frame.activity.setdefault(broker, Activity())

    # ---------------------------------------------------------------------------------------- what is told
    def _look_at(self, frame: Frame, row: tuple[int, ...]) -> bool:
        """Take in one row of a kind in `_TOLD`; True if the state of a link may have changed."""
        time_us, sequence, value, node, _, peer, _, hops, kind = row
        if kind == RowKind.LINK_UP or kind == RowKind.LINK_DOWN:
            return self._link_row(node, peer, kind == RowKind.LINK_UP)
        if kind == RowKind.START:
            self._set_node(frame, node, "up")
            return True
        if kind == RowKind.STOP:
            if self.nodes.get(node) not in ("down", "stalled"):
                self._set_node(frame, node, "stopped")
        elif kind == RowKind.PHASE:
            frame.story.append({"t": time_us, "k": "phase", "text": _PHASES[Phase(value)]})
        elif kind == RowKind.ANSWER:
            what = "refused" if value else "carried out"
            told = f"{self.manifest.names[node]}: {what}: {self._text(sequence)}"
            frame.story.append({"t": time_us, "k": "answer", "text": told, "nodes": [node]})
        elif kind == RowKind.FAULT:
            return self._fault_row(frame, time_us, sequence, hops, FaultKind(value))
        elif kind == RowKind.PAUSE and value and self._is_broker[node]:
            told = f"{self.manifest.names[node]}: the queue to {self.manifest.names[peer]} is full; it takes no input"
            if not frame.story or frame.story[-1].get("text") != told:
                frame.story.append({"t": time_us, "k": "full", "text": told, "nodes": [node]})
        return False

    def _link_row(self, node: int, peer: int, up: bool) -> bool:
        if peer == NONE:
            return False
        self._named.add(_key(node, peer))
        if up:
            self._up.add((node, peer))
        else:
            self._up.discard((node, peer))
        self._on_way[node, peer] = self._on_way[peer, node] = 0
        return True

    def _text(self, step: int) -> str:
        faults = self.manifest.faults
        return faults[step].text if step < len(faults) else f"step {step + 1}"

    def _fault_row(self, frame: Frame, time_us: int, step: int, stage: int, kind: FaultKind) -> bool:
        faults = self.manifest.faults
        entry = faults[step] if step < len(faults) else None
        told: dict[str, Any] = {"t": time_us, "k": "fault", "step": step, "text": self._text(step)}
        told["kind"] = kind.name.lower()
        told["stage"] = "asked" if stage == FaultStage.ORDERED else "done"
        if entry is not None:
            told["nodes"] = [self._numbers[name] for name in entry.nodes]
            if entry.by_itself:
                told["itself"] = True
            if entry.by_hand:
                told["hand"] = True
        if stage == FaultStage.ORDERED or entry is None:
            frame.story.append(told)
            return False
        hit = self._dead.hit_by(entry)
        ended = [begun for begun, each in self._open.items() if self._ends(entry, hit, *each)]
        if ended:
            told["ends"] = ended
        for begun in ended:
            del self._open[begun]
        if not self._only_repairs(entry):
            self._open[step] = entry, hit or frozenset(entry.nodes)
            told["breaks"] = True
        elif not ended and entry.kind not in COMMANDS:  # nothing would ever end it
            told["moment"] = True
        frame.story.append(told)
        self._carry_out(frame, entry)
        return True

    def _only_repairs(self, entry: FaultEntry) -> bool:
        ends = entry.kind in REPAIRS or takes_back(entry.kind, entry.link, entry.work_us)
        return ends or entry.kind in (FaultKind.ORDER, *COMMANDS)

    def _ends(self, entry: FaultEntry, about: frozenset[str], begun: FaultEntry, hit: frozenset[str]) -> bool:
        """Does it, which is `about` these nodes, end the fault that is in force? A death is over when all whom it has
        hit are back; a host starts none that runs already, on another one."""
        if begun.kind in DEATHS:
            return entry.kind in RETURNS and self._dead.names.isdisjoint(hit)
        able = entry.kind in UNDONE_BY.get(begun.kind, ()) or begun.kind is ENDS.get(entry.kind)
        return able and hit <= (about if entry.kind in RETURNS else set(entry.nodes))

    def _carry_out(self, frame: Frame, entry: FaultEntry) -> None:
        kind, numbers = entry.kind, [self._numbers[name] for name in entry.nodes]
        if kind in (FaultKind.STALL, FaultKind.RESUME, FaultKind.SLOW) and entry.nodes[0] in self._dead.names:
            return  # it had died by itself before
        if kind in DEATHS:
            for number in numbers:
                self._slow.discard(number)
                self._set_node(frame, number, "down")
                self._up = {pair for pair in self._up if pair[0] != number}
                for pair in self._on_way:
                    if number in pair:
                        self._on_way[pair] = 0
        elif kind is FaultKind.STALL:
            self._set_node(frame, numbers[0], "stalled")
        elif kind in (FaultKind.SLOW, FaultKind.RESUME):
            if kind is FaultKind.SLOW:
                (self._slow.add if entry.work_us else self._slow.discard)(numbers[0])
            self._set_node(frame, numbers[0], "slow" if numbers[0] in self._slow else "up")
        elif kind is FaultKind.PARTITION:
            side = {self._numbers[name]: number for number, group in enumerate(entry.groups) for name in group}
            planned = (_key(self._numbers[a], self._numbers[b]) for a, b in self.manifest.links)
            self._cut |= {pair for pair in (*planned, *self._named) if side.get(pair[0]) != side.get(pair[1])}
        elif kind is FaultKind.UNITE:
            self._cut.clear()
        elif len(numbers) == 2:
            self._change_link(kind, _key(*numbers), entry)

    def _change_link(self, kind: FaultKind, pair: Pair, entry: FaultEntry) -> None:
        self._named.add(pair)
        if kind is FaultKind.CUT:
            self._cut.add(pair)
        elif kind is FaultKind.HEAL:
            self._cut.discard(pair)
        elif kind is FaultKind.CHANGE_LINK:
            (self._harmed.add if entry.link is not None else self._harmed.discard)(pair)
        elif kind is FaultKind.DISCONNECT:
            self._gone.add(pair)
        elif kind is FaultKind.CONNECT:
            self._gone.discard(pair)

    def _set_node(self, frame: Frame, node: int, state: NodeState) -> None:
        if self.nodes.get(node) != state:
            self.nodes[node] = frame.nodes[node] = state

    def _say_links(self, frame: Frame) -> None:
        for pair in self._named | self._cut:
            if not (self._is_broker[pair[0]] and self._is_broker[pair[1]]):
                continue
            state = self._state_of(pair)
            if self.links.get(pair) != state:
                self.links[pair] = frame.links[pair] = state

    def _state_of(self, pair: Pair) -> LinkState:
        if pair in self._gone:
            return "gone"
        if pair in self._cut:
            return "cut"
        if not {pair, pair[::-1]} <= self._up:
            return "down"
        return "harmed" if pair in self._harmed else "up"


def _key(first: int, second: int) -> Pair:
    return (first, second) if first < second else (second, first)
