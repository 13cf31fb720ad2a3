"""The manifest of a run: what its driver says about it, in the file `manifest.json` of the run folder.

The driver writes it before anything starts, and again whenever it knows more. The judge reads it: how nodes are
numbered in the journal, what was promised, and what was broken. What happened is the journal's to say.

The schema is this module; `MANIFEST_VERSION` changes when a key does. Times are emulated microseconds.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import REPAIRS, FaultKind
from murmur_pubsub.json_file import read_json
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.measure import Measure
from murmur_pubsub.plain_data import from_plain, to_plain
from murmur_pubsub.promise import DEFAULT_RECOVERY_LIMIT_US, Promise
from murmur_pubsub.whole_files import write_text

FORMAT = "murmur-run"
MANIFEST_VERSION = 3
Status = Literal["running", "complete", "interrupted"]
LATE_US = 5_000
_LATE_ONE_IN = 100
_FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """A node. Its number in the journal is its place in the manifest's list."""

    name: str
    role: Literal["broker", "client", "driver"]
    broker: str | None = None
    """Where a client is attached."""


@dataclass(frozen=True, slots=True)
class OverlayEntry:
    """The overlay as it was generated."""

    brokers: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FaultEntry:
    """A step of the fault plan; FAULT rows of the journal name it by its place in the manifest's list."""

    text: str
    kind: FaultKind
    time_us: int | None = None
    """When it was due, counted from the beginning of publishing as in a scenario (None: before that)."""
    nodes: tuple[str, ...] = ()
    """The node it is about, the two ends of a link, or all nodes of an actor, of a process that died by itself, or of a
    lost host."""
    groups: tuple[tuple[str, ...], ...] = ()
    """The sides of a partition."""
    link: LinkSpec | None = None
    """What a changed link is like (None: as planned)."""
    work_us: int = 0
    """How much longer each message takes at a slow node."""
    given_up: tuple[str, ...] = ()
    """The broker to whose subscribers nothing is promised once the order is carried out, until it starts again."""
    by_itself: bool = False
    """Nobody ordered it: it was seen to have happened."""
    by_hand: bool = False
    """Somebody ordered it while the run went on."""
    issuer: int = -1
    """The publisher or subscriber whose command it is."""
    in_process: bool = False
    """A kill that threw one node away while its process went on, with the other nodes of its actor; or a stall or a
    slowing down of it that the others did not take part in."""
    disk_lost: bool = False
    """A kill that took the node's stable storage too."""
    for_good: bool = False
    """Once the order is carried out the broker that is given up is no part of the overlay any more, though it start
    again."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What came from one host's scratch folder after the run."""

    files: int
    failure: str | None = None
    """Why not all files are here (None: all are)."""


@dataclass(frozen=True, slots=True)
class HostEntry:
    """A host of the Ray cluster that played the run."""

    name: str
    address: str
    zone: str | None
    clock_us: int
    """How far its clock was ahead of the driver's."""
    scratch: str | None
    """Its folder for journals until they are gathered (None: it wrote straight into the run folder)."""
    gathered: Gathered | None
    brokers: tuple[str, ...]

    @property
    def failure(self) -> str | None:
        """Why its journals are not with the others; None: they are, or the run is not over."""
        return None if self.gathered is None else self.gathered.failure


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """The Ray cluster that played the run; hosts in the order of their numbers, that of the driver first."""

    address: str
    hosts: tuple[HostEntry, ...]


@dataclass(frozen=True, slots=True)
class DriverHost:
    """The computer of the driver."""

    cores: int
    memory_bytes: int
    python: str
    system: str


@dataclass(frozen=True, slots=True)
class Lateness:
    """How well the actors of a live run kept emulated time while events were published, without those that a fault
    held up."""

    due: int = 0
    """Messages, timers and publications that had a time to wait for."""
    late: int = 0
    """Of these, what came more than LATE_US after it."""
    worst_us: int = 0
    """How far an actor fell behind at worst."""

    @property
    def sound_percentile(self) -> int | None:
        """Percentiles of delay above this one cannot be trusted; None: of a hundred at most one was late."""
        return 100 * (self.due - self.late) // self.due if self.late * _LATE_ONE_IN > self.due else None


@dataclass(frozen=True, slots=True)
class RunManifest:
    """What the driver says about a run. Raises `InputError` for keys that contradict each other."""

    name: str
    runtime: Literal["ray", "virtual"]
    seed: int
    run: str
    """The run's identifier as hexadecimal digits; every file of the journal bears it."""
    nodes: tuple[NodeEntry, ...]
    status: Status = "running"
    version: str = "unknown"
    """Of murmur."""
    time_dilation: float = 1.0
    scenario: Mapping[str, Any] = field(default_factory=dict)
    """As it was written, with every change."""
    scenario_file: str | None = None
    """Where it was read; None: a program gave it."""
    overlay: OverlayEntry = OverlayEntry()
    links: tuple[tuple[str, str], ...] = ()
    """All links, those between clients and their brokers too."""
    actors: tuple[tuple[str, ...], ...] = ()
    """Nodes that share an actor, and so a process, in a live run; a node that is in none of them has its own."""
    lossy: bool = False
    """Do links, or datagrams beside them, lose messages all the time, as the scenario has them?"""
    workload: Mapping[str, Any] = field(default_factory=dict)
    """What was generated, for people."""
    message_kinds: Mapping[int, str] = field(default_factory=dict)
    """The names of the kinds of messages in SEND, RECEIVE and DROP rows."""
    datagram_kinds: tuple[int, ...] = ()
    """Those of them that always travel as datagrams, beside the links, if the run has datagrams."""
    measures: tuple[Measure, ...] = ()
    """What the protocols' own rows measure."""
    withdrawal_grace_us: int = 0
    subscription_grace_us: int = 0
    recovery_limit_us: int = DEFAULT_RECOVERY_LIMIT_US
    expect: Mapping[str, float] = field(default_factory=dict)
    """What the run must reach beside what is promised, by the names in `Expect.plain` of the scenario."""
    promise: Promise = field(default_factory=Promise)
    faults: tuple[FaultEntry, ...] = ()
    """The plan; then what broke beside it, as it was seen."""
    writers: Mapping[str, int] | None = None
    """How many incarnations each writer of the journal had; None: the run has not ended by itself."""
    journal: str | None = None
    """The URI of the journal, if it is not in the run folder."""
    cluster: ClusterEntry | None = None
    """None: the run was played on the driver's host alone."""
    journals_missing: tuple[str, ...] = ()
    """The nodes whose journals could not be gathered, and on which the verdict depends."""
    host: DriverHost | None = None
    lateness: Lateness = Lateness()
    wall_seconds: Mapping[str, float] = field(default_factory=dict)
    """Of each phase."""
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    """Of each phase, all nodes together."""
    emulated_us: int | None = None
    """How long the run was in emulated time; None: it has not ended by itself."""

    def __post_init__(self) -> None:
        try:
            int(self.run, 16)
        except ValueError:
            raise InputError("run", repr(self.run), "an identifier as hexadecimal digits") from None
        if self.status == "complete" and self.writers is None:
            raise InputError("writers", "nothing", "how many incarnations each writer of the journal had")

    @property
    def identifier(self) -> int:
        """The run's identifier as the journal's files have it."""
        return int(self.run, 16)

    @property
    def completeness(self) -> str:
        """The status, or "incomplete" if journals that a verdict needs are missing."""
        return "incomplete" if self.journals_missing else self.status

    @property
    def names(self) -> list[str]:
        """The names of all nodes, in the order of their numbers."""
        return [node.name for node in self.nodes]

    @property
    def numbers(self) -> dict[str, int]:
        """Node name to its number in the journal."""
        return {node.name: number for number, node in enumerate(self.nodes)}

    @property
    def emulated_per_cpu_second(self) -> float | None:
        """Seconds of emulated time for each second of a core that the nodes took; None: it is not known."""
        spent_s = sum(self.cpu_seconds.values())
        return None if self.emulated_us is None or not spent_s else self.emulated_us / 1e6 / spent_s

    @property
    def brokers(self) -> list[str]:
        """The names of the brokers, in the order of their numbers."""
        return [node.name for node in self.nodes if node.role == "broker"]

    @property
    def homes(self) -> dict[str, str]:
        """Client to the broker where it is attached, by name."""
        return {node.name: node.broker for node in self.nodes if node.broker is not None}

    @property
    def by_themselves(self) -> list[str]:
        """What broke though nobody had ordered it, in words."""
        return [fault.text for fault in self.faults if fault.by_itself and fault.kind not in REPAIRS]

    @property
    def happened(self) -> list[FaultEntry]:
        """All faults in the order in which they happened, as far as their times tell: a step of a live plan may have
        come later. Of two at one time that which nobody ordered came first: it had to be seen."""
        return sorted(self.faults, key=lambda each: (-1 if each.time_us is None else each.time_us, not each.by_itself))

    @property
    def has_links(self) -> bool:
        """Do brokers have links with each other? Those of a structured overlay have none."""
        brokers = set(self.brokers)
        return len(brokers) < 2 or any(first in brokers and second in brokers for first, second in self.links)

    @property
    def away(self) -> frozenset[str]:
        """The brokers on hosts whose journals could not be gathered, or not all of them."""
        hosts = () if self.cluster is None else self.cluster.hosts
        return frozenset(broker for host in hosts if host.failure is not None for broker in host.brokers)

    def journal_at(self, run: Path) -> str:
        """Path or URI of the run's journal."""
        return self.journal or str((run / "journal").resolve())


def write_manifest(run: Path, manifest: RunManifest) -> None:
    """Write the manifest into the run folder, whole or not at all."""
    document = {"format": FORMAT, "schema_version": MANIFEST_VERSION} | to_plain(manifest)
    write_text(run / _FILE, json.dumps(document, indent=1) + "\n")


def read_manifest(run: Path) -> RunManifest:
    """The manifest of a run folder; raises `InputError` naming file and key for anything that is none."""
    path = run / _FILE
    if run.is_file():
        raise InputError(str(run), "a file", "the folder of a run")
    if not run.is_dir():
        beside = [each.name for each in run.parent.iterdir()] if run.parent.is_dir() else []
        near = difflib.get_close_matches(run.name, beside, 1)
        hint = f" (did you mean {str(run.parent / near[0])!r}?)" if near else ""
        raise InputError(str(run), f"no such folder{hint}", "the folder of a run")
    try:
        said = read_json(path, "the manifest of a run")
    except FileNotFoundError:
        raise InputError(str(run), f"a folder without {_FILE}", "the folder of a run") from None
    for key, allowed in (("format", FORMAT), ("schema_version", MANIFEST_VERSION)):
        found = said.pop(key, None)
        if found != allowed:
            raise InputError(f"{path}, key {key}", f"{found!r:.60}", repr(allowed))
    manifest = from_plain(RunManifest, said, str(path))
    if manifest.journal is None and not (run / "journal").is_dir():
        raise InputError(str(run), "no folder journal/ in it", "the folder of a run with its journal")
    return manifest
