"""A live broker with a crowd of strangers at its port, beside the same run without: `python -m benchmarks.strangers`.

Three brokers in a chain, clients at its ends, every event for every subscriber. The strangers are at the broker in the
middle for as long as there are publications: half frames, bombs, silence, slow bytes, a right hello and then garbage,
replayed frames, empty ones. All of it is on loopback, bounded in number and time.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from actors.handshake import Acceptor, Address, Dialler, Party, Purpose
from actors.ray_session import RaySession, ray_session
from actors.run import LiveRun
from benchmarks.live import Script
from benchmarks.table import print_table
from murmur_pubsub.codec import FRAME_HEADER
from murmur_pubsub.deployment import Deployment, LinkPlan, NodeSpec, RunSettings
from murmur_pubsub.journal import Phase, Refusal, RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Effect, Input, Machine, NodeContext, Record, SetTimer, Start, TimerFired
from murmur_pubsub.machine_around import MachineAround
from murmur_pubsub.progress import PHASE_STEPS
from murmuration.registry import CLIENT_FACTORY, make_broker

STRANGERS, SECONDS = 1_000, 60
QUICK_STRANGERS, QUICK_SECONDS = 140, 6
_RATE_PER_S = 200
_PUBLISHERS, _SUBSCRIBERS = 4, 8
_PARTS = {"matching": "bitset", "routing": "forwarding", "reliability": "best_effort"}
_FACTORY = "benchmarks.strangers:watched_broker"
_LOOK_US = 5_000
_LATE = ("watch", "late")
_TOPIC = 9_000
_SAMPLE_S = 0.1


class Watched(MachineAround):
    """A broker that looks every five milliseconds how late it is: so long its loop stood still."""

    def __init__(self, broker: Machine) -> None:
        super().__init__(broker)
        self._due_us = 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        if type(input) is TimerFired and input.key == _LATE:
            late_us, self._due_us = now_us - self._due_us, now_us + _LOOK_US
            return (Record(_TOPIC, late_us), SetTimer(_LATE, _LOOK_US))
        effects = self.inner.handle(input, now_us)
        if type(input) is Start:
            self._due_us = now_us + _LOOK_US
            return (*effects, SetTimer(_LATE, _LOOK_US))
        return effects


def watched_broker(context: NodeContext) -> Machine:
    """The factory of the brokers here."""
    return Watched(make_broker(context))


@dataclass(slots=True)
class Outcome:
    """One run: deliveries that there had to be, were, and were doubled; the middle broker's memory in bytes before
    publishing and at most, its pauses in milliseconds, refused connections by reason, and the strangers' own count."""

    required: int
    delivered: int
    doubled: int
    rss: tuple[int, int]
    pauses_ms: np.ndarray
    refused: Counter[str]
    came: Counter[str]
    malformed: int
    links_down: int


class _Crowd:
    """Strangers while there are publications, and the memory of the broker that they are at."""

    def __init__(self, strangers: int, seconds: int) -> None:
        self.strangers = strangers
        self.seconds = seconds
        self.run: LiveRun | None = None
        self.rss: list[int] = []
        self.came: Counter[str] = Counter()
        self._process: subprocess.Popen[str] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def progress(self, step: str, done: int, total: int) -> None:
        """Called by the run as it goes."""
        if step == PHASE_STEPS[Phase.PUBLISHING] and not self.rss:
            assert self.run is not None
            self.rss.append(psutil.Process(self.run.group.places["b1"].pid).memory_info().rss)
            self._thread.start()
            if self.strangers:
                host, port = self.run.group.addresses["b1"]
                recorded = [each.hex() for each in _recorded((host, port), self.run.group.settings.token)]
                arguments = [str(port), str(self.seconds), str(self.strangers), *recorded]
                command = [sys.executable, "-m", "benchmarks.crowd", *arguments]
                self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if step == PHASE_STEPS[Phase.DRAINING] and self._process is not None:
            self.came = Counter(json.loads(self._process.communicate(timeout=60)[0]))
            self._process = None

    def end(self) -> None:
        """Stop looking."""
        self._over.set()
        if self._process is not None:
            self._process.kill()
        if self._thread.is_alive():
            self._thread.join()

    def _sample(self) -> None:
        assert self.run is not None
        process = psutil.Process(self.run.group.places["b1"].pid)
        while not self._over.wait(_SAMPLE_S):
            self.rss.append(process.memory_info().rss)


def _recorded(address: Address, token: str) -> tuple[bytes, bytes]:
    """Hello and proof of a handshake as somebody could have recorded it at that address."""
    dialler = Dialler(Party("b0", 0), token, "b1", Purpose.LINK, address)
    hello = dialler.hello()
    answer = Acceptor(Party("b1", 0), token, address).take(hello[FRAME_HEADER.size :])
    assert answer is not None
    proof = dialler.take(answer[FRAME_HEADER.size :])
    assert proof is not None
    return hello, proof


def deployment(seconds: int) -> Deployment:
    """The chain with its clients; publications are evenly spread over the time."""
    nodes = [NodeSpec(f"b{number}", "broker", _FACTORY, _PARTS) for number in range(3)]
    links = [LinkPlan("b0", "b1", LinkSpec()), LinkPlan("b1", "b2", LinkSpec())]
    scripts: dict[str, Any] = {}
    step_us = 1_000_000 // _RATE_PER_S
    for number in range(_PUBLISHERS):
        times = range(number * step_us, seconds * 1_000_000, _PUBLISHERS * step_us)
        scripts[f"p{number}"] = Script(publications=tuple((at_us, number, {"x": at_us}) for at_us in times))
    scripts["s0"] = Script(subscriptions=tuple((number, "x >= 0") for number in range(_SUBSCRIBERS)))
    homes = {f"p{number}": "b0" for number in range(_PUBLISHERS)} | {"s0": "b2"}
    for client, broker in homes.items():
        nodes.append(NodeSpec(client, "client", CLIENT_FACTORY, {"broker": broker}, broker))
        links.append(LinkPlan(client, broker, LinkSpec()))
    return Deployment(RunSettings(1, journal_hops=False), tuple(nodes), tuple(links), scripts)


def play(session: RaySession, strangers: int, seconds: int) -> Outcome:
    """One run with so many strangers."""
    plan = deployment(seconds)
    crowd = _Crowd(strangers, seconds)
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal"
        journal.mkdir()
        run = crowd.run = LiveRun(plan, Path(folder), crowd.progress, "127.0.0.1", session)
        try:
            run.play()
        finally:
            crowd.end()
        rows = np.concatenate([read_segment(path)[1] for path in sorted(journal.glob("*.seg"))])
    published = int((rows["kind"] == RowKind.PUBLISH).sum())
    delivered = rows[rows["kind"] == RowKind.DELIVER][["source", "sequence", "value"]]
    own = rows[rows["node"] == plan.numbers["b1"]]
    refused: Counter[str] = Counter()
    for row in own[own["kind"] == RowKind.REFUSED]:
        refused[Refusal(row["hops"]).name.lower().replace("_", " ")] += int(row["value"])
    first = rows["time_us"][rows["kind"] == RowKind.PUBLISH].min()
    late = own[(own["kind"] == RowKind.PROTOCOL) & (own["bytes"] == _TOPIC) & (own["time_us"] > first)]
    return Outcome(
        required=published * _SUBSCRIBERS,
        delivered=len(np.unique(delivered)),
        doubled=len(delivered) - len(np.unique(delivered)),
        rss=(crowd.rss[0], max(crowd.rss)),
        pauses_ms=late["value"] / 1e3,
        refused=refused,
        came=crowd.came,
        malformed=int((rows["kind"] == RowKind.MALFORMED).sum()),
        links_down=int((rows["kind"] == RowKind.LINK_DOWN).sum()),
    )


def measure(strangers: int, seconds: int) -> tuple[Outcome, Outcome]:
    """The run without strangers, and with them."""
    with ray_session(8) as session:
        return play(session, 0, seconds), play(session, strangers, seconds)


def main() -> None:
    """Print what both runs were like, and what became of the strangers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_STRANGERS} strangers, {QUICK_SECONDS} seconds")
    quick = parser.parse_args().quick
    strangers, seconds = (QUICK_STRANGERS, QUICK_SECONDS) if quick else (STRANGERS, SECONDS)
    without, beside = measure(strangers, seconds)
    kinds: dict[str, Callable[[Outcome], str]] = {
        "deliveries required": lambda each: f"{each.required:,}",
        "delivered": lambda each: f"{each.delivered:,}",
        "delivered twice": lambda each: f"{each.doubled:,}",
        "links that went down": lambda each: f"{each.links_down:,}",
        "malformed messages": lambda each: f"{each.malformed:,}",
        "memory of the broker at first (MB)": lambda each: f"{each.rss[0] / 1e6:.1f}",
        "memory at most (MB)": lambda each: f"{each.rss[1] / 1e6:.1f}",
        "pauses of its loop, median (ms)": lambda each: f"{np.median(each.pauses_ms):.1f}",
        "99 of 100 (ms)": lambda each: f"{np.percentile(each.pauses_ms, 99):.1f}",
        "longest (ms)": lambda each: f"{each.pauses_ms.max():.1f}",
        "connections of strangers": lambda each: f"{each.came.total():,}",
        "refused, in the journal": lambda each: f"{each.refused.total():,}",
    }
    print_table(
        f"{strangers:,} strangers at a live broker for {seconds} s, all on this host",
        ("", "without", "with"),
        [(kind, words(without), words(beside)) for kind, words in kinds.items()],
    )
    for title, counts in (("What the strangers did", beside.came), ("Why they were refused", beside.refused)):
        print_table(title, ("", "connections"), [(kind, f"{count:,}") for kind, count in counts.most_common()])


if __name__ == "__main__":
    main()
